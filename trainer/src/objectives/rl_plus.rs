//! Own answers and those from outside, by importance weights that stay bounded.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::registry::NamedOptions;

use super::bounds::{clip_problems, not_negative};
use super::{PolicyLoss, PolicyLosses, PolicyTokens, Tally};

/// Options of [`RlPlus`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RlPlusOptions {
    /// Of what the policy sampled, how far below 1 the ratio has no gradient where the advantage is negative; 0 to 1. Default 0.2.
    pub clip_low: f64,
    /// How far above 1 it has none where the advantage is positive; 0 or more. Default 0.2.
    pub clip_high: f64,
    /// The probability that somebody who draws any token alike has for each: 1 divided by the size of the vocabulary, or of what
    /// can be drawn; above 0, at most 1. Default 1e-3.
    pub uniform: f64,
    /// How much more tokens from outside count the less likely they are, 0 or more; 0 counts all alike. Default 1.
    pub focus: f64,
}

impl Default for RlPlusOptions {
    fn default() -> Self {
        Self { clip_low: 0.2, clip_high: 0.2, uniform: 1e-3, focus: 1.0 }
    }
}

impl NamedOptions for RlPlusOptions {
    fn problems(&self) -> Vec<String> {
        let Self { clip_low, clip_high, uniform, focus } = *self;
        let mut problems = clip_problems(clip_low, clip_high);
        problems.extend(not_negative("focus", focus));
        if !(uniform > 0.0 && uniform <= 1.0) {
            problems.push(format!("`uniform` {uniform} must be above 0 and at most 1"));
        }
        problems
    }
}

/// PPO on what the policy sampled, and on what comes [from outside](spar_core::SampleOrigin::Outside) multiple importance sampling with advantages
/// that count more where the policy would hardly have gone.
///
/// ```text
/// own:      l = max(-A r, -A clip(r, 1 - clip_low, 1 + clip_high)),   r = pi / pi_old
/// outside:  l = -A (1 - sg[pi])^focus m,   m = 2 pi / (omega + pi_old),   omega = (pi_old + uniform) / 2
/// ```
///
/// RL-PLUS (arXiv 2508.00222), reconstructed from its abstract and from memory: who wrote what comes from outside is taken for somebody who is
/// half the policy and half anybody, so that `m` is neither infinite where the policy gave a token no probability, at most `4 pi / uniform`, nor
/// does it favour what the policy would have done anyway. That the bounds of the ratio do not apply outside is assumed.
///
/// Metrics: `clip_fraction` of own tokens, `outside_weight_mean`, the mean of `m`, and `outside_tokens`, the share of tokens from outside.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RlPlus {
    options: RlPlusOptions,
}

impl RlPlus {
    /// The objective with these options.
    pub fn new(options: RlPlusOptions) -> Self {
        Self { options }
    }
}

impl PolicyLoss for RlPlus {
    fn name(&self) -> &'static str {
        "rl_plus"
    }

    fn loss(&self, tokens: &PolicyTokens, _: &[f64], tally: &mut Tally) -> PolicyLosses {
        let RlPlusOptions { clip_low, clip_high, uniform, focus } = self.options;
        PolicyLosses::by_token(tokens, |_, token| {
            tally.add_mean("outside_tokens", tokens.is_outside.into());
            if tokens.is_outside {
                let old = token.old.exp();
                let others = (old + uniform) / 2.0 + old;
                let advantage = token.advantage * (1.0 - token.detached.exp()).max(0.0).powf(focus);
                let weight = 2.0 * token.logprob.exp() / others;
                tally.add_mean("outside_weight_mean", weight);
                return (-advantage * weight, -advantage * weight);
            }
            let (log_ratio, has_slope) = token.log_ratio();
            let ratio = log_ratio.exp();
            let free = -token.advantage * ratio;
            let bounded = -token.advantage * ratio.clamp(1.0 - clip_low, 1.0 + clip_high);
            let is_clipped = bounded > free;
            tally.add_mean("clip_fraction", is_clipped.into());
            match is_clipped {
                true => (bounded, 0.0),
                false => (free, if has_slope { free } else { 0.0 }),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tokens with these probabilities now, and before the updates.
    fn tokens(is_outside: bool, advantage: f64, now: &[f64], old: &[f64]) -> PolicyTokens {
        let logs = |values: &[f64]| values.iter().map(|value| value.ln()).collect::<Vec<f64>>();
        PolicyTokens {
            places: (1..=now.len()).collect(),
            weights: vec![1.0; now.len()],
            importance: vec![1.0; now.len()],
            advantages: vec![advantage; now.len()],
            behavior: logs(old),
            old: logs(old),
            logprobs: logs(now),
            detached: logs(now),
            is_outside,
            ..PolicyTokens::default()
        }
    }

    #[test]
    fn weights_from_outside_are_bounded_and_what_is_unlikely_counts_more() {
        let objective = RlPlus::default();
        let weights = |now: &[f64], old: &[f64]| {
            let found = objective.loss(&tokens(true, 1.0, now, old), &[], &mut Tally::default());
            assert!(found.loss.is_finite());
            found.slopes
        };
        // Where the policy had no probability at all, the weight is what anybody's would have given.
        let slopes = weights(&[0.01, 0.5, 1.0], &[1e-300, 1e-300, 1e-300]);
        for (slope, now) in slopes.iter().zip([0.01, 0.5, 1.0_f64]) {
            assert!((slope + 4.0 * now / 1e-3 * (1.0 - now)).abs() < 1e-9, "{slopes:?}");
        }
        // Of tokens that the policy knows the weight is near 4/3, and the advantage falls with their probability.
        let likely = weights(&[0.05, 0.5, 0.95], &[0.05, 0.5, 0.95]);
        for (slope, p) in likely.iter().zip([0.05, 0.5, 0.95]) {
            let weight = 2.0 * p / (1.5 * p + 0.5e-3);
            assert!((slope + weight * (1.0 - p)).abs() < 1e-9 && weight < 4.0 / 3.0);
        }
        assert!(likely[0] < likely[1] && likely[1] < likely[2], "{likely:?}");
        let even = RlPlus::new(RlPlusOptions { focus: 0.0, ..RlPlusOptions::default() });
        let found = even.loss(&tokens(true, 1.0, &[0.5], &[0.5]), &[], &mut Tally::default());
        assert!((found.slopes[0] + 1.0 / 0.7505).abs() < 1e-4, "{found:?}");
    }

    #[test]
    fn what_the_policy_sampled_is_trained_by_ppo() {
        use crate::objectives::{Clip, ClipOptions};
        let clip = Clip::new(ClipOptions { clip_low: 0.2, clip_high: 0.2, ..Default::default() });
        for advantage in [-1.0, 0.5] {
            let own = tokens(false, advantage, &[0.2, 0.5, 0.9], &[0.1, 0.5, 0.99]);
            let found = RlPlus::default().loss(&own, &[], &mut Tally::default());
            let expected = PolicyLoss::loss(&clip, &own, &[], &mut Tally::default());
            assert!((found.loss - expected.loss).abs() < 1e-12);
            let pairs = found.slopes.iter().zip(&expected.slopes);
            assert!(pairs.clone().all(|(own, wanted)| (own - wanted).abs() < 1e-12), "{pairs:?}");
        }
    }
}
