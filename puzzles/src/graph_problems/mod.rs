//! Problems about graphs, each with a verifier: own ones, after G1's data set Erdős (arXiv 2505.18499) and the graph puzzles of
//! Guru (arXiv 2506.14965).
//!
//! ```text
//! family, level, seed ──graph_problem──▶ GraphProblem: question, a solution
//!                                             └─is_right(answer)─▶ held against the number or the set that is right, or checked
//!                                                                  on the graph where many answers are
//! ```
//!
//! ```
//! use spar_puzzles::graph_problems::{Level, graph_problem};
//!
//! let problem = graph_problem("shortest_path", Level::Easy, 7)?;
//! assert!(problem.question().contains("shortest path"));
//! assert!(problem.is_right(&problem.solution()));
//! assert!(!problem.is_right("no"));
//! # Ok::<(), spar_puzzles::graph_problems::UnknownFamily>(())
//! ```

mod answer;
mod check;
mod family;
mod graph;
mod lists;
mod measures;
mod numbers;
mod problem;
mod truths;

pub use family::{GraphFamily, UnknownFamily, graph_families};
pub use problem::{GraphProblem, Level, graph_problem};
