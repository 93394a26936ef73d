//! What an iteration wants, and what is drawn for it.

use spar_core::Seed;

/// What an iteration wants of a sampler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wanted {
    /// Groups.
    pub groups: usize,
    /// Episodes of each where the sampler says nothing else.
    pub group_size: usize,
    /// Where the sampler's random choices in this iteration start.
    pub seed: Seed,
}

impl Wanted {
    /// So many groups of so many episodes.
    pub fn new(groups: usize, group_size: usize, seed: Seed) -> Self {
        Self { groups, group_size, seed }
    }
}

/// A task that is played.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Draw {
    /// Its place in the shuffled order.
    pub place: u64,
    /// Episodes, at least 1; absent: as many as every group has.
    pub rollouts: Option<usize>,
}

impl Draw {
    /// The task at a place, with so many episodes.
    pub fn with_rollouts(place: u64, rollouts: usize) -> Self {
        Self { place, rollouts: Some(rollouts.max(1)) }
    }
}

impl From<u64> for Draw {
    fn from(place: u64) -> Self {
        Self { place, rollouts: None }
    }
}
