//! Square roots in decimal, as `decimal.Decimal.sqrt` gives them.

use num_bigint::BigUint;
use num_traits::{Pow, ToPrimitive, Zero};
use spar_python::{Exception, ExceptionKind, Outcome, Value};

/// More digits are not computed.
const MAX_DIGITS: u64 = 20_000;
/// The library's own limit.
const MAX_PRECISION: u64 = 999_999_999_999_999_999;

/// `coefficient * 10**exponent`
struct Decimal {
    coefficient: BigUint,
    exponent: i64,
}

/// The digits that `getcontext().prec = precision` sets.
///
/// # Errors
///
/// The `TypeError` of what is no whole number, the `ValueError` of less than 1 and of more than the library's limit.
pub(crate) fn precision(value: &Value) -> Outcome<usize> {
    let Some(digits) = value.as_int() else {
        return Err(Exception::type_error("an integer is required"));
    };
    if digits.to_i64().is_none() {
        return Err(Exception::new(
            ExceptionKind::Overflow,
            "Python int too large to convert to C ssize_t",
        ));
    }
    match digits.to_u64() {
        Some(digits @ 1..=MAX_DIGITS) => Ok(digits as usize),
        Some(digits) if (1..=MAX_PRECISION).contains(&digits) => Err(Exception::refused(
            format_args!("square roots have at most {MAX_DIGITS} digits here"),
        )),
        _ => Err(Exception::value_error("valid range for prec is [1, MAX_PREC]")),
    }
}

/// `repr(Decimal(number).sqrt())` of a number that is not negative, with so many digits, ties to even.
pub(crate) fn repr_of_root(number: &Value, digits: usize) -> String {
    let inner = match number {
        Value::Float(value) if value.is_nan() => "NaN".to_owned(),
        Value::Float(value) if value.is_infinite() => "Infinity".to_owned(),
        Value::Float(value) if *value == 0.0 && value.is_sign_negative() => "-0".to_owned(),
        Value::Float(value) => root(&of_float(*value), digits).written(),
        other => {
            let whole = other.as_int().unwrap_or_default();
            let coefficient = whole.magnitude().clone();
            root(&Decimal { coefficient, exponent: 0 }, digits).written()
        }
    };
    format!("Decimal('{inner}')")
}

/// A float that is not negative, exactly.
fn of_float(value: f64) -> Decimal {
    let bits = value.to_bits();
    let (fraction, power) = (bits & ((1 << 52) - 1), (bits >> 52 & 0x7ff) as i64);
    let (mut mantissa, mut exponent) =
        if power == 0 { (fraction, -1074) } else { (fraction | 1 << 52, power - 1075) };
    if mantissa == 0 {
        return Decimal { coefficient: BigUint::zero(), exponent: 0 };
    }
    let zeros = i64::from(mantissa.trailing_zeros());
    mantissa >>= zeros;
    exponent += zeros;
    if exponent >= 0 {
        Decimal { coefficient: BigUint::from(mantissa) << exponent as u64, exponent: 0 }
    } else {
        let fives: BigUint = Pow::pow(BigUint::from(5_u32), exponent.unsigned_abs());
        Decimal { coefficient: fives * mantissa, exponent }
    }
}

/// The root, by the General Decimal Arithmetic Specification: as near as can be to half the exponent where it is exact.
fn root(number: &Decimal, digits: usize) -> Decimal {
    let half = number.exponent >> 1;
    if number.coefficient.is_zero() {
        return Decimal { coefficient: BigUint::zero(), exponent: half };
    }
    let length = number.coefficient.to_string().len() as i64;
    let (square, root_length) = match number.exponent & 1 {
        1 => (&number.coefficient * 10_u32, (length >> 1) + 1),
        _ => (number.coefficient.clone(), (length + 1) >> 1),
    };
    let ten = |power: i64| -> BigUint { Pow::pow(BigUint::from(10_u32), power.unsigned_abs()) };
    // One digit more than asked for.
    let shift = digits as i64 + 1 - root_length;
    let (square, mut is_exact) = if shift >= 0 {
        (square * ten(2 * shift), true)
    } else {
        let divisor = ten(2 * shift);
        let rest = &square % &divisor;
        (square / divisor, rest.is_zero())
    };
    let mut exponent = half - shift;
    let mut root = square.sqrt();
    is_exact = is_exact && &root * &root == square;
    if is_exact {
        root = if shift >= 0 { root / ten(shift) } else { root * ten(shift) };
        exponent += shift;
    } else if (&root % 5_u32).is_zero() {
        // What was cut off is kept in the last digit, so that rounding sees no tie where there is none.
        root += 1_u32;
    }
    rounded(Decimal { coefficient: root, exponent }, digits)
}

fn rounded(number: Decimal, digits: usize) -> Decimal {
    let length = number.coefficient.to_string().len();
    if length <= digits {
        return number;
    }
    let drop = length - digits;
    let unit: BigUint = Pow::pow(BigUint::from(10_u32), drop);
    let (mut kept, rest) = (&number.coefficient / &unit, &number.coefficient % &unit);
    let twice = rest * 2_u32;
    let is_odd = !(&kept % 2_u32).is_zero();
    if twice > unit || (twice == unit && is_odd) {
        kept += 1_u32;
    }
    let mut exponent = number.exponent + drop as i64;
    if kept.to_string().len() > digits {
        kept /= 10_u32;
        exponent += 1;
    }
    Decimal { coefficient: kept, exponent }
}

impl Decimal {
    /// `str(decimal)`
    fn written(&self) -> String {
        let digits = self.coefficient.to_string();
        let left = self.exponent + digits.len() as i64;
        let is_plain = self.exponent <= 0 && left > -6;
        let point = if is_plain { left } else { 1 };
        let mut text = if point <= 0 {
            format!("0.{}{digits}", "0".repeat(point.unsigned_abs() as usize))
        } else if point as usize >= digits.len() {
            digits.clone() + &"0".repeat(point as usize - digits.len())
        } else {
            format!("{}.{}", &digits[..point as usize], &digits[point as usize..])
        };
        if left != point {
            text += &format!("E{:+}", left - point);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots_are_those_of_the_decimal_module() {
        for (number, digits, text) in [
            (Value::from(2_i64), 10, "Decimal('1.414213562')"),
            (Value::from(4_i64), 10, "Decimal('2')"),
            (Value::from(100_i64), 1, "Decimal('1E+1')"),
            (Value::from(144_i64), 1, "Decimal('1E+1')"),
            (Value::Float(0.25), 5, "Decimal('0.5')"),
            (Value::Float(0.1), 30, "Decimal('0.316227766016837941976973025885')"),
            (Value::Float(2.5e-13), 5, "Decimal('5.0000E-7')"),
            (Value::Float(-0.0), 5, "Decimal('-0')"),
            (Value::from(0_i64), 5, "Decimal('0')"),
            (Value::from(99_999_i64), 2, "Decimal('3.2E+2')"),
            (Value::Bool(true), 3, "Decimal('1')"),
        ] {
            assert_eq!(repr_of_root(&number, digits), text);
        }
    }

    #[test]
    fn precisions_are_refused_as_the_library_does() {
        assert_eq!(precision(&Value::from(5_i64)).unwrap(), 5);
        for bad in [-1_i64, 0] {
            let text = precision(&Value::from(bad)).unwrap_err().text;
            assert_eq!(text, "valid range for prec is [1, MAX_PREC]");
        }
        let kind = precision(&Value::Float(2.0)).unwrap_err().kind;
        assert_eq!(kind, ExceptionKind::Type);
    }
}
