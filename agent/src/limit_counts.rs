//! How many episodes each limit ended.

use std::fmt;
use std::ops::AddAssign;

use serde::{Deserialize, Serialize};
use spar_core::{EndReason, Limit};

/// How many episodes each limit ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct LimitCounts {
    /// By [`Limit::Turns`].
    pub turns: usize,
    /// By [`Limit::Tokens`].
    pub tokens: usize,
    /// By [`Limit::Context`].
    pub context: usize,
    /// By [`Limit::TaskTime`].
    pub task_time: usize,
    /// By [`Limit::CommandTime`].
    pub command_time: usize,
    /// By [`Limit::Cost`].
    pub cost: usize,
    /// By [`Limit::Time`], which only records of version 1 have.
    #[serde(skip_serializing_if = "is_zero")]
    pub time: usize,
}

impl LimitCounts {
    /// Counts how an episode ended, if a limit ended it.
    pub fn count(&mut self, end: &EndReason) {
        if let EndReason::Truncated { limit } = end {
            *self.of_mut(*limit) += 1;
        }
    }

    /// Episodes that this limit ended.
    pub fn of(&self, limit: Limit) -> usize {
        *Self { ..*self }.of_mut(limit)
    }

    /// Episodes that any limit ended.
    pub fn total(&self) -> usize {
        let of = |limit: Limit| self.of(limit);
        Limit::ALL.into_iter().chain([Limit::Time]).map(of).sum()
    }

    fn of_mut(&mut self, limit: Limit) -> &mut usize {
        match limit {
            Limit::Turns => &mut self.turns,
            Limit::Tokens => &mut self.tokens,
            Limit::Context => &mut self.context,
            Limit::TaskTime => &mut self.task_time,
            Limit::CommandTime => &mut self.command_time,
            Limit::Cost => &mut self.cost,
            Limit::Time => &mut self.time,
        }
    }
}

impl AddAssign for LimitCounts {
    fn add_assign(&mut self, other: Self) {
        for limit in Limit::ALL.into_iter().chain([Limit::Time]) {
            *self.of_mut(limit) += other.of(limit);
        }
    }
}

impl fmt::Display for LimitCounts {
    /// Those that ended any, such as `3 by turns, 1 by context`; `none` where there are none.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let limits = Limit::ALL.into_iter().chain([Limit::Time]);
        let named: Vec<String> = limits
            .filter(|limit| self.of(*limit) > 0)
            .map(|limit| format!("{} by {}", self.of(limit), limit.name().replace('_', " ")))
            .collect();
        f.write_str(if named.is_empty() { "none" } else { "" })?;
        f.write_str(&named.join(", "))
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_limit_has_a_count_of_its_own() {
        let mut counts = LimitCounts::default();
        assert_eq!(counts.to_string(), "none");
        counts.count(&EndReason::Terminated);
        for (times, limit) in Limit::ALL.into_iter().chain([Limit::Time]).enumerate() {
            (0..=times).for_each(|_| counts.count(&EndReason::Truncated { limit }));
            assert_eq!(counts.of(limit), times + 1);
        }
        assert_eq!(counts.total(), 28);
        let text = "1 by turns, 2 by tokens, 3 by context, 4 by task time, 5 by command time, 6 by cost, 7 by time";
        assert_eq!(counts.to_string(), text);
        let mut twice = counts;
        twice += counts;
        assert_eq!((twice.total(), twice.context), (56, 6));
        let json = serde_json::to_value(LimitCounts::default()).unwrap();
        let names: Vec<_> = json.as_object().unwrap().keys().cloned().collect();
        assert_eq!(names.len(), Limit::ALL.len());
        assert!(Limit::ALL.iter().all(|limit| names.iter().any(|name| name == limit.name())));
    }
}
