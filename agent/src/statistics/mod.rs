//! How sure a success rate is, and whether two differ.

mod calibration;
mod outcomes;
mod rating;
mod scaling_fit;
mod significance;

pub use calibration::{CalibrationScore, calibration, weighted_vote};
pub use outcomes::{Difference, Outcomes, TaskTallies, rate};
use rand::RngExt;
pub use rating::{Match, Rating, elo_ratings};
pub use scaling_fit::ScalingFit;
use serde::{Deserialize, Serialize};
pub use significance::{
    PermutationTest, SignTest, matched_permutation_test, permutation_test, sign_test,
};
use spar_core::Seed;

/// The range in which a rate lies with 95 % confidence.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Its lower end; of rates 0 to 1.
    pub low: f64,
    /// Its upper end; of rates 0 to 1.
    pub high: f64,
}

impl Interval {
    /// Where a rate lies of which nothing is known.
    pub const WHOLE: Self = Self { low: 0.0, high: 1.0 };

    /// The narrowest that holds both.
    fn hull(self, other: Self) -> Self {
        Self { low: self.low.min(other.low), high: self.high.max(other.high) }
    }
}

/// Successes and attempts of one task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Tally {
    /// Attempts that succeeded.
    pub successes: usize,
    /// Attempts.
    pub attempts: usize,
}

/// The 97.5 % quantile of the normal distribution.
const Z: f64 = 1.959_963_984_540_054;

/// The Wilson score interval with 95 % confidence.
///
/// It counts attempts as independent; without any it is the whole range.
pub fn wilson_interval(tally: Tally) -> Interval {
    if tally.attempts == 0 {
        return Interval::WHOLE;
    }
    let n = tally.attempts as f64;
    let p = tally.successes as f64 / n;
    let denominator = 1.0 + Z * Z / n;
    let center = (p + Z * Z / (2.0 * n)) / denominator;
    let half = Z / denominator * (p * (1.0 - p) / n + Z * Z / (4.0 * n * n)).sqrt();
    let bounded = |value: f64| value.clamp(0.0, 1.0);
    // Rounding would leave crumbs at the ends.
    let low = if tally.successes == 0 { 0.0 } else { bounded(center - half) };
    let high = if tally.successes == tally.attempts { 1.0 } else { bounded(center + half) };
    Interval { low, high }
}

/// The interval with 95 % confidence that drawing whole tasks anew gives.
///
/// Attempts at one task resemble each other, so tasks are drawn with replacement, `draws` times,
/// and the rates' 2.5 and 97.5 percentiles are the ends, moved out to Wilson's interval of all attempts where
/// that is wider: a bootstrap of equal results is a point. Without attempts or draws it is the whole range.
pub fn cluster_bootstrap(tasks: &[Tally], draws: usize, seed: Seed) -> Interval {
    if draws == 0 || tasks.iter().all(|task| task.attempts == 0) {
        return Interval::WHOLE;
    }
    let mut rng = seed.rng();
    let rates = (0..draws).filter_map(|_| {
        let mut sum = Tally::default();
        for _ in 0..tasks.len() {
            let task = tasks[rng.random_range(0..tasks.len())];
            sum.successes += task.successes;
            sum.attempts += task.attempts;
        }
        rate(sum)
    });
    let found = percentile_interval(rates.collect()).unwrap_or(Interval::WHOLE);
    found.hull(wilson_interval(Tally {
        successes: tasks.iter().map(|task| task.successes).sum(),
        attempts: tasks.iter().map(|task| task.attempts).sum(),
    }))
}

/// The 2.5 and 97.5 percentiles; `None` of nothing.
fn percentile_interval(mut values: Vec<f64>) -> Option<Interval> {
    values.sort_by(f64::total_cmp);
    let last = values.len().checked_sub(1)?;
    let percentile = |share: f64| {
        let place = share * last as f64;
        let (below, above) = (values[place as usize], values[place.ceil() as usize]);
        below + (above - below) * place.fract()
    };
    Some(Interval { low: percentile(0.025), high: percentile(0.975) })
}

