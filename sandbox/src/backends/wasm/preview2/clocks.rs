//! Clocks of the sandbox.

use std::sync::Arc;
use std::time::Duration;

use wasmtime::component::Resource;
use wasmtime_wasi::p2::bindings::clocks::monotonic_clock;
use wasmtime_wasi::p2::{DynPollable, Pollable, subscribe};
use wasmtime_wasi::{HostMonotonicClock, HostWallClock};

use crate::backends::wasm::host::GuestState;
use crate::backends::wasm::surroundings::Surroundings;

const RESOLUTION_NANOS: u64 = 1_000;

pub(super) struct Clock(pub(super) Arc<Surroundings>);

impl HostWallClock for Clock {
    fn resolution(&self) -> Duration {
        Duration::from_nanos(RESOLUTION_NANOS)
    }

    fn now(&self) -> Duration {
        Duration::from_nanos(self.0.wall())
    }
}

impl HostMonotonicClock for Clock {
    fn resolution(&self) -> u64 {
        RESOLUTION_NANOS
    }

    fn now(&self) -> u64 {
        self.0.monotonic()
    }
}

/// A moment that is waited for.
struct Moment {
    when_nanos: u64,
    surroundings: Arc<Surroundings>,
}

#[wasmtime_wasi::async_trait]
impl Pollable for Moment {
    async fn ready(&mut self) {
        let nanos = self.surroundings.until(self.when_nanos);
        if nanos == 0 {
            // A guest that polls in a loop lets others run.
            tokio::task::yield_now().await;
        } else {
            tokio::time::sleep(self.surroundings.sleep(nanos)).await;
        }
    }
}

impl monotonic_clock::Host for GuestState {
    fn now(&mut self) -> wasmtime::Result<u64> {
        Ok(self.surroundings.monotonic())
    }

    fn resolution(&mut self) -> wasmtime::Result<u64> {
        Ok(RESOLUTION_NANOS)
    }

    fn subscribe_instant(&mut self, when_nanos: u64) -> wasmtime::Result<Resource<DynPollable>> {
        let surroundings = Arc::clone(&self.surroundings);
        let moment = self.resources().push(Moment { when_nanos, surroundings })?;
        subscribe(self.resources(), moment)
    }

    fn subscribe_duration(&mut self, nanos: u64) -> wasmtime::Result<Resource<DynPollable>> {
        let when = self.surroundings.monotonic().saturating_add(nanos);
        self.subscribe_instant(when)
    }
}
