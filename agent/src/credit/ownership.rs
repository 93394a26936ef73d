//! Who is trained on turns that several trajectories have in common.

use std::collections::HashMap;

use spar_core::{Credit, PerTurnOrToken, Seat};

use super::inheritance::{is_forked, parts_turns, segments};
use super::{BatchView, CreditError};

/// Gives every inherited turn to one trajectory, with the advantage of all paths that run through it.
///
/// A fork's record begins with what it inherited from its parent, whole: the turns before its `fork_turn`, and
/// of that one the sampled tokens before its `fork_token` where it parts in mid-turn. Of each such turn there
/// is one owner: the trajectory that sampled it, or, where that one failed or is not `kept`, the first of its
/// descendants in the batch that is and that no demonstrator guided. With the paths `P` through it, which are the owner and all forks that
/// inherited it, kept or not, its advantage becomes
///
/// ```text
/// A = sum_{p in P} w_p A_p / sum_{p in P} w_p,    w = sum_{p in P} w_p / |P|
/// ```
///
/// where `A_p` is what the estimator said of it on path `p` and `w_p` how it weighs that path: 1 unless it gives
/// weights, so that `A` is the plain mean and `w` is 1. Returns are combined as advantages are. All others that
/// have the turn weigh it 0. With equal probabilities on all paths the gradient is `1 / |P|` of that of training
/// each path by itself, so that a turn counts as one, however many forks it has. ARPO's hard attribution (arXiv
/// 2507.19849) is the same mean.
///
/// Where nothing was forked the credit comes back as it is. Otherwise it has weights, and where a fork begins in
/// mid-turn it is per token. Time is linear in tokens and forks' depths.
///
/// # Errors
///
/// [`CreditError::Shape`] when the credit, or `kept`, is that of another batch, [`CreditError::Lineage`] when an
/// episode is among its own ancestors.
///
/// # Panics
///
/// When `kept` has not one entry per trajectory.
pub fn settle_ownership(
    batch: &BatchView<'_>,
    credit: Credit,
    kept: &[bool],
) -> Result<Credit, CreditError> {
    let num_tokens = batch.num_tokens();
    credit.check(&num_tokens)?;
    assert_eq!(kept.len(), num_tokens.len(), "every trajectory is kept or not");
    if !is_forked(batch) {
        return Ok(credit);
    }
    // 1. Everything in one unit: tokens where something is per token, or begins in mid-turn, else turns.
    let Credit { advantages, weights, returns } = credit;
    let is_tokens = |values: &PerTurnOrToken| matches!(values, PerTurnOrToken::Tokens(_));
    let per_token = is_tokens(&advantages)
        || weights.as_ref().is_some_and(is_tokens)
        || returns.as_ref().is_some_and(is_tokens)
        || parts_turns(batch);
    let in_units = |values: PerTurnOrToken| match values {
        PerTurnOrToken::Turns(turns) if !per_token => turns,
        values => values.into_tokens(&num_tokens),
    };
    let mut advantages = in_units(advantages);
    let mut returns = returns.map(in_units);
    let ones = || advantages.iter().map(|values| vec![1.0; values.len()]).collect();
    let mut weights: Vec<Vec<f64>> = weights.map_or_else(ones, in_units);

    // 2. What each trajectory has of whom, and the sums over all that have it.
    let segments = segments(batch, &num_tokens, per_token)?;
    let mut shared: HashMap<(u64, Seat), Vec<Shared>> = HashMap::new();
    for (index, (segments, trajectory)) in segments.iter().zip(batch.trajectories()).enumerate() {
        let is_guided = trajectory.episode.lineage.guided;
        for segment in segments {
            // What a demonstrator wrote stays its own; of others it inherits nothing that is trained.
            let may_own = kept[index] && (segment.is_own || !is_guided);
            let units = shared.entry(segment.origin).or_default();
            if units.len() < segment.end {
                units.resize(segment.end, Shared::default());
            }
            for unit in segment.start..segment.end {
                let weight = weights[index][unit];
                let target = returns.as_ref().map_or(0.0, |returns| returns[index][unit]);
                let is_first = units[unit].owner.is_none() || segment.is_own;
                units[unit].add(weight, advantages[index][unit], target);
                if may_own && is_first {
                    units[unit].owner = Some(index);
                }
            }
        }
    }

    // 3. Owners take the means.
    for (index, segments) in segments.iter().enumerate() {
        for segment in segments {
            let units = &shared[&segment.origin];
            for unit in segment.start..segment.end {
                let shared = &units[unit];
                if shared.paths == 1 {
                    continue;
                }
                advantages[index][unit] = shared.mean(shared.advantages);
                if let Some(returns) = &mut returns {
                    returns[index][unit] = shared.mean(shared.returns);
                }
                let owns = shared.owner == Some(index);
                weights[index][unit] =
                    if owns { shared.weights / f64::from(shared.paths) } else { 0.0 };
            }
        }
    }
    let out = |values| match per_token {
        true => PerTurnOrToken::Tokens(values),
        false => PerTurnOrToken::Turns(values),
    };
    Ok(Credit {
        advantages: out(advantages),
        weights: Some(out(weights)),
        returns: returns.map(out),
    })
}

