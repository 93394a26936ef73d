//! What is known of the program behind an endpoint.

use serde::{Deserialize, Serialize};

/// What is known of the program behind an endpoint, and so can be asked of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ServerKind {
    /// It has OpenAI's interface: answers in words and calls of tools, stop strings, JSON schemas. It shows no tokens.
    #[default]
    Openai,
    /// vLLM. It keeps answers to any grammar or list, and tells token ids and log-probabilities, but not what could be
    /// drawn: answers are fit for training where nothing was left out.
    Vllm,
    /// `spar serve policy`. It tells all that training needs, and goes on behind partial answers whatever they are held to.
    Spar,
}

impl ServerKind {
    /// Whether it tells the tokens of prompts and answers.
    pub(super) fn tells_tokens(self) -> bool {
        self != Self::Openai
    }

    /// Bytes of an answer that are read at the most: lists of what could be drawn are long.
    pub(super) fn max_body_bytes(self) -> usize {
        match self {
            Self::Openai | Self::Vllm => 16 << 20,
            Self::Spar => 64 << 20,
        }
    }
}
