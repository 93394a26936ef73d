//! What the policy could do before is rehearsed beside an objective.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::{Sample, SampleOrigin};

use super::policy_tokens::MAX_LOG_RATIO;
use super::{LossAggregation, Needs, Objective, PreparedObjective, SampleLoss, Tally, Update};
use crate::{Measured, Slopes};

/// A divergence from the policy that sampled, which is estimated on its samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RehearsedDivergence {
    /// `KL(pi_0 || pi)`, which gives up nothing that the policy did: `f(u) = -ln u`.
    #[default]
    ForwardKl,
    /// `JS(pi_0, pi)`, which is bounded: `f(u) = 1/2 (u ln u - (u + 1) ln((u + 1) / 2))`.
    JensenShannon,
}

impl RehearsedDivergence {
    /// `f(u)` of the logarithm of `u = pi / pi_0`, and its derivative by that.
    fn of(self, log_ratio: f64) -> (f64, f64) {
        match self {
            Self::ForwardKl => (-log_ratio, -1.0),
            Self::JensenShannon => {
                let log = log_ratio.clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO);
                let ratio = log.exp();
                let mixed = ((ratio + 1.0) / 2.0).ln();
                let value = 0.5 * (ratio * log - (ratio + 1.0) * mixed);
                let slope = if log == log_ratio { 0.5 * ratio * (log - mixed) } else { 0.0 };
                // A bound would hide NaN.
                (if log_ratio.is_nan() { log_ratio } else { value }, slope)
            }
        }
    }
}

/// Options of a [rehearsal](with_rehearsal).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RehearsalOptions {
    /// How far the policy is from what it was. Default `forward_kl`.
    pub divergence: RehearsedDivergence,
    /// What it weighs beside the policy's loss; positive. Default 0.1.
    pub weight: f64,
}

impl Default for RehearsalOptions {
    fn default() -> Self {
        Self { divergence: RehearsedDivergence::default(), weight: 0.1 }
    }
}

impl RehearsalOptions {
    /// All that is wrong with the values; empty when nothing is.
    pub fn problems(&self) -> Vec<String> {
        let is_wrong = !(self.weight.is_finite() && self.weight > 0.0);
        let problem = || format!("weight is {}, must be positive", self.weight);
        is_wrong.then(problem).into_iter().collect()
    }
}

/// An objective with a divergence from an earlier policy beside it, on samples of that policy that were kept.
///
/// With `pi_0` the policy that sampled them, and `f` that of the [divergence](RehearsedDivergence):
///
/// ```text
/// D(pi_0, pi) = E_{y ~ pi_0} f(pi(y) / pi_0(y)),    l = l_policy, and weight f(pi(y_t) / pi_0(y_t)) of tokens that are rehearsed
/// ```
///
/// DPH-RL (arXiv 2509.07430), by tokens: divergences that cover all that the policy did keep it from giving up what it could do. Only samples that
/// were drawn before training are looked at, with the log-probabilities that they were drawn with: no reference model is run. Samples that are
/// [rehearsed](SampleOrigin::Rehearsed) count with their weights in the cross-entropy term among the tokens, and have no part in the objective itself.
///
/// Metric: `rehearsal_loss`, the mean of `f` over them.
pub fn with_rehearsal(
    objective: Box<dyn Objective>,
    options: RehearsalOptions,
) -> Box<dyn Objective> {
    Box::new(WithRehearsal { objective, options })
}

#[derive(Debug)]
struct WithRehearsal {
    objective: Box<dyn Objective>,
    options: RehearsalOptions,
}

fn is_rehearsed(sample: &Sample) -> bool {
    sample.origin == SampleOrigin::Rehearsed
}

