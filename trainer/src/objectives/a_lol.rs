//! Advantage-leftover-lunch: offline policy gradients with sequences as single actions.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::registry::NamedOptions;

use super::{MAX_LOG_RATIO, Needs, PolicyLoss, PolicyLosses, PolicyTokens, Tally};

/// Options of [`ALol`].
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ALolOptions {
    /// What importance weights compare. Default `sequence`.
    pub ratio: ALolRatio,
    /// How far weights may be from 1 on either side; positive. Default absent: only their logarithm is bounded, by 20.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clip: Option<f64>,
}

/// What the importance weights of [`ALol`] compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ALolRatio {
    /// Whole sequences (A-LoL).
    #[default]
    Sequence,
    /// Tokens (A-LoL seq.).
    Token,
    /// Nothing: every weight is 1 (A-LoL ref-free).
    None,
}

impl NamedOptions for ALolOptions {
    fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        if let Some(clip) = self.clip.filter(|clip| !(clip.is_finite() && *clip > 0.0)) {
            problems.push(format!("`clip` {clip} must be positive"));
        }
        if self.clip.is_some() && self.ratio == ALolRatio::None {
            problems.push("`clip` has no effect: `ratio` is `none`".to_owned());
        }
        problems
    }
}

/// The policy gradient on samples with a positive advantage, weighed by how likely they are beside a reference model.
///
/// `l = -sg[clip(r)] A log pi` where `A > 0`, else 0, with `r = pi(y) / pi_ref(y)` of the sequence, or of each token
/// (A-LoL, arXiv 2305.14718, equations 4 to 6, and its released code). The advantage is that of the whole sequence: use an
/// estimator that gives all tokens of a sample the same.
///
/// Metrics: `weight_mean`, `left_out_fraction`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ALol {
    options: ALolOptions,
}

impl ALol {
    /// The objective with these options.
    pub fn new(options: ALolOptions) -> Self {
        Self { options }
    }
}

impl PolicyLoss for ALol {
    fn name(&self) -> &'static str {
        "a_lol"
    }

    fn needs(&self) -> Needs {
        Needs { reference: self.options.ratio != ALolRatio::None, ..Needs::default() }
    }

    fn takes_mean_advantages(&self) -> bool {
        false
    }

    fn loss(&self, tokens: &PolicyTokens, _: &[f64], tally: &mut Tally) -> PolicyLosses {
        let ALolOptions { ratio, clip } = self.options;
        let apart = |t: usize| tokens.detached[t] - tokens.reference[t];
        let held = |x: f64| x.clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO);
        let whole: f64 = match ratio {
            ALolRatio::Sequence => (0..tokens.len()).map(apart).sum(),
            _ => 0.0,
        };
        PolicyLosses::by_token(tokens, |index, token| {
            let is_left_out = token.advantage <= 0.0;
            tally.add_mean("left_out_fraction", is_left_out.into());
            if is_left_out {
                return (0.0, 0.0);
            }
            let log_ratio = match ratio {
                ALolRatio::Sequence => whole,
                ALolRatio::Token => apart(index),
                ALolRatio::None => 0.0,
            };
            let weight = held(log_ratio).exp();
            let weight =
                clip.map_or(weight, |clip| weight.clamp((1.0 - clip).max(0.0), 1.0 + clip));
            tally.add_mean("weight_mean", weight);
            let slope = -weight * token.advantage;
            (slope * token.logprob, slope)
        })
    }
}
