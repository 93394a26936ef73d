//! RTMC: a step is worth the mean return of its like over that of its situation.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::registry::NamedOptions;
use spar_core::{Credit, Signals};

use super::discounting::discount_problem;
use super::error::refuse;
use super::gigpo::discounted_returns;
use super::interner::Interner;
use super::moments::Moments;
use super::state_graph::StateGraph;
use super::{AdvantageEstimator, BatchView, CreditError, GroupView};

/// Options of [`Rtmc`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RtmcConfig {
    /// Discount of step returns, 0 to 1. Default 0.95.
    pub discount: f64,
}

impl Default for RtmcConfig {
    fn default() -> Self {
        Self { discount: 0.95 }
    }
}

impl NamedOptions for RtmcConfig {
    fn problems(&self) -> Vec<String> {
        discount_problem(self.discount).into_iter().collect()
    }
}

/// Monte Carlo values over merged rollouts (RTMC), reconstructed from GRAFT's appendix on it.
///
/// `A(s, a) = Q(s, a) - V(s)`: `Q` is the mean of `ret_t = r_t + discount * ret_{t+1}` over all steps of the group that took action `a` in situation
/// `s`, `V` that over all steps from `s`. Assumed: the default discount, and that situations and actions are the same where their texts are.
/// Returns that are not finite count in nothing.
#[derive(Debug, Clone, Default)]
pub struct Rtmc {
    config: RtmcConfig,
}

impl Rtmc {
    /// An estimator with these options.
    ///
    /// # Errors
    ///
    /// [`CreditError::Row`] lists the options that are outside their range.
    pub fn new(config: RtmcConfig) -> Result<Self, CreditError> {
        refuse("rtmc", config.problems())?;
        Ok(Self { config })
    }

    fn step_advantages(&self, group: &GroupView<'_>) -> Vec<Vec<f64>> {
        let graph = StateGraph::of(group);
        let returns = discounted_returns(group, self.config.discount);
        let mut pairs = Interner::with_capacity(graph.edges.len());
        let ids: Vec<u32> =
            graph.edges.iter().map(|edge| pairs.id((edge.from, edge.action))).collect();
        let mut of_states = vec![Moments::EMPTY; graph.num_states];
        // Differences to the situation's mean, so that equal returns leave exactly 0.
        for (edge, value) in graph.edges.iter().zip(&returns) {
            of_states[edge.from as usize].add(*value);
        }
        let mut sums = vec![(0.0, 0.0); pairs.len()];
        for ((edge, id), value) in graph.edges.iter().zip(&ids).zip(&returns) {
            if value.is_finite() {
                let (sum, count) = &mut sums[*id as usize];
                *sum += of_states[edge.from as usize].difference(*value);
                *count += 1.0;
            }
        }
        let mean = |id: &u32| match sums[*id as usize] {
            (_, 0.0) => 0.0,
            (sum, count) => sum / count,
        };
        group.split(&ids.iter().map(mean).collect::<Vec<_>>())
    }
}

impl AdvantageEstimator for Rtmc {
    fn name(&self) -> &'static str {
        "rtmc"
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
    fn the_same_action_in_the_same_situation_is_worth_the_same() {
        let group = small_group(vec![vec![(0, 0, 1.0)], vec![(0, 0, 0.0)], vec![(0, 1, 0.0)]]);
        let found = Rtmc::default().step_advantages(&to_view(&group));
        let (q0, q1, v) = (0.5, 0.0, 1.0 / 3.0);
        for (found, expected) in found.iter().flatten().zip([q0 - v, q0 - v, q1 - v]) {
            assert!((found - expected).abs() < 1e-12);
        }
    }
}
