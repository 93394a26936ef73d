//! What programs write that are talked to by lines: read in bounded memory, and told when they break.

mod last_words;
mod line_reader;

pub use last_words::{LastWords, Tail, printable, shortened};
pub use line_reader::{LineReader, NextLine};
