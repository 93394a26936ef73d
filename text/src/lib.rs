//! The text side of a model: what it reads and writes, and where it is found.
//!
//! ```text
//!  hub::resolve(name) ─▶ folder ─▶ Tokenizer ◀─ TokenizerConfig (made from texts)
//!                                     │  ▲
//!                   ChatTemplate ─────┘  └── GrammarCompiler ─▶ Grammar: what an answer may be
//!  messages ─▶ encode_message, encode_chat ─▶ tokens ─▶ TextStream ─▶ text
//! ```
//!
//! Nothing in it computes with weights.
//!
//! ```
//! use spar_text::{Tokenizer, TokenizerConfig};
//!
//! let games = [["You see a door.", "open door"], ["You see a box.", "open box"]];
//! let tokenizer = Tokenizer::train(games, &TokenizerConfig::default())?;
//! let ids = tokenizer.encode("open the box");
//! assert_eq!(tokenizer.decode(&ids), "open the box");
//! # Ok::<(), spar_text::TokenizerError>(())
//! ```

mod atomic_file;
pub mod chat_template;
mod constraint;
mod error;
pub mod gguf;
mod grammar_cache;
pub mod hub;
mod tokenizer;
pub mod tool_words;

pub use atomic_file::write_atomically;
pub use constraint::{Grammar, GrammarCompiler, GrammarWalk, SpelledAnswer};
pub use error::{ChatTemplateError, GrammarError, ReplayError, TokenizerError};
pub use grammar_cache::GrammarCache;
pub use tokenizer::{MaskedTokens, PartialText, Spaces, TextStream, Tokenizer, TokenizerConfig};
