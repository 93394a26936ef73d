//! Calls while they are read.

use std::ops::Range;

use spar_core::{Action, ToolCall};

use crate::{FormatError, FormatErrorKind, Parsed};

/// More calls than this in one answer are an error.
pub const MAX_CALLS: usize = 128;

/// Calls with their places, and what is said beside them.
#[derive(Default)]
pub(crate) struct CallList {
    calls: Vec<ToolCall>,
    spans: Vec<Range<usize>>,
    said: String,
}

impl CallList {
    pub(crate) fn push(&mut self, call: ToolCall, span: Range<usize>) -> Result<(), FormatError> {
        if self.calls.len() == MAX_CALLS {
            let message = format!("the answer has more than {MAX_CALLS} calls");
            return Err(FormatError::new(FormatErrorKind::TooMany, span, message));
        }
        self.calls.push(call);
        self.spans.push(span);
        Ok(())
    }

    /// Adds a piece of what stands outside the calls; pieces are divided by line breaks.
    pub(crate) fn say(&mut self, piece: &str) {
        let piece = piece.trim();
        if !piece.is_empty() {
            if !self.said.is_empty() {
                self.said.push('\n');
            }
            self.said += piece;
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// The action, when there are calls.
    pub(crate) fn into_parsed(self) -> Parsed {
        let action = Action::Calls { text: self.said, calls: self.calls };
        Parsed { action, spans: self.spans, reasoning: None }
    }
}
