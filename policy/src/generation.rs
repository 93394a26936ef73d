//! What a generator is asked for, and what it answers.

use std::sync::Arc;

use spar_core::{Choices, GrammarHash, PolicyVersion, SampledTokens, Seed};

use crate::sampling::SamplingOptions;
use crate::{GenerateError, Grammar};

/// What a generator is asked to continue.
#[derive(Debug, Clone)]
pub struct GenerationRequest {
    /// Which of the generator's models answers, by its place; 0 is the one that it was started with. Default 0.
    pub model: usize,
    /// The tokens to continue; at least one.
    pub prompt_ids: Arc<[u32]>,
    /// What the answer begins with, as it was sampled before. Default: nothing.
    pub partial: SampledTokens,
    /// Tokens the answer may have at the most, those it begins with among them.
    pub max_tokens: usize,
    /// How tokens are drawn.
    pub sampling: SamplingOptions,
    /// What ends the answer before `max_tokens`.
    pub stop: StopConditions,
    /// What the answer is held to.
    pub constraint: Option<Constraint>,
    /// What is told of each token besides its log-probability.
    pub report: Report,
    /// Where the answer's random choices start.
    pub seed: Seed,
}

/// What ends an answer before it has `max_tokens`.
#[derive(Debug, Clone, Default)]
pub struct StopConditions {
    /// Tokens that end it, besides the one that ends a turn.
    pub token_ids: Arc<[u32]>,
    /// Strings that end it; they are not part of its text.
    pub strings: Arc<[Arc<str>]>,
    /// Whether the string that ended the answer is shown after all.
    pub show_string: bool,
    /// Whether the answer goes on behind the token that ends a turn.
    pub ignore_end_of_turn: bool,
}

/// What an answer is held to.
#[derive(Debug, Clone)]
pub enum Constraint {
    /// One of these strings.
    Choices(Choices),
    /// A text of this grammar.
    Grammar(Grammar),
}

impl Constraint {
    /// The hash of the grammar, where it is one.
    pub fn grammar_hash(&self) -> Option<GrammarHash> {
        match self {
            Self::Choices(_) => None,
            Self::Grammar(grammar) => Some(grammar.hash()),
        }
    }
}

/// What is told of each token besides its log-probability.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Report {
    /// Its log-probability at temperature 1 over the whole vocabulary, before any other stage.
    pub raw: bool,
    /// The entropy of the distribution it was drawn from.
    pub entropy: bool,
    /// This many of the most probable tokens.
    pub top: usize,
    /// Which distribution these are of.
    pub top_of: Distribution,
    /// The tokens that could be drawn, where that was neither the whole vocabulary nor all that a grammar allows; see
    /// [`sampling`](crate::sampling) for what a trainer needs them for.
    pub allowed: bool,
}

/// A distribution over the next token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Distribution {
    /// The model's own: temperature 1, no other stage.
    #[default]
    Raw,
    /// The one the token was drawn from.
    Sampled,
}

/// A token of an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct GeneratedToken {
    /// Its id.
    pub id: u32,
    /// Its log-probability under the distribution it was drawn from; 0 where it was forced. At
    /// temperature 0, that at temperature 1.
    pub logprob: f32,
    /// See [`Report::raw`].
    pub raw_logprob: Option<f32>,
    /// See [`Report::entropy`].
    pub entropy: Option<f32>,
    /// See [`Report::top`]; most probable first. Empty where it was forced.
    pub top: Vec<(u32, f32)>,
    /// See [`Report::allowed`]; ascending, empty where nothing was left out but by a grammar, which tells again.
    pub allowed: Vec<u32>,
    /// The weights that drew it.
    pub version: PolicyVersion,
    /// Whether it was the only one that could come.
    pub is_forced: bool,
    /// The text that can be shown with it.
    pub text: String,
}

impl GeneratedToken {
    /// The token in this place of what an answer begins with.
    pub(crate) fn begun(sampled: &SampledTokens, place: usize, text: String) -> Self {
        let allowed = sampled.allowed.get(place).cloned().unwrap_or_default();
        Self {
            id: sampled.ids[place],
            logprob: sampled.logprobs[place],
            raw_logprob: None,
            entropy: None,
            top: Vec::new(),
            is_forced: allowed.len() == 1,
            allowed,
            version: sampled.versions[place],
            text,
        }
    }
}

