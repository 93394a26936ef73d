//! Conversations in files, as samples.

use std::path::PathBuf;

use anyhow::{Context, bail, ensure};
use serde_json::Value;
use spar_core::{Message, Role, Sample};
use spar_policy::chat_template::ChatInput;
use spar_policy::{ChatTemplateError, Tokenizer};

use super::json_lines::read_json_lines;
use crate::recipe::TrainedMessages;

const ROLES: [&str; 5] = ["system", "developer", "user", "assistant", "tool"];

/// A conversation of a file.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Chat {
    /// The file and the line, for those who read errors.
    pub(crate) source: String,
    /// Messages as templates take them.
    messages: Vec<Value>,
    tools: Option<Vec<Value>>,
    /// The assistant's messages, each with whether it is trained.
    trained: Vec<(usize, bool)>,
}

/// Reads conversations, a JSON object per line, or tells all that is wrong with the files.
pub(crate) fn read_chats(
    files: &[PathBuf],
    which: TrainedMessages,
) -> Result<Vec<Chat>, Vec<String>> {
    read_json_lines(files, "conversation", |source, value| Chat::new(source, value, which))
}

impl Chat {
    fn new(source: &str, value: Value, which: TrainedMessages) -> Result<Self, Vec<String>> {
        let tell = |problem: String| format!("{source}: {problem}");
        let Value::Object(mut fields) = value else {
            return Err(vec![tell("a conversation is an object with `messages`".to_owned())]);
        };
        let Some(Value::Array(mut messages)) = fields.remove("messages") else {
            return Err(vec![tell("`messages` is missing, or no list".to_owned())]);
        };
        let mut problems = Vec::new();
        let tools = match fields.remove("tools") {
            None | Some(Value::Null) => None,
            Some(Value::Array(tools)) if tools.iter().all(is_tool) => Some(tools),
            Some(_) => {
                let form = r#"{"type": "function", "function": {"name": ...}}"#;
                problems.push(tell(format!("`tools` is no list of objects such as {form}")));
                None
            }
        };
        let mut trained = Vec::new();
        for (index, message) in messages.iter_mut().enumerate() {
            match check_message(message) {
                Ok(Some(is_trained)) => trained.push((index, is_trained)),
                Ok(None) => {}
                Err(problem) => problems.push(tell(format!("message {}: {problem}", index + 1))),
            }
        }
        if problems.is_empty() && trained.is_empty() {
            problems.push(tell("it has no message of the assistant to train".to_owned()));
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        if which == TrainedMessages::Last {
            let last = trained.len() - 1;
            trained.iter_mut().take(last).for_each(|(_, is_trained)| *is_trained = false);
        }
        Ok(Self { source: source.to_owned(), messages, tools, trained })
    }

    /// A conversation, opened by somebody else, whose messages of the assistant are trained from place `first` on.
    pub(super) fn answer(source: &str, value: Value, first: usize) -> Result<Self, Vec<String>> {
        let mut chat = Self::new(source, value, TrainedMessages::All)?;
        if chat.trained.first().is_some_and(|(index, _)| *index == 0) {
            let problem = "it opens with the assistant: a prompt has to come first";
            return Err(vec![format!("{source}: {problem}")]);
        }
        chat.trained
            .iter_mut()
            .filter(|(index, _)| *index < first)
            .for_each(|(_, is_trained)| *is_trained = false);
        if !chat.trained.iter().any(|(_, is_trained)| *is_trained) {
            return Err(vec![format!("{source}: it has no message of the assistant to train")]);
        }
        Ok(chat)
    }

    /// All that is said, message by message.
    pub(crate) fn words(&self) -> Vec<String> {
        self.messages.iter().map(content_of).collect()
    }

    /// The conversation as samples whose trained messages weigh 1 in the cross-entropy term: one, where the model's
    /// chat template only appends, else one per trained message behind the prompt that asks for it.
    pub(crate) fn samples(&self, tokenizer: &Tokenizer) -> anyhow::Result<Vec<Sample>> {
        let samples = if tokenizer.chat_template().is_some() {
            self.by_template(tokenizer)
        } else {
            self.by_layout(tokenizer).map(|sample| vec![sample])
        };
        let mut samples =
            samples.with_context(|| format!("read the conversation {}", self.source))?;
        samples.retain(|sample| sample.cross_entropy_weights.iter().any(|weight| *weight > 0.0));
        Ok(samples)
    }

    fn by_template(&self, tokenizer: &Tokenizer) -> anyhow::Result<Vec<Sample>> {
        self.check_tools(tokenizer)?;
        match tokenizer.encode_chat_with_mask(&self.input(self.messages.len(), false)) {
            Ok(masked) => {
                // Which message a run of the assistant's tokens is; known where they stand apart.
                let starts = |at: usize| {
                    masked.is_assistant[at] && (at == 0 || !masked.is_assistant[at - 1])
                };
                let runs = (0..masked.ids.len()).filter(|at| starts(*at)).count();
                let is_all = self.trained.iter().all(|(_, is_trained)| *is_trained);
                if !is_all && runs != self.trained.len() {
                    return self.turn_by_turn(tokenizer);
                }
                let mut sample = Sample::default();
                let mut run = 0;
                for (at, id) in masked.ids.iter().enumerate() {
                    run += usize::from(starts(at));
                    let is_trained = masked.is_assistant[at] && (is_all || self.trained[run - 1].1);
                    sample.push_observed(*id, f32::from(u8::from(is_trained)));
                }
                Ok(vec![sample])
            }
            Err(ChatTemplateError::NotAppending { .. }) => self.turn_by_turn(tokenizer),
            Err(error) => Err(error.into()),
        }
    }

    /// Looks whether the template writes the tools, and the calls of them: one that knows none leaves them out without a
    /// word.
    fn check_tools(&self, tokenizer: &Tokenizer) -> anyhow::Result<()> {
        let has_calls = self.messages.iter().any(|message| message["tool_calls"].is_array());
        if self.tools.is_none() && !has_calls {
            return Ok(());
        }
        let input = || self.input(self.messages.len(), false);
        let whole = tokenizer.render_chat(&input())?;
        if self.tools.is_some() {
            let without = ChatInput { tools: None, ..input() };
            let is_written = tokenizer.render_chat(&without)? != whole;
            ensure!(is_written, "the model's chat template leaves `tools` out");
        }
        for (index, message) in self.messages.iter().enumerate() {
            if !message["tool_calls"].is_array() {
                continue;
            }
            let mut without = input();
            if let Some(fields) = without.messages[index].as_object_mut() {
                fields.remove("tool_calls");
                fields.insert("content".to_owned(), content_of(message).into());
            }
            let is_written = tokenizer.render_chat(&without)? != whole;
            ensure!(
                is_written,
                "the model's chat template leaves `tool_calls` of message {} out",
                index + 1
            );
        }
        Ok(())
    }

    /// Each trained message behind the prompt it was written to.
    fn turn_by_turn(&self, tokenizer: &Tokenizer) -> anyhow::Result<Vec<Sample>> {
        let mut samples = Vec::new();
        for (index, _) in self.trained.iter().filter(|(_, is_trained)| *is_trained) {
            ensure!(*index > 0, "the template tells no prompt for an answer that opens it");
            let prompt = tokenizer.encode_chat(&self.input(*index, true))?;
            let whole = tokenizer.encode_chat(&self.input(index + 1, false))?;
            ensure!(
                whole.starts_with(&prompt),
                "the model's chat template writes message {} differently than the prompt before it",
                index + 1
            );
            // What the template writes behind the end of a turn is its own.
            let ends = tokenizer.end_tokens();
            let end = whole[prompt.len()..].iter().position(|id| ends.contains(id));
            let end = end.map_or(whole.len(), |end| prompt.len() + end + 1);
            let mut sample = Sample::default();
            for (at, id) in whole[..end].iter().enumerate() {
                sample.push_observed(*id, f32::from(u8::from(at >= prompt.len())));
            }
            samples.push(sample);
        }
        Ok(samples)
    }

    /// The messages one after the other, in the plain format of a tokenizer without a template.
    fn by_layout(&self, tokenizer: &Tokenizer) -> anyhow::Result<Sample> {
        ensure!(tokenizer.has_message_layout(), "the model has no chat template");
        ensure!(self.tools.is_none(), "`tools`: the model's plain format has no place for tools");
        let mut sample = Sample::default();
        let mut before: Option<Message> = None;
        for (index, message) in self.messages.iter().enumerate() {
            let has_calls = message.get("tool_calls").is_some_and(|calls| !calls.is_null());
            let role = match message["role"].as_str().unwrap_or_default() {
                "system" | "developer" => Role::System,
                "user" => Role::User,
                "assistant" if !has_calls => Role::Assistant,
                other => bail!(
                    "message {}: the model's plain format has no place for {}",
                    index + 1,
                    if has_calls { "`tool_calls`" } else { other }
                ),
            };
            let is_out_of_turn = matches!(
                (before.as_ref().map(|before| before.role), role),
                (None, Role::Assistant)
                    | (Some(_), Role::System)
                    | (Some(Role::User), Role::User)
                    | (Some(Role::Assistant | Role::System), Role::Assistant)
            );
            ensure!(
                !is_out_of_turn,
                "message {}: in the model's plain format user and assistant take turns, behind one system message \
                 or none",
                index + 1
            );
            let message = Message::new(role, content_of(message));
            let is_trained = self.trained.contains(&(index, true));
            for id in tokenizer.encode_message(before.as_ref(), &message) {
                sample.push_observed(id, f32::from(u8::from(is_trained)));
            }
            before = Some(message);
        }
        Ok(sample)
    }

    fn input(&self, messages: usize, add_generation_prompt: bool) -> ChatInput {
        let messages = self.messages[..messages].to_vec();
        let mut input = ChatInput {
            tools: self.tools.clone(),
            add_generation_prompt,
            ..ChatInput::new(messages)
        };
        input.parse_tool_arguments();
        input
    }
}

fn is_tool(tool: &Value) -> bool {
    tool.pointer("/function/name").is_some_and(Value::is_string)
}

/// Whether a message is trained, where it is the assistant's; what only training reads is taken out of it.
fn check_message(message: &mut Value) -> Result<Option<bool>, String> {
    let Value::Object(fields) = message else { return Err("it is no object".to_owned()) };
    let Some(role) = fields.get("role").and_then(Value::as_str).map(str::to_owned) else {
        return Err("`role` is missing".to_owned());
    };
    if !ROLES.contains(&role.as_str()) {
        return Err(format!("role `{role}`: known are `{}`", ROLES.join("`, `")));
    }
    let has_calls = match fields.get("tool_calls") {
        None | Some(Value::Null) => false,
        Some(Value::Array(calls)) if role == "assistant" => {
            let named = |call: &Value| call.pointer("/function/name").is_some_and(Value::is_string);
            if !calls.iter().all(named) {
                return Err("`tool_calls` has a call without `function.name`".to_owned());
            }
            !calls.is_empty()
        }
        Some(Value::Array(_)) => return Err(format!("`tool_calls` of role `{role}`")),
        Some(_) => return Err("`tool_calls` is no list".to_owned()),
    };
    match fields.get("content") {
        Some(Value::String(_)) => {}
        Some(Value::Array(parts)) => {
            let is_text = |part: &Value| part["type"] == "text" && part["text"].is_string();
            if !parts.iter().all(is_text) {
                return Err("`content` has a part that is no text".to_owned());
            }
            // Templates that know no parts would leave them out.
            let text: String = parts.iter().filter_map(|part| part["text"].as_str()).collect();
            fields.insert("content".to_owned(), text.into());
        }
        None | Some(Value::Null) if has_calls => {}
        None | Some(Value::Null) => return Err("`content` is missing".to_owned()),
        Some(_) => return Err("`content` is neither text nor a list of parts".to_owned()),
    }
    let weight = match fields.remove("weight") {
        None | Some(Value::Null) => None,
        Some(weight) => match weight.as_f64() {
            Some(0.0) => Some(false),
            Some(1.0) => Some(true),
            _ => return Err(format!("`weight` is {weight}, must be 0 or 1")),
        },
    };
    match (role.as_str(), weight) {
        ("assistant", weight) => Ok(Some(weight.unwrap_or(true))),
        (_, Some(true)) => {
            Err(format!("`weight` 1 of role `{role}`: only the assistant is trained"))
        }
        _ => Ok(None),
    }
}

/// What a message says; empty where it only calls.
fn content_of(message: &Value) -> String {
    message["content"].as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use spar_policy::TokenizerConfig;

    use super::*;

    fn write(text: &str) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("chats.jsonl");
        fs::write(&path, text).unwrap();
        (folder, path)
    }

