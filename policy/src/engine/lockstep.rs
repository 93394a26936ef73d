//! The models of a draw rule, which read what the main model reads.

use std::sync::Arc;

use super::Engine;
use super::memory::KvMemory;
use super::sequence::Sequence;
use crate::Weights;
use crate::cuda::DeviceError;
use crate::decoder::{Segment, SequenceCache, try_forward};
use crate::draw_rules::LoadedDrawRule;
use crate::head::try_logits;

/// What the models that answer together have read of a conversation.
pub(super) struct Remembered {
    pub(super) cache: SequenceCache,
    /// Those of the draw rule; empty without one.
    pub(super) others: Vec<SequenceCache>,
}

/// A model of the draw rule before a draw.
pub(super) struct Beside<'a> {
    weights: &'a Weights,
    /// Its state behind what was read.
    state: &'a [f32],
    /// Its logits of the whole vocabulary, where they are known.
    all: Option<&'a [f32]>,
}

/// The draw rule of an engine, with memory that is reused between draws.
pub(super) struct Lockstep {
    pub(super) rule: Arc<LoadedDrawRule>,
    /// Of each model, states of those who draw.
    states: Vec<Vec<f32>>,
    /// Of each model, logits of the whole vocabulary behind them.
    all_logits: Vec<Vec<f32>>,
    /// Of each model, logits of the tokens of a draw.
    logits: Vec<Vec<f32>>,
    stays: Vec<bool>,
}

impl Remembered {
    /// Nothing.
    pub(super) fn nothing(weights: &Weights, lockstep: Option<&Lockstep>) -> Self {
        let others = lockstep.map(|lockstep| lockstep.rule.empty_caches()).unwrap_or_default();
        Self { cache: SequenceCache::new(weights), others }
    }

    /// What is remembered of the first of `tokens` by a model and those of the rule.
    pub(super) fn find(
        memory: &KvMemory,
        lockstep: Option<&Lockstep>,
        (model, epoch): (usize, u64),
        tokens: &[u32],
    ) -> Option<Self> {
        let cache = memory.find(model, epoch, tokens)?;
        let Some(lockstep) = lockstep else { return Some(Self { cache, others: Vec::new() }) };
        let models = lockstep.rule.models().iter().enumerate();
        let others = models.map(|(other, weights)| {
            let found = memory.find(place_of(other), 0, tokens);
            found.unwrap_or_else(|| SequenceCache::new(weights))
        });
        Some(Self { cache, others: others.collect() })
    }

    /// Tokens that all models have read.
    pub(super) fn tokens(&self) -> usize {
        let others = self.others.iter().map(|other| other.tokens().len());
        others.fold(self.cache.tokens().len(), usize::min)
    }

    /// Remembers it for others that begin so.
    pub(super) fn keep(self, memory: &KvMemory, (model, epoch): (usize, u64)) {
        memory.keep(model, epoch, self.cache);
        for (other, cache) in self.others.into_iter().enumerate() {
            // Their weights do not change.
            memory.keep(place_of(other), 0, cache);
        }
    }
}

/// The place in the memory of prefixes that a model of the rule has: behind the one model that is served with a rule.
fn place_of(other: usize) -> usize {
    1 + other
}

impl Lockstep {
    pub(super) fn new(rule: Arc<LoadedDrawRule>) -> Self {
        let (states, all_logits, logits) = (Vec::new(), Vec::new(), Vec::new());
        Self { rule, states, all_logits, logits, stays: Vec::new() }
    }

    /// Computes the logits of the whole vocabulary in the rows at which the states begin that a part of those who draw have.
    pub(super) fn compute_all(
        &mut self,
        read: &[Vec<f32>],
        rows: impl Iterator<Item = usize> + Clone,
    ) -> Result<(), DeviceError> {
        self.states.resize_with(read.len(), Vec::new);
        for ((states, read), model) in self.states.iter_mut().zip(read).zip(self.rule.models()) {
            let d = model.config().hidden_size;
            states.clear();
            rows.clone().for_each(|row| states.extend_from_slice(&read[row * d..][..d]));
        }
        self.rule.batch_logits(&self.states, &mut self.all_logits)
    }

