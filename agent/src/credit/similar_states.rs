//! Situations whose texts are nearly the same, as numbers.

use std::cell::OnceCell;
use std::collections::HashMap;

use spar_swe::similarity::{IndexedSequence, SequenceMatcher};

use super::interner::Interner;

/// Buckets of the coarse count of characters.
const BUCKETS: usize = 32;

/// A text that is compared, with what tells quickly that it is too far from another one.
struct Measured {
    chars: Vec<char>,
    /// How often characters come, by buckets.
    coarse: [u16; BUCKETS],
    /// How often each character comes, by the characters' numbers.
    counts: Vec<(u32, u32)>,
    /// Where its characters stand, once another text is compared with it in full.
    indexed: OnceCell<IndexedSequence<char>>,
}

impl Measured {
    fn of(text: &str, alphabet: &mut Interner<char>) -> Self {
        let chars: Vec<char> = text.chars().collect();
        let mut ids: Vec<u32> = chars.iter().map(|c| alphabet.id(*c)).collect();
        ids.sort_unstable();
        let mut coarse = [0_u16; BUCKETS];
        let mut counts: Vec<(u32, u32)> = Vec::new();
        for id in ids {
            let bucket = &mut coarse[id as usize % BUCKETS];
            *bucket = bucket.saturating_add(1);
            match counts.last_mut() {
                Some((last, count)) if *last == id => *count += 1,
                _ => counts.push((id, 1)),
            }
        }
        Self { chars, coarse, counts, indexed: OnceCell::new() }
    }

    /// Twice so many matching characters over the characters of both.
    fn ratio_of(&self, other: &Self, matches: usize) -> f64 {
        match self.chars.len() + other.chars.len() {
            0 => 1.0,
            len => 2.0 * matches as f64 / len as f64,
        }
    }

    /// Whether the two could be as alike as that: matches are at most the characters that both have.
    fn may_reach(&self, other: &Self, threshold: f64) -> bool {
        let shorter = self.chars.len().min(other.chars.len());
        if self.ratio_of(other, shorter) < threshold {
            return false;
        }
        // A full bucket tells nothing.
        let pairs = self.coarse.iter().zip(&other.coarse);
        let is_full = self.chars.len().max(other.chars.len()) >= usize::from(u16::MAX);
        let common: u32 = pairs.map(|(one, two)| u32::from(*one.min(two))).sum();
        if !is_full && self.ratio_of(other, common as usize) < threshold {
            return false;
        }
        self.ratio_of(other, in_both(&self.counts, &other.counts)) >= threshold
    }

    fn indexed(&self) -> &IndexedSequence<char> {
        self.indexed.get_or_init(|| IndexedSequence::new(self.chars.clone(), true))
    }

    /// Whether the two are as alike as that by Python's `SequenceMatcher(None, self, other).ratio()`.
    fn reaches(&self, other: &Self, threshold: f64) -> bool {
        // Texts that take longer than that to compare are not alike in any way that matters.
        SequenceMatcher::new(&self.chars, other.indexed())
            .ratio()
            .is_ok_and(|ratio| ratio >= threshold)
    }
}

/// Characters that both have, each as often as both have it.
fn in_both(one: &[(u32, u32)], two: &[(u32, u32)]) -> usize {
    let (mut i, mut j, mut sum) = (0, 0, 0);
    while i < one.len() && j < two.len() {
        match one[i].0.cmp(&two[j].0) {
            std::cmp::Ordering::Less => i += 1,
            std::cmp::Ordering::Greater => j += 1,
            std::cmp::Ordering::Equal => {
                sum += one[i].1.min(two[j].1) as usize;
                (i, j) = (i + 1, j + 1);
            }
        }
    }
    sum
}

/// Numbers of clusters, counted from 0 in the order they first come: a text belongs to the first cluster whose first text is at least
/// that alike, else to a new one.
///
/// As verl-agent's `build_step_group(enable_similarity=True)` has it: the order of texts matters, and likeness is that of Python's
/// `difflib` with its rule for frequent characters. A text that came before belongs where it belonged; others are compared in full only
/// where lengths and counts of characters do not rule that out, which changes no result.
pub(super) fn similar_states<'t>(
    texts: impl IntoIterator<Item = &'t str>,
    threshold: f64,
) -> (Vec<u32>, usize) {
    let mut alphabet = Interner::with_capacity(64);
    let mut known: HashMap<&str, u32> = HashMap::new();
    let mut firsts: Vec<Measured> = Vec::new();
    let mut clusters = Vec::new();
    for text in texts {
        let cluster = *known.entry(text).or_insert_with(|| {
            let measured = Measured::of(text, &mut alphabet);
            let is_near = |first: &Measured| {
                measured.may_reach(first, threshold) && measured.reaches(first, threshold)
            };
            let found = firsts.iter().position(is_near).unwrap_or_else(|| {
                firsts.push(measured);
                firsts.len() - 1
            });
            found as u32
        });
        clusters.push(cluster);
    }
    (clusters, firsts.len())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::super::test_vectors::{by_group, cases, floats, number, strings};
    use super::*;

    #[test]
    fn clusters_equal_the_reference() {
        cases("gigpo_similarity_groups", |case, _| {
            let texts = strings(&case.inputs["anchor_obs"]);
            let threshold = number(&case.params, "similarity_thresh");
            let expected = floats(&case.outputs["step_group_id_first_seen"]);
            for rows in by_group(&case.inputs["group"]) {
                let found = similar_states(rows.iter().map(|row| &*texts[*row]), threshold).0;
                for (one, row) in found.iter().zip(&rows) {
                    for (two, other) in found.iter().zip(&rows) {
                        assert_eq!(one == two, expected[*row] == expected[*other]);
                    }
                }
            }
            let Value::Array(ratios) = &case.outputs["seqmatcher_ratio"] else { return };
            let mut alphabet = Interner::with_capacity(64);
            let all: Vec<Measured> =
                texts.iter().map(|text| Measured::of(text, &mut alphabet)).collect();
            for (row, ratios) in ratios.iter().enumerate() {
                for (column, ratio) in floats(ratios).into_iter().enumerate() {
                    let mut matcher = SequenceMatcher::new(&all[row].chars, all[column].indexed());
                    assert!((matcher.ratio().unwrap() - ratio).abs() < 1e-12);
                    assert!(all[row].may_reach(&all[column], ratio), "a bound is never below");
                }
            }
        });
    }

    proptest! {
        #[test]
        fn nothing_is_ruled_out_that_is_near(
            texts in prop::collection::vec("[abc ]{0,40}", 0..12),
            threshold in 0.3..1.0,
        ) {
            let mut firsts: Vec<Vec<char>> = Vec::new();
            let slow: Vec<u32> = texts
                .iter()
                .map(|text| {
                    let chars: Vec<char> = text.chars().collect();
                    let is_near = |first: &Vec<char>| {
                        let first = IndexedSequence::new(first.clone(), true);
                        SequenceMatcher::new(&chars, &first).ratio().unwrap() >= threshold
                    };
                    let found = firsts.iter().position(is_near).unwrap_or(firsts.len());
                    if found == firsts.len() {
                        firsts.push(chars);
                    }
                    found as u32
                })
                .collect();
            let found = similar_states(texts.iter().map(String::as_str), threshold);
            prop_assert_eq!(found, (slow, firsts.len()));
        }
    }
}
