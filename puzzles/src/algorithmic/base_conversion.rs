//! Numbers in other bases.

use crate::prelude::*;

options! {
    /// Options of `base_conversion`.
    BaseConversionOptions {
        /// Least base, at least 2. Default 2.
        min_base: i64 = 2,
        /// Largest base, above the least, up to 36. Default 16.
        max_base: i64 = 16,
        /// Least number, at least 0. Default 0.
        min_value: i64 = 0,
        /// Largest number, above the least, up to 2^62. Default 1000.
        max_value: i64 = 1000,
    }
    |given, problems| {
        problems.span(("min_base", "max_base"), (given.min_base, given.max_base), (2, 36));
        // With one base alone the package looks for another one for ever.
        problems.require(given.max_base > given.min_base, || "max_base must be above min_base".to_owned());
        problems.span(("min_value", "max_value"), (given.min_value, given.max_value), (0, 1 << 62));
        problems.require(given.max_value > given.min_value, || "max_value must be above min_value".to_owned());
    }
}

/// A number of one base, to be written in another.
pub(crate) struct BaseConversion;

impl Generator for BaseConversion {
    type Options = BaseConversionOptions;

    fn item(options: &BaseConversionOptions, rng: &mut Random) -> Result<Item, ItemError> {
        let value = rng.int(options.min_value, options.max_value)?;
        let source = rng.int(options.min_base, options.max_base)?;
        let target = loop {
            let target = rng.int(options.min_base, options.max_base)?;
            if target != source {
                break target;
            }
        };
        let question = format!(
            "Your task is to convert a number between two different bases.\n\nIf the target base is > 10, use lowercase letters a-z for digits above 9.\n\nNow, convert the {} number {} to {}\n",
            name(source),
            written(value, source),
            name(target)
        );
        Ok(Item::new(question, written(value, target)).with("decimal_value", value))
    }
}

fn name(base: i64) -> String {
    match base {
        2 => "binary".to_owned(),
        16 => "hexadecimal".to_owned(),
        _ => format!("base-{base}"),
    }
}

fn written(mut value: i64, base: i64) -> String {
    let mut digits = Vec::new();
    loop {
        digits.push(char::from_digit((value % base) as u32, base as u32).unwrap_or('?'));
        value /= base;
        if value == 0 {
            return digits.into_iter().rev().collect();
        }
    }
}
