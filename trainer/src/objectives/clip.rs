//! The clipped policy-gradient objective of PPO and DAPO.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::Sample;
use spar_core::registry::NamedOptions;

use super::{
    KlEstimator, MAX_LOG_RATIO, Needs, PolicyLoss, PolicyLosses, PolicyToken, PolicyTokens, Tally,
};

/// Options of [`Clip`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ClipOptions {
    /// How far below 1 the ratio still has a gradient; 0 to 1. Default 0.2.
    pub clip_low: f64,
    /// How far above 1 the ratio still has a gradient; not negative. Default 0.28.
    pub clip_high: f64,
    /// Bounds the loss of tokens with negative advantage `A` by `-A` times this; above 1.
    /// Absent by default.
    pub dual_clip: Option<f64>,
    /// Weight of the divergence from a reference model; not negative. Default 0: there is none.
    pub kl_weight: f64,
    /// How that divergence is estimated. Default `k3`.
    pub kl_estimator: KlEstimator,
    /// Weight of the entropy bonus: the mean entropy of what tokens were drawn from is added to what is maximised
    /// (PPO, arXiv 1707.06347, equation 9); 0 or more. Default 0.
    pub entropy_weight: f64,
}

impl Default for ClipOptions {
    fn default() -> Self {
        Self {
            clip_low: 0.2,
            clip_high: 0.28,
            dual_clip: None,
            kl_weight: 0.0,
            kl_estimator: KlEstimator::default(),
            entropy_weight: 0.0,
        }
    }
}

impl NamedOptions for ClipOptions {
    fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        if !(0.0..=1.0).contains(&self.clip_low) {
            problems.push(format!("`clip_low` {} is outside 0 to 1", self.clip_low));
        }
        if !(self.clip_high.is_finite() && self.clip_high >= 0.0) {
            problems.push(format!("`clip_high` {} must not be negative", self.clip_high));
        }
        if let Some(bound) = self.dual_clip
            && !(bound.is_finite() && bound > 1.0)
        {
            problems.push(format!("`dual_clip` {bound} must be above 1"));
        }
        if !(self.kl_weight.is_finite() && self.kl_weight >= 0.0) {
            problems.push(format!("`kl_weight` {} must not be negative", self.kl_weight));
        }
        if !(self.entropy_weight.is_finite() && self.entropy_weight >= 0.0) {
            let weight = self.entropy_weight;
            problems.push(format!("`entropy_weight` {weight} must not be negative"));
        }
        if self.kl_weight == 0.0 && self.kl_estimator != KlEstimator::default() {
            problems.push("`kl_estimator` has no effect: `kl_weight` is 0".to_owned());
        }
        problems
    }
}

/// The clipped policy-gradient objective of PPO, with a clip range of two sides and dual clip.
///
/// With `r = exp(logprob - behavior_logprob)` and advantage `A`:
///
/// ```text
/// l = max(-A r, -A clip(r, 1 - clip_low, 1 + clip_high))
/// l = min(l, -A dual_clip)                                  where A < 0
/// l = l + kl_weight k(logprob, reference_logprob)
/// ```
///
/// Sources: PPO (arXiv 1707.06347, eq. 7), dual clip (arXiv 1912.09729), apart sides (DAPO, arXiv
/// 2503.14476), divergence from a reference model as a term of the loss (GRPO, arXiv 2402.03300,
/// eq. 3 and 4) with the estimators `k` of [`KlEstimator`]. A sample weighs as many tokens as have a
/// non-zero `policy_weights` entry, with advantage or without; the entry itself multiplies the token's
/// policy-gradient loss, so that importance weights change neither the denominator nor the divergence.
///
/// Metrics, over tokens with weight of samples that have a gradient: `clip_fraction` (the clipped side was taken),
/// `clip_fraction_dual`, `kl_k1` (mean of `-log r`), `kl_k3` (mean of `r - 1 - log r`),
/// `ratio_mean`, `ratio_max`, and `kl_reference` (mean of `k`) where there is a reference.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Clip {
    options: ClipOptions,
}

/// One token's loss, before weights.
pub(super) struct TokenLoss {
    pub(super) loss: f64,
    pub(super) gradient: f64,
    log_ratio: f64,
    pub(super) is_clipped: bool,
    is_dual_clipped: bool,
}

impl Clip {
    /// The objective with these options.
    pub fn new(options: ClipOptions) -> Self {
        Self { options }
    }

