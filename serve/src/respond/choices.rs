//! Answers under way.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use serde_json::{Map, Value, json};
use spar_core::GrammarHash;
use spar_policy::{
    Constraint, FinishReason, Finished, GeneratedToken, Generation, GenerationEvent,
    GenerationRequest,
};

use super::token_text;
use crate::ServedModel;
use crate::answer::{AnswerParser, Delta};
use crate::routes::Service;

/// What limits the tokens that could be drawn for an answer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// Whether anything does.
    pub(super) are_there: bool,
    /// The grammar that it is held to.
    pub(super) grammar: Option<GrammarHash>,
}

impl Limits {
    pub(super) fn of(request: &GenerationRequest) -> Self {
        let sampling = &request.sampling;
        let leaves_out =
            sampling.truncates() || sampling.min_tokens > 0 || !sampling.bad_words.is_empty();
        let constraint = request.constraint.as_ref();
        Self {
            are_there: leaves_out || constraint.is_some(),
            grammar: constraint.and_then(Constraint::grammar_hash),
        }
    }
}

/// An answer under way.
pub(super) struct Choice {
    pub(super) index: usize,
    /// Which of the request's prompts it follows.
    place: usize,
    pub(super) prompt: Arc<[u32]>,
    pub(super) limits: Limits,
    generation: Generation,
    parser: Option<AnswerParser>,
    tokens: usize,
    cached: usize,
    /// Characters of text so far.
    pub(super) offset: usize,
    is_over: bool,
}

impl Choice {
    pub(super) fn new(
        index: usize,
        place: usize,
        (prompt, limits): (Arc<[u32]>, Limits),
        generation: Generation,
        parser: Option<AnswerParser>,
    ) -> Self {
        Self {
            index,
            place,
            prompt,
            limits,
            generation,
            parser,
            tokens: 0,
            cached: 0,
            offset: 0,
            is_over: false,
        }
    }

    /// The pieces that text makes.
    pub(super) fn deltas(&mut self, text: &str) -> Vec<Delta> {
        match &mut self.parser {
            Some(parser) => parser.push(text),
            None if text.is_empty() => Vec::new(),
            None => vec![Delta::Content(text.to_owned())],
        }
    }

    /// The last pieces.
    pub(super) fn last_deltas(&mut self, finished: &Finished) -> Vec<Delta> {
        let mut deltas = self.deltas(&finished.text);
        if let Some(parser) = &mut self.parser {
            deltas.extend(parser.finish());
        }
        deltas
    }

    /// Why it ended, as OpenAI's interface tells it.
    pub(super) fn finish_reason(&self, reason: &FinishReason) -> &'static str {
        match reason {
            FinishReason::Length => "length",
            _ if self.parser.as_ref().is_some_and(AnswerParser::has_calls) => "tool_calls",
            _ => "stop",
        }
    }
}

/// What ended an answer, as vLLM tells it: a string, a token, or null.
pub(super) fn stop_reason(reason: &FinishReason) -> Value {
    match reason {
        FinishReason::StopString(string) => json!(&**string),
        FinishReason::StopToken(token) => json!(token),
        FinishReason::EndOfTurn | FinishReason::Length => Value::Null,
    }
}

/// All answers of a request.
pub(super) struct Choices {
    pub(super) choices: Vec<Choice>,
    pub(super) service: Arc<Service>,
    started: Instant,
    /// Where to look next, so that none is starved.
    next: usize,
    has_token: bool,
}

impl Choices {
    pub(super) fn new(choices: Vec<Choice>, service: Arc<Service>) -> Self {
        Self { choices, service, started: Instant::now(), next: 0, has_token: false }
    }

    /// The next event of any answer, with its number; none when all are over.
    pub(super) async fn next(&mut self) -> Option<(usize, GenerationEvent)> {
        poll_fn(|context| self.poll_next(context)).await
    }

    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<(usize, GenerationEvent)>> {
        let count = self.choices.len();
        for place in (self.next..count).chain(0..self.next) {
            let choice = &mut self.choices[place];
            if choice.is_over {
                continue;
            }
            let Poll::Ready(Some(event)) = choice.generation.poll_next(context) else { continue };
            self.next = (place + 1) % count;
            if !std::mem::replace(&mut self.has_token, true) {
                self.service.metrics.first_token.observe(self.started.elapsed());
            }
            match &event {
                GenerationEvent::Token(_) => choice.tokens += 1,
                GenerationEvent::Finished(finished) => {
                    choice.cached = finished.cached_tokens;
                    choice.is_over = true;
                    if self.choices.iter().all(|choice| choice.is_over) {
                        self.service.metrics.whole_answer.observe(self.started.elapsed());
                    }
                }
                GenerationEvent::Failed(_) => choice.is_over = true,
            }
            return Poll::Ready(Some((place, event)));
        }
        if self.choices.iter().all(|choice| choice.is_over) {
            Poll::Ready(None)
        } else {
            Poll::Pending
        }
    }

