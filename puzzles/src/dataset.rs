//! What makes and scores puzzles.

use std::fmt;

use serde_json::{Map, Value};
use spar_core::registry::NamedOptions;
use spar_python::{Exception, Random};

use crate::scoring::default_score;

/// A puzzle: what is asked, what is right, and what its scorer needs beside that.
#[derive(Debug, Clone, PartialEq)]
pub struct Item {
    /// The question, as a policy sees it.
    pub question: String,
    /// A right answer, where the package gives one.
    pub answer: Option<String>,
    /// Facts about the puzzle by the package's names: all that [`Dataset::score`] reads, and a few others.
    pub metadata: Map<String, Value>,
}

impl Item {
    /// A puzzle with a right answer and no facts yet.
    pub(crate) fn new(question: impl Into<String>, answer: impl fmt::Display) -> Self {
        Self { question: question.into(), answer: Some(answer.to_string()), metadata: Map::new() }
    }

    /// A puzzle for which the package gives no answer.
    pub(crate) fn without_answer(question: impl Into<String>) -> Self {
        Self { question: question.into(), answer: None, metadata: Map::new() }
    }

    /// With one fact more.
    pub(crate) fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.metadata.insert(name.to_owned(), value.into());
        self
    }

    /// A right answer: the package's, or one that its facts have where it gives none.
    pub fn example(&self) -> Option<String> {
        self.answer.clone().or_else(|| {
            ["possible_answer", "example_answer", "example_correct_answer"].iter().find_map(
                |name| match self.metadata.get(*name)? {
                    Value::String(text) => Some(text.clone()),
                    other => Some(other.to_string()),
                },
            )
        })
    }

    /// The right answer, empty where there is none.
    pub(crate) fn gold(&self) -> &str {
        self.answer.as_deref().unwrap_or_default()
    }

    /// A fact that is a text, empty where there is none.
    pub(crate) fn text(&self, name: &str) -> &str {
        self.metadata.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    /// A fact that is a whole number, 0 where there is none.
    pub(crate) fn int(&self, name: &str) -> i64 {
        self.metadata.get(name).and_then(Value::as_i64).unwrap_or_default()
    }

    /// Any fact, `null` where there is none.
    pub(crate) fn fact(&self, name: &str) -> &Value {
        self.metadata.get(name).unwrap_or(&Value::Null)
    }
}

/// No puzzle came of a seed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ItemError {
    /// The package raises this exception for the same options and seed.
    #[error("make a puzzle of these options: {text}")]
    Raised {
        /// What the exception says.
        text: String,
    },
    /// So many draws gave no puzzle; the package goes on for ever or gives up.
    #[error("make a puzzle of these options: none came of {tries} draws")]
    TooManyTries {
        /// Draws that were made.
        tries: u64,
    },
}

impl ItemError {
    /// What the package raises.
    pub(crate) fn raised(text: impl fmt::Display) -> Self {
        Self::Raised { text: text.to_string() }
    }
}

impl From<Exception> for ItemError {
    fn from(exception: Exception) -> Self {
        Self::Raised { text: exception.text }
    }
}

/// Puzzles of one kind, as many as there are numbers.
pub trait Dataset: fmt::Debug + Send + Sync {
    /// The puzzle of an index. Equal seeds, options and indices give equal puzzles; only the sum of seed and index counts.
    ///
    /// # Errors
    ///
    /// [`ItemError`] where the options allow no puzzle of this seed.
    fn item(&self, index: u64) -> Result<Item, ItemError>;

    /// What an answer is worth, mostly from 0 to 1: the package's score. Where the package's scorer raises an exception, it
    /// is 0. Absent is what is no answer at all.
    fn score(&self, answer: Option<&str>, item: &Item) -> f64;
}

/// How one kind of puzzle is made and scored; [`Native`] makes a [`Dataset`] of it.
pub(crate) trait Generator: Send + Sync + 'static {
    /// What can be set.
    type Options: NamedOptions + fmt::Debug;

    /// Draws a puzzle.
    fn item(options: &Self::Options, rng: &mut Random) -> Result<Item, ItemError>;

    /// What an answer is worth.
    fn score(options: &Self::Options, answer: Option<&str>, item: &Item) -> f64 {
        let _ = options;
        default_score(answer, item.gold())
    }
}

/// A [`Generator`] with its options and seed.
pub(crate) struct Native<G: Generator> {
    pub(crate) seed: u64,
    pub(crate) options: G::Options,
}

impl<G: Generator> fmt::Debug for Native<G> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seed, options } = self;
        formatter.debug_struct("Native").field("seed", seed).field("options", options).finish()
    }
}

impl<G: Generator> Dataset for Native<G> {
    fn item(&self, index: u64) -> Result<Item, ItemError> {
        let mut rng = match self.seed.checked_add(index) {
            Some(sum) => Random::from_u64(sum),
            None => Random::from_int(&(num_bigint::BigInt::from(self.seed) + index)),
        };
        G::item(&self.options, &mut rng)
    }

    fn score(&self, answer: Option<&str>, item: &Item) -> f64 {
        G::score(&self.options, answer, item)
    }
}
