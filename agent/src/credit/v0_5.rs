//! V_0.5: a prior of success and the mean of few rollouts as one baseline.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::registry::NamedOptions;
use spar_core::{Credit, Signal, Signals};

use super::predicted::of_turns;
use super::{AdvantageEstimator, BatchView, CreditError};

/// How near to 0 and 1 a prior may be: what is sure has no variance, and nothing could ever contradict it.
const SURE: f64 = 0.01;

/// Options of [`FusedPrior`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct FusedPriorConfig {
    /// From what it is told how far the prior is off. Default `batch`.
    pub error_of: PriorError,
}

impl NamedOptions for FusedPriorConfig {}

/// From what it is told how far the prior is off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PriorError {
    /// All groups of the batch: the mean of what is beyond the noise.
    #[default]
    Batch,
    /// The group alone.
    Group,
}

/// The baseline of V_0.5 (arXiv 2603.10848): a prior and the mean of a group's returns, weighed by how far off each is expected to be.
///
/// ```text
/// A_i = R_i - b,   b = w v + (1 - w) m,   w = noise / (noise + bias^2),   noise = v (1 - v) / n
/// batch: bias^2 = max(0, mean over groups of ((m - v)^2 - noise))
/// group: bias^2 = max(0, (m - v)^2 - noise)
/// ```
///
/// `m` is the mean of the group's `n` returns, which are taken to be from 0 to 1, and `v` the prior, the mean over the group of what a predictor says before the first turn, such as `v0`, kept within 0.01 and 0.99. A group without a finite return gets 0.
///
/// Reconstructed from the abstract: the shrinkage with `group` is how a summary has it; by `batch` the squared error of the baseline is no greater than that of the prior and that of the mean, as far as the groups of a batch are alike. The test that
/// asks for more rollouts is the sampler `v0_5`'s.
#[derive(Debug, Clone, Copy, Default)]
pub struct FusedPrior {
    config: FusedPriorConfig,
}

/// What is known of a group.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Known {
    prior: f64,
    mean: f64,
    noise: f64,
}

impl Known {
    fn of(prior: f64, returns: &[f64]) -> Option<Self> {
        let finite: Vec<f64> = returns.iter().copied().filter(|it| it.is_finite()).collect();
        if finite.is_empty() {
            return None;
        }
        let prior = if prior.is_finite() { prior.clamp(SURE, 1.0 - SURE) } else { 0.5 };
        let count = finite.len() as f64;
        let mean = finite.iter().sum::<f64>() / count;
        Some(Self { prior, mean, noise: prior * (1.0 - prior) / count })
    }

    /// How far the prior is off, as far as that is no noise; below 0 where it is less than that.
    fn excess(&self) -> f64 {
        (self.mean - self.prior).powi(2) - self.noise
    }

    fn baseline(&self, squared_bias: f64) -> f64 {
        let weight = self.noise / (self.noise + squared_bias.max(0.0));
        weight * self.prior + (1.0 - weight) * self.mean
    }
}

impl FusedPrior {
    /// An estimator with these options.
    pub fn new(config: FusedPriorConfig) -> Self {
        Self { config }
    }

    /// The baseline of every group; absent where nothing is known of one.
    fn baselines(&self, groups: &[Option<Known>]) -> Vec<Option<f64>> {
        let known: Vec<&Known> = groups.iter().flatten().collect();
        let sum: f64 = known.iter().map(|known| known.excess()).sum();
        let of_batch = sum / known.len().max(1) as f64;
        let baseline = |known: &Known| match self.config.error_of {
            PriorError::Batch => known.baseline(of_batch),
            PriorError::Group => known.baseline(known.excess()),
        };
        groups.iter().map(|group| group.as_ref().map(baseline)).collect()
    }
}

