//! The loss of a value head, beside that of the policy.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::Sample;

use super::{LossAggregation, Needs, Objective, PreparedObjective, SampleLoss, Tally, Update};
use crate::Measured;

/// Options of the loss of a value head: half the squared error, or the cross-entropy of a head that tells histograms.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ValueLossOptions {
    /// What it weighs beside the policy's loss; positive. Default 0.5.
    pub weight: f64,
    /// How far a value can get from what it was before the first update of the iteration, and still gain by it; positive.
    /// Of a histogram that is its mean.
    /// Absent: there is no bound. Absent by default; verl has 0.5, PPO's first implementation 0.2.
    pub clip: Option<f64>,
}

impl Default for ValueLossOptions {
    fn default() -> Self {
        Self { weight: 0.5, clip: None }
    }
}

impl ValueLossOptions {
    /// All that is wrong with the values; empty when nothing is.
    pub fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        if !(self.weight.is_finite() && self.weight > 0.0) {
            problems.push(format!("`value_loss.weight` {} must be positive", self.weight));
        }
        if let Some(clip) = self.clip
            && !(clip.is_finite() && clip > 0.0)
        {
            problems.push(format!("`value_loss.clip` {clip} must be positive"));
        }
        problems
    }

    /// The loss of one value, its derivative by the value, and whether the clipped side was taken.
    fn of_value(&self, value: f64, old: f64, target: f64) -> (f64, f64, bool) {
        let free = (value - target).powi(2);
        // `f64::clamp` lets NaN through.
        let clipped = self.clip.map(|clip| (value.clamp(old - clip, old + clip) - target).powi(2));
        match clipped.filter(|clipped| *clipped > free) {
            Some(clipped) => (0.5 * clipped, 0.0, true),
            None => (0.5 * free, value - target, false),
        }
    }
}

/// An objective of the policy with the loss of a value head beside it.
///
/// With a token's value `v`, the value `v_old` before the first update of the iteration and the return `R`:
///
/// ```text
/// l = l_policy + weight / 2 (v - R)^2                                              without `clip`
/// l = l_policy + weight / 2 max((v - R)^2, (clip(v, v_old - c, v_old + c) - R)^2)  with `clip` c
/// l = l_policy - weight sum_k p_k(R) log q_k                                       for a head that tells a histogram q
/// ```
///
/// Sources: PPO (arXiv 1707.06347, equation 9); the clipping of its first implementation, as in verl's
/// `compute_value_loss`; Stop Regressing (arXiv 2403.03950) for [histograms](spar_policy::state_heads::ValueHistogram), whose
/// gradient `clip` takes away where it takes away that of their mean. It is that of all tokens that weigh in the policy gradient, times what they weigh there, and
/// aggregated as the policy's loss is. A sample without advantage has a gradient by it. Where paths of a tree share a
/// token, their mean return gives the mean of the paths' gradients, but for those that `clip` holds back.
///
/// A histogram's target is then that of the mean return, with the same mean as the paths' histograms and less spread.
///
/// Metrics: `value_loss` (its mean over these tokens, before `weight`), `value_clip_fraction` with `clip`, and of histograms
/// `value_outside_fraction`: how many returns are outside their bounds.
#[derive(Debug)]
pub(super) struct WithValueLoss {
    policy: Box<dyn Objective>,
    options: ValueLossOptions,
}

impl WithValueLoss {
    /// The loss beside that of `policy`.
    pub(super) fn new(policy: Box<dyn Objective>, options: ValueLossOptions) -> Self {
        Self { policy, options }
    }
}

impl Objective for WithValueLoss {
    fn name(&self) -> &'static str {
        self.policy.name()
    }

    fn weight(&self, sample: &Sample) -> f64 {
        self.policy.weight(sample)
    }

    fn has_gradient(&self, sample: &Sample) -> bool {
        sample.num_weighed() > 0 || self.policy.has_gradient(sample)
    }

    fn takes_value_loss(&self) -> bool {
        self.policy.takes_value_loss()
    }

    fn takes_mean_advantages(&self) -> bool {
        self.policy.takes_mean_advantages()
    }

    fn aggregation_problems(&self, aggregation: LossAggregation) -> Vec<String> {
        self.policy.aggregation_problems(aggregation)
    }

    fn needs(&self) -> Needs {
        Needs { returns: true, values: self.options.clip.is_some(), ..self.policy.needs() }
    }

    fn begin<'a>(&'a self, update: &Update<'a>) -> Box<dyn PreparedObjective + 'a> {
        let (policy, samples) = (self.policy.begin(update), update.samples);
        Box::new(PreparedWithValueLoss { policy, samples, options: &self.options })
    }
}

