//! MiniWoB++ in a real browser, as BrowserGym plays it.
//!
//! The pages are those of the package `miniwob` from PyPI (MIT), read from where the user has it; none of them is part of
//! this program. Seeds, goals, what is hidden of the pages, observations and rewards are BrowserGym 0.14.3's.

mod conformance;
mod episode;
mod oracle;
mod pages;
mod seed;
mod tasks;
#[cfg(test)]
mod tests;
mod wheel;

pub use conformance::{ConformanceReport, replay_traces};
pub use episode::{Episode, Observing, Options, Reset, RewardKind, Shown};
pub use oracle::{has_oracle, next_action, only_clicks_and_fills, tasks_with_oracle};
pub use pages::{MINIWOB_VARIABLE, ORIGIN, Pages};
pub use seed::page_seed;
pub use tasks::{TaskRow, task_rows};
