//! The tasks of a split in an order that follows from a seed.

use std::collections::BTreeMap;

use rand::RngExt;
use rand::seq::SliceRandom;
use spar_core::Seed;

use crate::interleaving::Interleaving;
use crate::samplers::KnownTask;
use crate::{Share, Suite, SuiteError, Task};

/// The most tasks that are put in order together.
const WINDOW: usize = 1_024;
/// Rounds of the network that deals the tasks of a long split out to windows.
const ROUNDS: usize = 6;

/// The tasks of a split, epoch after epoch, each epoch shuffled anew.
///
/// Which task stands at a position follows from the seed and the position alone, so that a run that
/// is taken up at a position goes on as if it had never stopped. Within an epoch every task comes
/// once. What follows on each other is stratified: any stretch of positions has of every
/// [`Suite::stratum`] about what its share in the split is, give or take one or two tasks.
///
/// Of a split that is mixed from [shares](Suite::shares), any stretch of positions has of each what its weight says; each
/// has epochs of its own, and what was said holds of it by itself.
///
/// ```text
///  position ─▶ epoch, window ─▶ indices of the window (a permutation of the split) ─▶ by stratum,
///  shuffled ─▶ the strata spread evenly over the window
/// ```
///
/// ```
/// use spar_core::Seed;
/// use spar_tasks::{ShuffledTasks, SuiteOptions, open_suite};
///
/// let suite = open_suite("frozen-lake", &SuiteOptions::default())?;
/// let tasks = ShuffledTasks::new(suite.as_ref(), "test", Seed::from_u64(0))?;
/// let first = tasks.take(0, 8)?;
/// assert_eq!(first[3..], tasks.take(3, 5)?);
/// # Ok::<(), spar_tasks::SuiteError>(())
/// ```
pub struct ShuffledTasks<'a> {
    suite: &'a dyn Suite,
    split: &'a str,
    len: usize,
    seed: Seed,
    strata: fn(&Task) -> Option<String>,
    /// Empty where the split is of one piece.
    shares: Vec<Share>,
}

/// Tasks of a split that follow on each other, with the seed of their order.
#[derive(Debug, Clone, Copy)]
struct Stretch {
    start: usize,
    len: usize,
    seed: Seed,
}

impl<'a> ShuffledTasks<'a> {
    /// The tasks of `split` in the order that follows from `seed`.
    ///
    /// # Errors
    ///
    /// [`SuiteError::UnknownSplit`] where there is no such split.
    pub fn new(suite: &'a dyn Suite, split: &'a str, seed: Seed) -> Result<Self, SuiteError> {
        let (len, shares) = (suite.len(split)?, suite.shares(split));
        Ok(Self { suite, split, len, seed, strata: |_| None, shares })
    }

    /// The same, the strata being told by the tasks themselves where the suite knows none.
    #[must_use]
    pub fn with_strata(self, strata: fn(&Task) -> Option<String>) -> Self {
        Self { strata, ..self }
    }

    /// The tasks at positions `first..first + count`; one that comes again is in a later epoch.
    ///
    /// # Errors
    ///
    /// [`SuiteError::EmptySplit`] where the split or one of its shares has no tasks, or what reading one gives.
    pub fn take(&self, first: u64, count: usize) -> Result<Vec<Task>, SuiteError> {
        let is_empty = self.len == 0 || self.shares.iter().any(|share| share.len == 0);
        if is_empty && count > 0 {
            let (suite, split) = (self.suite.manifest().name.clone(), self.split.to_owned());
            return Err(SuiteError::EmptySplit { suite, split });
        }
        let indices = self.indices(first, count);
        indices.into_iter().map(|index| self.suite.task(self.split, index)).collect()
    }

    /// The tasks at positions `first..first + count` as a task sampler knows them before they are played; none where there is no task.
    pub fn look(&self, first: u64, count: usize) -> Vec<KnownTask> {
        if self.len == 0 || self.shares.iter().any(|share| share.len == 0) {
            return Vec::new();
        }
        let known = |(place, index)| KnownTask { place, index, stratum: self.stratum(index) };
        (first..).zip(self.indices(first, count)).map(known).collect()
    }

    /// How many tasks the split has.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// A sample of `limit` tasks without one twice, in the order of the split; all of them where the
    /// split has no more or there is no limit. Equal seeds give equal samples. Of a mixed split, every
    /// share has what its weight says, as far as it has so many.
    ///
    /// # Errors
    ///
    /// What reading a task gives.
    pub fn sample(&self, limit: Option<usize>) -> Result<Vec<Task>, SuiteError> {
        let indices = self.sample_indices(limit);
        indices.into_iter().map(|index| self.suite.task(self.split, index)).collect()
    }

