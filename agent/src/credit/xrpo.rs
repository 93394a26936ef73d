//! XRPO: rare successes count more.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::registry::NamedOptions;
use spar_core::{Credit, Signal, Signals};

use super::error::refuse;
use super::{AdvantageEstimator, BatchView, CreditError, GroupView, Grpo, GrpoConfig};

/// Options of [`Xrpo`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct XrpoConfig {
    /// How much more a rare success weighs; 0 or more. Default 1.
    pub strength: f64,
    /// The most that it weighs more; 0 or more. Default 1: twice as much.
    pub most: f64,
    /// Options of the advantages that are changed. Default those of `grpo`.
    pub base: GrpoConfig,
}

impl Default for XrpoConfig {
    fn default() -> Self {
        Self { strength: 1.0, most: 1.0, base: GrpoConfig::default() }
    }
}

impl NamedOptions for XrpoConfig {
    fn problems(&self) -> Vec<String> {
        let mut problems = self.base.problems();
        for (name, value) in [("strength", self.strength), ("most", self.most)] {
            if !(value.is_finite() && value >= 0.0) {
                problems.push(format!("{name} is {value}, must be 0 or more"));
            }
        }
        problems
    }
}

/// Novelty-guided sharpening (XRPO, arXiv 2510.06672; reconstructed from its abstract and a summary).
///
/// With `s_i` the mean log-probability of a trajectory's tokens and `s` the mean over its group, one with `A_i > 0` takes `A_i (1 + min(max(strength (e^{s - s_i} - 1), 0), most))`: the less likely the policy finds it, the more. Others keep `A_i`, which is GRPO's.
#[derive(Debug, Clone)]
pub struct Xrpo {
    config: XrpoConfig,
    base: Grpo,
}

impl Xrpo {
    /// An estimator with these options.
    ///
    /// # Errors
    ///
    /// [`CreditError::Row`] lists the options that are outside their range.
    pub fn new(config: XrpoConfig) -> Result<Self, CreditError> {
        refuse("xrpo", config.problems())?;
        let base = Grpo::new(config.base.clone())?;
        Ok(Self { config, base })
    }

    fn sharpened(&self, advantage: f64, own: f64, mean: f64) -> f64 {
        let novelty = self.config.strength * ((mean - own).exp() - 1.0);
        let more = novelty.max(0.0).min(self.config.most);
        if advantage > 0.0 && more.is_finite() { advantage * (1.0 + more) } else { advantage }
    }
}

impl AdvantageEstimator for Xrpo {
    fn name(&self) -> &'static str {
        "xrpo"
    }

    fn needs(&self) -> &[Signal] {
        &[Signal::Old]
    }

    fn estimate(&self, batch: &BatchView<'_>, signals: &Signals) -> Result<Credit, CreditError> {
        let old = batch.stream(signals, Signal::Old)?;
        let of_batch = self.base.of_batch(batch);
        let mut first = 0;
        let mut all = Vec::with_capacity(old.len());
        for group in batch.groups() {
            let of_group = |group: &GroupView<'_>| self.base.trajectory_advantages(group, of_batch);
            let advantages = of_group(group);
            let logprobs = &old[first..first + group.num_trajectories()];
            first += group.num_trajectories();
            let means: Vec<f64> =
                logprobs.iter().map(|it| it.iter().sum::<f64>() / it.len().max(1) as f64).collect();
            let mean = means.iter().sum::<f64>() / means.len().max(1) as f64;
            let both = advantages.into_iter().zip(means);
            all.extend(both.map(|(advantage, own)| self.sharpened(advantage, own, mean)));
        }
        Ok(batch.credit_by_trajectory(all))
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_vectors::returns_view;
    use super::*;

    #[test]
    fn rare_successes_count_more_up_to_a_bound() {
        let batch = BatchView::from(returns_view([1.0, 1.0, 1.0, 0.0]));
        let mut signals = Signals::default();
        signals.insert(Signal::Old, vec![vec![-0.2], vec![-1.0], vec![-9.0], vec![-3.0]]);
        let found = Xrpo::new(XrpoConfig::default()).unwrap().estimate(&batch, &signals).unwrap();
        let grpo = Grpo::default().estimate(&batch, &signals).unwrap();
        let factor = |index| found.advantages.at(index, 0, 0) / grpo.advantages.at(index, 0, 0);
        // The mean is -3.3.
        assert_eq!([factor(0), factor(1), factor(3)], [1.0, 1.0, 1.0]);
        assert!((factor(2) - 2.0).abs() < 1e-12, "the most: {}", factor(2));
        let mild = XrpoConfig { strength: 1e-3, ..XrpoConfig::default() };
        let found = Xrpo::new(mild).unwrap().estimate(&batch, &signals).unwrap();
        let factor = found.advantages.at(2, 0, 0) / grpo.advantages.at(2, 0, 0);
        assert!((factor - (1.0 + 1e-3 * (5.7_f64.exp() - 1.0))).abs() < 1e-9, "{factor}");
    }
}
