//! Direct preference optimisation: of two answers, the one that was chosen becomes likelier.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::Sample;
use spar_core::registry::NamedOptions;

use super::pairs::{Pair, Pairs};
use super::sigmoid::{sigmoid, softplus};
use super::{LossAggregation, Needs, Objective, PreparedObjective, SampleLoss, Tally, Update};
use crate::{Measured, Slopes};

/// Options of [`Dpo`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DpoOptions {
    /// How strongly the policy is held to the reference model; positive. Default 0.1.
    pub beta: f64,
    /// What is made of the margin between the answers. Default `sigmoid`.
    pub loss: PreferenceLoss,
    /// Share of the pairs whose answers are taken to be the wrong way round; at least 0, below 0.5. Of `sigmoid` alone
    /// (conservative DPO, Mitchell 2023). Default 0.
    pub label_smoothing: f64,
    /// By which divergence the policy is held to the reference model; of `sigmoid` alone. Default `reverse_kl`, which is DPO.
    pub divergence: PreferenceDivergence,
    /// The `a` of divergence `alpha`; above 0 and below 1, absent for all others. Default absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alpha: Option<f64>,
}

/// A divergence of the policy from the reference model, by `g = f'(u)` up to a constant, `u = pi / pi_ref` of a whole answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PreferenceDivergence {
    /// `g = log u`.
    #[default]
    ReverseKl,
    /// `g = -1 / u`.
    ForwardKl,
    /// `g = log(2 u / (1 + u))`.
    JensenShannon,
    /// `g = (1 - u^-a) / a`: between reverse KL at 0 and forward KL at 1.
    Alpha,
}

/// Log-ratios of answers are held above this where their exponential is taken.
const LEAST_LOG_RATIO: f64 = -50.0;

impl PreferenceDivergence {
    /// `g`, and its derivative by `log u`.
    fn of(self, log_ratio: f64, alpha: f64) -> (f64, f64) {
        let bounded = log_ratio.max(LEAST_LOG_RATIO);
        let inside = if log_ratio < LEAST_LOG_RATIO { 0.0 } else { 1.0 };
        match self {
            Self::ReverseKl => (log_ratio, 1.0),
            Self::ForwardKl => (-(-bounded).exp(), inside * (-bounded).exp()),
            Self::JensenShannon => {
                (std::f64::consts::LN_2 - softplus(-log_ratio), sigmoid(-log_ratio))
            }
            Self::Alpha => {
                let power = (-alpha * bounded).exp();
                ((1.0 - power) / alpha, inside * power)
            }
        }
    }
}

/// What [`Dpo`] makes of the margin between two answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PreferenceLoss {
    /// DPO's logistic loss, on sums over the tokens of an answer.
    #[default]
    Sigmoid,
    /// IPO's square, on means over the tokens of an answer.
    Ipo,
}

impl Default for DpoOptions {
    fn default() -> Self {
        Self {
            beta: 0.1,
            loss: PreferenceLoss::default(),
            label_smoothing: 0.0,
            divergence: PreferenceDivergence::default(),
            alpha: None,
        }
    }
}

impl NamedOptions for DpoOptions {
    fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        if !(self.beta.is_finite() && self.beta > 0.0) {
            problems.push(format!("`beta` {} must be positive", self.beta));
        }
        if !(0.0..0.5).contains(&self.label_smoothing) {
            let smoothing = self.label_smoothing;
            problems.push(format!("`label_smoothing` {smoothing} must be in [0, 0.5)"));
        }
        if self.loss == PreferenceLoss::Ipo && self.label_smoothing != 0.0 {
            problems.push("`label_smoothing` has no effect on loss `ipo`".to_owned());
        }
        if self.loss == PreferenceLoss::Ipo && self.divergence != PreferenceDivergence::ReverseKl {
            problems.push("`divergence` has no effect on loss `ipo`".to_owned());
        }
        match (self.divergence, self.alpha) {
            (PreferenceDivergence::Alpha, Some(alpha)) if alpha > 0.0 && alpha < 1.0 => {}
            (PreferenceDivergence::Alpha, alpha) => {
                problems.push(format!("`alpha` is {alpha:?}, must be above 0 and below 1"));
            }
            (_, Some(_)) => {
                problems.push("`alpha` has no effect without divergence `alpha`".to_owned())
            }
            (_, None) => {}
        }
        problems
    }
}

