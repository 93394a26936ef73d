//! Which trajectory of a tree a turn is trained in, and with which advantage.

use std::collections::HashMap;

use spar_core::Group;

/// A place in a trajectory: a turn, and a token of what was sampled in it.
type Place = (usize, usize);

/// Who trains the turns that trajectories of a group share, and with which advantage.
///
/// A trajectory that was forked from another one holds that one's turns too. They are trained once, in the
/// trajectory that sampled them, with the mean of the advantages that the paths through them assign: each
/// trajectory that holds a token is one path, and all weigh alike. That is the gradient of all paths, each shared
/// token weighing in each by one over their number.
///
/// Where the trajectory that sampled them is not in the group, its first descendant there owns them. What an origin that
/// is absent had itself taken over from one that is there is owned by both: the record of the absent one, which
/// would tell, is needed for more.
#[derive(Debug, Clone, PartialEq)]
pub struct Ownership {
    /// Whom each trajectory goes on from, and up to where.
    parents: Vec<Option<(usize, Place)>>,
    /// Where the part of each trajectory begins that it owns.
    own_from: Vec<Place>,
    /// For each trajectory, those that hold some of what it owns, and the place from which on they do not.
    paths: Vec<Vec<(usize, Place)>>,
}

impl Ownership {
    /// The ownership in a group, by the lineages of its trajectories.
    pub fn of(group: &Group) -> Self {
        let trajectories = &group.trajectories;
        let index_of: HashMap<u64, usize> =
            trajectories.iter().enumerate().map(|(index, found)| (found.episode, index)).collect();
        let forks: Vec<Place> = trajectories
            .iter()
            .map(|found| {
                let lineage = &found.lineage;
                (lineage.fork_turn as usize, lineage.fork_token.unwrap_or(0) as usize)
            })
            .collect();
        // 1. Whom each goes on from, and up to where.
        let mut orphans: HashMap<u64, Vec<usize>> = HashMap::new();
        let parents: Vec<Option<(usize, Place)>> = (0..trajectories.len())
            .map(|index| {
                let parent = trajectories[index].lineage.parent?;
                if let Some(&parent) = index_of.get(&parent).filter(|parent| **parent != index) {
                    return Some((parent, forks[index]));
                }
                // Of those before it with the same origin, the one that it shares most with.
                let siblings = orphans.entry(parent).or_default();
                let shared = |sibling: &usize| forks[*sibling].min(forks[index]);
                let nearest = siblings.iter().copied().rev().max_by_key(shared);
                siblings.push(index);
                nearest.map(|sibling| (sibling, shared(&sibling)))
            })
            .collect();
        // 2. Each is a path through what its ancestors own, up to where it, or who is between, left them.
        let own_from =
            parents.iter().map(|parent| parent.map_or((0, 0), |(_, fork)| fork)).collect();
        let mut paths: Vec<Vec<(usize, Place)>> = vec![Vec::new(); trajectories.len()];
        for index in 0..trajectories.len() {
            let mut left = (usize::MAX, usize::MAX);
            let mut ancestor = index;
            // A record that names itself among its ancestors is damaged, and must not be walked for ever.
            for _ in 0..trajectories.len() {
                paths[ancestor].push((index, left));
                let Some((parent, fork)) = parents[ancestor] else { break };
                left = left.min(fork);
                ancestor = parent;
            }
        }
        Self { parents, own_from, paths }
    }

    /// Whether a trajectory owns the token that it sampled, or took over, in this place.
    pub fn owns(&self, trajectory: usize, turn: usize, token: usize) -> bool {
        self.own_from[trajectory] <= (turn, token)
    }

    /// How many trajectories hold the token that this one sampled, or took over, in this place.
    pub fn num_paths(&self, trajectory: usize, turn: usize, token: usize) -> usize {
        let mut owner = trajectory;
        while let Some((parent, _)) = self.parents[owner].filter(|_| !self.owns(owner, turn, token))
        {
            owner = parent;
        }
        self.paths[owner].iter().filter(|(_, left)| (turn, token) < *left).count()
    }

