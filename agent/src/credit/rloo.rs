//! RLOO: every trajectory is compared with the others of its group.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::registry::NamedOptions;
use spar_core::{Credit, Signals};

use super::moments::Moments;
use super::{AdvantageEstimator, BatchView, CreditError, GroupView, Singleton};

/// Options of [`Rloo`].
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RlooConfig {
    /// What the only trajectory of a group gets: `zero`, as verl's vectorised form has it, or `raw`, its return, as verl's
    /// scalar form has it. Default `zero`.
    pub singleton: Singleton,
}

impl NamedOptions for RlooConfig {
    fn problems(&self) -> Vec<String> {
        Vec::new()
    }
}

/// REINFORCE with a leave-one-out baseline (arXiv 2402.14740, equation 8).
///
/// `A_i = R_i - mean of the other R = n / (n - 1) (R_i - mean R)`, the same for every step of trajectory `i`. Nothing is divided by a
/// deviation. Returns that are not finite count in nothing and get 0.
#[derive(Debug, Clone, Default)]
pub struct Rloo {
    config: RlooConfig,
}

impl Rloo {
    /// An estimator with these options.
    pub fn new(config: RlooConfig) -> Self {
        Self { config }
    }

    fn trajectory_advantages(&self, group: &GroupView<'_>) -> Vec<f64> {
        let returns = group.returns();
        let moments = Moments::of(returns.iter().copied());
        let advantage = |value: f64| match moments.count() {
            _ if !value.is_finite() => 0.0,
            1 if self.config.singleton == Singleton::Raw => value,
            1 => 0.0,
            count => moments.difference(value) * count as f64 / (count - 1) as f64,
        };
        returns.into_iter().map(advantage).collect()
    }
}

impl AdvantageEstimator for Rloo {
    fn name(&self) -> &'static str {
        "rloo"
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
    fn advantages_equal_both_references() {
        for (name, singleton) in
            [("adv_rloo", Singleton::Raw), ("adv_rloo_vectorized", Singleton::Zero)]
        {
            let rloo = Rloo::new(RlooConfig { singleton });
            cases(name, |case, near| check_rows(case, near, &rloo, Rows::Whole));
        }
    }
}
