//! What generation has done so far.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// Counters that engines share.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) waiting: AtomicI64,
    pub(crate) running: AtomicI64,
    pub(crate) requests: AtomicU64,
    pub(crate) finished_stop: AtomicU64,
    pub(crate) finished_length: AtomicU64,
    pub(crate) cancelled: AtomicU64,
    pub(crate) interrupted: AtomicU64,
    pub(crate) prompt_tokens: AtomicU64,
    pub(crate) cached_tokens: AtomicU64,
    pub(crate) generated_tokens: AtomicU64,
    pub(crate) forced_tokens: AtomicU64,
    pub(crate) steps: AtomicU64,
    pub(crate) step_tokens: AtomicU64,
    pub(crate) step_sequences: AtomicU64,
    pub(crate) publications: AtomicU64,
    /// Requests that wait or are under way, by engine.
    live: Box<[AtomicI64]>,
}

/// What generation has done so far, and does now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct GeneratorMetrics {
    /// Requests that wait.
    pub waiting: u64,
    /// Requests under way.
    pub running: u64,
    /// Requests that were taken up.
    pub requests: u64,
    /// Answers that ended by themselves.
    pub finished_stop: u64,
    /// Answers that came to their greatest length.
    pub finished_length: u64,
    /// Requests whose answer nobody wanted any more.
    pub cancelled: u64,
    /// Times that an answer was interrupted for want of memory, to go on later.
    pub interrupted: u64,
    /// Tokens of prompts.
    pub prompt_tokens: u64,
    /// Those of them that were remembered.
    pub cached_tokens: u64,
    /// Tokens of answers.
    pub generated_tokens: u64,
    /// Those of them that were forced.
    pub forced_tokens: u64,
    /// Steps of all engines.
    pub steps: u64,
    /// Tokens that steps read.
    pub step_tokens: u64,
    /// Sequences that steps read, so that the mean batch is this by steps.
    pub step_sequences: u64,
    /// Times that weights were published.
    pub publications: u64,
    /// Tokens of conversations whose keys and values are in memory.
    pub memory_used_tokens: u64,
    /// Tokens of prefixes that are kept.
    pub memory_prefix_tokens: u64,
    /// Tokens there is room for; absent where there is no bound.
    pub memory_limit_tokens: Option<u64>,
    /// Bytes of keys and values per token.
    pub bytes_per_token: u64,
}

/// Adds to a counter.
pub(crate) fn add(counter: &AtomicU64, amount: usize) {
    counter.fetch_add(amount as u64, Ordering::Relaxed);
}

/// Moves a gauge.
pub(crate) fn shift(gauge: &AtomicI64, amount: i64) {
    gauge.fetch_add(amount, Ordering::Relaxed);
}

impl Counters {
    /// Counters of so many engines.
    pub(crate) fn new(engines: usize) -> Self {
        Self { live: (0..engines).map(|_| AtomicI64::new(0)).collect(), ..Self::default() }
    }

    /// The engine that has least to do.
    pub(crate) fn idlest_engine(&self) -> usize {
        let load = |engine: &usize| self.live[*engine].load(Ordering::Relaxed);
        (0..self.live.len()).min_by_key(load).unwrap_or_default()
    }

    /// A request is sent to an engine.
    pub(crate) fn submit(&self, engine: usize) {
        shift(&self.waiting, 1);
        shift(&self.live[engine], 1);
    }

    /// A request has left an engine, from among those that wait or those under way.
    pub(crate) fn leave(&self, engine: usize, gauge: &AtomicI64) {
        shift(gauge, -1);
        shift(&self.live[engine], -1);
    }

    /// The counters as they are; memory is left out.
    pub(crate) fn read(&self) -> GeneratorMetrics {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let gauge = |gauge: &AtomicI64| gauge.load(Ordering::Relaxed).max(0) as u64;
        GeneratorMetrics {
            waiting: gauge(&self.waiting),
            running: gauge(&self.running),
            requests: get(&self.requests),
            finished_stop: get(&self.finished_stop),
            finished_length: get(&self.finished_length),
            cancelled: get(&self.cancelled),
            interrupted: get(&self.interrupted),
            prompt_tokens: get(&self.prompt_tokens),
            cached_tokens: get(&self.cached_tokens),
            generated_tokens: get(&self.generated_tokens),
            forced_tokens: get(&self.forced_tokens),
            steps: get(&self.steps),
            step_tokens: get(&self.step_tokens),
            step_sequences: get(&self.step_sequences),
            publications: get(&self.publications),
            ..GeneratorMetrics::default()
        }
    }
}
