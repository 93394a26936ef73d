//! DisCO: right answers are scored above wrong ones, within a bound on the divergence.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::Sample;
use spar_core::registry::NamedOptions;

use super::bounds::{not_negative, positive};
use super::questions::{Question, num_tokens};
use super::{
    LossAggregation, MAX_LOG_RATIO, Needs, PolicyBatch, PolicyLoss, PolicyLosses, PolicyTokens,
    Tally,
};

/// Options of [`Disco`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DiscoOptions {
    /// What an answer's score is. Default `log_likelihood`.
    pub score: AnswerScore,
    /// Whether all wrong answers count the same (DisCO-b), and not those more that score high. Default false.
    pub basic: bool,
    /// How much more those count; smaller is more; positive. Default 10, the paper's for `log_likelihood`; 1 for `ratio`.
    pub tau: f64,
    /// The divergence that costs nothing, in nats; 0 or more. Default 1e-4, the paper's.
    pub delta: f64,
    /// What a divergence above it costs; 0 or more. Default 1000, the paper's.
    pub beta: f64,
    /// How the divergence is estimated. Default `k3`.
    pub divergence: BoundedDivergence,
}

/// What the score of an answer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AnswerScore {
    /// The mean log-probability of its tokens.
    #[default]
    LogLikelihood,
    /// The mean ratio of its tokens.
    Ratio,
}

/// How the divergence from the policy that sampled is estimated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BoundedDivergence {
    /// `r - 1 - log r`.
    #[default]
    K3,
    /// `-log r`.
    K1,
}

impl BoundedDivergence {
    /// The estimate on a token and its derivative by the log-probability.
    fn of_token(self, logprob: f64, old: f64) -> (f64, f64) {
        let free = logprob - old;
        match self {
            Self::K1 => (-free, -1.0),
            Self::K3 => {
                let x = free.clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO);
                (x.exp_m1() - free, x.exp_m1())
            }
        }
    }

    /// The factor of the divergence of an update, `beta max(0, KL - delta)`, and the divergence.
    pub(super) fn price(self, samples: &[PolicyTokens], delta: f64, beta: f64) -> (f64, f64) {
        let mut sum = 0.0;
        for row in samples {
            let both = row.detached.iter().zip(&row.old);
            sum += both.map(|(now, old)| self.of_token(*now, *old).0).sum::<f64>();
        }
        let kl = sum / num_tokens(samples).max(1.0);
        // `max` would hide NaN.
        (if kl > delta { beta * (kl - delta) } else { 0.0 * kl }, kl)
    }

    /// Adds the divergence of a sample's tokens, times its price.
    pub(super) fn add(self, tokens: &PolicyTokens, price: f64, sum: &mut PolicyLosses) {
        for index in 0..tokens.len() {
            let (value, slope) = self.of_token(tokens.logprobs[index], tokens.old[index]);
            sum.loss += price * value;
            sum.slopes[index] += price * slope;
        }
    }
}

impl Default for DiscoOptions {
    fn default() -> Self {
        Self {
            score: AnswerScore::default(),
            basic: false,
            tau: 10.0,
            delta: 1e-4,
            beta: 1e3,
            divergence: BoundedDivergence::default(),
        }
    }
}

impl NamedOptions for DiscoOptions {
    fn problems(&self) -> Vec<String> {
        let mut problems: Vec<String> = positive("tau", self.tau).into_iter().collect();
        problems.extend(not_negative("delta", self.delta));
        problems.extend(not_negative("beta", self.beta));
        problems
    }
}

/// Right answers are scored above wrong ones, within a bound on the divergence.
///
/// With the scores `s` of a question's answers, its objective is
/// `mean_right(s) - tau log mean_wrong(exp(s / tau))`, or `mean_right(s) - mean_wrong(s)` with `basic`; the loss is minus
/// its mean over all questions, those without right or without wrong answers counting 0, plus
/// `sg[beta max(0, KL - delta)] KL`, the divergence of the update from the policy that sampled (DisCO, arXiv 2505.12366,
/// equations 9 to 12, and its released code). Answers to one question are those with the same prompt; right are those with
/// a positive advantage, wrong those with a negative one, and what these are matters no further. A question whose answers
/// are more than another's weighs no more.
///
/// The released code's loss is a surrogate that only has the right derivative; here it is the objective's value.
///
/// Metrics: `divergence`, `right_score`, `wrong_score`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Disco {
    options: DiscoOptions,
}

