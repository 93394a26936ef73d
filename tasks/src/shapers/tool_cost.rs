//! Calls of tools that cost something.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::registry::{NamedOptions, RowError};
use spar_core::{RewardPart, Trajectory};

use super::RewardShaper;
use super::registry::AXIS;
use super::shaped::add_at_end;
use crate::ShaperError;

/// Options of [`ToolCost`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ToolCostOptions {
    /// Calls of an episode that cost nothing. Default 4.
    pub free: usize,
    /// What each further one costs; above 0. Default 0.05.
    pub cost: f64,
    /// What all of them cost at the most; above 0. Default 0.5.
    pub most: f64,
}

impl Default for ToolCostOptions {
    fn default() -> Self {
        Self { free: 4, cost: 0.05, most: 0.5 }
    }
}

impl NamedOptions for ToolCostOptions {
    fn problems(&self) -> Vec<String> {
        let positive = [("cost", self.cost), ("most", self.most)];
        let wrong = positive.into_iter().filter(|(_, it)| !(it.is_finite() && *it > 0.0));
        wrong.map(|(name, value)| format!("{name} is {value}, must be above 0")).collect()
    }
}

/// Calls of tools beyond some cost something: `-min(cost max(0, n - free), most)` is added to the last turn as part `tool_cost`, `n` being the calls of the episode. For a deliberative mode with fewer
/// calls ("Demystifying RL in agentic reasoning", arXiv 2510.11701).
#[derive(Debug, Clone)]
pub struct ToolCost {
    options: ToolCostOptions,
}

impl ToolCost {
    /// The shaper with these options.
    ///
    /// # Errors
    ///
    /// [`ShaperError::Row`] when one is outside its range.
    pub fn new(options: &ToolCostOptions) -> Result<Self, ShaperError> {
        RowError::refuse(AXIS.what, "tool_cost", options.problems())?;
        Ok(Self { options: options.clone() })
    }
}

impl RewardShaper for ToolCost {
    fn name(&self) -> &'static str {
        "tool_cost"
    }

    fn shape(&self, trajectory: &Trajectory, rewards: &mut [Vec<RewardPart>]) {
        let ToolCostOptions { free, cost, most } = self.options;
        let actions = trajectory.acting().filter_map(|turn| turn.parsed.action());
        let calls: usize = actions.map(|action| action.tool_calls().len()).sum();
        let beyond = calls.saturating_sub(free) as f64;
        add_at_end(trajectory, rewards, "tool_cost", -(cost * beyond).min(most));
    }
}

#[cfg(test)]
mod tests {
    use spar_core::{Action, ParsedAction, ToolCall};

    use super::super::RewardShapers;
    use super::super::tests::episode;
    use super::*;

    #[test]
    fn calls_beyond_the_free_ones_cost_up_to_a_bound() {
        let mut played = episode(&[&[], &[("success", 1.0)]]);
        let call = || ToolCall::new("look", Default::default());
        let action = |calls: usize| Action::calls((0..calls).map(|_| call()).collect());
        let parsed = |calls| ParsedAction::Action {
            action: action(calls),
            spans: Vec::new(),
            reasoning: None,
        };
        played.turns[0].parsed = parsed(3);
        played.turns[1].parsed = parsed(2);
        let cost = |free, most| {
            let tool_cost = ToolCost::new(&ToolCostOptions { free, cost: 0.1, most }).unwrap();
            RewardShapers::new(vec![Box::new(tool_cost)]).rewards(&played)[1]
        };
        assert_eq!([cost(5, 1.0), cost(3, 1.0), cost(0, 0.25)], [1.0, 0.8, 0.75]);
        assert_eq!(ToolCostOptions { cost: 0.0, ..ToolCostOptions::default() }.problems().len(), 1);
    }
}