    /// Where in the split the tasks of a [sample](Self::sample) are.
    pub fn sample_indices(&self, limit: Option<usize>) -> Vec<usize> {
        let limit = limit.unwrap_or(usize::MAX);
        if limit >= self.len {
            return (0..self.len).collect();
        }
        let once = |share: &Share| Some(share.len as u64);
        let mut indices = match &self.shares[..] {
            [] => self.stretch().indices(self, 0, limit),
            _ => self.mixed(once, 0, limit),
        };
        indices.sort_unstable();
        indices
    }

    /// Where in the split, which is not empty, the tasks at positions `first..first + count` are.
    fn indices(&self, first: u64, count: usize) -> Vec<usize> {
        let bound = |share: &Share| Some(u64::from(share.epochs?) * share.len as u64);
        match &self.shares[..] {
            [] => self.stretch().indices(self, first, count),
            _ => self.mixed(bound, first, count),
        }
    }

    /// The split as one piece.
    fn stretch(&self) -> Stretch {
        Stretch { start: 0, len: self.len, seed: self.seed }
    }

    /// The same of a mixed split, each share having as many positions as `cap` says at the most.
    fn mixed(&self, cap: impl Fn(&Share) -> Option<u64>, first: u64, count: usize) -> Vec<usize> {
        let caps: Vec<_> = self.shares.iter().map(cap).collect();
        let interleaving = Interleaving::new(&self.shares, &caps, self.seed);
        let (begin, end) = (interleaving.counts(first), interleaving.counts(first + count as u64));
        let mut start = 0;
        let mut drawn = Vec::with_capacity(self.shares.len());
        for (number, Share { name, len, .. }) in self.shares.iter().enumerate() {
            let stretch = Stretch { start, len: *len, seed: self.seed.derive("share", &**name) };
            start += len;
            let wanted = (end[number] - begin[number]) as usize;
            drawn.push(stretch.indices(self, begin[number], wanted).into_iter());
        }
        let position = |place: usize| interleaving.share(first + place as u64);
        (0..count).filter_map(|place| drawn[position(place)].next()).collect()
    }

    /// The stratum of a task; one that cannot be read is told of where it is taken.
    fn stratum(&self, index: usize) -> Option<String> {
        let by_suite = self.suite.stratum(self.split, index);
        by_suite.or_else(|| (self.strata)(&self.suite.make_task(self.split, index).ok()?))
    }
}

impl Stretch {
    /// Where in the split the tasks at positions `first..first + count` of the stretch, which is not empty, are.
    fn indices(&self, tasks: &ShuffledTasks<'_>, first: u64, count: usize) -> Vec<usize> {
        let mut indices = Vec::with_capacity(count);
        let mut position = first;
        while indices.len() < count {
            let (epoch, within) = (position / self.len as u64, position % self.len as u64);
            let (window, start) = self.window(tasks, epoch, within as usize);
            let here = &window[within as usize - start..];
            let here = &here[..here.len().min(count - indices.len())];
            indices.extend_from_slice(here);
            position += here.len() as u64;
        }
        indices
    }

    /// The window that holds a position of an epoch, in order, and its first position.
    fn window(
        &self,
        tasks: &ShuffledTasks<'_>,
        epoch: u64,
        position: usize,
    ) -> (Vec<usize>, usize) {
        let seed = self.seed.derive("epoch", epoch);
        // Of equal length, but for one.
        let num_windows = self.len.div_ceil(WINDOW);
        let bounds = |window: usize| window * self.len / num_windows;
        let mut number = position * num_windows / self.len;
        while bounds(number + 1) <= position {
            number += 1;
        }
        let (start, end) = (bounds(number), bounds(number + 1));
        let mut indices: Vec<usize> = if num_windows == 1 {
            (0..self.len).collect()
        } else {
            let permutation = Permutation::new(self.len, seed);
            (start..end).map(|position| permutation.of(position)).collect()
        };
        let mut rng = seed.derive("window", number).rng();
        indices.shuffle(&mut rng);
        let mut strata: BTreeMap<Option<String>, Vec<usize>> = BTreeMap::new();
        for index in indices.into_iter().map(|index| self.start + index) {
            strata.entry(tasks.stratum(index)).or_default().push(index);
        }
        // Task `i` of `n` in a stratum stands at `(i + offset) / n` of the window.
        let mut placed = Vec::with_capacity(end - start);
        for (number, members) in strata.into_values().enumerate() {
            let offset: f64 = rng.random();
            let num_members = members.len() as f64;
            let place = |member: usize| (member as f64 + offset) / num_members;
            placed.extend(
                members.into_iter().enumerate().map(|(m, index)| (place(m), number, index)),
            );
        }
        placed.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        (placed.into_iter().map(|(_, _, index)| index).collect(), start)
    }
}

