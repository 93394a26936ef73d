//! Giving up starts for a while when they fail.

use std::time::Duration;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use tokio::time::Instant;

use super::config::BreakerConfig;
use super::metrics::BreakerState;

/// Opens after failures in a row, lets one probe through after a while, and closes when it works.
///
/// The waits double with every probe that fails and are jittered by up to a quarter either way,
/// so that several processes do not ask a struggling daemon in step.
#[derive(Debug)]
pub(super) struct Breaker {
    config: BreakerConfig,
    state: State,
    last_failure: String,
    chance: ChaCha8Rng,
}

#[derive(Debug)]
enum State {
    Closed { failures: u32 },
    Open { until: Instant, rounds: u32 },
    HalfOpen { rounds: u32 },
}

/// What a start says about what a breaker guards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It works.
    Works,
    /// It does not.
    Fails,
    /// It may be at fault, or something else: counts as a failure, and a probe that ends so waits no
    /// longer for the next one.
    Doubtful,
    /// Nothing: something else was at fault, or the start was given up.
    Nothing,
}

/// Leave to start; whether the verdict is that of a probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Admission {
    is_probe: bool,
}

impl Admission {
    /// Not a probe's.
    pub(super) const PLAIN: Self = Self { is_probe: false };
}

/// Why nothing is started now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Refusal {
    /// A probe is on its way: what comes of it is worth waiting for.
    Probing,
    /// It failed too often, and it is not time to try again.
    Open {
        /// For people.
        reason: String,
    },
}

impl Breaker {
    pub(super) fn new(config: BreakerConfig, seed: u64) -> Self {
        Self {
            config,
            state: State::Closed { failures: 0 },
            last_failure: String::new(),
            chance: ChaCha8Rng::seed_from_u64(seed),
        }
    }

    pub(super) fn state(&self) -> BreakerState {
        match self.state {
            State::Closed { .. } => BreakerState::Closed,
            State::Open { .. } => BreakerState::Open,
            State::HalfOpen { .. } => BreakerState::HalfOpen,
        }
    }

    /// Why nothing would be started now. `what` is the one that failed, for people.
    pub(super) fn refusal(&self, now: Instant, what: &str) -> Option<Refusal> {
        match self.state {
            State::Open { until, .. } if now < until => Some(Refusal::Open {
                reason: format!(
                    "{what} keeps failing, most recently it could not {}; it is tried again in \
                     {:.1} s",
                    self.last_failure,
                    (until - now).as_secs_f64()
                ),
            }),
            State::HalfOpen { .. } => Some(Refusal::Probing),
            State::Closed { .. } | State::Open { .. } => None,
        }
    }

    /// Takes leave to start where nothing refuses it. Whoever gets it owes a [`Breaker::record`].
    pub(super) fn admit(&mut self) -> Admission {
        let State::Open { rounds, .. } = self.state else { return Admission::PLAIN };
        self.state = State::HalfOpen { rounds };
        Admission { is_probe: true }
    }

    /// When it may be tried again, while it is open.
    pub(super) fn open_until(&self) -> Option<Instant> {
        match self.state {
            State::Open { until, .. } => Some(until),
            State::Closed { .. } | State::HalfOpen { .. } => None,
        }
    }

    /// Takes in how a start went. True when this opened the breaker.
    pub(super) fn record(
        &mut self,
        now: Instant,
        admission: Admission,
        verdict: Verdict,
        why: &str,
    ) -> bool {
        if matches!(verdict, Verdict::Fails | Verdict::Doubtful) {
            why.clone_into(&mut self.last_failure);
        }
        match (&mut self.state, verdict) {
            (State::Closed { failures }, Verdict::Works) => *failures = 0,
            (State::Closed { failures }, Verdict::Fails | Verdict::Doubtful) => {
                *failures += 1;
                if *failures >= self.config.failures {
                    self.open(now, 0);
                    return true;
                }
            }
            (State::HalfOpen { .. }, Verdict::Works) if admission.is_probe => {
                self.state = State::Closed { failures: 0 };
            }
            (State::HalfOpen { rounds }, Verdict::Fails | Verdict::Doubtful)
                if admission.is_probe =>
            {
                let rounds = rounds.saturating_add(u32::from(verdict == Verdict::Fails));
                self.open(now, rounds);
                return true;
            }
            // The next one may probe at once.
            (State::HalfOpen { rounds }, Verdict::Nothing) if admission.is_probe => {
                self.state = State::Open { until: now, rounds: *rounds };
            }
            // Of starts that were let in before it opened.
            _ => {}
        }
        false
    }

