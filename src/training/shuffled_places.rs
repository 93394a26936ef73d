//! The order in which lines of files are met.

use spar_core::Seed;
use spar_trainer::batches;

/// Places `first..first + count` of an endless order of `0..len` in which every number comes once before any comes
/// again, each round shuffled by itself.
pub(super) fn shuffled_places(len: usize, seed: Seed, first: u64, count: usize) -> Vec<usize> {
    let mut places = Vec::with_capacity(count);
    let (mut round, mut within) = (first / len as u64, (first % len as u64) as usize);
    while places.len() < count {
        let shuffled = batches::shuffled(len, seed.derive("round", round));
        places.extend(shuffled.into_iter().skip(within).take(count - places.len()));
        (round, within) = (round + 1, 0);
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_comes_once_before_any_comes_again() {
        let seed = Seed::from_u64(3);
        let whole = shuffled_places(7, seed, 0, 28);
        for round in whole.chunks(7) {
            let mut sorted = round.to_vec();
            sorted.sort_unstable();
            assert_eq!(sorted, [0, 1, 2, 3, 4, 5, 6]);
        }
        assert_ne!(whole[..7], whole[7..14], "rounds are shuffled each by itself");
        for (first, count) in [(0, 3), (5, 9), (6, 1), (13, 15), (4, 0)] {
            assert_eq!(shuffled_places(7, seed, first as u64, count), whole[first..first + count]);
        }
        assert_ne!(shuffled_places(7, Seed::from_u64(4), 0, 7), whole[..7]);
    }
}
