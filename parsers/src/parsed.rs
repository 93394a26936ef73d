//! What was read.

use std::ops::Range;

use spar_core::Action;

/// An action with the places where it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Parsed {
    /// The action.
    pub action: Action,
    /// Byte ranges within the text that was read: one per call, with its marks where they are its
    /// own, or a single one for an action in words. Not empty, in the order of the text.
    pub spans: Vec<Range<usize>>,
    /// What the policy thought, where the syntax has a place for that.
    pub reasoning: Option<String>,
}

impl Parsed {
    /// An action in words, which stand at `span`.
    pub(crate) fn text(text: impl Into<String>, span: Range<usize>) -> Self {
        Self { action: Action::text(text), spans: vec![span], reasoning: None }
    }
}
