//! Household games: the text worlds of ALFWorld, played natively.
//!
//! Reads the game files of ALFWorld (`game.tw-pddl`) unchanged and plays them letter by letter as
//! the reference does. Rules, things and texts all come from the file: the planning domain and the
//! text grammar are parsed, compiled once per game, and run over bit matrices.
//!
//! ```text
//!  game.tw-pddl ──parse──▶ pddl::Domain   ─┐
//!                          pddl::Problem  ─┼─compile──▶ Game ──new──▶ Engine ──step(command)──▶ Outcome
//!                          twl2::Grammar  ─┘        (shared)     (clone = fork)      observation, admissible
//! ```

mod admissible;
mod bench;
mod conformance;
mod effects;
mod engine;
mod entities;
mod environment;
mod error;
mod expert;
mod facts;
mod files;
mod game;
mod game_source;
pub mod generator;
mod goal;
mod lowering;
mod narration;
pub mod oracle;
pub mod pddl;
mod plan;
mod program;
mod relations;
mod room_memory;
mod rules;
mod task_words;
#[cfg(test)]
mod tests;
mod text_compiler;
pub mod twl2;

pub use admissible::Admissible;
pub use bench::{BenchReport, bench};
pub use conformance::{ConformanceReport, Mismatch, replay_traces};
pub use engine::{Engine, NOTHING_HAPPENS, Outcome};
pub use entities::Kind;
pub use environment::Household;
pub use error::HouseholdError;
pub use expert::Expert;
pub use files::find_games;
pub use game::{Game, GameFile, Thing};
pub use goal::{Task, TaskFamily};
