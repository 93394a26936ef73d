//! What a pool is doing.

use serde::Serialize;

/// What a pool is doing at one moment, and what it has done so far.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct PoolMetrics {
    /// Sandboxes that exist or are being made or removed; at most
    /// [`PoolConfig::max_live`](crate::pool::PoolConfig::max_live).
    pub live: usize,
    /// Of these: waiting to be handed out.
    pub warm: usize,
    /// Of these: being started.
    pub starting: usize,
    /// Of these: handed out.
    pub in_use: usize,
    /// Of these: being removed.
    pub closing: usize,
    /// Of these: could not be removed so far; it is tried again.
    pub stuck: usize,
    /// Callers that wait for room.
    pub waiting: usize,
    /// Images that are being prepared; at most
    /// [`PoolConfig::max_preparations`](crate::pool::PoolConfig::max_preparations).
    pub preparing: usize,
    /// Images that were prepared so far.
    pub preparations: u64,
    /// Preparations that failed.
    pub preparation_failures: u64,
    /// Starts so far.
    pub starts: u64,
    /// Starts that failed.
    pub start_failures: u64,
    /// Hand-outs of a sandbox that was warm.
    pub warm_hits: u64,
    /// Hand-outs of a sandbox that was started for the caller.
    pub cold_starts: u64,
    /// Callers that were sent away: no room in time, or a breaker was open.
    pub refusals: u64,
    /// Sandboxes that were removed.
    pub closes: u64,
    /// Removals that failed or took too long, those that were tried again included.
    pub close_failures: u64,
    /// Warm sandboxes that were removed unused: too old, idle, or in the way of another spec.
    pub discarded: u64,
    /// Whether sandboxes are started.
    pub breaker: BreakerState,
    /// Specs of which no sandbox is started for now, since theirs keep failing.
    pub refused_specs: usize,
}

/// Whether sandboxes are started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BreakerState {
    /// Yes.
    #[default]
    Closed,
    /// No: too many failed in a row.
    Open,
    /// One is tried; the others wait for what comes of it.
    HalfOpen,
}
