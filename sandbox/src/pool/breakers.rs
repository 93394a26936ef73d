//! Which starts are given up: all of a backend, or those of one spec.

use std::collections::{HashMap, HashSet};

use tokio::time::Instant;

use super::breaker::{Admission, Breaker, Refusal, Verdict};
use super::config::BreakerConfig;
use super::metrics::BreakerState;
use crate::{Death, SandboxError};

/// Specs with a breaker of their own at one time; beyond it those go that have nothing against
/// their specs any more.
const MAX_SPECS: usize = 256;

/// One breaker for the backend and one for each spec that has failed.
///
/// A failure that only the backend can be blamed for counts against the backend. Most could as well
/// come of the spec (an image that makes its first process end, a set-up that takes too long): they
/// count against the spec, and against the backend once per spec, as long as nothing works in
/// between. So one bad image is given up by itself, and many specs that fail in a row are the
/// backend's fault.
#[derive(Debug)]
pub(super) struct Breakers {
    config: BreakerConfig,
    seed: u64,
    backend: Breaker,
    specs: HashMap<String, Breaker>,
    /// Specs that failed since something last worked.
    suspects: HashSet<String>,
}

/// How a start ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Worked,
    /// Whatever the spec, it would not have worked.
    BackendFailed,
    /// Backend or spec are at fault.
    Failed,
    /// The spec was at fault and is told so, or the start was given up.
    Nothing,
}

impl Outcome {
    pub(super) fn of(error: &SandboxError) -> Self {
        match error {
            SandboxError::Unavailable { .. }
            | SandboxError::DiskFull { .. }
            | SandboxError::Died { death: Death::DaemonGone, .. } => Self::BackendFailed,
            error if error.is_backend_failure() => Self::Failed,
            _ => Self::Nothing,
        }
    }
}

/// Leave to start a sandbox of a spec.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Leave {
    key: String,
    backend: Admission,
    spec: Option<Admission>,
}

impl Leave {
    /// For what is done for a start before it is one, and probes nothing.
    pub(super) fn aside(key: &str) -> Self {
        Self { key: key.to_owned(), backend: Admission::PLAIN, spec: None }
    }
}

/// What changed with an outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    Nothing,
    /// Those who wait have to look again: a probe ended, or something is given up.
    Told,
    /// As `Told`: the backend works again.
    Recovered,
}

impl Breakers {
    pub(super) fn new(config: BreakerConfig, seed: u64) -> Self {
        let backend = Breaker::new(config.clone(), seed);
        Self { config, seed, backend, specs: HashMap::new(), suspects: HashSet::new() }
    }

    /// That of the backend.
    pub(super) fn state(&self) -> BreakerState {
        self.backend.state()
    }

    /// Specs whose starts are given up at the moment.
    pub(super) fn num_refused_specs(&self) -> usize {
        self.specs.values().filter(|breaker| breaker.state() != BreakerState::Closed).count()
    }

    /// Why no sandbox of the spec `key` would be started now.
    pub(super) fn refusal(&self, key: &str, now: Instant) -> Option<Refusal> {
        let of_spec = || self.specs.get(key)?.refusal(now, "the spec");
        self.backend.refusal(now, "the backend").or_else(of_spec)
    }

    /// Asks for leave to start. Whoever gets it owes a [`Breakers::record`].
    pub(super) fn admit(&mut self, key: &str, now: Instant) -> Result<Leave, Refusal> {
        if let Some(refusal) = self.refusal(key, now) {
            return Err(refusal);
        }
        Ok(Leave {
            key: key.to_owned(),
            backend: self.backend.admit(),
            spec: self.specs.get_mut(key).map(Breaker::admit),
        })
    }

    /// Takes in how a start went.
    pub(super) fn record(
        &mut self,
        now: Instant,
        leave: &Leave,
        outcome: Outcome,
        why: &str,
    ) -> Change {
        let (of_backend, of_spec) = match outcome {
            Outcome::Worked => (Verdict::Works, Verdict::Works),
            Outcome::BackendFailed => (Verdict::Fails, Verdict::Nothing),
            Outcome::Failed => (self.suspect(&leave.key), Verdict::Fails),
            Outcome::Nothing => (Verdict::Nothing, Verdict::Nothing),
        };
        if outcome == Outcome::Worked {
            self.suspects.clear();
        }
        let before = self.backend.state();
        let mut is_told = self.backend.record(now, leave.backend, of_backend, why);
        is_told |= self.record_spec(now, leave, of_spec, why);
        match (before, self.backend.state()) {
            (BreakerState::Closed, BreakerState::Closed) if !is_told => Change::Nothing,
            (BreakerState::HalfOpen, BreakerState::Closed) => Change::Recovered,
            _ => Change::Told,
        }
    }

    /// What a failure of the spec says about the backend.
    fn suspect(&mut self, key: &str) -> Verdict {
        if self.backend.state() != BreakerState::Closed {
            return Verdict::Doubtful;
        }
        let is_new = self.suspects.insert(key.to_owned());
        // The first one may be alone in failing.
        if is_new && self.suspects.len() > 1 { Verdict::Doubtful } else { Verdict::Nothing }
    }

