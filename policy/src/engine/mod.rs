//! Batched generation for many conversations on one thread.

mod device_step;
mod lockstep;
mod memory;
mod metrics;
mod prefix_tree;
mod readers;
mod sequence;
mod served;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use spar_core::PolicyVersion;

use self::lockstep::{Lockstep, Remembered};
use self::metrics::{add, shift};
use self::readers::Opening;
use self::sequence::{NextToken, Sequence, ShownText};
use self::served::Served;
use crate::GenerateError;
use crate::cuda::DeviceError;
use crate::decoder::{Segment, SequenceCache, try_forward};
use crate::generation::{
    Constraint, Distribution, FinishReason, GeneratedToken, GenerationRequest,
};
use crate::head::{log_softmax, try_batch_logits, try_logits};
use crate::sampling::{Before, ChoiceWalk, StopStrings, TokenCounts, entropy, process};
use crate::{Adapter, GrammarError, Tokenizer, Weights};
use spar_text::GrammarWalk;

pub(crate) use self::memory::{KvMemory, bytes_per_token};
pub(crate) use self::metrics::Counters;
pub use self::metrics::GeneratorMetrics;
pub(crate) use self::sequence::{Reply, policy_error};

/// Rows whose logits over the whole vocabulary are in memory at a time.
const LOGIT_ROWS: usize = 16;
/// A sequence with more to read than this is in the middle of its prompt, not between draws.
const DECODE_TOKENS: usize = 8;

/// How an engine shares out its steps.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EngineConfig {
    /// Tokens of prompts that a step reads at the most, so that long prompts do not hold up those
    /// who draw.
    pub(crate) prefill_tokens: usize,
    /// Sequences under way at the most.
    pub(crate) max_active: usize,
}

/// Generates completions for many conversations at once.
///
/// Every call of [`Engine::step`] reads, for each unfinished completion, tokens that its sequence
/// has not read yet, and draws the next token of those that have read all, so that completions join
/// and leave between any two steps. What the decoder remembers of a conversation is kept between
/// its turns; a prompt that departs from it is read again from where it departs. What
/// conversations have in common at their beginning is read once.
///
/// A completion depends on its request and the weights, not on what else is in the batch, on the
/// size of steps, or on what is remembered.
///
/// One engine can serve several models on the same weights, in one batch: the weights as they are, and adapters beside
/// them. They share nothing of what is remembered.
pub(crate) struct Engine {
    /// Its place among those who share the memory.
    index: usize,
    tokenizer: Arc<Tokenizer>,
    /// What all models share.
    weights: Arc<Weights>,
    /// One at least, and no more where there is a draw rule.
    models: Vec<Served>,
    /// The draw rule, where tokens are not drawn from the model's logits as they are.
    lockstep: Option<Lockstep>,
    config: EngineConfig,
    memory: Arc<KvMemory>,
    counters: Arc<Counters>,
    /// Memory of conversations between their turns, by model and episode, with when they were used.
    idle: HashMap<(usize, u64), (u64, Remembered)>,
    idle_tokens: usize,
    clock: u64,
    waiting: VecDeque<Box<Sequence>>,
    #[expect(clippy::vec_box, reason = "they move when others leave, and are large")]
    active: Vec<Box<Sequence>>,
    /// Numbers sequences.
    num_added: u64,
    choice_ids: HashMap<Arc<str>, Arc<[u32]>>,
    buffers: Buffers,
}

/// Reused between draws.
#[derive(Default)]
struct Buffers {
    states: Vec<f32>,
    all_logits: Vec<f32>,
    raw: Vec<f32>,
    ids: Vec<u32>,
    logits: Vec<f32>,
}

/// The logits that are known before a draw.
#[derive(Clone, Copy)]
enum Known<'a> {
    Nothing,
    /// Of the whole vocabulary.
    All(&'a [f32]),
    /// Of the tokens that the constraint allows, and the log-sum of all, where that is wanted.
    Allowed {
        logits: &'a [f32],
        raw_log_sum: f32,
    },
}

