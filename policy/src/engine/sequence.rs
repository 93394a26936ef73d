//! A completion under way.

use std::sync::Arc;

use rand_chacha::ChaCha8Rng;
use spar_core::{Completion, PolicyError, PolicyVersion, SampledTokens, StopCause};
use tokio::sync::{mpsc, oneshot};

use super::Walk;
use super::lockstep::Remembered;
use super::readers::Opening;
use crate::decoder::SequenceCache;
use crate::generation::{
    FinishReason, Finished, GeneratedToken, GenerationEvent, Report, StopConditions,
};
use crate::head::log_softmax;
use crate::sampling::{SamplingOptions, StopStrings, TokenCounts, most_probable, pick};
use crate::{GenerateError, Tokenizer};
use spar_text::PartialText;

/// Who waits for an answer.
#[derive(Debug)]
pub(crate) enum Reply {
    /// All of it at once.
    Whole(oneshot::Sender<Result<Completion, PolicyError>>),
    /// Token by token.
    Events(mpsc::UnboundedSender<GenerationEvent>),
}

impl Reply {
    /// Tells a token to whoever gets the answer token by token.
    pub(super) fn tell(&self, token: impl FnOnce() -> GeneratedToken) {
        if let Self::Events(events) = self {
            // Whoever asked may have given up.
            let _ = events.send(GenerationEvent::Token(token()));
        }
    }

    /// Whether nobody waits any more.
    pub(super) fn is_closed(&self) -> bool {
        match self {
            Self::Whole(reply) => reply.is_closed(),
            Self::Events(events) => events.is_closed(),
        }
    }
}

/// A completion under way.
///
/// What the sequence has read and what it has yet to read are, together, the prompt and the tokens
/// of the answer so far.
pub(super) struct Sequence {
    /// No other sequence of the engine has it.
    pub(super) number: u64,
    /// The model that answers, by its place in the engine.
    pub(super) model: usize,
    pub(super) reply: Reply,
    pub(super) episode: Option<u64>,
    pub(super) cache: SequenceCache,
    /// What the models of a draw rule have read, as many tokens each as `cache`; empty without a rule.
    pub(super) others: Vec<SequenceCache>,
    pub(super) prompt: Arc<[u32]>,
    pub(super) opening: Opening,
    /// What the sequence has to read before the next draw.
    pub(super) unread: Vec<u32>,
    pub(super) sampled: SampledTokens,
    pub(super) walk: Walk,
    /// Tokens that can come next; empty where all can.
    pub(super) allowed: Vec<u32>,
    pub(super) counts: Option<TokenCounts>,
    pub(super) sampling: SamplingOptions,
    pub(super) stop: StopConditions,
    pub(super) report: Report,
    pub(super) max_tokens: usize,
    pub(super) rng: ChaCha8Rng,
    /// Text as it is shown; absent where nobody watches.
    pub(super) text: Option<ShownText>,
    pub(super) finish: Option<FinishReason>,
    pub(super) failure: Option<GenerateError>,
    pub(super) cached_tokens: usize,
    /// Whether its counters have been set.
    pub(super) is_counted: bool,
}

/// Text as it is shown.
#[derive(Debug, Default)]
pub(super) struct ShownText {
    pub(super) partial: PartialText,
    pub(super) stops: StopStrings,
}

/// A token that a sequence goes on by.
pub(super) struct NextToken<'a> {
    pub(super) id: u32,
    pub(super) logprob: f32,
    pub(super) raw_logprob: Option<f32>,
    pub(super) entropy: Option<f32>,
    pub(super) top: Vec<(u32, f32)>,
    /// Empty means all.
    pub(super) allowed: &'a [u32],
    pub(super) is_forced: bool,
}

impl<'a> NextToken<'a> {
    /// A token that is the only one that can come.
    pub(super) fn forced(id: &'a [u32; 1]) -> Self {
        Self {
            id: id[0],
            logprob: 0.0,
            raw_logprob: None,
            entropy: None,
            top: Vec::new(),
            allowed: id,
            is_forced: true,
        }
    }
}

impl Sequence {
    /// Tokens it takes in memory.
    pub(super) fn tokens(&self) -> usize {
        self.cache.tokens().len()
    }

    /// Prompt and answer so far.
    pub(super) fn all_tokens(&self) -> Vec<u32> {
        [&self.prompt, &self.sampled.ids[..]].concat()
    }

    /// Starts to read over, from what all of `remembered` have read.
    pub(super) fn read_from(&mut self, remembered: Remembered) {
        let Remembered { mut cache, mut others } = remembered;
        let tokens = self.all_tokens();
        let shared = |cache: &SequenceCache| {
            cache.tokens().iter().zip(&tokens).take_while(|(a, b)| a == b).count()
        };
        let shared = others.iter().map(shared).fold(shared(&cache), usize::min);
        // The last token is always read, because the draw needs its state.
        let known = shared.min(tokens.len() - 1);
        cache.truncate(known);
        others.iter_mut().for_each(|other| other.truncate(known));
        self.unread = tokens[known..].to_vec();
        (self.cache, self.others) = (cache, others);
    }

    /// Turns the logits of the tokens that can come into log-probabilities, and draws: the place of the
    /// next token.
    pub(super) fn choose(&mut self, logits: &mut [f32]) -> usize {
        let temperature = self.sampling.temperature;
        if temperature == 0.0 {
            log_softmax(logits, 1.0);
            most_probable(logits)
        } else {
            log_softmax(logits, temperature);
            pick(logits, &mut self.rng)
        }
    }

