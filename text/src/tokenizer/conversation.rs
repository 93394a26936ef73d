//! Conversations with tools as tokens, as they go on.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::SystemTime;

use serde_json::Value;
use spar_core::{Conversation, Encoded, Message, Role};

use super::Tokenizer;
use super::layout::{DAY, Layout};
use crate::ChatTemplateError;
use crate::chat_template::{ChatInput, ChatTemplate, RenderedChat};
use crate::tool_words;

impl Tokenizer {
    /// Whether conversations can be laid out at all: message by message, or by a chat template.
    pub fn has_layout(&self) -> bool {
        self.layout.is_some() || self.chat_template().is_some()
    }

    /// The tokens of a conversation at whose end the model answers, or of what has come to it since its last answer.
    ///
    /// Without tools, a model whose template lays messages out one by one is given them one by one. Everything else
    /// is laid out as a whole by the chat template. Where its text goes on from that of the prompt before, with an
    /// answer that says the same as what was sampled, white space apart, what follows that answer's end is appended
    /// to the tokens as they were sampled; where it does not, because the template leaves out thoughts or writes
    /// calls in its own way, the whole is encoded anew. Models whose template has no place for tools are offered them
    /// in words, in the system message.
    ///
    /// # Errors
    ///
    /// As [`Tokenizer::render_chat`], when the model has no layout for such a conversation, and when media are shown,
    /// which have no tokens.
    pub fn encode_conversation(
        &self,
        conversation: &Conversation<'_>,
    ) -> Result<Encoded, ChatTemplateError> {
        let Conversation { messages, tools, encoded, .. } = *conversation;
        let refuse = |detail: &str| Err(ChatTemplateError::Messages { detail: detail.to_owned() });
        if messages[encoded..].iter().any(|message| message.media().next().is_some()) {
            return refuse("media are shown in them, and the model reads text alone");
        }
        let calls =
            |message: &Arc<Message>| message.role == Role::Tool || !message.tool_calls.is_empty();
        let has_tools = !tools.is_empty() || messages.iter().any(calls);
        match (&self.layout, self.chat_template()) {
            (Some(layout), _) if !has_tools => {
                let new = messages[encoded..].iter().map(|message| in_words(message));
                let before = encoded.checked_sub(1).map(|last| &*messages[last]);
                Ok(Encoded::Alone(self.one_by_one(layout, before, new)))
            }
            (_, Some(template)) if !has_tools || knows_tools(template) => {
                self.by_template(template, conversation)
            }
            (Some(layout), _) => {
                let new = with_tools(conversation);
                let before = encoded.checked_sub(1).map(|last| &*messages[last]);
                let ids = self.one_by_one(layout, before, new.into_iter().map(Cow::Owned));
                Ok(if encoded == 0 { Encoded::Anew(ids) } else { Encoded::Behind(ids) })
            }
            (None, _) => refuse("there are tools, and the chat template has no place for them"),
        }
    }

