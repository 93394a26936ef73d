//! `int`, `float` and `round`.

use num_bigint::BigInt;
use num_traits::{FromPrimitive, One, Pow, Signed, ToPrimitive, Zero};

use crate::arithmetic::{float_operand, floor_divide, out_of_range, truncate};
use crate::characters::decimal_value;
use crate::text::strip;
use crate::{Exception, Outcome, Value, repr_str};

/// Digits beyond which `round` leaves a float as it is.
const LAST_DIGIT: i64 = 323;
/// Digits before the point from which on it rounds to zero.
const FIRST_DIGIT: i64 = 308;

/// `int(value)`.
///
/// # Errors
///
/// The `ValueError` of texts that are no whole number, the `TypeError` of other types.
pub fn to_int(value: &Value) -> Outcome<BigInt> {
    match value {
        Value::Float(value) => truncate(*value),
        Value::Str(text) => parse_int(text),
        _ => value.as_int().ok_or_else(|| {
            Exception::type_error(format_args!(
                "int() argument must be a string, a bytes-like object or a real number, not '{}'",
                value.type_name()
            ))
        }),
    }
}

/// `float(value)`.
///
/// # Errors
///
/// The `ValueError` of texts that are no number, the `TypeError` of other types.
pub fn to_float(value: &Value) -> Outcome<f64> {
    match value {
        Value::Str(text) => parse_float(text),
        _ if value.is_real() => float_operand(value),
        _ => Err(Exception::type_error(format_args!(
            "float() argument must be a string or a real number, not '{}'",
            value.type_name()
        ))),
    }
}

/// The value that `format(value, ".2f")` and the like write.
///
/// # Errors
///
/// The `ValueError` of texts, the `TypeError` of other types.
pub fn format_fixed(value: &Value, places: usize) -> Outcome<String> {
    match value {
        Value::Str(_) => {
            Err(Exception::value_error("Unknown format code 'f' for object of type 'str'"))
        }
        _ if value.is_real() => Ok(fixed(float_operand(value)?, places)),
        _ => Err(Exception::type_error(format_args!(
            "unsupported format string passed to {}.__format__",
            value.type_name()
        ))),
    }
}

/// A float with so many digits behind the point, correctly rounded, ties to even.
pub fn fixed(value: f64, places: usize) -> String {
    if value.is_nan() { "nan".to_owned() } else { format!("{value:.places$}") }
}

/// `round(value, digits)`; without digits the result is a whole number.
///
/// # Errors
///
/// The `TypeError` of what is not rounded, and of digits that are no whole number.
pub fn round(value: &Value, digits: &Value) -> Outcome<Value> {
    if !value.is_real() {
        return Err(Exception::type_error(format_args!(
            "type {} doesn't define __round__ method",
            value.type_name()
        )));
    }
    let digits = match digits {
        Value::None => None,
        digits => Some(digits.as_int().ok_or_else(|| {
            Exception::type_error(format_args!(
                "'{}' object cannot be interpreted as an integer",
                digits.type_name()
            ))
        })?),
    };
    match (value, digits) {
        (Value::Float(value), None) => {
            let below = truncate(*value)?;
            let rest = value - value.trunc();
            let away = rest.abs() > 0.5 || (rest.abs() == 0.5 && !(&below % 2_i32).is_zero());
            let step = if away { rest.signum() as i32 } else { 0 };
            Ok(Value::from(below + step))
        }
        (Value::Float(value), Some(digits)) => {
            let clipped = match digits.to_i64() {
                Some(digits) => digits,
                None if digits.is_negative() => i64::MIN,
                None => i64::MAX,
            };
            round_float(*value, clipped).map(Value::Float)
        }
        (value, digits) => {
            let int = value.as_int().expect("it is a whole number");
            Ok(Value::from(match digits {
                Some(digits) if digits.is_negative() => round_int(int, &-digits),
                _ => int,
            }))
        }
    }
}