    /// Tokens of the prompts, those of them that were remembered, and tokens of answers.
    pub(super) fn usage(&self) -> (usize, usize, usize) {
        let (mut prompt, mut cached) = (0, 0);
        let mut last = None;
        for choice in &self.choices {
            // Several answers to a prompt read it once.
            if last.replace(choice.place) != Some(choice.place) {
                prompt += choice.prompt.len();
                cached += choice.cached;
            }
        }
        (prompt, cached, self.choices.iter().map(|choice| choice.tokens).sum())
    }
}

/// A token with its log-probability, as chat completions tell it.
pub(super) fn chat_logprob(model: &ServedModel, token: &GeneratedToken) -> Value {
    let entry = |id: u32, logprob: f32| {
        json!({
            "token": token_text(model, id),
            "logprob": finite(logprob),
            "bytes": model.tokenizer.token_bytes(id),
        })
    };
    let mut told = entry(token.id, told_logprob(token));
    let top: Vec<Value> = token.top.iter().map(|(id, logprob)| entry(*id, *logprob)).collect();
    told["top_logprobs"] = top.into();
    told
}

/// Tokens with their log-probabilities, as completions tell them.
#[derive(Debug, Default)]
pub(super) struct TextLogprobs {
    texts: Vec<Value>,
    logprobs: Vec<Value>,
    tops: Vec<Value>,
    offsets: Vec<usize>,
}

impl TextLogprobs {
    /// Appends a token whose text begins behind `offset` characters.
    pub(super) fn push(&mut self, model: &ServedModel, token: &GeneratedToken, offset: usize) {
        self.texts.push(token_name(model, token.id).into());
        self.logprobs.push(finite(told_logprob(token)));
        let top: Map<String, Value> = token
            .top
            .iter()
            .map(|(id, logprob)| (token_name(model, *id), finite(*logprob)))
            .collect();
        self.tops.push(top.into());
        self.offsets.push(offset);
    }

    pub(super) fn to_json(&self) -> Value {
        json!({
            "tokens": self.texts,
            "token_logprobs": self.logprobs,
            "top_logprobs": self.tops,
            "text_offset": self.offsets,
        })
    }
}

/// A token as completions write it: their probabilities go by texts, and tokens that are parts of
/// characters would share one, so these are written by their bytes, as OpenAI's interface does.
fn token_name(model: &ServedModel, id: u32) -> String {
    let bytes = model.tokenizer.token_bytes(id);
    if std::str::from_utf8(bytes).is_ok() {
        return token_text(model, id);
    }
    let escaped: String = bytes.iter().map(|byte| format!("\\x{byte:02x}")).collect();
    format!("bytes:{escaped}")
}

/// What a trainer needs of tokens.
#[derive(Debug, Default)]
pub(super) struct TokenIds {
    ids: Vec<u32>,
    sampling_logprobs: Vec<f32>,
    entropies: Vec<f32>,
    versions: Vec<u32>,
    allowed: Vec<Vec<u32>>,
}

impl TokenIds {
    pub(super) fn push(&mut self, token: &GeneratedToken) {
        self.ids.push(token.id);
        self.sampling_logprobs.push(token.logprob);
        self.entropies.push(token.entropy.unwrap_or(0.0));
        self.versions.push(token.version.0);
        self.allowed.push(token.allowed.clone());
    }

    /// Writes them beside the other fields of a choice.
    pub(super) fn write(&self, choice: &mut Value, limits: Limits) {
        choice["token_ids"] = json!(self.ids);
        choice["sampling_logprobs"] = json!(self.sampling_logprobs);
        choice["entropies"] = json!(self.entropies);
        choice["policy_versions"] = json!(self.versions);
        if limits.are_there {
            choice["allowed_token_ids"] = json!(self.allowed);
        }
    }
}

/// The model's own log-probability; that of a token which was forced is not computed.
fn told_logprob(token: &GeneratedToken) -> f32 {
    token.raw_logprob.unwrap_or(token.logprob)
}

/// JSON has no infinities; clients know this number for what cannot be.
fn finite(logprob: f32) -> Value {
    json!(if logprob.is_finite() { logprob } else { -9999.0 })
}