/// Why an answer ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FinishReason {
    /// The policy ended its turn, or what it was held to was complete.
    EndOfTurn,
    /// One of the request's tokens came.
    StopToken(u32),
    /// One of the request's strings came.
    StopString(Arc<str>),
    /// It came to `max_tokens`.
    Length,
}

/// How an answer ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Finished {
    /// Why.
    pub reason: FinishReason,
    /// Text that had been held back.
    pub text: String,
    /// Tokens of the prompt that were not read, because they were remembered.
    pub cached_tokens: usize,
}

/// What comes of a request: tokens, and at last how it ended.
#[derive(Debug, Clone, PartialEq)]
pub enum GenerationEvent {
    /// The next token; those that the answer begins with are told as well.
    Token(GeneratedToken),
    /// The end.
    Finished(Finished),
    /// The answer broke off.
    Failed(GenerateError),
}

impl GenerationRequest {
    /// A request with defaults for all but what has none.
    pub fn new(prompt_ids: Arc<[u32]>, max_tokens: usize, seed: Seed) -> Self {
        Self {
            model: 0,
            prompt_ids,
            partial: SampledTokens::default(),
            max_tokens,
            sampling: SamplingOptions::default(),
            stop: StopConditions::default(),
            constraint: None,
            report: Report::default(),
            seed,
        }
    }

    /// Checks the request against what a model can read.
    ///
    /// # Errors
    ///
    /// What is wrong first.
    pub fn validate(&self, vocabulary: usize, limit: usize) -> Result<(), GenerateError> {
        if self.prompt_ids.is_empty() {
            return Err(GenerateError::EmptyPrompt);
        }
        let is_unknown = |token: &&u32| **token as usize >= vocabulary;
        let answered = &self.partial.ids;
        if let Some(token) = self.prompt_ids.iter().chain(answered).find(is_unknown) {
            return Err(GenerateError::UnknownToken { token: *token, vocabulary });
        }
        if let Some(token) = self.stop.token_ids.iter().find(is_unknown) {
            return Err(GenerateError::Option {
                option: "stop_token_ids",
                found: format!("token {token}"),
                allowed: format!("tokens below {vocabulary}"),
            });
        }
        let (logprobs, versions) = (self.partial.logprobs.len(), self.partial.versions.len());
        if answered.len() != logprobs || answered.len() != versions {
            return Err(GenerateError::Option {
                option: "partial",
                found: format!(
                    "{} tokens, {logprobs} log-probabilities and {versions} versions",
                    answered.len()
                ),
                allowed: "as many of each".to_owned(),
            });
        }
        let grammar = self.constraint.as_ref().and_then(Constraint::grammar_hash);
        let wanted = grammar.filter(|_| self.report.allowed);
        if !answered.is_empty() && self.partial.grammar != wanted {
            let named = |hash: Option<GrammarHash>| {
                hash.map_or_else(|| "no grammar".to_owned(), |hash| format!("grammar {hash}"))
            };
            return Err(GenerateError::Option {
                option: "partial",
                found: format!("tokens held to {}", named(self.partial.grammar)),
                allowed: format!("tokens held to {}, as the whole is", named(wanted)),
            });
        }
        let lists = self.partial.allowed.len();
        if lists != 0 && lists != answered.len() {
            return Err(GenerateError::Option {
                option: "partial",
                found: format!("{} tokens and {lists} lists of what was allowed", answered.len()),
                allowed: "as many of each, or no list".to_owned(),
            });
        }
        if !answered.is_empty() && answered.len() >= self.max_tokens {
            return Err(GenerateError::Option {
                option: "partial",
                found: format!("{} tokens", answered.len()),
                allowed: format!("fewer than {}, the most tokens of the answer", self.max_tokens),
            });
        }
        if let Some(Constraint::Choices(choices)) = &self.constraint
            && choices.is_empty()
        {
            return Err(GenerateError::NoChoices);
        }
        self.sampling.validate(vocabulary)?;
        if self.sampling.min_tokens > self.max_tokens {
            return Err(GenerateError::Option {
                option: "min_tokens",
                found: self.sampling.min_tokens.to_string(),
                allowed: format!("0 to {}, the most tokens of the answer", self.max_tokens),
            });
        }
        let prompt = self.prompt_ids.len();
        let tokens = prompt.saturating_add(self.max_tokens);
        if tokens > limit {
            return Err(GenerateError::ContextFull { prompt, max_tokens: self.max_tokens, limit });
        }
        Ok(())
    }
}