struct PreparedWithValueLoss<'a> {
    policy: Box<dyn PreparedObjective + 'a>,
    samples: &'a [&'a Sample],
    options: &'a ValueLossOptions,
}

impl PreparedObjective for PreparedWithValueLoss<'_> {
    fn loss(&self, index: usize, measured: Measured<'_>, scale: f64) -> SampleLoss {
        let mut found = self.policy.loss(index, measured, scale);
        let (sample, options) = (self.samples[index], self.options);
        let bins = measured.histograms.map_or(1, |histograms| histograms.bins.bins());
        let mut slopes = vec![0.0; sample.len() * bins];
        for (t, &weight) in
            sample.policy_weights.iter().enumerate().filter(|(_, weight)| **weight != 0.0)
        {
            let (value, target) = (measured.values[t].into(), sample.returns[t].into());
            let old = if options.clip.is_some() { sample.values[t].into() } else { value };
            let (square, slope, is_clipped) = options.of_value(value, old, target);
            let factor = scale * options.weight * f64::from(weight);
            let loss = match measured.histograms {
                None => {
                    slopes[t] = (factor * slope) as f32;
                    square
                }
                Some(histograms) => {
                    let (loss, by_logits) = histograms.bins.loss(histograms.of_token(t), target);
                    if !is_clipped {
                        let own = slopes[t * bins..].iter_mut().zip(by_logits);
                        own.for_each(|(slope, by_logit)| *slope = (factor * by_logit) as f32);
                    }
                    let is_outside = histograms.bins.is_outside(target);
                    found.tally.add_mean("value_outside_fraction", is_outside.into());
                    loss
                }
            };
            found.loss += factor * loss;
            found.tally.add_mean("value_loss", loss);
            if options.clip.is_some() {
                found.tally.add_mean("value_clip_fraction", is_clipped.into());
            }
        }
        found.slopes.values = slopes;
        found
    }

    fn learning_rate_scale(&self) -> f64 {
        self.policy.learning_rate_scale()
    }

    fn tally(&self) -> Tally {
        self.policy.tally()
    }

    fn state(&self, tally: &Tally) -> Vec<f64> {
        self.policy.state(tally)
    }
}

/// How much of the differences between returns the values tell: `1 - Var(R - V) / Var(R)` over the tokens that weigh in
/// the policy gradient, 1 at best, and 0 where one value for all would do as well. `None` where all returns are equal,
/// or a sample has no values or returns.
pub fn explained_variance(samples: &[Sample]) -> Option<f64> {
    let mut returns = Vec::new();
    let mut errors = Vec::new();
    for sample in samples {
        if sample.values.len() != sample.len() || sample.returns.len() != sample.len() {
            return None;
        }
        for t in (0..sample.len()).filter(|t| sample.policy_weights[*t] != 0.0) {
            let (target, value) = (f64::from(sample.returns[t]), f64::from(sample.values[t]));
            returns.push(target);
            errors.push(target - value);
        }
    }
    let variance = |numbers: &[f64]| {
        let mean = numbers.iter().sum::<f64>() / numbers.len() as f64;
        numbers.iter().map(|number| (number - mean).powi(2)).sum::<f64>() / numbers.len() as f64
    };
    let of_returns = variance(&returns);
    (of_returns > 0.0).then(|| 1.0 - variance(&errors) / of_returns)
}

#[cfg(test)]
mod tests {
    use spar_core::Seed;
    use spar_policy::state_heads::HeadWeights;

    use super::*;
    use crate::Histograms;
    use crate::objectives::{Clip, ObjectiveConfig};
    use crate::testing::{batch_of, each_case, matrix, number, policy_sample};

    #[test]
    fn losses_and_gradients_equal_the_golden_numbers() {
        each_case("value_loss", |case| {
            let options =
                ValueLossOptions { weight: 1.0, clip: case.params["cliprange_value"].as_f64() };
            assert!(options.clip.is_some());
            let input = |name: &str| matrix(&case.inputs[name]);
            let (values, targets) = (input("vpreds"), input("returns"));
            let (old, mask) = (input("values"), input("response_mask"));
            let (mode, batch) = (case.aggregation(&mask), batch_of(&mask));
            let gradient = matrix(&case.outputs["grad_vpreds"]);
            let (mut loss, mut clipped) = (0.0, 0.0);
            for (sample, mask) in mask.iter().enumerate() {
                let scale = mode.scale(mask.iter().sum(), batch);
                for (t, mask) in mask.iter().enumerate() {
                    let factor = scale * mask;
                    let (of_token, slope, is_clipped) =
                        options.of_value(values[sample][t], old[sample][t], targets[sample][t]);
                    case.assert_near(factor * slope, gradient[sample][t], 1e-8);
                    loss += factor * of_token;
                    clipped += mask * f64::from(u8::from(is_clipped));
                }
            }
            // The reference adds 1e-8 to the length of a sequence.
            case.assert_near(loss, number(&case.outputs["vf_loss"]), 1e-8);
            case.assert_near(clipped / batch.tokens, number(&case.outputs["vf_clipfrac"]), 1e-7);
        });
    }