impl Disco {
    /// The objective with these options.
    pub fn new(options: DiscoOptions) -> Self {
        Self { options }
    }
}

/// The score of an answer.
pub(super) fn score(score: AnswerScore, tokens: &PolicyTokens) -> f64 {
    match score {
        AnswerScore::LogLikelihood => tokens.mean(tokens.detached.iter().copied()),
        AnswerScore::Ratio => {
            tokens.mean((0..tokens.len()).map(|t| tokens.token(t).detached_ratio()))
        }
    }
}

/// `tau log mean exp(s / tau)` of scores, and its derivative by each.
pub(super) fn soft_maximum(scores: &[f64], tau: f64) -> (f64, Vec<f64>) {
    let most = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let powers: Vec<f64> = scores.iter().map(|score| ((score - most) / tau).exp()).collect();
    let sum: f64 = powers.iter().sum();
    let value = most + tau * (sum / scores.len() as f64).ln();
    (value, powers.into_iter().map(|power| power / sum).collect())
}

/// The loss of an answer, as it was noted: its share, the derivative by its score, and the price of the divergence.
pub(super) fn noted_loss(
    tokens: &PolicyTokens,
    notes: &[f64],
    kind: AnswerScore,
    divergence: BoundedDivergence,
) -> PolicyLosses {
    let [share, slope, price] = notes else { unreachable!("as they were noted") };
    let slope = slope / tokens.len().max(1) as f64;
    let mut sum = match kind {
        AnswerScore::LogLikelihood => PolicyLosses::linear(tokens, *share, slope),
        AnswerScore::Ratio => {
            let mut sum = PolicyLosses::by_token(tokens, |_, token| {
                let (log_ratio, has_slope) = token.log_ratio();
                let ratio = log_ratio.exp();
                let by_logprob = if has_slope { slope * ratio } else { 0.0 };
                (slope * (ratio - token.detached_ratio()), by_logprob)
            });
            sum.loss += share;
            sum
        }
    };
    divergence.add(tokens, *price, &mut sum);
    sum
}

/// A mean over questions, which leaves no choice of how losses are put together.
pub(super) fn mean_over_questions(aggregation: LossAggregation) -> Vec<String> {
    let is_other = aggregation != LossAggregation::TokenMean;
    let tell = || "it is a mean over questions: leave `aggregation` at \"token_mean\"".to_owned();
    is_other.then(tell).into_iter().collect()
}

impl PolicyLoss for Disco {
    fn name(&self) -> &'static str {
        "disco"
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
        let DiscoOptions { score: kind, basic, tau, delta, beta, divergence } = self.options;
        let (price, _) = divergence.price(batch.samples, delta, beta);
        let mut notes = vec![vec![0.0, 0.0, price]; batch.samples.len()];
        let scores: Vec<f64> = batch.samples.iter().map(|tokens| score(kind, tokens)).collect();
        let questions = Question::all(batch);
        // Everything is divided by the tokens of the update.
        let unit = num_tokens(batch.samples) / questions.len().max(1) as f64;
        for question in questions.iter().filter(|question| question.has_both()) {
            let of_wrong: Vec<f64> = question.wrong.iter().map(|index| scores[*index]).collect();
            let (wrong, slopes) = match basic {
                false => soft_maximum(&of_wrong, tau),
                true => {
                    let share = 1.0 / of_wrong.len() as f64;
                    (of_wrong.iter().sum::<f64>() * share, vec![share; of_wrong.len()])
                }
            };
            let share = unit / question.right.len() as f64;
            for index in &question.right {
                (notes[*index][0], notes[*index][1]) = (-share * (scores[*index] - wrong), -share);
            }
            for (index, slope) in question.wrong.iter().zip(slopes) {
                notes[*index][1] = unit * slope;
            }
        }
        notes
    }

    fn loss(&self, tokens: &PolicyTokens, notes: &[f64], tally: &mut Tally) -> PolicyLosses {
        let DiscoOptions { score: kind, divergence, .. } = self.options;
        let advantage = tokens.mean_advantage();
        if advantage != 0.0 {
            let name = if advantage > 0.0 { "right_score" } else { "wrong_score" };
            tally.add_mean(name, score(kind, tokens));
        }
        for (now, old) in tokens.detached.iter().zip(&tokens.old) {
            tally.add_mean("divergence", divergence.of_token(*now, *old).0);
        }
        noted_loss(tokens, notes, kind, divergence)
    }
}
