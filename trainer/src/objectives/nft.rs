//! Negative-aware fine-tuning: right answers are imitated, wrong ones teach what is left of the policy without them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::registry::NamedOptions;

use super::bounds::{not_negative, positive};
use super::questions::Question;
use super::{MAX_LOG_RATIO, Needs, PolicyBatch, PolicyLoss, PolicyLosses, PolicyTokens, Tally};

/// The rate of right answers is held this far from 0 and 1, as in the released code.
const RATE_MARGIN: f64 = 0.02;

/// Options of [`Nft`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct NftOptions {
    /// The least likelihood ratio of the negative policy, which bounds what a wrong answer weighs; positive. Default 1,
    /// the paper's.
    pub epsilon: f64,
    /// What wrong answers weigh; 0 or more. Default 1.
    pub negative_weight: f64,
    /// What a question weighs by its rate of right answers. Default `grpo`.
    pub question_weight: QuestionWeight,
}

/// What a question weighs in [`Nft`], by its rate `q` of right answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum QuestionWeight {
    /// `sqrt((1 - q) / q)`: on policy the gradient is that of GRPO.
    #[default]
    Grpo,
    /// `1 - q`: on policy the gradient is that of Dr. GRPO.
    Failures,
    /// 1.
    Even,
}

impl Default for NftOptions {
    fn default() -> Self {
        Self { epsilon: 1.0, negative_weight: 1.0, question_weight: QuestionWeight::default() }
    }
}

impl NamedOptions for NftOptions {
    fn problems(&self) -> Vec<String> {
        let first = positive("epsilon", self.epsilon);
        first.into_iter().chain(not_negative("negative_weight", self.negative_weight)).collect()
    }
}

/// Negative-aware fine-tuning: a supervised loss on right and wrong answers.
///
/// With the ratio `R = pi / pi_old` of a token, the rate `q` of right answers to its question and the question's weight
/// `w`, `l = -w log R` for right answers and `l = -w log max_v((1 - q R) / (1 - q), epsilon)` for wrong ones, where `max_v`
/// has the value of the maximum and the derivative of its first argument (NFT, arXiv 2505.18116, equation 10 and algorithm
/// 1, and its released code, by tokens). Answers are those with the same prompt; right are those with a positive
/// advantage, wrong those with a negative one, and what these are matters no further: use a filter that leaves out questions
/// whose answers are all right or all wrong, as the paper does; they have no gradient here.
///
/// Metric: `negative_bounded_fraction`, the share of wrong answers' tokens at the bound.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Nft {
    options: NftOptions,
}

impl Nft {
    /// The objective with these options.
    pub fn new(options: NftOptions) -> Self {
        Self { options }
    }
}

impl PolicyLoss for Nft {
    fn name(&self) -> &'static str {
        "nft"
    }

    fn needs(&self) -> Needs {
        Needs { present: true, groups: true, ..Needs::default() }
    }

    fn takes_mean_advantages(&self) -> bool {
        false
    }

    /// The rate of right answers, what the question weighs, and whether the answer is right (1), wrong (-1) or neither.
    fn notes(&self, batch: &PolicyBatch<'_>) -> Vec<Vec<f64>> {
        let mut notes = vec![vec![0.0; 3]; batch.samples.len()];
        for question in Question::all(batch).iter().filter(|question| question.has_both()) {
            let (right, wrong) = (question.right.len() as f64, question.wrong.len() as f64);
            let rate = (right / (right + wrong)).clamp(RATE_MARGIN, 1.0 - RATE_MARGIN);
            let weight = match self.options.question_weight {
                QuestionWeight::Grpo => ((1.0 - rate) / rate).sqrt(),
                QuestionWeight::Failures => 1.0 - rate,
                QuestionWeight::Even => 1.0,
            };
            question.right.iter().for_each(|index| notes[*index] = vec![rate, weight, 1.0]);
            question.wrong.iter().for_each(|index| notes[*index] = vec![rate, weight, -1.0]);
        }
        notes
    }

    fn loss(&self, tokens: &PolicyTokens, notes: &[f64], tally: &mut Tally) -> PolicyLosses {
        let NftOptions { epsilon, negative_weight, .. } = self.options;
        let [rate, weight, side] = notes else { unreachable!("as they were noted") };
        PolicyLosses::by_token(tokens, |_, token| {
            let (log_ratio, has_slope) = token.log_ratio();
            if *side > 0.0 {
                return (-weight * log_ratio, if has_slope { -weight } else { 0.0 });
            }
            if *side == 0.0 {
                return (0.0, 0.0);
            }
            let negative = |log: f64| {
                let ratio = log.clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO).exp();
                (1.0 - rate * ratio) / (1.0 - rate)
            };
            let now = negative(token.detached - token.old);
            // NaN is to be seen, which `max` would hide.
            let bound = if now < epsilon { epsilon - now } else { 0.0 };
            tally.add_mean("negative_bounded_fraction", (bound > 0.0).into());
            let value = negative(token.logprob - token.old) + bound;
            let by_ratio = -rate / (1.0 - rate) * log_ratio.exp();
            let weight = weight * negative_weight;
            (-weight * value.ln(), if has_slope { -weight * by_ratio / value } else { 0.0 })
        })
    }
}
