//! Rounds that replace the groups which are not kept.

use serde_json::Value;

use super::{Draw, Wanted, read, written};
use crate::SamplerError;

/// The rounds of an iteration: the first one draws as many tasks as groups are wanted, each further one as many as are still
/// missing, all in their shuffled order, until none is or `max_rounds` are over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refill {
    max_rounds: u32,
    /// The place of the task that comes next.
    next: u64,
    /// Groups that the iteration still wants.
    wanted: usize,
    /// Rounds that it has played.
    rounds: u32,
}

impl Refill {
    /// Rounds that begin at this place.
    pub(super) fn new(max_rounds: u32, first: u64) -> Self {
        Self { max_rounds, next: first, wanted: 0, rounds: 0 }
    }

    /// Begins an iteration.
    pub(super) fn begin(&mut self, wanted: &Wanted) {
        (self.wanted, self.rounds) = (wanted.groups, 0);
    }

    /// The places of the next round; none when no group is missing or the rounds are over.
    pub(super) fn draw(&mut self) -> Vec<Draw> {
        if self.rounds == self.max_rounds {
            return Vec::new();
        }
        self.rounds += 1;
        let first = self.next;
        self.next += self.wanted as u64;
        (first..self.next).map(Draw::from).collect()
    }

    /// Notes which groups of a round are kept.
    pub(super) fn note(&mut self, kept: &[bool]) {
        self.wanted = self.wanted.saturating_sub(kept.iter().filter(|kept| **kept).count());
    }

    /// The place behind all that was drawn.
    pub(super) fn next_place(&self) -> u64 {
        self.next
    }

    /// What has to be kept between iterations.
    pub(super) fn state(&self) -> Value {
        written(&self.next)
    }

    /// Goes on from a [state](Self::state) of the sampler of this name.
    ///
    /// # Errors
    ///
    /// [`SamplerError::State`] when it is none.
    pub(super) fn load(&mut self, name: &'static str, state: &Value) -> Result<(), SamplerError> {
        self.next = read(name, state)?;
        Ok(())
    }
}