/// A sequence that has read all.
struct Ready {
    index: usize,
    /// Its place among those that read something.
    place: usize,
    /// The row of its last token among those that were read.
    row: usize,
}

/// Where a constrained answer stands.
pub(crate) enum Walk {
    Free,
    Choices(ChoiceWalk),
    Grammar(Box<GrammarWalk>),
}

impl Walk {
    fn advance(&mut self, token: u32) {
        match self {
            Self::Free => {}
            Self::Choices(walk) => walk.advance(token),
            Self::Grammar(walk) => walk.advance(token),
        }
    }

    /// Goes on by tokens that were drawn before.
    fn follow(&mut self, tokens: &[u32]) -> Result<(), GenerateError> {
        let (mut forced, mut allowed) = (Vec::new(), Vec::new());
        for (place, token) in tokens.iter().enumerate() {
            // What is forced comes as a whole; within it, the grammar might find other tokens for the same text.
            let is_forced = forced.last() == Some(token);
            if is_forced {
                forced.pop();
            } else {
                match self {
                    Self::Free => return Ok(()),
                    Self::Choices(walk) => walk.allowed(&mut allowed),
                    Self::Grammar(walk) => {
                        forced.clear();
                        walk.next(&mut forced, &mut allowed)
                            .map_err(|detail| GrammarError { kind: "grammar", detail })?;
                        forced.reverse();
                        if let Some(first) = forced.pop() {
                            allowed = vec![first];
                        }
                    }
                }
                if allowed.binary_search(token).is_err() {
                    return Err(GenerateError::PartialNotAllowed { place, token: *token });
                }
            }
            self.advance(*token);
        }
        Ok(())
    }

    /// Whether an answer is complete that does not end by a token of its own.
    fn is_done(&self) -> bool {
        matches!(self, Self::Choices(walk) if walk.is_done())
    }
}

impl Engine {
    #[expect(clippy::too_many_arguments, reason = "one argument per thing that engines share")]
    pub(crate) fn new(
        name: Arc<str>,
        index: usize,
        tokenizer: Arc<Tokenizer>,
        weights: Arc<Weights>,
        version: PolicyVersion,
        config: EngineConfig,
        memory: Arc<KvMemory>,
        counters: Arc<Counters>,
    ) -> Self {
        let models = vec![Served::new(name, weights.adapter().cloned(), version)];
        Self {
            index,
            tokenizer,
            weights,
            models,
            lockstep: None,
            config,
            memory,
            counters,
            idle: HashMap::new(),
            idle_tokens: 0,
            clock: 0,
            waiting: VecDeque::new(),
            active: Vec::new(),
            num_added: 0,
            choice_ids: HashMap::new(),
            buffers: Buffers::default(),
        }
    }

    /// Serves an adapter on the same weights as well, as the next model.
    pub(crate) fn serve_adapter(
        &mut self,
        name: Arc<str>,
        adapter: Arc<Adapter>,
        version: PolicyVersion,
    ) {
        self.models.push(Served::new(name, Some(adapter), version));
    }

    /// Whether a completion is under way or waits.
    pub(crate) fn is_busy(&self) -> bool {
        !self.active.is_empty() || !self.waiting.is_empty()
    }

    /// Goes on with other weights; what was remembered under the old ones, by any model, is read again. Adapters stay as
    /// they are.
    pub(crate) fn publish(&mut self, weights: Arc<Weights>, version: PolicyVersion, epoch: u64) {
        self.models[0].adapter = weights.adapter().cloned();
        self.models[0].version = version;
        self.weights = weights;
        (0..self.models.len()).for_each(|model| self.start_epoch(model, epoch));
    }

    /// Goes on with another version of a model's adapter; what was remembered of that model is read again.
    pub(crate) fn publish_adapter(
        &mut self,
        model: usize,
        adapter: Arc<Adapter>,
        version: PolicyVersion,
        epoch: u64,
    ) {
        let served = &mut self.models[model];
        (served.adapter, served.version) = (Some(adapter), version);
        self.start_epoch(model, epoch);
    }

