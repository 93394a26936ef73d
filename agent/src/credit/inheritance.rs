//! Who sampled what: the turns or tokens that trajectories have in common.

use std::collections::HashMap;

use spar_core::{Lineage, Seat};

use super::{BatchView, CreditError};

/// Whether any trajectory of a batch was forked off from another one.
pub(super) fn is_forked(batch: &BatchView<'_>) -> bool {
    batch.trajectories().any(|trajectory| trajectory.episode.lineage.parent.is_some())
}

/// Whether any fork begins within a turn, so that what is in common cannot be told in turns.
pub(super) fn parts_turns(batch: &BatchView<'_>) -> bool {
    let begins_within = |lineage: &Lineage| lineage.fork_token.is_some_and(|token| token > 0);
    batch.trajectories().any(|trajectory| begins_within(&trajectory.episode.lineage))
        || batch.failed().iter().any(|(_, lineage)| begins_within(lineage))
}

/// The share that each trajectory of a batch has in each of its turns, or tokens: one over the number of trajectories
/// among those that `counts` tells which have it. All shares in a turn or token add up to one, so that sums over a tree
/// count everything once that was sampled.
///
/// # Errors
///
/// As [`segments`].
pub(super) fn shares(
    batch: &BatchView<'_>,
    per_token: bool,
    counts: impl Fn(usize) -> bool,
) -> Result<Vec<Vec<f64>>, CreditError> {
    let num_tokens = batch.num_tokens();
    let len = |turns: &Vec<usize>| if per_token { turns.iter().sum() } else { turns.len() };
    let mut shares: Vec<Vec<f64>> = num_tokens.iter().map(|turns| vec![1.0; len(turns)]).collect();
    if !is_forked(batch) {
        return Ok(shares);
    }
    let segments = segments(batch, &num_tokens, per_token)?;
    let counted = || segments.iter().enumerate().filter(|(index, _)| counts(*index));
    let mut holders: HashMap<(u64, Seat), Vec<f64>> = HashMap::new();
    for segment in counted().flat_map(|(_, segments)| segments) {
        let units = holders.entry(segment.origin).or_default();
        if units.len() < segment.end {
            units.resize(segment.end, 0.0);
        }
        units[segment.start..segment.end].iter_mut().for_each(|count| *count += 1.0);
    }
    for (index, segments) in counted() {
        for segment in segments {
            let holders = &holders[&segment.origin];
            for unit in segment.start..segment.end {
                shares[index][unit] = 1.0 / holders[unit];
            }
        }
    }
    Ok(shares)
}

/// Turns or tokens of a trajectory that were sampled in one episode.
#[derive(Debug)]
pub(super) struct Segment {
    /// The episode and seat that sampled them.
    pub(super) origin: (u64, Seat),
    /// The first of them.
    pub(super) start: usize,
    /// The first behind them.
    pub(super) end: usize,
    /// Whether that is the trajectory itself.
    pub(super) is_own: bool,
}

/// Divides every trajectory by who sampled what, newest first: in turns, or in tokens over all turns.
///
/// # Errors
///
/// [`CreditError::Lineage`] when an episode is among its own ancestors.
pub(super) fn segments(
    batch: &BatchView<'_>,
    num_tokens: &[Vec<usize>],
    per_token: bool,
) -> Result<Vec<Vec<Segment>>, CreditError> {
    let failed: HashMap<u64, &Lineage> =
        batch.failed().iter().map(|(episode, lineage)| (*episode, lineage)).collect();
    // The seats of an episode have taken over as many turns as each of them had.
    let lineages: HashMap<(u64, Seat), &Lineage> = batch
        .trajectories()
        .map(|t| ((t.episode.episode, t.episode.seat), &t.episode.lineage))
        .collect();
    let mut all = Vec::with_capacity(num_tokens.len());
    for (trajectory, counts) in batch.trajectories().zip(num_tokens) {
        let episode = trajectory.episode;
        // What an ancestor inherited is the beginning of this trajectory as well, in the same turns and tokens.
        let inherited = |lineage: &Lineage| match (lineage.parent, per_token) {
            (None, _) => 0,
            (Some(_), false) => lineage.fork_turn as usize,
            (Some(_), true) => {
                let turns: usize = counts.iter().take(lineage.fork_turn as usize).sum();
                turns + lineage.fork_token.unwrap_or(0) as usize
            }
        };
        let mut end = if per_token { counts.iter().sum() } else { counts.len() };
        let mut segments = Vec::new();
        let mut current = episode.episode;
        for generation in 0.. {
            // Of an ancestor of which nothing is known, nothing older is known either.
            let lineage = lineages.get(&(current, episode.seat)).or(failed.get(&current)).copied();
            let start = lineage.map_or(0, inherited).min(end);
            if start < end {
                let origin = (current, episode.seat);
                segments.push(Segment { origin, start, end, is_own: generation == 0 });
            }
            end = start;
            let Some(parent) = lineage.and_then(|lineage| lineage.parent) else { break };
            if end == 0 {
                break;
            }
            if generation > lineages.len() + failed.len() {
                return Err(CreditError::Lineage { episode: episode.episode });
            }
            current = parent;
        }
        all.push(segments);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::super::test_vectors::step_of;
    use super::super::{EpisodeView, GroupView};
    use super::*;

    #[test]
    fn shares_in_what_is_common_add_up_to_one() {
        let fork = |episode, parent, fork_turn, fork_token| {
            let lineage =
                Lineage { parent: Some(parent), fork_turn, fork_token, ..Lineage::default() };
            EpisodeView { lineage, ..EpisodeView::new(episode) }
        };
        let mut group = GroupView::default();
        let steps = |counts: &[usize]| counts.iter().map(|count| step_of(0.0, *count)).collect();
        let mut push = |episode, counts: &[usize]| {
            let steps: Vec<_> = steps(counts);
            group.push_episode(episode, steps);
        };
        push(EpisodeView::new(1), &[2, 2]);
        push(fork(2, 1, 1, None), &[2, 1]);
        push(fork(3, 1, 1, Some(1)), &[2, 3]);
        let batch = BatchView::from(group);
        assert!(is_forked(&batch) && parts_turns(&batch));
        let third = 1.0 / 3.0;
        let tokens = shares(&batch, true, |_| true).unwrap();
        assert_eq!(tokens[0], [third, third, 0.5, 1.0]);
        assert_eq!(tokens[1], [third, third, 1.0]);
        assert_eq!(tokens[2], [third, third, 0.5, 1.0, 1.0]);
        let turns = shares(&batch, false, |_| true).unwrap();
        assert_eq!(turns, [[third, 1.0], [third, 1.0], [third, 1.0]]);
        let two = shares(&batch, false, |index| index != 1).unwrap();
        assert_eq!((two[0][0], two[1][0]), (0.5, 1.0), "who does not count has nothing to share");
    }
}
