//! Warm sandboxes by spec.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use tokio::time::Instant;

use super::live::Live;
use crate::SandboxSpec;

/// Waits after a refill that failed: doubled from the first to the second.
const RETRY: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// Warm sandboxes by [`SandboxSpec::key`].
#[derive(Default)]
pub(super) struct Shelves {
    by_key: HashMap<String, Shelf>,
}

/// Warm sandboxes of one spec.
struct Shelf {
    spec: SandboxSpec,
    target: usize,
    warm: VecDeque<Live>,
    /// Refills on their way.
    starting: usize,
    last_wanted: Instant,
    failures: u32,
    retry_at: Instant,
}

impl Shelves {
    /// Keeps `target` sandboxes of a spec from now on. Gives back those that are too many.
    pub(super) fn keep(&mut self, spec: &SandboxSpec, target: usize, now: Instant) -> Vec<Live> {
        let shelf = self.by_key.entry(spec.key()).or_insert_with(|| Shelf {
            spec: spec.clone(),
            target,
            warm: VecDeque::new(),
            starting: 0,
            last_wanted: now,
            failures: 0,
            retry_at: now,
        });
        (shelf.target, shelf.last_wanted, shelf.retry_at) = (target, now, now);
        let surplus = shelf.warm.len().saturating_sub(target);
        shelf.warm.drain(..surplus).collect()
    }

    /// The oldest of a spec that can still be handed out; those that cannot go into `stale`.
    pub(super) fn take(&mut self, key: &str, now: Instant, stale: &mut Vec<Live>) -> Option<Live> {
        let shelf = self.by_key.get_mut(key)?;
        shelf.last_wanted = now;
        loop {
            let live = shelf.warm.pop_front()?;
            if now < live.core.fresh_until {
                return Some(live);
            }
            stale.push(live);
        }
    }

    /// Puts one on its shelf, or gives it back where none is wanted.
    pub(super) fn put(&mut self, key: &str, live: Live) -> Option<Live> {
        match self.by_key.get_mut(key) {
            Some(shelf) if shelf.warm.len() < shelf.target => {
                shelf.warm.push_back(live);
                None
            }
            _ => Some(live),
        }
    }

    /// Those that are too old, or of specs nobody has asked for in a while.
    pub(super) fn discard(&mut self, now: Instant, idle: Duration) -> Vec<Live> {
        let mut discarded = Vec::new();
        for shelf in self.by_key.values_mut() {
            let is_idle = shelf.is_idle(now, idle);
            let (keep, old) = std::mem::take(&mut shelf.warm)
                .into_iter()
                .partition(|live| !is_idle && now < live.core.fresh_until);
            shelf.warm = keep;
            discarded.extend::<VecDeque<Live>>(old);
        }
        // A spec that is asked for again is told again how many to keep.
        self.by_key.retain(|_, shelf| shelf.target > 0 || shelf.starting > 0);
        discarded
    }

    /// One of a spec other than `key`, of the spec that was asked for longest ago.
    pub(super) fn make_way(&mut self, key: Option<&str>) -> Option<Live> {
        self.by_key
            .iter_mut()
            .filter(|(other, shelf)| Some(other.as_str()) != key && !shelf.warm.is_empty())
            .min_by_key(|(_, shelf)| shelf.last_wanted)
            .and_then(|(_, shelf)| shelf.warm.pop_front())
    }

    /// The spec that lacks most of those that may be started, counted as on its way from now on.
    pub(super) fn refill(
        &mut self,
        now: Instant,
        idle: Duration,
        may_start: impl Fn(&str) -> bool,
    ) -> Option<SandboxSpec> {
        let (_, shelf) = self
            .by_key
            .iter_mut()
            .filter(|(_, shelf)| shelf.lacks() > 0 && shelf.retry_at <= now)
            .filter(|(key, shelf)| !shelf.is_idle(now, idle) && may_start(key))
            .max_by_key(|(_, shelf)| shelf.lacks())?;
        shelf.starting += 1;
        Some(shelf.spec.clone())
    }

    /// A refill is not on its way any more.
    pub(super) fn refilled(&mut self, key: &str) {
        if let Some(shelf) = self.by_key.get_mut(key) {
            shelf.starting = shelf.starting.saturating_sub(1);
        }
    }

    /// Whether a refill worked: after a failure the next one waits.
    pub(super) fn record(&mut self, key: &str, worked: bool, now: Instant) {
        let Some(shelf) = self.by_key.get_mut(key) else { return };
        if worked {
            shelf.failures = 0;
        } else {
            shelf.retry_at = now + (RETRY.0 * (1 << shelf.failures.min(10))).min(RETRY.1);
            shelf.failures += 1;
        }
    }

    /// All of them; nothing is wanted any more.
    pub(super) fn clear(&mut self) -> Vec<Live> {
        self.by_key.drain().flat_map(|(_, shelf)| shelf.warm).collect()
    }

    /// All those that one engine keeps; the shelves stay.
    pub(super) fn empty(&mut self, engine: &str) -> Vec<Live> {
        let mut taken = Vec::new();
        for shelf in self.by_key.values_mut() {
            let (own, others): (VecDeque<_>, _) = std::mem::take(&mut shelf.warm)
                .into_iter()
                .partition(|live| live.core.sandbox.engine() == engine);
            shelf.warm = others;
            taken.extend(own);
        }
        taken
    }

    pub(super) fn num_warm(&self) -> usize {
        self.by_key.values().map(|shelf| shelf.warm.len()).sum()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_key.is_empty()
    }
}

impl Shelf {
    fn lacks(&self) -> usize {
        self.target.saturating_sub(self.warm.len() + self.starting)
    }

    fn is_idle(&self, now: Instant, idle: Duration) -> bool {
        now >= self.last_wanted + idle
    }
}
