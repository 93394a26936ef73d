//! The distance to a reference model.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Log-ratios are held within this before they are exponentiated, as verl does; a token beyond it
/// has no gradient.
const MAX_LOG_RATIO: f64 = 20.0;
/// Estimates are held within this, as verl does; a token beyond it has no gradient.
const MAX_ESTIMATE: f64 = 10.0;

/// How a token's divergence from the reference model is estimated (Schulman, "Approximating KL
/// divergence", 2020), with `d = reference - logprob` at tokens the policy drew:
///
/// | estimator | value | derivative by `logprob` |
/// | --- | --- | --- |
/// | `k3` | `exp(d) - d - 1` | `1 - exp(d)` |
/// | `k2` | `d^2 / 2` | `-d` |
///
/// `k3` is GRPO's (arXiv 2402.03300, eq. 4): without bias, never negative, and of less variance
/// than `-d`. As a term of a loss, the derivative of `k2` is that of the divergence itself in the
/// mean, that of `k3` only near the reference. `-d` itself is not offered: in the mean its
/// derivative is zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum KlEstimator {
    /// `exp(d) - d - 1`.
    #[default]
    K3,
    /// `d^2 / 2`.
    K2,
}

impl KlEstimator {
    /// The estimate and its derivative by `logprob`; not finite where an argument is not.
    pub fn estimate(self, logprob: f64, reference: f64) -> (f64, f64) {
        let free = reference - logprob;
        match self {
            Self::K2 => (0.5 * free * free, -free),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{assert_close, golden, matrix};

    #[test]
    fn estimates_equal_the_golden_numbers() {
        let mut compared = 0;
        for case in golden("kl_penalty") {
            let estimator = match case["params"]["kind"].as_str().unwrap() {
                "k3" => KlEstimator::K3,
                "k2" => KlEstimator::K2,
                _ => continue,
            };
            let input = |name: &str| matrix(&case["inputs"][name]);
            let (logprobs, references) = (input("logprob"), input("ref_logprob"));
            let wanted = matrix(&case["outputs"]["kl"]);
            let slopes = matrix(&case["outputs"]["grad_logprob_of_sum"]);
            for (sample, logprobs) in logprobs.iter().enumerate() {
                for (t, logprob) in logprobs.iter().enumerate() {
                    let (value, slope) = estimator.estimate(*logprob, references[sample][t]);
                    assert_close(value, wanted[sample][t], 1e-8);
                    assert_close(slope, slopes[sample][t], 1e-8);
                    compared += 1;
                }
            }
        }
        assert_eq!(compared, 30);
    }

    #[test]
    fn the_slope_is_the_derivative() {
        for estimator in [KlEstimator::K2, KlEstimator::K3] {
            for reference in [-4.0, -1.5, -1.0, -0.7, 0.9] {
                let value = |logprob: f64| estimator.estimate(logprob, reference).0;
                let expected = (value(-1.0 + 1e-5) - value(-1.0 - 1e-5)) / 2e-5;
                assert_close(estimator.estimate(-1.0, reference).1, expected, 1e-8);
                assert!(value(-1.0) >= 0.0);
            }
            assert_eq!(estimator.estimate(-1.0, -1.0).0, 0.0);
            let (value, slope) = estimator.estimate(f64::NAN, -1.0);
            assert!(value.is_nan() && slope.is_nan());
        }
        assert_eq!(KlEstimator::K3.estimate(-9.0, -1.0), (10.0, 0.0));
    }
}
