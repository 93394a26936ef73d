//! Which turns carry weight.

use std::collections::HashMap;

use spar_core::{Credit, Group, PerTurnOrToken, Source, Trajectory, Turn};

/// Which turns of a batch carry weight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TurnMask {
    /// All of them.
    #[default]
    None,
    /// Those whose completion the policy ended itself: one that was cut off is no choice of its own.
    CutOff,
    /// Those that no two trajectories of a group have in common, and that were not taken over from one outside it: only where they part
    /// is anything learned, as R3L's pivotal credit has it (arXiv 2601.03715). Where forks begin in mid-turn, that turn is each one's own.
    Shared,
}

impl TurnMask {
    /// The credit of these groups, in which the turns that are masked weigh nothing.
    ///
    /// This comes before it is settled how turns are trained that forks have in common: what was cut off in one
    /// trajectory may have been finished in another that forked within it.
    #[must_use]
    pub fn hide(self, groups: &[Group], credit: Credit) -> Credit {
        let trajectories = || groups.iter().flat_map(|group| &group.trajectories);
        if self == Self::Shared {
            let shared = shared_turns(groups);
            let hides = |trajectory: &Trajectory, turn: usize| {
                let place = (trajectory.episode, trajectory.seat);
                trajectory.turns[turn].source == Source::Inherited
                    || shared.get(&place).is_some_and(|end| turn < *end)
            };
            return hide_where(groups, credit, hides);
        }
        if !trajectories().flat_map(|trajectory| &trajectory.turns).any(|turn| self.hides(turn)) {
            return credit;
        }
        hide_where(groups, credit, |trajectory, turn| self.hides(&trajectory.turns[turn]))
    }

    fn hides(self, turn: &Turn) -> bool {
        match self {
            Self::None | Self::Shared => false,
            Self::CutOff => turn.is_cut_off(),
        }
    }
}

/// How many first turns of each trajectory others of its group have taken over.
fn shared_turns(groups: &[Group]) -> HashMap<(u64, spar_core::Seat), usize> {
    let mut shared: HashMap<(u64, spar_core::Seat), usize> = HashMap::new();
    for trajectory in groups.iter().flat_map(|group| &group.trajectories) {
        if let Some(parent) = trajectory.lineage.parent {
            let end = shared.entry((parent, trajectory.seat)).or_default();
            *end = (*end).max(trajectory.lineage.fork_turn as usize);
        }
    }
    shared
}

/// The credit in which turns weigh nothing that `hides` names.
fn hide_where(
    groups: &[Group],
    mut credit: Credit,
    hides: impl Fn(&Trajectory, usize) -> bool,
) -> Credit {
    let trajectories = || groups.iter().flat_map(|group| &group.trajectories);
    let weights = credit.weights.get_or_insert_with(|| {
        let ones = |turns: &Vec<Turn>| vec![1.0; turns.len()];
        PerTurnOrToken::Turns(trajectories().map(|found| ones(&found.turns)).collect())
    });
    let (lists, per_token) = match weights {
        PerTurnOrToken::Turns(lists) => (lists, false),
        PerTurnOrToken::Tokens(lists) => (lists, true),
    };
    for (list, trajectory) in lists.iter_mut().zip(trajectories()) {
        let mut rest = list.iter_mut();
        for (number, turn) in trajectory.turns.iter().enumerate() {
            let count = if per_token { turn.sampled.ids.len() } else { 1 };
            let of_turn = rest.by_ref().take(count);
            if hides(trajectory, number) {
                of_turn.for_each(|weight| *weight = 0.0);
            } else {
                of_turn.for_each(drop);
            }
        }
    }
    credit
}

#[cfg(test)]
mod tests {
    use spar_core::{Lineage, StopCause};
    use spar_tasks::RewardShapers;

    use super::super::test_trajectories::{sampled, trajectory, turn};
    use super::*;
    use crate::CutBatch;
    use crate::credit::{BatchView, SharedTurns};

