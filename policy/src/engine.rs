//! Batched generation for many conversations on one thread.

use std::collections::HashMap;
use std::sync::Arc;

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use spar_core::{
    Completion, CompletionRequest, PolicyError, PolicyVersion, SampledTokens, StopCause,
};

use crate::choices::ChoiceWalk;
use crate::decoder::{Segment, SequenceCache, forward};
use crate::head::{log_softmax, scores};
use crate::{Tokenizer, Weights};

/// First prompts whose memory is kept for further episodes that start the same.
const KEPT_PREFIXES: usize = 64;

/// Generates completions for many conversations at once.
///
/// Every call of [`Engine::step`] reads, for each unfinished completion, the tokens that its
/// sequence has not read yet and draws its next token, so that completions join and leave between
/// any two steps. What the decoder remembers of a conversation is kept between its turns; a prompt
/// that departs from it is read again from where it departs. Conversations that start with the
/// same prompt share its first reading.
///
/// A completion depends on its request and the weights, not on what else is in the batch.
pub(crate) struct Engine<Reply> {
    name: Arc<str>,
    tokenizer: Arc<Tokenizer>,
    weights: Arc<Weights>,
    version: PolicyVersion,
    /// Memory of conversations between their turns.
    idle: HashMap<u64, SequenceCache>,
    /// Memory of first prompts.
    prefixes: HashMap<Arc<[u32]>, SequenceCache>,
    active: Vec<Active<Reply>>,
    choice_ids: HashMap<Arc<str>, Arc<[u32]>>,
    /// Reused between steps.
    allowed: Vec<u32>,
    scores: Vec<f32>,
}

/// A completion under way.
struct Active<Reply> {
    reply: Reply,
    episode: u64,
    cache: SequenceCache,
    prompt: Arc<[u32]>,
    /// Whether the prompt opens a conversation.
    is_first: bool,
    /// What the sequence has to read before the next draw.
    unread: Vec<u32>,
    sampled: SampledTokens,
    walk: Option<ChoiceWalk>,
    temperature: f32,
    max_tokens: usize,
    rng: ChaCha8Rng,
}

impl<Reply> Engine<Reply> {
    pub(crate) fn new(
        name: Arc<str>,
        tokenizer: Arc<Tokenizer>,
        weights: Arc<Weights>,
        version: PolicyVersion,
    ) -> Self {
        Self {
            name,
            tokenizer,
            weights,
            version,
            idle: HashMap::new(),
            prefixes: HashMap::new(),
            active: Vec::new(),
            choice_ids: HashMap::new(),
            allowed: Vec::new(),
            scores: Vec::new(),
        }
    }

    /// Whether a completion is under way.
    pub(crate) fn is_busy(&self) -> bool {
        !self.active.is_empty()
    }

    /// Goes on with other weights; what was remembered under the old ones is read again.
    pub(crate) fn publish(&mut self, weights: Arc<Weights>, version: PolicyVersion) {
        self.weights = weights;
        self.version = version;
        self.idle.clear();
        self.prefixes.clear();
        for active in &mut self.active {
            let mut unread = active.cache.tokens().to_vec();
            unread.append(&mut active.unread);
            active.unread = unread;
            active.cache = SequenceCache::new(&self.weights);
        }
    }

    /// Drops the memory of a conversation.
    pub(crate) fn forget(&mut self, episode: u64) {
        self.idle.remove(&episode);
    }

    /// Takes up a request; an error hands the reply back.
    pub(crate) fn add(
        &mut self,
        request: CompletionRequest,
        reply: Reply,
    ) -> Result<(), (Reply, PolicyError)> {
        if let Err(error) = self.check(&request) {
            return Err((reply, error));
        }
        let walk = request.choices.as_ref().map(|choices| {
            let ids = choices.iter().map(|choice| self.ids_of(choice)).collect();
            ChoiceWalk::new(ids)
        });
        let prompt = request.prompt_ids;
        let idle = self.idle.remove(&request.episode);
        let is_first = idle.is_none();
        let mut cache = idle
            .or_else(|| self.prefixes.get(&prompt).cloned())
            .unwrap_or_else(|| SequenceCache::new(&self.weights));
        // The last token of the prompt is always read, because the draw needs its state.
        let shared = cache.tokens().iter().zip(prompt.iter()).take_while(|(a, b)| a == b).count();
        cache.truncate(shared.min(prompt.len() - 1));
        let unread = prompt[cache.tokens().len()..].to_vec();
        let mut active = Active {
            reply,
            episode: request.episode,
            cache,
            prompt,
            is_first,
            unread,
            sampled: SampledTokens::default(),
            walk,
            temperature: request.sampling.temperature,
            max_tokens: request.sampling.max_tokens,
            rng: request.seed.rng(),
        };
        active.append_forced(self.version, &mut self.allowed);
        self.active.push(active);
        Ok(())
    }

