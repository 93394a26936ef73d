//! Tiny programs with a bug, in Python and JavaScript, from seeds.
//!
//! ```text
//!  seed ─▶ families ─▶ Program ─mutants─▶ wrong Program ─▶ Problem: issue, lines, tests
//!                         └──evaluate──▶ what is right      │
//!  MicroRepair ──step(calls)──▶ lines ──outcomes──▶ a fresh guest ──values──▶ compared here
//! ```
//!
//! docs/micro-repair.md shows an episode.

mod command;
mod environment;
mod evaluate;
mod families;
mod fix;
mod generator;
mod guest;
mod mutate;
mod program;
mod render;
#[cfg(test)]
mod tests;

pub(crate) use environment::MicroRepair;
