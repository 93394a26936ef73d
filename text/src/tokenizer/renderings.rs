//! The conversations that were rendered last.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use spar_core::{Message, ToolSpec};

/// As many are remembered at the most.
const MAX_RENDERINGS: usize = 256;
/// As many bytes of text are remembered at the most.
const MAX_BYTES: usize = 32 << 20;

/// The conversations that were rendered last, so that the next turn of each need not render its past again.
///
/// Clones share them. A conversation is found by its messages being the same ones, not equal ones.
#[derive(Debug, Clone, Default)]
pub(super) struct Renderings(Arc<Mutex<VecDeque<Rendering>>>);

#[derive(Debug)]
struct Rendering {
    messages: Vec<Arc<Message>>,
    tools: Vec<ToolSpec>,
    text: String,
}

impl Renderings {
    /// The text of a conversation, which is forgotten: the next turn asks for its own.
    pub(super) fn take(&self, messages: &[Arc<Message>], tools: &[ToolSpec]) -> Option<String> {
        let is_same = |rendering: &Rendering| {
            // From the end, where conversations that begin alike differ.
            rendering.messages.len() == messages.len()
                && rendering
                    .messages
                    .iter()
                    .rev()
                    .zip(messages.iter().rev())
                    .all(|(a, b)| Arc::ptr_eq(a, b))
                && rendering.tools == tools
        };
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let place = held.iter().rposition(is_same)?;
        held.remove(place).map(|rendering| rendering.text)
    }

    /// Remembers the text of a conversation, and forgets the oldest where there are too many.
    pub(super) fn remember(&self, messages: &[Arc<Message>], tools: &[ToolSpec], text: &str) {
        let rendering =
            Rendering { messages: messages.to_vec(), tools: tools.to_vec(), text: text.to_owned() };
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        held.push_back(rendering);
        let mut bytes: usize = held.iter().map(|rendering| rendering.text.len()).sum();
        while held.len() > MAX_RENDERINGS || bytes > MAX_BYTES {
            let Some(oldest) = held.pop_front() else { return };
            bytes -= oldest.text.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use spar_core::Role;

    use super::*;

    #[test]
    fn the_oldest_are_forgotten() {
        let renderings = Renderings::default();
        let say = || [Arc::new(Message::new(Role::User, "a"))];
        let conversations: Vec<_> = (0..=MAX_RENDERINGS).map(|_| say()).collect();
        conversations.iter().for_each(|it| renderings.remember(it, &[], "text"));
        assert_eq!(renderings.take(&conversations[0], &[]), None);
        assert_eq!(renderings.take(&conversations[1], &[]).as_deref(), Some("text"));
        assert_eq!(renderings.take(&conversations[1], &[]), None, "it was taken");
        assert_eq!(renderings.take(&say(), &[]), None, "others say the same");
        let long = "a".repeat(MAX_BYTES);
        let last = say();
        renderings.remember(&last, &[], &long);
        assert_eq!(renderings.take(&conversations[2], &[]), None);
        assert!(renderings.take(&last, &[]).is_some());
    }
}
