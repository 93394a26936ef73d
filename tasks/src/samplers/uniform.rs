//! All tasks alike.

use serde_json::Value;

use super::{Draw, Outcome, TaskOrder, TaskSampler, Wanted};
use crate::SamplerError;

/// Takes the tasks as they come in their shuffled, stratified order: every one once an epoch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Uniform {
    /// The place of the task that comes next.
    next: u64,
    /// Groups that the iteration still wants.
    wanted: usize,
}

impl Uniform {
    /// A sampler that begins at this place.
    pub fn new(first: u64) -> Self {
        Self { next: first, wanted: 0 }
    }
}

impl TaskSampler for Uniform {
    fn name(&self) -> &'static str {
        "uniform"
    }

    fn begin(&mut self, wanted: &Wanted) {
        self.wanted = wanted.groups;
    }

    fn draw(&mut self, _: &dyn TaskOrder) -> Vec<Draw> {
        let first = self.next;
        self.next += std::mem::take(&mut self.wanted) as u64;
        (first..self.next).map(Draw::from).collect()
    }

    fn observe(&mut self, outcomes: &[Outcome]) -> Vec<bool> {
        vec![true; outcomes.len()]
    }

    fn next_place(&self) -> u64 {
        self.next
    }

    fn state(&self) -> Value {
        self.next.into()
    }

    fn load(&mut self, state: &Value) -> Result<(), SamplerError> {
        self.next = state.as_u64().ok_or(SamplerError::State { name: "uniform" })?;
        Ok(())
    }
}