/// The probability that one of `k` attempts succeeds, from `successes` among more attempts.
///
/// The unbiased estimator `1 - C(n - c, k) / C(n, k)` (Chen et al., arXiv 2107.03374); 1 where
/// fewer than `k` attempts failed, as in the reference.
pub fn pass_at_k(tally: Tally, k: usize) -> f64 {
    let Tally { successes, attempts } = tally;
    let failures = attempts.saturating_sub(successes);
    if failures < k {
        return 1.0;
    }
    let missing = |i: usize| 1.0 - k as f64 / i as f64;
    1.0 - (failures + 1..=attempts).map(missing).product::<f64>()
}

/// What the answer that comes most often is worth (maj@k, cons@k): the value of the first that gave it; of answers that come equally often the
/// one that came first counts. `None` of no answer.
pub fn majority_value<A: Eq + std::hash::Hash>(answers: &[A], values: &[f64]) -> Option<f64> {
    let mut counts: std::collections::HashMap<&A, (usize, usize)> =
        std::collections::HashMap::new();
    for (place, answer) in answers.iter().enumerate() {
        counts.entry(answer).or_insert((0, place)).0 += 1;
    }
    let most =
        counts.into_values().max_by_key(|(count, first)| (*count, std::cmp::Reverse(*first)));
    values.get(most?.1).copied()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::credit::test_vectors::{cases, floats, strings};

    fn tally(successes: usize, attempts: usize) -> Tally {
        Tally { successes, attempts }
    }

    #[test]
    fn pass_at_k_equals_the_reference() {
        cases("pass_at_k", |case, near| {
            let k = case.params["k"].as_u64().unwrap() as usize;
            let (n, c) = (floats(&case.inputs["n"]), floats(&case.inputs["c"]));
            for ((n, c), expected) in n.iter().zip(c).zip(floats(&case.outputs["pass_at_k"])) {
                near(pass_at_k(tally(c as usize, *n as usize), k), expected);
            }
        });
    }

    #[test]
    fn majorities_equal_the_reference() {
        cases("maj_at_k", |case, near| {
            let answers = strings(&case.inputs["pred"]);
            let found = majority_value(&answers, &floats(&case.inputs["val"])).unwrap();
            near(found, case.outputs["maj_val"].as_f64().unwrap());
        });
        assert_eq!(majority_value::<u8>(&[], &[]), None);
    }

    #[test]
    fn wilson_intervals_are_those_of_the_textbooks() {
        let near = |a: f64, b: f64| assert!((a - b).abs() < 5e-5, "{a} {b}");
        let interval = wilson_interval(tally(15, 50));
        near(interval.low, 0.1910);
        near(interval.high, 0.4375);
        let interval = wilson_interval(tally(0, 10));
        assert_eq!(interval.low, 0.0);
        near(interval.high, 0.2775);
        assert_eq!(wilson_interval(tally(0, 0)), Interval { low: 0.0, high: 1.0 });
    }

    #[test]
    fn tasks_that_are_all_or_nothing_are_less_sure() {
        let tasks: Vec<_> =
            (0..20).map(|index| tally(if index % 2 == 0 { 8 } else { 0 }, 8)).collect();
        let seed = Seed::from_u64(0);
        let bootstrap = cluster_bootstrap(&tasks, 1000, seed);
        let wilson = wilson_interval(tally(80, 160));
        assert!(bootstrap.high - bootstrap.low > 1.5 * (wilson.high - wilson.low));
        assert_eq!(bootstrap, cluster_bootstrap(&tasks, 1000, seed));
        assert_eq!(cluster_bootstrap(&[], 10, seed), Interval { low: 0.0, high: 1.0 });
        let all_solved = cluster_bootstrap(&[tally(3, 3)], 10, seed);
        assert_eq!(all_solved, wilson_interval(tally(3, 3)));
    }

    proptest! {
        #[test]
        fn intervals_hold_the_rate(attempts in 1_usize..500, share in 0.0..=1.0) {
            let successes = (attempts as f64 * share) as usize;
            let interval = wilson_interval(tally(successes, attempts));
            let rate = successes as f64 / attempts as f64;
            prop_assert!(0.0 <= interval.low && interval.low <= rate);
            prop_assert!(rate <= interval.high && interval.high <= 1.0);
        }
    }
}