    fn start_epoch(&mut self, model: usize, epoch: u64) {
        self.models[model].epoch = epoch;
        self.models[model].readers.clear();
        self.idle.retain(|(of, _), _| *of != model);
        self.idle_tokens = self.idle.values().map(|(_, idle)| idle.cache.tokens().len()).sum();
        self.memory.start_epoch(model, epoch);
        let all = self.active.iter_mut().chain(&mut self.waiting);
        for sequence in all.filter(|sequence| sequence.model == model) {
            sequence.read_from(Remembered::nothing(&self.weights, self.lockstep.as_ref()));
            // What several have in common is read once again.
            sequence.opening = Opening::Undecided;
        }
    }

    /// Drops the memory of a conversation with a model.
    pub(crate) fn forget(&mut self, model: usize, episode: u64) {
        if let Some((_, idle)) = self.idle.remove(&(model, episode)) {
            self.idle_tokens -= idle.cache.tokens().len();
        }
    }

    /// Takes up a request, which has been validated.
    pub(crate) fn add(&mut self, request: GenerationRequest, episode: Option<u64>, reply: Reply) {
        let end = self.tokenizer.end_of_turn();
        let mut walk = match &request.constraint {
            None => Walk::Free,
            Some(Constraint::Choices(choices)) => {
                let ids = choices.iter().map(|choice| self.ids_of(choice)).collect();
                Walk::Choices(ChoiceWalk::new(ids))
            }
            Some(Constraint::Grammar(grammar)) => {
                Walk::Grammar(Box::new(GrammarWalk::new(grammar, end)))
            }
        };
        let mut counts =
            request.sampling.has_penalties().then(|| TokenCounts::new(&request.prompt_ids));
        // Who gets an answer as a whole needs its text under way only where that may end it.
        let is_watched = matches!(reply, Reply::Events(_)) || !request.stop.strings.is_empty();
        let mut text = is_watched.then(|| ShownText {
            stops: StopStrings::new(&request.stop.strings),
            ..ShownText::default()
        });
        // What the answer begins with was drawn before, held to the same, and is told as the rest is.
        let mut sampled = request.partial;
        let failure = walk.follow(&sampled.ids).err();
        let mut finish = (request.max_tokens == 0).then_some(FinishReason::Length);
        if request.report.allowed {
            sampled.allowed.resize(sampled.ids.len(), Vec::new());
            sampled.grammar = request.constraint.as_ref().and_then(Constraint::grammar_hash);
        }
        for (place, token) in sampled.ids.iter().enumerate() {
            if let Some(counts) = &mut counts {
                counts.push(*token);
            }
            let mut shown = String::new();
            if let Some(text) = &mut text {
                let piece = text.partial.push(&self.tokenizer, *token);
                let found = text.stops.push(&piece, &mut shown);
                finish = finish.or(found.map(FinishReason::StopString));
            }
            if failure.is_none() {
                reply.tell(|| GeneratedToken::begun(&sampled, place, shown));
            }
        }
        self.num_added += 1;
        self.waiting.push_back(Box::new(Sequence {
            number: self.num_added,
            model: request.model,
            reply,
            episode,
            cache: SequenceCache::new(&self.weights),
            others: Vec::new(),
            prompt: request.prompt_ids,
            opening: Opening::Done,
            unread: Vec::new(),
            sampled,
            walk,
            allowed: Vec::new(),
            counts,
            sampling: request.sampling,
            stop: request.stop,
            report: request.report,
            max_tokens: request.max_tokens,
            rng: request.seed.rng(),
            text,
            finish,
            failure,
            cached_tokens: 0,
            is_counted: false,
        }));
    }

    /// Reads, draws a token for every completion that has read all, and answers those that ended.
    pub(crate) fn step(&mut self) {
        self.drop_cancelled();
        self.admit();
        self.finish_done();
        let lens = self.share_out();
        // A device draws by itself from its own logits alone.
        let drawn = if self.weights.device().is_some() && self.lockstep.is_none() {
            self.step_on_device(&lens)
        } else {
            self.read_and_draw(&lens)
        };
        if let Err(error) = drawn {
            self.fail_all(&error);
        }
        self.finish_done();
        self.memory.set_used(self.index, self.used());
    }

