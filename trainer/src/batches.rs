//! Rows are split into minibatches, shards and micro-batches.

use std::collections::HashMap;
use std::ops::Range;

use rand::seq::SliceRandom;
use spar_core::{Sample, Seed};
use spar_policy::decoder::shared_prefix;

/// The numbers `0..samples` in an order that `seed` decides.
pub fn shuffled(samples: usize, seed: Seed) -> Vec<usize> {
    let mut order: Vec<usize> = (0..samples).collect();
    order.shuffle(&mut seed.rng());
    order
}

/// Splits items of the given lengths into `parts` adjacent ranges of about equal total length.
///
/// An item belongs to the part in which its middle lies. Some parts may be empty; together they
/// hold every item once, in order.
pub fn split_evenly(lengths: &[usize], parts: usize) -> Vec<Range<usize>> {
    let total: usize = lengths.iter().sum();
    let mut ranges = Vec::with_capacity(parts);
    let (mut start, mut passed) = (0, 0);
    for part in 1..=parts {
        let mut end = start;
        // Middles are compared in doubled units, to stay among whole numbers.
        while end < lengths.len()
            && (part == parts || (2 * passed + lengths[end]) * parts < 2 * part * total)
        {
            passed += lengths[end];
            end += 1;
        }
        ranges.push(start..end);
        start = end;
    }
    ranges
}

/// Splits items into adjacent ranges whose total length is at most `budget`; a longer item stands
/// alone.
pub fn split_by_budget(lengths: &[usize], budget: usize) -> Vec<Range<usize>> {
    split_shared_by_budget(lengths, &vec![0; lengths.len()], budget)
}

/// As [`split_by_budget`], where `shared` tells how much of each item is that of the one before and
/// counts only where the two are in different ranges.
pub fn split_shared_by_budget(
    lengths: &[usize],
    shared: &[usize],
    budget: usize,
) -> Vec<Range<usize>> {
    let mut ranges = Vec::new();
    let (mut start, mut held) = (0, 0);
    for (index, (length, shared)) in lengths.iter().zip(shared).enumerate() {
        if index == start {
            held = *length;
        } else if held + length - shared > budget {
            ranges.push(start..index);
            (start, held) = (index, *length);
        } else {
            held += length - shared;
        }
    }
    if start < lengths.len() {
        ranges.push(start..lengths.len());
    }
    ranges
}

/// The order in which samples that begin alike stand together: that of their tokens.
pub fn prefix_order(samples: &[&Sample]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..samples.len()).collect();
    order.sort_by(|a, b| samples[*a].tokens.cmp(&samples[*b].tokens));
    order
}

/// Samples, by their indices, with the same [`prompt`]. So forks stand with their origin, also where they weigh from a later turn on.
/// Prompts stand in the order in which they first appear.
pub fn by_prompt(samples: &[&Sample]) -> Vec<Vec<usize>> {
    let mut places: HashMap<&[u32], usize> = HashMap::new();
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for (index, sample) in samples.iter().enumerate() {
        let place = *places.entry(prompt(sample)).or_insert_with(|| {
            groups.push(Vec::new());
            groups.len() - 1
        });
        groups[place].push(index);
    }
    groups
}

/// The prompt of a sample: the tokens before the first one that was sampled, or that weighs where nothing tells what was
/// sampled.
pub fn prompt(sample: &Sample) -> &[u32] {
    let weights = sample.policy_weights.iter().zip(&sample.cross_entropy_weights);
    let length = match sample.turns.is_empty() {
        true => weights.take_while(|(a, b)| **a == 0.0 && **b == 0.0).count(),
        false => sample.turns.iter().take_while(|turn| **turn == Sample::OBSERVED).count(),
    };
    &sample.tokens[..length]
}

/// Samples, by their indices, that go to one update: those of a pair, where there are pairs, joined with all that
/// their `units` hold. They stand in the order in which they first appear.
pub fn joined_by_pair(samples: &[&Sample], units: Vec<Vec<usize>>) -> Vec<Vec<usize>> {
    // Each unit points at an earlier one that it is joined with, or at itself.
    let mut joined_with: Vec<usize> = (0..units.len()).collect();
    let first_of = |joined_with: &[usize], mut unit: usize| {
        while joined_with[unit] != unit {
            unit = joined_with[unit];
        }
        unit
    };
    let mut unit_of_pair: HashMap<u64, usize> = HashMap::new();
    for (unit, members) in units.iter().enumerate() {
        for preference in members.iter().filter_map(|sample| samples[*sample].preference) {
            let other = *unit_of_pair.entry(preference.pair).or_insert(unit);
            let ends = [first_of(&joined_with, unit), first_of(&joined_with, other)];
            joined_with[ends[0].max(ends[1])] = ends[0].min(ends[1]);
        }
    }
    let mut joined: Vec<Vec<usize>> = vec![Vec::new(); units.len()];
    for (unit, members) in units.into_iter().enumerate() {
        joined[first_of(&joined_with, unit)].extend(members);
    }
    joined.retain(|members| !members.is_empty());
    joined
}

