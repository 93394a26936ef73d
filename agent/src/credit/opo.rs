//! OPO: a baseline in which long trajectories weigh more.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::registry::NamedOptions;
use spar_core::{Credit, Signals};

use super::{AdvantageEstimator, BatchView, CreditError, GroupView, Singleton};

/// Options of [`Opo`].
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct OpoConfig {
    /// What the only trajectory of a group gets. Default `zero`; verl's rule is `raw`.
    pub singleton: Singleton,
}

impl NamedOptions for OpoConfig {
    fn problems(&self) -> Vec<String> {
        Vec::new()
    }
}

/// On-policy RL with an optimal reward baseline (arXiv 2505.23585, in verl's form).
///
/// `A_i = R_i - sum_j len_j R_j / sum_j len_j`, `len` being sampled tokens; the same for every step. A group whose returns are
/// equal gets exactly 0, and the baseline is 0 where nothing was sampled. Returns that are not finite count in nothing and get 0.
#[derive(Debug, Clone, Default)]
pub struct Opo {
    config: OpoConfig,
}

impl Opo {
    /// An estimator with these options.
    pub fn new(config: OpoConfig) -> Self {
        Self { config }
    }

    fn trajectory_advantages(&self, group: &GroupView<'_>) -> Vec<f64> {
        let returns = group.returns();
        let lens = group.trajectories().map(|trajectory| trajectory.num_tokens() as f64);
        let weighed: Vec<(f64, f64)> =
            returns.iter().copied().zip(lens).filter(|(value, _)| value.is_finite()).collect();
        let all_equal = weighed.windows(2).all(|pair| pair[0].0 == pair[1].0);
        let total: f64 = weighed.iter().map(|(_, len)| len).sum();
        let sum: f64 = weighed.iter().map(|(value, len)| value * len).sum();
        let baseline = if total > 0.0 { sum / total } else { 0.0 };
        let advantage = |value: f64| match weighed.len() {
            _ if !value.is_finite() => 0.0,
            1 if self.config.singleton == Singleton::Raw => value,
            _ if all_equal => 0.0,
            _ => value - baseline,
        };
        returns.into_iter().map(advantage).collect()
    }
}

impl AdvantageEstimator for Opo {
    fn name(&self) -> &'static str {
        "opo"
    }

    fn estimate(&self, batch: &BatchView<'_>, _: &Signals) -> Result<Credit, CreditError> {
        let advantages = batch.groups().iter().flat_map(|group| self.trajectory_advantages(group));
        Ok(batch.credit_by_trajectory(advantages))
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_vectors::{Rows, cases, check_rows};
    use super::*;

    #[test]
    fn advantages_equal_the_reference() {
        let opo = Opo::new(OpoConfig { singleton: Singleton::Raw });
        cases("adv_opo", |case, near| check_rows(case, near, &opo, Rows::Whole));
    }
}
