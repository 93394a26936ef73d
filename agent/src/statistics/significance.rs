//! Could a difference of two methods be chance?

use rand::RngExt;
use rand::seq::SliceRandom;
use serde::{Deserialize, Serialize};
use spar_core::Seed;

use super::Tally;

/// Runs of both sides together up to which every arrangement is looked at.
const MAX_EXACT: usize = 20;
/// Arrangements that are drawn where there are too many.
const DRAWN: usize = 20_000;

/// The sign test over tasks.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SignTest {
    /// Tasks on which the first side succeeded more often.
    pub better: usize,
    /// Tasks on which the second did.
    pub worse: usize,
    /// Probability of as uneven a split or a more uneven one, were each side as likely to be
    /// ahead; two-sided.
    pub p: f64,
}

/// A permutation test over runs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PermutationTest {
    /// Share of arrangements of the runs whose difference is as large or larger; two-sided.
    pub p: f64,
    /// The least value that so few runs can have.
    pub least_p: f64,
}

/// The sign test over the tasks that both sides played (with one attempt a side, McNemar's exact test).
///
/// It takes these very runs as given: it tells whether they would differ on other tasks as well, not
/// whether other seeds would. Tasks on which both succeeded equally often count for neither.
pub fn sign_test(one: &[Tally], two: &[Tally]) -> SignTest {
    let ahead = |one: &Tally, two: &Tally| {
        // As products, since shares of different numbers of attempts are compared.
        one.successes * two.attempts > two.successes * one.attempts
    };
    let pairs = || one.iter().zip(two);
    let better = pairs().filter(|(one, two)| ahead(one, two)).count();
    let worse = pairs().filter(|(one, two)| ahead(two, one)).count();
    let (n, least) = (better + worse, better.min(worse));
    // P(X <= least) of the binomial distribution with 1/2, doubled.
    let mut log_probability = -(n as f64) * std::f64::consts::LN_2;
    let mut below = 0.0;
    for k in 0..=least {
        below += log_probability.exp();
        log_probability += ((n - k) as f64).ln() - ((k + 1) as f64).ln();
    }
    SignTest { better, worse, p: (2.0 * below).min(1.0) }
}

/// The permutation test of runs that are matched by their seeds: were both methods alike, each pair
/// could as well stand the other way round.
///
/// `one[i]` and `two[i]` are the success of the runs with seed `i`. Exact up to 20 pairs, else by
/// arrangements that are drawn.
pub fn matched_permutation_test(one: &[f64], two: &[f64], seed: Seed) -> PermutationTest {
    let differences: Vec<f64> = one.iter().zip(two).map(|(one, two)| one - two).collect();
    let sum = |flips: u64| -> f64 {
        let sign = |index: usize| if (flips >> index) & 1 == 1 { -1.0 } else { 1.0 };
        differences.iter().enumerate().map(|(index, value)| sign(index) * value).sum()
    };
    let observed: f64 = differences.iter().sum();
    if differences.len() <= MAX_EXACT {
        let all = 1_u64 << differences.len();
        return share((0..all).map(sum), observed, all as usize, 2);
    }
    let mut rng = seed.rng();
    let drawn = (0..DRAWN).map(|_| {
        let sign = |value: &f64| if rng.random() { -value } else { *value };
        differences.iter().map(sign).sum::<f64>()
    });
    // The arrangement that was observed is one of them.
    share(std::iter::once(observed).chain(drawn), observed, DRAWN + 1, 1)
}