    #[test]
    fn weights_of_turns_and_tokens_are_hidden() {
        let mut turns =
            vec![turn(0, &[1], sampled(&[2, 3], &[])), turn(3, &[], sampled(&[4], &[]))];
        turns[0].stop = Some(StopCause::Length);
        let group = [Group { task: "t".to_owned(), trajectories: vec![trajectory(turns)] }];
        let of_turns = || Credit::of_turns(vec![vec![1.0, 1.0]]);
        assert_eq!(TurnMask::None.hide(&group, of_turns()), of_turns());
        let hidden = TurnMask::CutOff.hide(&group, of_turns());
        assert_eq!(hidden.weights, Some(PerTurnOrToken::Turns(vec![vec![0.0, 1.0]])));
        let weights = Some(PerTurnOrToken::Tokens(vec![vec![0.5, 0.5, 0.5]]));
        let hidden = TurnMask::CutOff.hide(&group, Credit { weights, ..of_turns() });
        assert_eq!(hidden.weights, Some(PerTurnOrToken::Tokens(vec![vec![0.0, 0.0, 0.5]])));
    }

    /// The origin's answer was cut off; a fork went on from its second token and ended it.
    #[test]
    fn what_was_cut_off_is_trained_where_a_fork_ended_it() {
        let mut origin = trajectory(vec![turn(0, &[1], sampled(&[2, 3, 4], &[]))]);
        origin.turns[0].stop = Some(StopCause::Length);
        let mut fork = trajectory(vec![turn(0, &[1], sampled(&[2, 3, 5], &[]))]);
        let (parent, fork_token) = (Some(origin.episode), Some(2));
        fork.lineage = Lineage { parent, fork_token, ..Lineage::default() };
        fork.episode = 10;
        let groups = [Group { task: "t".to_owned(), trajectories: vec![origin, fork] }];
        let view = BatchView::shaped(&groups, &RewardShapers::default());
        for (shared, wanted) in [
            (SharedTurns::Owned, [[0.0, 0.5, 0.5, 0.0], [0.0, 0.0, 0.0, 1.0]]),
            (SharedTurns::Divided, [[0.0; 4], [0.0, 0.5, 0.5, 1.0]]),
        ] {
            let credit = Credit::of_turns(vec![vec![-1.0], vec![2.0]]);
            let credit = TurnMask::CutOff.hide(&groups, credit);
            let credit = shared.settle(&view, credit, &[true; 2]).unwrap();
            let samples = CutBatch::new(&groups).unwrap().weigh(&credit, &[true; 2]).unwrap();
            let mut found = samples.iter().map(|sample| &sample.policy_weights[..]);
            for wanted in wanted.iter().filter(|weights| weights.iter().any(|w| *w > 0.0)) {
                assert_eq!(found.next(), Some(&wanted[..]), "{shared:?}");
            }
            assert_eq!(found.next(), None);
            let weighs = |sample: &spar_core::Sample, t| sample.policy_weights[t] > 0.0;
            for sample in &samples {
                let trained = (1..sample.len()).filter(|t| weighs(sample, *t));
                trained.for_each(|t| assert_eq!(sample.advantages[t], 2.0, "that of the fork"));
            }
        }
    }

    #[test]
    fn turns_in_common_weigh_nothing_and_those_behind_a_fork_do() {
        let trajectory_of = |episode: u64, lineage: Lineage| {
            let mut found = trajectory(vec![
                turn(0, &[1], sampled(&[2], &[])),
                turn(2, &[3], sampled(&[4], &[])),
            ]);
            found.episode = episode;
            for turn in &mut found.turns[..lineage.fork_turn as usize] {
                turn.source = Source::Inherited;
            }
            found.lineage = lineage;
            found
        };
        let fork = |parent| Lineage { parent: Some(parent), fork_turn: 1, ..Lineage::default() };
        let group = Group {
            task: "t".to_owned(),
            trajectories: vec![
                trajectory_of(1, Lineage::default()),
                trajectory_of(2, fork(1)),
                trajectory_of(3, Lineage::default()),
                // Its parent is not there.
                trajectory_of(4, fork(9)),
            ],
        };
        let credit = Credit::of_turns(vec![vec![1.0; 2]; 4]);
        let hidden = TurnMask::Shared.hide(&[group], credit);
        let expected = [[0.0, 1.0], [0.0, 1.0], [1.0, 1.0], [0.0, 1.0]].map(|it| it.to_vec());
        assert_eq!(hidden.weights, Some(PerTurnOrToken::Turns(expected.into())));
    }
}
