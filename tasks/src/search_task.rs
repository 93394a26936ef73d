//! A question that is answered from a corpus.

use serde::{Deserialize, Serialize};
use spar_search::CorpusSource;

/// A question that is answered from a corpus: the parameters of the environment `search`.
///
/// ```
/// let task: spar_tasks::SearchTask = serde_json::from_value(serde_json::json!({
///     "question": "Where was Anna Weber born?",
///     "answers": ["Graz"],
///     "corpus": { "file": "corpus.jsonl" },
/// }))?;
/// assert_eq!((task.results, task.supporting.len()), (3, 0));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SearchTask {
    /// What is asked.
    pub question: String,
    /// The answers any of which is right; at least one.
    pub answers: Vec<String>,
    /// The titles of the documents that one needs, in their order; never shown to the policy. Default empty: not known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub supporting: Vec<String>,
    /// Where documents come from.
    pub corpus: CorpusSource,
    /// How many documents a search shows, 1 to 100. Default 3.
    #[serde(default = "three")]
    pub results: usize,
    /// How many characters of a document's text are shown; at least 1. Default 4000.
    #[serde(default = "four_thousand")]
    pub max_chars: usize,
    /// How the question is put to those who answer in words. Default plain.
    #[serde(default)]
    pub prompt: SearchPrompt,
}

/// How a question is put to those who answer in words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SearchPrompt {
    /// The question by itself.
    #[default]
    Plain,
    /// Behind Search-R1's own words, which tell what can be done.
    SearchR1,
}

pub(crate) fn three() -> usize {
    3
}

fn four_thousand() -> usize {
    4000
}

impl SearchTask {
    /// All that is wrong with it; empty where nothing is.
    pub fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        if self.question.trim().is_empty() {
            problems.push("`question` is empty".to_owned());
        }
        if self.answers.is_empty() || self.answers.iter().any(|answer| answer.trim().is_empty()) {
            problems.push("`answers` is empty, or one of them is".to_owned());
        }
        if !(1..=100).contains(&self.results) {
            problems.push(format!("`results` is {}, allowed are 1 to 100", self.results));
        }
        if self.max_chars == 0 {
            problems.push("`max_chars` is 0, must be at least 1".to_owned());
        }
        problems
    }
}
