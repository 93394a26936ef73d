//! DUMP: categories are drawn by what is learned from them, those that were seldom played first.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

/// A bandit over categories by upper confidence bounds (DUMP, arXiv 2504.09710, equations 5 and 6; reconstructed, its code was not at hand).
///
/// `UCB_c = mean |A| over the last `window` trajectories of c + exploration sqrt(2 ln(N + 1) / (n_c + 1))`, `n_c` being the trajectories of category `c` so far and `N` those of all;
/// category `c` is drawn with probability `softmax(UCB / temperature)`. Assumed: the ones in the root, by which a category that was never played has a finite bound, and
/// the greatest of all.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UcbBandit {
    window: usize,
    exploration: f64,
    temperature: f64,
    /// Of each category the last absolute advantages, oldest first, and how many there were.
    arms: Vec<(VecDeque<f64>, u64)>,
}

impl UcbBandit {
    /// A bandit over so many categories that were never played; `window` is at least 1, `temperature` above 0.
    pub fn new(categories: usize, window: usize, exploration: f64, temperature: f64) -> Self {
        let arms = vec![(VecDeque::new(), 0); categories];
        Self { window, exploration, temperature, arms }
    }

    /// How many categories there are.
    pub fn len(&self) -> usize {
        self.arms.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.arms.is_empty()
    }

    /// Takes in trajectories: their category, with the mean of the absolute advantages of their tokens. What is not finite, and categories that there
    /// are none of, are left out.
    pub fn update(&mut self, played: &[(usize, f64)]) {
        for (category, advantage) in played.iter().filter(|(_, advantage)| advantage.is_finite()) {
            if let Some((recent, count)) = self.arms.get_mut(*category) {
                *count += 1;
                recent.push_back(advantage.abs());
                while recent.len() > self.window {
                    recent.pop_front();
                }
            }
        }
    }

    /// The upper bound of each category.
    pub fn bounds(&self) -> Vec<f64> {
        let all: u64 = self.arms.iter().map(|(_, count)| count).sum();
        let bound = |(recent, count): &(VecDeque<f64>, u64)| {
            let mean = match recent.len() {
                0 => 0.0,
                len => recent.iter().sum::<f64>() / len as f64,
            };
            let root = (2.0 * (all as f64 + 1.0).ln() / (*count as f64 + 1.0)).sqrt();
            mean + self.exploration * root
        };
        self.arms.iter().map(bound).collect()
    }

    /// The probability with which each category is drawn.
    pub fn probabilities(&self) -> Vec<f64> {
        softmax(&self.bounds(), self.temperature)
    }
}

/// `exp(v / temperature)`, so that they add up to 1.
pub(super) fn softmax(values: &[f64], temperature: f64) -> Vec<f64> {
    let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let weights: Vec<f64> =
        values.iter().map(|value| ((value - most) / temperature).exp()).collect();
    let sum: f64 = weights.iter().sum();
    weights.into_iter().map(|weight| weight / sum).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_is_a_mean_over_the_window_and_a_root() {
        let mut bandit = UcbBandit::new(2, 2, 1.0, 0.5);
        bandit.update(&[(0, 9.0), (0, 0.2), (0, -0.4), (1, 0.1), (7, 1.0), (1, f64::NAN)]);
        let root = |count: f64| (2.0 * 5.0_f64.ln() / (count + 1.0)).sqrt();
        let expected = [0.3 + root(3.0), 0.1 + root(1.0)];
        bandit.bounds().iter().zip(expected).for_each(|(it, want)| {
            assert!((it - want).abs() < 1e-12, "{it} {want}");
        });
        let odds = bandit.probabilities();
        assert!((odds[0] / odds[1] - ((expected[0] - expected[1]) / 0.5).exp()).abs() < 1e-9);
    }

    #[test]
    fn what_was_never_played_comes_first() {
        let mut bandit = UcbBandit::new(3, 10, 1.0, 0.1);
        bandit.update(&[(0, 0.5); 20]);
        bandit.update(&[(2, 0.5); 20]);
        let odds = bandit.probabilities();
        assert!(odds[1] > 0.99, "{odds:?}");
        // Behind that, the one that teaches more.
        bandit.update(&[(1, 0.0); 20]);
        bandit.update(&[(2, 1.0); 10]);
        let odds = bandit.probabilities();
        assert!(odds[2] > odds[0] && odds[0] > odds[1], "{odds:?}");
    }
}
