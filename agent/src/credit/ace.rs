//! ACE: errors that the policy has become sure of weigh more.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::registry::NamedOptions;
use spar_core::{Credit, Signal, Signals};

use super::error::refuse;
use super::{AdvantageEstimator, BatchView, CreditError, GroupView, Grpo, GrpoConfig};

/// Options of [`Ace`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AceConfig {
    /// How much more errors weigh, at least 0. Default 1.
    pub strength: f64,
    /// Whether confidence is a mean over sampled tokens, not a sum. Default true.
    pub per_token: bool,
    /// Options of the advantages that are changed. Default those of `grpo`.
    pub base: GrpoConfig,
}

impl Default for AceConfig {
    fn default() -> Self {
        Self { strength: 1.0, per_token: true, base: GrpoConfig::default() }
    }
}

impl NamedOptions for AceConfig {
    fn problems(&self) -> Vec<String> {
        let mut problems = self.base.problems();
        if !(self.strength.is_finite() && self.strength >= 0.0) {
            problems.push(format!("strength is {}, must be at least 0", self.strength));
        }
        problems
    }
}

/// An asymmetric confidence penalty on errors (ACE, arXiv 2602.21420), reconstructed from its abstract.
///
/// `c_i = log pi(y_i) - log pi_ref(y_i)` says how much surer of an episode's tokens the policy is than the reference model. A trajectory with
/// `A_i < 0` takes `A_i (1 + strength softplus(c_i))`, others keep `A_i`. Assumed: the form of the factor, the mean over tokens, and that `A_i` is GRPO's.
#[derive(Debug, Clone)]
pub struct Ace {
    config: AceConfig,
    base: Grpo,
}

impl Ace {
    /// An estimator with these options.
    ///
    /// # Errors
    ///
    /// [`CreditError::Row`] lists the options that are outside their range.
    pub fn new(config: AceConfig) -> Result<Self, CreditError> {
        refuse("ace", config.problems())?;
        let base = Grpo::new(config.base.clone())?;
        Ok(Self { config, base })
    }

    fn factor(&self, old: &[f64], reference: &[f64]) -> f64 {
        let sum: f64 = old.iter().zip(reference).map(|(old, reference)| old - reference).sum();
        let confidence = match self.config.per_token {
            true => sum / old.len().max(1) as f64,
            false => sum,
        };
        // ln (1 + e^c), which does not overflow.
        let softplus = confidence.max(0.0) + (-confidence.abs()).exp().ln_1p();
        let factor = 1.0 + self.config.strength * softplus;
        if factor.is_finite() { factor } else { 1.0 }
    }
}

impl AdvantageEstimator for Ace {
    fn name(&self) -> &'static str {
        "ace"
    }

    fn needs(&self) -> &[Signal] {
        &[Signal::Old, Signal::Reference]
    }

    fn estimate(&self, batch: &BatchView<'_>, signals: &Signals) -> Result<Credit, CreditError> {
        let old = batch.stream(signals, Signal::Old)?;
        let reference = batch.stream(signals, Signal::Reference)?;
        let of_batch = self.base.of_batch(batch);
        let of_group = |group: &GroupView<'_>| self.base.trajectory_advantages(group, of_batch);
        let advantages = batch.groups().iter().flat_map(of_group).zip(old.iter().zip(reference));
        let changed = advantages.map(|(advantage, (old, reference))| match advantage < 0.0 {
            true => advantage * self.factor(old, reference),
            false => advantage,
        });
        Ok(batch.credit_by_trajectory(changed))
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_vectors::returns_view;
    use super::*;

    #[test]
    fn errors_weigh_more_the_surer_they_are() {
        let batch = BatchView::from(returns_view([1.0, 0.0, 0.0, 0.0]));
        let ace = Ace::new(AceConfig::default()).unwrap();
        let mut signals = Signals::default();
        signals.insert(Signal::Reference, vec![vec![-1.0]; 4]);
        signals.insert(Signal::Old, vec![vec![-0.1], vec![-3.0], vec![-1.0], vec![-0.1]]);
        let found = ace.estimate(&batch, &signals).unwrap().advantages;
        let grpo = Grpo::default().estimate(&batch, &signals).unwrap().advantages;
        let at = |index| found.at(index, 0, 0);
        assert_eq!(at(0), grpo.at(0, 0, 0));
        assert!(at(3) < at(2) && at(2) < at(1) && at(1) < grpo.at(1, 0, 0));
        let factor = at(2) / grpo.at(2, 0, 0);
        assert!((factor - (1.0 + 2.0_f64.ln())).abs() < 1e-12, "{factor}");
    }
}