    fn one_by_one<'a>(
        &self,
        layout: &Layout,
        before: Option<&Message>,
        messages: impl Iterator<Item = Cow<'a, Message>>,
    ) -> Vec<u32> {
        let mut ids = Vec::new();
        let mut last: Option<Cow<'a, Message>> = None;
        for message in messages {
            ids.extend(layout.encode(self, last.as_deref().or(before), &message));
            last = Some(message);
        }
        ids
    }

    fn by_template(
        &self,
        template: &ChatTemplate,
        conversation: &Conversation<'_>,
    ) -> Result<Encoded, ChatTemplateError> {
        let Conversation { messages, encoded, answer, .. } = *conversation;
        let render = |messages: &[Arc<Message>]| {
            let values = messages.iter().map(|message| message.to_template()).collect();
            let tools: Vec<Value> =
                conversation.tools.iter().map(spar_core::ToolSpec::to_function).collect();
            let input = ChatInput {
                tools: (!tools.is_empty()).then_some(tools),
                now: Some(SystemTime::UNIX_EPOCH + DAY),
                ..ChatInput::new(values)
            };
            template.render(&input, &self.control.texts)
        };
        let whole = render(messages)?;
        let tools = conversation.tools;
        let answered =
            encoded.checked_sub(1).filter(|last| messages[*last].role == Role::Assistant);
        if let Some(last) = answered.filter(|last| *last > 0) {
            let before = match self.renderings.take(&messages[..last], tools) {
                Some(text) => text,
                None => render(&messages[..last])?.into_text(),
            };
            self.renderings.remember(messages, tools, whole.text());
            if whole.text().starts_with(&before)
                && let Some(rest) = self.behind_answer(&whole, before.len(), answer)
            {
                return Ok(Encoded::Behind(self.encode_rendered_from(&whole, rest)));
            }
        } else {
            self.renderings.remember(messages, tools, whole.text());
        }
        Ok(Encoded::Anew(self.encode_rendered(&whole)))
    }

    /// The byte of a rendering from which on it goes on behind the answer that begins at `start`; `None` where the
    /// rendering has another answer than `sampled`.
    fn behind_answer(&self, chat: &RenderedChat, start: usize, sampled: &[u32]) -> Option<usize> {
        let ends = self.end_tokens();
        let said = sampled.iter().position(|id| ends.contains(id));
        let is_whole = said.is_some();
        let said = self.decode_with_control(&sampled[..said.unwrap_or(sampled.len())]);
        // No content can hold a control token, so that the first end is that of the answer.
        let text = chat.text();
        let mut search = start;
        let end = loop {
            let (token, found) = self.control.texts.find(text, search..text.len())?;
            let token = self.control.tokens[token];
            if ends.contains(&token.id) && !chat.is_content(found.start) {
                break found;
            }
            search = found.start + text[found.start..].chars().next().map_or(1, char::len_utf8);
        };
        let words = |text: &str| -> String { text.split_whitespace().collect() };
        let is_same = words(&text[start..end.start]) == words(&said);
        // An answer that was broken off is ended here.
        is_same.then_some(if is_whole { end.end } else { end.start })
    }
}

/// Whether a model's templates mention tools.
fn knows_tools(template: &ChatTemplate) -> bool {
    template.sources().any(|(_, source)| source.contains("tools"))
}

/// The messages that were not encoded, for a layout that has no place for tools, calls and results.
fn with_tools(conversation: &Conversation<'_>) -> Vec<Message> {
    let Conversation { messages, tools, encoded, .. } = *conversation;
    let mut laid_out: Vec<Message> = Vec::new();
    let mut new = &messages[encoded..];
    if encoded == 0 && !tools.is_empty() {
        let mut instruction = Vec::new();
        if let Some((first, rest)) =
            new.split_first().filter(|(first, _)| first.role == Role::System)
        {
            instruction.push(first.text().into_owned());
            new = rest;
        }
        instruction.push(tool_words::offer(tools.iter().map(spar_core::ToolSpec::to_function)));
        laid_out.push(Message::new(Role::System, instruction.join("\n\n")));
    }
    let mut was_result = false;
    for message in new {
        let is_result = message.role == Role::Tool;
        match laid_out.last_mut() {
            // The results of an answer, and what is shown behind them, are one message.
            Some(last) if was_result && message.role != Role::Assistant => {
                *last = Message::new(
                    Role::User,
                    format!("{}\n{}", last.text(), in_words(message).text()),
                );
            }
            _ => laid_out.push(in_words(message).into_owned()),
        }
        was_result = is_result;
    }
    laid_out
}