/// The permutation test of runs that are not matched: were both methods alike, any division of the
/// runs would do. Exact up to 20 runs together, else by divisions that are drawn.
pub fn permutation_test(one: &[f64], two: &[f64], seed: Seed) -> PermutationTest {
    let all: Vec<f64> = one.iter().chain(two).copied().collect();
    let difference = |is_one: &dyn Fn(usize) -> bool| -> f64 {
        let (mut of_one, mut of_two) = (0.0, 0.0);
        for (index, value) in all.iter().enumerate() {
            if is_one(index) { of_one += value } else { of_two += value }
        }
        of_one / one.len() as f64 - of_two / two.len() as f64
    };
    if one.is_empty() || two.is_empty() {
        return PermutationTest { p: 1.0, least_p: 1.0 };
    }
    let observed = difference(&|index| index < one.len());
    if all.len() <= MAX_EXACT {
        let divisions =
            (0..1_u32 << all.len()).filter(|set| set.count_ones() as usize == one.len());
        let found: Vec<f64> =
            divisions.map(|set| difference(&|run| (set >> run) & 1 == 1)).collect();
        let count = found.len();
        // With sides of equal size, each division has its mirror.
        let least = if one.len() == two.len() { 2 } else { 1 };
        return share(found.into_iter(), observed, count, least);
    }
    let mut rng = seed.rng();
    let mut order: Vec<usize> = (0..all.len()).collect();
    let drawn = (0..DRAWN).map(|_| {
        order.shuffle(&mut rng);
        difference(&|run| order[run] < one.len())
    });
    share(std::iter::once(observed).chain(drawn), observed, DRAWN + 1, 1)
}

fn share(
    found: impl Iterator<Item = f64>,
    observed: f64,
    count: usize,
    least: usize,
) -> PermutationTest {
    // Sums in another order may differ by a rounding.
    let as_large = found.filter(|value| value.abs() >= observed.abs() - 1e-12).count();
    let share = |number: usize| number as f64 / count as f64;
    PermutationTest { p: share(as_large), least_p: share(least.min(count)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tallies(successes: &[usize]) -> Vec<Tally> {
        successes.iter().map(|successes| Tally { successes: *successes, attempts: 2 }).collect()
    }

    #[test]
    fn the_sign_test_is_that_of_the_textbooks() {
        let found = sign_test(&tallies(&[2, 2, 1, 1, 2, 0, 1]), &tallies(&[0, 1, 0, 0, 1, 1, 1]));
        assert_eq!((found.better, found.worse), (5, 1));
        // 2 (1 + 6) / 2^6.
        assert!((found.p - 0.21875).abs() < 1e-12);
        let even = sign_test(&tallies(&[2, 0]), &tallies(&[0, 2]));
        assert_eq!(even.p, 1.0);
        assert_eq!(sign_test(&[], &[]).p, 1.0);
        let many = sign_test(&tallies(&[2; 4000]), &tallies(&[1; 4000]));
        assert!(many.p >= 0.0 && many.p < 1e-300);
    }

    #[test]
    fn permutations_over_runs_are_exact_where_they_can_be() {
        let seed = Seed::from_u64(1);
        let (one, two) = ([0.6, 0.7, 0.8, 0.65, 0.9], [0.5, 0.6, 0.7, 0.6, 0.85]);
        let matched = matched_permutation_test(&one, &two, seed);
        // All five are ahead: two of 32 arrangements are as uneven.
        assert_eq!((matched.p, matched.least_p), (2.0 / 32.0, 2.0 / 32.0));
        let free = permutation_test(&one, &two, seed);
        assert!(free.p > 0.2 && free.p < 0.6, "{free:?}");
        assert_eq!(free.least_p, 2.0 / 252.0);
        let apart = permutation_test(&[0.9, 0.91, 0.92], &[0.1, 0.11, 0.12], seed);
        assert_eq!(apart.p, 2.0 / 20.0);
        assert_eq!(permutation_test(&one, &one, seed).p, 1.0);
        assert_eq!(matched_permutation_test(&[], &[], seed).p, 1.0);
    }

    #[test]
    fn many_runs_are_drawn_and_repeat() {
        let seed = Seed::from_u64(1);
        let one: Vec<f64> = (0..25).map(|run| 0.5 + f64::from(run) / 100.0).collect();
        let two: Vec<f64> = one.iter().map(|value| value - 0.05).collect();
        let found = matched_permutation_test(&one, &two, seed);
        assert!(found.p < 0.001, "{found:?}");
        assert_eq!(found, matched_permutation_test(&one, &two, seed));
        let free = permutation_test(&one, &two, seed);
        assert!(free.p > 0.005 && free.p < 0.1, "{free:?}");
        assert_eq!(free, permutation_test(&one, &two, seed));
    }
}