    /// Draws one token for every completion under way and hands those that ended to `finish`.
    pub(crate) fn step(&mut self, finish: &mut dyn FnMut(Reply, Completion)) {
        self.finish_done(finish);
        // Of several conversations that open with the same prompt, one reads it for all.
        let mut opening: HashMap<Arc<[u32]>, ()> = HashMap::new();
        let mut waiting = vec![false; self.active.len()];
        for (active, waiting) in self.active.iter_mut().zip(&mut waiting) {
            if !active.is_first || !active.cache.tokens().is_empty() {
                continue;
            }
            if let Some(cache) = self.prefixes.get(&active.prompt) {
                active.cache = cache.clone();
                let len = active.prompt.len() - 1;
                active.cache.truncate(len);
                active.unread.drain(..len);
            } else {
                *waiting = opening.insert(active.prompt.clone(), ()).is_some();
            }
        }

        let mut segments = Vec::new();
        for (active, waiting) in self.active.iter_mut().zip(&waiting) {
            if !waiting {
                segments.push(Segment { cache: &mut active.cache, tokens: &active.unread });
            }
        }
        let hidden = forward(&self.weights, &mut segments, None);
        drop(segments);

        let d = self.weights.config().hidden_size;
        let mut row = 0;
        for (active, waiting) in self.active.iter_mut().zip(&waiting) {
            if *waiting {
                continue;
            }
            row += active.unread.len();
            if active.is_first && active.sampled.ids.is_empty() && !active.unread.is_empty() {
                if self.prefixes.len() >= KEPT_PREFIXES {
                    self.prefixes.clear();
                }
                self.prefixes.entry(active.prompt.clone()).or_insert_with(|| active.cache.clone());
            }
            active.unread.clear();
            let state = &hidden[(row - 1) * d..row * d];
            match &active.walk {
                Some(walk) => walk.allowed(&mut self.allowed),
                None => self.allowed.clear(),
            }
            scores(&self.weights, state, &self.allowed, &mut self.scores);
            active.draw(&self.allowed, &mut self.scores, self.version);
            active.append_forced(self.version, &mut self.allowed);
        }
        self.finish_done(finish);
    }

    fn finish_done(&mut self, finish: &mut dyn FnMut(Reply, Completion)) {
        let end = self.tokenizer.end_of_turn();
        let mut index = 0;
        while index < self.active.len() {
            let active = &self.active[index];
            let sampled = &active.sampled.ids;
            let stop = match &active.walk {
                Some(walk) if walk.is_done() => Some(StopCause::EndOfTurn),
                _ if sampled.last() == Some(&end) => Some(StopCause::EndOfTurn),
                _ if sampled.len() >= active.max_tokens => Some(StopCause::Length),
                _ => None,
            };
            let Some(stop) = stop else {
                index += 1;
                continue;
            };
            let active = self.active.swap_remove(index);
            let text = active.sampled.ids.strip_suffix(&[end]).unwrap_or(&active.sampled.ids);
            let completion = Completion {
                text: self.tokenizer.decode(text),
                tokens: active.sampled,
                stop,
                author: self.name.to_string(),
            };
            self.idle.insert(active.episode, active.cache);
            finish(active.reply, completion);
        }
    }

    fn ids_of(&mut self, choice: &Arc<str>) -> Arc<[u32]> {
        if let Some(ids) = self.choice_ids.get(choice) {
            return ids.clone();
        }
        // Commands repeat without end; a bound keeps hostile environments from filling memory.
        if self.choice_ids.len() > 100_000 {
            self.choice_ids.clear();
        }
        let ids: Arc<[u32]> = self.tokenizer.choice_ids(choice).into();
        self.choice_ids.insert(choice.clone(), ids.clone());
        ids
    }

    fn check(&self, request: &CompletionRequest) -> Result<(), PolicyError> {
        let name = || self.name.to_string();
        let vocabulary = self.weights.config().vocab_size as u32;
        let unsupported = |what: String| PolicyError::Unsupported { name: name(), what };
        if request.prompt_ids.is_empty() {
            return Err(unsupported("an answer to an empty prompt".to_owned()));
        }
        if let Some(token) = request.prompt_ids.iter().find(|token| **token >= vocabulary) {
            return Err(unsupported(format!("token {token} of a vocabulary of {vocabulary}")));
        }
        if request.choices.as_ref().is_some_and(|choices| choices.is_empty()) {
            return Err(unsupported("one of no choices".to_owned()));
        }
        if !(0.0..=10.0).contains(&request.sampling.temperature) {
            let temperature = request.sampling.temperature;
            return Err(unsupported(format!("temperature {temperature}, allowed are 0 to 10")));
        }
        let tokens = request.prompt_ids.len() + request.sampling.max_tokens;
        let limit = self.weights.config().max_position_embeddings;
        if tokens > limit {
            return Err(PolicyError::ContextFull { tokens, limit });
        }
        Ok(())
    }
}

impl<Reply> Active<Reply> {
    /// Draws a token by its log-probability; at temperature 0 the most probable one, whose
    /// log-probability is then that at temperature 1.
    fn draw(&mut self, allowed: &[u32], scores: &mut [f32], version: PolicyVersion) {
        let place = if self.temperature == 0.0 {
            log_softmax(scores, 1.0);
            let best =
                |best: usize, place: usize| if scores[place] > scores[best] { place } else { best };
            (0..scores.len()).fold(0, best)
        } else {
            log_softmax(scores, self.temperature);
            let mut left: f32 = self.rng.random();
            let passes = |score: &f32| {
                left -= score.exp();
                left < 0.0
            };
            scores.iter().position(passes).unwrap_or(scores.len() - 1)
        };
        let token = allowed.get(place).copied().unwrap_or(place as u32);
        self.push(token, scores[place], allowed, version);
    }

    fn push(&mut self, token: u32, logprob: f32, allowed: &[u32], version: PolicyVersion) {
        self.unread.push(token);
        self.sampled.ids.push(token);
        self.sampled.logprobs.push(logprob);
        self.sampled.versions.push(version);
        if let Some(walk) = &mut self.walk {
            self.sampled.allowed.push(allowed.to_vec());
            walk.advance(token);
        }
    }

    /// Appends tokens that are the only choice; they need no draw, and no reading of their own.
    fn append_forced(&mut self, version: PolicyVersion, allowed: &mut Vec<u32>) {
        while let Some(walk) = &self.walk {
            walk.allowed(allowed);
            let [token] = allowed[..] else { return };
            if self.sampled.ids.len() >= self.max_tokens {
                return;
            }
            self.push(token, 0.0, &[token], version);
        }
    }
}
