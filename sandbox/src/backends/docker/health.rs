//! Whether one of several engines is asked for sandboxes.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Waits until an engine that failed is asked again: doubled from the first to the second.
const RETRY: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));
/// Starts that fail in a row, though the engine answers, before others are asked first.
const DOUBTS: u32 = 3;

/// What is known of an engine. One that failed is not trusted for a while: others are asked first,
/// and nobody waits for it unless all have failed.
#[derive(Debug, Default)]
pub(super) struct Health(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// Since it last started a sandbox.
    failures: u32,
    doubts: u32,
    /// Present while it is not trusted.
    retry_at: Option<Instant>,
    is_asked: bool,
}

impl Health {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is_trusted(&self) -> bool {
        self.state().retry_at.is_none()
    }

    /// It started a sandbox.
    pub(super) fn worked(&self) {
        let mut state = self.state();
        *state = State { is_asked: state.is_asked, ..State::default() };
    }

    /// It answers: it may be tried again, and is given up for longer if it fails again.
    pub(super) fn answered(&self) {
        let mut state = self.state();
        (state.retry_at, state.is_asked) = (None, false);
    }

    /// It did not answer, or cannot start anything.
    pub(super) fn failed(&self, now: Instant) {
        let mut state = self.state();
        // Of many that find out at one time, one counts.
        if state.retry_at.is_none_or(|at| at <= now) {
            let wait = (RETRY.0 * (1 << state.failures.min(10))).min(RETRY.1);
            state.retry_at = Some(now + wait);
            state.failures = state.failures.saturating_add(1);
            state.doubts = 0;
        }
        state.is_asked = false;
    }

    /// A start failed for a reason that may be the engine's.
    pub(super) fn doubted(&self, now: Instant) {
        let is_enough = {
            let mut state = self.state();
            state.doubts += 1;
            // One that was given up before has to show that it works.
            state.doubts >= DOUBTS || state.failures > 0
        };
        if is_enough {
            self.failed(now);
        }
    }

    /// Whether it is time to ask it again. Who is told so asks it, and says what came of it.
    pub(super) fn begin_asking(&self, now: Instant) -> bool {
        let mut state = self.state();
        let is_time = !state.is_asked && state.retry_at.is_some_and(|at| at <= now);
        state.is_asked |= is_time;
        is_time
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_engine_that_fails_is_asked_again_ever_more_rarely_by_one() {
        let (health, mut now) = (Health::default(), Instant::now());
        assert!(health.is_trusted() && !health.begin_asking(now));
        for seconds in [1, 2, 4, 8, 16, 32, 60, 60] {
            health.failed(now);
            health.failed(now);
            assert!(!health.is_trusted());
            assert!(!health.begin_asking(now + Duration::from_millis(seconds * 1000 - 1)));
            now += Duration::from_secs(seconds);
            assert!(health.begin_asking(now));
            assert!(!health.begin_asking(now), "somebody does already");
        }
        health.answered();
        assert!(health.is_trusted());
        // It has not started anything yet.
        health.failed(now);
        assert!(!health.begin_asking(now + Duration::from_secs(59)));
        health.worked();
        assert!(health.is_trusted());
    }

    #[test]
    fn an_engine_that_answers_and_starts_nothing_is_passed_over_after_a_while() {
        let (health, now) = (Health::default(), Instant::now());
        for _ in 0..DOUBTS - 1 {
            health.doubted(now);
        }
        assert!(health.is_trusted());
        health.worked();
        for _ in 0..DOUBTS {
            assert!(health.is_trusted());
            health.doubted(now);
        }
        assert!(!health.is_trusted());
        // It answers again, and the next start tells.
        health.answered();
        assert!(health.is_trusted());
        health.doubted(now + RETRY.0);
        assert!(!health.is_trusted());
    }
}