    /// Turns the logits of `ids`, or of the whole vocabulary where that is empty, into those that are drawn from; tokens that the rule
    /// leaves out are taken out of both. `state` is the row of the draw among those that were `read`, `row` that among those whose
    /// logits of the whole vocabulary are known; `is_apart` whether the logits of a list are computed one by one.
    pub(super) fn apply(
        &mut self,
        read: &[Vec<f32>],
        (state, row): (usize, Option<usize>),
        is_apart: bool,
        ids: &mut Vec<u32>,
        logits: &mut Vec<f32>,
    ) -> Result<(), DeviceError> {
        self.gather(read, (state, row), is_apart, ids)?;
        let rule = self.rule.rule();
        if rule.leaves_out() {
            self.stays.clear();
            self.stays.resize(logits.len(), true);
            let others: Vec<&[f32]> = self.logits.iter().map(Vec::as_slice).collect();
            rule.leave_out(logits, &others, &mut self.stays);
            let stays = &self.stays;
            if stays.contains(&false) && stays.contains(&true) {
                if ids.is_empty() {
                    ids.extend(0..logits.len() as u32);
                }
                retain(ids, stays);
                retain(logits, stays);
                self.logits.iter_mut().for_each(|logits| retain(logits, stays));
            }
        }
        self.combine(logits);
        Ok(())
    }

    /// The same for the tokens that are left in the end, whose logits are computed one by one, as whoever recomputes them does.
    pub(super) fn apply_to_left(
        &mut self,
        read: &[Vec<f32>],
        at: (usize, Option<usize>),
        ids: &[u32],
        logits: &mut [f32],
    ) -> Result<(), DeviceError> {
        self.gather(read, at, true, ids)?;
        self.combine(logits);
        Ok(())
    }

    fn combine(&self, logits: &mut [f32]) {
        let others: Vec<&[f32]> = self.logits.iter().map(Vec::as_slice).collect();
        self.rule.rule().combine(logits, &others);
    }

    /// The models' logits of `ids`, or of the whole vocabulary where that is empty.
    fn gather(
        &mut self,
        read: &[Vec<f32>],
        (state, row): (usize, Option<usize>),
        is_apart: bool,
        ids: &[u32],
    ) -> Result<(), DeviceError> {
        let Self { rule, all_logits, logits, .. } = self;
        logits.resize_with(read.len(), Vec::new);
        for (model, (weights, logits)) in rule.models().iter().zip(logits).enumerate() {
            let (d, v) = (weights.config().hidden_size, weights.config().vocab_size);
            let beside = Beside {
                weights,
                state: &read[model][state * d..][..d],
                all: row.map(|row| &all_logits[model][row * v..][..v]),
            };
            beside.logits(ids, is_apart, logits)?;
        }
        Ok(())
    }
}

impl Beside<'_> {
    fn logits(&self, ids: &[u32], is_apart: bool, out: &mut Vec<f32>) -> Result<(), DeviceError> {
        let Self { weights, state, all } = *self;
        match all {
            Some(all) if ids.is_empty() => {
                out.clear();
                out.extend_from_slice(all);
            }
            Some(all) if !is_apart || weights.device().is_some() => {
                out.clear();
                out.extend(ids.iter().map(|id| all[*id as usize]));
            }
            _ => try_logits(weights, state, ids, out)?,
        }
        Ok(())
    }
}

fn retain<T>(list: &mut Vec<T>, stays: &[bool]) {
    let mut stays = stays.iter();
    list.retain(|_| *stays.next().expect("both are of the same tokens"));
}

impl Engine {
    /// Draws by a rule, which holds for all answers. The engine serves one model then.
    pub(crate) fn draw_by(&mut self, rule: Arc<LoadedDrawRule>) {
        self.lockstep = Some(Lockstep::new(rule));
    }

    /// The models of the rule read what the main model reads: the states of all tokens, model by model.
    pub(super) fn read_beside(&mut self, lens: &[usize]) -> Result<Vec<Vec<f32>>, DeviceError> {
        let Some(Lockstep { rule, .. }) = &self.lockstep else { return Ok(Vec::new()) };
        let rule = Arc::clone(rule);
        let models = rule.models().iter().enumerate();
        models
            .map(|(model, weights)| {
                let reading = self.active.iter_mut().zip(lens).filter(|(_, len)| **len > 0);
                let mut segments: Vec<_> = reading
                    .map(|(sequence, len)| {
                        let Sequence { others, unread, .. } = &mut **sequence;
                        let adapter = weights.adapter().cloned();
                        Segment::new(&mut others[model], &unread[..*len]).with(adapter)
                    })
                    .collect();
                match segments.is_empty() {
                    true => Ok(Vec::new()),
                    false => try_forward(weights, &mut segments, None),
                }
            })
            .collect()
    }
}