    /// The mean of the advantages of all paths through a token that the trajectory owns; `advantages[i][t]` belongs
    /// to turn `t` of trajectory `i`.
    pub fn advantage(
        &self,
        advantages: &[Vec<f64>],
        trajectory: usize,
        turn: usize,
        token: usize,
    ) -> f64 {
        let (mut sum, mut count) = (0.0, 0.0);
        for (path, left) in &self.paths[trajectory] {
            if (turn, token) < *left {
                sum += advantages[*path][turn];
                count += 1.0;
            }
        }
        // To the bit what it was where nothing is shared.
        if count == 1.0 { advantages[trajectory][turn] } else { sum / count }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use spar_core::{Lineage, Trajectory};

    use super::*;
    use crate::samples::tests::{sampled, trajectory, turn};

    /// Tokens of each turn.
    const TOKENS: usize = 3;

    /// How long a trajectory is, and of whom and where it was forked off: turn and token.
    type Planned = (usize, Option<(usize, usize, usize)>);

    fn group(plan: &[Planned]) -> Group {
        let mut trajectories: Vec<Trajectory> = Vec::new();
        for (episode, (length, fork)) in plan.iter().enumerate() {
            let of_turn = |_| turn(0, &[], sampled(&[1; TOKENS], &[]));
            let mut found = trajectory((0..*length).map(of_turn).collect());
            found.episode = episode as u64;
            if let Some((parent, turn, token)) = fork {
                found.lineage = Lineage {
                    parent: Some(*parent as u64),
                    fork_turn: *turn as u32,
                    fork_token: (*token > 0).then_some(*token as u32),
                    guided: false,
                };
            }
            trajectories.push(found);
        }
        Group { task: "t".to_owned(), trajectories }
    }

    /// Lengths and forks of a random tree.
    fn tree() -> impl Strategy<Value = Vec<Planned>> {
        let branch =
            (any::<prop::sample::Index>(), any::<prop::sample::Index>(), 0..TOKENS, 1..4_usize);
        (1..3_usize, proptest::collection::vec(branch, 0..8)).prop_map(|(trunks, branches)| {
            let mut plan: Vec<_> = (0..trunks).map(|trunk| (2 + trunk, None)).collect();
            for (parent, turn, token, more) in branches {
                let parent = parent.index(plan.len());
                let turn = turn.index(plan[parent].0);
                plan.push((turn + more, Some((parent, turn, token))));
            }
            plan
        })
    }

    proptest! {
        /// Every token that was ever sampled is owned once, with the mean over all paths that hold it.
        #[test]
        fn what_is_shared_is_trained_once_as_over_all_paths(
            plan in tree(),
            advantages in proptest::collection::vec(proptest::collection::vec(-2.0..2.0, 8), 10),
            absent in proptest::option::of(any::<prop::sample::Index>()),
        ) {
            // By force: who sampled the token in each place of each path.
            let mut sampled_by: Vec<Vec<usize>> = Vec::new();
            for (index, (length, fork)) in plan.iter().enumerate() {
                let mut tokens = match fork {
                    Some((parent, turn, token)) => sampled_by[*parent][..turn * TOKENS + token].to_vec(),
                    None => Vec::new(),
                };
                tokens.resize(length * TOKENS, index);
                sampled_by.push(tokens);
            }
            // One without ancestors may be missing: whoever comes first of its children owns what it sampled.
            let mut group = group(&plan);
            let absent = absent.map(|index| index.index(plan.len()));
            let absent = absent.filter(|index| plan[*index].1.is_none());
            let present: Vec<usize> =
                (0..plan.len()).filter(|index| Some(*index) != absent).collect();
            group.trajectories = present.iter().map(|index| group.trajectories[*index].clone()).collect();
            let of_present: Vec<Vec<f64>> =
                present.iter().map(|index| advantages[*index].clone()).collect();
            let mut through: BTreeMap<(usize, usize), Vec<f64>> = BTreeMap::new();
            for index in &present {
                for (place, sampler) in sampled_by[*index].iter().enumerate() {
                    let advantage = advantages[*index][place / TOKENS];
                    through.entry((*sampler, place)).or_default().push(advantage);
                }
            }
            let ownership = Ownership::of(&group);
            let mut owned: BTreeMap<(usize, usize), f64> = BTreeMap::new();
            for (position, index) in present.iter().enumerate() {
                for (place, sampler) in sampled_by[*index].iter().enumerate() {
                    let (turn, token) = (place / TOKENS, place % TOKENS);
                    let paths = through[&(*sampler, place)].len();
                    prop_assert_eq!(ownership.num_paths(position, turn, token), paths);
                    if ownership.owns(position, turn, token) {
                        let found = ownership.advantage(&of_present, position, turn, token);
                        let before = owned.insert((*sampler, place), found);
                        prop_assert!(before.is_none(), "owned twice: {sampler} {place}");
                    }
                }
            }
            prop_assert_eq!(owned.len(), through.len());
            for (node, found) in owned {
                let paths = &through[&node];
                let mean = paths.iter().sum::<f64>() / paths.len() as f64;
                prop_assert!((found - mean).abs() < 1e-12, "{node:?}: {found} and {mean}");
            }
        }
    }

    #[test]
    fn trajectories_that_share_nothing_keep_their_advantages() {
        let group = group(&[(2, None), (2, None)]);
        let advantages = [vec![0.1, 0.2], vec![0.3, 0.7]];
        let ownership = Ownership::of(&group);
        for (index, own) in advantages.iter().enumerate() {
            for (turn, own) in own.iter().enumerate() {
                assert!(ownership.owns(index, turn, 0));
                assert_eq!(ownership.advantage(&advantages, index, turn, 0), *own);
            }
        }
    }

    #[test]
    fn a_record_among_its_own_ancestors_ends() {
        let mut group = group(&[(1, None), (2, Some((0, 1, 0)))]);
        group.trajectories[0].lineage.parent = Some(1);
        let ownership = Ownership::of(&group);
        assert!(ownership.owns(1, 1, 0));
        group.trajectories[0].lineage.parent = Some(0);
        assert!(Ownership::of(&group).owns(0, 0, 0));
    }
}
