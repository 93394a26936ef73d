//! Parts of a catalogue.

use rand::{Rng, RngExt};
use serde::{Deserialize, Serialize};

/// Which products are goals. The parts have no product in common; products of all parts are sold in every episode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Part {
    /// Whatever there is.
    #[default]
    Any,
    /// Eight of ten products.
    Train,
    /// One of ten.
    Dev,
    /// One of ten.
    Test,
}

impl Part {
    /// The place of a product of this part, of `all` that there are, at least ten.
    pub(crate) fn draw(self, rng: &mut impl Rng, all: usize) -> usize {
        let number = rng.random_range(0..all);
        let tens = number / 10 * 10;
        let drawn = match self {
            Self::Any => return number,
            Self::Train => tens + number % 8,
            Self::Dev => tens + 8,
            Self::Test => tens + 9,
        };
        // The last ten may be fewer.
        if drawn < all { drawn } else { drawn - 10 }
    }
}

#[cfg(test)]
mod tests {
    use spar_core::Seed;

    use super::*;

    #[test]
    fn parts_have_nothing_in_common() {
        let mut rng = Seed::from_u64(0).rng();
        for all in [10, 17, 19, 1_000] {
            for _ in 0..500 {
                assert!(Part::Train.draw(&mut rng, all) % 10 < 8);
                assert_eq!(Part::Dev.draw(&mut rng, all) % 10, 8);
                assert_eq!(Part::Test.draw(&mut rng, all) % 10, 9);
                assert!(Part::Any.draw(&mut rng, all) < all && Part::Dev.draw(&mut rng, all) < all);
            }
        }
    }
}
