//! What predictors say of turns, which signals have token by token.

use spar_core::{Signal, Signals};

use super::inheritance::shares;
use super::whiten::whiten;
use super::{BatchView, CreditError};

/// A signal that all tokens of a turn have in common, turn by turn: `[i][t]` of turn `t` of trajectory `i`; 0 where a turn
/// has no tokens.
///
/// # Errors
///
/// As [`BatchView::stream`].
pub(super) fn of_turns(
    batch: &BatchView<'_>,
    signals: &Signals,
    signal: Signal,
) -> Result<Vec<Vec<f64>>, CreditError> {
    let stream = batch.stream(signals, signal)?;
    let of_trajectory = |(counts, values): (Vec<usize>, &Vec<f64>)| {
        let mut first = 0;
        let mut of_turn = |count: usize| {
            let value = if count == 0 { 0.0 } else { values[first] };
            first += count;
            value
        };
        counts.into_iter().map(&mut of_turn).collect()
    };
    Ok(batch.num_tokens().into_iter().zip(stream).map(of_trajectory).collect())
}

/// Gives advantages of turns mean 0 and deviation 1 over those turns of the batch that have tokens, what forks have in
/// common counting once; the others become 0, and so do those of redacted episodes.
///
/// # Errors
///
/// [`CreditError::Lineage`] when an episode is among its own ancestors.
pub(super) fn whiten_turns(
    batch: &BatchView<'_>,
    advantages: &mut [Vec<f64>],
) -> Result<(), CreditError> {
    let redacted: Vec<bool> = batch.trajectories().map(|t| t.episode.is_redacted).collect();
    let shares = shares(batch, false, |index| !redacted[index])?;
    let mut with_tokens = Vec::new();
    let of_trajectories = advantages.iter_mut().zip(shares).zip(batch.num_tokens());
    for (((values, shares), counts), is_redacted) in of_trajectories.zip(redacted) {
        for ((value, share), count) in values.iter_mut().zip(shares).zip(counts) {
            match count == 0 || is_redacted {
                true => *value = 0.0,
                false => with_tokens.push((value, share)),
            }
        }
    }
    whiten(with_tokens);
    Ok(())
}
