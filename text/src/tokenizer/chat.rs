//! Conversations as tokens.

use std::ops::Range;

use tokenizers::{Encoding, Token};

use super::{ControlToken, Tokenizer};
use crate::ChatTemplateError;
use crate::chat_template::{ChatInput, RenderedChat};

/// A conversation as tokens, with which of them the assistant wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MaskedTokens {
    /// The tokens.
    pub ids: Vec<u32>,
    /// For each of them, whether it is the assistant's; the end of its turn is.
    pub is_assistant: Vec<bool>,
}

impl Tokenizer {
    /// The conversation as text, by the model's chat template.
    ///
    /// # Errors
    ///
    /// When the model has no template, and as
    /// [`ChatTemplate::render`](crate::chat_template::ChatTemplate::render).
    pub fn render_chat(&self, input: &ChatInput) -> Result<RenderedChat, ChatTemplateError> {
        let template = self.chat_template().ok_or(ChatTemplateError::None)?;
        template.render(input, &self.control.texts)
    }

    /// The conversation as tokens, by the model's chat template.
    ///
    /// Where no content looks like a control token these are the tokens of transformers'
    /// `apply_chat_template`. What does look like one is encoded as the characters it is made of,
    /// as it is there with `sanitize_control_tokens`, so that no message can end its turn or speak
    /// in another role. Tokens that the vocabulary adds without calling them special, such as
    /// Qwen3's `<think>`, may come from contents.
    ///
    /// # Errors
    ///
    /// As [`Tokenizer::render_chat`].
    pub fn encode_chat(&self, input: &ChatInput) -> Result<Vec<u32>, ChatTemplateError> {
        Ok(self.encode_rendered(&self.render_chat(input)?))
    }

    /// The tokens of a conversation that was laid out as text.
    pub fn encode_rendered(&self, chat: &RenderedChat) -> Vec<u32> {
        let text = chat.text();
        let mut ids = Vec::with_capacity(text.len() / 3);
        self.encode_range(text, 0..text.len(), |start| chat.is_content(start), &mut ids);
        ids
    }

    /// The tokens of the part of it that begins at byte `start`, which is not its beginning.
    pub(super) fn encode_rendered_from(&self, chat: &RenderedChat, start: usize) -> Vec<u32> {
        let text = chat.text();
        let mut ids = Vec::new();
        self.encode_range(text, start..text.len(), |start| chat.is_content(start), &mut ids);
        ids
    }

    /// The conversation as tokens, and which of them the assistant wrote, up to the end of its
    /// turns: by the template's `{% generation %}` blocks where it has them, else by laying the
    /// conversation out message by message.
    ///
    /// What the assistant wrote is encoded apart from the prompt before it, as where it is
    /// sampled.
    ///
    /// # Errors
    ///
    /// As [`Tokenizer::render_chat`], and when the template does not only append
    /// ([`ChatTemplateError::NotAppending`]).
    pub fn encode_chat_with_mask(
        &self,
        input: &ChatInput,
    ) -> Result<MaskedTokens, ChatTemplateError> {
        let template = self.chat_template().ok_or(ChatTemplateError::None)?;
        let (chat, spans) = if template.marks_generation(input)? {
            let chat = template.render(input, &self.control.texts)?;
            let spans = chat.generated().to_vec();
            (chat, spans)
        } else {
            template.assistant_spans(input, &self.control.texts)?
        };
        let text = chat.text();
        let mut tokens = MaskedTokens { ids: Vec::new(), is_assistant: Vec::new() };
        let encode = |tokens: &mut MaskedTokens, range: Range<usize>| {
            self.encode_range(text, range, |start| chat.is_content(start), &mut tokens.ids);
        };
        let mut read = 0;
        for span in spans {
            encode(&mut tokens, read..span.start);
            tokens.is_assistant.resize(tokens.ids.len(), false);
            let first = tokens.ids.len();
            encode(&mut tokens, span.clone());
            // What the template writes behind the end of a turn is its own.
            let end = tokens.ids[first..].iter().position(|id| self.end_tokens().contains(id));
            let end = end.map_or(tokens.ids.len(), |end| first + end + 1);
            tokens.is_assistant.resize(end, true);
            tokens.is_assistant.resize(tokens.ids.len(), false);
            read = span.end;
        }
        encode(&mut tokens, read..text.len());
        tokens.is_assistant.resize(tokens.ids.len(), false);
        Ok(tokens)
    }

    /// The tokens of a text that may hold control tokens, with those that the tokenizer puts around
    /// a text, such as a token for its beginning: what transformers makes of a prompt.
    ///
    /// For prompts of the model's user. Texts of others belong into the contents of messages.
    pub fn encode_prompt(&self, text: &str) -> Vec<u32> {
        let ids = self.encode_laid_out(text, true, &[]);
        let tokens = ids.iter().map(|id| Token::new(*id, String::new(), (0, 0))).collect();
        let encoding = Encoding::from_tokens(tokens, 0);
        match self.inner.post_process(encoding, None, true) {
            Ok(encoding) => encoding.get_ids().to_vec(),
            // A single sequence without truncation always fits.
            Err(_) => ids,
        }
    }

    /// The tokens of a text with control tokens, in `contents` none; `at_start` tells whether it
    /// is the start of a conversation or goes on with one.
    pub(super) fn encode_laid_out(
        &self,
        text: &str,
        at_start: bool,
        contents: &[Range<usize>],
    ) -> Vec<u32> {
        let mut ids = Vec::with_capacity(text.len() / 3);
        let is_content = |at: usize| contents.iter().any(|content| content.contains(&at));
        if at_start {
            self.encode_range(text, 0..text.len(), is_content, &mut ids);
        } else {
            // Behind a character that is left out, nothing is at the start.
            let text = format!("\n{text}");
            self.encode_range(&text, 1..text.len(), |at| is_content(at - 1), &mut ids);
        }
        ids
    }

    /// Appends the tokens of a part of `text`, in which those control tokens are text for which
    /// `is_content` says so of their start.
    fn encode_range(
        &self,
        text: &str,
        range: Range<usize>,
        is_content: impl Fn(usize) -> bool,
        ids: &mut Vec<u32>,
    ) {
        let (mut start, mut search) = (range.start, range.start);
        while let Some((index, found)) = self.control.texts.find(text, search..range.end) {
            let token = self.control.tokens[index];
            if is_content(found.start) || !token.stands_alone(text, &found) {
                let first = text[found.start..].chars().next().map_or(1, char::len_utf8);
                search = found.start + first;
                continue;
            }
            let mut before = &text[start..found.start];
            if token.takes_before {
                before = before.trim_end();
            }
            self.encode_into(before, start == 0, ids);
            ids.push(token.id);
            start = found.end;
            if token.takes_behind {
                let rest = &text[start..range.end];
                start += rest.len() - rest.trim_start().len();
            }
            search = start;
        }
        self.encode_into(&text[start..range.end], start == 0, ids);
    }
}

impl ControlToken {
    /// Whether what is found in `text` is one by the characters around it.
    fn stands_alone(self, text: &str, found: &Range<usize>) -> bool {
        let is_word = |character: char| character.is_alphanumeric() || character == '_';
        !self.is_word
            || !text[..found.start].ends_with(is_word) && !text[found.end..].starts_with(is_word)
    }
}
