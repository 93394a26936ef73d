//! Operators on numbers, and what they mean for other values.

use std::sync::Arc;

use num_bigint::BigInt;
use num_traits::{FromPrimitive, One, Pow, Signed, ToPrimitive, Zero};

use crate::budget::{MAX_SIZE, check_size};
use crate::{Exception, ExceptionKind, Outcome, Value};

/// Whole numbers of more bits are not computed: far beyond what CPython writes out.
const MAX_BITS: u64 = 1 << 18;

/// The two-place operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BinaryOperator {
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`
    Divide,
    /// `//`
    FloorDivide,
    /// `%`
    Remainder,
    /// `**`
    Power,
}

impl BinaryOperator {
    /// The operator as exceptions name it.
    fn sign(self) -> &'static str {
        match self {
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Multiply => "*",
            Self::Divide => "/",
            Self::FloorDivide => "//",
            Self::Remainder => "%",
            Self::Power => "** or pow()",
        }
    }
}

/// `left OPERATOR right`.
///
/// # Errors
///
/// What CPython raises: types that do not go together, division by zero, results that do not fit. Whole numbers that
/// have more digits than CPython writes out raise what writing them out does. Texts, lists and tuples that would have
/// more than 4 MiB as [`Value::size_within`] counts them are refused.
pub fn binary(operator: BinaryOperator, left: &Value, right: &Value) -> Outcome<Value> {
    let is_complex = |value: &Value| matches!(value, Value::Complex(..));
    let is_number = |value: &Value| value.is_real() || is_complex(value);
    if (is_complex(left) || is_complex(right)) && is_number(left) && is_number(right) {
        return complex(operator, as_complex(left)?, as_complex(right)?);
    }
    if left.is_real() && right.is_real() {
        if let (Some(left), Some(right)) = (left.as_i64(), right.as_i64())
            && let Some(done) = small_ints(operator, left, right)
        {
            return Ok(done);
        }
        return match (left.as_int(), right.as_int()) {
            (Some(left), Some(right)) => ints(operator, left, right),
            _ => floats(operator, float_operand(left)?, float_operand(right)?),
        };
    }
    sequences(operator, left, right)
}

/// `-value`.
///
/// # Errors
///
/// A `TypeError` for what is no number.
pub fn negate(value: &Value) -> Outcome<Value> {
    match value {
        Value::Float(value) => Ok(Value::Float(-value)),
        Value::Complex(real, imaginary) => Ok(Value::Complex(-real, -imaginary)),
        _ => value.as_int().map(|value| Value::from(-value)).ok_or_else(|| bad_unary("-", value)),
    }
}

/// `+value`.
///
/// # Errors
///
/// A `TypeError` for what is no number.
pub fn plus(value: &Value) -> Outcome<Value> {
    match value {
        Value::Float(_) | Value::Complex(..) => Ok(value.clone()),
        _ => value.as_int().map(Value::from).ok_or_else(|| bad_unary("+", value)),
    }
}

/// `~value`.
///
/// # Errors
///
/// A `TypeError` for what is no whole number.
pub fn invert(value: &Value) -> Outcome<Value> {
    value.as_int().map(|value| Value::from(!value)).ok_or_else(|| bad_unary("~", value))
}

/// `abs(value)`.
///
/// # Errors
///
/// A `TypeError` for what is no number.
pub fn absolute(value: &Value) -> Outcome<Value> {
    match value {
        Value::Float(value) => Ok(Value::Float(value.abs())),
        Value::Complex(real, imaginary) => {
            let size = real.hypot(*imaginary);
            if size.is_infinite() && real.is_finite() && imaginary.is_finite() {
                return Err(Exception::new(ExceptionKind::Overflow, "absolute value too large"));
            }
            Ok(Value::Float(size))
        }
        _ => value.as_int().map(|value| Value::from(value.abs())).ok_or_else(|| {
            Exception::type_error(format_args!(
                "bad operand type for abs(): '{}'",
                value.type_name()
            ))
        }),
    }
}

