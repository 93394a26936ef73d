//! How far recomputed log-probabilities are from the sampled ones.

use serde::Serialize;
use spar_core::{PolicyVersion, Sample};

/// Distances `|recomputed - sampled|` of log-probabilities over some tokens.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Distances {
    /// Tokens compared.
    pub tokens: u64,
    /// Sum of the distances.
    pub sum: f64,
    /// Greatest distance; not finite where a log-probability is not.
    pub max: f64,
}

impl Distances {
    /// Mean distance; 0 over no tokens.
    pub fn mean(&self) -> f64 {
        if self.tokens == 0 { 0.0 } else { self.sum / self.tokens as f64 }
    }

    fn add(&mut self, distance: f64) {
        self.tokens += 1;
        self.sum += distance;
        self.raise(distance);
    }

    fn merge(&mut self, other: &Self) {
        self.tokens += other.tokens;
        self.sum += other.sum;
        self.raise(other.max);
    }

    fn raise(&mut self, distance: f64) {
        // `f64::max` would drop a NaN.
        if distance > self.max || distance.is_nan() {
            self.max = distance;
        }
    }
}

/// The drift audit of an update: sampled against recomputed log-probabilities.
///
/// Tokens drawn by the very weights that recompute them differ by rounding only, or else rollout
/// and training do not run the same model; the others also differ by what was learnt since.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Drift {
    /// Over tokens drawn by the current weights.
    pub current: Distances,
    /// Over all sampled tokens with weight.
    pub all: Distances,
}

impl Drift {
    /// Compares a sample's log-probabilities under weights `version` with the sampled ones.
    ///
    /// Tokens count that have weight in the policy-gradient term, and those with weight in the
    /// cross-entropy term whose sampled log-probability is not 0.
    pub fn of(sample: &Sample, logprobs: &[f32], version: PolicyVersion) -> Self {
        let mut drift = Self::default();
        for (t, logprob) in logprobs.iter().enumerate().take(sample.len()) {
            let sampled = sample.behavior_logprobs[t];
            let has_policy_weight = sample.policy_weights[t] != 0.0;
            let has_weight = has_policy_weight || sample.cross_entropy_weights[t] != 0.0;
            // A model need not compute log-probabilities that carry no weight.
            if t == 0 || !has_weight || !(has_policy_weight || sampled != 0.0) {
                continue;
            }
            let distance = (f64::from(*logprob) - f64::from(sampled)).abs();
            drift.all.add(distance);
            if sample.versions[t] == version {
                drift.current.add(distance);
            }
        }
        drift
    }

    /// Adds another sample's distances.
    pub fn merge(&mut self, other: &Self) {
        self.current.merge(&other.current);
        self.all.merge(&other.all);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_sampled_tokens_count_and_current_ones_apart() {
        let mut sample = Sample::default();
        sample.push_observed(1, 0.0);
        sample.push(2, 1.0, 1.0, 0.0, -1.0, PolicyVersion(3), &[]);
        sample.push(2, 1.0, 1.0, 0.0, -1.0, PolicyVersion(2), &[]);
        sample.push(2, 0.0, 1.0, 0.0, -1.0, PolicyVersion(3), &[]);
        let drift = Drift::of(&sample, &[f32::NAN, -1.5, -3.0, 0.0], PolicyVersion(3));
        assert_eq!((drift.current.tokens, drift.current.max), (1, 0.5));
        assert_eq!((drift.all.tokens, drift.all.max, drift.all.mean()), (2, 2.0, 1.25));
        let undefined = Drift::of(&sample, &[0.0, f32::NAN, -3.0, 0.0], PolicyVersion(3));
        assert!(undefined.all.max.is_nan() && undefined.all.mean().is_nan());
    }
}
