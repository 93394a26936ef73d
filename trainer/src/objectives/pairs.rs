//! The pairs of answers among samples.

use std::collections::HashMap;

use spar_core::Sample;

/// The pairs of answers among samples, all of them whole; samples that are of none are in none.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Pairs {
    /// In the order in which they first appear.
    pub(crate) pairs: Vec<Pair>,
    /// The pair of each sample.
    pub(crate) of_sample: Vec<Option<usize>>,
}

/// The samples of both answers of a pair, by their indices.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Pair {
    pub(crate) chosen: Vec<usize>,
    pub(crate) rejected: Vec<usize>,
}

impl Pairs {
    /// The pairs of samples; fails with the first sample whose pair is not whole.
    pub(crate) fn of(samples: &[&Sample]) -> Result<Self, usize> {
        let mut found = Self::default();
        let mut places: HashMap<u64, usize> = HashMap::new();
        for (index, sample) in samples.iter().enumerate() {
            let place = sample.preference.map(|preference| {
                let place = *places.entry(preference.pair).or_insert_with(|| {
                    found.pairs.push(Pair::default());
                    found.pairs.len() - 1
                });
                let pair = &mut found.pairs[place];
                let answer =
                    if preference.is_chosen { &mut pair.chosen } else { &mut pair.rejected };
                answer.push(index);
                place
            });
            found.of_sample.push(place);
        }
        let is_whole = |answer: &[usize]| {
            let parts = |index: &usize| samples[*index].preference.map(|it| it.parts as usize);
            !answer.is_empty() && answer.iter().all(|index| parts(index) == Some(answer.len()))
        };
        let parted = |pair: &&Pair| !is_whole(&pair.chosen) || !is_whole(&pair.rejected);
        match found.pairs.iter().find(parted) {
            Some(pair) => Err(*pair.chosen.iter().chain(&pair.rejected).min().unwrap_or(&0)),
            None => Ok(found),
        }
    }
}

#[cfg(test)]
mod tests {
    use spar_core::Preference;

    use super::*;

    #[test]
    fn pairs_are_found_in_any_order_and_refused_where_a_part_is_missing() {
        let sample = |pair, is_chosen, parts| Sample {
            preference: Some(Preference { pair, is_chosen, parts }),
            ..Sample::default()
        };
        let samples = [
            sample(8, false, 1),
            sample(5, true, 2),
            Sample::default(),
            sample(8, true, 1),
            sample(5, false, 1),
            sample(5, true, 2),
        ];
        let all: Vec<&Sample> = samples.iter().collect();
        let found = Pairs::of(&all).unwrap();
        let pair = |chosen: &[usize], rejected: &[usize]| Pair {
            chosen: chosen.to_vec(),
            rejected: rejected.to_vec(),
        };
        assert_eq!(found.pairs, [pair(&[3], &[0]), pair(&[1, 5], &[4])]);
        assert_eq!(found.of_sample, [Some(0), Some(1), None, Some(0), Some(1), Some(1)]);
        // Without a part of an answer, and without an answer.
        assert_eq!(Pairs::of(&all[..5]), Err(1));
        assert_eq!(Pairs::of(&all[..4]), Err(1));
        assert_eq!(Pairs::of(&all[..3]), Err(0));
    }
}