/// The float that a whole number is converted to when it meets one.
///
/// # Errors
///
/// The `OverflowError` of numbers that are too large.
pub fn int_to_float(value: &BigInt) -> Outcome<f64> {
    match value.to_f64() {
        Some(float) if float.is_finite() => Ok(float),
        _ => Err(too_large_for_float()),
    }
}

fn too_large_for_float() -> Exception {
    Exception::new(ExceptionKind::Overflow, "int too large to convert to float")
}

pub(crate) fn float_operand(value: &Value) -> Outcome<f64> {
    match value {
        Value::Float(value) => Ok(*value),
        Value::Int(value) => match value.to_f64() {
            float if float.is_finite() => Ok(float),
            _ => Err(too_large_for_float()),
        },
        _ => Ok(value.as_i64().expect("it is a real number") as f64),
    }
}

fn bad_unary(sign: &str, value: &Value) -> Exception {
    Exception::type_error(format_args!(
        "bad operand type for unary {sign}: '{}'",
        value.type_name()
    ))
}

fn unsupported(operator: BinaryOperator, left: &Value, right: &Value) -> Exception {
    Exception::type_error(format_args!(
        "unsupported operand type(s) for {}: '{}' and '{}'",
        operator.sign(),
        left.type_name(),
        right.type_name()
    ))
}

/// Sums, differences, products and quotients that fit; whatever else is done with all digits.
fn small_ints(operator: BinaryOperator, left: i64, right: i64) -> Option<Value> {
    // Below, whole numbers are floats, and their quotient is rounded once.
    const EXACT: u64 = 1 << 53;
    match operator {
        BinaryOperator::Add => left.checked_add(right).map(Value::from),
        BinaryOperator::Subtract => left.checked_sub(right).map(Value::from),
        BinaryOperator::Multiply => left.checked_mul(right).map(Value::from),
        BinaryOperator::Divide => {
            let is_exact = |number: i64| number.unsigned_abs() < EXACT;
            (right != 0 && is_exact(left) && is_exact(right))
                .then(|| Value::Float(left as f64 / right as f64))
        }
        BinaryOperator::FloorDivide | BinaryOperator::Remainder | BinaryOperator::Power => None,
    }
}

fn ints(operator: BinaryOperator, left: BigInt, right: BigInt) -> Outcome<Value> {
    use BinaryOperator::{Add, Divide, FloorDivide, Multiply, Power, Remainder, Subtract};
    let by_zero = |text: &str| Err(Exception::new(ExceptionKind::ZeroDivision, text.to_owned()));
    Ok(Value::from(match operator {
        Add => left + right,
        Subtract => left - right,
        Multiply if left.bits() + right.bits() > MAX_BITS => {
            return Err(Exception::too_many_digits());
        }
        Multiply => left * right,
        Divide if right.is_zero() => return by_zero("division by zero"),
        Divide => return divide_ints(&left, &right).map(Value::Float),
        FloorDivide | Remainder if right.is_zero() => {
            return by_zero(if operator == FloorDivide {
                "integer division or modulo by zero"
            } else {
                "integer modulo by zero"
            });
        }
        FloorDivide => floor_divide(&left, &right).0,
        Remainder => floor_divide(&left, &right).1,
        Power if right.is_negative() => {
            return floats(Power, int_to_float(&left)?, int_to_float(&right)?);
        }
        Power => return power_of_ints(&left, &right).map(Value::from),
    }))
}

/// Quotient rounded down, and what is left, with the sign of the divisor.
pub(crate) fn floor_divide(left: &BigInt, right: &BigInt) -> (BigInt, BigInt) {
    let (quotient, rest) = (left / right, left % right);
    if !rest.is_zero() && rest.is_negative() != right.is_negative() {
        (quotient - 1, rest + right)
    } else {
        (quotient, rest)
    }
}