    fn open(&mut self, now: Instant, rounds: u32) {
        let wait = self.config.first_wait_ms.saturating_mul(1 << rounds.min(20));
        let wait = wait.min(self.config.longest_wait_ms) as f64;
        let jitter = self.chance.random_range(0.75..1.25);
        let until = now + Duration::from_secs_f64(wait * jitter / 1e3);
        self.state = State::Open { until, rounds };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn breaker() -> Breaker {
        let config = BreakerConfig { failures: 3, first_wait_ms: 1000, longest_wait_ms: 3000 };
        Breaker::new(config, 1)
    }

    fn admit(breaker: &mut Breaker, now: Instant) -> Result<Admission, Refusal> {
        match breaker.refusal(now, "the backend") {
            Some(refusal) => Err(refusal),
            None => Ok(breaker.admit()),
        }
    }

    fn fail(breaker: &mut Breaker, now: Instant) {
        let admission = admit(breaker, now).unwrap();
        breaker.record(now, admission, Verdict::Fails, "reach it");
    }

    #[test]
    fn failures_in_a_row_open_it_and_a_success_between_starts_the_count_anew() {
        let (mut breaker, now) = (breaker(), Instant::now());
        fail(&mut breaker, now);
        fail(&mut breaker, now);
        let admission = admit(&mut breaker, now).unwrap();
        breaker.record(now, admission, Verdict::Works, "");
        fail(&mut breaker, now);
        let admission = admit(&mut breaker, now).unwrap();
        breaker.record(now, admission, Verdict::Nothing, "");
        fail(&mut breaker, now);
        assert_eq!(breaker.state(), BreakerState::Closed);
        fail(&mut breaker, now);
        assert_eq!(breaker.state(), BreakerState::Open);
        let Err(Refusal::Open { reason }) = admit(&mut breaker, now) else { panic!() };
        assert!(reason.contains("could not reach it"), "{reason}");
    }

    #[test]
    fn one_probe_is_let_through_after_a_while_and_closes_it() {
        let (mut breaker, now) = (breaker(), Instant::now());
        (0..3).for_each(|_| fail(&mut breaker, now));
        assert!(admit(&mut breaker, now + 749 * MS).is_err());
        let later = now + 1251 * MS;
        let probe = admit(&mut breaker, later).unwrap();
        assert_eq!(breaker.state(), BreakerState::HalfOpen);
        assert_eq!(admit(&mut breaker, later), Err(Refusal::Probing), "a second beside the first");
        breaker.record(later, probe, Verdict::Works, "");
        assert_eq!(breaker.state(), BreakerState::Closed);
        assert!(admit(&mut breaker, later).is_ok() && admit(&mut breaker, later).is_ok());
    }

    #[test]
    fn a_probe_that_fails_doubles_the_wait_up_to_the_longest() {
        let (mut breaker, mut now) = (breaker(), Instant::now());
        (0..3).for_each(|_| fail(&mut breaker, now));
        for longest in [1000u32, 2000, 3000, 3000] {
            assert!(admit(&mut breaker, now + longest * 74 / 100 * MS).is_err(), "{longest}");
            now += longest * 126 / 100 * MS;
            fail(&mut breaker, now);
        }
    }

    #[test]
    fn a_probe_that_may_have_failed_by_itself_waits_no_longer_for_the_next() {
        let (mut breaker, mut now) = (breaker(), Instant::now());
        (0..3).for_each(|_| fail(&mut breaker, now));
        for _ in 0..3 {
            now += 1251 * MS;
            let probe = admit(&mut breaker, now).unwrap();
            assert!(breaker.record(now, probe, Verdict::Doubtful, "get ready"));
            assert_eq!(breaker.state(), BreakerState::Open);
        }
    }

    #[test]
    fn a_probe_that_was_given_up_leaves_the_next_one_to_try() {
        let (mut breaker, now) = (breaker(), Instant::now());
        (0..3).for_each(|_| fail(&mut breaker, now));
        let later = now + 1251 * MS;
        let probe = admit(&mut breaker, later).unwrap();
        breaker.record(later, probe, Verdict::Nothing, "");
        let probe = admit(&mut breaker, later).unwrap();
        breaker.record(later, probe, Verdict::Works, "");
        assert_eq!(breaker.state(), BreakerState::Closed);
    }

    #[test]
    fn starts_from_before_it_opened_do_not_close_it() {
        let (mut breaker, now) = (breaker(), Instant::now());
        let early = admit(&mut breaker, now).unwrap();
        (0..3).for_each(|_| fail(&mut breaker, now));
        breaker.record(now, early, Verdict::Works, "");
        assert_eq!(breaker.state(), BreakerState::Open);
    }
}