    /// The loss of one token.
    pub(super) fn token_loss(
        &self,
        logprob: f64,
        behavior_logprob: f64,
        advantage: f64,
    ) -> TokenLoss {
        let log_ratio = (logprob - behavior_logprob).clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO);
        let ratio = log_ratio.exp();
        let (low, high) = (1.0 - self.options.clip_low, 1.0 + self.options.clip_high);
        let free = -advantage * ratio;
        let clipped = -advantage * ratio.clamp(low, high);
        let is_clipped = clipped > free;
        let mut loss = if is_clipped { clipped } else { free };
        let bound = self.options.dual_clip.filter(|_| advantage < 0.0).map(|c| -advantage * c);
        let is_dual_clipped = bound.is_some_and(|bound| loss > bound);
        if let Some(bound) = bound {
            loss = loss.min(bound);
        }
        let is_beyond = (logprob - behavior_logprob).abs() > MAX_LOG_RATIO;
        let has_gradient = !is_clipped && !is_dual_clipped && !is_beyond;
        // d(-A r)/d logprob = -A r.
        let gradient = if has_gradient { free } else { 0.0 };
        // NaN must not hide behind a comparison that is false.
        let gradient = if log_ratio.is_nan() { f64::NAN } else { gradient };
        TokenLoss { loss, gradient, log_ratio, is_clipped, is_dual_clipped }
    }
}

impl Clip {
    fn has_reference(&self) -> bool {
        self.options.kl_weight > 0.0
    }
}

impl PolicyLoss for Clip {
    fn name(&self) -> &'static str {
        "clip"
    }

    /// Without advantage, only the divergence from a reference model and the entropy have a gradient.
    fn has_gradient(&self, sample: &Sample) -> bool {
        let others = self.has_reference() || self.options.entropy_weight > 0.0;
        sample.has_advantage() || (others && sample.num_weighed() > 0)
    }

    fn needs(&self) -> Needs {
        Needs { reference: self.has_reference(), ..Needs::default() }
    }

    fn loss(&self, tokens: &PolicyTokens, _: &[f64], tally: &mut Tally) -> PolicyLosses {
        let ClipOptions { kl_weight, kl_estimator, entropy_weight, .. } = self.options;
        let mut sum = PolicyLosses::zero(tokens.len());
        if entropy_weight > 0.0 {
            sum.entropies = vec![0.0; tokens.len()];
        }
        for index in 0..tokens.len() {
            let PolicyToken { logprob, old, advantage, .. } = tokens.token(index);
            let token = self.token_loss(logprob, old, advantage);
            sum.add(tokens, index, token.loss, token.gradient);
            if self.has_reference() {
                let (kl, of_kl) = kl_estimator.estimate(logprob, tokens.reference[index]);
                sum.loss += kl_weight * kl;
                sum.slopes[index] += kl_weight * of_kl;
                tally.add_mean("kl_reference", kl);
            }
            if let Some(entropy) = tokens.entropies.get(index) {
                if entropy_weight > 0.0 {
                    let factor = tokens.factor(index) * entropy_weight;
                    sum.loss -= factor * entropy;
                    sum.entropies[index] = -factor;
                }
                tally.add_mean("entropy", *entropy);
            }
            tally_token(tally, &token);
        }
        sum
    }
}

