//! The prompt of one turn.

use std::sync::Arc;

use spar_core::{Message, PromptTokens};

/// The prompt of one turn.
#[derive(Debug, Clone)]
pub struct Prompt {
    /// The conversation as text.
    pub messages: Arc<Vec<Arc<Message>>>,
    /// The conversation as tokens.
    pub ids: Arc<[u32]>,
    /// The tokens as the difference to the previous turn.
    pub tokens: PromptTokens,
}
