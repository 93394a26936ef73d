//! What tuning changed of a small model, added to a large one.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::registry::NamedOptions;
use spar_ops::elementwise::add_scaled;

use super::{DrawRule, RuleModel};

/// Options of [`TunedDifference`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct TunedDifferenceOptions {
    /// The small model that was tuned: a checkpoint of the same vocabulary. Default absent, and has to be given.
    pub(super) tuned: Option<String>,
    /// The small model before that, a checkpoint of the same vocabulary, or `base`, the weights below the policy's adapter.
    /// Default absent, and has to be given.
    pub(super) untuned: Option<String>,
    /// How much of the difference is added, -100 to 100; 0 draws from the policy alone. Default 1.
    pub(super) weight: f32,
}

impl Default for TunedDifferenceOptions {
    fn default() -> Self {
        Self { tuned: None, untuned: None, weight: 1.0 }
    }
}

impl NamedOptions for TunedDifferenceOptions {
    fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        for (name, model) in [("tuned", &self.tuned), ("untuned", &self.untuned)] {
            if model.as_deref() == Some("") {
                problems.push(format!("{name} is empty, must be a checkpoint"));
            }
        }
        if !(-100.0..=100.0).contains(&self.weight) {
            problems.push(format!("weight is {}, must be -100 to 100", self.weight));
        }
        problems
    }
}

/// `z_v = m_v + weight (t_v - u_v)` of the policy's logits `m`, those of a tuned model `t` and of the same before that, `u`.
///
/// Proxy tuning, Liu et al. 2024 (arXiv 2401.08565), with weight 1; RAST (arXiv 2506.15710) with its `lambda` as weight;
/// DExperts, Liu et al. 2021 (arXiv 2105.03023), with an expert as `tuned` and an anti-expert as `untuned`.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct TunedDifference {
    tuned: String,
    untuned: String,
    weight: f32,
}

impl TunedDifference {
    /// What is missing is told.
    pub(super) fn new(options: TunedDifferenceOptions) -> Result<Self, Vec<String>> {
        let TunedDifferenceOptions { tuned, untuned, weight } = options;
        match (tuned, untuned) {
            (Some(tuned), Some(untuned)) => Ok(Self { tuned, untuned, weight }),
            (tuned, untuned) => {
                let missing = [("tuned", tuned), ("untuned", untuned)];
                let missing = missing.into_iter().filter(|(_, model)| model.is_none());
                Err(missing.map(|(name, _)| format!("`{name}` has to name a checkpoint")).collect())
            }
        }
    }
}

impl DrawRule for TunedDifference {
    fn name(&self) -> &'static str {
        "tuned_difference"
    }

    fn models(&self) -> Vec<RuleModel> {
        vec![RuleModel::new("tuned", &self.tuned), RuleModel::new("untuned", &self.untuned)]
    }

    fn combine(&self, logits: &mut [f32], others: &[&[f32]]) {
        if self.weight == 0.0 {
            return;
        }
        add_scaled(logits, self.weight, others[0]);
        add_scaled(logits, -self.weight, others[1]);
    }

    fn backward(&self, _: &[f32], _: &[&[f32]], _: &mut [f32]) {
        // The Jacobian is the identity.
    }
}
