//! GraphGPO: a step is worth how much nearer to success it leads than others from the same situation.

use std::collections::VecDeque;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::registry::NamedOptions;
use spar_core::{Credit, Signals};

use super::error::refuse;
use super::grpo::epsilon_problem;
use super::moments::Moments;
use super::state_graph::StateGraph;
use super::{AdvantageEstimator, BatchView, CreditError, GroupView, Normalization, Singleton};

/// Options of [`GraphGpo`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct GraphGpoConfig {
    /// What a step further from success is worth of one nearer to it, above 0 up to 1. Default 0.9.
    pub decay: f64,
    /// The return from which on a trajectory is a success. Default 1.
    pub success: f64,
    /// What success is worth. Default 1.
    pub success_reward: f64,
    /// Whether differences are divided by the unbiased standard deviation of the steps from the same situation. Default
    /// `mean_std_norm`.
    pub normalization: Normalization,
    /// Added to the standard deviation; above 0. Default 1e-6.
    pub epsilon: f64,
}

impl Default for GraphGpoConfig {
    fn default() -> Self {
        Self {
            decay: 0.9,
            success: 1.0,
            success_reward: 1.0,
            normalization: Normalization::MeanStdNorm,
            epsilon: 1e-6,
        }
    }
}

impl NamedOptions for GraphGpoConfig {
    fn problems(&self) -> Vec<String> {
        let mut problems: Vec<String> = epsilon_problem(self.epsilon).into_iter().collect();
        if !(self.decay > 0.0 && self.decay <= 1.0) {
            problems.push(format!("decay is {}, must be above 0 and at most 1", self.decay));
        }
        if self.success.is_nan() || !self.success_reward.is_finite() {
            problems.push("success and success_reward must be numbers".to_owned());
        }
        problems
    }
}

/// Graph-based group policy optimisation, reconstructed from GRAFT's appendix on it.
///
/// The situations of a group and the steps between them make a graph. A step is worth `success_reward * decay^d`, `d` being the fewest steps that
/// anybody needed from where it leads to the end of a successful trajectory, 0 where it ends one; 0 where no way leads there. It is compared
/// with all steps that were taken from the same situation. Assumed: that what is compared are steps by where they lead, and the defaults.
#[derive(Debug, Clone, Default)]
pub struct GraphGpo {
    config: GraphGpoConfig,
}

impl GraphGpo {
    /// An estimator with these options.
    ///
    /// # Errors
    ///
    /// [`CreditError::Row`] lists the options that are outside their range.
    pub fn new(config: GraphGpoConfig) -> Result<Self, CreditError> {
        refuse("graph_gpo", config.problems())?;
        Ok(Self { config })
    }

    fn step_advantages(&self, group: &GroupView<'_>) -> Vec<Vec<f64>> {
        let GraphGpoConfig { decay, success, success_reward, normalization, epsilon } = self.config;
        let graph = StateGraph::of(group);
        // 1. Steps that end a success, and from there against the direction of time.
        let mut ends = vec![false; graph.edges.len()];
        let mut behind = 0;
        for (value, trajectory) in group.returns().into_iter().zip(group.trajectories()) {
            behind += trajectory.steps.len();
            if value.is_finite() && value >= success && !trajectory.steps.is_empty() {
                ends[behind - 1] = true;
            }
        }
        let mut into: Vec<Vec<u32>> = vec![Vec::new(); graph.num_states];
        for edge in &graph.edges {
            edge.to.iter().for_each(|to| into[*to as usize].push(edge.from));
        }
        let mut distances: Vec<Option<u32>> = vec![None; graph.num_states];
        let mut waiting: VecDeque<(u32, u32)> = graph
            .edges
            .iter()
            .zip(&ends)
            .filter(|(_, is_end)| **is_end)
            .map(|(edge, _)| (edge.from, 1))
            .collect();
        while let Some((state, distance)) = waiting.pop_front() {
            let known = &mut distances[state as usize];
            if known.is_none() {
                *known = Some(distance);
                waiting.extend(into[state as usize].iter().map(|before| (*before, distance + 1)));
            }
        }
        // 2. What each step is worth, among those from its situation.
        let worth = |(edge, is_end): (&super::state_graph::Edge, &bool)| {
            let behind = edge.to.and_then(|to| distances[to as usize]);
            match (is_end, behind) {
                (true, _) => success_reward,
                (false, Some(distance)) => success_reward * decay.powf(f64::from(distance)),
                (false, None) => 0.0,
            }
        };
        let worths: Vec<f64> = graph.edges.iter().zip(&ends).map(worth).collect();
        let mut moments = vec![Moments::EMPTY; graph.num_states];
        for (edge, worth) in graph.edges.iter().zip(&worths) {
            moments[edge.from as usize].add(*worth);
        }
        let advantage = |(edge, worth): (&super::state_graph::Edge, f64)| {
            moments[edge.from as usize].advantage(worth, normalization, Singleton::Zero, epsilon)
        };
        group.split(&graph.edges.iter().zip(worths).map(advantage).collect::<Vec<_>>())
    }
}

impl AdvantageEstimator for GraphGpo {
    fn name(&self) -> &'static str {
        "graph_gpo"
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
    fn what_leads_nearer_to_success_is_worth_more() {
        // From 0 to 1 and to the end; from 0 to 2 and nowhere; from 0 to 3, to 1 and to the end.
        let group = small_group(vec![
            vec![(0, 0, 0.0), (1, 0, 1.0)],
            vec![(0, 1, 0.0), (2, 0, 0.0)],
            vec![(0, 2, 0.0), (3, 0, 0.0), (1, 0, 1.0)],
        ]);
        let config =
            GraphGpoConfig { normalization: Normalization::MeanNorm, ..GraphGpoConfig::default() };
        let found = GraphGpo::new(config).unwrap().step_advantages(&to_view(&group));
        let mean = (0.9 + 0.0 + 0.81) / 3.0;
        for (trajectory, worth) in [0.9, 0.0, 0.81].into_iter().enumerate() {
            assert!((found[trajectory][0] - (worth - mean)).abs() < 1e-12);
        }
        // Both steps from 1 end a success, and nobody else was at 2 and 3.
        assert_eq!([found[0][1], found[1][1], found[2][1], found[2][2]], [0.0; 4]);
    }
}