/// Direct preference optimisation.
///
/// With `r(y) = sum_t w_t (log pi(y_t) - log pi_ref(y_t))` over the tokens of an answer, `h = r(chosen) - r(rejected)`
/// and `s` the label smoothing, the loss of a pair is
///
/// - `sigmoid`: `-(1 - s) log sigmoid(beta h) - s log sigmoid(-beta h)` (DPO, arXiv 2305.18290, equation 7),
/// - `ipo`: `(h - 1 / (2 beta))^2`, `r` being divided by the answer's tokens (IPO, arXiv 2310.12036, equation 17; means
///   in place of sums as in TRL and AReaL).
///
/// With another `divergence` than reverse KL, `h = g(u(chosen)) - g(u(rejected))` with `u = exp(r)` (f-DPO, arXiv 2309.16240, equation 11).
///
/// The loss of an update is the mean over its pairs, however many samples their answers are. The weight `w` of a token is
/// that in the policy-gradient term, or, for answers that no policy sampled, in the cross-entropy term.
///
/// The slopes of a sample depend on all samples of its pair. They are those at the weights of the update: the objective
/// is told all log-probabilities at these before it is asked.
///
/// Metrics, over pairs: `preference_accuracy`, the share with `h > 0`; `reward_chosen` and `reward_rejected`, which are
/// `beta r`; `reward_margin`, their difference; `logprob_chosen` and `logprob_rejected`, `sum_t w_t log pi(y_t)`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Dpo {
    options: DpoOptions,
}

/// What is known of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct Answer {
    /// `sum_t w_t log pi(y_t)`.
    logprob: f64,
    /// `r(y)`.
    log_ratio: f64,
    /// `g(y)`, by which answers are compared; `r(y)` itself by default.
    compared: f64,
    /// What that changes by with the log-probability of a token of weight 1.
    slope: f64,
}

/// The loss of a pair.
#[derive(Debug, Clone, Copy, PartialEq)]
struct PairLoss {
    loss: f64,
    /// Derivative by `h`.
    slope: f64,
}

impl Dpo {
    /// The objective with these options.
    pub fn new(options: DpoOptions) -> Self {
        Self { options }
    }

    /// The loss of a pair whose answers differ by `margin`, which is `h`.
    fn pair_loss(&self, margin: f64) -> PairLoss {
        let DpoOptions { beta, loss, label_smoothing: smoothing, .. } = self.options;
        match loss {
            PreferenceLoss::Sigmoid => {
                let x = beta * margin;
                let loss = (1.0 - smoothing) * softplus(-x) + smoothing * softplus(x);
                let slope = beta * (smoothing * sigmoid(x) - (1.0 - smoothing) * sigmoid(-x));
                PairLoss { loss, slope }
            }
            PreferenceLoss::Ipo => {
                let distance = margin - 0.5 / beta;
                PairLoss { loss: distance * distance, slope: 2.0 * distance }
            }
        }
    }

    /// An answer of these samples, whose log-probabilities are `present`.
    fn answer(&self, samples: &[&Sample], present: &[Vec<f32>], parts: &[usize]) -> Answer {
        let mut answer = Answer { slope: 1.0, ..Answer::default() };
        let mut tokens = 0.0;
        for &part in parts {
            let sample = samples[part];
            for t in (0..sample.len()).filter(|t| weight_of(sample, *t) != 0.0) {
                let (weight, logprob) = (weight_of(sample, t), f64::from(present[part][t]));
                tokens += weight;
                answer.logprob += weight * logprob;
                answer.log_ratio += weight * (logprob - f64::from(sample.reference_logprobs[t]));
            }
        }
        if self.options.loss == PreferenceLoss::Ipo && tokens > 0.0 {
            answer.log_ratio /= tokens;
            answer.slope /= tokens;
        }
        let DpoOptions { divergence, alpha, .. } = self.options;
        let (compared, slope) = divergence.of(answer.log_ratio, alpha.unwrap_or(0.5));
        answer.compared = compared;
        answer.slope *= slope;
        answer
    }
}

/// What a token of an answer weighs.
fn weight_of(sample: &Sample, t: usize) -> f64 {
    let sampled = sample.policy_weights[t];
    f64::from(if sampled != 0.0 { sampled } else { sample.cross_entropy_weights[t] })
}

