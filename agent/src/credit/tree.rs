//! Turns as nodes of the trees that forks make.

use std::collections::HashMap;

use spar_core::Seat;

use super::inheritance::segments;
use super::{BatchView, CreditError};

/// The turns of a batch, each once, however many trajectories have it in common.
pub(super) struct TurnTree {
    /// `[i][t]` is the node of turn `t` of trajectory `i`.
    pub(super) nodes: Vec<Vec<usize>>,
    /// How many nodes there are.
    pub(super) len: usize,
}

impl TurnTree {
    /// # Errors
    ///
    /// [`CreditError::Lineage`] when an episode is among its own ancestors.
    pub(super) fn of(batch: &BatchView<'_>) -> Result<Self, CreditError> {
        let num_tokens = batch.num_tokens();
        let mut ids: HashMap<(u64, Seat, usize), usize> = HashMap::new();
        let mut nodes: Vec<Vec<usize>> =
            num_tokens.iter().map(|turns| vec![0; turns.len()]).collect();
        for (trajectory, segments) in segments(batch, &num_tokens, false)?.iter().enumerate() {
            for segment in segments {
                let (episode, seat) = segment.origin;
                let turns = segment.start..segment.end;
                for (node, turn) in nodes[trajectory][turns.clone()].iter_mut().zip(turns) {
                    let next = ids.len();
                    *node = *ids.entry((episode, seat, turn)).or_insert(next);
                }
            }
        }
        Ok(Self { nodes, len: ids.len() })
    }

    /// The mean over the trajectories that go through each node of what they have; what is not finite is not counted, and the mean of
    /// nothing is no number.
    pub(super) fn means(&self, of_trajectories: &[f64]) -> Vec<f64> {
        let mut sums = vec![(0.0, 0_u32); self.len];
        for (nodes, value) in self.nodes.iter().zip(of_trajectories) {
            for node in nodes.iter().filter(|_| value.is_finite()) {
                sums[*node].0 += value;
                sums[*node].1 += 1;
            }
        }
        sums.into_iter().map(|(sum, count)| sum / f64::from(count)).collect()
    }
}