    /// Tokens that must not come next, for the answer is too short to end.
    pub(super) fn barred(&self, tokenizer: &Tokenizer) -> Vec<u32> {
        if self.sampled.ids.len() >= self.sampling.min_tokens {
            return Vec::new();
        }
        [tokenizer.end_tokens(), &self.stop.token_ids].concat()
    }

    /// Appends a token to the answer.
    pub(super) fn push(
        &mut self,
        token: NextToken<'_>,
        version: PolicyVersion,
        tokenizer: &Tokenizer,
    ) {
        let NextToken { id, logprob, .. } = token;
        self.unread.push(id);
        self.sampled.ids.push(id);
        self.sampled.logprobs.push(logprob);
        self.sampled.versions.push(version);
        if self.report.allowed {
            self.sampled.allowed.push(token.allowed.to_vec());
        }
        if let Some(counts) = &mut self.counts {
            counts.push(id);
        }
        self.walk.advance(id);

        // What it means for the text, and whether it ends the answer.
        let is_end = tokenizer.end_tokens().contains(&id) && !self.stop.ignore_end_of_turn;
        let is_stop = self.stop.token_ids.contains(&id);
        let mut shown = String::new();
        let mut found = None;
        if let Some(text) = &mut self.text
            && !is_end
            && !is_stop
        {
            let piece = text.partial.push(tokenizer, id);
            if self.sampled.ids.len() <= self.sampling.min_tokens {
                shown = piece;
            } else {
                found = text.stops.push(&piece, &mut shown);
            }
        }
        self.finish = if is_end {
            Some(FinishReason::EndOfTurn)
        } else if is_stop {
            Some(FinishReason::StopToken(id))
        } else if let Some(string) = found {
            if self.stop.show_string {
                shown.push_str(&string);
            }
            Some(FinishReason::StopString(string))
        } else if self.walk.is_done() {
            Some(FinishReason::EndOfTurn)
        } else if self.sampled.ids.len() >= self.max_tokens {
            Some(FinishReason::Length)
        } else {
            None
        };
        let tells_allowed = self.report.allowed;
        self.reply.tell(|| GeneratedToken {
            id,
            logprob,
            raw_logprob: token.raw_logprob,
            entropy: token.entropy,
            top: token.top,
            allowed: if tells_allowed { token.allowed.to_vec() } else { Vec::new() },
            version,
            is_forced: token.is_forced,
            text: shown,
        });
    }

    /// Answers; the memory is left to whoever has use for it.
    pub(super) fn answer(
        mut self,
        reason: FinishReason,
        author: &str,
        tokenizer: &Tokenizer,
    ) -> (Remembered, Option<u64>) {
        match self.reply {
            Reply::Whole(reply) => {
                let end = tokenizer.end_of_turn();
                let ids = self.sampled.ids.strip_suffix(&[end]).unwrap_or(&self.sampled.ids);
                let mut text = tokenizer.answer_text(ids);
                if let FinishReason::StopString(string) = &reason {
                    // Behind the first place where it stands nothing was drawn but the rest of a token.
                    text.truncate(text.find(&**string).unwrap_or(text.len()));
                }
                let stop = match reason {
                    FinishReason::Length => StopCause::Length,
                    FinishReason::StopToken(_) | FinishReason::StopString(_) => {
                        StopCause::StopSequence
                    }
                    FinishReason::EndOfTurn => StopCause::EndOfTurn,
                };
                let completion = Completion::new(author, text, stop);
                let _ = reply.send(Ok(Completion { tokens: self.sampled, ..completion }));
            }
            Reply::Events(events) => {
                let mut reason = reason;
                let mut text = String::new();
                if let Some(shown) = &mut self.text
                    && !matches!(reason, FinishReason::StopString(_))
                {
                    let piece = shown.partial.finish();
                    match shown.stops.push(&piece, &mut text) {
                        Some(string) => reason = FinishReason::StopString(string),
                        None => shown.stops.finish(&mut text),
                    }
                }
                let cached_tokens = self.cached_tokens;
                let finished = Finished { reason, text, cached_tokens };
                let _ = events.send(GenerationEvent::Finished(finished));
            }
        }
        (Remembered { cache: self.cache, others: self.others }, self.episode)
    }

    /// Tells that no answer will come, or no more of it.
    pub(super) fn fail(self, error: GenerateError, name: &str) {
        match self.reply {
            Reply::Whole(reply) => {
                let _ = reply.send(Err(policy_error(error, name)));
            }
            Reply::Events(events) => {
                let _ = events.send(GenerationEvent::Failed(error));
            }
        }
    }
}

/// The error as policies tell it.
pub(crate) fn policy_error(error: GenerateError, name: &str) -> PolicyError {
    let name = name.to_owned();
    match error {
        GenerateError::ContextFull { prompt, max_tokens, limit } => {
            PolicyError::ContextFull { tokens: Some(prompt + max_tokens), limit: Some(limit) }
        }
        GenerateError::Closed => PolicyError::Closed { name },
        GenerateError::EmptyPrompt => {
            PolicyError::Unsupported { name, what: "an answer to an empty prompt".to_owned() }
        }
        GenerateError::UnknownToken { token, vocabulary } => {
            let what = format!("token {token} of a vocabulary of {vocabulary}");
            PolicyError::Unsupported { name, what }
        }
        GenerateError::NoChoices => {
            PolicyError::Unsupported { name, what: "one of no choices".to_owned() }
        }
        GenerateError::Option { option, found, allowed } => {
            let what = format!("{option} {found}, allowed are {allowed}");
            PolicyError::Unsupported { name, what }
        }
        other => PolicyError::Unsupported { name, what: format!("what it cannot do: {other}") },
    }
}
