//! The distance to a reference model.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::bounds::positive;
use super::{MAX_LOG_RATIO, PolicyLosses, PolicyTokens, Tally};

/// Estimates are held within this, as verl does; a token beyond it has no gradient.
const MAX_ESTIMATE: f64 = 10.0;

/// How a token's divergence from the reference model is estimated (Schulman, "Approximating KL
/// divergence", 2020), with `d = reference - logprob` at tokens the policy drew:
///
/// | estimator | value | derivative by `logprob` |
/// | --- | --- | --- |
/// | `k1` | `-d` | `1` |
/// | `abs` | `\|d\|` | `-sign(d)` |
/// | `k2` | `d^2 / 2` | `-d` |
/// | `k3` | `exp(d) - d - 1` | `1 - exp(d)` |
/// | `k1+`, `abs+`, `k3+` | as without `+` | `-d` |
///
/// `k3` is GRPO's (arXiv 2402.03300, eq. 4): without bias, never negative, and of less variance
/// than `-d`. As a term of a loss, the derivative of `k2` is that of the divergence itself in the
/// mean, that of `k3` only near the reference, and that of `k1` is zero in the mean; so the forms with `+` take their value
/// from one and their derivative from the other, as verl's `kl_penalty` does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum KlEstimator {
    /// `exp(d) - d - 1`.
    #[default]
    #[serde(alias = "low_var_kl")]
    K3,
    /// `d^2 / 2`.
    #[serde(alias = "mse", alias = "k2+", alias = "mse+")]
    K2,
    /// `-d`.
    #[serde(alias = "kl")]
    K1,
    /// `|d|`.
    Abs,
    /// The value of `k1`, the derivative of `k2`.
    #[serde(rename = "k1+", alias = "kl+")]
    K1Plus,
    /// The value of `abs`, the derivative of `k2`.
    #[serde(rename = "abs+")]
    AbsPlus,
    /// The value of `k3`, the derivative of `k2`.
    #[serde(rename = "k3+", alias = "low_var_kl+")]
    K3Plus,
}

impl KlEstimator {
    /// The estimate and its derivative by `logprob`; not finite where an argument is not.
    pub fn estimate(self, logprob: f64, reference: f64) -> (f64, f64) {
        let free = reference - logprob;
        match self {
            Self::K1 => (-free, if free.is_nan() { free } else { 1.0 }),
            Self::Abs => (free.abs(), if free == 0.0 { 0.0 } else { -free.signum() }),
            Self::K2 => (0.5 * free * free, -free),
            Self::K1Plus => (-free, -free),
            Self::AbsPlus => (free.abs(), -free),
            Self::K3Plus => (Self::K3.estimate(logprob, reference).0, -free),
            Self::K3 => {
                let d = free.clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO);
                let value = d.exp_m1() - d;
                let is_beyond = free.abs() > MAX_LOG_RATIO || value > MAX_ESTIMATE;
                // NaN must not hide behind a comparison that is false.
                let value = if value.is_nan() { value } else { value.min(MAX_ESTIMATE) };
                (value, if is_beyond { 0.0 } else { -d.exp_m1() })
            }
        }
    }
}

/// A divergence from a reference model, as a term of the loss of any policy objective.
///
/// `l = l_policy + weight k`, over all tokens that are left by a correction, whatever they weigh; with `importance`
/// `weight k r`, where `r` is the ratio of the objective: the divergence of the present policy where others sampled (TRL's
/// `use_bias_correction_kl`, DeepSeek-V3.2). Sources: InstructGPT, arXiv 2203.02155; GRPO, arXiv 2402.03300, equation 3.
///
/// Metric: `kl_reference`, its mean over tokens, before `weight`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct KlOptions {
    /// What it weighs; positive. Default 0.001, verl's.
    pub weight: f64,
    /// How it is estimated. Default `k3`.
    pub estimator: KlEstimator,
    /// Whether the estimate is multiplied by the ratio. Default false.
    pub importance: bool,
    /// Lets the weight follow the divergence from update to update. Default absent: it stays.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub adaptive: Option<AdaptiveKl>,
}

impl Default for KlOptions {
    fn default() -> Self {
        let (weight, estimator) = (0.001, KlEstimator::default());
        Self { weight, estimator, importance: false, adaptive: None }
    }
}

impl KlOptions {
    /// All that is wrong with the values; empty when nothing is.
    pub fn problems(&self) -> Vec<String> {
        let adaptive = self.adaptive.iter().flat_map(AdaptiveKl::problems);
        let problems = positive("weight", self.weight).into_iter().chain(adaptive);
        problems.map(|problem| format!("kl: {problem}")).collect()
    }