    fn valued_sample() -> Sample {
        let mut sample = policy_sample(&[(true, 0.0, -1.0), (false, 0.0, 0.0), (true, 0.0, -1.0)]);
        sample.policy_weights[3] = 0.25;
        sample.values = vec![0.0, 0.1, 0.0, 0.2];
        sample.returns = vec![0.0, 1.0, 0.0, -1.0];
        sample
    }

    #[test]
    fn it_stands_beside_the_loss_of_the_policy() {
        let sample = valued_sample();
        let policy = || -> Box<dyn Objective> { Box::new(Clip::default()) };
        assert!(!policy().has_gradient(&sample));
        let objective = WithValueLoss::new(policy(), ValueLossOptions::default());
        assert!(objective.has_gradient(&sample), "without advantage too");
        assert_eq!(objective.weight(&sample), 2.0);
        assert_eq!((objective.needs().returns, objective.needs().values), (true, false));
        let samples = [&sample];
        let update = crate::testing::update(&samples, None);
        // Values of tokens without weight are not read.
        let measured = Measured {
            logprobs: &[0.0, -1.0, f32::NAN, -1.0],
            entropies: &[0.0; 4],
            values: &[f32::NAN, 0.5, f32::NAN, 0.25],
            histograms: None,
        };
        let found = objective.begin(&update).loss(0, measured, 2.0);
        // 2 * 0.5 * ((0.5 - 1)^2 + 0.25 (0.25 + 1)^2) / 2.
        assert!((found.loss - (0.25 + 0.25 * 1.5625) / 2.0).abs() < 1e-9, "{}", found.loss);
        assert_eq!(found.slopes.values, [0.0, -0.5, 0.0, 0.25 * 1.25]);
        assert_eq!(found.tally.values()["value_loss"], (0.125 + 0.78125) / 2.0);
        assert!(!found.tally.values().contains_key("value_clip_fraction"));
    }

    #[test]
    fn a_histogram_is_learned_by_cross_entropy_unless_its_mean_is_held_back() {
        let config = serde_json::from_str(r#"{ "kind": "histogram", "bins": 9, "low": 0 }"#);
        let head = HeadWeights::fresh(&config.unwrap(), 4, Seed::from_u64(1)).unwrap();
        let bins = head.histogram().unwrap();
        let mut logits = vec![f32::NAN; 4 * 9];
        for (t, first) in [(1, 0.5), (3, -2.0)] {
            let own = logits[t * 9..][..9].iter_mut().enumerate();
            own.for_each(|(bin, logit)| *logit = first * bin as f32 / 9.0);
        }
        let values = head.values(&logits);
        let mut sample = valued_sample();
        let told = |sample: &Sample, clip: Option<f64>| {
            let options = ValueLossOptions { weight: 2.0, clip };
            let objective = WithValueLoss::new(Box::new(Clip::default()), options);
            let samples = [sample];
            let update = crate::testing::update(&samples, None);
            let measured = Measured {
                logprobs: &[0.0, -1.0, f32::NAN, -1.0],
                entropies: &[0.0; 4],
                values: &values,
                histograms: Some(Histograms { bins, logits: &logits }),
            };
            objective.begin(&update).loss(0, measured, 0.5)
        };
        let free = told(&sample, None);
        // 0.5 * 2 times the cross-entropies, the second of which weighs a quarter.
        let [one, other] =
            [(1, 1.0), (3, -1.0)].map(|(t, target)| bins.loss(&logits[t * 9..][..9], target));
        assert!((free.loss - one.0 - 0.25 * other.0).abs() < 1e-9);
        let row = |found: &SampleLoss, t: usize| found.slopes.values[t * 9..][..9].to_vec();
        assert_eq!(row(&free, 1), one.1.iter().map(|it| *it as f32).collect::<Vec<_>>());
        let quarter: Vec<f32> = other.1.iter().map(|it| (0.25 * it) as f32).collect();
        assert_eq!(row(&free, 3), quarter);
        assert_eq!((row(&free, 0), row(&free, 2)), (vec![0.0; 9], vec![0.0; 9]));
        // The return of -1 is below what this histogram can tell.
        assert_eq!(free.tally.values()["value_outside_fraction"], 0.5);
        // The first value has moved far enough towards its return, the second away from its own.
        sample.values = vec![0.0, values[1] - 0.3, 0.0, values[3] - 0.3];
        let held = told(&sample, Some(0.2));
        assert_eq!((row(&held, 1), row(&held, 3)), (vec![0.0; 9], quarter));
        assert_eq!((held.loss, held.tally.values()["value_clip_fraction"]), (free.loss, 0.5));
    }

    /// An objective that says something else than the defaults wherever it can.
    #[derive(Debug)]
    struct Unusual;

    impl Objective for Unusual {
        fn name(&self) -> &'static str {
            "unusual"
        }

        fn weight(&self, _: &Sample) -> f64 {
            0.25
        }

        fn has_gradient(&self, _: &Sample) -> bool {
            true
        }

        fn takes_value_loss(&self) -> bool {
            false
        }

        fn takes_mean_advantages(&self) -> bool {
            false
        }

        fn needs(&self) -> Needs {
            Needs { reference: true, present: true, pairs: true, ..Needs::default() }
        }

        fn aggregation_problems(&self, aggregation: LossAggregation) -> Vec<String> {
            vec![format!("{aggregation:?}")]
        }

        fn begin<'a>(&'a self, _: &Update<'a>) -> Box<dyn PreparedObjective + 'a> {
            unreachable!("no update is made")
        }
    }

