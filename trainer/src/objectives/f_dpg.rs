//! Policy gradients that lessen a divergence from a target.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::registry::NamedOptions;

use super::bounds::positive;
use super::{MAX_LOG_RATIO, Needs, PolicyBatch, PolicyLoss, PolicyLosses, PolicyTokens, Tally};

/// A divergence of the policy `pi` from a target `p`, by `f'(u)`, `u = pi / p`, up to a constant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TargetDivergence {
    /// `KL(pi || p)`: `log u`. That of RLHF.
    ReverseKl,
    /// `KL(p || pi)`: `-1 / u`. That of distributional control.
    ForwardKl,
    /// `log(2 u / (1 + u))`.
    #[default]
    JensenShannon,
    /// `sign(u - 1) / 2`.
    TotalVariation,
}

/// Where the normaliser `Z` of the target comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PartitionOf {
    /// The mean of `pi_ref / pi_old exp(A / beta)` over the answers to a prompt, so that any baseline in `A` cancels.
    #[default]
    Group,
    /// Advantages are rewards less `beta log Z` already.
    Known,
}

/// Options of [`FDpg`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct FDpgOptions {
    /// The temperature of the target; positive. Default 1.
    pub beta: f64,
    /// Which divergence. Default `jensen_shannon`, the paper's best.
    pub divergence: TargetDivergence,
    /// Where the target's normaliser comes from. Default `group`.
    pub partition: PartitionOf,
}

impl Default for FDpgOptions {
    fn default() -> Self {
        Self {
            beta: 1.0,
            divergence: TargetDivergence::default(),
            partition: PartitionOf::default(),
        }
    }
}

impl NamedOptions for FDpgOptions {
    fn problems(&self) -> Vec<String> {
        positive("beta", self.beta).into_iter().collect()
    }
}

/// Policy gradients that lessen `D_f(pi || p)` for the target `p(y) = pi_ref(y) exp(A(y) / beta) / Z` (f-DPG, arXiv 2302.08215, theorem 1): `l = sg[f'(pi / p) - b] sum_t log pi(y_t)`, the pseudo-reward being `-f'`
/// and `b` its mean over the answers to a prompt.
///
/// An answer's advantage is the mean of its tokens'; `log(pi / p)` is held within 20. Right on policy: what was sampled by other weights is not corrected for. Metric: `log_target_ratio`, the mean of `log(pi / p)`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FDpg {
    options: FDpgOptions,
}

impl FDpg {
    /// The objective with these options.
    pub fn new(options: FDpgOptions) -> Self {
        Self { options }
    }

    /// `f'(u)` at `log u`.
    fn derivative(&self, log_ratio: f64) -> f64 {
        let log_ratio = log_ratio.clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO);
        match self.options.divergence {
            TargetDivergence::ReverseKl => log_ratio,
            TargetDivergence::ForwardKl => -(-log_ratio).exp(),
            TargetDivergence::JensenShannon => {
                std::f64::consts::LN_2 - super::sigmoid::softplus(-log_ratio)
            }
            TargetDivergence::TotalVariation if log_ratio == 0.0 => 0.0,
            TargetDivergence::TotalVariation => 0.5 * log_ratio.signum(),
        }
    }
}

fn sum(values: &[f64]) -> f64 {
    values.iter().sum()
}

impl PolicyLoss for FDpg {
    fn name(&self) -> &'static str {
        "f_dpg"
    }

    fn needs(&self) -> Needs {
        Needs { reference: true, present: true, groups: true, ..Needs::default() }
    }

    fn has_gradient(&self, sample: &spar_core::Sample) -> bool {
        sample.num_weighed() > 0
    }

    fn takes_mean_advantages(&self) -> bool {
        false
    }

    /// The pseudo-reward over its baseline, and the log-ratio to the target.
    fn notes(&self, batch: &PolicyBatch<'_>) -> Vec<Vec<f64>> {
        let FDpgOptions { beta, partition, .. } = self.options;
        let mut notes = vec![vec![0.0; 2]; batch.samples.len()];
        for members in batch.by_group() {
            let tilt = |index: &usize| {
                let tokens = &batch.samples[*index];
                sum(&tokens.reference) + tokens.mean_advantage() / beta
            };
            let log_z = match partition {
                PartitionOf::Known => 0.0,
                PartitionOf::Group => {
                    let of = |index: &usize| tilt(index) - sum(&batch.samples[*index].old);
                    let logs: Vec<f64> = members.iter().map(of).collect();
                    let most = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                    let mean =
                        logs.iter().map(|it| (it - most).exp()).sum::<f64>() / logs.len() as f64;
                    most + mean.ln()
                }
            };
            let log_ratio =
                |index: &usize| sum(&batch.samples[*index].detached) - (tilt(index) - log_z);
            let derivatives: Vec<f64> =
                members.iter().map(|index| self.derivative(log_ratio(index))).collect();
            let baseline = derivatives.iter().sum::<f64>() / derivatives.len().max(1) as f64;
            for (index, derivative) in members.iter().zip(derivatives) {
                notes[*index] = vec![derivative - baseline, log_ratio(index)];
            }
        }
        notes
    }

    fn loss(&self, tokens: &PolicyTokens, notes: &[f64], tally: &mut Tally) -> PolicyLosses {
        let [slope, log_ratio] = notes else { unreachable!("as they were noted") };
        tally.add_mean("log_target_ratio", *log_ratio);
        PolicyLosses::linear(tokens, 0.0, *slope)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pseudo_rewards_are_those_of_the_divergences() {
        use TargetDivergence::{ForwardKl, JensenShannon, ReverseKl, TotalVariation};
        let of = |divergence, ratio: f64| {
            FDpg::new(FDpgOptions { divergence, ..FDpgOptions::default() }).derivative(ratio.ln())
        };
        for ratio in [0.2_f64, 0.5, 1.0, 3.0] {
            assert!((of(ReverseKl, ratio) - ratio.ln()).abs() < 1e-12);
            assert!((of(ForwardKl, ratio) + 1.0 / ratio).abs() < 1e-12);
            let js = (2.0 * ratio / (1.0 + ratio)).ln();
            assert!((of(JensenShannon, ratio) - js).abs() < 1e-12);
        }
        assert_eq!([0.5, 1.0, 2.0].map(|it| of(TotalVariation, it)), [-0.5, 0.0, 0.5]);
        assert!(of(ForwardKl, 0.0).is_finite());
        assert_eq!(FDpgOptions { beta: 0.0, ..FDpgOptions::default() }.problems().len(), 1);
    }
}
