//! Sums and differences of decimal numbers.

use crate::decimal::Decimal;
use crate::prelude::*;

options! {
    /// Options of `decimal_chain_sum`.
    DecimalChainSumOptions {
        /// Fewest terms, at least 1. Default 2.
        min_terms: i64 = 2,
        /// Most terms, up to 10000. Default 6.
        max_terms: i64 = 6,
        /// Fewest digits before the point, at least 1. Default 1.
        min_digits: i64 = 1,
        /// Most digits before the point, up to 12. Default 4.
        max_digits: i64 = 4,
        /// Fewest digits behind the point, at least 0. Default 1.
        min_decimal_places: i64 = 1,
        /// Most digits behind the point, up to 10. Default 4.
        max_decimal_places: i64 = 4,
        /// Whether terms can be negative. Default false.
        allow_negation: bool = false,
    }
    |given, problems| {
        problems.span(("min_terms", "max_terms"), (given.min_terms, given.max_terms), (1, 10_000));
        problems.span(("min_digits", "max_digits"), (given.min_digits, given.max_digits), (1, 12));
        let places = (given.min_decimal_places, given.max_decimal_places);
        problems.span(("min_decimal_places", "max_decimal_places"), places, (0, 10));
    }
}

/// A chain of additions and subtractions of decimal numbers.
pub(crate) struct DecimalChainSum;

impl Generator for DecimalChainSum {
    type Options = DecimalChainSumOptions;

    fn item(options: &DecimalChainSumOptions, rng: &mut Random) -> Result<Item, ItemError> {
        let num_terms = rng.int(options.min_terms, options.max_terms)?;
        let num_digits = rng.int(options.min_digits, options.max_digits)? as u32;
        let most = 10_i64.pow(num_digits) - 1;
        let least = match (options.allow_negation, num_digits) {
            (true, _) => -most,
            (false, 1) => 0,
            (false, _) => 10_i64.pow(num_digits - 1),
        };
        let (mut wholes, mut places) = (Vec::new(), Vec::new());
        for _ in 0..num_terms {
            wholes.push(rng.int(least, most)?);
        }
        for _ in 0..num_terms {
            places.push(rng.int(options.min_decimal_places, options.max_decimal_places)? as u32);
        }
        let mut terms = Vec::new();
        for (&whole, &places) in wholes.iter().zip(&places) {
            let unit = 10_i128.pow(places);
            let least = if places == 0 { 0 } else { 10_i64.pow(places - 1) };
            let part = rng.int(least, 10_i64.pow(places) - 1)?;
            terms.push(i128::from(whole) * unit + i128::from(part));
        }
        let mut operators = Vec::new();
        for _ in 1..num_terms {
            operators.push(*rng.choice(&["+", "-"])?);
        }
        let most_places = places.iter().copied().max().unwrap_or_default();
        let mut expression = written(terms[0], places[0]);
        let mut result = terms[0] * 10_i128.pow(most_places - places[0]);
        for (operator, (&term, &places)) in operators.iter().zip(terms.iter().zip(&places).skip(1))
        {
            expression.push_str(&format!(" {operator} {}", written(term, places)));
            let term = term * 10_i128.pow(most_places - places);
            result += if *operator == "+" { term } else { -term };
        }
        let question =
            format!("State the final answer to the following arithmetic problem: {expression} =");
        let answer = Decimal::scaled(result, -i64::from(most_places));
        Ok(Item::new(question, answer).with("expression", expression))
    }

    fn score(_: &DecimalChainSumOptions, answer: Option<&str>, item: &Item) -> f64 {
        let equal = || Some(Decimal::parse(answer?)?.equals(&Decimal::parse(item.gold())?));
        f64::from(equal().unwrap_or_default())
    }
}

/// A number of so many decimal places.
fn written(value: i128, places: u32) -> String {
    let (unit, size) = (10_u128.pow(places), value.unsigned_abs());
    let sign = if value < 0 { "-" } else { "" };
    match places {
        0 => format!("{sign}{size}"),
        places => format!("{sign}{}.{:0width$}", size / unit, size % unit, width = places as usize),
    }
}
