//! What a query may take.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// What one query may take; whatever is beyond ends it.
///
/// What a query does is counted in steps of SQLite's virtual machine, so that equal queries end equally on any machine;
/// the time is for what a single step may take.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct QueryLimits {
    /// Steps of SQLite's virtual machine, of which a core does some ten million in a second. Default 20,000,000.
    pub steps: u64,
    /// Wall time. Default 30 s.
    pub time: Duration,
    /// Rows of the result; more are left out, which the result tells. Default 100,000.
    pub rows: usize,
    /// Bytes of the result in memory; rows beyond are left out. Default 32 MiB.
    pub result_bytes: usize,
}

impl Default for QueryLimits {
    fn default() -> Self {
        Self {
            steps: 20_000_000,
            time: Duration::from_secs(30),
            rows: 100_000,
            result_bytes: 32 << 20,
        }
    }
}

impl QueryLimits {
    /// What queries may take whose results are compared whole: 1,000,000,000 steps, 120 s, a million rows, 128 MiB.
    pub fn for_judging() -> Self {
        Self {
            steps: 1_000_000_000,
            time: Duration::from_secs(120),
            rows: 1_000_000,
            result_bytes: 128 << 20,
        }
    }

    /// What a query may take that is compared with one that took `steps`: a hundred times as many, but at least 20,000,000 and
    /// at most what these limits allow.
    pub(crate) fn relative_to(&self, steps: u64) -> Self {
        let steps = steps.saturating_mul(100).max(Self::default().steps).min(self.steps);
        Self { steps, ..self.clone() }
    }

    /// Bytes of a query; longer ones are refused unread.
    pub const SQL_BYTES: usize = 100_000;
    /// How deep expressions may be nested.
    pub const EXPRESSION_DEPTH: i32 = 100;
    /// Bytes of a value or row, also of those in the middle of a computation. Functions that look for one text in another take as
    /// long as both lengths multiplied, in a single step, so that this bounds what a step can take: seconds.
    pub const VALUE_BYTES: i32 = 256 << 10;
    /// Bytes that all queries of the process may have SQLite take at a time.
    pub const HEAP_BYTES: i64 = 256 << 20;
}