fn power_of_ints(base: &BigInt, exponent: &BigInt) -> Outcome<BigInt> {
    if exponent.is_zero() || base.is_one() {
        return Ok(BigInt::one());
    }
    if base.is_zero() {
        return Ok(BigInt::zero());
    }
    if *base == BigInt::from(-1) {
        let is_even = (exponent % 2_i32).is_zero();
        return Ok(BigInt::from(if is_even { 1 } else { -1 }));
    }
    match exponent.to_u64() {
        Some(exponent) if exponent.saturating_mul(base.bits()) <= MAX_BITS => {
            Ok(Pow::pow(base, exponent))
        }
        _ => Err(Exception::too_many_digits()),
    }
}

/// The float next to the quotient, ties to even.
fn divide_ints(left: &BigInt, right: &BigInt) -> Outcome<f64> {
    const EXACT: u64 = 53;
    if left.bits() <= EXACT && right.bits() <= EXACT {
        let (left, right) = (left.to_f64(), right.to_f64());
        return Ok(left.expect("it fits") / right.expect("it fits"));
    }
    let too_large =
        || Exception::new(ExceptionKind::Overflow, "integer division result too large for a float");
    let is_negative = left.is_negative() != right.is_negative();
    let (left, right) = (left.abs(), right.abs());
    if left.is_zero() {
        return Ok(if is_negative { -0.0 } else { 0.0 });
    }
    // The quotient is brought to 66 bits or so with what is left over in the last one, so that one more rounding gives
    // the float.
    let shift = 66 - (left.bits() as i64 - right.bits() as i64);
    let scaled = if shift >= 0 {
        (left << shift as u64, right)
    } else {
        (left, right << shift.unsigned_abs())
    };
    let (mut quotient, rest) = (&scaled.0 / &scaled.1, &scaled.0 % &scaled.1);
    if !rest.is_zero() {
        quotient |= BigInt::one();
    }
    let float = scale_down(&quotient, shift).ok_or_else(too_large)?;
    Ok(if is_negative { -float } else { float })
}

/// `value / 2**shift`, rounded once, ties to even; `None` when it is too large.
fn scale_down(value: &BigInt, shift: i64) -> Option<f64> {
    let bits = value.bits() as i64;
    let exponent = bits - 1 - shift;
    let precision = if exponent < -1022 { 53 - (-1022 - exponent) } else { 53 };
    if precision < 0 {
        return Some(0.0);
    }
    let drop = bits - precision;
    let mut kept = if drop > 0 { value >> drop as u64 } else { value << (-drop) as u64 };
    if drop > 0 {
        let rest = value - (&kept << drop as u64);
        let half = BigInt::one() << (drop - 1) as u64;
        let is_odd = !(&kept % 2_i32).is_zero();
        if rest > half || (rest == half && is_odd) {
            kept += 1_i32;
        }
    }
    let mantissa = kept.to_f64()?;
    let power = drop - shift;
    let float = if power < -1000 {
        mantissa * 2_f64.powi((power + 600) as i32) * 2_f64.powi(-600)
    } else {
        mantissa * 2_f64.powi(power.min(1100) as i32)
    };
    float.is_finite().then_some(float)
}

fn floats(operator: BinaryOperator, left: f64, right: f64) -> Outcome<Value> {
    use BinaryOperator::{Add, Divide, FloorDivide, Multiply, Power, Remainder, Subtract};
    let by_zero = |text: &str| Err(Exception::new(ExceptionKind::ZeroDivision, text.to_owned()));
    Ok(Value::Float(match operator {
        Add => left + right,
        Subtract => left - right,
        Multiply => left * right,
        Divide if right == 0.0 => return by_zero("float division by zero"),
        Divide => left / right,
        FloorDivide if right == 0.0 => return by_zero("float floor division by zero"),
        Remainder if right == 0.0 => return by_zero("float modulo"),
        FloorDivide => floor_and_rest(left, right).0,
        Remainder => floor_and_rest(left, right).1,
        Power => return power_of_floats(left, right),
    }))
}