impl Objective for Dpo {
    fn name(&self) -> &'static str {
        "dpo"
    }

    fn aggregation_problems(&self, aggregation: LossAggregation) -> Vec<String> {
        let is_other = aggregation != LossAggregation::TokenMean;
        let tell = || "it is a mean over pairs: leave `aggregation` at \"token_mean\"".to_owned();
        is_other.then(tell).into_iter().collect()
    }

    /// The samples of a pair weigh 1 together, half of it for each answer.
    fn weight(&self, sample: &Sample) -> f64 {
        sample.preference.map_or(0.0, |preference| 0.5 / f64::from(preference.parts.max(1)))
    }

    fn takes_value_loss(&self) -> bool {
        false
    }

    fn needs(&self) -> Needs {
        Needs { reference: true, present: true, pairs: true, ..Needs::default() }
    }

    fn begin<'a>(&'a self, update: &Update<'a>) -> Box<dyn PreparedObjective + 'a> {
        let present = update.present.expect("it was asked for");
        let Pairs { pairs, of_sample } =
            Pairs::of(update.samples).expect("updates with parted pairs are refused");
        let compare = |pair: Pair| {
            let answer = |parts: &[usize]| self.answer(update.samples, present, parts);
            let (chosen, rejected) = (answer(&pair.chosen), answer(&pair.rejected));
            let loss = self.pair_loss(chosen.compared - rejected.compared);
            Compared { told_by: pair.chosen[0], chosen, rejected, loss }
        };
        let pairs = pairs.into_iter().map(compare).collect();
        Box::new(Prepared { dpo: self, samples: update.samples, pairs, of_sample })
    }
}

/// A pair whose answers have been compared.
struct Compared {
    /// The sample that tells what came of the pair.
    told_by: usize,
    chosen: Answer,
    rejected: Answer,
    loss: PairLoss,
}

/// An update of which all pairs have been compared.
struct Prepared<'a> {
    dpo: &'a Dpo,
    samples: &'a [&'a Sample],
    pairs: Vec<Compared>,
    /// The pair of each sample.
    of_sample: Vec<Option<usize>>,
}