fn round_float(value: f64, digits: i64) -> Outcome<f64> {
    if !value.is_finite() || digits > LAST_DIGIT {
        return Ok(value);
    }
    if digits < -FIRST_DIGIT {
        return Ok(0.0 * value);
    }
    let rounded = if digits >= 0 {
        fixed(value, digits as usize).parse().expect("Rust reads what it writes")
    } else {
        // Before the point: whole numbers are exact, and what stands behind it only breaks ties.
        let whole = BigInt::from_f64(value.abs().trunc()).expect("it is finite");
        let unit: BigInt = Pow::pow(BigInt::from(10), digits.unsigned_abs());
        let (quotient, rest) = floor_divide(&whole, &unit);
        let twice: BigInt = &rest * 2_i32;
        let is_odd = !(&quotient % 2_i32).is_zero();
        let is_tie = twice == unit && value.fract() == 0.0;
        let up = (is_tie && is_odd) || (twice >= unit && !is_tie);
        let rounded = (quotient + i32::from(up)) * unit;
        let text = rounded.to_string();
        let size: f64 = text.parse().expect("digits are a number");
        size.copysign(value)
    };
    if rounded.is_finite() {
        Ok(rounded)
    } else {
        Err(Exception::new(crate::ExceptionKind::Overflow, "rounded value too large to represent"))
    }
}

fn round_int(value: BigInt, digits: &BigInt) -> BigInt {
    // Ten is more than three bits: beyond so many digits, the unit is more than twice the number.
    let digits = match digits.to_u64() {
        Some(digits) if digits <= value.bits() / 3 + 1 => digits,
        _ => return BigInt::zero(),
    };
    let unit: BigInt = Pow::pow(BigInt::from(10), digits);
    let (quotient, rest) = floor_divide(&value, &unit);
    let twice: BigInt = rest * 2_i32;
    let up = twice > unit || (twice == unit && !(&quotient % 2_i32).is_zero());
    (if up { quotient + BigInt::one() } else { quotient }) * unit
}

fn parse_int(text: &str) -> Outcome<BigInt> {
    let refuse = || {
        Exception::value_error(format_args!(
            "invalid literal for int() with base 10: {}",
            // Two hundred characters of it are shown.
            repr_str(text).chars().take(200).collect::<String>()
        ))
    };
    let stripped = strip(text);
    let (is_negative, digits) = match stripped.strip_prefix(['+', '-']) {
        Some(rest) => (stripped.starts_with('-'), rest),
        None => (false, stripped),
    };
    let plain = ascii_digits(digits).ok_or_else(refuse)?;
    if plain.len() > 4300 {
        return Err(Exception::value_error(format_args!(
            "Exceeds the limit (4300 digits) for integer string conversion: value has {} digits; use sys.set_int_max_str_digits() to increase the limit",
            plain.len()
        )));
    }
    let value: BigInt = plain.parse().map_err(|_| refuse())?;
    Ok(if is_negative { -value } else { value })
}

/// Digits of any script as those of ASCII, without the underscores that may stand between two of them.
fn ascii_digits(text: &str) -> Option<String> {
    let mut plain = String::with_capacity(text.len());
    let mut after_digit = false;
    for character in text.chars() {
        match decimal_value(character) {
            Some(value) => plain.push(char::from_digit(value, 10)?),
            None if character == '_' && after_digit => {}
            None => return None,
        }
        after_digit = character != '_';
    }
    after_digit.then_some(plain)
}

fn parse_float(text: &str) -> Outcome<f64> {
    let refuse = || {
        Exception::value_error(format_args!(
            "could not convert string to float: {}",
            repr_str(text)
        ))
    };
    let mut plain = String::new();
    let stripped = strip(text);
    let mut previous = ' ';
    let mut characters = stripped.chars().peekable();
    while let Some(character) = characters.next() {
        let is_digit = |c: char| decimal_value(c).is_some();
        if character == '_' {
            if !(is_digit(previous) && characters.peek().copied().is_some_and(is_digit)) {
                return Err(refuse());
            }
        } else if let Some(value) = decimal_value(character) {
            plain.push(char::from_digit(value, 10).expect("it is below ten"));
        } else {
            plain.push(character);
        }
        previous = character;
    }
    let unsigned = plain.trim_start_matches(['+', '-']);
    let is_word = ["inf", "infinity", "nan"].iter().any(|word| unsigned.eq_ignore_ascii_case(word));
    let is_number = unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.')
        && unsigned.chars().any(|c| c.is_ascii_digit());
    if plain.len() > unsigned.len() + 1 || !(is_word || is_number) {
        return Err(refuse());
    }
    plain.parse().map_err(|_| refuse())
}