/// A message with everything in its text: thoughts, calls, and what came of them.
fn in_words(message: &Message) -> Cow<'_, Message> {
    let (text, thoughts) = (message.text(), message.reasoning());
    match message.role {
        Role::Tool => Cow::Owned(Message::new(Role::User, tool_words::result(&text))),
        Role::Assistant if !message.tool_calls.is_empty() || !thoughts.is_empty() => {
            let mut parts = Vec::new();
            if !thoughts.is_empty() {
                parts.push(format!("<think>\n{}\n</think>\n", thoughts.trim()));
            }
            if !text.is_empty() {
                parts.push(text.into_owned());
            }
            let written = |call: &spar_core::ToolCall| {
                tool_words::call(&call.name, &Value::Object(call.arguments.clone()))
            };
            parts.extend(message.tool_calls.iter().map(written));
            Cow::Owned(Message::new(Role::Assistant, parts.join("\n")))
        }
        _ => Cow::Borrowed(message),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use spar_core::{Part, ToolCall, ToolSpec};

    use super::super::tests::with_template;
    use super::*;

    /// A template in the manner of Qwen's: thoughts are left out of answers before the last question.
    const TEMPLATE: &str = "{%- if tools -%}{{ '<|im_start|>system\\nTools:' }}{%- for tool in tools -%}\
        {{ '\\n' + (tool | tojson) }}{%- endfor -%}{{ '<|im_end|>\\n' }}{%- endif -%}\
        {%- set ns = namespace(last=-1) -%}{%- for m in messages -%}{%- if m.role == 'user' -%}\
        {%- set ns.last = loop.index0 -%}{%- endif -%}{%- endfor -%}\
        {%- for m in messages -%}{{ '<|im_start|>' + m.role + '\\n' }}\
        {%- if m.reasoning_content and loop.index0 > ns.last -%}\
        {{ '<think>\\n' + m.reasoning_content + '\\n</think>\\n' }}{%- endif -%}{{ m.content }}\
        {%- for call in m.tool_calls or [] -%}{{ '\\n<tool_call>\\n{\"name\": \"' + call.function.name + \
        '\", \"arguments\": ' + (call.function.arguments | tojson) + '}\\n</tool_call>' }}{%- endfor -%}\
        {{ '<|im_end|>\\n' }}{%- endfor -%}\
        {%- if add_generation_prompt -%}{{ '<|im_start|>assistant\\n' }}{%- endif -%}";

    fn tools() -> Vec<ToolSpec> {
        let schema = json!({ "type": "object", "properties": { "path": { "type": "string" } } });
        vec![ToolSpec::new("read", "Reads a file.", schema)]
    }

    fn calling(thoughts: Option<&str>) -> Arc<Message> {
        let parts = thoughts.map(|text| Part::Reasoning(text.to_owned())).into_iter().collect();
        let mut message = Message::of_parts(Role::Assistant, parts);
        let arguments = json!({ "path": "a" }).as_object().unwrap().clone();
        message
            .tool_calls
            .push(ToolCall { id: "c".to_owned(), ..ToolCall::new("read", arguments) });
        Arc::new(message)
    }

    fn say(role: Role, text: &str) -> Arc<Message> {
        Arc::new(Message::new(role, text))
    }

    /// The tokens of a conversation whose last answer was `written`, and whether they go on behind it.
    fn go_on(
        tokenizer: &Tokenizer,
        messages: &[Arc<Message>],
        place: usize,
        written: &str,
    ) -> (String, bool) {
        let tools = tools();
        let first =
            Conversation { messages: &messages[..place], tools: &tools, encoded: 0, answer: &[] };
        let (Encoded::Anew(mut ids) | Encoded::Alone(mut ids) | Encoded::Behind(mut ids)) =
            tokenizer.encode_conversation(&first).unwrap();
        let answer = tokenizer.choice_ids(written);
        ids.extend(&answer);
        let next = Conversation { messages, tools: &tools, encoded: place + 1, answer: &answer };
        let (ids, is_behind) = match tokenizer.encode_conversation(&next).unwrap() {
            Encoded::Alone(behind) | Encoded::Behind(behind) => ([ids, behind].concat(), true),
            Encoded::Anew(ids) => (ids, false),
        };
        (tokenizer.decode_with_control(&ids), is_behind)
    }

    fn rendered(tokenizer: &Tokenizer, messages: &[Arc<Message>]) -> String {
        let input = ChatInput {
            tools: Some(tools().iter().map(ToolSpec::to_function).collect()),
            ..ChatInput::new(messages.iter().map(|message| message.to_template()).collect())
        };
        tokenizer.render_chat(&input).unwrap().into_text()
    }

    #[test]
    fn what_follows_an_answer_is_appended_to_it_as_it_was_sampled() {
        let tokenizer = with_template(TEMPLATE);
        let result = Arc::new(Message::tool_result("c", "text"));
        let messages = [say(Role::User, "read a"), calling(None), result];
        let as_laid_out =
            "\n<tool_call>\n{\"name\": \"read\", \"arguments\": {\"path\": \"a\"}}\n</tool_call>";
        let (text, is_behind) = go_on(&tokenizer, &messages, 1, as_laid_out);
        assert!(is_behind);
        assert_eq!(text, rendered(&tokenizer, &messages));
        // White space of its own stays as it was sampled.
        let (text, is_behind) = go_on(&tokenizer, &messages, 1, &as_laid_out.replace(": ", ":"));
        assert!(is_behind && text.contains("{\"name\":\"read\""), "{text}");
        // Another call is no such answer.
        let (text, is_behind) =
            go_on(&tokenizer, &messages, 1, &as_laid_out.replace("\"a\"", "\"b\""));
        assert!(!is_behind);
        assert_eq!(text, rendered(&tokenizer, &messages));
    }

    #[test]
    fn what_was_rendered_for_the_turn_before_is_not_rendered_again() {
        let tokenizer = with_template(TEMPLATE);
        let result = Arc::new(Message::tool_result("c", "text"));
        let messages = [say(Role::User, "read a"), calling(None), result];
        let (tools, written) = (
            tools(),
            "\n<tool_call>\n{\"name\": \"read\", \"arguments\": {\"path\": \"a\"}}\n</tool_call>",
        );
        go_on(&tokenizer, &messages, 1, written);
        // The turn before was used up, and this one is remembered for the next.
        assert_eq!(tokenizer.renderings.take(&messages[..1], &tools), None);
        let remembered = tokenizer.renderings.take(&messages, &tools).unwrap();
        assert_eq!(remembered, rendered(&tokenizer, &messages));
        // What is remembered is what counts: a past that was another one begins anew.
        tokenizer.renderings.remember(&messages[..1], &tools, "another");
        let answer = tokenizer.choice_ids(written);
        let next = Conversation { messages: &messages, tools: &tools, encoded: 2, answer: &answer };
        let encoded = tokenizer.encode_conversation(&next).unwrap();
        assert!(matches!(encoded, Encoded::Anew(_)), "{encoded:?}");
        // Nothing remembered: it is rendered.
        let encoded = tokenizer.encode_conversation(&next).unwrap();
        assert!(matches!(encoded, Encoded::Behind(_)), "{encoded:?}");
    }

    #[test]
    fn a_template_that_leaves_thoughts_out_begins_anew() {
        let tokenizer = with_template(TEMPLATE);
        let written = "<think>\nhm\n</think>\n\n<tool_call>\n{\"name\": \"read\", \"arguments\": {\"path\": \"a\"}}\n</tool_call>";
        let result = Arc::new(Message::tool_result("c", "text"));
        let messages = [say(Role::User, "read a"), calling(Some("hm")), result];
        let (text, is_behind) = go_on(&tokenizer, &messages, 1, written);
        assert!(is_behind, "behind a tool's result they are kept");
        assert_eq!(text, rendered(&tokenizer, &messages));
        let messages = [&messages[..2], &[say(Role::User, "and now?")]].concat();
        let (text, is_behind) = go_on(&tokenizer, &messages, 1, written);
        assert!(!is_behind && !text.contains("think"), "{text}");
        assert_eq!(text, rendered(&tokenizer, &messages));
    }

    #[test]
    fn where_the_template_has_no_place_for_tools_they_are_offered_in_words() {
        let tokenizer = super::super::tests::trained();
        let results = ["one", "two"].map(|text| Arc::new(Message::tool_result("c", text)));
        let [one, two] = results;
        let messages = [say(Role::System, "act"), say(Role::User, "go"), calling(None), one, two];
        let written =
            "<tool_call>\n{\"name\":\"read\",\"arguments\":{\"path\":\"a\"}}\n</tool_call>";
        let (text, is_behind) = go_on(&tokenizer, &messages, 2, written);
        assert!(is_behind);
        let offered = text.split_once("act\n\n# Tools").unwrap().1;
        assert!(offered.contains("\"name\":\"read\""), "{offered}");
        assert_eq!(text.matches("<|assistant|>").count(), 2, "{text}");
        let shown =
            "<tool_response>\none\n</tool_response>\n<tool_response>\ntwo\n</tool_response>";
        assert!(text.ends_with(&format!("{shown}<|assistant|>")), "{text}");
    }

    #[test]
    fn media_are_refused() {
        let media = spar_core::Media::new("image/png", *b"pixels");
        let message = Arc::new(Message::of_parts(Role::User, vec![Part::Media(media)]));
        let messages = [message];
        let conversation =
            Conversation { messages: &messages, tools: &[], encoded: 0, answer: &[] };
        let error = with_template(TEMPLATE).encode_conversation(&conversation).unwrap_err();
        assert!(error.to_string().contains("media"), "{error}");
    }
}
