//! PACS: whether an answer is right is predicted by the policy itself.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::registry::NamedOptions;

use super::bounds::positive;
use super::questions::{Question, num_tokens};
use super::sigmoid::{sigmoid, softplus};
use super::{LossAggregation, Needs, PolicyBatch, PolicyLoss, PolicyLosses, PolicyTokens, Tally};

/// Options of [`Pacs`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PacsOptions {
    /// What an answer's score is multiplied by; positive. Default 1, the released code's.
    pub beta: f64,
    /// Whether a score is the mean log-probability of an answer's tokens, and not the sum of their log-ratios. Default
    /// false.
    pub by_length: bool,
    /// Whether right and wrong answers to a question weigh the same together, however many there are. Default false.
    pub balanced: bool,
}

impl Default for PacsOptions {
    fn default() -> Self {
        Self { beta: 1.0, by_length: false, balanced: false }
    }
}

impl NamedOptions for PacsOptions {
    fn problems(&self) -> Vec<String> {
        positive("beta", self.beta).into_iter().collect()
    }
}

/// Implicit actor and critic: a classifier of right answers whose scores are the policy's.
///
/// With `psi_i = beta sum_t log pi(y_it) / pi_old(y_it)` and `a_i = psi_i - mean_{j != i} psi_j` over the answers to a
/// question, the loss is the mean over answers of the cross-entropy between `sigmoid(a_i)` and whether `i` is right (PACS,
/// arXiv 2509.02522, equations 5 to 8, and its released code). Answers are those with the same prompt; right are those with
/// a positive advantage, wrong those with a negative one, and what these are matters no further. Answers to a question
/// without both, of which advantages do not tell what they are, have no gradient here, and count in the mean.
///
/// Metrics: `score_accuracy`, the share of answers on the right side.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Pacs {
    options: PacsOptions,
}

impl Pacs {
    /// The objective with these options.
    pub fn new(options: PacsOptions) -> Self {
        Self { options }
    }

    fn score(&self, tokens: &PolicyTokens) -> f64 {
        let score: f64 = match self.options.by_length {
            true => tokens.mean(tokens.detached.iter().copied()),
            false => tokens.detached.iter().zip(&tokens.old).map(|(now, old)| now - old).sum(),
        };
        self.options.beta * score
    }
}

impl PolicyLoss for Pacs {
    fn name(&self) -> &'static str {
        "pacs"
    }

    fn needs(&self) -> Needs {
        Needs { present: true, groups: true, ..Needs::default() }
    }

    fn has_gradient(&self, sample: &spar_core::Sample) -> bool {
        sample.num_weighed() > 0
    }

    fn takes_mean_advantages(&self) -> bool {
        false
    }

    fn aggregation_problems(&self, aggregation: LossAggregation) -> Vec<String> {
        let is_other = aggregation != LossAggregation::TokenMean;
        let tell = || "it is a mean over answers: leave `aggregation` at \"token_mean\"".to_owned();
        is_other.then(tell).into_iter().collect()
    }

    /// The share of the loss, its derivative by the answer's score, and whether that is on the right side (1 or 0; -1
    /// where nothing tells).
    fn notes(&self, batch: &PolicyBatch<'_>) -> Vec<Vec<f64>> {
        let mut notes = vec![vec![0.0, 0.0, -1.0]; batch.samples.len()];
        let unit = num_tokens(batch.samples) / batch.samples.len().max(1) as f64;
        for question in Question::all(batch).iter().filter(|question| question.has_both()) {
            let (right, wrong) = (question.right.len() as f64, question.wrong.len() as f64);
            let labelled = question.right.iter().map(|index| (*index, 1.0));
            let labelled = labelled.chain(question.wrong.iter().map(|index| (*index, 0.0)));
            let answers: Vec<(usize, f64, f64)> = labelled
                .map(|(index, label)| (index, label, self.score(&batch.samples[index])))
                .collect();
            let (count, sum) =
                (right + wrong, answers.iter().map(|(_, _, score)| score).sum::<f64>());
            for (index, label, score) in &answers {
                let centred = score - (sum - score) / (count - 1.0);
                let class = if *label > 0.0 { right } else { wrong };
                let weight = if self.options.balanced { count / (2.0 * class) } else { 1.0 };
                let sided = if *label > 0.0 { -centred } else { centred };
                let by_centred = unit * weight * (sigmoid(centred) - label);
                notes[*index][0] += unit * weight * softplus(sided);
                notes[*index][2] = f64::from(u8::from(sided < 0.0));
                for (other, _, _) in &answers {
                    let share = if other == index { 1.0 } else { -1.0 / (count - 1.0) };
                    notes[*other][1] += by_centred * share;
                }
            }
        }
        notes
    }

    fn loss(&self, tokens: &PolicyTokens, notes: &[f64], tally: &mut Tally) -> PolicyLosses {
        let [share, by_score, is_right] = notes else { unreachable!("as they were noted") };
        if *is_right >= 0.0 {
            tally.add_mean("score_accuracy", *is_right);
        }
        let length = if self.options.by_length { tokens.len().max(1) as f64 } else { 1.0 };
        PolicyLosses::linear(tokens, *share, by_score * self.options.beta / length)
    }
}
