//! Conversations as policies lay them out.

use std::sync::Arc;

use crate::{Message, ToolSpec};

/// A conversation at whose end a policy answers, and how much of it stands in tokens already.
#[derive(Debug, Clone, Copy)]
pub struct Conversation<'a> {
    /// The messages, oldest first.
    pub messages: &'a [Arc<Message>],
    /// The tools that are offered.
    pub tools: &'a [ToolSpec],
    /// How many of the messages stand in the tokens so far, which were made under the same tools: up to and with the
    /// policy's last answer, whose tokens are those that it sampled. 0: none.
    pub encoded: usize,
    /// The tokens of that answer; empty where there is none.
    pub answer: &'a [u32],
}

/// The tokens of a conversation, or of what has come to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Encoded {
    /// Those of the messages that were not encoded, each laid out by itself, whatever else is said: messages before
    /// them can be left out.
    Alone(Vec<u32>),
    /// What comes behind the tokens so far.
    Behind(Vec<u32>),
    /// The whole conversation, which does not go on from the tokens so far.
    Anew(Vec<u32>),
}