impl Objective for WithRehearsal {
    fn name(&self) -> &'static str {
        self.objective.name()
    }

    fn weight(&self, sample: &Sample) -> f64 {
        match is_rehearsed(sample) {
            true => sample.cross_entropy_weights.iter().map(|weight| f64::from(*weight)).sum(),
            false => self.objective.weight(sample),
        }
    }

    fn has_gradient(&self, sample: &Sample) -> bool {
        match is_rehearsed(sample) {
            true => self.weight(sample) > 0.0,
            false => self.objective.has_gradient(sample),
        }
    }

    fn takes_value_loss(&self) -> bool {
        self.objective.takes_value_loss()
    }

    fn takes_mean_advantages(&self) -> bool {
        self.objective.takes_mean_advantages()
    }

    fn needs(&self) -> Needs {
        self.objective.needs()
    }

    fn aggregation_problems(&self, aggregation: LossAggregation) -> Vec<String> {
        self.objective.aggregation_problems(aggregation)
    }

    fn begin<'a>(&'a self, update: &Update<'a>) -> Box<dyn PreparedObjective + 'a> {
        // It sees rehearsed samples, which have no weights in the policy gradient. To what counts or draws samples, or tokens without regard to
        // weights, they are samples all the same, so recipes have no such option beside a rehearsal.
        let objective = self.objective.begin(update);
        Box::new(Prepared { objective, samples: update.samples, options: &self.options })
    }
}

struct Prepared<'a> {
    objective: Box<dyn PreparedObjective + 'a>,
    samples: &'a [&'a Sample],
    options: &'a RehearsalOptions,
}

