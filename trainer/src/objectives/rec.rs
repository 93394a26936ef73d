//! The REC family: REINFORCE with clipping, weights and regularisers of one's choice.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::Sample;
use spar_core::registry::NamedOptions;

use super::bounds::{clip_problems, not_negative, positive};
use super::{PolicyLoss, PolicyLosses, PolicyTokens, Tally};

/// Options of [`Rec`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RecOptions {
    /// Which tokens are trained. Default `none`: all.
    pub clip: RecClip,
    /// How far the ratio may fall below 1; 0 to 1. Default 0.2.
    pub clip_low: f64,
    /// How far it may rise above 1; 0 or more. Default 0.2.
    pub clip_high: f64,
    /// Of `ring`: how far below 1 the ratio is for good tokens to be trained again; 0 to 1. Default 0.6.
    pub ring_low: f64,
    /// Of `ring`: how far above 1 it is for bad tokens to be trained again; 0 or more. Default 2.
    pub ring_high: f64,
    /// What multiplies advantages. Default `none`.
    pub weight: RecWeight,
    /// Of weight `advantage`: advantages are divided by it before they are exponentiated; positive. Default 1.
    pub temperature: f64,
    /// What is added. Default `none`.
    pub regularizer: RecRegularizer,
    /// What that weighs; 0 or more. Default 0.
    pub regularizer_weight: f64,
}

/// Which tokens [`Rec`] trains.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RecClip {
    /// All.
    #[default]
    None,
    /// Those that PPO's clipped objective trains.
    OneSide,
    /// Those whose ratio is within bounds.
    TwoSide,
    /// Those, and good ones that have become very unlikely, and bad ones that have become very likely.
    Ring,
}

/// What multiplies the advantages of [`Rec`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RecWeight {
    /// Nothing.
    #[default]
    None,
    /// The ratio, as a constant.
    ImportanceSampling,
    /// `exp(A / temperature)`.
    Advantage,
}

/// What [`Rec`] adds to the loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RecRegularizer {
    /// Nothing.
    #[default]
    None,
    /// `(log r)^2`.
    K2,
    /// `-log pi`.
    ForwardKl,
}

impl Default for RecOptions {
    fn default() -> Self {
        Self {
            clip: RecClip::default(),
            clip_low: 0.2,
            clip_high: 0.2,
            ring_low: 0.6,
            ring_high: 2.0,
            weight: RecWeight::default(),
            temperature: 1.0,
            regularizer: RecRegularizer::default(),
            regularizer_weight: 0.0,
        }
    }
}

impl NamedOptions for RecOptions {
    fn problems(&self) -> Vec<String> {
        let mut problems = clip_problems(self.clip_low, self.clip_high);
        if !(0.0..=1.0).contains(&self.ring_low) {
            problems.push(format!("`ring_low` {} is outside 0 to 1", self.ring_low));
        }
        problems.extend(not_negative("ring_high", self.ring_high));
        problems.extend(positive("temperature", self.temperature));
        problems.extend(not_negative("regularizer_weight", self.regularizer_weight));
        if self.regularizer_weight > 0.0 && self.regularizer == RecRegularizer::None {
            problems
                .push("`regularizer_weight` has no effect: there is no `regularizer`".to_owned());
        }
        problems
    }
}

/// REINFORCE with clipping, weights and regularisers of one's choice.
///
/// `l = -w A log pi` for tokens that are trained, else 0, plus the regulariser for all, with `r = pi / pi_old` (group-relative
/// REINFORCE off policy, arXiv 2509.24203, as in Trinity-RFT):
///
/// | `clip` | trained where |
/// | --- | --- |
/// | `one_side` | `A >= 0` and `r <= 1 + clip_high`, or `A <= 0` and `r >= 1 - clip_low` |
/// | `two_side` | `1 - clip_low <= r <= 1 + clip_high` |
/// | `ring` | as `two_side`, or `A >= 0` and `r <= 1 - ring_low`, or `A <= 0` and `r >= 1 + ring_high` |
///
/// Metric: `clip_fraction`, the share of tokens that are not trained.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Rec {
    options: RecOptions,
}

impl Rec {
    /// The objective with these options.
    pub fn new(options: RecOptions) -> Self {
        Self { options }
    }

    fn is_trained(&self, ratio: f64, advantage: f64) -> bool {
        let RecOptions { clip, clip_low, clip_high, ring_low, ring_high, .. } = self.options;
        let is_within = (1.0 - clip_low..=1.0 + clip_high).contains(&ratio);
        match clip {
            RecClip::None => true,
            RecClip::TwoSide => is_within,
            RecClip::OneSide => {
                (ratio <= 1.0 + clip_high && advantage >= 0.0)
                    || (ratio >= 1.0 - clip_low && advantage <= 0.0)
            }
            RecClip::Ring => {
                is_within
                    || (advantage >= 0.0 && ratio <= 1.0 - ring_low)
                    || (advantage <= 0.0 && ratio >= 1.0 + ring_high)
            }
        }
    }
}

impl PolicyLoss for Rec {
    fn name(&self) -> &'static str {
        "rec"
    }

    fn has_gradient(&self, sample: &Sample) -> bool {
        let is_regularized = self.options.regularizer_weight > 0.0;
        sample.has_advantage() || (is_regularized && sample.num_weighed() > 0)
    }

    /// Weights by advantages are not linear in them.
    fn takes_mean_advantages(&self) -> bool {
        self.options.weight != RecWeight::Advantage
    }

    fn loss(&self, tokens: &PolicyTokens, _: &[f64], tally: &mut Tally) -> PolicyLosses {
        let RecOptions { weight, temperature, regularizer, regularizer_weight, .. } = self.options;
        PolicyLosses::by_token(tokens, |_, token| {
            let ratio = token.detached_ratio();
            let is_trained = ratio.is_nan() || self.is_trained(ratio, token.advantage);
            tally.add_mean("clip_fraction", (!is_trained).into());
            let weight = match weight {
                RecWeight::None => 1.0,
                RecWeight::ImportanceSampling => ratio,
                RecWeight::Advantage => (token.advantage / temperature).exp(),
            };
            let slope = if is_trained { -weight * token.advantage } else { 0.0 };
            let apart = token.logprob - token.old;
            let (more, by_more) = match regularizer {
                RecRegularizer::None => (0.0, 0.0),
                RecRegularizer::K2 => (apart * apart, 2.0 * apart),
                RecRegularizer::ForwardKl => (-token.logprob, -1.0),
            };
            let loss = slope * token.logprob + regularizer_weight * more;
            (loss, slope + regularizer_weight * by_more)
        })
    }
}
