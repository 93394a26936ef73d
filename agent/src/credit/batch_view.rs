//! A batch as credit sees it.

use spar_core::{Credit, Group, Lineage, Signal, Signals};
use spar_tasks::RewardShapers;

use super::{CreditError, GroupView, TrajectoryView};

/// All groups of one iteration, borrowed.
///
/// Trajectories are counted over all groups, in their order: that is a trajectory's place in the batch, by
/// which [`Credit`] and [`Signals`] know it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct BatchView<'a> {
    groups: Vec<GroupView<'a>>,
    failed: Vec<(u64, Lineage)>,
}

impl<'a> BatchView<'a> {
    /// The view of recorded groups whose rewards were shaped. The trajectories of each seat are a group of their own.
    pub fn shaped(groups: &'a [Group], shapers: &RewardShapers) -> Self {
        groups.iter().flat_map(|group| GroupView::by_seat(group, shapers)).collect()
    }

    /// Appends a group.
    pub fn push(&mut self, group: GroupView<'a>) {
        self.groups.push(group);
    }

    /// Gives episodes numbers of their own over all groups.
    #[cfg(test)]
    pub(crate) fn number_episodes(&mut self) {
        let mut next = 0;
        for group in &mut self.groups {
            group.number_episodes(&mut next);
        }
    }

    /// Tells where an episode came from that failed and so is in no group. Its forks are, and what they have
    /// of its own parent is found through it.
    pub fn push_failed(&mut self, episode: u64, lineage: Lineage) {
        self.failed.push((episode, lineage));
    }

    /// The groups.
    pub fn groups(&self) -> &[GroupView<'a>] {
        &self.groups
    }

    /// Episodes that failed, with where they came from.
    pub fn failed(&self) -> &[(u64, Lineage)] {
        &self.failed
    }

    /// The trajectories of all groups.
    pub fn trajectories(&self) -> impl Iterator<Item = TrajectoryView<'_, 'a>> {
        self.groups.iter().flat_map(GroupView::trajectories)
    }

    /// The tokens that were sampled, `[i][t]` in turn `t` of trajectory `i`: the shape of [`Credit`].
    pub fn num_tokens(&self) -> Vec<Vec<usize>> {
        self.trajectories()
            .map(|trajectory| trajectory.steps.iter().map(|step| step.num_tokens).collect())
            .collect()
    }

    /// The stream of a signal, which has the shape of the batch.
    ///
    /// # Errors
    ///
    /// [`CreditError::Signal`] when nothing has filled it, or it was filled for something else.
    pub fn stream<'s>(
        &self,
        signals: &'s Signals,
        signal: Signal,
    ) -> Result<&'s [Vec<f64>], CreditError> {
        let num_tokens: Vec<usize> =
            self.trajectories().map(|trajectory| trajectory.num_tokens()).collect();
        Ok(signals.get(signal, &num_tokens)?)
    }

    /// Credit of an estimator that looks at one group at a time: `estimate` gives an advantage for every step,
    /// `[i][t]` for step `t` of the group's trajectory `i`.
    pub fn credit_by_group(&self, estimate: impl Fn(&GroupView<'a>) -> Vec<Vec<f64>>) -> Credit {
        Credit::of_turns(self.groups.iter().flat_map(estimate).collect())
    }
}

impl BatchView<'_> {
    /// Credit that says the same of all steps of a trajectory: one advantage for each, in their order.
    pub fn credit_by_trajectory(&self, advantages: impl IntoIterator<Item = f64>) -> Credit {
        let steps = self.trajectories().map(|trajectory| trajectory.steps.len());
        let spread = |(advantage, steps): (f64, usize)| vec![advantage; steps];
        Credit::of_turns(advantages.into_iter().zip(steps).map(spread).collect())
    }
}

impl<'a> From<GroupView<'a>> for BatchView<'a> {
    fn from(group: GroupView<'a>) -> Self {
        Self { groups: vec![group], failed: Vec::new() }
    }
}

impl<'a> FromIterator<GroupView<'a>> for BatchView<'a> {
    fn from_iter<I: IntoIterator<Item = GroupView<'a>>>(groups: I) -> Self {
        Self { groups: groups.into_iter().collect(), failed: Vec::new() }
    }
}
