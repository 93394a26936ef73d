//! Rows are split into minibatches, shards and micro-batches.

use std::ops::Range;

use rand::seq::SliceRandom;
use spar_core::Seed;

/// The numbers `0..rows` in an order that `seed` decides.
pub fn shuffled(rows: usize, seed: Seed) -> Vec<usize> {
    let mut order: Vec<usize> = (0..rows).collect();
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
    let mut ranges = Vec::new();
    let (mut start, mut held) = (0, 0);
    for (index, length) in lengths.iter().enumerate() {
        if index > start && held + length > budget {
            ranges.push(start..index);
            (start, held) = (index, 0);
        }
        held += length;
    }
    if start < lengths.len() {
        ranges.push(start..lengths.len());
    }
    ranges
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

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
