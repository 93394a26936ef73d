//! Which part of a conversation the model wrote.

use std::ops::Range;

use super::{ChatInput, ChatTemplate, ControlTokens, RenderedChat};
use crate::ChatTemplateError;

/// Bytes of either text that an error shows.
const SHOWN: usize = 40;

impl ChatTemplate {
    /// The conversation as text, and the bytes of it that the assistant's messages are, found by
    /// rendering it message by message.
    ///
    /// A message starts where the prompt ends that asks for it, and ends where the text ends that
    /// the template writes for the conversation up to it, so that what the template writes behind a
    /// message counts as the message's. `add_generation_prompt` of the input is not heeded.
    ///
    /// This is right for templates that only ever append. Those that write earlier messages
    /// differently once later ones follow, as Qwen3's does when it leaves old reasoning out, are
    /// reported: their conversations have to be trained on turn by turn, each behind the prompt it
    /// was written to.
    ///
    /// # Errors
    ///
    /// As [`ChatTemplate::render`], and when the text up to a message does not start with the text
    /// before it.
    pub fn assistant_spans(
        &self,
        input: &ChatInput,
        control: &ControlTokens,
    ) -> Result<(RenderedChat, Vec<Range<usize>>), ChatTemplateError> {
        let part = |messages: usize, add_generation_prompt: bool| {
            let messages = input.messages[..messages].to_vec();
            let part = ChatInput { messages, add_generation_prompt, ..input.clone() };
            self.render(&part, control)
        };
        let whole = part(input.messages.len(), false)?;
        let mut spans = Vec::new();
        for (index, message) in input.messages.iter().enumerate() {
            if message["role"] != "assistant" {
                continue;
            }
            // A conversation may open with the assistant; templates refuse to render nothing.
            let prompt = if index == 0 { None } else { Some(part(index, true)?) };
            let start = prompt.as_ref().map_or(0, |prompt| prompt.text().len());
            let with = part(index + 1, false)?;
            if let Some(prompt) = &prompt {
                check_prefix(index, prompt.text(), with.text())?;
            }
            check_prefix(index, with.text(), whole.text())?;
            spans.push(start..with.text().len());
        }
        Ok((whole, spans))
    }
}

fn check_prefix(message: usize, before: &str, after: &str) -> Result<(), ChatTemplateError> {
    if after.starts_with(before) {
        return Ok(());
    }
    let same = before.bytes().zip(after.bytes()).take_while(|(a, b)| a == b).count();
    let at =
        (0..=same).rev().find(|at| before.is_char_boundary(*at) && after.is_char_boundary(*at));
    let at = at.unwrap_or(0);
    let shown = |text: &str| {
        let mut ends = (at..=text.len().min(at + SHOWN)).rev();
        text[at..ends.find(|end| text.is_char_boundary(*end)).unwrap_or(at)].to_owned()
    };
    Err(ChatTemplateError::NotAppending { message, at, before: shown(before), after: shown(after) })
}
