//! Quests in words: houses with doors, keys and chests, made from seeds backwards from their ends.
//!
//! ```text
//!  Setting, Seed ──▶ Game: rooms, things, goal, plan
//!                      │
//!                      ▼      Command ◀── read ── words
//!                    Play ◀────┘
//!                      │──▶ text, commands that can be carried out, next command of a solution
//! ```
//!
//! The form is TextWorld's (Côté et al., arXiv 1806.11532): rooms, doors, containers, supporters, keys and food, with its commands. Rules and words are
//! own. A quest is made backwards: from its last command to the first, each establishes what the one behind it needs, so that no
//! command can be left out and the length is exactly what was asked for.
//!
//! ```
//! use spar_core::Seed;
//! use spar_quests::{Game, Play, Setting};
//!
//! let game = Game::draw(Seed::from_u64(1), &Setting { rooms: 4, objects: 6, quest_length: 5, ..Setting::default() })?;
//! let mut play = Play::new(game.into());
//! let mut commands = 0;
//! while let Some(command) = play.next_of_solution() {
//!     play.carry_out(command);
//!     commands += 1;
//! }
//! assert!(play.is_won() && commands == 5);
//! # Ok::<(), spar_quests::QuestError>(())
//! ```

mod command;
mod game;
mod generator;
mod planner;
mod play;
mod text;
mod words;

pub use command::{Command, ReadError};
pub use game::{Direction, Exit, Game, Goal, Kind, Room, Thing};
pub use generator::{GoalWords, QuestError, Setting};
pub use play::{Play, Status, Where};
