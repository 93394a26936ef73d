//! Environments: tasks made interactive, and the registry that names them.
//!
//! ```text
//!  Task, Resources ──open_environment──▶ Environment ──reset(seed)──▶ Observation
//!                                           │  ▲
//!                                      fork │  └── step(action) ──▶ Step ... verify ──▶ Verdict
//!                                           ▼
//!                                      Environment
//! ```
//!
//! [`validate_suite`] plays a suite with an oracle, an idle and a random player and reports what
//! is wrong with it.
//!
//! ```
//! use spar_core::Seed;
//! use spar_envs::{Resources, open_environment};
//! use spar_tasks::{SuiteOptions, open_suite};
//!
//! let task = open_suite("household", &SuiteOptions::default())?.task("train", 0)?;
//! let mut env = open_environment(&task, &Resources::default())?;
//! let mut reward = 0.0;
//! # futures::executor::block_on(async {
//! env.reset(Seed::from_u64(1)).await?;
//! while let Some(action) = env.expert_action() {
//!     let step = env.step(&action).await?;
//!     reward += step.reward();
//! }
//! # Ok::<(), spar_envs::EnvironmentError>(())
//! # })?;
//! assert_eq!(reward, 1.0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod apps;
mod aside;
pub mod bfcl;
mod calls;
pub mod code;
mod dialogue;
mod environment;
mod errand;
mod error;
mod frozen_lake;
mod graded;
mod graph_problems;
pub mod grids;
#[cfg(test)]
mod hostile;
pub mod household;
mod ledger;
mod maths;
pub mod mcp;
mod micro_repair;
mod offline;
mod ors;
mod panel;
pub mod process;
mod question;
mod reasoning_gym;
mod red_team;
mod registry;
mod replay;
mod resources;
mod search;
mod seat_accounts;
mod shop;
mod sql;
pub mod swe;
pub mod tau2;
pub mod terminal;
mod text_craft;
mod text_game;
mod text_world;
mod tic_tac_toe;
pub mod tools;
pub mod toolsets;
mod validate;
pub mod web;
pub mod wrappers;

pub use apps::Apps;
pub use code::Code;
pub use dialogue::Dialogue;
pub use environment::{
    CHANCE_TAG, Environment, IDLE_TAG, NO_ORACLE_TAG, SCORED_TAG, TimeRules, idle_tag,
};
pub use errand::Errand;
pub use error::{EnvironmentError, SandboxPhase};
pub use frozen_lake::FrozenLake;
pub use graded::Graded;
pub use ledger::Ledger;
pub use offline::Offline;
pub use ors::Ors;
pub use panel::Panel;
pub use process::{Process, ProgramError, ProgramFault};
pub use question::Question;
pub use reasoning_gym::ReasoningGym;
pub use red_team::RedTeam;
pub use registry::{
    Actions, EnvironmentRow, NamedEnvironment, OpenTask, actions_of, actions_of_task, asks_judge,
    environment_registry, needs_browser, needs_sandbox, open_environment, seats_of, shuffled_tasks,
    takes_toolsets, usual_backend,
};
pub use replay::Replay;
pub use resources::{Resources, Sandboxes};
pub use search::Search;
pub use seat_accounts::SeatAccounts;
pub use shop::Shop;
pub use spar_puzzles::replay_traces as replay_puzzles;
pub use spar_shop::replay_visits;
pub use sql::Sql;
pub use swe::Swe;
pub use tau2::Tau2;
pub use text_craft::TextCraft;
pub use text_game::TextGame;
pub use text_world::TextWorld;
pub use tic_tac_toe::TicTacToe;
pub use tools::ToolUse;
pub use toolsets::ToolsetChoice;
pub use validate::{
    FailureKind, ValidationFailure, ValidationReport, validate_side_by_side, validate_suite,
};
pub use web::{MiniWob, Site, WebShop};

pub use spar_games as games;

/// A task of an environment with these parameters.
#[cfg(test)]
pub(crate) fn test_task(environment: &str, parameters: serde_json::Value) -> spar_tasks::Task {
    spar_tasks::Task {
        id: "test".to_owned(),
        environment: environment.to_owned(),
        parameters,
        instruction: String::new(),
        max_turns: 30,
        tags: Vec::new(),
        graders: Vec::new(),
    }
}
