//! GRAFT: values by Bellman's equation on the graph that a group has walked.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::registry::NamedOptions;
use spar_core::{Credit, Signals};

use super::discounting::discount_problem;
use super::error::refuse;
use super::grpo::epsilon_problem;
use super::moments::Moments;
use super::state_graph::StateGraph;
use super::{AdvantageEstimator, BatchView, CreditError, GroupView, Normalization};

/// Sweeps over the graph at the most; a discount of 0.95 leaves 4e-5 of an error after as many.
const MAX_SWEEPS: usize = 200;
/// The largest change of a value at which the sweeps end.
const TOLERANCE: f64 = 1e-10;

/// Options of [`Graft`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct GraftConfig {
    /// Discount per step, 0 to 1. Default 0.95.
    pub discount: f64,
    /// Whether advantages are divided by the unbiased standard deviation of those of the group. Default `mean_norm`: they are
    /// not.
    pub normalization: Normalization,
    /// Added to the standard deviation; above 0. Default 1e-6.
    pub epsilon: f64,
}

impl Default for GraftConfig {
    fn default() -> Self {
        Self { discount: 0.95, normalization: Normalization::MeanNorm, epsilon: 1e-6 }
    }
}

impl NamedOptions for GraftConfig {
    fn problems(&self) -> Vec<String> {
        let mut problems: Vec<String> = epsilon_problem(self.epsilon).into_iter().collect();
        problems.extend(discount_problem(self.discount));
        problems
    }
}

/// Advantages by one step ahead on the empirical graph (GRAFT), reconstructed from summaries of it.
///
/// `V(s)` is the mean over the steps that the group took from `s` of `r + discount * V(s')`, iterated to its fixed point; `A = r + discount * V(s') - V(s)`.
/// A situation that nobody went on from, and the end of a task, are worth 0. Assumed: the default discount, that transitions count as often as
/// they were walked, and no averaging over several steps ahead. Steps whose reward is not finite count in no value and get 0.
#[derive(Debug, Clone, Default)]
pub struct Graft {
    config: GraftConfig,
}

impl Graft {
    /// An estimator with these options.
    ///
    /// # Errors
    ///
    /// [`CreditError::Row`] lists the options that are outside their range.
    pub fn new(config: GraftConfig) -> Result<Self, CreditError> {
        refuse("graft", config.problems())?;
        Ok(Self { config })
    }

    /// The value of every situation.
    fn values(&self, graph: &StateGraph) -> Vec<f64> {
        let mut values = vec![0.0_f64; graph.num_states];
        let mut visits = vec![0.0_f64; graph.num_states];
        let known = || graph.edges.iter().filter(|edge| edge.reward.is_finite());
        known().for_each(|edge| visits[edge.from as usize] += 1.0);
        for _ in 0..MAX_SWEEPS {
            let mut sums = vec![0.0; graph.num_states];
            for edge in known() {
                let behind = edge.to.map_or(0.0, |to| values[to as usize]);
                sums[edge.from as usize] += edge.reward + self.config.discount * behind;
            }
            let mut change = 0.0_f64;
            for ((value, sum), visits) in values.iter_mut().zip(sums).zip(&visits) {
                let new = if *visits > 0.0 { sum / visits } else { 0.0 };
                change = change.max((new - *value).abs());
                *value = new;
            }
            if change < TOLERANCE {
                break;
            }
        }
        values
    }

    fn step_advantages(&self, group: &GroupView<'_>) -> Vec<Vec<f64>> {
        let graph = StateGraph::of(group);
        let values = self.values(&graph);
        let mut advantages: Vec<f64> = graph
            .edges
            .iter()
            .map(|edge| {
                let behind = edge.to.map_or(0.0, |to| values[to as usize]);
                let above =
                    edge.reward + self.config.discount * behind - values[edge.from as usize];
                // What is left of the iteration is no difference, and what is not known is none either.
                if above.abs() < 1e-9 || !edge.reward.is_finite() { 0.0 } else { above }
            })
            .collect();
        if self.config.normalization == Normalization::MeanStdNorm {
            let scale = Moments::of(advantages.iter().copied()).deviation(1) + self.config.epsilon;
            advantages.iter_mut().for_each(|value| *value /= scale);
        }
        group.split(&advantages)
    }
}

impl AdvantageEstimator for Graft {
    fn name(&self) -> &'static str {
        "graft"
    }

    fn estimate(&self, batch: &BatchView<'_>, _: &Signals) -> Result<Credit, CreditError> {
        Ok(batch.credit_by_group(|group| self.step_advantages(group)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_vectors::{small_group, to_view};
    use super::*;

    #[test]
    fn values_flow_along_the_graph() {
        // Both meet in 2; whoever came from 0 is worth what the other one reached from there.
        let group =
            small_group(vec![vec![(0, 0, 0.0), (2, 0, 1.0)], vec![(1, 0, 0.0), (2, 1, 0.0)]]);
        let graft = Graft::default();
        let found = graft.step_advantages(&to_view(&group));
        let value = graft.values(&StateGraph::of(&to_view(&group)));
        assert!((value[1] - 0.5).abs() < 1e-9, "{value:?}");
        assert_eq!([found[0][0], found[1][0]], [0.0, 0.0]);
        assert!((found[0][1] - 0.5).abs() < 1e-9 && (found[1][1] + 0.5).abs() < 1e-9);
    }

    #[test]
    fn a_circle_comes_to_an_end() {
        let group = small_group(vec![vec![(0, 0, 0.0), (1, 0, 0.0), (0, 0, 0.0), (1, 1, 1.0)]]);
        let found = Graft::default().step_advantages(&to_view(&group));
        assert!(found.iter().flatten().all(|value| value.is_finite()));
        assert!(found[0][3] > 0.0 && found[0][1] < 0.0);
    }
}
