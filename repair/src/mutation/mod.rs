//! Changes of a source that make bugs, found in its syntax tree.
//!
//! ```text
//!  source ─ tree-sitter ─▶ nodes inside of functions ─ OPERATORS ─▶ Mutation: disjoint edits of spans
//! ```

mod edit;
mod language;
mod operators;
mod python;
mod rust;
mod scan;
#[cfg(test)]
mod tests;

pub use edit::{Edit, Edits};
pub use language::Language;
pub use operators::{OPERATORS, Operator};
pub use scan::{MAX_SOURCE_BYTES, Mutation, mutations, parses};
