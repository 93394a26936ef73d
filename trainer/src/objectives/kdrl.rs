//! Distillation from a teacher and reinforcement learning at once.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::Sample;
use spar_core::registry::NamedOptions;

use super::bounds::{clip_problems, not_negative};
use super::{Clip, ClipOptions, KlEstimator, Needs, PolicyLoss, PolicyLosses, PolicyTokens, Tally};

/// Options of [`Kdrl`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct KdrlOptions {
    /// As of the objective `clip`. Default 0.2.
    pub clip_low: f64,
    /// As of the objective `clip`. Default 0.28.
    pub clip_high: f64,
    /// What the divergence from the teacher weighs; 0 or more, and 0 is `clip`. Default 0.005, what the paper begins with.
    pub weight: f64,
    /// How it is estimated. Default `k2`, whose derivative is that of the divergence.
    pub estimator: KlEstimator,
    /// Whether the teacher is followed only where the advantage is not positive (reward-guided masking). Default false.
    pub only_failed: bool,
}

impl Default for KdrlOptions {
    fn default() -> Self {
        Self {
            clip_low: 0.2,
            clip_high: 0.28,
            weight: 0.005,
            estimator: KlEstimator::K2,
            only_failed: false,
        }
    }
}

impl NamedOptions for KdrlOptions {
    fn problems(&self) -> Vec<String> {
        let clip = clip_problems(self.clip_low, self.clip_high);
        clip.into_iter().chain(not_negative("weight", self.weight)).collect()
    }
}

/// The clipped objective, and the divergence of the policy from a teacher on what the policy sampled.
///
/// `l = l_clip + weight k(log pi, log pi_teacher)` with the estimators `k` of [`KlEstimator`] (KDRL, arXiv 2506.02208).
/// Reconstructed from the abstract and what is told of it elsewhere: the joint loss, the estimators that are compared and
/// masking by reward are the paper's; that the mask goes by the advantage's sign is assumed, and the weight stays what it
/// is, where the paper lets it fall to 0.001. The teacher is the reference model of the recipe, which
/// `reference_soup` of the stage can name.
///
/// Metrics: those of `clip`, and `kl_teacher`, the mean over tokens that follow the teacher.
#[derive(Debug, Clone, PartialEq)]
pub struct Kdrl {
    options: KdrlOptions,
    clip: Clip,
}

impl Kdrl {
    /// The objective with these options.
    pub fn new(options: KdrlOptions) -> Self {
        let KdrlOptions { clip_low, clip_high, .. } = options;
        let clip = Clip::new(ClipOptions { clip_low, clip_high, ..ClipOptions::default() });
        Self { options, clip }
    }
}

impl Default for Kdrl {
    fn default() -> Self {
        Self::new(KdrlOptions::default())
    }
}

impl PolicyLoss for Kdrl {
    fn name(&self) -> &'static str {
        "kdrl"
    }

    fn needs(&self) -> Needs {
        Needs { reference: true, ..Needs::default() }
    }

    fn has_gradient(&self, sample: &Sample) -> bool {
        sample.num_weighed() > 0
    }

    fn takes_mean_advantages(&self) -> bool {
        !self.options.only_failed
    }

    fn loss(&self, tokens: &PolicyTokens, _: &[f64], tally: &mut Tally) -> PolicyLosses {
        let KdrlOptions { weight, estimator, only_failed, .. } = self.options;
        let mut sum = self.clip.loss(tokens, &[], tally);
        for index in 0..tokens.len() {
            if only_failed && tokens.advantages[index] > 0.0 {
                continue;
            }
            let (value, slope) =
                estimator.estimate(tokens.logprobs[index], tokens.reference[index]);
            sum.loss += weight * value;
            sum.slopes[index] += weight * slope;
            tally.add_mean("kl_teacher", value);
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_weight_it_is_the_clipped_objective_and_only_failures_may_follow_the_teacher() {
        let tokens = |advantage: f64| PolicyTokens {
            places: vec![0, 1],
            weights: vec![1.0; 2],
            importance: vec![1.0; 2],
            advantages: vec![advantage; 2],
            behavior: vec![-1.0, -2.0],
            old: vec![-1.0, -2.0],
            logprobs: vec![-0.9, -2.1],
            detached: vec![-0.9, -2.1],
            reference: vec![-0.5, -3.0],
            ..PolicyTokens::default()
        };
        let loss = |weight, only_failed, advantage| {
            let kdrl = Kdrl::new(KdrlOptions { weight, only_failed, ..KdrlOptions::default() });
            kdrl.loss(&tokens(advantage), &[], &mut Tally::default())
        };
        for advantage in [-1.0, 0.5] {
            let clip =
                Clip::new(ClipOptions { clip_low: 0.2, clip_high: 0.28, ..ClipOptions::default() });
            let alone = clip.loss(&tokens(advantage), &[], &mut Tally::default());
            assert_eq!(loss(0.0, false, advantage), alone);
            assert_eq!(loss(0.5, true, advantage) == alone, advantage > 0.0);
            assert_ne!(loss(0.5, false, advantage), alone);
        }
    }
}
