//! Tasks of repair without end: packages that have tests, with bugs that mutations of their syntax trees make.
//!
//! ```text
//!  source ─▶ mutations ─▶ Mutation { operator, function, edits } ─▶ the text with the bug, and the way back
//! ```
//!
//! ```
//! use spar_repair::mutation::{Language, mutations};
//!
//! let source = "def larger(a, b):\n    return a if a > b else b\n";
//! let found = mutations(Language::Python, source)?;
//! let bug = found.iter().find(|mutation| mutation.operator == "compare_changed").unwrap();
//! assert_eq!(bug.apply(source), "def larger(a, b):\n    return a if a >= b else b\n");
//! assert_eq!(bug.inverse(source).apply(&bug.apply(source)), source);
//! # Ok::<(), spar_repair::MutationError>(())
//! ```

mod error;
pub mod mutation;

pub use error::MutationError;
