//! Prime factors.

use num_bigint::BigInt;
use spar_python::Random;
use spar_python::text::strip;

use crate::dataset::Generator;
use crate::options::options;
use crate::scoring::big_int;
use crate::text::joined;
use crate::{Item, ItemError};

options! {
    /// Options of `prime_factorization`.
    PrimeFactorizationOptions {
        /// Least number, at least 2. Default 2.
        min_value: i64 = 2,
        /// Largest number, up to 10^12. Default 1000.
        max_value: i64 = 1000,
    }
    |given, problems| {
        problems.span(("min_value", "max_value"), (given.min_value, given.max_value), (2, 1_000_000_000_000));
    }
}

/// Factors of an answer beyond which it is not read; no number here has as many.
const MOST_FACTORS: usize = 1_000;

/// A number to be written as the product of its prime factors.
pub(crate) struct PrimeFactorization;

impl Generator for PrimeFactorization {
    type Options = PrimeFactorizationOptions;

    fn item(options: &PrimeFactorizationOptions, rng: &mut Random) -> Result<Item, ItemError> {
        let number = rng.int(options.min_value, options.max_value)?;
        let question = format!(
            "Find the prime factorization of {number}. Write the factors separated by × (Example: for 12 the answer would be: 2 × 2 × 3)"
        );
        Ok(Item::new(question, joined(prime_factors(number), " × ")).with("number", number))
    }

    fn score(_: &PrimeFactorizationOptions, answer: Option<&str>, item: &Item) -> f64 {
        let Some(answer) = answer else { return 0.0 };
        let (Some(given), Some(gold)) = (factors(answer), factors(item.gold())) else {
            return 0.0;
        };
        if given == gold {
            return 1.0;
        }
        let is_equal = given.iter().product::<BigInt>() == gold.iter().product::<BigInt>();
        if is_equal { 0.5 } else { 0.01 }
    }
}

fn prime_factors(mut number: i64) -> Vec<i64> {
    let mut factors = Vec::new();
    let mut divisor = 2;
    while divisor * divisor <= number {
        while number % divisor == 0 {
            factors.push(divisor);
            number /= divisor;
        }
        divisor += 1;
    }
    if number > 1 {
        factors.push(number);
    }
    factors
}

/// The factors of an answer in order; absent where one is no whole number.
fn factors(answer: &str) -> Option<Vec<BigInt>> {
    let parts = answer.split('×').filter(|part| !strip(part).is_empty());
    let mut factors = Vec::new();
    for part in parts {
        factors.push(big_int(part)?);
        if factors.len() > MOST_FACTORS {
            return None;
        }
    }
    factors.sort_unstable();
    Some(factors)
}
