//! Telling episodes to stop.

use std::sync::Arc;

use tokio::sync::watch;

/// A flag that tells episodes to stop; clones share it.
#[derive(Debug, Clone)]
pub struct Cancellation {
    flag: Arc<watch::Sender<bool>>,
}

impl Default for Cancellation {
    fn default() -> Self {
        Self { flag: Arc::new(watch::Sender::new(false)) }
    }
}

impl Cancellation {
    /// A flag that is not set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the flag; it stays set.
    pub fn cancel(&self) {
        self.flag.send_replace(true);
    }

    /// Whether the flag is set.
    pub fn is_cancelled(&self) -> bool {
        *self.flag.borrow()
    }

    /// Waits until the flag is set.
    pub async fn cancelled(&self) {
        let mut receiver = self.flag.subscribe();
        // The sender lives as long as `self`, so waiting cannot fail.
        let _ = receiver.wait_for(|cancelled| *cancelled).await;
    }
}
