//! How the losses of tokens become the loss of a batch.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::Sample;

use super::Objective;
use super::policy_tokens::groups_of;

/// How the losses of tokens become the loss of a batch.
///
/// With `w` the weights and `l` the losses of tokens, `n_i` the weight of sample `i` as its objective
/// counts it, `R` the number of samples with `n_i > 0`, `Q` that of their prompts, and `n_q` the sum of `n_i` over those with prompt `q`:
///
/// | mode | loss | known as |
/// | --- | --- | --- |
/// | `token_mean` | `sum_i sum_t w l / sum_i n_i` | DAPO (arXiv 2503.14476, eq. 8) |
/// | `sample_mean` | `1/R sum_i (sum_t w l / n_i)` | GRPO (arXiv 2402.03300, eq. 3) |
/// | `sample_sum` | `1/R sum_i (sum_t w l / constant)` | Dr. GRPO (arXiv 2503.20783) |
/// | `prompt_mean` | `1/Q sum_q (sum_{i in q} sum_t w l / n_q)` | ScaleRL (arXiv 2510.13786) |
/// | `token_sum` | `sum_i sum_t w l` | verl's `token-sum` |
///
/// Rows without weight do not count, as in verl's `agg_loss` since 2026.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum LossAggregation {
    /// Every token counts the same, long samples count more.
    #[default]
    TokenMean,
    /// Every sample counts the same, tokens of long samples count less.
    #[serde(alias = "row_mean")]
    SampleMean,
    /// Every token counts the same, however long the samples of this batch are.
    #[serde(alias = "row_sum")]
    SampleSum {
        /// Divides the sum of a sample; usually the most tokens a sample can have. Positive.
        constant: f64,
    },
    /// Every prompt counts the same, and so does every token behind it. Samples with one prompt are in one update.
    PromptMean,
    /// Every token counts the same, and a larger batch more.
    TokenSum,
}

/// What the loss of a batch is divided by; known before any sample is computed.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct BatchWeight {
    /// Sum of the samples' weights.
    pub tokens: f64,
    /// Rows that have weight.
    pub samples: f64,
}

impl BatchWeight {
    /// The weight of `samples` as `objective` counts it.
    pub fn of<'a>(
        objective: &dyn Objective,
        samples: impl IntoIterator<Item = &'a Sample>,
    ) -> Self {
        let mut batch = Self::default();
        for weight in
            samples.into_iter().map(|sample| objective.weight(sample)).filter(|w| *w > 0.0)
        {
            batch.tokens += weight;
            batch.samples += 1.0;
        }
        batch
    }
}

impl LossAggregation {
    /// The factors of all samples of an update, as `objective` counts them, in their order.
    pub fn scales(&self, objective: &dyn Objective, samples: &[&Sample]) -> Vec<f64> {
        let weights: Vec<f64> = samples.iter().map(|sample| objective.weight(sample)).collect();
        if *self != Self::PromptMean {
            let batch = BatchWeight::of(objective, samples.iter().copied());
            return weights.into_iter().map(|weight| self.scale(weight, batch)).collect();
        }
        let prompts = groups_of(samples);
        let mut tokens = vec![0.0; prompts.iter().max().map_or(0, |most| most + 1)];
        for (prompt, weight) in prompts.iter().zip(&weights).filter(|(_, weight)| **weight > 0.0) {
            tokens[*prompt] += weight;
        }
        let samples = tokens.iter().filter(|tokens| **tokens > 0.0).count() as f64;
        let factor = |(prompt, weight): (usize, f64)| {
            self.scale(weight, BatchWeight { tokens: tokens[prompt], samples })
        };
        prompts.into_iter().zip(weights).map(factor).collect()
    }