    #[test]
    fn what_the_policys_objective_says_of_itself_stays() {
        let objective = WithValueLoss::new(Box::new(Unusual), ValueLossOptions::default());
        let (empty, mode) = (Sample::default(), LossAggregation::SampleMean);
        assert_eq!((objective.name(), objective.weight(&empty)), ("unusual", 0.25));
        assert!(objective.has_gradient(&empty));
        assert!(!objective.takes_value_loss() && !objective.takes_mean_advantages());
        assert_eq!(objective.needs(), Needs { returns: true, ..Unusual.needs() });
        assert_eq!(objective.aggregation_problems(mode), Unusual.aggregation_problems(mode));
    }

    #[test]
    fn clipping_holds_values_back_only_where_they_would_gain() {
        let options = ValueLossOptions { weight: 1.0, clip: Some(0.2) };
        // Moved beyond the bound towards the return: nothing more is gained, ...
        assert_eq!(options.of_value(0.5, 0.0, 1.0), (0.5 * 0.8_f64.powi(2), 0.0, true));
        // ... away from it: it comes back.
        assert_eq!(options.of_value(-0.5, 0.0, 1.0), (0.5 * 1.5_f64.powi(2), -1.5, false));
        assert_eq!(options.of_value(0.1, 0.0, 1.0).1, 0.1 - 1.0);
        assert!(options.of_value(f64::NAN, 0.0, 1.0).1.is_nan());
    }

    #[test]
    fn the_mean_return_of_paths_has_the_mean_of_their_gradients() {
        let options = ValueLossOptions::default();
        let slope = |target: f64| options.of_value(0.375, 0.0, target).1;
        let paths = [1.0, -0.5, 0.25, 0.0];
        let mean = |numbers: [f64; 4]| numbers.iter().sum::<f64>() / 4.0;
        assert_eq!(slope(mean(paths)), mean(paths.map(slope)));
    }

    #[test]
    fn explained_variance_is_one_for_exact_values_and_absent_without_differences() {
        let mut sample = valued_sample();
        assert!(explained_variance(&[sample.clone()]).unwrap() < 0.5);
        sample.values = sample.returns.clone();
        assert_eq!(explained_variance(&[sample.clone()]), Some(1.0));
        // One value for all.
        sample.values = vec![0.3; 4];
        assert!(explained_variance(&[sample.clone()]).unwrap().abs() < 1e-9);
        sample.returns = vec![1.0; 4];
        assert_eq!(explained_variance(&[sample.clone()]), None);
        sample.returns.clear();
        assert_eq!(explained_variance(&[sample]), None);
        assert_eq!(explained_variance(&[]), None);
    }

    #[test]
    fn options_are_checked_and_only_objectives_of_draws_take_it() {
        let problems = |text: &str| toml::from_str::<ObjectiveConfig>(text).unwrap().problems();
        assert_eq!(problems("value_loss = { weight = 0.1, clip = 0.2 }"), [""; 0]);
        assert_eq!(problems("value_loss = { weight = 0, clip = -1 }").len(), 2);
        let told = problems("name = 'supervised'\nvalue_loss = {}");
        assert_eq!(told.len(), 1);
        assert!(told[0].contains("takes no `value_loss`"), "{told:?}");
    }
}
