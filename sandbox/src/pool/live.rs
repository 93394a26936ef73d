//! A sandbox together with the room it takes up.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;

use super::inner::Inner;
use crate::Sandbox;

/// A sandbox together with the room it takes up.
pub(super) struct Core {
    /// Its number in the pool.
    pub(super) number: u64,
    pub(super) sandbox: Box<dyn Sandbox>,
    /// Until when agent and verifier still fit into its time to live.
    pub(super) fresh_until: Instant,
    /// When its time to live is over.
    pub(super) expires: Instant,
    /// Absent from the moment somebody closes it: whoever takes it out does.
    room: Mutex<Option<OwnedSemaphorePermit>>,
}

impl Core {
    pub(super) fn new(
        number: u64,
        sandbox: Box<dyn Sandbox>,
        fresh_until: Instant,
        expires: Instant,
        room: OwnedSemaphorePermit,
    ) -> Self {
        Self { number, sandbox, fresh_until, expires, room: Mutex::new(Some(room)) }
    }

    /// The room, for the first who asks.
    pub(super) fn take_room(&self) -> Option<OwnedSemaphorePermit> {
        self.room.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// A sandbox that is closed when this is dropped, wherever that happens: on a shelf, in a channel
/// whose reader has gone, or in a caller's hands.
pub(super) struct Live {
    pub(super) inner: Arc<Inner>,
    pub(super) core: Arc<Core>,
}

impl Drop for Live {
    fn drop(&mut self) {
        self.inner.close_later(&self.core);
    }
}
