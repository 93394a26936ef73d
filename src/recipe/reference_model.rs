//! Which model the policy is held to, and when it is replaced.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Recipe;

/// A model that takes part in a reference model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SoupMember {
    /// The folder of a checkpoint of the same shape as the policy.
    pub path: PathBuf,
    /// What its weights count among those of the others; above 0. Default 1.
    #[serde(default = "one")]
    pub weight: f64,
}

fn one() -> f64 {
    1.0
}

/// When the reference model becomes the present policy: the hard resets of ProRL (arXiv 2505.24864, section 3.2).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ReferenceResetConfig {
    /// Every so many iterations; at least 1. Default absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub every: Option<u64>,
    /// Behind so many iterations whose success was not better than the best one before by `margin`; at least 1. Default absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patience: Option<u64>,
    /// By how much success has to be better, 0 to 1; of `patience` alone. Default 0.01.
    pub margin: f64,
}

impl Default for ReferenceResetConfig {
    fn default() -> Self {
        Self { every: None, patience: None, margin: 0.01 }
    }
}

impl ReferenceResetConfig {
    fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        for (name, value) in [("every", self.every), ("patience", self.patience)] {
            if value == Some(0) {
                problems.push(format!("{name} is 0, must be at least 1 or absent"));
            }
        }
        if self.every.is_none() && self.patience.is_none() {
            problems.push("set every or patience, or leave it out".to_owned());
        }
        if !(0.0..=1.0).contains(&self.margin) {
            problems.push(format!("margin is {}, must be 0 to 1", self.margin));
        }
        if self.patience.is_none() && self.margin != Self::default().margin {
            problems.push("margin has no effect without patience".to_owned());
        }
        problems
    }
}

/// All that is wrong with what a stage says of its reference model.
pub(super) fn reference_problems(
    soup: &[SoupMember],
    reset: Option<&ReferenceResetConfig>,
    is_asked_for: bool,
    recipe: &Recipe,
) -> Vec<String> {
    let mut problems = Vec::new();
    for (number, member) in soup.iter().enumerate() {
        if !(member.weight.is_finite() && member.weight > 0.0) {
            let weight = member.weight;
            problems.push(format!("reference_soup: weight {number} is {weight}, must be above 0"));
        }
    }
    let told = reset.map(ReferenceResetConfig::problems).unwrap_or_default();
    problems.extend(told.into_iter().map(|problem| format!("reference_reset: {problem}")));
    if soup.is_empty() && reset.is_none() {
        return problems;
    }
    if !is_asked_for {
        problems.push(
            "reference_soup and reference_reset have no effect: the objective asks for no reference model"
                .to_owned(),
        );
    }
    if !recipe.adapters().is_empty() {
        problems.push(
            "reference_soup and reference_reset are for policies that are trained whole: there is an adapter"
                .to_owned(),
        );
    }
    problems
}

/// When the reference model is to be reset, and how often it was.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct ResetState {
    /// The best success rate so far; absent before the first iteration.
    best: Option<f64>,
    /// Iterations since then, or since the last reset.
    stale: u64,
    /// How often it was reset.
    pub resets: u64,
}

impl ResetState {
    /// Sees an iteration, the last of `done`, that had this success rate; whether the reference model is reset behind it.
    pub fn see(&mut self, config: &ReferenceResetConfig, done: u64, success: f64) -> bool {
        match self.best {
            Some(best) if success <= best + config.margin => self.stale += 1,
            _ => (self.best, self.stale) = (Some(success), 0),
        }
        let is_due = config.every.is_some_and(|every| done.is_multiple_of(every))
            || config.patience.is_some_and(|patience| self.stale >= patience);
        if is_due {
            self.stale = 0;
            self.resets += 1;
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reset_is_due_by_number_or_on_a_plateau() {
        let every = ReferenceResetConfig { every: Some(3), ..Default::default() };
        let mut state = ResetState::default();
        let due: Vec<bool> = (1..=7).map(|done| state.see(&every, done, 0.5)).collect();
        assert_eq!(due, [false, false, true, false, false, true, false]);
        assert_eq!(state.resets, 2);
        let plateau =
            ReferenceResetConfig { patience: Some(2), margin: 0.05, ..Default::default() };
        let mut state = ResetState::default();
        let success = [0.1, 0.2, 0.22, 0.23, 0.4, 0.41, 0.2, 0.3];
        let due: Vec<bool> =
            (1..).zip(success).map(|(done, success)| state.see(&plateau, done, success)).collect();
        assert_eq!(due, [false, false, false, true, false, false, true, false]);
        let wrong = ReferenceResetConfig { every: Some(0), margin: 2.0, ..Default::default() };
        assert_eq!(wrong.problems().len(), 3, "{:?}", wrong.problems());
    }
}
