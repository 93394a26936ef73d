//! Answers as a whole.

use serde_json::{Value, json};
use spar_policy::{GenerateError, GenerationEvent};

use super::choices::{Choices, TextLogprobs, TokenIds, chat_logprob, stop_reason};
use super::{Form, usage};
use crate::answer::Delta;

/// An answer put together.
#[derive(Default)]
struct Whole {
    thoughts: String,
    text: String,
    calls: Vec<(String, String)>,
    chat_logprobs: Vec<Value>,
    text_logprobs: TextLogprobs,
    ids: TokenIds,
    finish_reason: &'static str,
    stop_reason: Value,
}

impl Whole {
    fn push(&mut self, delta: Delta) {
        match delta {
            Delta::Reasoning(text) => self.thoughts += &text,
            Delta::Content(text) => self.text += &text,
            Delta::CallStart { name, .. } => self.calls.push((name, String::new())),
            Delta::CallArguments { index, text } => self.calls[index].1 += &text,
        }
    }
}

/// Waits for all answers and writes them.
pub(super) async fn collect(form: &Form, mut choices: Choices) -> Result<Value, GenerateError> {
    let mut wholes: Vec<Whole> = choices.choices.iter().map(|_| Whole::default()).collect();
    while let Some((place, event)) = choices.next().await {
        let whole = &mut wholes[place];
        let model = &choices.service.model;
        let choice = &mut choices.choices[place];
        let deltas = match event {
            GenerationEvent::Token(token) => {
                if form.logprobs.is_some() && form.is_chat {
                    whole.chat_logprobs.push(chat_logprob(model, &token));
                } else if form.logprobs.is_some() {
                    whole.text_logprobs.push(model, &token, choice.offset);
                }
                if form.token_ids {
                    whole.ids.push(&token);
                }
                choice.offset += token.text.chars().count();
                choice.deltas(&token.text)
            }
            GenerationEvent::Finished(finished) => {
                let deltas = choice.last_deltas(&finished);
                whole.finish_reason = choice.finish_reason(&finished.reason);
                whole.stop_reason = stop_reason(&finished.reason);
                deltas
            }
            GenerationEvent::Failed(error) => return Err(error),
        };
        deltas.into_iter().for_each(|delta| whole.push(delta));
    }
    let usage = usage(&choices);
    let prompt_ids = choices.choices.first().map(|choice| choice.prompt.clone());
    let written: Vec<Value> = wholes
        .into_iter()
        .zip(&choices.choices)
        .map(|(whole, choice)| {
            let mut value = if form.is_chat {
                chat(form, choice.index, &whole)
            } else {
                text(form, choice.index, &whole)
            };
            if form.token_ids {
                whole.ids.write(&mut value, choice.limits);
                if let Some(grammar) = choice.limits.grammar {
                    value["grammar"] = json!(grammar);
                }
                if !form.is_chat {
                    value["prompt_token_ids"] = json!(choice.prompt);
                }
            }
            value
        })
        .collect();
    let mut answer = json!({
        "id": form.id,
        "object": if form.is_chat { "chat.completion" } else { "text_completion" },
        "created": form.created,
        "model": form.model,
        "choices": written,
        "usage": usage,
    });
    if form.token_ids && form.is_chat {
        answer["prompt_token_ids"] = json!(prompt_ids);
    }
    Ok(answer)
}

fn chat(form: &Form, index: usize, whole: &Whole) -> Value {
    let calls: Vec<Value> = whole
        .calls
        .iter()
        .enumerate()
        .map(|(place, (name, arguments))| {
            json!({
                "id": call_id(form, index, place),
                "type": "function",
                "function": { "name": name, "arguments": arguments },
            })
        })
        .collect();
    // An answer that only calls has no content.
    let content = (!whole.text.is_empty() || calls.is_empty()).then_some(&whole.text);
    let mut message = json!({ "role": "assistant", "content": content, "refusal": null });
    if !whole.thoughts.is_empty() {
        message["reasoning_content"] = json!(whole.thoughts);
    }
    if !calls.is_empty() {
        message["tool_calls"] = calls.into();
    }
    let logprobs =
        form.logprobs.map(|_| json!({ "content": whole.chat_logprobs, "refusal": null }));
    json!({
        "index": index,
        "message": message,
        "logprobs": logprobs,
        "finish_reason": whole.finish_reason,
        "stop_reason": whole.stop_reason,
    })
}

fn text(form: &Form, index: usize, whole: &Whole) -> Value {
    json!({
        "index": index,
        "text": whole.text,
        "logprobs": form.logprobs.map(|_| whole.text_logprobs.to_json()),
        "finish_reason": whole.finish_reason,
        "stop_reason": whole.stop_reason,
    })
}

/// What a tool's answer refers to.
pub(super) fn call_id(form: &Form, choice: usize, place: usize) -> String {
    let request = form.id.rsplit('-').next().unwrap_or_default();
    format!("call_{request}_{choice}_{place}")
}
