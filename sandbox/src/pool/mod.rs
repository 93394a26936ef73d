//! A bounded number of sandboxes for many callers, some of them made in advance.
//!
//! ```text
//!   acquire ──▶ image prepared? ─▶ a warm one of this spec? ────────▶ PooledSandbox
//!      │ no                                                                │ dropped, closed
//!      ▼                                                                   ▼
//!   room (max_live) ─▶ slot (max_starts) ─▶ rate ─▶ breakers ─▶ start    removed, room is free
//! ```
//!
//! An image is prepared once for all who wait for it, in a task of its own that takes up neither room nor slot, so
//! that a slow or broken image holds up no other (max_preparations).
//!
//! Rooms and slots are given out in the order in which they were asked for. A sandbox that was
//! handed out is never handed out again. Breakers refuse at once while the backend, or this spec,
//! keeps failing, and let those who come while it is tried again wait for what comes of it. A room
//! is free when its sandbox is gone: one that cannot be removed keeps it.

mod breaker;
mod breakers;
mod closing;
mod config;
mod guards;
mod inner;
mod keeper;
mod kept;
mod live;
mod metrics;
mod pooled;
mod preparations;
mod rate;
mod sandbox_pool;
mod shelf;
#[cfg(test)]
mod test_backend;
#[cfg(test)]
mod tests;
mod tidy;

pub use config::{BreakerConfig, PoolConfig, PoolConfigError};
pub use kept::PooledSnapshot;
pub use metrics::{BreakerState, PoolMetrics};
pub use pooled::PooledSandbox;
pub use sandbox_pool::{SandboxPool, shut_down_all};
