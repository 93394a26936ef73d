//! Which conversations read what others begin with, too.

use std::cmp::Ordering;
use std::collections::{BTreeSet, HashSet};
use std::ops::Bound;
use std::sync::Arc;

/// What a sequence does about the beginning of its prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Opening {
    /// That is yet to be found out.
    Undecided,
    /// It reads it, for itself and for those who begin alike.
    Reads,
    /// It waits for the one of this number, who reads most of it.
    Waits(u64),
    /// It has been read, or is that of a conversation that goes on.
    Done,
}

/// The prompts of those who read for others as well, in lexicographic order: who shares the most with a
/// prompt stands beside it.
#[derive(Debug, Default)]
pub(super) struct Readers {
    prompts: BTreeSet<Reader>,
    numbers: HashSet<u64>,
}

/// A prompt with the number of the sequence that reads it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Reader {
    prompt: Arc<[u32]>,
    number: u64,
}

impl Ord for Reader {
    fn cmp(&self, other: &Self) -> Ordering {
        self.prompt.cmp(&other.prompt).then(self.number.cmp(&other.number))
    }
}

impl PartialOrd for Reader {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Readers {
    pub(super) fn insert(&mut self, prompt: &Arc<[u32]>, number: u64) {
        self.prompts.insert(Reader { prompt: prompt.clone(), number });
        self.numbers.insert(number);
    }

    /// Does nothing where that one reads for nobody.
    pub(super) fn remove(&mut self, prompt: &Arc<[u32]>, number: u64) {
        if self.numbers.remove(&number) {
            self.prompts.remove(&Reader { prompt: prompt.clone(), number });
        }
    }

    pub(super) fn clear(&mut self) {
        self.prompts.clear();
        self.numbers.clear();
    }

    /// Whether the one of this number reads still.
    pub(super) fn has(&self, number: u64) -> bool {
        self.numbers.contains(&number)
    }

    /// Who shares the most of the beginning of `prompt`, and how many tokens that is; none if it is no token.
    pub(super) fn nearest(&self, prompt: &Arc<[u32]>) -> Option<(u64, usize)> {
        let place = Reader { prompt: prompt.clone(), number: 0 };
        let above = self.prompts.range((Bound::Included(&place), Bound::Unbounded)).next();
        let below = self.prompts.range((Bound::Unbounded, Bound::Excluded(&place))).next_back();
        let shared = |reader: &Reader| {
            let pairs = reader.prompt.iter().zip(prompt.iter());
            (reader.number, pairs.take_while(|(a, b)| a == b).count())
        };
        let nearest = above.into_iter().chain(below).map(shared);
        nearest.filter(|(_, shared)| *shared > 0).max_by_key(|(_, shared)| *shared)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_nearest_shares_as_much_as_any(
            prompts in prop::collection::vec(prop::collection::vec(0_u32..3, 0..8), 1..20),
            wanted in prop::collection::vec(0_u32..3, 0..8),
            gone in prop::collection::vec(any::<bool>(), 20),
        ) {
            let mut readers = Readers::default();
            let prompts: Vec<Arc<[u32]>> = prompts.into_iter().map(Arc::from).collect();
            for (number, prompt) in prompts.iter().enumerate() {
                readers.insert(prompt, number as u64);
            }
            for (number, prompt) in prompts.iter().enumerate().filter(|(at, _)| gone[*at]) {
                readers.remove(prompt, number as u64);
                readers.remove(prompt, number as u64);
            }
            let wanted: Arc<[u32]> = wanted.into();
            let shared = |prompt: &[u32]| {
                prompt.iter().zip(wanted.iter()).take_while(|(a, b)| a == b).count()
            };
            let left = prompts.iter().enumerate().filter(|(at, _)| !gone[*at]);
            let most = left.map(|(_, prompt)| shared(prompt)).max().unwrap_or(0);
            let found = readers.nearest(&wanted);
            prop_assert_eq!(found.map_or(0, |(_, shared)| shared), most);
            if let Some((number, of_it)) = found {
                prop_assert!(readers.has(number) && !gone[number as usize]);
                prop_assert_eq!(shared(&prompts[number as usize]), of_it);
            }
        }
    }
}
