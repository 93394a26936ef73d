//! TreePS: a step is worth how much better the leaves behind it are than those behind the step before.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::registry::NamedOptions;
use spar_core::{Credit, Signals};

use super::error::refuse;
use super::grpo::epsilon_problem;
use super::moments::Moments;
use super::tree::TurnTree;
use super::{AdvantageEstimator, BatchView, CreditError, Normalization};

/// Options of [`TreePs`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TreePsConfig {
    /// Weight of what a step is above the one before it; finite. Default 1.
    pub local_weight: f64,
    /// Weight of what it is above the root; finite. Default 1.
    pub global_weight: f64,
    /// Whether advantages are divided by the deviation of those of all steps of their tree, each counted once. Default
    /// `mean_norm`: they are not.
    pub normalization: Normalization,
    /// Added to that deviation; above 0. Default 1e-6.
    pub epsilon: f64,
}

impl Default for TreePsConfig {
    fn default() -> Self {
        Self {
            local_weight: 1.0,
            global_weight: 1.0,
            normalization: Normalization::MeanNorm,
            epsilon: 1e-6,
        }
    }
}

impl NamedOptions for TreePsConfig {
    fn problems(&self) -> Vec<String> {
        let mut problems: Vec<String> = epsilon_problem(self.epsilon).into_iter().collect();
        for (name, weight) in
            [("local_weight", self.local_weight), ("global_weight", self.global_weight)]
        {
            if !weight.is_finite() {
                problems.push(format!("{name} is {weight}, must be finite"));
            }
        }
        problems
    }
}

/// Advantages of steps in trees of rollouts: a reconstruction of TreePS-RAG (arXiv 2601.06922).
///
/// ```text
/// V(n) = mean return of the leaves behind n
/// A(n) = local_weight (V(n) - V(parent of n)) + global_weight (V(n) - V(root))
/// ```
///
/// The root is what all trajectories of a group have in common, before anybody acted. The value of nodes was told by a summary of the
/// paper; the formula of advantages could not be read, and is assumed from TreeRL's. Returns that are not finite count in nothing.
#[derive(Debug, Clone, Default)]
pub struct TreePs {
    config: TreePsConfig,
}

impl TreePs {
    /// An estimator with these options.
    ///
    /// # Errors
    ///
    /// [`CreditError::Row`] lists the options that are outside their range.
    pub fn new(config: TreePsConfig) -> Result<Self, CreditError> {
        refuse("tree_ps", config.problems())?;
        Ok(Self { config })
    }
}