    fn read_and_draw(&mut self, lens: &[usize]) -> Result<(), DeviceError> {
        let states = self.read(lens)?;
        let beside = self.read_beside(lens)?;
        self.draw(lens, &states, &beside)
    }

    fn used(&self) -> usize {
        self.idle_tokens + self.active.iter().map(|sequence| sequence.tokens()).sum::<usize>()
    }

    fn drop_cancelled(&mut self) {
        let (counters, engine) = (&self.counters, self.index);
        let models = &mut self.models;
        let is_wanted = |sequence: &Sequence, gauge| {
            let is_closed = sequence.reply.is_closed();
            if is_closed {
                counters.leave(engine, gauge);
                add(&counters.cancelled, 1);
            }
            !is_closed
        };
        self.active.retain(|sequence| {
            let stays = is_wanted(sequence, &counters.running);
            if !stays {
                models[sequence.model].readers.remove(&sequence.prompt, sequence.number);
            }
            stays
        });
        self.waiting.retain(|sequence| is_wanted(sequence, &counters.waiting));
    }

    /// Takes up those who wait, as far as there is room.
    fn admit(&mut self) {
        let share = self.memory.share();
        let mut used = self.used();
        let mut unread: usize = self.active.iter().map(|sequence| sequence.unread.len()).sum();
        while let Some(sequence) = self.waiting.front()
            && self.active.len() < self.config.max_active
        {
            // What is under way needs room to go on.
            let reserve = unread + DECODE_TOKENS * (self.active.len() + 1);
            let needed = sequence.prompt.len() + sequence.sampled.ids.len() + reserve;
            if !self.active.is_empty() && used.saturating_add(needed) > share {
                let spared = sequence.episode.map(|episode| (sequence.model, episode));
                self.drop_idle(used.saturating_add(needed) - share, spared);
                used = self.used();
                if used.saturating_add(needed) > share {
                    return;
                }
            }
            let Some(mut sequence) = self.waiting.pop_front() else { return };
            shift(&self.counters.waiting, -1);
            shift(&self.counters.running, 1);
            let model = sequence.model;
            let idle = sequence.episode.and_then(|episode| self.idle.remove(&(model, episode)));
            let lockstep = self.lockstep.as_ref();
            let remembered = match idle {
                Some((_, idle)) => {
                    self.idle_tokens -= idle.cache.tokens().len();
                    sequence.opening = Opening::Done;
                    Some(idle)
                }
                None => {
                    sequence.opening = Opening::Undecided;
                    let of = (model, self.models[model].epoch);
                    Remembered::find(&self.memory, lockstep, of, &sequence.all_tokens())
                }
            };
            let nothing = || Remembered::nothing(&self.weights, lockstep);
            sequence.read_from(remembered.unwrap_or_else(nothing));
            if !sequence.is_counted {
                sequence.is_counted = true;
                sequence.cached_tokens = sequence.tokens();
                add(&self.counters.requests, 1);
                add(&self.counters.prompt_tokens, sequence.prompt.len());
                add(&self.counters.cached_tokens, sequence.cached_tokens);
                let version = self.models[model].version;
                look_ahead(&mut sequence, &self.tokenizer, version, &self.counters);
            }
            used = used.saturating_add(sequence.tokens());
            unread += sequence.unread.len();
            self.active.push(sequence);
        }
    }

    /// Forgets at least `tokens` of conversations between their turns, the least recently used
    /// first, but not that of `spared`.
    fn drop_idle(&mut self, tokens: usize, spared: Option<(usize, u64)>) {
        let mut dropped = 0;
        while dropped < tokens {
            let others = self.idle.iter().filter(|(key, _)| Some(**key) != spared);
            let Some((key, _)) = others.min_by_key(|(_, (used, _))| *used) else { return };
            let (model, episode) = *key;
            let before = self.idle_tokens;
            self.forget(model, episode);
            dropped += before - self.idle_tokens;
        }
    }

