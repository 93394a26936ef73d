//! A conversation that is shortened.

use std::ops::Range;
use std::sync::Arc;

use spar_core::{Encoded, Message, Part, PolicyError};

use super::Elision;
use super::context::{Context, Mark};

/// Where a policy shows no tokens, so many bytes count as one.
const BYTES_PER_TOKEN: usize = 4;

/// The conversation of an episode, as a [context policy](super::ContextPolicy) may shorten it: never the task, the
/// instruction or the first observation.
pub struct ContextEditor<'c, 'a> {
    context: &'c mut Context<'a>,
}

impl<'c, 'a> ContextEditor<'c, 'a> {
    pub(super) fn new(context: &'c mut Context<'a>) -> Self {
        Self { context }
    }

    /// Tokens of prompt and answer that the episode's settings allow; absent where they set no limit.
    pub fn max_context_tokens(&self) -> Option<usize> {
        self.context.config.max_context_tokens
    }

    /// Tokens of the prompt as it stands. Exact where the policy encodes conversations; where it tells the tokens of its
    /// last prompt, the rest is estimated, and where it tells none all is: four bytes count as a token.
    ///
    /// # Errors
    ///
    /// [`PolicyError`] when the policy has no layout for the conversation.
    pub fn num_tokens(&self) -> Result<usize, PolicyError> {
        let context = &*self.context;
        let start = if context.is_broken { 0 } else { context.encoded };
        let (before, new) = match context.encode(&context.messages, start)? {
            Encoded::Alone(ids) | Encoded::Behind(ids) if start > 0 => {
                (context.previous.len(), ids.len())
            }
            Encoded::Alone(ids) | Encoded::Behind(ids) | Encoded::Anew(ids) => (0, ids.len()),
        };
        if before + new > 0 {
            return Ok(before + new);
        }
        // Nothing is known of what was not laid out yet.
        let known = if start > 0 { context.laid_out_len() } else { 0 };
        let start = if known > 0 { start } else { 0 };
        let bytes: usize = context.messages[start..].iter().map(|it| num_bytes(it)).sum();
        Ok(known + bytes.div_ceil(BYTES_PER_TOKEN))
    }

    /// Bytes of all that is said, thought and called.
    pub fn num_bytes(&self) -> usize {
        self.context.messages.iter().map(|message| num_bytes(message)).sum()
    }

    /// Turns that are shown: answers that act, each with what is shown behind it.
    pub fn num_turns(&self) -> usize {
        self.context.starts().count()
    }

    /// Bytes of the shown turn with this place, oldest first; 0 where there is none.
    pub fn turn_bytes(&self, turn: usize) -> usize {
        let Some(start) = self.context.starts().nth(turn) else { return 0 };
        let end = self.context.starts().nth(turn + 1).unwrap_or(self.context.messages.len());
        self.context.messages[start..end].iter().map(|message| num_bytes(message)).sum()
    }

    /// Observations that were shown in the whole episode behind the first one.
    pub fn num_observations(&self) -> usize {
        self.context.num_observations
    }

    /// Turns that acted since the conversation was last summed up.
    pub fn turns_since_summary(&self) -> usize {
        self.context.since_summary
    }

    /// Leaves the observations of these numbers out, as far as they are shown: 0 is the first one behind that on reset.
    pub fn elide(&mut self, observations: Range<usize>, elision: &Elision) {
        let context = &mut *self.context;
        for place in 0..context.messages.len() {
            match context.marks[place] {
                Mark::Shown(number) if observations.contains(&number) => {}
                _ => continue,
            }
            // It is looked at once, also where it is as short as what would be left of it.
            context.marks[place] = Mark::Elided;
            if let Some(left) = elision.of_message(&context.messages[place]) {
                Arc::make_mut(&mut context.messages)[place] = left;
                context.is_broken = true;
            }
        }
    }

    /// Leaves the thoughts out of the answers that led to the observations of these numbers.
    pub fn elide_thoughts(&mut self, observations: Range<usize>) {
        let context = &mut *self.context;
        for place in 0..context.messages.len() {
            match context.marks[place] {
                Mark::Answer(number) if observations.contains(&number) => {}
                _ => continue,
            }
            let message = &context.messages[place];
            let is_thought = |part: &Part| matches!(part, Part::Reasoning(_));
            if message.parts.iter().any(is_thought) {
                let mut left = Message::clone(message);
                left.parts.retain(|part| !is_thought(part));
                Arc::make_mut(&mut context.messages)[place] = Arc::new(left);
                context.is_broken = true;
            }
        }
    }

    /// Drops so many of the shown turns, the oldest first; a line behind the task tells how many were dropped in all.
    pub fn drop_turns(&mut self, count: usize) {
        let dropped = self.context.drop_turns(count);
        if dropped > 0 {
            self.context.dropped += dropped;
            let note = match self.context.dropped {
                1 => "[1 earlier turn left out]".to_owned(),
                count => format!("[{count} earlier turns left out]"),
            };
            self.context.note_behind_task(&note);
        }
    }

    /// Drops so many of the shown turns, which the summary behind the task has seen.
    pub fn drop_summed_turns(&mut self, count: usize) {
        self.context.drop_turns(count);
    }
}

/// Bytes of what is said, thought and called in a message.
fn num_bytes(message: &Message) -> usize {
    let parts = message.parts.iter().map(|part| match part {
        Part::Text(text) | Part::Reasoning(text) => text.len(),
        Part::Media(_) => 0,
    });
    let calls = message.tool_calls.iter().map(|call| {
        let arguments = serde_json::to_string(&call.arguments).map_or(0, |text| text.len());
        call.name.len() + arguments
    });
    parts.sum::<usize>() + calls.sum::<usize>()
}
