//! Arithmetic of complex numbers.

use crate::prelude::*;

const OPERATIONS: [&str; 4] = ["+", "-", "*", "/"];

options! {
    /// Options of `complex_arithmetic`.
    ComplexArithmeticOptions {
        /// Least real part, -10^6 or more. Default -10.
        min_real: i64 = -10,
        /// Largest real part, up to 10^6. Default 10.
        max_real: i64 = 10,
        /// Least imaginary part, -10^6 or more. Default -10.
        min_imag: i64 = -10,
        /// Largest imaginary part, up to 10^6. Default 10.
        max_imag: i64 = 10,
        /// Operations, of `+`, `-`, `*`, `/`. Default all.
        operations: Vec<String> = texts(&OPERATIONS),
        /// How often each operation is drawn; together 1. Default 0.4, 0.4, 0.1, 0.1.
        operations_weights: Vec<f64> = vec![0.4, 0.4, 0.1, 0.1],
    }
    |given, problems| {
        problems.span(("min_real", "max_real"), (given.min_real, given.max_real), (-1_000_000, 1_000_000));
        problems.span(("min_imag", "max_imag"), (given.min_imag, given.max_imag), (-1_000_000, 1_000_000));
        problems.subset("operations", &given.operations, &OPERATIONS);
        problems.weights("operations_weights", &given.operations_weights, given.operations.len());
        let zero = [given.min_real, given.max_real, given.min_imag, given.max_imag];
        problems.require(zero != [0; 4], || "max_real and max_imag are 0 with their least ones: no number divides".to_owned());
    }
}

/// Two complex numbers to be added, subtracted, multiplied or divided. As in the package an answer that is no number, such as
/// `nan`, is worth 1.
pub(crate) struct ComplexArithmetic;

type Complex = (f64, f64);

impl Generator for ComplexArithmetic {
    type Options = ComplexArithmeticOptions;

    fn item(options: &ComplexArithmeticOptions, rng: &mut Random) -> Result<Item, ItemError> {
        let operation =
            rng.weighted_choices(&options.operations, &options.operations_weights, 1)?[0].as_str();
        let number = |rng: &mut Random| -> Result<Complex, ItemError> {
            let real = rng.int(options.min_real, options.max_real)?;
            Ok((real as f64, rng.int(options.min_imag, options.max_imag)? as f64))
        };
        let times = |a: Complex, b: Complex| (a.0 * b.0 - a.1 * b.1, a.0 * b.1 + a.1 * b.0);
        let mut a = number(rng)?;
        let mut b = number(rng)?;
        let result = match operation {
            "+" => (a.0 + b.0, a.1 + b.1),
            "-" => (a.0 - b.0, a.1 - b.1),
            "*" => times(a, b),
            _ => {
                while b == (0.0, 0.0) {
                    b = number(rng)?;
                }
                let result = a;
                a = times(result, b);
                result
            }
        };
        let (told, sign) = match operation {
            "+" => ("Add", '+'),
            "-" => ("Subtract", '-'),
            "*" => ("Multiply", '×'),
            _ => ("Divide", '÷'),
        };
        let question =
            format!("{told} the complex numbers: ({}) {sign} ({})", written(a), written(b));
        Ok(Item::new(question, written(result))
            .with("result", vec![result.0 as i64, result.1 as i64]))
    }

    fn score(_: &ComplexArithmeticOptions, answer: Option<&str>, item: &Item) -> f64 {
        let Some(given) = answer.and_then(read) else { return 0.0 };
        let gold = |place: usize| item.fact("result")[place].as_f64().unwrap_or(f64::NAN);
        let score = (-(given.0 - gold(0)).hypot(given.1 - gold(1))).exp();
        // Python's `min(1.0, nan)` is 1.0.
        if score < 1.0 { score } else { 1.0 }
    }
}

fn written((real, imaginary): Complex) -> String {
    if imaginary.abs() < 1e-10 {
        format!("{real:.2}")
    } else if real.abs() < 1e-10 {
        format!("{imaginary:.2}i")
    } else {
        let sign = if imaginary >= 0.0 { '+' } else { '-' };
        format!("{} {sign} {}i", repr_float(real), repr_float(imaginary.abs()))
    }
}

/// The number of an answer by the package's rules; absent where it has none.
fn read(answer: &str) -> Option<Complex> {
    let plain = lower(&answer.replace(' ', ""));
    let mut text = plain.as_str();
    while let Some(inside) = text.strip_prefix('(').and_then(|text| text.strip_suffix(')')) {
        text = inside;
    }
    let text = text.replace('i', "j");
    if !text.contains('j') {
        return Some((float(&text)?, 0.0));
    }
    if let "j" | "-j" = text.as_str() {
        return Some((0.0, if text == "j" { 1.0 } else { -1.0 }));
    }
    let mut letters = text.chars();
    let last = letters.next_back();
    let head = letters.as_str();
    let has_sign = |text: &str| text.contains(['+', '-']);
    if (last == Some('j') && !has_sign(head))
        || head.strip_prefix('-').is_some_and(|rest| !has_sign(rest))
    {
        return match head {
            "" => Some((0.0, 1.0)),
            "-" => Some((0.0, -1.0)),
            _ => Some((0.0, float(head)?)),
        };
    }
    if last != Some('j') {
        return None;
    }
    complex(&text.replace("+j", "+1j").replace("-j", "-1j"))
}

/// `complex(text)` of a text that ends with `j`.
fn complex(text: &str) -> Option<Complex> {
    let text = strip(text).strip_suffix('j')?;
    // The sign of the imaginary part is the last one that belongs to no exponent.
    let mut signs = text
        .char_indices()
        .filter(|(at, letter)| matches!(letter, '+' | '-') && !text[..*at].ends_with('e'));
    let at = signs.next_back()?.0;
    let (real, imaginary) = text.split_at(at);
    if real.contains(|c: char| c.is_whitespace()) || imaginary.contains(|c: char| c.is_whitespace())
    {
        return None;
    }
    match real.is_empty() {
        true => Some((0.0, float(imaginary)?)),
        false => Some((float(real)?, float(imaginary)?)),
    }
}
