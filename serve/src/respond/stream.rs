//! Answers piece by piece, as server-sent events.

use std::collections::VecDeque;

use futures::Stream;
use hyper::body::Bytes;
use serde_json::{Value, json};
use spar_policy::{Finished, GeneratedToken, GenerationEvent};
use tokio::time::Instant;

use super::choices::{Choices, TextLogprobs, TokenIds, chat_logprob, stop_reason};
use super::whole::call_id;
use super::{Form, too_long, usage};
use crate::answer::Delta;
use crate::api_error::ApiError;

/// An answer that is sent piece by piece.
struct Sender {
    form: Form,
    choices: Choices,
    deadline: Instant,
    /// Which choices have said who speaks.
    opened: Vec<bool>,
    /// Frames that are ready.
    ready: VecDeque<Value>,
    is_over: bool,
}

/// The frames of an answer. Dropping the stream cancels the answer.
pub(super) fn frames(form: Form, choices: Choices) -> impl Stream<Item = Bytes> + Send + 'static {
    let deadline = Instant::now() + choices.service.config.answer_timeout;
    let opened = vec![false; choices.choices.len()];
    let sender = Sender { form, choices, deadline, opened, ready: VecDeque::new(), is_over: false };
    futures::stream::unfold(Some(sender), |sender| async move {
        let mut sender = sender?;
        match sender.next().await {
            Some(frame) => Some((Bytes::from(format!("data: {frame}\n\n")), Some(sender))),
            None => Some((Bytes::from_static(b"data: [DONE]\n\n"), None)),
        }
    })
}

impl Sender {
    async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some(frame) = self.ready.pop_front() {
                return Some(frame);
            }
            if self.is_over {
                return None;
            }
            let event = tokio::time::timeout_at(self.deadline, self.choices.next()).await;
            match event {
                Ok(Some((place, GenerationEvent::Token(token)))) => self.token(place, &token),
                Ok(Some((place, GenerationEvent::Finished(finished)))) => {
                    self.finish(place, &finished);
                }
                Ok(Some((_, GenerationEvent::Failed(error)))) => {
                    self.break_off(&ApiError::from_generate(error, "prompt", "tools"));
                }
                Ok(None) => {
                    if self.form.include_usage {
                        let mut frame = self.frame(json!([]));
                        frame["usage"] = usage(&self.choices);
                        self.ready.push_back(frame);
                    }
                    self.is_over = true;
                }
                Err(_) => self.break_off(&too_long(&self.choices.service)),
            }
        }
    }

    /// An error that comes too late for a status.
    fn break_off(&mut self, error: &ApiError) {
        self.ready.push_back(error.to_json());
        self.is_over = true;
    }

    fn token(&mut self, place: usize, token: &GeneratedToken) {
        let model = &self.choices.service.model;
        let choice = &mut self.choices.choices[place];
        let deltas = choice.deltas(&token.text);
        let mut logprobs = Value::Null;
        if self.form.logprobs.is_some() && self.form.is_chat {
            logprobs = json!({ "content": [chat_logprob(model, token)], "refusal": null });
        } else if self.form.logprobs.is_some() {
            let mut told = TextLogprobs::default();
            told.push(model, token, choice.offset);
            logprobs = told.to_json();
        }
        choice.offset += token.text.chars().count();
        let is_told = self.form.token_ids || self.form.logprobs.is_some();
        let mut ids = TokenIds::default();
        ids.push(token);
        let ids = self.form.token_ids.then_some(ids);
        self.push(place, deltas, is_told, logprobs, ids.as_ref());
    }

    fn finish(&mut self, place: usize, finished: &Finished) {
        let deltas = self.choices.choices[place].last_deltas(finished);
        self.push(place, deltas, false, Value::Null, None);
        self.open(place);
        let choice = &self.choices.choices[place];
        let mut told = json!({ "index": choice.index });
        if self.form.is_chat {
            told["delta"] = json!({});
        } else {
            told["text"] = json!("");
        }
        told["logprobs"] = Value::Null;
        told["finish_reason"] = json!(choice.finish_reason(&finished.reason));
        told["stop_reason"] = stop_reason(&finished.reason);
        let frame = self.frame(json!([told]));
        self.ready.push_back(frame);
    }

    /// Makes frames of pieces; what is told of the token stands in the first of them. If it has
    /// to be told, there is a frame even without a piece.
    fn push(
        &mut self,
        place: usize,
        deltas: Vec<Delta>,
        is_told: bool,
        mut logprobs: Value,
        mut ids: Option<&TokenIds>,
    ) {
        if deltas.is_empty() && !is_told {
            return;
        }
        self.open(place);
        let (index, limits) =
            (self.choices.choices[place].index, self.choices.choices[place].limits);
        let empty = deltas.is_empty().then_some(None);
        for delta in deltas.into_iter().map(Some).chain(empty) {
            let mut told = json!({ "index": index });
            if self.form.is_chat {
                told["delta"] = delta.map_or(json!({}), |delta| self.delta(index, delta));
            } else {
                let text = match delta {
                    Some(Delta::Content(text)) => text,
                    _ => String::new(),
                };
                told["text"] = json!(text);
            }
            told["logprobs"] = logprobs.take();
            told["finish_reason"] = Value::Null;
            if let Some(ids) = ids.take() {
                ids.write(&mut told, limits);
            }
            let frame = self.frame(json!([told]));
            self.ready.push_back(frame);
        }
    }

    /// Says who speaks, before anything else is said, and what the prompt was.
    fn open(&mut self, place: usize) {
        if std::mem::replace(&mut self.opened[place], true) {
            return;
        }
        let choice = &self.choices.choices[place];
        if !self.form.is_chat && !self.form.token_ids {
            return;
        }
        let mut told = json!({ "index": choice.index });
        if self.form.is_chat {
            told["delta"] = json!({ "role": "assistant", "content": "" });
        } else {
            told["text"] = json!("");
            told["prompt_token_ids"] = json!(choice.prompt);
        }
        told["logprobs"] = Value::Null;
        told["finish_reason"] = Value::Null;
        if let Some(grammar) = choice.limits.grammar.filter(|_| self.form.token_ids) {
            told["grammar"] = json!(grammar);
        }
        let mut frame = self.frame(json!([told]));
        if self.form.is_chat && self.form.token_ids {
            frame["prompt_token_ids"] = json!(choice.prompt);
        }
        self.ready.push_back(frame);
    }

    fn delta(&self, choice: usize, delta: Delta) -> Value {
        match delta {
            Delta::Reasoning(text) => json!({ "reasoning_content": text }),
            Delta::Content(text) => json!({ "content": text }),
            Delta::CallStart { index, name } => json!({ "tool_calls": [{
                "index": index,
                "id": call_id(&self.form, choice, index),
                "type": "function",
                "function": { "name": name, "arguments": "" },
            }] }),
            Delta::CallArguments { index, text } => json!({ "tool_calls": [{
                "index": index,
                "function": { "arguments": text },
            }] }),
        }
    }

    fn frame(&self, choices: Value) -> Value {
        let form = &self.form;
        let mut frame = json!({
            "id": form.id,
            "object": if form.is_chat { "chat.completion.chunk" } else { "text_completion" },
            "created": form.created,
            "model": form.model,
            "choices": choices,
        });
        if form.include_usage {
            // Null in all frames but the last.
            frame["usage"] = Value::Null;
        }
        frame
    }
}