/// `math.sqrt(value)`.
///
/// # Errors
///
/// The `ValueError` of negative numbers, the `TypeError` of what is no number.
pub fn square_root(value: &Value) -> Outcome<f64> {
    if !value.is_real() {
        return Err(Exception::type_error(format_args!(
            "must be real number, not {}",
            value.type_name()
        )));
    }
    let value = float_operand(value)?;
    if value < 0.0 {
        return Err(Exception::value_error("math domain error"));
    }
    Ok(value.sqrt())
}

/// `value ** 2` for a float, as the C library's `pow` gives it.
///
/// # Errors
///
/// The `OverflowError` of squares that do not fit.
pub fn square(value: f64) -> Outcome<f64> {
    let square = value.powf(2.0);
    if square.is_infinite() && value.is_finite() { Err(out_of_range()) } else { Ok(square) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repr;

    fn rounded(value: impl Into<Value>, digits: impl Into<Value>) -> String {
        match round(&value.into(), &digits.into()) {
            Ok(value) => repr(&value).unwrap(),
            Err(error) => error.text,
        }
    }

    #[test]
    fn rounding_is_correct_and_breaks_ties_to_even() {
        assert_eq!(rounded(2.675, 2_i64), "2.67");
        assert_eq!(rounded(0.5, 0_i64), "0.0");
        assert_eq!(rounded(2.5, Value::None), "2");
        assert_eq!(rounded(-1.5, Value::None), "-2");
        assert_eq!(rounded(1250.0, -2_i64), "1200.0");
        assert_eq!(rounded(1250.5, -2_i64), "1300.0");
        assert_eq!(rounded(-1350.0, -2_i64), "-1400.0");
        assert_eq!(rounded(15_i64, -1_i64), "20");
        assert_eq!(rounded(25_i64, -1_i64), "20");
        assert_eq!(rounded(-25_i64, -1_i64), "-20");
        assert_eq!(rounded(1.5, 1.5), "'float' object cannot be interpreted as an integer");
        assert_eq!(rounded("a", 1_i64), "type str doesn't define __round__ method");
        assert_eq!(rounded(f64::NAN, Value::None), "cannot convert float NaN to integer");
        assert_eq!(rounded(1.5e308, -308_i64), "rounded value too large to represent");
    }

    #[test]
    fn texts_are_read_as_numbers() {
        assert_eq!(to_int(&Value::from(" -1_000 ")).unwrap(), BigInt::from(-1000));
        assert_eq!(to_int(&Value::from("٣")).unwrap(), BigInt::from(3));
        for text in ["", "1__0", "_1", "1_", "1.5", "²", "- 1"] {
            let error = to_int(&Value::from(text)).unwrap_err();
            assert!(error.text.starts_with("invalid literal for int()"), "{text}");
        }
        let long = to_int(&Value::from("a".repeat(500))).unwrap_err().text;
        assert!(long.ends_with(&format!("base 10: '{}", "a".repeat(199))), "{long}");
        assert_eq!(to_float(&Value::from(" 1_0.5e-3 ")).unwrap(), 0.0105);
        assert_eq!(to_float(&Value::from("-Infinity")).unwrap(), f64::NEG_INFINITY);
        for text in ["", "1e", "e1", "+-1", "1_.5", "0x1", "infin", "."] {
            assert!(to_float(&Value::from(text)).is_err(), "{text}");
        }
    }

    #[test]
    fn fixed_places_are_rounded_exactly() {
        assert_eq!(format_fixed(&Value::Float(2.675), 2).unwrap(), "2.67");
        assert_eq!(format_fixed(&Value::from(3_i64), 2).unwrap(), "3.00");
        assert_eq!(format_fixed(&Value::Float(f64::INFINITY), 2).unwrap(), "inf");
        assert_eq!(
            format_fixed(&Value::from("a"), 2).unwrap_err().text,
            "Unknown format code 'f' for object of type 'str'"
        );
    }
}
