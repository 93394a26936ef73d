//! Least common multiples.

use num_bigint::BigInt;
use num_integer::Integer;
use spar_python::Random;

use crate::dataset::Generator;
use crate::options::options;
use crate::text::joined;
use crate::{Item, ItemError};

options! {
    /// Options of `lcm`.
    LcmOptions {
        /// Fewest numbers in a question, at least 2. Default 2.
        min_numbers: i64 = 2,
        /// Most numbers in a question, up to 100. Default 2.
        max_numbers: i64 = 2,
        /// Least value of a number, at least 1. Default 1.
        min_value: i64 = 1,
        /// Largest value of a number, above the least, up to 10^15. Default 100.
        max_value: i64 = 100,
    }
    |given, problems| {
        problems.span(("min_numbers", "max_numbers"), (given.min_numbers, given.max_numbers), (2, 100));
        problems.span(("min_value", "max_value"), (given.min_value, given.max_value), (1, 1_000_000_000_000_000));
        problems.require(given.max_value > given.min_value, || "max_value must be above min_value".to_owned());
    }
}

/// Several numbers, whose least common multiple is asked for; up to three are drawn until they share a factor.
pub(crate) struct Lcm;

impl Generator for Lcm {
    type Options = LcmOptions;

    fn item(options: &LcmOptions, rng: &mut Random) -> Result<Item, ItemError> {
        let (mut numbers, mut result) = (Vec::new(), BigInt::from(1));
        for _ in 0..3 {
            let count = rng.int(options.min_numbers, options.max_numbers)?;
            numbers.clear();
            for _ in 0..count {
                numbers.push(rng.int(options.min_value, options.max_value)?);
            }
            result = numbers.iter().fold(BigInt::from(1), |all, &one| all.lcm(&BigInt::from(one)));
            let product: BigInt = numbers.iter().copied().map(BigInt::from).product();
            if result < product {
                break;
            }
        }
        let question = format!(
            "Find the Least Common Multiple (LCM) of these numbers: {}",
            joined(&numbers, ", ")
        );
        Ok(Item::new(question, result))
    }
}
