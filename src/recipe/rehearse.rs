//! What the policy could do before is rehearsed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_trainer::{RehearsalOptions, RehearsedDivergence};

/// Episodes that the policy has played before the stage trains it are kept, and a divergence from it as it was then is estimated on some of them in every
/// iteration, beside the objective: DPH-RL (arXiv 2509.07430). No reference model is run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RehearseConfig {
    /// How far the policy is from what it was: `forward_kl` or `jensen_shannon`. Default `forward_kl`.
    pub divergence: RehearsedDivergence,
    /// What it weighs beside the objective; positive. Default 0.1.
    pub weight: f64,
    /// First iterations of the stage, at least 1, in which episodes are kept and the policy is not trained; where nothing was kept in them, the run
    /// stops. Default 1.
    pub iterations: u64,
    /// Episodes that are rehearsed in every other iteration, drawn evenly; at least 1. Default 16.
    pub episodes: usize,
    /// Whether only episodes that solved their task are kept. Default true.
    pub only_solved: bool,
}

impl Default for RehearseConfig {
    fn default() -> Self {
        let RehearsalOptions { divergence, weight } = RehearsalOptions::default();
        Self { divergence, weight, iterations: 1, episodes: 16, only_solved: true }
    }
}

impl RehearseConfig {
    /// The divergence, as an objective has it beside it.
    pub fn options(&self) -> RehearsalOptions {
        RehearsalOptions { divergence: self.divergence, weight: self.weight }
    }

    /// What is wrong with it in a stage of so many iterations.
    pub(super) fn problems(&self, iterations: u64) -> Vec<String> {
        let mut problems = self.options().problems();
        if self.iterations == 0 {
            problems.push("iterations is 0, must be at least 1".to_owned());
        }
        if self.iterations >= iterations {
            problems.push(format!(
                "iterations is {}, and the stage has {iterations}: the policy would not be trained",
                self.iterations
            ));
        }
        if self.episodes == 0 {
            problems.push("episodes is 0, must be at least 1".to_owned());
        }
        problems
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recipe::Recipe;

    #[test]
    fn what_is_wrong_is_told_at_once() {
        let wrong =
            RehearseConfig { weight: 0.0, iterations: 0, episodes: 0, ..Default::default() };
        assert_eq!(wrong.problems(0).len(), 4);
        assert_eq!(RehearseConfig::default().problems(2), [""; 0]);
        let told = |text: &str| {
            let recipe = Recipe::parse("r", &format!("[reinforce]\n{text}"), &[]).unwrap();
            recipe.validate().err().map(|error| error.to_string()).unwrap_or_default()
        };
        assert_eq!(told("rehearse = { divergence = 'jensen_shannon' }"), "");
        assert!(told("iterations = 1\nrehearse = {}").contains("would not be trained"));
        let grouped = told("rehearse = {}\nobjective = { name = 'disco' }");
        assert!(
            grouped.contains("rehearse: the objective compares answers to one question"),
            "{grouped}"
        );
        for beside in [
            "resampling = {}",
            "kl = { adaptive = {} }",
            "correction = { denominator = 'kept', reject = [{ statistic = 'k3', of_sample = 'mean', upper = 0.1 }] }",
        ] {
            let told = told(&format!("rehearse = {{}}\nobjective = {{ {beside} }}"));
            assert!(told.contains("rehearse: what is rehearsed would count in"), "{told}");
        }
    }
}
