//! Fractions in lowest terms.

use num_integer::gcd;
use spar_python::Random;
use spar_python::characters::decimal_value;
use spar_python::text::strip;

use crate::dataset::Generator;
use crate::options::{options, texts};
use crate::scoring::{big_int, small_int};
use crate::{Item, ItemError};

const STYLES: [&str; 4] = ["plain", "latex_inline", "latex_frac", "latex_dfrac"];

options! {
    /// Options of `fraction_simplification`.
    FractionSimplificationOptions {
        /// Least part of the simplified fraction, at least 1. Default 1.
        min_value: i64 = 1,
        /// Largest part of the simplified fraction, above the least, up to 10^9. Default 1000.
        max_value: i64 = 1000,
        /// Least factor that both parts are multiplied with, at least 1. Default 1.
        min_factor: i64 = 1,
        /// Largest factor, up to 10^9. Default 100.
        max_factor: i64 = 100,
        /// How fractions are written: `plain`, `latex_inline`, `latex_frac`, `latex_dfrac`. Default all four.
        styles: Vec<String> = texts(&STYLES),
    }
    |given, problems| {
        problems.span(("min_value", "max_value"), (given.min_value, given.max_value), (1, 1_000_000_000));
        problems.require(given.max_value > given.min_value, || "max_value must be above min_value".to_owned());
        problems.span(("min_factor", "max_factor"), (given.min_factor, given.max_factor), (1, 1_000_000_000));
        problems.subset("styles", &given.styles, &STYLES);
    }
}

/// A fraction to be simplified.
pub(crate) struct FractionSimplification;

impl Generator for FractionSimplification {
    type Options = FractionSimplificationOptions;

    fn item(options: &FractionSimplificationOptions, rng: &mut Random) -> Result<Item, ItemError> {
        let range = options.min_value..=options.max_value;
        let mut found = None;
        for _ in 0..10 {
            let above = rng.int(options.min_value, options.max_value)?;
            let below = rng.int(options.min_value, options.max_value)?;
            let common = gcd(above, below);
            let (above, below) = (above / common, below / common);
            if range.contains(&above) && range.contains(&below) {
                found = Some((above, below));
                break;
            }
        }
        let (above, below) = match found {
            Some(found) => found,
            None => {
                let above = rng.int(options.min_value, options.max_value)?;
                (above, rng.int(options.min_value, options.max_value)?)
            }
        };
        let (above, below) = (above.min(below), above.max(below));
        let factor = rng.int(options.min_factor, options.max_factor)?;
        let style = &options.styles[rng.int(0, options.styles.len() as i64 - 1)? as usize];
        let question = format!(
            "Simplify the fraction {} to its lowest terms. Give only the simplified fraction as your final answer.",
            written(above * factor, below * factor, style)
        );
        Ok(Item::new(question, written(above, below, style))
            .with("numerator", above * factor)
            .with("denominator", below * factor)
            .with("simplified_numerator", above)
            .with("simplified_denominator", below))
    }

    fn score(_: &FractionSimplificationOptions, answer: Option<&str>, item: &Item) -> f64 {
        let Some((above, below)) = answer.and_then(fraction) else { return 0.01 };
        let is = |part: Option<i64>, name: &str| part == Some(item.int(name));
        if is(above, "simplified_numerator") && is(below, "simplified_denominator") {
            1.0
        } else if is(above, "numerator") || is(below, "denominator") {
            0.1
        } else {
            0.05
        }
    }
}

fn written(above: i64, below: i64, style: &str) -> String {
    match style {
        "plain" => format!("{above}/{below}"),
        "latex_inline" => format!("${above}/{below}$"),
        "latex_frac" => format!("$\\frac{{{above}}}{{{below}}}$"),
        _ => format!("$\\dfrac{{{above}}}{{{below}}}$"),
    }
}

/// The parts of a fraction in an answer, each absent where it has more than 64 bits; all absent where there is no fraction.
fn fraction(answer: &str) -> Option<(Option<i64>, Option<i64>)> {
    let cleaned = strip(strip(answer).trim_matches('$'));
    let read = |part: &str| big_int(part).map(|_| small_int(part));
    if let Some((above, below)) = latex(cleaned) {
        return Some((read(above)?, read(below)?));
    }
    let (above, below) = cleaned.split_once('/')?;
    Some((read(above)?, read(below)?))
}

/// The parts of `\frac{1}{2}` or `\dfrac{1}{2}` at the beginning of a text, with spaces where the package allows them.
fn latex(text: &str) -> Option<(&str, &str)> {
    let rest = text.strip_prefix('\\')?;
    let rest = ["frac", "dfrac"].iter().find_map(|name| {
        // Two letters of other alphabets fold to `k` and `s`, none to a letter of these names.
        let head = rest.get(..name.len())?;
        head.eq_ignore_ascii_case(name).then(|| &rest[name.len()..])
    })?;
    let (above, rest) = group(rest)?;
    let (below, _) = group(rest)?;
    Some((above, below))
}

/// The digits in braces that come next, and what stands behind.
fn group(text: &str) -> Option<(&str, &str)> {
    let space = spar_python::characters::is_space;
    let inside = text.trim_start_matches(space).strip_prefix('{')?.trim_start_matches(space);
    let end = inside.find(|c| decimal_value(c).is_none()).unwrap_or(inside.len());
    if end == 0 {
        return None;
    }
    let rest = inside[end..].trim_start_matches(space).strip_prefix('}')?;
    Some((&inside[..end], rest))
}
