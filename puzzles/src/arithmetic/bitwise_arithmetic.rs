//! Arithmetic of hexadecimal numbers.

use num_bigint::BigInt;
use num_traits::Signed;

use crate::prelude::*;

options! {
    /// Options of `bitwise_arithmetic`.
    BitwiseArithmeticOptions {
        /// Depth of the expression, 1 to 10. Default 2.
        difficulty: i64 = 2,
    }
    |given, problems| {
        problems.between("difficulty", given.difficulty, 1, 10);
    }
}

/// An expression of sums, products and shifts of hexadecimal numbers.
pub(crate) struct BitwiseArithmetic;

impl Generator for BitwiseArithmetic {
    type Options = BitwiseArithmeticOptions;

    fn item(options: &BitwiseArithmeticOptions, rng: &mut Random) -> Result<Item, ItemError> {
        let (problem, value) = expression(rng, options.difficulty)?;
        let question = format!(
            "Please solve this problem. Assume there is arbitrary bit depth and that there are signed integers. If the answer is negative, reply as a negative value (ex., -0x3), not the two's-compliment form. Reply only with the final hexidecimal value.\n{problem}"
        );
        Ok(Item::new(question, hex(&value)).with("problem", problem))
    }

    fn score(_: &BitwiseArithmeticOptions, answer: Option<&str>, item: &Item) -> f64 {
        let given = answer.and_then(any_base_int);
        f64::from(given.is_some() && given == any_base_int(item.gold()))
    }
}

fn hex(value: &BigInt) -> String {
    let sign = if value.is_negative() { "-" } else { "" };
    format!("{sign}0x{:x}", value.magnitude())
}

fn expression(rng: &mut Random, depth: i64) -> Result<(String, BigInt), ItemError> {
    if depth <= 0 || rng.random() < 0.01 {
        let value = rng.int(256, 65_535)?;
        return Ok((format!("0x{value:x}"), value.into()));
    }
    let operator = *rng.choice(&["+", "-", "*", "<<", ">>"])?;
    let (left, a) = expression(rng, depth - 1)?;
    let (right, b) = expression(rng, depth - 1)?;
    if operator == "<<" || operator == ">>" {
        let bits = rng.int(0, 3)?;
        let shifted = if operator == "<<" { a << bits } else { a >> bits };
        return Ok((format!("({left} {operator} 0x{bits:x})"), shifted));
    }
    let value = match operator {
        "+" => a + b,
        "-" => a - b,
        _ => a * b,
    };
    Ok((format!("({left} {operator} {right})"), value))
}

/// `int(text, 0)`: the base is told by what stands in front.
fn any_base_int(text: &str) -> Option<BigInt> {
    let stripped = strip(text);
    let (is_negative, digits) = match stripped.strip_prefix(['+', '-']) {
        Some(rest) => (stripped.starts_with('-'), rest),
        None => (false, stripped),
    };
    let prefix = digits.get(..2).unwrap_or_default().to_ascii_lowercase();
    let base = match prefix.as_str() {
        "0x" => 16,
        "0o" => 8,
        "0b" => 2,
        _ => 10,
    };
    let value = if base == 10 {
        let value = big_int(digits).filter(|_| !digits.starts_with(['+', '-', ' ']))?;
        // Zeros in front stand for nothing but zero.
        let is_padded =
            digits.chars().next().and_then(spar_python::characters::decimal_value) == Some(0);
        if is_padded && value != BigInt::ZERO {
            return None;
        }
        value
    } else {
        let rest = digits[2..].strip_prefix('_').unwrap_or(&digits[2..]);
        if rest.is_empty()
            || rest.len() > 100_000
            || rest.starts_with('_')
            || rest.ends_with('_')
            || rest.contains("__")
        {
            return None;
        }
        let plain = rest.replace('_', "");
        if !plain.chars().all(|digit| digit.is_digit(base)) {
            return None;
        }
        BigInt::parse_bytes(plain.as_bytes(), base)?
    };
    Some(if is_negative { -value } else { value })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_in_their_base() {
        for (text, value) in
            [("0x1f", 31), (" -0X_1_F ", -31), ("0b11", 3), ("+0o17", 15), ("12", 12), ("00", 0)]
        {
            assert_eq!(any_base_int(text), Some(value.into()), "{text}");
        }
        for text in ["", "0x", "012", "1f", "0x1__0", "--1", "0xg", "- 1", "0x+1"] {
            assert_eq!(any_base_int(text), None, "{text}");
        }
    }
}