    fn read(text: &str, which: TrainedMessages) -> Result<Vec<Chat>, Vec<String>> {
        let (_folder, path) = write(text);
        read_chats(&[path], which)
    }

    const TWO_TURNS: &str = r#"{"messages": [{"role": "system", "content": "be brief"},
        {"role": "user", "content": "one"}, {"role": "assistant", "content": "two", "weight": 0},
        {"role": "user", "content": "three"}, {"role": "assistant", "content": "four five"}]}"#;

    fn tokenizer() -> Tokenizer {
        let texts = ["be brief", "one", "two", "three", "four five"];
        Tokenizer::train([texts.into_iter()], &TokenizerConfig::default()).unwrap()
    }

    fn trained_texts(text: &str, which: TrainedMessages) -> Vec<String> {
        let tokenizer = tokenizer();
        let line = text.replace('\n', " ");
        let chats = read(&line, which).unwrap();
        let samples = chats[0].samples(&tokenizer).unwrap();
        let texts = samples.iter().map(|sample| {
            sample.validate().unwrap();
            let weighed = sample.tokens.iter().zip(&sample.cross_entropy_weights);
            let trained: Vec<u32> =
                weighed.filter(|(_, w)| **w == 1.0).map(|(id, _)| *id).collect();
            assert_eq!(trained.last(), Some(&tokenizer.end_of_turn()), "a turn's end is trained");
            tokenizer.decode(&trained).trim().to_owned()
        });
        texts.collect()
    }

    #[test]
    fn only_the_assistant_is_trained_and_weights_are_heeded() {
        assert_eq!(trained_texts(TWO_TURNS, TrainedMessages::All), ["four five"]);
        assert_eq!(trained_texts(TWO_TURNS, TrainedMessages::Last), ["four five"]);
        let both = TWO_TURNS.replace(", \"weight\": 0", "");
        let all = trained_texts(&both, TrainedMessages::All);
        assert!(
            all.len() == 1 && all[0].contains("two") && all[0].contains("four five"),
            "{all:?}"
        );
        assert_eq!(trained_texts(&both, TrainedMessages::Last), ["four five"]);
        let none = TWO_TURNS.replace("four five\"", "four five\", \"weight\": 0");
        assert!(trained_texts(&none, TrainedMessages::All).is_empty());
    }

    #[test]
    fn everything_that_is_wrong_with_a_file_is_told_with_its_line() {
        let text = "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}]}\n\n[1]\n{\"messages\": [{\"role\": \
                    \"bot\", \"content\": \"\"}, {\"role\": \"assistant\"}, {\"role\": \"user\", \"content\": \"\", \
                    \"weight\": 0.5}], \"tools\": [1]}\nnonsense\n{\"messages\": [{\"ro";
        let told = read(text, TrainedMessages::All).unwrap_err();
        let parts = [
            "chats.jsonl:1: it has no message of the assistant",
            "chats.jsonl:3: a conversation is an object",
            "chats.jsonl:4: `tools` is no list",
            "chats.jsonl:4: message 1: role `bot`: known are `system`",
            "chats.jsonl:4: message 2: `content` is missing",
            "chats.jsonl:4: message 3: `weight` is 0.5",
            "chats.jsonl:5: no JSON",
            "chats.jsonl:6: the last line is cut off",
        ];
        assert_eq!(told.len(), parts.len(), "{told:#?}");
        for (told, part) in told.iter().zip(parts) {
            assert!(told.contains(part), "{told} lacks {part}");
        }
        assert!(read("", TrainedMessages::All).unwrap_err()[0].contains("no conversation"));
        let missing = read_chats(&[PathBuf::from("/no/such/file")], TrainedMessages::All);
        assert!(missing.unwrap_err()[0].contains("/no/such/file"));
    }

    #[test]
    fn what_the_plain_format_has_no_place_for_is_told() {
        let told = |text: &str| {
            let chat = &read(text, TrainedMessages::All).unwrap()[0];
            format!("{:#}", chat.by_layout(&tokenizer()).unwrap_err())
        };
        let twice = r#"{"messages": [{"role": "user", "content": "a"}, {"role": "user", "content": "b"},
            {"role": "assistant", "content": "c"}]}"#;
        assert!(told(&twice.replace('\n', " ")).contains("message 2: in the model's plain format"));
        let call = r#"{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b",
            "tool_calls": [{"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]}]}"#;
        let call = call.replace('\n', " ");
        assert!(told(&call).contains("no place for `tool_calls`"));
        // Nor does the template of a model from nothing know calls.
        let chat = &read(&call, TrainedMessages::All).unwrap()[0];
        let told = format!("{:#}", chat.samples(&tokenizer()).unwrap_err());
        assert!(
            told.contains("chats.jsonl:1: the model's chat template leaves `tool_calls` of"),
            "{told}"
        );
    }

    /// A tokenizer whose template thinks behind the last question alone, and writes calls.
    fn thinker() -> Tokenizer {
        let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("text/tests/fixtures");
        let templates = fs::read_to_string(fixtures.join("chat_templates.json")).unwrap();
        let templates: Value = serde_json::from_str(&templates).unwrap();
        let folder = tempfile::tempdir().unwrap();
        for name in ["tokenizer.json", "tokenizer_config.json"] {
            fs::copy(fixtures.join("tokenizers/qwen").join(name), folder.path().join(name))
                .unwrap();
        }
        let template = templates["templates"]["tags"].as_str().unwrap();
        fs::write(folder.path().join("chat_template.jinja"), template).unwrap();
        Tokenizer::load(folder.path()).unwrap()
    }

    /// The text that each sample trains, and the text before it.
    fn trained_by(tokenizer: &Tokenizer, text: &str, which: TrainedMessages) -> Vec<[String; 2]> {
        let chats = read(&text.replace('\n', " "), which).unwrap();
        let samples = chats[0].samples(tokenizer).unwrap();
        let parts = samples.iter().map(|sample| {
            let first =
                sample.cross_entropy_weights.iter().position(|weight| *weight > 0.0).unwrap();
            let weighed = sample.tokens.iter().zip(&sample.cross_entropy_weights);
            let trained: Vec<u32> = weighed.filter(|(_, w)| **w > 0.0).map(|(id, _)| *id).collect();
            [&sample.tokens[..first], &trained].map(|ids| tokenizer.decode_with_control(ids))
        });
        parts.collect()
    }

    #[test]
    fn what_a_template_writes_differently_later_is_trained_turn_by_turn() {
        let text = r#"{"messages": [{"role": "user", "content": [{"type": "text", "text": "one"}]},
            {"role": "assistant", "content": "two", "reasoning_content": "hm"}, {"role": "user", "content": "three"},
            {"role": "assistant", "content": "four", "reasoning_content": "so"}]}"#;
        let tokenizer = thinker();
        let start = "<|im_start|>user\none<|im_end|>\n<|im_start|>assistant\n";
        let first = "<think>\nhm\n</think>\n\ntwo<|im_end|>";
        // The thought of an earlier turn is left out, as where the model answers.
        let second = format!(
            "{start}two<|im_end|>\n<|im_start|>user\nthree<|im_end|>\n<|im_start|>assistant\n"
        );
        let last = [second.as_str(), "<think>\nso\n</think>\n\nfour<|im_end|>"].map(str::to_owned);
        let all = trained_by(&tokenizer, text, TrainedMessages::All);
        assert_eq!(all, [[start, first].map(str::to_owned), last.clone()]);
        assert_eq!(trained_by(&tokenizer, text, TrainedMessages::Last), [last]);
    }

    #[test]
    fn calls_of_tools_are_trained_and_their_results_are_not() {
        let text = r#"{"tools": [{"type": "function", "function": {"name": "find", "parameters": {}}}],
            "messages": [{"role": "user", "content": "where?"}, {"role": "assistant", "content": null, "tool_calls":
            [{"id": "1", "type": "function", "function": {"name": "find", "arguments": "{\"what\": \"key\"}"}}]},
            {"role": "tool", "tool_call_id": "1", "content": "drawer"}, {"role": "assistant", "content": "there"}]}"#;
        let all = trained_by(&thinker(), text, TrainedMessages::All);
        let told: String = all.iter().map(|[_, trained]| trained.as_str()).collect();
        assert!(
            told.contains(
                r#"<call>{"name": "find", "arguments": {"what": "key"}}</call><|im_end|>"#
            ),
            "{told}"
        );
        assert!(told.contains("there<|im_end|>") && !told.contains("drawer"), "{told}");
        assert!(all[0][0].contains("# Tools") && all[0][0].contains("find"), "{all:?}");
    }
}