impl PreparedObjective for Prepared<'_> {
    fn loss(&self, index: usize, _: Measured<'_>, scale: f64) -> SampleLoss {
        let sample = self.samples[index];
        let mut slopes = vec![0.0; sample.len()];
        let mut tally = Tally::default();
        let (Some(place), Some(preference)) = (self.of_sample[index], sample.preference) else {
            return SampleLoss { loss: 0.0, slopes: Slopes::from(slopes), tally };
        };
        let pair = &self.pairs[place];
        let by_answer = match preference.is_chosen {
            true => pair.loss.slope * pair.chosen.slope,
            false => -pair.loss.slope * pair.rejected.slope,
        };
        for (t, slope) in slopes.iter_mut().enumerate() {
            let weight = weight_of(sample, t);
            if weight != 0.0 {
                *slope = (scale * by_answer * weight) as f32;
            }
        }
        if index == pair.told_by {
            let beta = self.dpo.options.beta;
            let (chosen, rejected) = (beta * pair.chosen.log_ratio, beta * pair.rejected.log_ratio);
            tally.add_mean("preference_accuracy", (chosen > rejected).into());
            tally.add_mean("reward_margin", chosen - rejected);
            tally.add_mean("reward_chosen", chosen);
            tally.add_mean("reward_rejected", rejected);
            tally.add_mean("logprob_chosen", pair.chosen.logprob);
            tally.add_mean("logprob_rejected", pair.rejected.logprob);
        }
        // The shares of a pair's samples add up to its loss.
        let loss = scale * self.dpo.weight(sample) * pair.loss.loss;
        SampleLoss { loss, slopes: Slopes::from(slopes), tally }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use spar_core::{PolicyVersion, Preference, Seed};
    use spar_policy::{ModelConfig, Parameters, Weights, initial_parameters};

    use super::*;
    use crate::objectives::{BatchWeight, LossAggregation};
    use crate::testing::{assert_close, each_case, matrix, vector};
    use crate::{DecoderGradient, SampleGradient, fill_reference, measure_held_out};

    fn preference(pair: u64, is_chosen: bool, parts: u32) -> Option<Preference> {
        Some(Preference { pair, is_chosen, parts })
    }

    /// An answer of so many tokens whose log-probabilities sum to this.
    fn answer(pair: u64, is_chosen: bool, tokens: usize, reference: f64) -> Sample {
        let mut sample = Sample { preference: preference(pair, is_chosen, 1), ..Sample::default() };
        sample.push_observed(0, 0.0);
        (0..tokens).for_each(|_| sample.push_observed(1, 1.0));
        sample.reference_logprobs = spread(reference, tokens);
        sample
    }

    /// The sum in equal parts, behind a first token that is not read.
    fn spread(sum: f64, tokens: usize) -> Vec<f32> {
        let part = (sum / tokens as f64) as f32;
        std::iter::once(f32::NAN).chain(std::iter::repeat_n(part, tokens)).collect()
    }

    /// The parts of the loss of an update whose samples have these log-probabilities.
    fn losses(dpo: &Dpo, samples: &[&Sample], present: &[Vec<f32>]) -> Vec<SampleLoss> {
        let update = crate::testing::update(samples, Some(present));
        let batch = BatchWeight::of(dpo, samples.iter().copied());
        let prepared = dpo.begin(&update);
        let mut found = Vec::new();
        for (index, sample) in samples.iter().enumerate() {
            let scale = LossAggregation::TokenMean.scale(dpo.weight(sample), batch);
            let measured = Measured { logprobs: &present[index], ..Measured::default() };
            found.push(prepared.loss(index, measured, scale));
        }
        found
    }

    #[test]
    fn losses_and_gradients_equal_the_golden_numbers() {
        each_case("loss_dpo", |case| {
            let params = &case.params;
            let loss = serde_json::from_value(params["loss_type"].clone()).unwrap();
            let beta = params["beta"].as_f64().unwrap();
            let dpo = Dpo::new(DpoOptions { beta, loss, ..DpoOptions::default() });
            let input = |name: &str| matrix(&case.inputs[name]);
            let (policy, reference, lengths) =
                (input("policy_logps"), input("ref_logps"), input("lengths"));
            let (mut samples, mut present) = (Vec::new(), Vec::new());
            for pair in 0..policy.len() {
                for side in 0..2 {
                    let tokens = lengths[pair][side] as usize;
                    samples.push(answer(pair as u64, side == 0, tokens, reference[pair][side]));
                    present.push(spread(policy[pair][side], tokens));
                }
            }
            let samples: Vec<&Sample> = samples.iter().collect();
            let found = losses(&dpo, &samples, &present);
            let wanted = vector(&case.outputs["per_pair_loss"]);
            let gradient = matrix(&case.outputs["grad_policy_logps_of_mean"]);
            for pair in 0..wanted.len() {
                let both = found[2 * pair].loss + found[2 * pair + 1].loss;
                assert_close(both * wanted.len() as f64, wanted[pair], 2e-6);
                for side in 0..2 {
                    for slope in &found[2 * pair + side].slopes.logprobs[1..] {
                        assert_close(f64::from(*slope), gradient[pair][side], 2e-6);
                    }
                }
            }
            let told = &found[0].tally.values();
            let ratio = |side: usize| {
                let ratio = policy[0][side] - reference[0][side];
                if loss == PreferenceLoss::Ipo { ratio / lengths[0][side] } else { ratio }
            };
            assert_close(told["reward_margin"], beta * (ratio(0) - ratio(1)), 1e-5);
            assert_eq!(told["preference_accuracy"], f64::from(u8::from(ratio(0) > ratio(1))));
            assert!(found[1].tally.values().is_empty(), "a pair is told once");
        });
    }

    #[test]
    fn smoothing_takes_a_share_of_the_pairs_for_wrong_ones() {
        let dpo = |label_smoothing| {
            Dpo::new(DpoOptions { beta: 0.5, label_smoothing, ..DpoOptions::default() })
        };
        for margin in [-3.0, 0.0, 2.0] {
            let (plain, turned) = (dpo(0.0).pair_loss(margin), dpo(0.0).pair_loss(-margin));
            let found = dpo(0.2).pair_loss(margin);
            assert_close(found.loss, 0.8 * plain.loss + 0.2 * turned.loss, 1e-12);
            assert_close(found.slope, 0.8 * plain.slope - 0.2 * turned.slope, 1e-12);
        }
        // Far out nothing overflows.
        let far = dpo(0.0).pair_loss(-4000.0);
        assert_close(far.loss, 2000.0, 1e-12);
        assert_close(far.slope, -0.5, 1e-12);
        assert_eq!(dpo(0.0).pair_loss(4000.0), PairLoss { loss: 0.0, slope: 0.0 });
        assert!(dpo(0.0).pair_loss(f64::NAN).slope.is_nan());
        let ipo = PreferenceLoss::Ipo;
        let wrong =
            DpoOptions { beta: 0.0, loss: ipo, label_smoothing: 0.1, ..DpoOptions::default() };
        assert_eq!(wrong.problems().len(), 2);
        assert_eq!(
            DpoOptions { label_smoothing: 0.5, ..DpoOptions::default() }.problems().len(),
            1
        );
    }

    #[test]
    fn by_reverse_kl_it_is_dpo_and_all_divergences_have_their_derivatives() {
        use PreferenceDivergence::{Alpha, ForwardKl, JensenShannon, ReverseKl};
        for divergence in [ReverseKl, ForwardKl, JensenShannon, Alpha] {
            for log_ratio in [-3.0, -0.4, 0.0, 0.7, 4.0] {
                let (_, slope) = divergence.of(log_ratio, 0.3);
                let at = |shift: f64| divergence.of(log_ratio + shift, 0.3).0;
                assert_close(slope, (at(1e-6) - at(-1e-6)) / 2e-6, 1e-6);
                assert!(slope > 0.0);
            }
            for far in [-1e4, 1e4] {
                let (value, slope) = divergence.of(far, 0.3);
                assert!(value.is_finite() && slope.is_finite() && slope >= 0.0, "{divergence:?}");
            }
        }
        // By hand, and at the ends of alpha.
        assert_close(ForwardKl.of(2.0_f64.ln(), 0.5).0, -0.5, 1e-12);
        assert_close(JensenShannon.of(0.0, 0.5).0, 0.0, 1e-12);
        assert_close(Alpha.of(0.3, 1e-9).0, 0.3, 1e-6);
        assert_close(Alpha.of(0.3, 1.0 - 1e-9).0, 1.0 + ForwardKl.of(0.3, 0.5).0, 1e-6);
        // The loss of pairs: the same as DPO's, and its slope by finite differences otherwise.
        let samples = [answer(0, true, 2, -2.0), answer(0, false, 3, -2.5)];
        let present = [spread(-1.5, 2), spread(-2.8, 3)];
        let of = |divergence, alpha, present: &[Vec<f32>]| {
            let options = DpoOptions { beta: 0.7, divergence, alpha, ..DpoOptions::default() };
            assert_eq!(options.problems(), [""; 0]);
            losses(&Dpo::new(options), &samples.each_ref(), present)
        };
        let plain = losses(
            &Dpo::new(DpoOptions { beta: 0.7, ..DpoOptions::default() }),
            &samples.each_ref(),
            &present,
        );
        let sum = |found: &[SampleLoss]| found.iter().map(|part| part.loss).sum::<f64>();
        assert_eq!(sum(&of(ReverseKl, None, &present)), sum(&plain));
        for (divergence, alpha) in [(ForwardKl, None), (JensenShannon, None), (Alpha, Some(0.5))] {
            let found = of(divergence, alpha, &present);
            for index in 0..2 {
                let moved = |shift: f32| {
                    let mut moved = present.clone();
                    moved[index][1] += shift;
                    sum(&of(divergence, alpha, &moved))
                };
                let wanted = (moved(1e-3) - moved(-1e-3)) / 2e-3;
                assert_close(found[index].slopes.logprobs[1].into(), wanted, 1e-3);
            }
        }
        let wrong = DpoOptions { alpha: Some(0.5), ..DpoOptions::default() };
        assert_eq!(wrong.problems().len(), 1);
        let wrong = DpoOptions { divergence: Alpha, alpha: Some(1.0), ..DpoOptions::default() };
        assert_eq!(wrong.problems().len(), 1);
    }

    #[test]
    fn an_answer_of_several_samples_is_their_sum() {
        let whole = [answer(0, true, 4, -2.0), answer(0, false, 3, -2.0)];
        let mut parts =
            [answer(0, true, 1, -0.5), answer(0, false, 3, -2.0), answer(0, true, 3, -1.5)];
        parts[0].preference = preference(0, true, 2);
        parts[2].preference = preference(0, true, 2);
        for loss in [PreferenceLoss::Sigmoid, PreferenceLoss::Ipo] {
            let dpo = Dpo::new(DpoOptions { loss, ..DpoOptions::default() });
            let present = [spread(-4.0, 4), spread(-3.0, 3)];
            let one = losses(&dpo, &whole.each_ref(), &present);
            let present = [spread(-1.0, 1), spread(-3.0, 3), spread(-3.0, 3)];
            let many = losses(&dpo, &parts.each_ref(), &present);
            let sum = |found: &[SampleLoss]| found.iter().map(|part| part.loss).sum::<f64>();
            assert_close(sum(&one), sum(&many), 1e-7);
            for part in [&many[0], &many[2]] {
                let (found, wanted) = (part.slopes.logprobs[1], one[0].slopes.logprobs[1]);
                assert_close(found.into(), wanted.into(), 1e-6);
            }
        }
    }

    #[test]
    fn through_a_decoder_the_gradient_is_the_derivative_of_the_loss() {
        let config = ModelConfig {
            vocab_size: 11,
            hidden_size: 16,
            intermediate_size: 24,
            head_dim: 8,
            num_attention_heads: 2,
            num_key_value_heads: 1,
            num_hidden_layers: 1,
            max_position_embeddings: 64,
            ..ModelConfig::default()
        };
        let mut parameters = initial_parameters(&config, Seed::from_u64(5));
        let before = initial_parameters(&config, Seed::from_u64(6));
        let model = |parameters: &Parameters, temperature| {
            let weights = Arc::new(Weights::new(&config, parameters.clone()));
            DecoderGradient::new(weights, temperature)
        };
        // Two pairs; the first answer of the second is two samples, one of them drawn among few tokens.
        let places = [(0, true, 1), (0, false, 1), (1, true, 2), (1, true, 2), (1, false, 1)];
        let sample = |(index, (pair, is_chosen, parts)): (usize, &(u64, bool, u32))| {
            let preference = preference(*pair, *is_chosen, *parts);
            let mut sample = Sample { preference, ..Sample::default() };
            sample.push_observed(*pair as u32, 0.0);
            for t in 1..5 + index as u32 {
                let token = (*pair as u32 + 3 * t + 2 * index as u32) % 11;
                let allowed = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10];
                match (t, index) {
                    (1, _) => sample.push_observed(token, 0.0),
                    (_, 2) => sample.push(token, 1.0, 0.0, 0.0, 0.0, PolicyVersion(0), &allowed),
                    _ => sample.push_observed(token, 1.0),
                }
            }
            sample
        };
        let mut samples: Vec<Sample> = places.iter().enumerate().map(sample).collect();
        fill_reference(&mut samples, model(&before, 0.7).at_base().as_ref(), 1000).unwrap();
        let samples: Vec<&Sample> = samples.iter().collect();
        let mode = LossAggregation::TokenMean;
        for loss in [PreferenceLoss::Sigmoid, PreferenceLoss::Ipo] {
            let dpo = Dpo::new(DpoOptions { beta: 0.4, loss, ..DpoOptions::default() });
            let at = |parameters: &Parameters| {
                let model = model(parameters, 0.7).at_base();
                measure_held_out(&samples, &dpo, mode, model.as_ref(), 1000).unwrap().0
            };
            // As the trainer makes it: told of all log-probabilities, then asked sample by sample.
            let prepared = model(&parameters, 0.7).prepare(&parameters);
            let present = prepared.logprobs(&samples).unwrap();
            let update = crate::testing::update(&samples, Some(&present));
            let begun = dpo.begin(&update);
            let batch = BatchWeight::of(&dpo, samples.iter().copied());
            let slopes = |index: usize, measured: Measured<'_>| {
                let scale = mode.scale(dpo.weight(samples[index]), batch);
                begun.loss(index, measured, scale).slopes
            };
            let mut gradient = vec![0.0; parameters.data.len()];
            prepared.accumulate(&samples, &slopes, &mut gradient, None).unwrap();
            let mut largest = 0.0_f64;
            for spec in parameters.specs.clone().iter() {
                for place in [0, spec.len() / 2, spec.len() - 1] {
                    let index = spec.offset + place;
                    let middle = parameters.data[index];
                    parameters.data[index] = middle + 1e-2;
                    let above = at(&parameters);
                    parameters.data[index] = middle - 1e-2;
                    let below = at(&parameters);
                    parameters.data[index] = middle;
                    largest = largest.max(f64::from(gradient[index]).abs());
                    assert_close(gradient[index].into(), (above - below) / 2e-2, 1e-2);
                }
            }
            assert!(largest > 0.05, "{largest}: too small to be compared");
        }
    }
}