/// A permutation of `0..len` that is computed number by number: a Feistel network over the next even
/// power of two, walked until it comes back into the range (Black and Rogaway 2002).
struct Permutation {
    len: u64,
    half_bits: u32,
    keys: [u64; ROUNDS],
}

impl Permutation {
    fn new(len: usize, seed: Seed) -> Self {
        let len = len as u64;
        let bits = u64::BITS - len.saturating_sub(1).leading_zeros();
        let keys = std::array::from_fn(|round| seed.derive("round", round).as_u64());
        Self { len, half_bits: bits.div_ceil(2).max(1), keys }
    }

    fn of(&self, position: usize) -> usize {
        let mask = (1 << self.half_bits) - 1;
        let mut number = position as u64;
        // A permutation of the larger range, so the walk from a number within comes back within.
        loop {
            let (mut left, mut right) = (number >> self.half_bits, number & mask);
            for key in self.keys {
                (left, right) = (right, left ^ (mix(right ^ key) & mask));
            }
            number = (left << self.half_bits) | right;
            if number < self.len {
                return number as usize;
            }
        }
    }
}

/// The finaliser of SplitMix64 (Steele, Lea and Flood 2014).
fn mix(number: u64) -> u64 {
    let number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::path::Path;

    use super::*;
    use crate::{SuiteManifest, TemplateSuite};

    /// A split whose strata lie one behind the other, as the families of a download do.
    struct Sorted {
        manifest: SuiteManifest,
        strata: Vec<(&'static str, usize)>,
    }

    impl Sorted {
        fn new(strata: &[(&'static str, usize)]) -> Self {
            let len = strata.iter().map(|(_, len)| len).sum();
            let manifest = SuiteManifest {
                name: "sorted".to_owned(),
                version: "1".to_owned(),
                content_hash: String::new(),
                splits: vec![("train".to_owned(), len)],
            };
            Self { manifest, strata: strata.to_vec() }
        }

        fn shuffled(&self, seed: u64) -> ShuffledTasks<'_> {
            ShuffledTasks::new(self, "train", Seed::from_u64(seed)).unwrap()
        }
    }

    impl Suite for Sorted {
        fn manifest(&self) -> &SuiteManifest {
            &self.manifest
        }

        fn about(&self) -> &'static str {
            "Strata one behind the other."
        }

        fn make_task(&self, split: &str, index: usize) -> Result<Task, SuiteError> {
            Ok(Task {
                id: format!("sorted/{split}/{index}"),
                environment: "none".to_owned(),
                parameters: serde_json::Value::Null,
                instruction: String::new(),
                max_turns: 1,
                tags: Vec::new(),
                graders: Vec::new(),
            })
        }

        fn stratum(&self, _split: &str, index: usize) -> Option<String> {
            let mut end = 0;
            let found = self.strata.iter().find(|(_, len)| {
                end += len;
                index < end
            });
            Some(found?.0.to_owned())
        }
    }

    /// The six families of ALFWorld's training games, as often as there.
    const FAMILIES: [(&str, usize); 6] =
        [("look", 308), ("place", 790), ("clean", 650), ("cool", 533), ("heat", 459), ("two", 813)];

    #[test]
    fn every_epoch_has_every_task_once_and_an_order_of_its_own() {
        for len in [1, 2, 5, 100, WINDOW, WINDOW + 1, 3 * WINDOW + 17] {
            let suite = Sorted::new(&[("a", len / 3), ("b", len - len / 3)]);
            let tasks = suite.shuffled(1);
            let epochs = tasks.indices(0, 2 * len);
            let (first, second) = epochs.split_at(len);
            for epoch in [first, second] {
                let found: HashSet<_> = epoch.iter().copied().collect();
                assert!(found.len() == len && found.iter().all(|index| *index < len), "{len}");
            }
            // Short ones may come out alike.
            let other = suite.shuffled(2).indices(0, len);
            assert!(len < 10 || (first != second && other != first), "{len}");
        }
    }

    #[test]
    fn a_position_has_its_task_however_it_is_come_to() {
        let len = 2 * WINDOW + 3;
        let suite = Sorted::new(&[("a", len)]);
        let tasks = suite.shuffled(0);
        let whole = tasks.indices(0, 3 * len);
        for first in [0, 1, WINDOW - 1, WINDOW, len - 1, len, 2 * len - 7] {
            let part = tasks.indices(first as u64, 20);
            assert_eq!(part, whole[first..first + 20], "{first}");
        }
        // Far out, where nothing before was ever computed.
        assert_eq!(tasks.indices(u64::MAX / 2, 3).len(), 3);
    }

    #[test]
    fn consecutive_tasks_have_of_every_stratum_its_share() {
        let suite = Sorted::new(&FAMILIES);
        let len = suite.len("train").unwrap();
        let indices = suite.shuffled(7).indices(0, len);
        for tasks in indices.chunks_exact(16) {
            for (family, count) in FAMILIES {
                let is_of = |index: &&usize| suite.stratum("train", **index).unwrap() == family;
                let found = tasks.iter().filter(is_of).count() as f64;
                let share = 16.0 * count as f64 / len as f64;
                assert!((found - share).abs() <= 2.0, "{family}: {found}, {share}");
            }
        }
    }

    #[test]
    fn a_sample_is_stratified_repeats_and_is_no_prefix() {
        let suite = Sorted::new(&FAMILIES);
        let sample = suite.shuffled(3).sample(Some(100)).unwrap();
        assert_eq!(sample, suite.shuffled(3).sample(Some(100)).unwrap());
        assert_ne!(sample, suite.shuffled(4).sample(Some(100)).unwrap());
        let index = |task: &Task| -> usize { task.id.rsplit_once('/').unwrap().1.parse().unwrap() };
        let indices: Vec<_> = sample.iter().map(index).collect();
        assert!(indices.is_sorted() && indices.windows(2).all(|pair| pair[0] != pair[1]));
        assert!(indices[99] > 3_000);
        for (family, count) in FAMILIES {
            let is_of = |index: &&usize| suite.stratum("train", **index).unwrap() == family;
            let found = indices.iter().filter(is_of).count() as f64;
            assert!((found - count as f64 * 100.0 / 3_553.0).abs() <= 2.0, "{family}: {found}");
        }
        for limit in [None, Some(3_553), Some(10_000)] {
            let all = suite.shuffled(3).sample(limit).unwrap();
            assert!(all.iter().map(index).eq(0..3_553), "{limit:?}");
        }
    }

    #[test]
    fn tasks_tell_their_stratum_where_the_suite_knows_none() {
        let text = r#"
            name = "s"
            version = "1"
            about = "a"
            environment = "e"
            instruction = "i"
            max_turns = 3
            [splits.train]
            count = 90
            first_seed = 0
        "#;
        let suite = TemplateSuite::parse(text, Path::new("suite.toml")).unwrap();
        let is_late = |task: &Task| task.parameters["seed"].as_u64().unwrap() >= 60;
        let tasks = ShuffledTasks::new(&suite, "train", Seed::from_u64(0)).unwrap();
        let count = |tasks: &ShuffledTasks<'_>| -> Vec<usize> {
            let counts = (0..30).map(|batch| {
                let tasks = tasks.take(3 * batch, 3).unwrap();
                tasks.iter().filter(|task| is_late(task)).count()
            });
            counts.collect()
        };
        assert_ne!(count(&tasks), [1; 30]);
        let tasks =
            tasks.with_strata(|task| Some((task.parameters["seed"].as_u64()? / 60).to_string()));
        assert!(count(&tasks).iter().all(|late| (0..=2).contains(late)));
        assert!(count(&tasks).iter().filter(|late| **late == 1).count() >= 20);
    }

    #[test]
    fn a_split_without_tasks_has_none_to_take() {
        let suite = Sorted::new(&[]);
        let error = suite.shuffled(0).take(0, 1).unwrap_err().to_string();
        assert_eq!(error, "take tasks of `sorted/train`: it has none");
        assert!(suite.shuffled(0).sample(Some(3)).unwrap().is_empty());
        assert!(ShuffledTasks::new(&suite, "test", Seed::from_u64(0)).is_err());
    }
}
