//! spar: the gym in which language-model agents train.
//!
//! This crate wires the others together: recipes, training runs, and the command line. The pieces
//! are re-exported, so that a program which depends on `spar` alone can use them all.
//!
//! ```text
//!  Recipe ─▶ training::Training ─▶ run folder ─▶ training::Summary
//!               │ acting: tasks ─▶ envs ─▶ agent
//!               └ learning: policy ─▶ trainer
//! ```
//!
//! ```
//! use spar::recipe::Recipe;
//!
//! let recipe = Recipe::parse("household", &Recipe::text("household")?, &[])?;
//! recipe.validate()?;
//! # Ok::<(), spar::recipe::RecipeError>(())
//! ```

// Commands name the library as programs that use it do.
extern crate self as spar;

pub mod audit;
mod bar;
mod child;
mod cli;
mod commands;
pub mod comparison;
pub mod draw_rules;
pub mod instance_image;
pub mod judging;
pub mod picture;
pub mod players;
mod program;
mod progress;
pub mod recipe;
pub mod registry;
pub mod sandboxes;
pub mod seats;
pub mod secrets;
pub mod training;

pub use child::ChildError;
pub use program::{main, run};
pub use registry::Registry;

pub use {spar_agent as agent, spar_core as core, spar_envs as envs, spar_parsers as parsers};
pub use {
    spar_policy as policy, spar_predictors as predictors, spar_repair as repair,
    spar_sandbox as sandbox, spar_search as search, spar_serve as serve, spar_swe as swe,
    spar_tasks as tasks, spar_trainer as trainer,
};
