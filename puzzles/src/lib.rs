//! Puzzles from seeds, equal to those of reasoning-gym 0.1.25: questions, answers and scores.
//!
//! ```text
//!  name, options, seed ──open_dataset──▶ Dataset ──item(index)──▶ Item: question, answer, facts
//!                                           │                       │
//!                                           └── score(answer, item) ┴──▶ 0.0 to 1.0
//! ```
//!
//! reasoning-gym (github.com/open-thought/reasoning-gym, Apache-2.0) makes a puzzle of `Random(seed + index)`. Each dataset
//! here draws the same numbers from the same generator and says the same words, so that equal seeds, indices and options
//! give equal puzzles, and answers the same scores; [`replay_traces`] compares that with recordings of the package. The
//! texts of questions are the package's, under its licence; the code is own.
//!
//! ```
//! use spar_puzzles::{dataset_registry, open_dataset};
//!
//! let dataset = open_dataset("gcd", &serde_json::Map::new(), 7)?;
//! let item = dataset.item(0)?;
//! assert!(item.question.starts_with("Find the Greatest Common Divisor (GCD) of these numbers: "));
//! assert_eq!(dataset.score(item.answer.as_deref(), &item), 1.0);
//! assert!(dataset_registry().iter().any(|row| row.name == "gcd" && row.category == "arithmetic"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Options have the package's names and defaults, but for `seed` and `size`. They have upper bounds, beyond which the
//! package would take unbounded time or memory. Where the package's scorer raises an exception, the score is 0.

// MODS
mod algebra;
mod algorithmic;
mod arithmetic;
mod cognition;
mod conformance;
mod dataset;
mod dates;
mod decimal;
mod games;
mod geometry;
pub mod graph_problems;
mod graphs;
mod logic;
mod options;
mod prelude;
mod probability;
mod python_set;
mod registry;
mod scoring;
mod text;
// END
pub use conformance::{ConformanceReport, ReplayError, replay_traces};
pub use dataset::{Dataset, Item, ItemError};
pub use registry::{DatasetRow, NamedDataset, OpenDataset, dataset_registry, open_dataset};
pub use scoring::extract_answer;
