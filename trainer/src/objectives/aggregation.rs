//! How the losses of tokens become the loss of a batch.

use serde::{Deserialize, Serialize};
use spar_core::Row;

use super::Objective;

/// How the losses of tokens become the loss of a batch.
///
/// With `w` the weights and `l` the losses of tokens, `n_i` the weight of row `i` as its objective
/// counts it, and `R` the number of rows with `n_i > 0`:
///
/// | mode | loss | known as |
/// | --- | --- | --- |
/// | `token_mean` | `sum_i sum_t w l / sum_i n_i` | DAPO (arXiv 2503.14476, eq. 8) |
/// | `row_mean` | `1/R sum_i (sum_t w l / n_i)` | GRPO (arXiv 2402.03300, eq. 3) |
/// | `row_sum` | `1/R sum_i (sum_t w l / constant)` | Dr. GRPO (arXiv 2503.20783) |
///
/// Rows without weight do not count, as in verl's `agg_loss` since 2026.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum LossAggregation {
    /// Every token counts the same, long rows count more.
    #[default]
    TokenMean,
    /// Every row counts the same, tokens of long rows count less.
    RowMean,
    /// Every token counts the same, however long the rows of this batch are.
    RowSum {
        /// Divides the sum of a row; usually the most tokens a row can have. Positive.
        constant: f64,
    },
}

/// What the loss of a batch is divided by; known before any row is computed.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct BatchWeight {
    /// Sum of the rows' weights.
    pub tokens: f64,
    /// Rows that have weight.
    pub rows: f64,
}

impl BatchWeight {
    /// The weight of `rows` as `objective` counts it.
    pub fn of<'a>(objective: &dyn Objective, rows: impl IntoIterator<Item = &'a Row>) -> Self {
        let mut batch = Self::default();
        for weight in rows.into_iter().map(|row| objective.weight(row)).filter(|w| *w > 0.0) {
            batch.tokens += weight;
            batch.rows += 1.0;
        }
        batch
    }
}

impl LossAggregation {
    /// The factor of a row whose weight is `row_weight`; 0 for a row without weight.
    pub fn scale(&self, row_weight: f64, batch: BatchWeight) -> f64 {
        if row_weight <= 0.0 {
            return 0.0;
        }
        match self {
            Self::TokenMean => 1.0 / batch.tokens,
            Self::RowMean => 1.0 / (batch.rows * row_weight),
            Self::RowSum { constant } => 1.0 / (batch.rows * constant),
        }
    }

    /// All that is wrong with the values; empty when nothing is.
    pub fn problems(&self) -> Vec<String> {
        match self {
            Self::RowSum { constant } if !(constant.is_finite() && *constant > 0.0) => {
                vec![format!("`aggregation.row_sum.constant` {constant} must be positive")]
            }
            _ => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{assert_close, golden, matrix, number};

    #[test]
    fn modes_equal_the_golden_numbers() {
        let mut compared = 0;
        for case in golden("agg_loss") {
            let params = &case["params"];
            let losses = matrix(&case["inputs"]["loss_mat"]);
            let mask = matrix(&case["inputs"]["loss_mask"]);
            let columns = losses[0].len() as f64;
            let constant = params["loss_scale_factor"].as_f64().unwrap_or(columns);
            let mode = match params["loss_agg_mode"].as_str().unwrap() {
                "token-mean" => LossAggregation::TokenMean,
                "seq-mean-token-mean" => LossAggregation::RowMean,
                "seq-mean-token-sum" => LossAggregation::RowSum { constant: 1.0 },
                "seq-mean-token-sum-norm" => LossAggregation::RowSum { constant },
                _ => continue,
            };
            let weights: Vec<f64> = mask.iter().map(|row| row.iter().sum()).collect();
            // Data-parallel workers each add their part, and their mean is taken: a denominator
            // over all of them counts 1/dp_size of it here.
            let workers = params["dp_size"].as_f64().unwrap_or(1.0);
            let counted = weights.iter().filter(|weight| **weight > 0.0).count() as f64;
            let global = |name: &str, own| params[name].as_f64().map_or(own, |all| all / workers);
            let batch = BatchWeight {
                tokens: global("batch_num_tokens", weights.iter().sum()),
                rows: global("global_batch_size", counted),
            };
            let gradient = matrix(&case["outputs"]["grad_loss_mat"]);
            let mut total = 0.0;
            for (row, weight) in weights.iter().enumerate() {
                let scale = mode.scale(*weight, batch);
                for (t, masked) in mask[row].iter().enumerate() {
                    total += scale * masked * losses[row][t];
                    assert_close(scale * masked, gradient[row][t], 1e-8);
                }
            }
            assert_close(total, number(&case["outputs"]["loss"]), 1e-8);
            compared += 1;
        }
        assert_eq!(compared, 12);
    }
}