/// How many tokens each sample shares with the one before, from the first token on.
pub fn shared_prefixes(samples: &[&Sample]) -> Vec<usize> {
    let shared = |index: usize| match index.checked_sub(1) {
        Some(before) => shared_prefix(&samples[before].tokens, &samples[index].tokens),
        None => 0,
    };
    (0..samples.len()).map(shared).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use spar_core::Preference;

    use super::*;

    proptest! {
        #[test]
        fn splits_hold_every_item_once_in_order(
            lengths in prop::collection::vec(0usize..50, 0..40),
            parts in 1usize..8,
            budget in 1usize..100,
        ) {
            let all: Vec<usize> = (0..lengths.len()).collect();
            let even = split_evenly(&lengths, parts);
            prop_assert_eq!(even.len(), parts);
            prop_assert_eq!(&even.into_iter().flatten().collect::<Vec<_>>(), &all);
            let ranges = split_by_budget(&lengths, budget);
            for range in &ranges {
                let total: usize = lengths[range.clone()].iter().sum();
                prop_assert!(!range.is_empty() && (total <= budget || range.len() == 1));
            }
            prop_assert_eq!(&ranges.into_iter().flatten().collect::<Vec<_>>(), &all);
        }
    }

    #[test]
    fn what_a_range_shares_counts_once() {
        let sample = |tokens: &[u32]| {
            let mut sample = Sample::default();
            tokens.iter().for_each(|token| sample.push_observed(*token, 0.0));
            sample
        };
        let samples =
            [sample(&[1, 2, 3, 4]), sample(&[5, 6]), sample(&[1, 2, 3]), sample(&[1, 2, 9, 9])];
        let samples: Vec<&Sample> = samples.iter().collect();
        let order = prefix_order(&samples);
        assert_eq!(order, [2, 0, 3, 1]);
        let samples: Vec<&Sample> = order.into_iter().map(|sample| samples[sample]).collect();
        let shared = shared_prefixes(&samples);
        assert_eq!(shared, [0, 3, 2, 0]);
        let lengths = [3, 4, 4, 2];
        assert_eq!(split_shared_by_budget(&lengths, &shared, 6), [0..3, 3..4]);
        // The first sample of a range brings its whole prefix.
        assert_eq!(split_shared_by_budget(&lengths, &shared, 5), [0..2, 2..3, 3..4]);
        assert_eq!(split_by_budget(&lengths, 6), [0..1, 1..2, 2..4]);
    }

    #[test]
    fn samples_are_grouped_by_what_stands_before_the_first_token_that_weighs() {
        let sample = |prompt: &[u32], answer: u32| {
            let mut sample = Sample::default();
            prompt.iter().for_each(|token| sample.push_observed(*token, 0.0));
            sample.push_observed(answer, 1.0);
            sample
        };
        let samples = [
            sample(&[1, 2], 7),
            sample(&[3], 7),
            sample(&[1, 2], 8),
            sample(&[1], 2),
            sample(&[3], 7),
        ];
        let samples: Vec<&Sample> = samples.iter().collect();
        assert_eq!(by_prompt(&samples), [vec![0, 2], vec![1, 4], vec![3]]);
    }

    #[test]
    fn pairs_are_joined_with_all_that_is_kept_together_with_them() {
        let sample = |pair: Option<u64>| {
            let of = |pair| Preference { pair, is_chosen: true, parts: 1 };
            Sample { preference: pair.map(of), ..Sample::default() }
        };
        let pairs = [Some(7), None, Some(3), Some(7), Some(9), Some(3), Some(9)];
        let samples: Vec<Sample> = pairs.into_iter().map(sample).collect();
        let samples: Vec<&Sample> = samples.iter().collect();
        let alone: Vec<Vec<usize>> = (0..7).map(|index| vec![index]).collect();
        assert_eq!(joined_by_pair(&samples, alone), [vec![0, 3], vec![1], vec![2, 5], vec![4, 6]]);
        // Samples 2 and 6 share a prompt, and so their pairs an update.
        let units = vec![vec![0], vec![1], vec![2, 6], vec![3], vec![4], vec![5]];
        assert_eq!(joined_by_pair(&samples, units), [vec![0, 3], vec![1], vec![2, 6, 4, 5]]);
    }

    #[test]
    fn forks_stay_with_their_origin() {
        let of_turns = |turns: &[(u32, u32)], weighs_from: usize| {
            let mut sample = Sample::default();
            for (t, (token, turn)) in turns.iter().enumerate() {
                sample.push_observed(*token, f32::from(u8::from(t >= weighs_from)));
                sample.turns.push(*turn);
            }
            sample
        };
        const NONE: u32 = Sample::OBSERVED;
        let trunk = of_turns(&[(1, NONE), (2, 0), (3, NONE), (4, 1)], 1);
        let fork = of_turns(&[(1, NONE), (2, 0), (3, NONE), (5, 1)], 3);
        let other = of_turns(&[(9, NONE), (2, 0)], 1);
        assert_eq!(by_prompt(&[&trunk, &other, &fork]), [vec![0, 2], vec![1]]);
    }

    #[test]
    fn equal_items_are_split_equally() {
        assert_eq!(split_evenly(&[5; 8], 4), [0..2, 2..4, 4..6, 6..8]);
        assert_eq!(split_evenly(&[1, 1, 10, 1, 1], 2).len(), 2);
        assert_eq!(split_evenly(&[7], 2).iter().filter(|range| !range.is_empty()).count(), 1);
    }

    #[test]
    fn the_seed_decides_the_order() {
        let seed = Seed::from_u64(4);
        assert_eq!(shuffled(20, seed), shuffled(20, seed));
        assert_ne!(shuffled(20, seed), shuffled(20, Seed::from_u64(5)));
    }
}
