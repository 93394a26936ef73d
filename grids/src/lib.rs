//! Grid worlds: their rules, seeds and text, without any episode of a policy.
//!
//! ```text
//! minigrid::{Level, Episode}   MiniGrid and BabyAI, equal to the package
//! sokoban::{generate, Room}    Sokoban, with the rooms of gym-sokoban and TextArena
//! maze::{generate, Maze}       mazes and heists, own
//! survival::World              Crafter, equal to the package
//! ```
//!
//! ```
//! use spar_grids::minigrid::{Action, Episode, Level, describe};
//!
//! let level = Level::find("BabyAI-GoToRedBallNoDists-v0").unwrap();
//! let (mut episode, _) = Episode::new(level, 0).unwrap();
//! assert_eq!(**episode.mission(), *"go to the red ball");
//! let mut fork = episode.clone();
//! fork.step(Action::Left);
//! assert_ne!(describe(&fork), describe(&episode));
//! let plan = spar_grids::minigrid::plan(&episode).unwrap();
//! let last = plan.iter().map(|action| episode.step(*action)).last().unwrap();
//! assert!(last.terminated && last.reward > 0.9);
//! ```

mod conformance;
pub mod maze;
pub mod minigrid;
pub mod sokoban;
pub mod survival;