/// Quotient rounded down and what is left, as CPython's `float_divmod` finds them.
fn floor_and_rest(left: f64, right: f64) -> (f64, f64) {
    let mut rest = left % right;
    let mut quotient = (left - rest) / right;
    if rest != 0.0 {
        if (right < 0.0) != (rest < 0.0) {
            rest += right;
            quotient -= 1.0;
        }
    } else {
        rest = 0_f64.copysign(right);
    }
    let floor = if quotient == 0.0 {
        0_f64.copysign(left / right)
    } else {
        let floor = quotient.floor();
        if quotient - floor > 0.5 { floor + 1.0 } else { floor }
    };
    (floor, rest)
}

fn power_of_floats(base: f64, exponent: f64) -> Outcome<Value> {
    if base == 0.0 && exponent < 0.0 {
        return Err(Exception::new(
            ExceptionKind::ZeroDivision,
            "0.0 cannot be raised to a negative power",
        ));
    }
    let is_finite = base.is_finite() && exponent.is_finite();
    if is_finite && base < 0.0 && exponent != exponent.floor() {
        return complex(BinaryOperator::Power, (base, 0.0), (exponent, 0.0));
    }
    let power = base.powf(exponent);
    if is_finite && power.is_infinite() {
        return Err(out_of_range());
    }
    Ok(Value::Float(power))
}

/// The `OverflowError` that the C library's `ERANGE` becomes.
pub(crate) fn out_of_range() -> Exception {
    Exception::new(ExceptionKind::Overflow, "(34, 'Numerical result out of range')")
}

fn as_complex(value: &Value) -> Outcome<(f64, f64)> {
    match value {
        Value::Complex(real, imaginary) => Ok((*real, *imaginary)),
        _ => Ok((float_operand(value)?, 0.0)),
    }
}

fn complex(operator: BinaryOperator, (a, b): (f64, f64), (c, d): (f64, f64)) -> Outcome<Value> {
    use BinaryOperator::{Add, Divide, FloorDivide, Multiply, Power, Remainder, Subtract};
    let (real, imaginary) = match operator {
        Add => (a + c, b + d),
        Subtract => (a - c, b - d),
        Multiply => (a * c - b * d, a * d + b * c),
        Divide => {
            if c == 0.0 && d == 0.0 {
                return Err(Exception::new(
                    ExceptionKind::ZeroDivision,
                    "complex division by zero",
                ));
            }
            if c.abs() >= d.abs() {
                let ratio = d / c;
                let denominator = c + d * ratio;
                ((a + b * ratio) / denominator, (b - a * ratio) / denominator)
            } else {
                let ratio = c / d;
                let denominator = c * ratio + d;
                ((a * ratio + b) / denominator, (b * ratio - a) / denominator)
            }
        }
        Power => power_of_complex((a, b), (c, d))?,
        FloorDivide | Remainder => {
            let (left, right) = (Value::Complex(a, b), Value::Complex(c, d));
            return Err(unsupported(operator, &left, &right));
        }
    };
    Ok(Value::Complex(real, imaginary))
}

fn power_of_complex((a, b): (f64, f64), (c, d): (f64, f64)) -> Outcome<(f64, f64)> {
    let (real, imaginary) = if d == 0.0 && c == c.floor() && c.abs() <= 100.0 {
        let raised = repeated_product((a, b), c.abs() as u32);
        if c >= 0.0 {
            raised
        } else {
            match complex(BinaryOperator::Divide, (1.0, 0.0), raised)? {
                Value::Complex(real, imaginary) => (real, imaginary),
                _ => unreachable!("a quotient of complex numbers is one"),
            }
        }
    } else if c == 0.0 && d == 0.0 {
        (1.0, 0.0)
    } else if a == 0.0 && b == 0.0 {
        if d != 0.0 || c < 0.0 {
            return Err(Exception::new(
                ExceptionKind::ZeroDivision,
                "0.0 to a negative or complex power",
            ));
        }
        (0.0, 0.0)
    } else {
        let mut length = a.hypot(b).powf(c);
        let angle = b.atan2(a);
        let mut phase = angle * c;
        if d != 0.0 {
            length *= (-angle * d).exp();
            phase += d * a.hypot(b).ln();
        }
        (length * phase.cos(), length * phase.sin())
    };
    if real.is_infinite() || imaginary.is_infinite() {
        return Err(Exception::new(ExceptionKind::Overflow, "complex exponentiation"));
    }
    Ok((real, imaginary))
}