    /// How many of its unread tokens each sequence reads in this step.
    fn share_out(&mut self) -> Vec<usize> {
        self.find_readers();
        let mut left = self.config.prefill_tokens.max(1);
        let mut lens: Vec<usize> = self
            .active
            .iter()
            .map(|sequence| {
                let unread = sequence.unread.len();
                if matches!(sequence.opening, Opening::Waits(_)) {
                    return 0;
                }
                if unread <= DECODE_TOKENS {
                    return unread;
                }
                let len = unread.min(left);
                left -= len;
                len
            })
            .collect();
        // The youngest give way where memory does not suffice; the first always has room.
        let share = self.memory.share();
        loop {
            let needed = self.used().saturating_add(lens.iter().sum());
            if needed <= share {
                break;
            }
            let idle = self.idle_tokens;
            self.drop_idle(needed - share, None);
            if self.idle_tokens < idle {
                continue;
            }
            if self.active.len() < 2 {
                break;
            }
            let Some(mut youngest) = self.active.pop() else { break };
            lens.pop();
            youngest.cache = SequenceCache::new(&self.weights);
            youngest.others.clear();
            let readers = &mut self.models[youngest.model].readers;
            readers.remove(&youngest.prompt, youngest.number);
            shift(&self.counters.running, -1);
            shift(&self.counters.waiting, 1);
            add(&self.counters.interrupted, 1);
            self.waiting.push_front(youngest);
        }
        let planned = self.used().saturating_add(lens.iter().sum());
        self.memory.set_used(self.index, planned);
        lens
    }

    /// Of several conversations that begin alike, one reads the beginning for all.
    ///
    /// Nothing is looked at but who has just come, and who waited for one that is done.
    fn find_readers(&mut self) {
        for sequence in &mut self.active {
            let model = sequence.model;
            let Served { epoch, readers, .. } = &mut self.models[model];
            match sequence.opening {
                Opening::Undecided => {}
                Opening::Waits(reader) if !readers.has(reader) => {
                    let (lockstep, of) = (self.lockstep.as_ref(), (model, *epoch));
                    let tokens = sequence.all_tokens();
                    if let Some(found) = Remembered::find(&self.memory, lockstep, of, &tokens)
                        && found.tokens() > sequence.tokens()
                    {
                        let known = sequence.tokens();
                        sequence.read_from(found);
                        let gained = sequence.tokens().saturating_sub(known);
                        if sequence.sampled.ids.is_empty() {
                            sequence.cached_tokens += gained;
                            add(&self.counters.cached_tokens, gained);
                        }
                    }
                }
                _ => continue,
            }
            let (known, unread) = (sequence.tokens(), sequence.unread.len());
            let nearest = readers.nearest(&sequence.prompt).filter(|(_, shared)| {
                let most = (known + unread).saturating_sub(1);
                let gain = (*shared).min(most).saturating_sub(known);
                gain * 2 > unread || gain + 1 == unread
            });
            sequence.opening = match nearest {
                Some((reader, _)) if unread > 1 => Opening::Waits(reader),
                _ => {
                    readers.insert(&sequence.prompt, sequence.number);
                    Opening::Reads
                }
            };
        }
    }

    /// Answers all who are under way with an error, and forgets what may be half written.
    fn fail_all(&mut self, error: &DeviceError) {
        self.idle.clear();
        self.idle_tokens = 0;
        for sequence in &mut self.active {
            sequence.failure = Some(error.clone().into());
            sequence.cache = SequenceCache::new(&self.weights);
            sequence.others.clear();
        }
    }

    /// What each sequence reads that reads something.
    fn segments<'a>(&'a mut self, lens: &'a [usize]) -> Vec<Segment<'a>> {
        let models = &self.models;
        let segment = |(sequence, len): (&'a mut Box<Sequence>, &usize)| {
            let adapter = models[sequence.model].adapter.clone();
            Segment::new(&mut sequence.cache, &sequence.unread[..*len]).with(adapter)
        };
        let reading = self.active.iter_mut().zip(lens).filter(|(_, len)| **len > 0);
        let segments: Vec<_> = reading.map(segment).collect();
        if !segments.is_empty() {
            add(&self.counters.steps, 1);
            add(&self.counters.step_sequences, segments.len());
            add(&self.counters.step_tokens, lens.iter().sum());
        }
        segments
    }

