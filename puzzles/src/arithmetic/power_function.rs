//! Powers.

use crate::decimal::Decimal;
use crate::prelude::*;

options! {
    /// Options of `power_function`.
    PowerFunctionOptions {
        /// Least base, -10^12 or more. Default -1000.
        min_base: f64 = -1000.0,
        /// Largest base, up to 10^12. Default 1000.
        max_base: f64 = 1000.0,
        /// Least exponent, at least 0. Default 0.
        min_exponent: i64 = 0,
        /// Largest exponent, up to 1000. Default 8.
        max_exponent: i64 = 8,
    }
    |given, problems| {
        problems.span(("min_base", "max_base"), (given.min_base, given.max_base), (-1e12, 1e12));
        problems.span(("min_exponent", "max_exponent"), (given.min_exponent, given.max_exponent), (0, 1_000));
    }
}

/// A decimal number to the power of a whole one, positive or negative.
pub(crate) struct PowerFunction;

impl Generator for PowerFunction {
    type Options = PowerFunctionOptions;

    fn item(options: &PowerFunctionOptions, rng: &mut Random) -> Result<Item, ItemError> {
        let base = rounded(rng.uniform(options.min_base, options.max_base), 4);
        let size = rng.int(options.min_exponent, options.max_exponent)?;
        let exponent = if rng.random() < 0.5 { -size } else { size };
        if base == 0.0 && exponent < 0 {
            return Err(ItemError::raised("math domain error"));
        }
        let power = base.powf(exponent as f64);
        if power.is_infinite() {
            return Err(ItemError::raised("math range error"));
        }
        let question = format!(
            "Your task is to compute an exponentiation of a number.\n\nCompute {}^{exponent}. Return your final answer correct to 3 significant figures.\nProvide your answer in scientific notation using 'e' notation (e.g., 1.23e+4).\n",
            repr_float(base)
        );
        Ok(Item::new(question, repr_float(power)))
    }

    fn score(_: &PowerFunctionOptions, answer: Option<&str>, item: &Item) -> f64 {
        let Some(answer) = answer else { return 0.0 };
        let is_equal = || {
            let (given, gold) = (Decimal::parse(answer)?, Decimal::parse(item.gold())?);
            match given.is_zero() || gold.is_zero() {
                true => Some(given.is_zero() && gold.is_zero()),
                false => Some(given.significant(3).equals(&gold.significant(3))),
            }
        };
        if is_equal() == Some(true) { 1.0 } else { 0.01 }
    }
}