    /// Adds the term, of this weight, to the loss of a sample's tokens.
    pub(super) fn add(
        &self,
        tokens: &PolicyTokens,
        weight: f64,
        sum: &mut PolicyLosses,
        tally: &mut Tally,
    ) {
        for index in 0..tokens.len() {
            let token = tokens.token(index);
            let (mut value, mut slope) =
                self.estimator.estimate(token.logprob, tokens.reference[index]);
            if self.importance {
                let (log_ratio, has_slope) = token.log_ratio();
                let ratio = log_ratio.exp();
                slope = slope * ratio + if has_slope { value * ratio } else { 0.0 };
                value *= ratio;
            }
            sum.loss += weight * value;
            sum.slopes[index] += weight * slope;
            tally.add_mean("kl_reference", value);
        }
    }
}

/// Options of a weight that follows the divergence, so that this stays near a target.
///
/// After every update, `weight = weight (1 + clip(kl / target - 1, -0.2, 0.2) samples / horizon)`, `kl` being the update's
/// `kl_reference` (arXiv 1909.08593, section 2.2). The weight is part of a checkpoint.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AdaptiveKl {
    /// The divergence that is wanted, in nats; positive. Default 0.1, verl's.
    pub target: f64,
    /// Samples in which the weight can change by a fifth; positive. Default 10000, verl's.
    pub horizon: f64,
}

impl Default for AdaptiveKl {
    fn default() -> Self {
        Self { target: 0.1, horizon: 1e4 }
    }
}

impl AdaptiveKl {
    /// The weight after an update of so many samples that had this divergence.
    pub fn next(&self, weight: f64, kl: f64, samples: f64) -> f64 {
        let error = (kl / self.target - 1.0).clamp(-0.2, 0.2);
        weight * (1.0 + error * samples / self.horizon)
    }

    /// All that is wrong with the values; empty when nothing is.
    pub fn problems(&self) -> Vec<String> {
        let all = [("adaptive.target", self.target), ("adaptive.horizon", self.horizon)];
        all.into_iter().filter_map(|(name, value)| positive(name, value)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{assert_close, each_case, matrix, vector};

    #[test]
    fn estimates_equal_the_golden_numbers() {
        each_case("kl_penalty", |case| {
            let estimator: KlEstimator =
                serde_json::from_value(case.params["kind"].clone()).unwrap();
            let input = |name: &str| matrix(&case.inputs[name]);
            let (logprobs, references) = (input("logprob"), input("ref_logprob"));
            let wanted = matrix(&case.outputs["kl"]);
            let slopes = matrix(&case.outputs["grad_logprob_of_sum"]);
            for (sample, logprobs) in logprobs.iter().enumerate() {
                for (t, logprob) in logprobs.iter().enumerate() {
                    let (value, slope) = estimator.estimate(*logprob, references[sample][t]);
                    case.assert_close(value, wanted[sample][t]);
                    case.assert_close(slope, slopes[sample][t]);
                }
            }
        });
    }

    #[test]
    fn the_coefficient_follows_as_in_the_golden_numbers() {
        each_case("adaptive_kl_controller", |case| {
            let number = |name: &str| case.params[name].as_f64().unwrap();
            let mut value = number("init_kl_coef");
            let controller = AdaptiveKl { target: number("target_kl"), horizon: number("horizon") };
            assert!(controller.problems().is_empty());
            let steps = vector(&case.inputs["n_steps"]);
            let wanted = vector(&case.outputs["values"]);
            for ((kl, steps), wanted) in
                vector(&case.inputs["current_kl"]).iter().zip(steps).zip(wanted)
            {
                value = controller.next(value, *kl, steps);
                case.assert_close(value, wanted);
            }
        });
    }

    #[test]
    fn the_derivative_is_that_of_the_value_where_it_is_not_taken_from_another() {
        use KlEstimator::{Abs, K1, K2, K3};
        for estimator in [K1, Abs, K2, K3] {
            for reference in [-4.0, -1.5, -0.7, 0.9] {
                let value = |logprob: f64| estimator.estimate(logprob, reference).0;
                let expected = (value(-1.0 + 1e-5) - value(-1.0 - 1e-5)) / 2e-5;
                assert_close(estimator.estimate(-1.0, reference).1, expected, 1e-8);
            }
            assert_eq!(estimator.estimate(-1.0, -1.0).0, 0.0);
            let (value, slope) = estimator.estimate(f64::NAN, -1.0);
            assert!(value.is_nan() && slope.is_nan());
        }
        assert_eq!(K3.estimate(-9.0, -1.0), (10.0, 0.0));
        assert_eq!(KlEstimator::K3Plus.estimate(-9.0, -1.0), (10.0, -8.0));
    }
}