    /// Whether those who wait for the spec have to look again.
    fn record_spec(&mut self, now: Instant, leave: &Leave, verdict: Verdict, why: &str) -> bool {
        if verdict == Verdict::Works {
            return self.specs.remove(&leave.key).is_some();
        }
        if verdict == Verdict::Fails && !self.specs.contains_key(&leave.key) {
            self.make_room(now);
            self.seed = self.seed.wrapping_add(1);
            let breaker = Breaker::new(self.config.clone(), self.seed);
            self.specs.insert(leave.key.clone(), breaker);
        }
        let Some(breaker) = self.specs.get_mut(&leave.key) else { return false };
        // Where it failed for the first time, leave was given before it had a breaker.
        let admission = leave.spec.unwrap_or(Admission::PLAIN);
        breaker.record(now, admission, verdict, why);
        breaker.state() != BreakerState::Closed
    }

    fn make_room(&mut self, now: Instant) {
        if self.specs.len() < MAX_SPECS {
            return;
        }
        self.specs.retain(|_, breaker| breaker.open_until().is_some_and(|until| now < until));
        // Those that were given up last are tried again last.
        while self.specs.len() >= MAX_SPECS {
            let first = self.specs.iter().min_by_key(|(_, breaker)| breaker.open_until());
            let Some(key) = first.map(|(key, _)| key.clone()) else { return };
            self.specs.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn breakers() -> Breakers {
        let config = BreakerConfig { failures: 3, first_wait_ms: 1000, longest_wait_ms: 4000 };
        Breakers::new(config, 1)
    }

    fn start(breakers: &mut Breakers, key: &str, now: Instant, outcome: Outcome) -> Change {
        let leave = breakers.admit(key, now).unwrap();
        breakers.record(now, &leave, outcome, "start it")
    }

    fn reason(breakers: &Breakers, key: &str, now: Instant) -> String {
        match breakers.refusal(key, now) {
            Some(Refusal::Open { reason }) => reason,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_spec_that_fails_is_given_up_by_itself() {
        let (mut breakers, now) = (breakers(), Instant::now());
        for _ in 0..3 {
            start(&mut breakers, "bad", now, Outcome::Failed);
        }
        assert!(reason(&breakers, "bad", now).starts_with("the spec keeps failing"));
        assert_eq!((breakers.state(), breakers.num_refused_specs()), (BreakerState::Closed, 1));
        assert_eq!(breakers.refusal("good", now), None);
        // It is tried again after a while, by one at a time, and works.
        let later = now + Duration::from_millis(1251);
        let probe = breakers.admit("bad", later).unwrap();
        assert_eq!(breakers.admit("bad", later), Err(Refusal::Probing));
        assert_eq!(breakers.record(later, &probe, Outcome::Worked, ""), Change::Told);
        assert_eq!((breakers.refusal("bad", later), breakers.num_refused_specs()), (None, 0));
    }

    #[test]
    fn many_specs_that_fail_in_a_row_are_the_backends_fault() {
        let (mut breakers, now) = (breakers(), Instant::now());
        for key in ["a", "b", "c"] {
            start(&mut breakers, key, now, Outcome::Failed);
        }
        // One that works in between clears all.
        start(&mut breakers, "d", now, Outcome::Worked);
        for key in ["a", "b", "c"] {
            assert_eq!(start(&mut breakers, key, now, Outcome::Failed), Change::Nothing);
        }
        assert_eq!(start(&mut breakers, "e", now, Outcome::Failed), Change::Told);
        assert_eq!(breakers.state(), BreakerState::Open);
        assert!(reason(&breakers, "good", now).starts_with("the backend keeps failing"));
    }

    #[test]
    fn what_only_the_backend_can_be_blamed_for_opens_it_whatever_the_spec() {
        let gone = SandboxError::Died { sandbox: "x".into(), death: Death::DaemonGone };
        let full = SandboxError::DiskFull { doing: "start it".into() };
        let late = SandboxError::CreateTimedOut { seconds: 1 };
        let wrong = SandboxError::InvalidSpec { problems: Vec::new() };
        let outcomes = [&gone, &full, &late, &wrong].map(Outcome::of);
        let expected =
            [Outcome::BackendFailed, Outcome::BackendFailed, Outcome::Failed, Outcome::Nothing];
        assert_eq!(outcomes, expected);
        let (mut breakers, now) = (breakers(), Instant::now());
        for _ in 0..3 {
            start(&mut breakers, "a", now, Outcome::BackendFailed);
        }
        assert_eq!((breakers.state(), breakers.num_refused_specs()), (BreakerState::Open, 0));
        let later = now + Duration::from_millis(1251);
        assert_eq!(start(&mut breakers, "a", later, Outcome::Worked), Change::Recovered);
    }

    #[test]
    fn a_probe_that_was_given_up_is_told_to_those_who_wait() {
        let (mut breakers, now) = (breakers(), Instant::now());
        for _ in 0..3 {
            start(&mut breakers, "a", now, Outcome::BackendFailed);
        }
        let later = now + Duration::from_millis(1251);
        assert_eq!(start(&mut breakers, "a", later, Outcome::Nothing), Change::Told);
        assert_eq!(breakers.refusal("a", later), None);
    }

    #[test]
    fn no_more_specs_are_remembered_than_there_is_room_for() {
        let (mut breakers, now) = (breakers(), Instant::now());
        for number in 0..2 * MAX_SPECS {
            let key = number.to_string();
            start(&mut breakers, &key, now, Outcome::Failed);
            start(&mut breakers, "good", now, Outcome::Worked);
        }
        assert!(breakers.specs.len() <= MAX_SPECS);
    }
}
