//! ARPO: what forks have in common takes the mean of what its branches are worth.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::registry::NamedOptions;
use spar_core::{Credit, Signals};

use super::tree::TurnTree;
use super::{AdvantageEstimator, BatchView, CreditError, GroupView, Grpo, GrpoConfig};

/// How advantages are told to turns that several branches have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Attribution {
    /// Every branch has its own there: GRPO. With a ratio of 1 the gradient is that of `hard`.
    #[default]
    Soft,
    /// They take the mean of the branches that go through them.
    Hard,
}

/// Options of [`Arpo`].
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ArpoConfig {
    /// How common turns are told. Default `soft`, as the authors' code has it.
    pub attribution: Attribution,
    /// Options of the branches' advantages. Default those of `grpo`.
    pub base: GrpoConfig,
}

impl NamedOptions for ArpoConfig {
    fn problems(&self) -> Vec<String> {
        self.base.problems()
    }
}

/// Advantage attribution over branches (ARPO, arXiv 2507.19849, section 3.3).
///
/// Every leaf has its GRPO advantage in its group. `soft` gives it to all of its turns; `hard` gives a turn that `d` leaves have in common
/// `1/d` of the sum of theirs.
#[derive(Debug, Clone, Default)]
pub struct Arpo {
    attribution: Attribution,
    base: Grpo,
}

impl Arpo {
    /// An estimator with these options.
    ///
    /// # Errors
    ///
    /// [`CreditError::Row`] lists the options that are outside their range.
    pub fn new(config: ArpoConfig) -> Result<Self, CreditError> {
        super::error::refuse("arpo", config.problems())?;
        Ok(Self { attribution: config.attribution, base: Grpo::new(config.base)? })
    }
}

impl AdvantageEstimator for Arpo {
    fn name(&self) -> &'static str {
        "arpo"
    }

    fn estimate(&self, batch: &BatchView<'_>, _: &Signals) -> Result<Credit, CreditError> {
        let of_batch = self.base.of_batch(batch);
        let of_group = |group: &GroupView<'_>| self.base.trajectory_advantages(group, of_batch);
        let leaves: Vec<f64> = batch.groups().iter().flat_map(of_group).collect();
        if self.attribution == Attribution::Soft {
            return Ok(batch.credit_by_trajectory(leaves));
        }
        let tree = TurnTree::of(batch)?;
        let means = tree.means(&leaves);
        let of_nodes = |nodes: &Vec<usize>| nodes.iter().map(|node| means[*node]).collect();
        Ok(Credit::of_turns(tree.nodes.iter().map(of_nodes).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_vectors::forked_group;
    use super::*;

    #[test]
    fn common_turns_take_the_mean_of_their_branches() {
        let batch = BatchView::from(forked_group());
        let of = |attribution| {
            let config = ArpoConfig { attribution, ..ArpoConfig::default() };
            Arpo::new(config).unwrap().estimate(&batch, &Signals::default()).unwrap().advantages
        };
        let (soft, hard) = (of(Attribution::Soft), of(Attribution::Hard));
        let leaf = |index| soft.at(index, 0, 0);
        // Turn 0 is that of all three forks, turn 1 of two.
        let first = (leaf(0) + leaf(1) + leaf(2)) / 3.0;
        let second = (leaf(0) + leaf(2)) / 2.0;
        for index in 0..3 {
            assert!((hard.at(index, 0, 0) - first).abs() < 1e-12);
        }
        assert!((hard.at(0, 1, 1) - second).abs() < 1e-12);
        assert!((hard.at(2, 1, 1) - second).abs() < 1e-12);
        assert_eq!(hard.at(1, 1, 1), leaf(1));
        assert_eq!(hard.at(3, 0, 0), leaf(3));
    }
}
