//! A world to survive in: Crafter (Hafner, "Benchmarking the Spectrum of Agent Capabilities", arXiv 2109.06780), equal to the package
//! `crafter` 1.8.3 for equal seeds and actions.
//!
//! ```text
//! seed ──World::new──▶ World ──step(Action)──▶ Stepped: achievements, change of health, death
//!          │            ├──describe, draw──▶ what is seen in words
//!          │            └──next_action──▶ what a player who knows all would do
//!          ├ Noise: where water, caves and mountains are
//!          └ RandomState: all that is drawn, then and later
//! ```
//!
//! There are 22 [achievements](Achievement), from wood to diamonds. A world is 4096 cells, some hundred creatures and a generator, and
//! a clone shares what it does not change.
//!
//! ```
//! use spar_grids::survival::{Achievement, World, next_action};
//!
//! let mut world = World::new(3, 64).unwrap();
//! while !world.player().has(Achievement::PlaceTable) {
//!     world.step(next_action(&world, &[Achievement::PlaceTable]));
//! }
//! ```

mod achievement;
mod action;
mod balance;
mod conformance;
mod creature;
mod generate;
mod item;
mod material;
mod noise;
mod oracle;
mod player;
mod text;
mod world;

pub use crate::conformance::Report;
pub use achievement::{Achievement, Achievements};
pub use action::{Action, Tool, Way};
pub use conformance::replay;
pub use creature::{Creature, Kind};
pub use item::Item;
pub use material::Material;
pub use oracle::{COURSE, next_action};
pub use player::Player;
pub use text::{describe, draw};
pub use world::{Stepped, World, WorldError};
