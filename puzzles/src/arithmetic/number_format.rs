//! Numbers in several notations.

use crate::prelude::*;

options! {
    /// Options of `number_format`.
    NumberFormatOptions {
        /// Fewest numbers, at least 2. Default 2.
        min_num_candidates: i64 = 2,
        /// Most numbers, up to 1000. Default 5.
        max_num_candidates: i64 = 5,
        /// Least first number, at least 1. Default 1000.
        min_n: f64 = 1000.0,
        /// Largest first number, above the least, up to 10^12. Default 10^9.
        max_n: f64 = 1e9,
        /// Largest distance of the others from the first, above 0, up to 10^12. Default 10.
        max_delta: f64 = 10.0,
    }
    |given, problems| {
        let counts = (given.min_num_candidates, given.max_num_candidates);
        problems.span(("min_num_candidates", "max_num_candidates"), counts, (2, 1_000));
        problems.span(("min_n", "max_n"), (given.min_n, given.max_n), (1.0, 1e12));
        problems.require(given.max_n > given.min_n, || "max_n must be above min_n".to_owned());
        problems.between("max_delta", given.max_delta, f64::MIN_POSITIVE, 1e12);
    }
}

/// Numbers in several notations, of which the largest or smallest is asked for.
pub(crate) struct NumberFormat;

impl Generator for NumberFormat {
    type Options = NumberFormatOptions;

    fn item(options: &NumberFormatOptions, rng: &mut Random) -> Result<Item, ItemError> {
        let count = rng.int(options.min_num_candidates, options.max_num_candidates)?;
        let base = rounded(rng.uniform(options.min_n, options.max_n), 3);
        let mut candidates = vec![base];
        for _ in 1..count {
            let delta = rng.uniform(-options.max_delta, options.max_delta);
            candidates.push(base + rounded(delta, 3));
        }
        let mut written = Vec::with_capacity(candidates.len());
        for &candidate in &candidates {
            written.push(match rng.below(3) {
                0 => format!("{candidate:.6}"),
                1 => with_commas(candidate),
                _ => scientific(candidate),
            });
        }
        let size = *rng.choice(&["largest", "smallest"])?;
        let better = |a: f64, b: f64| if size == "largest" { b > a } else { b < a };
        let best = candidates[1..].iter().fold(base, |a, &b| if better(a, b) { b } else { a });
        let question = format!(
            "Your task is to pick the largest/smallest number out of several options.\n\nYour output should be only the number of interest.\n\nNow, pick the {size} number of the following candidates: {}\n",
            joined(written, " ")
        );
        Ok(Item::new(question, repr_float(best)).with("solution", best).with("size", size))
    }

    fn score(_: &NumberFormatOptions, answer: Option<&str>, item: &Item) -> f64 {
        let Some(given) = answer.and_then(|answer| float(&strip(answer).replace(',', ""))) else {
            return 0.0;
        };
        let gold = item.fact("solution").as_f64().unwrap_or(f64::NAN);
        f64::from((given - gold).abs() < 0.01)
    }
}

/// `format(value, ",")`.
fn with_commas(value: f64) -> String {
    let written = repr_float(value);
    let (sign, unsigned) = match written.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", written.as_str()),
    };
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, "0"));
    let mut grouped = String::new();
    for (place, digit) in whole.chars().enumerate() {
        if place > 0 && (whole.len() - place) % 3 == 0 {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    format!("{sign}{grouped}.{fraction}")
}

/// `format(value, ".15e")`.
fn scientific(value: f64) -> String {
    let written = format!("{value:.15e}");
    let (mantissa, exponent) = written.split_once('e').expect("it has an exponent");
    let exponent: i32 = exponent.parse().expect("it is a number");
    format!("{mantissa}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs())
}
