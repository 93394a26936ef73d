//! Numbers to be kept or removed.

use crate::prelude::*;

options! {
    /// Options of `number_filtering`.
    NumberFilteringOptions {
        /// Fewest numbers, at least 1. Default 3.
        min_numbers: i64 = 3,
        /// Most numbers, up to 10000. Default 10.
        max_numbers: i64 = 10,
        /// Fewest digits behind the point, at least 0. Default 0.
        min_decimals: i64 = 0,
        /// Most digits behind the point, up to 15. Default 4.
        max_decimals: i64 = 4,
        /// Least number, -10^12 or more. Default -100.
        min_value: f64 = -100.0,
        /// Largest number, above the least, up to 10^12. Default 100.
        max_value: f64 = 100.0,
    }
    |given, problems| {
        problems.span(("min_numbers", "max_numbers"), (given.min_numbers, given.max_numbers), (1, 10_000));
        problems.span(("min_decimals", "max_decimals"), (given.min_decimals, given.max_decimals), (0, 15));
        problems.span(("min_value", "max_value"), (given.min_value, given.max_value), (-1e12, 1e12));
        problems.require(given.max_value > given.min_value, || "max_value must be above min_value".to_owned());
    }
}

/// A list of numbers, of which those above or below a value are kept or removed.
pub(crate) struct NumberFiltering;

impl Generator for NumberFiltering {
    type Options = NumberFilteringOptions;

    fn item(options: &NumberFilteringOptions, rng: &mut Random) -> Result<Item, ItemError> {
        let count = rng.int(options.min_numbers, options.max_numbers)?;
        let (mut numbers, mut written) = (Vec::new(), Vec::new());
        let number =
            |rng: &mut Random, least: f64, most: f64| -> Result<(f64, String), ItemError> {
                let drawn = rng.uniform(least, most);
                let decimals = rng.int(options.min_decimals, options.max_decimals)? as usize;
                let written = format!("{drawn:.decimals$}");
                Ok((written.parse().unwrap_or(drawn), written))
            };
        for _ in 0..count {
            let (value, text) = number(rng, options.min_value, options.max_value)?;
            numbers.push(value);
            written.push(text);
        }
        let (least, most) =
            numbers.iter().fold((numbers[0], numbers[0]), |(least, most), &value| {
                (if value < least { value } else { least }, if value > most { value } else { most })
            });
        let (bound, told) = number(rng, least, most)?;
        let is_larger = *rng.choice(&[true, false])?;
        let is_kept = *rng.choice(&[true, false])?;
        let passes = |value: f64| match (is_kept, is_larger) {
            (true, true) => value > bound,
            (true, false) => value < bound,
            (false, true) => value <= bound,
            (false, false) => value >= bound,
        };
        // An equal number is written as its first one is.
        let first =
            |value: f64| numbers.iter().position(|other| *other == value).unwrap_or_default();
        let result: Vec<&str> = numbers
            .iter()
            .filter(|value| passes(**value))
            .map(|value| written[first(*value)].as_str())
            .collect();
        let question = format!(
            "{} all numbers {} than {told} in this list: {}\nReturn the new list in the same format.",
            if is_kept { "Keep" } else { "Remove" },
            if is_larger { "larger" } else { "smaller" },
            list_of_texts(&written)
        );
        Ok(Item::new(question, list_of_texts(result)))
    }
}
