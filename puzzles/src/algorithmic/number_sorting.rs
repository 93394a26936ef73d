//! Numbers to be sorted.

use spar_python::{Exception, NoNames, Value as PythonValue, eval, from_json, to_float};

use crate::prelude::*;

options! {
    /// Options of `number_sorting`.
    NumberSortingOptions {
        /// Fewest numbers, at least 1. Default 3.
        min_numbers: i64 = 3,
        /// Most numbers, up to 10000. Default 10.
        max_numbers: i64 = 10,
        /// Fewest digits behind the point, at least 0. Default 0.
        min_decimals: i64 = 0,
        /// Most digits behind the point, up to 15. Default 2.
        max_decimals: i64 = 2,
        /// Least number, -10^9 or more. Default -100.
        min_value: f64 = -100.0,
        /// Largest number, above the least, up to 10^9. Default 100.
        max_value: f64 = 100.0,
    }
    |given, problems| {
        problems.span(("min_numbers", "max_numbers"), (given.min_numbers, given.max_numbers), (1, 10_000));
        problems.span(("min_decimals", "max_decimals"), (given.min_decimals, given.max_decimals), (0, 15));
        problems.span(("min_value", "max_value"), (given.min_value, given.max_value), (-1e9, 1e9));
        problems.require(given.max_value > given.min_value, || "max_value must be above min_value".to_owned());
    }
}

/// Numbers to be sorted, upwards or downwards.
pub(crate) struct NumberSorting;

impl Generator for NumberSorting {
    type Options = NumberSortingOptions;

    fn item(options: &NumberSortingOptions, rng: &mut Random) -> Result<Item, ItemError> {
        let count = rng.int(options.min_numbers, options.max_numbers)?;
        let mut numbers = Vec::new();
        for _ in 0..count {
            let drawn = rng.uniform(options.min_value, options.max_value);
            let decimals = rng.int(options.min_decimals, options.max_decimals)?;
            numbers.push(numpy_round(drawn, decimals));
        }
        let shown = joined(numbers.iter().map(|number| repr_float(*number)), ", ");
        let direction = *rng.choice(&["ascending", "descending"])?;
        // Both sorts are stable, also the reverse one.
        match direction {
            "ascending" => {
                numbers.sort_by(|a, b| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal))
            }
            _ => numbers.sort_by(|a, b| b.partial_cmp(a).unwrap_or(std::cmp::Ordering::Equal)),
        }
        let question = format!(
            "Sort these numbers in {direction} order: {shown}\nPlease follow the instruction below:\n## 1. Let all your answers be a list of numbers. Instead of reporting your answer as -69, -13, 1, 7, 11, 43, 59, 61, use ['-69', '-13', '1', '7', '11', '43', '59', '61'] instead\n## 2. Convert all numbers in the square brackets as strings. For example, ['-69', '-13', '1', '7', '11', '43', '59', '61']\n"
        );
        let answer = list_of_texts(numbers.iter().map(|number| repr_float(*number)));
        Ok(Item::new(question, answer).with("direction", direction))
    }

    fn score(_: &NumberSortingOptions, answer: Option<&str>, item: &Item) -> f64 {
        let is_right = || {
            let given = json_loads(&answer?.replace('\'', "\""))?;
            let given: Option<Vec<f64>> = given.as_array()?.iter().map(number).collect();
            let gold = eval(item.gold(), &mut NoNames).ok()?;
            let gold: Result<Vec<f64>, Exception> = gold.as_list()?.iter().map(to_float).collect();
            let (given, gold) = (given?, gold.ok()?);
            let in_order = |pair: &[f64]| match item.text("direction") {
                "ascending" => pair[0] <= pair[1],
                _ => pair[0] >= pair[1],
            };
            let is_near = |(given, gold): (&f64, &f64)| (given - gold).abs() <= 1.0;
            Some(
                given.len() == gold.len()
                    && given.windows(2).all(in_order)
                    && given.iter().zip(&gold).all(is_near),
            )
        };
        f64::from(is_right().unwrap_or_default())
    }
}

/// `float(value)` of a value that came as JSON.
fn number(value: &Value) -> Option<f64> {
    to_float(&from_json(value)).ok().filter(|_| !matches!(from_json(value), PythonValue::None))
}

/// `numpy.round` of a float: scaled, rounded half to even, and scaled back.
fn numpy_round(value: f64, decimals: i64) -> f64 {
    match decimals {
        0 => value.round_ties_even(),
        _ => {
            let unit = 10_f64.powi(decimals as i32);
            (value * unit).round_ties_even() / unit
        }
    }
}