    /// Reads; the states of all tokens that were read.
    fn read(&mut self, lens: &[usize]) -> Result<Vec<f32>, DeviceError> {
        let weights = self.weights.clone();
        let mut segments = self.segments(lens);
        if segments.is_empty() {
            return Ok(Vec::new());
        }
        try_forward(&weights, &mut segments, None)
    }

    /// Takes what was read from what there is to read; those who have read all.
    fn settle(&mut self, lens: &[usize]) -> Vec<Ready> {
        let (mut ready, mut rows) = (Vec::new(), 0);
        let reading = lens.iter().enumerate().filter(|(_, len)| **len > 0);
        for (place, (index, len)) in reading.enumerate() {
            rows += len;
            let sequence = &mut self.active[index];
            sequence.unread.drain(..len);
            if !sequence.unread.is_empty() {
                continue;
            }
            if sequence.opening != Opening::Done {
                sequence.opening = Opening::Done;
                let Served { epoch, readers, .. } = &mut self.models[sequence.model];
                let (model, epoch) = (sequence.model, *epoch);
                readers.remove(&sequence.prompt, sequence.number);
                let known = self.memory.matching(model, epoch, sequence.cache.tokens());
                if known < sequence.tokens() {
                    let (cache, others) = (sequence.cache.clone(), sequence.others.clone());
                    Remembered { cache, others }.keep(&self.memory, (model, epoch));
                }
            }
            ready.push(Ready { index, place, row: rows - 1 });
        }
        ready
    }

    /// Draws for those who have read all; `states` are those of `lens` tokens each, and `beside` the same of each model of the
    /// draw rule.
    fn draw(
        &mut self,
        lens: &[usize],
        states: &[f32],
        beside: &[Vec<f32>],
    ) -> Result<(), DeviceError> {
        let d = self.weights.config().hidden_size;
        let vocabulary = self.weights.config().vocab_size;
        // 1. Who draws, and who of them needs the logits of the whole vocabulary.
        let ready = self.settle(lens).into_iter().map(|Ready { index, row, .. }| {
            (index, row, needs_all(&self.active[index], vocabulary))
        });
        let ready: Vec<_> = ready.collect();

        // 2. Their draws, a few rows of logits at a time.
        let mut buffers = std::mem::take(&mut self.buffers);
        for chunk in ready.chunks(LOGIT_ROWS) {
            buffers.states.clear();
            let of_all = chunk.iter().filter(|(.., needs_all)| *needs_all).map(|(_, row, _)| *row);
            for row in of_all.clone() {
                buffers.states.extend_from_slice(&states[row * d..][..d]);
            }
            try_batch_logits(&self.weights, &buffers.states, &mut buffers.all_logits)?;
            if let Some(lockstep) = &mut self.lockstep {
                lockstep.compute_all(beside, of_all)?;
            }
            let all_logits = std::mem::take(&mut buffers.all_logits);
            let mut rows = all_logits.chunks_exact(vocabulary).enumerate();
            for (index, row, needs_all) in chunk {
                let all = if *needs_all { rows.next() } else { None };
                let known = all.map_or(Known::Nothing, |(_, all)| Known::All(all));
                let (state, at) = (&states[row * d..][..d], (*row, all.map(|(row, _)| row)));
                self.draw_one(*index, state, known, (beside, at), &mut buffers)?;
            }
            buffers.all_logits = all_logits;
        }
        self.buffers = buffers;
        Ok(())
    }