/// Sums over the paths that run through a turn or token.
#[derive(Debug, Clone, Default)]
struct Shared {
    owner: Option<usize>,
    paths: u32,
    weights: f64,
    /// Sum of weighted advantages.
    advantages: f64,
    /// Sum of weighted returns.
    returns: f64,
}

impl Shared {
    fn add(&mut self, weight: f64, advantage: f64, target: f64) {
        self.paths += 1;
        self.weights += weight;
        self.advantages += weight * advantage;
        self.returns += weight * target;
    }

    fn mean(&self, sum: f64) -> f64 {
        if self.weights == 0.0 { 0.0 } else { sum / self.weights }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use spar_core::Lineage;

    use super::super::test_vectors::step_of;
    use super::super::{EpisodeView, GroupView};
    use super::*;

    fn fork(episode: u64, parent: u64, fork_turn: u32, fork_token: Option<u32>) -> EpisodeView {
        let lineage = Lineage { parent: Some(parent), fork_turn, fork_token, ..Lineage::default() };
        EpisodeView { lineage, ..EpisodeView::new(episode) }
    }

    /// Episodes with the tokens of their turns, as one group.
    fn batch(episodes: Vec<(EpisodeView, Vec<usize>)>) -> BatchView<'static> {
        let mut group = GroupView::default();
        for (episode, turns) in episodes {
            group.push_episode(episode, turns.into_iter().map(|count| step_of(0.0, count)));
        }
        group.into()
    }

    fn turns(values: &[&[f64]]) -> PerTurnOrToken {
        PerTurnOrToken::Turns(values.iter().map(|list| list.to_vec()).collect())
    }

    fn settle(batch: &BatchView<'_>, advantages: &[&[f64]], kept: &[bool]) -> Credit {
        let credit = Credit { advantages: turns(advantages), weights: None, returns: None };
        settle_ownership(batch, credit, kept).unwrap()
    }

    #[test]
    fn an_origin_carries_the_mean_of_its_forks() {
        let batch = batch(vec![
            (EpisodeView::new(7), vec![1, 1, 1]),
            (fork(8, 7, 2, None), vec![1, 1, 1, 1]),
            (fork(9, 8, 1, None), vec![1, 1]),
        ]);
        let advantages: [&[f64]; 3] = [&[3.0; 3], &[0.0; 4], &[-6.0; 2]];
        let credit = settle(&batch, &advantages, &[true; 3]);
        assert_eq!(
            credit.advantages,
            turns(&[&[-1.0, 1.5, 3.0], &[-1.0, 1.5, 0.0, 0.0], &[-1.0, -6.0]])
        );
        let weights: [&[f64]; 3] = [&[1.0; 3], &[0.0, 0.0, 1.0, 1.0], &[0.0, 1.0]];
        assert_eq!(credit.weights, Some(turns(&weights)));
        // One that is not trained still says what its path was worth, and the next one owns.
        let credit = settle(&batch, &advantages, &[false, true, true]);
        assert_eq!(
            credit.advantages,
            turns(&[&[-1.0, 1.5, 3.0], &[-1.0, 1.5, 0.0, 0.0], &[-1.0, -6.0]])
        );
        let weights: [&[f64]; 3] = [&[0.0, 0.0, 1.0], &[1.0; 4], &[0.0, 1.0]];
        assert_eq!(credit.weights, Some(turns(&weights)));
    }

    #[test]
    fn forks_of_one_that_failed_share_what_they_have_of_it() {
        let forks =
            || vec![(fork(8, 7, 1, None), vec![1, 1]), (fork(9, 7, 2, None), vec![1, 1, 1])];
        let siblings = batch(forks());
        let credit = settle(&siblings, &[&[1.0; 2], &[3.0; 3]], &[true; 2]);
        assert_eq!(credit.advantages, turns(&[&[2.0, 1.0], &[2.0, 3.0, 3.0]]));
        assert_eq!(credit.weights, Some(turns(&[&[1.0, 1.0], &[0.0, 1.0, 1.0]])));
        // The one that failed was a fork itself, of one that did not.
        let mut episodes = vec![(EpisodeView::new(1), vec![1, 1])];
        episodes.extend(forks());
        let mut whole = batch(episodes);
        whole.push_failed(7, fork(7, 1, 1, None).lineage);
        let credit = settle(&whole, &[&[5.0; 2], &[1.0; 2], &[3.0; 3]], &[true; 3]);
        assert_eq!(credit.advantages, turns(&[&[3.0, 5.0], &[3.0, 1.0], &[3.0, 3.0, 3.0]]));
        let weights: [&[f64]; 3] = [&[1.0, 1.0], &[0.0, 1.0], &[0.0, 1.0, 1.0]];
        assert_eq!(credit.weights, Some(turns(&weights)));
    }

