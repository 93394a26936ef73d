//! Mazes, and heists: mazes whose way to the goal is barred by locked doors, with keys somewhere before them.
//!
//! ```text
//! Settings, seed ──generate──▶ Maze ──step──▶ Moved
//!                               └──plan──▶ the shortest way
//! ```
//!
//! Own levels, after Procgen's `maze` and `heist` (arXiv 1912.01588): seeds are levels, so that those of training and of tests never
//! meet where their seeds do not. Every maze can be solved.

mod generate;
mod play;

pub use generate::{MazeError, Settings, generate};
pub use play::{Maze, Moved, Way};
