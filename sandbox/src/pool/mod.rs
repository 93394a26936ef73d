//! A bounded number of sandboxes for many callers, some of them made in advance.
//!
//! ```text
//!   acquire ──▶ a warm one of this spec? ───────────────────────────▶ PooledSandbox
//!      │ no                                                                │ dropped, closed
//!      ▼                                                                   ▼
//!   room (max_live) ─▶ slot (max_starts) ─▶ rate ─▶ breaker ─▶ start     removed, room is free
//! ```
//!
//! Rooms and slots are given out in the order in which they were asked for. A sandbox that was
//! handed out is never handed out again. The breaker refuses at once while the backend fails.

mod breaker;
mod config;
mod guards;
mod inner;
mod keeper;
mod live;
mod metrics;
mod pooled;
mod rate;
mod sandbox_pool;
mod shelf;
#[cfg(test)]
mod test_backend;
#[cfg(test)]
mod tests;
mod tidy;

pub use config::{BreakerConfig, PoolConfig, PoolConfigError};
pub use metrics::{BreakerState, PoolMetrics};
pub use pooled::PooledSandbox;
pub use sandbox_pool::{SandboxPool, shut_down_all};