fn tally_token(tally: &mut Tally, token: &TokenLoss) {
    let ratio = token.log_ratio.exp();
    tally.add_mean("clip_fraction", token.is_clipped.into());
    tally.add_mean("clip_fraction_dual", token.is_dual_clipped.into());
    tally.add_mean("kl_k1", -token.log_ratio);
    tally.add_mean("kl_k3", ratio - 1.0 - token.log_ratio);
    tally.add_mean("ratio_mean", ratio);
    tally.add_max("ratio_max", ratio);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use spar_core::PolicyVersion;

    use super::*;
    use crate::Measured;
    use crate::objectives::{BatchWeight, LossAggregation, Objective};
    use crate::testing::{assert_close, golden, matrix, number, policy_sample, sample_loss};

    #[test]
    fn losses_with_a_reference_equal_the_golden_numbers() {
        let cases = golden("loss_grpo_kl");
        assert_eq!(cases.len(), 6);
        for case in cases {
            let params = &case["params"];
            let clip = Clip::new(ClipOptions {
                kl_weight: params["kl_weight"].as_f64().unwrap(),
                kl_estimator: match params["kl_estimator"].as_str().unwrap() {
                    "k2" => KlEstimator::K2,
                    _ => KlEstimator::K3,
                },
                ..ClipOptions::default()
            });
            assert!(Objective::needs(&clip).reference);
            let mode = match params["aggregation"].as_str().unwrap() {
                "token_mean" => LossAggregation::TokenMean,
                "row_mean" => LossAggregation::SampleMean,
                _ => LossAggregation::SampleSum { constant: 7.0 },
            };
            let input = |name: &str| matrix(&case["inputs"][name]);
            let (logprobs, advantages) = (input("logprob"), input("advantage"));
            let (old, reference) = (input("behavior_logprob"), input("reference_logprob"));
            let mask = input("mask");
            let samples: Vec<Sample> = (0..mask.len())
                .map(|i| {
                    let mut sample = Sample::default();
                    for t in 0..mask[i].len() {
                        let (weight, advantage) = (mask[i][t] as f32, advantages[i][t] as f32);
                        let logprob = old[i][t] as f32;
                        sample.push(0, weight, advantage, 0.0, logprob, PolicyVersion(0), &[]);
                    }
                    sample.reference_logprobs =
                        reference[i].iter().map(|value| *value as f32).collect();
                    sample.validate().unwrap();
                    sample
                })
                .collect();
            let batch = BatchWeight::of(&clip, &samples);
            let gradient = matrix(&case["outputs"]["gradient"]);
            let (mut loss, mut tally) = (0.0, Tally::default());
            for (i, sample) in samples.iter().enumerate() {
                let logprobs: Vec<f32> = logprobs[i].iter().map(|value| *value as f32).collect();
                let found = sample_loss(
                    &clip,
                    sample,
                    told(&logprobs),
                    mode.scale(clip.weight(sample), batch),
                );
                loss += found.loss;
                tally.merge(&found.tally);
                for (found, wanted) in found.slopes.logprobs.iter().zip(&gradient[i]) {
                    assert_close((*found).into(), *wanted, 1e-6);
                }
            }
            assert_close(loss, number(&case["outputs"]["loss"]), 1e-6);
            let kl = number(&case["outputs"]["kl_reference"]);
            assert_close(tally.values()["kl_reference"], kl, 1e-6);
        }
    }

    /// What a model told; entropies are not looked at.
    fn told(logprobs: &[f32]) -> Measured<'_> {
        Measured { logprobs, entropies: &[0.0; 64], ..Measured::default() }
    }

    #[test]
    fn the_entropy_bonus_is_what_it_adds() {
        let sample = policy_sample(&[(true, 0.0, -1.0), (false, 0.0, 0.0), (true, 0.0, -2.0)]);
        let options = ClipOptions { entropy_weight: 0.1, ..ClipOptions::default() };
        assert!(options.problems().is_empty());
        let clip = Clip::new(options);
        assert!(Objective::has_gradient(&clip, &sample));
        assert!(!Objective::has_gradient(&Clip::default(), &sample));
        let entropies = [f32::NAN, 1.5, f32::NAN, 0.5];
        let measured = Measured {
            logprobs: &[0.0, -1.0, f32::NAN, -2.0],
            entropies: &entropies,
            ..Measured::default()
        };
        let found = sample_loss(&clip, &sample, measured, 0.5);
        assert_close(found.loss, -0.1, 1e-7);
        assert_eq!(found.slopes.entropies, [0.0, -0.05, 0.0, -0.05]);
        assert_eq!(found.slopes.logprobs, [0.0; 4]);
        let none = sample_loss(&Clip::default(), &sample, measured, 0.5);
        assert!(none.slopes.entropies.is_empty() && none.loss == 0.0);
        let negative = ClipOptions { entropy_weight: -1.0, ..ClipOptions::default() };
        assert_eq!(negative.problems().len(), 1);
    }

    proptest! {
        #[test]
        fn the_gradient_is_the_derivative_of_the_loss(
            tokens in prop::collection::vec(
                (any::<bool>(), -2f32..2.0, -3f32..-0.1, -1f32..1.0), 1..12,
            ),
            dual_clip in prop::option::of(1.5f64..4.0),
        ) {
            let clip = Clip::new(ClipOptions { dual_clip, ..ClipOptions::default() });
            let streams: Vec<_> = tokens.iter().map(|t| (t.0, t.1, t.2)).collect();
            let sample = policy_sample(&streams);
            let mut logprobs = vec![f32::NAN];
            logprobs.extend(tokens.iter().map(|t| t.2 + t.3));
            let found = sample_loss(&clip, &sample, told(&logprobs), 0.25);
            prop_assert!(found.loss.is_finite());
            prop_assert_eq!(found.slopes.logprobs[0], 0.0);
            for (t, gradient) in found.slopes.logprobs.iter().enumerate().skip(1) {
                if sample.policy_weights[t] == 0.0 {
                    prop_assert_eq!(*gradient, 0.0);
                    continue;
                }
                let at = |shift: f64| {
                    let (old, advantage) = (sample.behavior_logprobs[t], sample.advantages[t]);
                    let logprob = f64::from(logprobs[t]) + shift;
                    let token = clip.token_loss(logprob, old.into(), advantage.into());
                    (token.loss, token.is_clipped, token.is_dual_clipped)
                };
                let (above, below) = (at(1e-5), at(-1e-5));
                // Kinks have no derivative.
                if (above.1, above.2) == (below.1, below.2) {
                    let slope = 0.25 * (above.0 - below.0) / 2e-5;
                    prop_assert!((slope - f64::from(*gradient)).abs() < 1e-4);
                }
            }
        }
    }

    #[test]
    fn an_undefined_logprob_gives_an_undefined_gradient() {
        let found = sample_loss(
            &Clip::default(),
            &policy_sample(&[(true, 1.0, -1.0)]),
            told(&[0.0, f32::NAN]),
            1.0,
        );
        assert!(found.loss.is_nan() && found.slopes.logprobs[1].is_nan());
    }
}
