//! Tasks that are played in several iterations.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use spar::core::registry::{NamedOptions, OptionSet, Row};
use spar::tasks::SamplerError;
use spar::tasks::samplers::{Draw, Outcome, SamplerRow, TaskOrder, TaskSampler, Wanted};

pub(crate) const ROW: SamplerRow = Row {
    name: "repeat",
    about: "Tasks in their shuffled order, those of an iteration in the next ones too.",
    source: "own",
    formula: "",
    options: OptionSet::of::<RepeatOptions>(),
    open: |given, first| {
        let RepeatOptions { times } = given.read()?;
        Ok(Box::new(Repeat { times, next: first, round: 0, behind: first, wanted: 0 }))
    },
};

/// Options of [`Repeat`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct RepeatOptions {
    /// Iterations, one after the other, that play the same tasks; at least 1. Default 2.
    times: u64,
}

impl Default for RepeatOptions {
    fn default() -> Self {
        Self { times: 2 }
    }
}

impl NamedOptions for RepeatOptions {
    fn problems(&self) -> Vec<String> {
        let is_none = self.times == 0;
        is_none.then(|| "times is 0, must be at least 1".to_owned()).into_iter().collect()
    }
}

/// Plays the tasks of an iteration in the next ones too.
#[derive(Debug)]
struct Repeat {
    times: u64,
    /// The place of the first task that is played next.
    next: u64,
    /// Iterations that have played these tasks.
    round: u64,
    /// The place behind all tasks that were played.
    behind: u64,
    /// Groups that the iteration still wants.
    wanted: usize,
}

impl TaskSampler for Repeat {
    fn name(&self) -> &'static str {
        "repeat"
    }

    fn begin(&mut self, wanted: &Wanted) {
        self.wanted = wanted.groups;
    }

    fn draw(&mut self, _: &dyn TaskOrder) -> Vec<Draw> {
        let count = std::mem::take(&mut self.wanted) as u64;
        let places = (self.next..self.next + count).map(Draw::from).collect();
        self.round += u64::from(count > 0);
        self.behind = self.behind.max(self.next + count);
        if self.round == self.times {
            (self.next, self.round) = (self.behind, 0);
        }
        places
    }

    fn observe(&mut self, outcomes: &[Outcome]) -> Vec<bool> {
        vec![true; outcomes.len()]
    }

    fn next_place(&self) -> u64 {
        self.behind
    }

    fn state(&self) -> Value {
        json!([self.next, self.round, self.behind])
    }

    fn load(&mut self, state: &Value) -> Result<(), SamplerError> {
        (self.next, self.round, self.behind) =
            Deserialize::deserialize(state).map_err(|_| SamplerError::State { name: "repeat" })?;
        Ok(())
    }
}
