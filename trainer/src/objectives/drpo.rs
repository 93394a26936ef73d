//! Decoupled reward policy optimisation: of right answers, short ones weigh more.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::Sample;
use spar_core::registry::NamedOptions;

use super::bounds::{not_negative, positive};
use super::disco::{mean_over_questions, noted_loss, score, soft_maximum};
use super::questions::{Question, num_tokens};
use super::{
    AnswerScore, BoundedDivergence, LossAggregation, Needs, PolicyBatch, PolicyLoss, PolicyLosses,
    PolicyTokens, Tally,
};

/// Options of [`Drpo`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DrpoOptions {
    /// How little an answer's length counts; smaller is more; positive. Default 0.1, the paper's.
    pub lambda: f64,
    /// The length that counts as 1, in tokens; at least 1. Default absent: that of the longest answer of the update.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<usize>,
    /// As of the objective `disco`. Default 10.
    pub tau: f64,
    /// As of the objective `disco`. Default 1e-4.
    pub delta: f64,
    /// As of the objective `disco`. Default 1000.
    pub beta: f64,
    /// As of the objective `disco`. Default `k3`.
    pub divergence: BoundedDivergence,
}

impl Default for DrpoOptions {
    fn default() -> Self {
        Self {
            lambda: 0.1,
            max_tokens: None,
            tau: 10.0,
            delta: 1e-4,
            beta: 1e3,
            divergence: BoundedDivergence::default(),
        }
    }
}

impl NamedOptions for DrpoOptions {
    fn problems(&self) -> Vec<String> {
        let positives = [("lambda", self.lambda), ("tau", self.tau)];
        let others = [("delta", self.delta), ("beta", self.beta)];
        let mut problems: Vec<String> =
            positives.into_iter().filter_map(|(name, value)| positive(name, value)).collect();
        problems.extend(others.into_iter().filter_map(|(name, value)| not_negative(name, value)));
        if self.max_tokens == Some(0) {
            problems.push("`max_tokens` is 0, must be at least 1".to_owned());
        }
        problems
    }
}

/// Right answers are scored above wrong ones, short right ones more than long ones (DRPO, decoupled reward policy
/// optimisation; not DR-PO, the dataset reset).
///
/// As `disco` with log-likelihoods, where the mean over right answers is weighed by `exp((1 - length / max_tokens) /
/// lambda)`: a right answer is never pushed down for its length, only less up (arXiv 2510.04474, equations 8 and 9, and its
/// released code). Lengths are in tokens that weigh.
///
/// Metrics: `right_length`, in tokens, the mean over right answers.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Drpo {
    options: DrpoOptions,
}

impl Drpo {
    /// The objective with these options.
    pub fn new(options: DrpoOptions) -> Self {
        Self { options }
    }
}

impl PolicyLoss for Drpo {
    fn name(&self) -> &'static str {
        "drpo"
    }

    fn needs(&self) -> Needs {
        Needs { present: true, groups: true, ..Needs::default() }
    }

    /// All tokens take part in the divergence.
    fn has_gradient(&self, sample: &Sample) -> bool {
        sample.num_weighed() > 0
    }

    fn takes_mean_advantages(&self) -> bool {
        false
    }

    fn aggregation_problems(&self, aggregation: LossAggregation) -> Vec<String> {
        mean_over_questions(aggregation)
    }

    fn notes(&self, batch: &PolicyBatch<'_>) -> Vec<Vec<f64>> {
        let DrpoOptions { lambda, max_tokens, tau, delta, beta, divergence } = self.options;
        let (price, _) = divergence.price(batch.samples, delta, beta);
        let mut notes = vec![vec![0.0, 0.0, price]; batch.samples.len()];
        let longest = batch.samples.iter().map(PolicyTokens::len).max().unwrap_or(1);
        let most = max_tokens.unwrap_or(longest).max(1) as f64;
        let of = |index: &usize| score(AnswerScore::LogLikelihood, &batch.samples[*index]);
        let questions = Question::all(batch);
        let unit = num_tokens(batch.samples) / questions.len().max(1) as f64;
        for question in questions.iter().filter(|question| question.has_both()) {
            let of_wrong: Vec<f64> = question.wrong.iter().map(of).collect();
            let (wrong, slopes) = soft_maximum(&of_wrong, tau);
            let powers: Vec<f64> = question
                .right
                .iter()
                .map(|index| (1.0 - batch.samples[*index].len() as f64 / most) / lambda)
                .collect();
            let most_power = powers.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let weights: Vec<f64> = powers.iter().map(|power| (power - most_power).exp()).collect();
            let sum: f64 = weights.iter().sum();
            for (index, weight) in question.right.iter().zip(weights) {
                let share = unit * weight / sum;
                (notes[*index][0], notes[*index][1]) = (-share * (of(index) - wrong), -share);
            }
            for (index, slope) in question.wrong.iter().zip(slopes) {
                notes[*index][1] = unit * slope;
            }
        }
        notes
    }

    fn loss(&self, tokens: &PolicyTokens, notes: &[f64], tally: &mut Tally) -> PolicyLosses {
        if tokens.mean_advantage() > 0.0 {
            tally.add_mean("right_length", tokens.len() as f64);
        }
        noted_loss(tokens, notes, AnswerScore::LogLikelihood, self.options.divergence)
    }
}