    /// Draws the next token of a sequence behind `state`; see [`crate::sampling`] for the stages. `beside` are the states of the
    /// draw rule's models, and `at` where this sequence is among them; see [`Lockstep::apply`].
    fn draw_one(
        &mut self,
        index: usize,
        state: &[f32],
        known: Known<'_>,
        (beside, at): (&[Vec<f32>], (usize, Option<usize>)),
        b: &mut Buffers,
    ) -> Result<(), DeviceError> {
        let sequence = &mut self.active[index];
        let options = &sequence.sampling;
        let report = sequence.report;
        // All logits are there, and they are the device's in either way.
        let is_on_device = self.weights.device().is_some();

        // 1. Logits of the tokens that the constraint allows.
        b.ids.clear();
        b.ids.extend_from_slice(&sequence.allowed);
        match known {
            Known::All(all) if b.ids.is_empty() => {
                b.logits.clear();
                b.logits.extend_from_slice(all);
            }
            Known::Allowed { logits, .. } => {
                b.logits.clear();
                b.logits.extend_from_slice(logits);
            }
            Known::All(all) if is_on_device || !logits_apart(sequence, all.len()) => {
                b.logits.clear();
                b.logits.extend(b.ids.iter().map(|id| all[*id as usize]));
            }
            _ => try_logits(&self.weights, state, &b.ids, &mut b.logits)?,
        }

        // 2. The draw rule.
        if let Some(lockstep) = &mut self.lockstep {
            let is_apart = logits_apart(sequence, self.weights.config().vocab_size);
            lockstep.apply(beside, at, is_apart, &mut b.ids, &mut b.logits)?;
        }

        // 3. Bias, penalties, masks, truncation. Where the tokens that are left are told, their
        // logits are those that whoever recomputes them finds.
        let answer = &sequence.sampled.ids;
        let ends = sequence.barred(&self.tokenizer);
        let before = Before { prompt: &sequence.prompt, answer, counts: sequence.counts.as_ref() };
        process(options, &before, &ends, &mut b.ids, &mut b.logits);
        let is_told = report.allowed && !b.ids.is_empty() && !options.shifts_logits();
        if is_told && matches!(known, Known::All(_)) && !is_on_device {
            try_logits(&self.weights, state, &b.ids, &mut b.logits)?;
            if let Some(lockstep) = &mut self.lockstep {
                lockstep.apply_to_left(beside, at, &b.ids, &mut b.logits)?;
            }
        }

        // 4. The draw.
        let place = sequence.choose(&mut b.logits);
        let id = b.ids.get(place).copied().unwrap_or(place as u32);

        // 5. What is told of it.
        let needs_raw = report.raw || (report.top > 0 && report.top_of == Distribution::Raw);
        if let Known::All(all) = known
            && needs_raw
        {
            b.raw.clear();
            b.raw.extend_from_slice(all);
            log_softmax(&mut b.raw, 1.0);
        }
        let raw_logprob = || match known {
            Known::Allowed { logits, raw_log_sum } => {
                let place = sequence.allowed.iter().position(|allowed| *allowed == id);
                logits[place.expect("one of the allowed tokens is drawn")] - raw_log_sum
            }
            _ => b.raw[id as usize],
        };
        let raw_logprob = report.raw.then(raw_logprob);
        let top = match report.top_of {
            _ if report.top == 0 => Vec::new(),
            Distribution::Raw => most(&[], &b.raw, report.top),
            Distribution::Sampled => most(&b.ids, &b.logits, report.top),
        };
        // What a grammar allows need not be told: it tells again.
        let is_grammars = matches!(sequence.walk, Walk::Grammar(_));
        let is_known = is_grammars && b.ids.len() == sequence.allowed.len();
        let token = NextToken {
            id,
            logprob: b.logits[place],
            raw_logprob,
            entropy: report.entropy.then(|| entropy(&b.logits)),
            top,
            allowed: if is_known { &[] } else { &b.ids },
            is_forced: false,
        };
        self.go_on(index, token);
        Ok(())
    }

    /// Appends a token that was drawn, and those that follow of themselves.
    fn go_on(&mut self, index: usize, token: NextToken<'_>) {
        let sequence = &mut self.active[index];
        let version = self.models[sequence.model].version;
        sequence.push(token, version, &self.tokenizer);
        add(&self.counters.generated_tokens, 1);
        look_ahead(sequence, &self.tokenizer, version, &self.counters);
    }

