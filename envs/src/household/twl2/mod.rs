//! The text language of the game files: which command an action has and what it answers.
//!
//! A grammar is a document of `action` blocks and `grammar` blocks. A grammar block is a JSON
//! object of symbols, each with a list of productions. The text of a production is a small
//! template language of its own, and its condition a conjunctive query over facts.

mod document;
mod query;
mod template;

pub use document::{ActionText, Grammar, Production};
pub(crate) use query::parse_query;
pub(crate) use template::{Expression, Part, Piece, parse_template};
