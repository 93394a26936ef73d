//! Sums and differences.

use spar_python::Random;

use crate::dataset::Generator;
use crate::options::options;
use crate::scoring::decimal_reward;
use crate::{Item, ItemError};

options! {
    /// Options of `chain_sum`.
    ChainSumOptions {
        /// Fewest terms, at least 1. Default 2.
        min_terms: i64 = 2,
        /// Most terms, up to 10000. Default 6.
        max_terms: i64 = 6,
        /// Fewest digits of a term, at least 1. Default 1.
        min_digits: i64 = 1,
        /// Most digits of a term, up to 18. Default 4.
        max_digits: i64 = 4,
        /// Whether terms can be negative. Default false.
        allow_negation: bool = false,
    }
    |given, problems| {
        problems.span(("min_terms", "max_terms"), (given.min_terms, given.max_terms), (1, 10_000));
        problems.span(("min_digits", "max_digits"), (given.min_digits, given.max_digits), (1, 18));
    }
}

/// A chain of additions and subtractions.
pub(crate) struct ChainSum;

impl Generator for ChainSum {
    type Options = ChainSumOptions;

    fn item(options: &ChainSumOptions, rng: &mut Random) -> Result<Item, ItemError> {
        let num_terms = rng.int(options.min_terms, options.max_terms)?;
        let num_digits = rng.int(options.min_digits, options.max_digits)?;
        let most = 10_i64.pow(num_digits as u32) - 1;
        let least = match (options.allow_negation, num_digits) {
            (true, _) => -most,
            (false, 1) => 0,
            (false, _) => 10_i64.pow(num_digits as u32 - 1),
        };
        let mut terms = Vec::with_capacity(num_terms as usize);
        for _ in 0..num_terms {
            terms.push(rng.int(least, most)?);
        }
        let mut expression = terms[0].to_string();
        let mut result = i128::from(terms[0]);
        for &term in &terms[1..] {
            let operator = *rng.choice(&['+', '-'])?;
            expression.push_str(&format!(" {operator} {term}"));
            result += if operator == '+' { i128::from(term) } else { -i128::from(term) };
        }
        let question =
            format!("State the final answer to the following arithmetic problem: {expression} =");
        Ok(Item::new(question, result).with("expression", expression))
    }

    fn score(_: &ChainSumOptions, answer: Option<&str>, item: &Item) -> f64 {
        decimal_reward(answer, item.gold())
    }
}
