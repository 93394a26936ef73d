//! How a pool behaves.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// How a pool behaves.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PoolConfig {
    /// Sandboxes that exist at one time, whatever their state, forks included. Default 64.
    pub max_live: usize,
    /// Sandboxes that are being started at one time. Default 8.
    pub max_starts: usize,
    /// Images that are being prepared at one time: pulled, built, unpacked or compiled. Default 4.
    pub max_preparations: usize,
    /// Starts per second at the most, evenly spaced. Default 50; absent: no bound.
    pub starts_per_second: Option<f64>,
    /// Seconds that a caller waits for its turn, its image being prepared left out. Default 600.
    pub acquire_secs: u64,
    /// Seconds that preparing an image may take. Default 3600.
    pub prepare_secs: u64,
    /// Seconds that a start may take in all: creating, set-up, and getting the image where it went after it
    /// was prepared. A net for backends that keep no deadline of their own. Default 3600.
    pub start_secs: u64,
    /// Seconds that removing a sandbox may take. Default 60.
    pub close_secs: u64,
    /// Seconds after which warm sandboxes of a spec that nobody asks for are closed. Default 300.
    pub idle_secs: u64,
    /// Seconds between two looks for what dead runs left, and what could not be removed; there is one
    /// at the start, too, and one at the end. Default 600; absent: nobody looks.
    pub reap_secs: Option<u64>,
    /// When starts are given up for a while.
    pub breaker: BreakerConfig,
}

/// When starts are given up for a while, and for how long.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct BreakerConfig {
    /// Failures in a row that open the breaker. Default 5.
    pub failures: u32,
    /// Milliseconds until the first probe; doubled by every probe that fails. Default 1000.
    pub first_wait_ms: u64,
    /// Milliseconds until a probe at the most. Default 60000.
    pub longest_wait_ms: u64,
}

/// A pool cannot work like this.
#[derive(Debug, thiserror::Error)]
#[error("make a pool of sandboxes: {}", problems.join("; "))]
pub struct PoolConfigError {
    /// All of the problems.
    pub problems: Vec<String>,
}

impl Default for PoolConfig {
    fn default() -> Self {
        Self {
            max_live: 64,
            max_starts: 8,
            max_preparations: 4,
            starts_per_second: Some(50.0),
            acquire_secs: 600,
            prepare_secs: 3600,
            start_secs: 3600,
            close_secs: 60,
            idle_secs: 300,
            reap_secs: Some(600),
            breaker: BreakerConfig::default(),
        }
    }
}

impl Default for BreakerConfig {
    fn default() -> Self {
        Self { failures: 5, first_wait_ms: 1000, longest_wait_ms: 60_000 }
    }
}

impl PoolConfig {
    /// Checks the values.
    ///
    /// # Errors
    ///
    /// All problems at once.
    pub fn validate(&self) -> Result<(), PoolConfigError> {
        let numbers = [
            ("max_live", self.max_live as u64),
            ("max_starts", self.max_starts as u64),
            ("max_preparations", self.max_preparations as u64),
            ("acquire_secs", self.acquire_secs),
            ("prepare_secs", self.prepare_secs),
            ("start_secs", self.start_secs),
            ("close_secs", self.close_secs),
            ("idle_secs", self.idle_secs),
            ("reap_secs", self.reap_secs.unwrap_or(1)),
            ("breaker.failures", u64::from(self.breaker.failures)),
            ("breaker.first_wait_ms", self.breaker.first_wait_ms),
            ("breaker.longest_wait_ms", self.breaker.longest_wait_ms),
        ];
        let mut problems: Vec<String> = numbers
            .into_iter()
            .filter(|(_, value)| *value == 0)
            .map(|(name, _)| format!("{name} must be positive"))
            .collect();
        problems.extend(
            numbers
                .into_iter()
                .filter(|(_, value)| *value > MOST)
                .map(|(name, value)| format!("{name} must be at most {MOST}, not {value}")),
        );
        if let Some(rate) = self.starts_per_second
            && !(0.001..=1e6).contains(&rate)
        {
            problems.push(format!("starts_per_second must lie in 0.001..=1000000, not {rate}"));
        }
        let BreakerConfig { first_wait_ms, longest_wait_ms, .. } = self.breaker;
        if longest_wait_ms < first_wait_ms {
            problems.push(format!(
                "breaker.longest_wait_ms must be at least first_wait_ms = {first_wait_ms}, not \
                 {longest_wait_ms}"
            ));
        }
        if problems.is_empty() { Ok(()) } else { Err(PoolConfigError { problems }) }
    }

    /// Time between two starts.
    pub(super) fn start_interval(&self) -> Duration {
        self.starts_per_second.map_or(Duration::ZERO, |rate| Duration::from_secs_f64(1.0 / rate))
    }

    pub(super) fn acquire(&self) -> Duration {
        Duration::from_secs(self.acquire_secs)
    }

    pub(super) fn prepare(&self) -> Duration {
        Duration::from_secs(self.prepare_secs)
    }

    pub(super) fn start(&self) -> Duration {
        Duration::from_secs(self.start_secs)
    }

    pub(super) fn close(&self) -> Duration {
        Duration::from_secs(self.close_secs)
    }

    pub(super) fn idle(&self) -> Duration {
        Duration::from_secs(self.idle_secs)
    }

    pub(super) fn reap(&self) -> Option<Duration> {
        self.reap_secs.map(Duration::from_secs)
    }
}

/// More than anybody needs of anything, and no moment so far away overflows.
const MOST: u64 = 1 << 28;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_problems_of_a_pool_are_told_at_once() {
        PoolConfig::default().validate().unwrap();
        let config = PoolConfig {
            max_live: 0,
            max_starts: usize::MAX,
            starts_per_second: Some(f64::NAN),
            breaker: BreakerConfig { longest_wait_ms: 1, ..BreakerConfig::default() },
            ..PoolConfig::default()
        };
        assert_eq!(config.validate().unwrap_err().problems.len(), 4);
    }
}
