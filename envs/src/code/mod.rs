//! Questions that are answered with an interpreter at hand.
//!
//! ```text
//!  Code ──step(calls)──▶ Machine ──▶ Interpreter in a sandbox ──▶ Cell ──▶ results
//!    └───step(text)────▶ \boxed{..} or a program ──verify──▶ Exact, ProgramTests
//! ```
//!
//! docs/code.md shows an episode.

mod boxed;
mod environment;
mod generator;
mod machine;
#[cfg(test)]
mod tests;

pub use boxed::{Boxed, boxed};
pub use environment::Code;
pub(crate) use machine::{Machine, Ran};
