//! Splits for tests.

use spar_core::Seed;

use super::{Draw, KnownTask, Outcome, TaskOrder, Wanted};

/// A split of so many tasks in their own order, whose strata take turns.
pub(crate) struct Line {
    pub(crate) tasks: usize,
    pub(crate) strata: &'static [&'static str],
}

impl Line {
    pub(crate) fn of(tasks: usize) -> Self {
        Self { tasks, strata: &[] }
    }
}

impl TaskOrder for Line {
    fn len(&self) -> usize {
        self.tasks
    }

    fn look(&self, first: u64, count: usize) -> Vec<KnownTask> {
        let task = |place: u64| {
            let index = (place % self.tasks as u64) as usize;
            let stratum = self.strata.get(index % self.strata.len().max(1));
            KnownTask { place, index, stratum: stratum.map(|it| (*it).to_owned()) }
        };
        let count = if self.tasks == 0 { 0 } else { count as u64 };
        (first..first + count).map(task).collect()
    }

    fn text(&self, place: u64) -> String {
        let index = (place % self.tasks as u64) as usize;
        format!("task of kind {}", self.strata.get(index % self.strata.len().max(1)).unwrap_or(&""))
    }
}

pub(crate) fn wanted(groups: usize) -> Wanted {
    Wanted::new(groups, 4, Seed::from_u64(9))
}

pub(crate) fn places(draws: &[Draw]) -> Vec<u64> {
    draws.iter().map(|draw| draw.place).collect()
}

/// What came of four episodes of which so many earned 1.
pub(crate) fn of_four(successes: usize) -> Outcome {
    of(successes, 4)
}

pub(crate) fn of(successes: usize, episodes: usize) -> Outcome {
    let returns = (0..episodes).map(|it| f64::from(u8::from(it < successes))).collect();
    Outcome { returns, successes }
}