impl AdvantageEstimator for FusedPrior {
    fn name(&self) -> &'static str {
        "v0_5"
    }

    fn needs(&self) -> &[Signal] {
        &[Signal::StateValues]
    }

    fn estimate(&self, batch: &BatchView<'_>, signals: &Signals) -> Result<Credit, CreditError> {
        let told = of_turns(batch, signals, Signal::StateValues)?;
        let mut told = batch.trajectories().zip(told).map(|(trajectory, told)| {
            // Of a redacted episode a predictor says nothing.
            let with_tokens = trajectory.steps.iter().position(|step| step.num_tokens > 0);
            with_tokens.filter(|_| !trajectory.episode.is_redacted).map(|turn| told[turn])
        });
        let groups: Vec<Option<Known>> = batch
            .groups()
            .iter()
            .map(|group| {
                let returns = group.returns();
                let priors: Vec<f64> = told.by_ref().take(returns.len()).flatten().collect();
                let prior = match priors.len() {
                    0 => 0.5,
                    count => priors.iter().sum::<f64>() / count as f64,
                };
                Known::of(prior, &returns)
            })
            .collect();
        let baselines = self.baselines(&groups);
        let advantages = batch.groups().iter().zip(baselines).flat_map(|(group, baseline)| {
            let advantage = move |value: f64| match baseline {
                Some(baseline) if value.is_finite() => value - baseline,
                _ => 0.0,
            };
            group.returns().into_iter().map(advantage)
        });
        Ok(batch.credit_by_trajectory(advantages))
    }
}

#[cfg(test)]
mod tests {
    use rand::RngExt;
    use spar_core::Seed;

    use super::super::GroupView;
    use super::super::test_vectors::step_of;
    use super::*;

    /// Mean squared errors of the prior, the mean of the rollouts and the baseline, of groups whose priors are so far off.
    fn errors(error_of: PriorError, rollouts: usize, off: f64) -> [f64; 3] {
        let mut rng = Seed::from_u64(7).rng();
        let mut groups = Vec::new();
        for _ in 0..4_000 {
            let truth: f64 = rng.random_range(0.05..0.95);
            let returns: Vec<f64> =
                (0..rollouts).map(|_| f64::from(u8::from(rng.random_bool(truth)))).collect();
            let prior = truth + off * rng.random_range(-1.0..1.0);
            groups.push((truth, Known::of(prior, &returns)));
        }
        let known: Vec<Option<Known>> = groups.iter().map(|(_, known)| *known).collect();
        let baselines = FusedPrior::new(FusedPriorConfig { error_of }).baselines(&known);
        let mean = |of: &dyn Fn(usize) -> f64| {
            (0..groups.len()).map(|it| (of(it) - groups[it].0).powi(2)).sum::<f64>()
                / groups.len() as f64
        };
        [
            mean(&|it| known[it].unwrap().prior),
            mean(&|it| known[it].unwrap().mean),
            mean(&|it| baselines[it].unwrap()),
        ]
    }

    #[test]
    fn the_fused_baseline_errs_no_more_than_prior_and_mean() {
        for rollouts in [2, 4, 8, 16] {
            for off in [0.05, 0.1, 0.2, 0.4, 0.8] {
                let [prior, mean, fused] = errors(PriorError::Batch, rollouts, off);
                let least = prior.min(mean);
                assert!(fused <= 1.02 * least, "{rollouts}, {off}: {fused} of {prior}, {mean}");
            }
        }
        let [prior, mean, fused] = errors(PriorError::Batch, 4, 0.4);
        assert!(fused < 0.8 * prior.min(mean), "{fused} of {prior}, {mean}");
        let [_, mean, alone] = errors(PriorError::Group, 4, 0.2);
        assert!(alone < mean);
    }

    #[test]
    fn returns_are_compared_with_what_prior_and_group_say_together() {
        let mut group = GroupView::default();
        for value in [1.0, 0.0, 0.0, f64::NAN] {
            group.push([step_of(value, 2)]);
        }
        let batch = BatchView::from(group);
        let estimate = |prior: f64, error_of| {
            let mut signals = Signals::default();
            signals.insert(Signal::StateValues, vec![vec![prior; 2]; 4]);
            let fused = FusedPrior::new(FusedPriorConfig { error_of });
            let advantages = fused.estimate(&batch, &signals).unwrap().advantages;
            [0, 1, 3].map(|trajectory| advantages.at(trajectory, 0, 0))
        };
        // The mean is 1/3: nothing speaks against a prior of one half, and all against one of 0.99.
        for error_of in [PriorError::Batch, PriorError::Group] {
            assert_eq!(estimate(0.5, error_of), [0.5, -0.5, 0.0]);
            let [won, lost, none] = estimate(5.0, error_of);
            assert!((won - lost - 1.0).abs() < 1e-12 && none == 0.0);
            assert!((won - 2.0 / 3.0).abs() < 0.01, "{won}");
        }
    }
}
