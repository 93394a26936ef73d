//! Questions that are answered from a corpus.

mod environment;
mod progress;

pub use environment::Search;
