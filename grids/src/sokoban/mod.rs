//! Sokoban: rooms from seeds as two packages generate them, what moves do, and a solver.
//!
//! ```text
//! Rules (gym or textarena), size, boxes, seed ──generate──▶ Room ──step──▶ Moved
//!                                                            └──solve──▶ moves
//! ```
//!
//! Equal to `gym-sokoban` 0.0.6 (MIT, Max-Philipp B. Schrader; RAGEN's rooms come of it), whose generators are seeded by
//! `random.seed(seed)` and `numpy.random.seed(seed)`, and to the rooms of TextArena 0.7 (MIT). Both lay floors by a random
//! walk, put boxes on targets and search backwards, by pulls, for where boxes are the farthest from their targets.

mod conformance;
mod generate;
mod room;
mod solve;

pub use conformance::replay;
pub use generate::{NoRoom, generate};
pub use room::{Move, Moved, Room, Rules};
pub use solve::solve;