impl PreparedObjective for Prepared<'_> {
    fn loss(&self, index: usize, measured: Measured<'_>, scale: f64) -> SampleLoss {
        let sample = self.samples[index];
        if !is_rehearsed(sample) {
            return self.objective.loss(index, measured, scale);
        }
        let RehearsalOptions { divergence, weight } = *self.options;
        let (mut loss, mut slopes) = (0.0, vec![0.0; sample.len()]);
        let mut tally = Tally::default();
        let weights = sample.cross_entropy_weights.iter().enumerate();
        for (t, of_token) in weights.filter(|(_, weight)| **weight != 0.0) {
            let log_ratio =
                f64::from(measured.logprobs[t]) - f64::from(sample.behavior_logprobs[t]);
            let (value, slope) = divergence.of(log_ratio);
            let factor = scale * weight * f64::from(*of_token);
            loss += factor * value;
            slopes[t] = (factor * slope) as f32;
            tally.add_mean("rehearsal_loss", value);
        }
        SampleLoss { loss, slopes: Slopes::from(slopes), tally }
    }

    fn learning_rate_scale(&self) -> f64 {
        self.objective.learning_rate_scale()
    }

    fn tally(&self) -> Tally {
        self.objective.tally()
    }

    fn state(&self, tally: &Tally) -> Vec<f64> {
        self.objective.state(tally)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objectives::Clip;
    use crate::testing::{policy_sample, sample_loss};

    const ALL: [RehearsedDivergence; 2] =
        [RehearsedDivergence::ForwardKl, RehearsedDivergence::JensenShannon];

    fn rehearsed(origin: SampleOrigin) -> Sample {
        let mut sample = policy_sample(&[(true, 1.0, -1.0), (true, 1.0, -0.5)]);
        sample.origin = origin;
        sample.cross_entropy_weights = vec![0.0, 1.0, 0.5];
        if origin == SampleOrigin::Rehearsed {
            sample.policy_weights.fill(0.0);
        }
        sample
    }

    #[test]
    fn generators_are_zero_where_nothing_has_changed_and_slopes_are_derivatives() {
        for divergence in ALL {
            assert_eq!(divergence.of(0.0).0, 0.0);
            for log in [-3.0, -0.4, 0.3, 2.0] {
                let at = |by: f64| divergence.of(log + by).0;
                let expected = (at(1e-5) - at(-1e-5)) / 2e-5;
                assert!((divergence.of(log).1 - expected).abs() < 1e-6, "{divergence:?} {log}");
            }
            assert!(divergence.of(f64::NAN).0.is_nan());
        }
        let (value, slope) = RehearsedDivergence::JensenShannon.of(400.0);
        assert!(value.is_finite() && slope == 0.0);
    }

    #[test]
    fn only_what_was_kept_is_read_and_no_reference_is_asked_for() {
        let options = RehearsalOptions { weight: 0.25, ..RehearsalOptions::default() };
        let objective = with_rehearsal(Box::new(Clip::default()), options);
        assert_eq!(objective.needs(), Clip::default().needs());
        assert!(!objective.needs().reference);
        let sample = rehearsed(SampleOrigin::Rehearsed);
        assert_eq!((objective.weight(&sample), objective.has_gradient(&sample)), (1.5, true));
        let measured = Measured { logprobs: &[f32::NAN, -1.5, -0.25], ..Measured::default() };
        let found = sample_loss(&*objective, &sample, measured, 2.0);
        assert_eq!(found.slopes.logprobs, [0.0, -0.5, -0.25]);
        assert!((found.loss - 0.5 * (0.5 - 0.5 * 0.25)).abs() < 1e-9, "{}", found.loss);
        assert!((found.tally.values()["rehearsal_loss"] - 0.125).abs() < 1e-9);
        // What is played now is trained as ever.
        let own = rehearsed(SampleOrigin::Policy);
        let entropies = [0.0; 3];
        let measured = Measured { entropies: &entropies, ..measured };
        let with = sample_loss(&*objective, &own, measured, 2.0);
        assert_eq!(with, sample_loss(&Clip::default(), &own, measured, 2.0));
    }

    /// One question with four answers, of which one is right: what the policy gradient alone makes of it, and with what
    /// is rehearsed beside it.
    #[test]
    fn answers_that_pay_nothing_keep_a_share_that_is_known() {
        let softmax = |logits: &[f64]| -> Vec<f64> {
            let sum: f64 = logits.iter().map(|logit| logit.exp()).sum();
            logits.iter().map(|logit| logit.exp() / sum).collect()
        };
        let first = softmax(&[0.3, -0.2, 0.8, 0.0]);
        let rewards = [0.0, 1.0, 0.0, 0.0];
        let solve = |weight: f64, divergence: RehearsedDivergence| {
            let mut logits: Vec<f64> = first.iter().map(|p| p.ln()).collect();
            for _ in 0..40_000 {
                let p = softmax(&logits);
                let earned: f64 = p.iter().zip(rewards).map(|(p, reward)| p * reward).sum();
                // By the log-probabilities: the samples' slopes, as often as the first policy has drawn them.
                let slopes: Vec<f64> =
                    p.iter().zip(&first).map(|(p, q)| q * divergence.of((p / q).ln()).1).collect();
                let all: f64 = slopes.iter().sum();
                for answer in 0..4 {
                    let gain = p[answer] * (rewards[answer] - earned);
                    logits[answer] += 0.2 * (gain - weight * (slopes[answer] - p[answer] * all));
                }
            }
            softmax(&logits)
        };
        let alone = solve(0.0, RehearsedDivergence::ForwardKl);
        assert!(alone[1] > 0.999, "{alone:?}");
        let kept = solve(0.1, RehearsedDivergence::ForwardKl);
        let earned = kept[1];
        for answer in 0..4 {
            // Where the gradient vanishes: p (r - mean r) + weight (q - p) = 0.
            let wanted = 0.1 * first[answer] / (0.1 + earned - rewards[answer]);
            assert!((kept[answer] - wanted).abs() < 1e-4, "{kept:?}");
        }
        // A divergence that is bounded takes more weight to hold anything.
        let bounded = solve(1.0, RehearsedDivergence::JensenShannon);
        assert!(bounded[1] > 0.7 && bounded[2] > 0.02 && alone[2] < 0.001, "{bounded:?}");
    }

    #[test]
    fn weights_are_checked() {
        let problems = |weight| RehearsalOptions { weight, ..Default::default() }.problems();
        assert_eq!(problems(0.5), [""; 0]);
        assert_eq!(problems(0.0).len() + problems(f64::NAN).len(), 2);
    }
}
