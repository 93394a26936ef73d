//! Greatest common divisors.

use num_integer::gcd;
use spar_python::Random;

use crate::dataset::Generator;
use crate::options::options;
use crate::text::joined;
use crate::{Item, ItemError};

options! {
    /// Options of `gcd`.
    GcdOptions {
        /// Fewest numbers in a question, at least 2. Default 2.
        min_numbers: i64 = 2,
        /// Most numbers in a question, up to 100. Default 2.
        max_numbers: i64 = 2,
        /// Least value of a number, at least 1. Default 1.
        min_value: i64 = 1,
        /// Largest value of a number, above the least, up to 10^15. Default 1000.
        max_value: i64 = 1000,
    }
    |given, problems| {
        problems.span(("min_numbers", "max_numbers"), (given.min_numbers, given.max_numbers), (2, 100));
        problems.span(("min_value", "max_value"), (given.min_value, given.max_value), (1, 1_000_000_000_000_000));
        problems.require(given.max_value > given.min_value, || "max_value must be above min_value".to_owned());
    }
}

/// Several numbers, whose greatest common divisor is asked for.
pub(crate) struct Gcd;

impl Generator for Gcd {
    type Options = GcdOptions;

    fn item(options: &GcdOptions, rng: &mut Random) -> Result<Item, ItemError> {
        let (mut numbers, mut result) = (Vec::new(), 0);
        for _ in 0..3 {
            let count = rng.int(options.min_numbers, options.max_numbers)?;
            numbers.clear();
            for _ in 0..count {
                numbers.push(rng.int(options.min_value, options.max_value)?);
            }
            result = numbers.iter().copied().fold(0, gcd);
            if result > 1 {
                break;
            }
        }
        let question = format!(
            "Find the Greatest Common Divisor (GCD) of these numbers: {}. Give only the GCD as your final answer.",
            joined(&numbers, ", ")
        );
        Ok(Item::new(question, result).with("result", result))
    }
}