    /// The factor of a sample whose weight is `sample_weight`; 0 for a sample without weight. With [`PromptMean`](Self::PromptMean), `batch` is what its prompt's samples weigh, and
    /// the number of prompts.
    pub fn scale(&self, sample_weight: f64, batch: BatchWeight) -> f64 {
        if sample_weight <= 0.0 {
            return 0.0;
        }
        match self {
            Self::TokenMean => 1.0 / batch.tokens,
            Self::SampleMean => 1.0 / (batch.samples * sample_weight),
            Self::SampleSum { constant } => 1.0 / (batch.samples * constant),
            Self::PromptMean => 1.0 / (batch.samples * batch.tokens),
            Self::TokenSum => 1.0,
        }
    }

    /// Whether a token's part in the loss depends on the other tokens of its sample, or of those with its prompt.
    pub fn is_relative_to_sample(&self) -> bool {
        match self {
            Self::SampleMean | Self::PromptMean => true,
            Self::TokenMean | Self::SampleSum { .. } | Self::TokenSum => false,
        }
    }

    /// All that is wrong with the values; empty when nothing is.
    pub fn problems(&self) -> Vec<String> {
        match self {
            Self::SampleSum { constant } if !(constant.is_finite() && *constant > 0.0) => {
                vec![format!("`aggregation.sample_sum.constant` {constant} must be positive")]
            }
            _ => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PolicyGradient;
    use crate::testing::{batch_of, each_case, matrix, number};

    #[test]
    fn prompts_count_the_same_and_so_do_their_tokens() {
        let sample = |prompt: u32, answer: &[f32]| Sample {
            tokens: (prompt..=prompt + answer.len() as u32).collect(),
            policy_weights: [&[0.0][..], answer].concat(),
            cross_entropy_weights: vec![0.0; answer.len() + 1],
            ..Sample::default()
        };
        let samples =
            [sample(1, &[1.0, 1.0]), sample(1, &[1.0]), sample(5, &[1.0; 4]), sample(9, &[0.0; 2])];
        let samples: Vec<&Sample> = samples.iter().collect();
        let found = LossAggregation::PromptMean.scales(&PolicyGradient, &samples);
        assert_eq!(found, [1.0 / 6.0, 1.0 / 6.0, 1.0 / 8.0, 0.0]);
        // By one number for all, where prompts play no part.
        let batch = BatchWeight { tokens: 7.0, samples: 3.0 };
        for mode in [LossAggregation::TokenMean, LossAggregation::SampleMean] {
            let each = [2.0, 1.0, 4.0, 0.0].map(|weight| mode.scale(weight, batch));
            assert_eq!(mode.scales(&PolicyGradient, &samples), each);
        }
        let read: LossAggregation = serde_json::from_str("\"prompt_mean\"").unwrap();
        assert_eq!(read, LossAggregation::PromptMean);
        assert!(LossAggregation::PromptMean.scales(&PolicyGradient, &[]).is_empty());
    }

    #[test]
    fn modes_equal_the_golden_numbers() {
        each_case("agg_loss", |case| {
            let losses = matrix(&case.inputs["loss_mat"]);
            let mask = matrix(&case.inputs["loss_mask"]);
            let mode = case.aggregation(&mask);
            // Data-parallel workers each add their part, and their mean is taken: a denominator
            // over all of them counts 1/dp_size of it here.
            let workers = case.params["dp_size"].as_f64().unwrap_or(1.0);
            let own = batch_of(&mask);
            let global =
                |name: &str, own| case.params[name].as_f64().map_or(own, |all| all / workers);
            let batch = BatchWeight {
                tokens: global("batch_num_tokens", own.tokens),
                samples: global("global_batch_size", own.samples),
            };
            // A sum has no denominator.
            let factor = if mode == LossAggregation::TokenSum { workers } else { 1.0 };
            let gradient = matrix(&case.outputs["grad_loss_mat"]);
            let mut total = 0.0;
            for (sample, mask) in mask.iter().enumerate() {
                let scale = factor * mode.scale(mask.iter().sum(), batch);
                for (t, masked) in mask.iter().enumerate() {
                    total += scale * masked * losses[sample][t];
                    case.assert_near(scale * masked, gradient[sample][t], 1e-8);
                }
            }
            // The reference adds 1e-8 to the length of a sequence.
            case.assert_near(total, number(&case.outputs["loss"]), 1e-8);
        });
    }
}