fn repeated_product(base: (f64, f64), exponent: u32) -> (f64, f64) {
    let product = |(a, b): (f64, f64), (c, d): (f64, f64)| (a * c - b * d, a * d + b * c);
    let (mut result, mut power, mut mask) = ((1.0, 0.0), base, 1_u32);
    while mask > 0 && exponent >= mask {
        if exponent & mask != 0 {
            result = product(result, power);
        }
        mask <<= 1;
        power = product(power, power);
    }
    result
}

fn sequences(operator: BinaryOperator, left: &Value, right: &Value) -> Outcome<Value> {
    use BinaryOperator::{Add, Multiply, Remainder, Subtract};
    match (operator, left, right) {
        (Add, Value::Str(one), Value::Str(other)) => {
            check_size(one.len() + other.len())?;
            Ok(Value::from(format!("{one}{other}")))
        }
        (Add, Value::Str(_), other) => Err(Exception::type_error(format_args!(
            "can only concatenate str (not \"{}\") to str",
            other.type_name()
        ))),
        (Add, Value::List(one), Value::List(other)) => {
            check_size(size(left) + size(right))?;
            Ok(Value::list(one.iter().chain(&**other).cloned()))
        }
        (Add, Value::List(_), other) => Err(Exception::type_error(format_args!(
            "can only concatenate list (not \"{}\") to list",
            other.type_name()
        ))),
        (Add, Value::Tuple(one), Value::Tuple(other)) => {
            check_size(size(left) + size(right))?;
            Ok(Value::tuple(one.iter().chain(&**other).cloned()))
        }
        (Add, Value::Tuple(_), other) => Err(Exception::type_error(format_args!(
            "can only concatenate tuple (not \"{}\") to tuple",
            other.type_name()
        ))),
        (Multiply, sequence @ (Value::Str(_) | Value::List(_) | Value::Tuple(_)), times)
        | (Multiply, times, sequence @ (Value::Str(_) | Value::List(_) | Value::Tuple(_))) => {
            match times.as_int() {
                Some(times) => repeat(sequence, &times),
                None => Err(Exception::type_error(format_args!(
                    "can't multiply sequence by non-int of type '{}'",
                    if matches!(left, Value::Str(_) | Value::List(_) | Value::Tuple(_)) {
                        right.type_name()
                    } else {
                        left.type_name()
                    }
                ))),
            }
        }
        (Remainder, Value::Str(_), _) => {
            Err(Exception::refused("formatting with `%` is not carried out here"))
        }
        (Subtract, Value::Set(one), Value::Set(other)) => {
            let mut rest = crate::Set::default();
            for element in one.iter() {
                if !other.contains(element)? {
                    rest.insert(element.clone())?;
                }
            }
            Ok(Value::Set(Arc::new(rest)))
        }
        _ => Err(unsupported(operator, left, right)),
    }
}

/// The size of a value, or one far beyond what is made.
fn size(value: &Value) -> usize {
    value.size_within(MAX_SIZE).unwrap_or(2 * MAX_SIZE)
}

fn repeat(sequence: &Value, times: &BigInt) -> Outcome<Value> {
    let is_none = times.is_negative() || !sequence.is_true();
    let times = if is_none { Some(0) } else { times.to_usize() };
    // What repeats is all but the value itself.
    let of_one = size(sequence) - size_of::<Value>();
    let times = match times {
        Some(times) if times.saturating_mul(of_one) <= MAX_SIZE => times,
        _ => return Err(Exception::refused("the repeated sequence is too long")),
    };
    Ok(match sequence {
        Value::Str(text) => Value::from(text.repeat(times)),
        Value::List(items) => Value::list(std::iter::repeat_n(&**items, times).flatten().cloned()),
        Value::Tuple(items) => {
            Value::tuple(std::iter::repeat_n(&**items, times).flatten().cloned())
        }
        other => other.clone(),
    })
}

