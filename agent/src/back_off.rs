//! Waits before something is tried again.

use std::time::Duration;

use rand::RngExt;
use spar_core::Seed;

/// How far waits are spread, so that many who failed together do not come back at the same moment.
const SPREAD: std::ops::Range<f64> = 0.75..1.25;

/// Waits before something is tried again: doubled from the first to the longest, each of them spread at random.
#[derive(Debug, Clone)]
pub(crate) struct BackOff {
    seed: Seed,
    count: u32,
    first: Duration,
    longest: Duration,
}

impl BackOff {
    /// Waits from `first` to `longest`, whose spread follows from the seed.
    pub(crate) fn new(first: Duration, longest: Duration, seed: Seed) -> Self {
        Self { seed, count: 0, first, longest }
    }

    /// The next wait.
    pub(crate) fn next(&mut self) -> Duration {
        let wait = self.first.saturating_mul(2_u32.saturating_pow(self.count)).min(self.longest);
        wait.mul_f64(self.spread())
    }

    /// The next wait where somebody said that it shall be this long: no shorter, and longer by the spread.
    pub(crate) fn next_of(&mut self, told: Duration) -> Duration {
        told.mul_f64(1.0 + (self.spread() - SPREAD.start))
    }

    fn spread(&mut self) -> f64 {
        // Most never wait, so nothing is derived before.
        let seed = self.seed.derive("back-off", 0).derive("wait", self.count);
        let spread = seed.rng().random_range(SPREAD);
        self.count = self.count.saturating_add(1);
        spread
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_longest_and_are_spread() {
        let (first, longest) = (Duration::from_millis(500), Duration::from_secs(30));
        let waits = |seed: u64| -> Vec<Duration> {
            let mut back_off = BackOff::new(first, longest, Seed::from_u64(seed));
            (0..40).map(|_| back_off.next()).collect()
        };
        for (count, wait) in waits(1).into_iter().enumerate() {
            let middle = first.saturating_mul(1 << count.min(20)).min(longest);
            assert!(wait >= middle.mul_f64(SPREAD.start) && wait <= middle.mul_f64(SPREAD.end));
        }
        assert_eq!(waits(1), waits(1));
        assert_ne!(waits(1), waits(2));
        let told = Duration::from_secs(10);
        let mut back_off = BackOff::new(first, longest, Seed::from_u64(1));
        let heeded = (0..20).map(|_| back_off.next_of(told)).all(|wait| wait >= told);
        assert!(heeded, "who was told to wait comes no sooner");
    }
}
