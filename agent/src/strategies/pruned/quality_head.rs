//! How probably an episode that was paused will succeed.

use serde::{Deserialize, Serialize};
use spar_core::Trajectory;

/// Numbers of an episode: log-probabilities of all its tokens and of its last turn's, their least, the share of turns that could not be carried out, what was earned, turns.
const SIZE: usize = 6;

/// How far a standardised number may be from the mean.
const MOST: f64 = 5.0;

/// What is known of an episode that was paused.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Features([f64; SIZE]);

impl Features {
    /// Those of a record.
    pub(super) fn of(paused: &Trajectory) -> Self {
        let logprobs = |turn: &spar_core::Turn| -> Vec<f64> {
            turn.sampled.logprobs.iter().map(|it| f64::from(*it)).collect()
        };
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len().max(1) as f64;
        let all: Vec<f64> = paused.turns.iter().flat_map(logprobs).collect();
        let last = paused.turns.last().map(logprobs).unwrap_or_default();
        let least = all.iter().copied().fold(0.0, f64::min);
        let invalid = paused.turns.iter().filter(|turn| !turn.step.valid).count() as f64;
        let num_turns = paused.turns.len() as f64;
        let invalid = invalid / num_turns.max(1.0);
        let all = [mean(&all), mean(&last), least, invalid, paused.total_reward(), num_turns];
        Self(all.map(|value| if value.is_finite() { value } else { 0.0 }))
    }
}

/// A logistic function of standardised numbers, fitted example by example: `p = sigmoid(b + w . (x - mean) / deviation)`, with means and deviations of all examples so far.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct QualityHead {
    count: u64,
    means: [f64; SIZE],
    /// Sums of squared distances from the means.
    squares: [f64; SIZE],
    weights: [f64; SIZE],
    bias: f64,
}

impl QualityHead {
    /// How many examples it has learned from.
    pub(super) fn num_seen(&self) -> u64 {
        self.count
    }

    /// Whether all of it are numbers.
    pub(super) fn is_finite(&self) -> bool {
        let all = [self.means, self.squares, self.weights];
        all.iter().flatten().all(|it| it.is_finite()) && self.bias.is_finite()
    }

    fn standardized(&self, Features(values): &Features) -> [f64; SIZE] {
        std::array::from_fn(|place| {
            let variance = self.squares[place] / self.count.max(1) as f64;
            let deviation = variance.sqrt();
            match deviation > 1e-9 {
                true => ((values[place] - self.means[place]) / deviation).clamp(-MOST, MOST),
                false => 0.0,
            }
        })
    }

    /// The probability that such an episode succeeds, above 0 and below 1.
    pub(super) fn predict(&self, features: &Features) -> f64 {
        let values = self.standardized(features);
        let logit: f64 = self.weights.iter().zip(values).map(|(weight, it)| weight * it).sum();
        1.0 / (1.0 + (-(logit + self.bias)).exp())
    }

    /// Learns from an example by one step, and gives the log-loss that it had before.
    pub(super) fn learn(&mut self, features: &Features, success: bool, rate: f64) -> f64 {
        let probability = self.predict(features);
        self.count += 1;
        for (place, value) in features.0.into_iter().enumerate() {
            let from_mean = value - self.means[place];
            self.means[place] += from_mean / self.count as f64;
            self.squares[place] += from_mean * (value - self.means[place]);
        }
        let values = self.standardized(features);
        let error = f64::from(u8::from(success)) - probability;
        for (weight, value) in self.weights.iter_mut().zip(values) {
            *weight += rate * error * value;
        }
        self.bias += rate * error;
        let right = if success { probability } else { 1.0 - probability };
        -right.max(f64::MIN_POSITIVE).ln()
    }
}

#[cfg(test)]
mod tests {
    use rand::RngExt;
    use spar_core::Seed;

    use super::*;

    #[test]
    fn the_head_learns_what_tells_successes_from_failures() {
        let mut rng = Seed::from_u64(4).rng();
        let mut example = || {
            let sure: f64 = rng.random_range(-3.0..0.0);
            let noise: f64 = rng.random_range(-1.0..1.0);
            let features = Features([sure, noise, -4.0, 0.0, 0.0, 3.0]);
            (features, sure + 0.3 * noise > -1.5)
        };
        let mut head = QualityHead::default();
        assert_eq!(head.predict(&example().0), 0.5, "it knows nothing yet");
        let mut losses = Vec::new();
        for _ in 0..2_000 {
            let (features, success) = example();
            losses.push(head.learn(&features, success, 0.1));
        }
        let mean = |losses: &[f64]| losses.iter().sum::<f64>() / losses.len() as f64;
        assert!(mean(&losses[1_800..]) < 0.6 * mean(&losses[..100]), "{}", mean(&losses[1_800..]));
        let right = (0..500).filter(|_| {
            let (features, success) = example();
            (head.predict(&features) > 0.5) == success
        });
        assert!(right.count() > 450);
        let far = Features([f64::MAX; SIZE]);
        assert!((0.0..=1.0).contains(&head.predict(&far)) && head.is_finite());
    }
}
