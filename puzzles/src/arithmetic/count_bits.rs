//! Ones in binary numbers.

use spar_python::Random;

use crate::dataset::Generator;
use crate::options::options;
use crate::{Item, ItemError};

options! {
    /// Options of `count_bits`.
    CountBitsOptions {
        /// Least number, at least 1. Default 1.
        min_n: i64 = 1,
        /// Largest number, up to 2^62. Default 2^31 - 1.
        max_n: i64 = 2_147_483_647,
    }
    |given, problems| {
        problems.span(("min_n", "max_n"), (given.min_n, given.max_n), (1, 1 << 62));
    }
}

/// A number, of whose binary form the ones are counted.
pub(crate) struct CountBits;

impl Generator for CountBits {
    type Options = CountBitsOptions;

    fn item(options: &CountBitsOptions, rng: &mut Random) -> Result<Item, ItemError> {
        let number = rng.int(options.min_n, options.max_n)?;
        let question = format!(
            "How many 1 bits are there in the binary representation of the number {number}?"
        );
        Ok(Item::new(question, number.count_ones()).with("number", number))
    }
}
