//! The planning language of the game files: domain, problem and the formulas in both.
//!
//! Names keep the case they are written with. The language itself ignores case, so
//! [`Game`](super::Game) parses a lower-cased copy.

mod domain;
mod formula;
mod problem;
mod sexpr;

pub use domain::{Domain, Effect, Schema};
pub use formula::{Formula, Typed};
pub use problem::{Fact, Problem};

use sexpr::{Items, Sexpr, Tape};
