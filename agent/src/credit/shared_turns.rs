//! How turns are trained that several trajectories have in common.

use spar_core::{Credit, PerTurnOrToken};

use super::inheritance::{is_forked, parts_turns, shares};
use super::{BatchView, CreditError, settle_ownership};

/// How turns are trained that several trajectories have in common: once, either way.
///
/// A decoder reads and differentiates them once either way too, where samples that begin alike are read together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SharedTurns {
    /// In one trajectory, with the mean of all, as [`settle_ownership`] says. At the weights that sampled, losses that
    /// are sums over tokens, each linear in its token's advantage, have the gradient of all trajectories by themselves,
    /// what `p` of them have in common weighing `1/p` in each.
    #[default]
    Owned,
    /// In each of those trajectories that are trained, by equal parts: where `p` of them have a turn, it keeps its own
    /// advantage in each and `1/p` of its weight there. For losses in which a token's part depends on the rest of its
    /// sample, or not linearly on its advantage: they see whole trajectories, and their gradient is that of these by
    /// themselves, at whatever weights.
    Divided,
}

impl SharedTurns {
    /// The credit of a batch of which `kept` are trained, each turn being trained once.
    ///
    /// # Errors
    ///
    /// As [`settle_ownership`].
    ///
    /// # Panics
    ///
    /// When `kept` has not one entry per trajectory.
    pub fn settle(
        self,
        batch: &BatchView<'_>,
        credit: Credit,
        kept: &[bool],
    ) -> Result<Credit, CreditError> {
        match self {
            Self::Owned => settle_ownership(batch, credit, kept),
            Self::Divided => divide(batch, credit, kept),
        }
    }
}

/// Divides the weight of every turn, or token, by the number of trajectories that are trained on it.
fn divide(batch: &BatchView<'_>, mut credit: Credit, kept: &[bool]) -> Result<Credit, CreditError> {
    let num_tokens = batch.num_tokens();
    credit.check(&num_tokens)?;
    assert_eq!(kept.len(), num_tokens.len(), "every trajectory is kept or not");
    if !is_forked(batch) {
        return Ok(credit);
    }
    let per_token = parts_turns(batch) || matches!(credit.weights, Some(PerTurnOrToken::Tokens(_)));
    // Nobody is trained on what a demonstrator wrote.
    let is_trained: Vec<bool> = batch
        .trajectories()
        .zip(kept)
        .map(|(trajectory, kept)| *kept && !trajectory.episode.lineage.guided)
        .collect();
    let mut weights = shares(batch, per_token, |index| is_trained[index])?;
    let given = credit.weights.take().map(|given| match given {
        PerTurnOrToken::Turns(turns) if !per_token => turns,
        given => given.into_tokens(&num_tokens),
    });
    for (weights, given) in weights.iter_mut().zip(given.iter().flatten()) {
        weights.iter_mut().zip(given).for_each(|(weight, given)| *weight *= given);
    }
    credit.weights = Some(match per_token {
        true => PerTurnOrToken::Tokens(weights),
        false => PerTurnOrToken::Turns(weights),
    });
    Ok(credit)
}

#[cfg(test)]
mod tests {
    use spar_core::Lineage;

    use super::super::test_vectors::step_of;
    use super::super::{EpisodeView, GroupView};
    use super::*;

    fn batch(fork_token: Option<u32>) -> BatchView<'static> {
        let mut group = GroupView::default();
        group.push_episode(EpisodeView::new(1), [step_of(0.0, 1), step_of(0.0, 2)]);
        let lineage = Lineage { parent: Some(1), fork_turn: 1, fork_token, ..Lineage::default() };
        let fork = EpisodeView { lineage, ..EpisodeView::new(2) };
        group.push_episode(fork, [step_of(0.0, 1), step_of(0.0, 2)]);
        group.into()
    }

    #[test]
    fn trajectories_keep_their_advantages_and_share_the_weight() {
        let turns = |values: [[f64; 2]; 2]| {
            PerTurnOrToken::Turns(values.iter().map(|turns| turns.to_vec()).collect())
        };
        let credit = || Credit {
            advantages: turns([[1.0, 2.0], [-1.0, 3.0]]),
            weights: Some(turns([[1.0, 0.0], [0.5, 1.0]])),
            returns: None,
        };
        let batch_of_turns = batch(None);
        let divided = |kept: [bool; 2]| {
            SharedTurns::Divided.settle(&batch_of_turns, credit(), &kept).unwrap()
        };
        let found = divided([true; 2]);
        assert_eq!(found.advantages, credit().advantages);
        assert_eq!(found.weights, Some(turns([[0.5, 0.0], [0.25, 1.0]])));
        // One alone has it whole.
        let found = divided([false, true]);
        assert_eq!(found.weights, Some(turns([[1.0, 0.0], [0.5, 1.0]])));
        // In mid-turn, and where nothing weighs anything by itself.
        let plain = Credit { weights: None, ..credit() };
        let found = SharedTurns::Divided.settle(&batch(Some(1)), plain, &[true; 2]).unwrap();
        let tokens = vec![vec![0.5, 0.5, 1.0]; 2];
        assert_eq!(found.weights, Some(PerTurnOrToken::Tokens(tokens)));
    }
}