    #[test]
    fn a_guided_fork_owns_what_it_sampled_alone() {
        let mut guided = fork(8, 7, 1, None);
        guided.lineage.guided = true;
        let forks = vec![(guided, vec![1, 1]), (fork(9, 7, 1, None), vec![1, 1])];
        let credit = settle(&batch(forks), &[&[1.0; 2], &[3.0; 2]], &[true; 2]);
        assert_eq!(credit.advantages, turns(&[&[2.0, 1.0], &[2.0, 3.0]]));
        assert_eq!(credit.weights, Some(turns(&[&[0.0, 1.0], &[1.0, 1.0]])));
    }

    #[test]
    fn a_fork_in_mid_turn_shares_the_tokens_before_it() {
        let batch =
            batch(vec![(EpisodeView::new(1), vec![2, 3]), (fork(2, 1, 1, Some(1)), vec![2, 2])]);
        let credit = settle(&batch, &[&[1.0, 3.0], &[3.0, -1.0]], &[true; 2]);
        assert_eq!(
            credit.advantages,
            PerTurnOrToken::Tokens(vec![vec![2.0, 2.0, 1.0, 3.0, 3.0], vec![2.0, 2.0, 1.0, -1.0]])
        );
        assert_eq!(
            credit.weights,
            Some(PerTurnOrToken::Tokens(vec![vec![1.0; 5], vec![0.0, 0.0, 0.0, 1.0]]))
        );
    }

    #[test]
    fn an_estimator_may_weigh_paths() {
        let batch =
            batch(vec![(EpisodeView::new(1), vec![1, 1]), (fork(2, 1, 1, None), vec![1, 1])]);
        let credit = Credit {
            advantages: turns(&[&[4.0, 4.0], &[1.0, 1.0]]),
            weights: Some(turns(&[&[0.5, 0.5], &[1.0, 1.0]])),
            returns: Some(turns(&[&[8.0, 8.0], &[2.0, 2.0]])),
        };
        let credit = settle_ownership(&batch, credit, &[true; 2]).unwrap();
        assert_eq!(credit.advantages, turns(&[&[2.0, 4.0], &[2.0, 1.0]]));
        assert_eq!(credit.weights, Some(turns(&[&[0.75, 0.5], &[0.0, 1.0]])));
        assert_eq!(credit.returns, Some(turns(&[&[4.0, 8.0], &[4.0, 2.0]])));
    }

    #[test]
    fn without_forks_nothing_changes_and_circles_are_refused() {
        let plain = batch(vec![(EpisodeView::new(1), vec![1]), (EpisodeView::new(2), vec![1])]);
        let credit = settle(&plain, &[&[1.0], &[2.0]], &[true; 2]);
        assert_eq!(credit, Credit::of_turns(vec![vec![1.0], vec![2.0]]));
        let circle = batch(vec![(fork(1, 2, 1, None), vec![1]), (fork(2, 1, 1, None), vec![1])]);
        let credit = Credit::of_turns(vec![vec![1.0], vec![1.0]]);
        let error = settle_ownership(&circle, credit, &[true; 2]).unwrap_err();
        assert!(matches!(error, CreditError::Lineage { .. }));
    }

    /// A node of a tree of tokens: the path to it, and the trajectories through it.
    type Path = Vec<u64>;

    /// Trajectories as paths of token names; a fork begins with the names of its parent.
    #[derive(Debug, Clone)]
    struct Tree {
        episodes: Vec<(EpisodeView, Vec<usize>, Path)>,
        failed: Vec<bool>,
    }