    fn finish_done(&mut self) {
        let mut index = 0;
        while index < self.active.len() {
            let sequence = &mut self.active[index];
            let Served { name, epoch, readers, .. } = &mut self.models[sequence.model];
            if sequence.failure.is_some() || sequence.finish.is_some() {
                readers.remove(&sequence.prompt, sequence.number);
            }
            if let Some(error) = sequence.failure.take() {
                let sequence = self.active.remove(index);
                self.counters.leave(self.index, &self.counters.running);
                sequence.fail(error, name);
                continue;
            }
            let Some(reason) = sequence.finish.clone() else {
                index += 1;
                continue;
            };
            let sequence = self.active.remove(index);
            self.counters.leave(self.index, &self.counters.running);
            match reason {
                FinishReason::Length => add(&self.counters.finished_length, 1),
                _ => add(&self.counters.finished_stop, 1),
            }
            let model = sequence.model;
            let (read, episode) = sequence.answer(reason, name, &self.tokenizer);
            match episode {
                Some(episode) => {
                    self.clock += 1;
                    self.idle_tokens += read.cache.tokens().len();
                    self.idle.insert((model, episode), (self.clock, read));
                }
                None => read.keep(&self.memory, (model, *epoch)),
            }
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
}

/// Whether the logits of the allowed tokens are computed one by one, not picked from those of the
/// whole vocabulary: where they are few, or will be computed so again.
fn logits_apart(sequence: &Sequence, vocabulary: usize) -> bool {
    let few = sequence.allowed.len() * 8 < vocabulary;
    few || sequence.report.allowed || matches!(sequence.walk, Walk::Choices(_))
}

/// Whether a draw needs the logits of the whole vocabulary.
fn needs_all(sequence: &Sequence, vocabulary: usize) -> bool {
    let report = sequence.report;
    sequence.allowed.is_empty()
        || !logits_apart(sequence, vocabulary)
        || report.raw
        || (report.top > 0 && report.top_of == Distribution::Raw)
}

/// The best `count` tokens, best first; `logprobs` are those of `ids`, or of all if it is empty.
fn most(ids: &[u32], logprobs: &[f32], count: usize) -> Vec<(u32, f32)> {
    let count = count.min(logprobs.len());
    let mut order: Vec<usize> = (0..logprobs.len()).collect();
    let by_rank =
        |a: &usize, b: &usize| logprobs[*b].total_cmp(&logprobs[*a]).then_with(|| a.cmp(b));
    if count > 0 && count < order.len() {
        order.select_nth_unstable_by(count - 1, by_rank);
    }
    order.truncate(count);
    order.sort_unstable_by(by_rank);
    let id = |at: usize| ids.get(at).copied().unwrap_or(at as u32);
    order.into_iter().map(|at| (id(at), logprobs[at])).collect()
}

/// Appends tokens that are the only ones that can come; they need no draw, and no reading of
/// their own. Then finds which tokens the next draw may take.
fn look_ahead(
    sequence: &mut Sequence,
    tokenizer: &Tokenizer,
    version: PolicyVersion,
    counters: &Counters,
) {
    let mut forced = Vec::new();
    while sequence.finish.is_none() && sequence.failure.is_none() {
        match &mut sequence.walk {
            Walk::Free => return,
            Walk::Choices(walk) => walk.allowed(&mut sequence.allowed),
            Walk::Grammar(walk) => {
                forced.clear();
                if let Err(detail) = walk.next(&mut forced, &mut sequence.allowed) {
                    sequence.failure = Some(GrammarError { kind: "grammar", detail }.into());
                    return;
                }
            }
        }
        if let [token] = sequence.allowed[..] {
            forced = vec![token];
        }
        if forced.is_empty() {
            return;
        }
        for token in forced.drain(..) {
            if sequence.finish.is_some() {
                break;
            }
            sequence.push(NextToken::forced(&[token]), version, tokenizer);
            add(&counters.generated_tokens, 1);
            add(&counters.forced_tokens, 1);
        }
    }
}

#[cfg(test)]
mod tests;
