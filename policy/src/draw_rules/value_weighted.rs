//! What values say of tokens, added to what the policy says.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::registry::NamedOptions;
use spar_ops::elementwise::add_scaled;

use super::{DrawRule, RuleModel};
use crate::sampling::{SamplingOptions, truncate};

/// Options of [`ValueWeighted`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ValueWeightedOptions {
    /// Models whose logits are values of the next tokens: checkpoints of the same vocabulary. Default empty, and at least
    /// one has to be given.
    pub(super) values: Vec<String>,
    /// What the values of each are multiplied by, one number per model, -100 to 100. Default empty: 1 each.
    pub(super) weights: Vec<f32>,
    /// What all of them are multiplied by, -100 to 100; 0 draws from the policy alone. Default 1.
    pub(super) beta: f32,
    /// How many of the policy's most probable tokens can be drawn, equal ones at the border all can; at least 1. Default
    /// absent: all.
    pub(super) candidates: Option<usize>,
}

impl Default for ValueWeightedOptions {
    fn default() -> Self {
        Self { values: Vec::new(), weights: Vec::new(), beta: 1.0, candidates: None }
    }
}

impl NamedOptions for ValueWeightedOptions {
    fn problems(&self) -> Vec<String> {
        let Self { values, weights, beta, candidates } = self;
        let mut problems = Vec::new();
        let is_out = |number: &f32| !(-100.0..=100.0).contains(number);
        if values.iter().any(String::is_empty) {
            problems.push("values has an empty name, must be checkpoints".to_owned());
        }
        if !weights.is_empty() && weights.len() != values.len() {
            let (found, models) = (weights.len(), values.len());
            problems.push(format!("weights has {found} numbers, must be {models}, as values has"));
        }
        if let Some(weight) = weights.iter().find(|weight| is_out(weight)) {
            problems.push(format!("weights has {weight}, must be -100 to 100"));
        }
        if is_out(beta) {
            problems.push(format!("beta is {beta}, must be -100 to 100"));
        }
        if *candidates == Some(0) {
            problems.push("candidates is 0, must be at least 1".to_owned());
        }
        problems
    }
}

/// `z_v = m_v + beta sum_i w_i q_i(v)`: draws from `p(v) exp(beta sum_i w_i q_i(v))` of the policy's `p`, renormalised.
///
/// Value augmented sampling, Han et al. 2024 (arXiv 2405.06639), several values being composed by weights. `q_i(v)` is the
/// logit that a model gives to token `v`, read as the value of going on by it: one reading tells the values of all
/// tokens, where a head on states would have to read each candidate. `candidates` are the tokens that it scores.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ValueWeighted {
    options: ValueWeightedOptions,
}

impl ValueWeighted {
    /// What is missing is told.
    pub(super) fn new(options: ValueWeightedOptions) -> Result<Self, Vec<String>> {
        match options.values.is_empty() {
            true => Err(vec!["`values` has to name at least one checkpoint".to_owned()]),
            false => Ok(Self { options }),
        }
    }
}

impl DrawRule for ValueWeighted {
    fn name(&self) -> &'static str {
        "value_weighted"
    }

    fn models(&self) -> Vec<RuleModel> {
        self.options.values.iter().map(|value| RuleModel::new("values", value)).collect()
    }

    fn leaves_out(&self) -> bool {
        self.options.candidates.is_some()
    }

    fn leave_out(&self, logits: &[f32], _: &[&[f32]], stays: &mut [bool]) {
        let cut = SamplingOptions { top_k: self.options.candidates, ..SamplingOptions::default() };
        cut_by(&cut, logits, stays);
    }

    fn combine(&self, logits: &mut [f32], others: &[&[f32]]) {
        let ValueWeightedOptions { weights, beta, .. } = &self.options;
        for (model, values) in others.iter().enumerate() {
            let factor = beta * weights.get(model).copied().unwrap_or(1.0);
            if factor != 0.0 {
                add_scaled(logits, factor, values);
            }
        }
    }

    fn backward(&self, _: &[f32], _: &[&[f32]], _: &mut [f32]) {
        // The Jacobian is the identity.
    }
}

/// Marks what the cuts leave out.
pub(super) fn cut_by(cut: &SamplingOptions, logits: &[f32], stays: &mut [bool]) {
    if !cut.truncates() {
        return;
    }
    let (mut left, mut of_left) = (Vec::new(), logits.to_vec());
    truncate(cut, &mut left, &mut of_left);
    if !left.is_empty() {
        stays.fill(false);
        left.iter().for_each(|place| stays[*place as usize] = true);
    }
}
