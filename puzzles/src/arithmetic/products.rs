//! Products.

use num_bigint::BigInt;
use spar_python::Random;

use crate::dataset::Generator;
use crate::options::options;
use crate::scoring::decimal_reward;
use crate::text::joined;
use crate::{Item, ItemError};

options! {
    /// Options of `products`.
    ProductsOptions {
        /// Fewest factors, at least 1. Default 2.
        min_terms: i64 = 2,
        /// Most factors, up to 200. Default 2.
        max_terms: i64 = 2,
        /// Fewest digits of a factor, at least 1. Default 1.
        min_digits: i64 = 1,
        /// Most digits of a factor, up to 18. Default 5.
        max_digits: i64 = 5,
        /// Whether factors can be negative. Default false.
        allow_negation: bool = false,
    }
    |given, problems| {
        problems.span(("min_terms", "max_terms"), (given.min_terms, given.max_terms), (1, 200));
        problems.span(("min_digits", "max_digits"), (given.min_digits, given.max_digits), (1, 18));
    }
}

/// Whole numbers to be multiplied.
pub(crate) struct Products;

impl Generator for Products {
    type Options = ProductsOptions;

    fn item(options: &ProductsOptions, rng: &mut Random) -> Result<Item, ItemError> {
        let num_terms = rng.int(options.min_terms, options.max_terms)?;
        let num_digits = rng.int(options.min_digits, options.max_digits)?;
        let most = 10_i64.pow(num_digits as u32) - 1;
        let least = match (options.allow_negation, num_digits) {
            (true, _) => -most,
            (false, 1) => 0,
            (false, _) => 10_i64.pow(num_digits as u32 - 1),
        };
        let mut factors = Vec::with_capacity(num_terms as usize);
        for _ in 0..num_terms {
            factors.push(rng.int(least, most)?);
        }
        let result: BigInt = factors.iter().copied().map(BigInt::from).product();
        let question = format!(
            "Solve the following multiplication: {}. Give only the result as your final answer.",
            joined(&factors, " * ")
        );
        Ok(Item::new(question, result))
    }

    fn score(_: &ProductsOptions, answer: Option<&str>, item: &Item) -> f64 {
        decimal_reward(answer, item.gold())
    }
}