/// The whole number next to a float towards zero.
pub(crate) fn truncate(value: f64) -> Outcome<BigInt> {
    if value.is_nan() {
        return Err(Exception::value_error("cannot convert float NaN to integer"));
    }
    BigInt::from_f64(value.trunc()).ok_or_else(|| {
        Exception::new(ExceptionKind::Overflow, "cannot convert float infinity to integer")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repr;

    fn shown(operator: BinaryOperator, left: impl Into<Value>, right: impl Into<Value>) -> String {
        match binary(operator, &left.into(), &right.into()) {
            Ok(value) => repr(&value).unwrap(),
            Err(error) => error.text,
        }
    }

    #[test]
    fn operators_give_what_cpython_gives() {
        use BinaryOperator::{Add, Divide, FloorDivide, Multiply, Power, Remainder};
        for (got, expected) in [
            (shown(Add, 1_i64, 2.5), "3.5"),
            (shown(Add, "a", 1_i64), "can only concatenate str (not \"int\") to str"),
            (shown(Add, 1_i64, "a"), "unsupported operand type(s) for +: 'int' and 'str'"),
            (shown(Divide, 1_i64, 3_i64), "0.3333333333333333"),
            (shown(Divide, 1_i64, 0_i64), "division by zero"),
            (shown(Divide, 1.0, 0_i64), "float division by zero"),
            (shown(FloorDivide, -7_i64, 2_i64), "-4"),
            (shown(Remainder, -7_i64, 2_i64), "1"),
            (shown(Remainder, -7.5, 2_i64), "0.5"),
            (shown(FloorDivide, -7.5, 2_i64), "-4.0"),
            (shown(Power, 2_i64, -1_i64), "0.5"),
            (shown(Power, -8_i64, 1.0 / 3.0), "(1.0000000000000002+1.7320508075688772j)"),
            (shown(Power, 100_i64, 123_456_789.123), "(34, 'Numerical result out of range')"),
            (shown(Power, 0_i64, -1_i64), "0.0 cannot be raised to a negative power"),
            (shown(Multiply, "ab", 3_i64), "'ababab'"),
            (shown(Multiply, "ab", 1.5), "can't multiply sequence by non-int of type 'float'"),
            (
                shown(Multiply, Value::None, 1_i64),
                "unsupported operand type(s) for *: 'NoneType' and 'int'",
            ),
        ] {
            assert_eq!(got, expected);
        }
    }

    #[test]
    fn the_order_of_complex_operands_is_kept() {
        use BinaryOperator::{Divide, Power, Subtract};
        assert_eq!(shown(Subtract, 1_i64, Value::Complex(0.0, 1.0)), "(1-1j)");
        assert_eq!(shown(Subtract, Value::Complex(0.0, 1.0), 1_i64), "(-1+1j)");
        assert_eq!(shown(Divide, 1_i64, Value::Complex(0.0, 1.0)), "-1j");
        assert_eq!(shown(Power, Value::Complex(0.0, 1.0), 2_i64), "(-1+0j)");
    }

    #[test]
    fn large_numbers_divide_exactly_and_huge_ones_raise() {
        let power = |exponent: u32| Value::from(BigInt::from(10).pow(exponent));
        assert_eq!(shown(BinaryOperator::Divide, power(400), power(399)), "10.0");
        assert_eq!(shown(BinaryOperator::Divide, power(1), power(320)), "1e-319");
        let text = "integer division result too large for a float";
        assert_eq!(shown(BinaryOperator::Divide, power(400), 1_i64), text);
        assert!(shown(BinaryOperator::Power, 9_i64, power(9)).starts_with("Exceeds the limit"));
    }
}
