//! What stands around the content of messages that are encoded one by one.

use serde_json::{Value, json};

use super::file;
use crate::chat_template::{ChatInput, ChatTemplate, ControlTokens};

/// What stands around the content of messages.
#[derive(Debug, Clone)]
pub(super) struct Marks {
    pub(super) before_system: Vec<u32>,
    pub(super) after_system: Vec<u32>,
    pub(super) before_user: Vec<u32>,
    /// Opens the policy's turn.
    pub(super) after_user: Vec<u32>,
    pub(super) end: u32,
}

impl Marks {
    /// Those of tokenizers made here.
    pub(super) fn own(inner: &tokenizers::Tokenizer) -> Option<Self> {
        let special = inner.get_added_tokens_decoder();
        let mark = |mark: &str| inner.token_to_id(mark).filter(|id| special.contains_key(id));
        Some(Self {
            before_system: vec![mark(file::SYSTEM)?],
            after_system: Vec::new(),
            before_user: vec![mark(file::USER)?],
            after_user: vec![mark(file::ASSISTANT)?],
            end: mark(file::END)?,
        })
    }

    /// Those of ChatML.
    pub(super) fn chat_ml(inner: &tokenizers::Tokenizer) -> Option<Self> {
        let special = inner.get_added_tokens_decoder();
        let mark = |mark: &str| inner.token_to_id(mark).filter(|id| special.contains_key(id));
        let (start, end) = (mark("<|im_start|>")?, mark("<|im_end|>")?);
        let text = |text: &str| Some(inner.encode_fast(text, false).ok()?.get_ids().to_vec());
        let open = |role: &str| Some([vec![start], text(&format!("{role}\n"))?].concat());
        let after_system = [vec![end], text("\n")?].concat();
        Some(Self {
            before_system: open("system")?,
            before_user: open("user")?,
            after_user: [after_system.clone(), open("assistant")?].concat(),
            after_system,
            end,
        })
    }
}

impl Marks {
    /// Those that a chat template writes, as long as it lays a conversation out message by message;
    /// `None` where it does not, as where instructions become part of the first question.
    ///
    /// `encode` gives the tokens of a text with control tokens in it.
    pub(super) fn from_template(
        template: &ChatTemplate,
        control: &ControlTokens,
        encode: impl Fn(&str) -> Vec<u32>,
        control_id: impl Fn(usize) -> Option<u32>,
    ) -> Option<Self> {
        const CONTENTS: [&str; 4] = ["0first0", "1second1", "2third2", "3fourth3"];
        let roles = ["system", "user", "assistant", "user"];
        let render = |roles: &[&str]| {
            let messages = roles.iter().zip(CONTENTS);
            let messages = messages.map(|(role, text)| json!({ "role": role, "content": text }));
            let input = ChatInput::new(messages.collect::<Vec<Value>>());
            let text = template.render(&input, control).ok()?.into_text();
            split_at_contents(&text, &CONTENTS[..roles.len()])
        };
        let [before_system, system_user, after_user, between, after_last] = &render(&roles)?[..]
        else {
            return None;
        };
        // The text behind a message must not depend on what comes next.
        let [_, _, alone] = &render(&roles[..2])?[..] else { return None };
        if after_last != after_user || alone != after_user {
            return None;
        }
        // The control token behind the assistant's words ends its turn; the rest opens the user's.
        let (token, range) = control.find(between, 0..between.len())?;
        if range.start != 0 {
            return None;
        }
        let before_user = &between[range.end..];
        let after_system = system_user.strip_suffix(before_user)?;
        Some(Self {
            before_system: encode(before_system),
            after_system: encode(after_system),
            before_user: encode(before_user),
            after_user: encode(after_user),
            end: control_id(token)?,
        })
    }
}

/// What stands before, between and behind `contents`, each of which has to occur once, in order.
fn split_at_contents(text: &str, contents: &[&str]) -> Option<Vec<String>> {
    let mut parts = Vec::with_capacity(contents.len() + 1);
    let mut rest = text;
    for content in contents {
        let (before, after) = rest.split_once(content)?;
        parts.push(before.to_owned());
        rest = after;
    }
    parts.push(rest.to_owned());
    Some(parts)
}