    fn trees() -> impl Strategy<Value = Tree> {
        let node = (any::<prop::sample::Index>(), any::<prop::sample::Index>(), 0..4_u8);
        let own = prop::collection::vec(1_usize..4, 0..4);
        let plan = prop::collection::vec((node, own, 0..5_u8), 1..9);
        (plan, any::<bool>()).prop_map(|(plan, in_turns)| {
            let mut tree = Tree { episodes: Vec::new(), failed: Vec::new() };
            let mut name = 0;
            for (number, ((parent, place, root), own, failed)) in plan.into_iter().enumerate() {
                let id = 100 + number as u64;
                let (mut episode, mut counts, mut path) =
                    (EpisodeView::new(id), Vec::new(), Vec::new());
                if number > 0 && root > 0 {
                    let (of, parent_counts, parent_path) =
                        &tree.episodes[parent.index(tree.episodes.len())];
                    let tokens = place.index(parent_path.len() + 1);
                    let (mut left, mut turn) = (tokens, 0);
                    while turn < parent_counts.len() && parent_counts[turn] <= left {
                        left -= parent_counts[turn];
                        turn += 1;
                    }
                    if !in_turns {
                        left = 0;
                    }
                    counts = parent_counts[..turn].to_vec();
                    let inherited = counts.iter().sum::<usize>() + left;
                    path = parent_path[..inherited].to_vec();
                    let token = (left > 0).then_some(left as u32);
                    episode = fork(id, of.episode, turn as u32, token);
                    if left > 0 {
                        counts.push(left);
                    }
                }
                let mut own = own.into_iter();
                if episode.lineage.fork_token.is_some() {
                    *counts.last_mut().unwrap() += own.next().unwrap_or(0);
                }
                counts.extend(own);
                while path.len() < counts.iter().sum() {
                    name += 1;
                    path.push(name);
                }
                tree.episodes.push((episode, counts, path));
                tree.failed.push(failed == 0);
            }
            tree
        })
    }

    proptest! {
        /// Brute force: a token is named, and all paths from the root to a leaf that contain its name are
        /// looked through.
        #[test]
        fn trees_agree_with_all_paths_from_root_to_leaf(
            tree in trees(),
            worth in prop::collection::vec(-4..5_i8, 9),
            unkept in prop::collection::vec(0..4_u8, 9),
        ) {
            let failed = tree.failed.clone();
            let survivors: Vec<usize> = (0..failed.len()).filter(|&i| !failed[i]).collect();
            let kept: Vec<bool> = survivors.iter().map(|&i| unkept[i] > 0).collect();
            let mut view = batch(
                survivors.iter().map(|&i| (tree.episodes[i].0.clone(), tree.episodes[i].1.clone())).collect(),
            );
            for (i, _) in failed.iter().enumerate().filter(|(_, failed)| **failed) {
                view.push_failed(tree.episodes[i].0.episode, tree.episodes[i].0.lineage.clone());
            }
            let advantages: Vec<Vec<f64>> = survivors
                .iter()
                .map(|&i| vec![f64::from(worth[i]); tree.episodes[i].1.len()])
                .collect();
            let num_tokens = view.num_tokens();
            let credit = settle_ownership(&view, Credit::of_turns(advantages), &kept).unwrap();
            let found = credit.advantages.into_tokens(&num_tokens);
            let weights = credit.weights.map(|weights| weights.into_tokens(&num_tokens));
            for (row, &i) in survivors.iter().enumerate() {
                let inherited_names: usize = tree.episodes[i].2.len();
                for token in 0..inherited_names {
                    let name = tree.episodes[i].2[token];
                    let through: Vec<usize> = survivors
                        .iter()
                        .copied()
                        .filter(|&j| tree.episodes[j].2.contains(&name))
                        .collect();
                    let sum: f64 = through.iter().map(|&j| f64::from(worth[j])).sum();
                    let mean = sum / through.len() as f64;
                    prop_assert!((found[row][token] - mean).abs() < 1e-9);
                    // Who sampled it is the first of all that ever had it; then whoever comes next.
                    let sampled_by =
                        (0..failed.len()).find(|&j| tree.episodes[j].2.contains(&name)).unwrap();
                    let is_kept = |j: &&usize| unkept[**j] > 0;
                    let owner = through
                        .iter()
                        .filter(is_kept)
                        .find(|j| **j == sampled_by)
                        .or_else(|| through.iter().find(is_kept));
                    let is_single = through.len() == 1;
                    let expected = f64::from(u8::from(is_single || owner == Some(&i)));
                    let weight = weights.as_ref().map_or(1.0, |weights| weights[row][token]);
                    prop_assert_eq!(weight, expected);
                }
            }
            // Every token of the tree that a trained trajectory has is trained once.
            for (row, &i) in survivors.iter().enumerate().filter(|(row, _)| kept[*row]) {
                for name in &tree.episodes[i].2 {
                    let trained: f64 = survivors
                        .iter()
                        .enumerate()
                        .filter(|(other, _)| kept[*other])
                        .filter_map(|(other, &j)| {
                            let place = tree.episodes[j].2.iter().position(|n| n == name)?;
                            Some(weights.as_ref().map_or(1.0, |weights| weights[other][place]))
                        })
                        .sum();
                    prop_assert_eq!(trained, 1.0, "in row {}", row);
                }
            }
        }
    }
}