impl AdvantageEstimator for TreePs {
    fn name(&self) -> &'static str {
        "tree_ps"
    }

    fn estimate(&self, batch: &BatchView<'_>, _: &Signals) -> Result<Credit, CreditError> {
        let TreePsConfig { local_weight, global_weight, normalization, epsilon } = self.config;
        let tree = TurnTree::of(batch)?;
        let returns: Vec<f64> = batch.groups().iter().flat_map(|group| group.returns()).collect();
        let values = tree.means(&returns);
        let mut trajectories = tree.nodes.iter().zip(&returns);
        let mut advantages = Vec::with_capacity(returns.len());
        for group in batch.groups() {
            let of_group: Vec<_> = trajectories.by_ref().take(group.num_trajectories()).collect();
            let roots = Moments::of(of_group.iter().map(|(_, value)| **value));
            // Where all leaves are equal nothing is better than anything: exactly 0.
            let is_flat = roots.deviation(0) == 0.0;
            let mut of_tree = Vec::with_capacity(of_group.len());
            let mut seen = std::collections::BTreeMap::new();
            for (nodes, _) in &of_group {
                let mut before = 0.0;
                let mut steps = Vec::with_capacity(nodes.len());
                for node in *nodes {
                    // A step behind which nothing is known is worth as much as any.
                    if !values[*node].is_finite() {
                        steps.push(0.0);
                        continue;
                    }
                    let above = if is_flat { 0.0 } else { roots.difference(values[*node]) };
                    let value = local_weight * (above - before) + global_weight * above;
                    before = above;
                    seen.insert(*node, value);
                    steps.push(value);
                }
                of_tree.push(steps);
            }
            if normalization == Normalization::MeanStdNorm {
                let scale = Moments::of(seen.into_values()).deviation(1) + epsilon;
                of_tree.iter_mut().flatten().for_each(|value| *value /= scale);
            }
            advantages.extend(of_tree);
        }
        Ok(Credit::of_turns(advantages))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use spar_core::Lineage;

    use super::super::test_vectors::{forked_group, step_of};
    use super::super::{EpisodeView, GroupView};
    use super::*;

    #[test]
    fn a_step_is_compared_with_the_one_before_it() {
        let batch = BatchView::from(forked_group());
        let config = TreePsConfig { global_weight: 0.0, ..TreePsConfig::default() };
        let credit = TreePs::new(config).unwrap().estimate(&batch, &Signals::default()).unwrap();
        let at = |index, turn| credit.advantages.at(index, turn, turn);
        // Returns 1, 0, 0 and 1: the forks' first turn is worth a third, the second of 0 and 2 a half.
        assert!((at(0, 0) - (1.0 / 3.0 - 0.5)).abs() < 1e-12);
        assert!((at(0, 1) - (0.5 - 1.0 / 3.0)).abs() < 1e-12);
        assert!((at(0, 2) - 0.5).abs() < 1e-12 && (at(2, 2) + 0.5).abs() < 1e-12);
        assert!((at(1, 1) + 1.0 / 3.0).abs() < 1e-12);
    }

    /// A tree of random forks: (parent among those before, turn of the fork, own turns, return).
    fn trees() -> impl Strategy<Value = Vec<(usize, usize, usize, f64)>> {
        prop::collection::vec((0_usize..8, 0_usize..4, 1_usize..4, 0.0..1.0), 1..8)
    }

    proptest! {
        #[test]
        fn values_are_means_over_leaves(tree in trees()) {
            let mut group = GroupView::default();
            // The origin of every turn of every trajectory, by copying.
            let mut origins: Vec<Vec<(usize, usize)>> = Vec::new();
            for (index, (parent, fork, own, value)) in tree.iter().enumerate() {
                let parent = (index > 0).then(|| parent % index);
                let fork = parent.map_or(0, |parent| (*fork).min(origins[parent].len()));
                let mut turns = parent.map_or(Vec::new(), |parent| origins[parent][..fork].to_vec());
                let start = turns.len();
                turns.extend((start..start + own).map(|turn| (index, turn)));
                let lineage = Lineage {
                    parent: parent.map(|parent| parent as u64),
                    fork_turn: fork as u32,
                    ..Lineage::default()
                };
                let episode = EpisodeView { lineage, ..EpisodeView::new(index as u64) };
                let last = turns.len() - 1;
                let steps = (0..=last).map(|turn| step_of(if turn == last { *value } else { 0.0 }, 1));
                group.push_episode(episode, steps);
                origins.push(turns);
            }
            let mean = |of: &dyn Fn(usize) -> bool| {
                let leaves: Vec<f64> =
                    (0..tree.len()).filter(|leaf| of(*leaf)).map(|leaf| tree[leaf].3).collect();
                leaves.iter().sum::<f64>() / leaves.len() as f64
            };
            let root = mean(&|_| true);
            let batch = BatchView::from(group);
            let credit = TreePs::default().estimate(&batch, &Signals::default()).unwrap();
            for (index, turns) in origins.iter().enumerate() {
                let mut before = root;
                for (turn, node) in turns.iter().enumerate() {
                    let value = mean(&|leaf| origins[leaf].get(turn) == Some(node));
                    let expected = (value - before) + (value - root);
                    prop_assert!((credit.advantages.at(index, turn, turn) - expected).abs() < 1e-9);
                    before = value;
                }
            }
        }
    }
}
