//! Python's `decimal.Decimal`, as far as puzzles need it: finite numbers, rounded half to even.

use std::cmp::Ordering;
use std::fmt;

use num_bigint::{BigInt, BigUint, Sign};
use num_traits::{Signed, Zero};
use spar_python::characters::decimal_value;
use spar_python::text::strip;

/// Digits beyond which a number is cut for arithmetic; what is cut off leaves a digit 1 behind where it is not zero, which
/// keeps every comparison with shorter numbers.
const MOST_DIGITS: usize = 2_000;

/// A finite decimal number with its exponent: `1.50` is 150 with the exponent -2.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Decimal {
    is_negative: bool,
    /// Without leading zeros, `0` for zero.
    digits: String,
    exponent: i64,
}

/// What `decimal.DivisionByZero` says.
pub(crate) const DIVISION_BY_ZERO: &str = "[<class 'decimal.DivisionByZero'>]";

impl Decimal {
    /// `Decimal(text)` of a finite number; absent where that raises, or is infinite or no number.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let plain: Option<String> = strip(text)
            .chars()
            .filter(|&c| c != '_')
            .map(|c| match decimal_value(c) {
                Some(value) => char::from_digit(value, 10),
                None if c.is_ascii() => Some(c),
                None => None,
            })
            .collect();
        let plain = plain?;
        let (is_negative, unsigned) = match plain.strip_prefix(['+', '-']) {
            Some(rest) => (plain.starts_with('-'), rest),
            None => (false, plain.as_str()),
        };
        let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, read_exponent(exponent)?),
            None => (unsigned, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let mut digits = String::with_capacity(mantissa.len());
        digits.push_str(whole);
        digits.push_str(fraction);
        if digits.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
            return None;
        }
        let kept = digits.trim_start_matches('0');
        let digits = if kept.is_empty() { "0".to_owned() } else { kept.to_owned() };
        Some(Self { is_negative, digits, exponent: exponent - fraction.len() as i64 })
    }

    /// A whole number times a power of ten.
    pub(crate) fn scaled(value: impl Into<BigInt>, exponent: i64) -> Self {
        let value: BigInt = value.into();
        let digits = value.magnitude().to_string();
        Self { is_negative: value.is_negative(), digits, exponent }
    }

    pub(crate) fn is_zero(&self) -> bool {
        self.digits == "0"
    }

    /// The exponent of the first digit.
    fn adjusted(&self) -> i64 {
        self.exponent + self.digits.len() as i64 - 1
    }

    /// Whether two numbers are equal, whatever their exponents.
    pub(crate) fn equals(&self, other: &Self) -> bool {
        if self.is_zero() || other.is_zero() {
            return self.is_zero() && other.is_zero();
        }
        self.is_negative == other.is_negative
            && self.adjusted() == other.adjusted()
            && self.digits.trim_end_matches('0') == other.digits.trim_end_matches('0')
    }

    /// The digits as a number with a sign and the exponent, cut to a length that can be computed with.
    fn parts(&self) -> (BigInt, i64) {
        let (kept, exponent) = match self.digits.len() > MOST_DIGITS {
            true => {
                let (kept, rest) = self.digits.split_at(MOST_DIGITS);
                let sticky = if rest.bytes().any(|digit| digit != b'0') { '1' } else { '0' };
                (format!("{kept}{sticky}"), self.exponent + rest.len() as i64 - 1)
            }
            false => (self.digits.clone(), self.exponent),
        };
        let magnitude: BigUint = kept.parse().expect("they are digits");
        let sign = if self.is_negative { Sign::Minus } else { Sign::Plus };
        (BigInt::from_biguint(sign, magnitude), exponent)
    }

    /// Rounded to so many digits.
    fn fixed(coefficient: BigInt, exponent: i64, precision: usize) -> Self {
        let exact = Self::scaled(coefficient.clone(), exponent);
        let Some(excess) = exact.digits.len().checked_sub(precision).filter(|&excess| excess > 0)
        else {
            return exact;
        };
        let rounded = half_even(&coefficient, excess as u32);
        let result = Self::scaled(rounded, exponent + excess as i64);
        // 999.5 has become 1000, one digit too long.
        match result.digits.len() > precision {
            true => Self {
                digits: result.digits[..precision].to_owned(),
                exponent: result.exponent + 1,
                ..result
            },
            false => result,
        }
    }

    /// `self + other` in so many digits.
    pub(crate) fn plus(&self, other: &Self, precision: usize) -> Self {
        let lowest = self.exponent.min(other.exponent);
        if self.is_zero() && other.is_zero() {
            let is_negative = self.is_negative && other.is_negative;
            return Self { is_negative, digits: "0".to_owned(), exponent: lowest };
        }
        for (zero, kept) in [(self, other), (other, self)] {
            if zero.is_zero() {
                let exponent = lowest.max(kept.exponent - precision as i64 - 1);
                let (coefficient, from) = kept.parts();
                return Self::fixed(rescaled(coefficient, from, exponent), exponent, precision);
            }
        }
        let apart = self.adjusted() - other.adjusted();
        if apart.unsigned_abs() > (2 * MOST_DIGITS) as u64 {
            let larger = if apart > 0 { self } else { other };
            let (coefficient, exponent) = larger.parts();
            return Self::fixed(coefficient, exponent, precision);
        }
        let ((a, a_exponent), (b, b_exponent)) = (self.parts(), other.parts());
        let exponent = a_exponent.min(b_exponent);
        let sum = rescaled(a, a_exponent, exponent) + rescaled(b, b_exponent, exponent);
        Self::fixed(sum, exponent, precision)
    }

    /// `-self`, without rounding.
    pub(crate) fn negated(&self) -> Self {
        Self { is_negative: !self.is_negative, ..self.clone() }
    }

    /// `self * other` in so many digits.
    pub(crate) fn times(&self, other: &Self, precision: usize) -> Self {
        let ((a, a_exponent), (b, b_exponent)) = (self.parts(), other.parts());
        let product = Self::fixed(a * b, a_exponent + b_exponent, precision);
        Self { is_negative: self.is_negative != other.is_negative, ..product }
    }

    /// `self / other` in so many digits; absent where the divisor is zero.
    pub(crate) fn over(&self, other: &Self, precision: usize) -> Option<Self> {
        if other.is_zero() {
            return None;
        }
        let is_negative = self.is_negative != other.is_negative;
        let ideal = self.exponent - other.exponent;
        if self.is_zero() {
            return Some(Self { is_negative, digits: "0".to_owned(), exponent: ideal });
        }
        let ((a, a_exponent), (b, b_exponent)) = (self.parts(), other.parts());
        let (a, b) = (a.magnitude().clone(), b.magnitude().clone());
        let shift = b.to_string().len() as i64 - a.to_string().len() as i64 + precision as i64 + 1;
        let mut exponent = a_exponent - b_exponent - shift;
        let power = BigUint::from(10_u32).pow(shift.unsigned_abs() as u32);
        let (a, b) = if shift >= 0 { (a * power, b) } else { (a, b * power) };
        let (mut quotient, rest) = (&a / &b, &a % &b);
        if rest.is_zero() {
            // Exact: zeros are dropped as far as the exponents of the operands have it.
            while exponent < ideal && (&quotient % 10_u32).is_zero() {
                quotient /= 10_u32;
                exponent += 1;
            }
        } else if (&quotient % 5_u32).is_zero() {
            // A last digit that tells ties from what lies above them.
            quotient += 1_u32;
        }
        let result = Self::fixed(quotient.into(), exponent, precision);
        Some(Self { is_negative, ..result })
    }

    /// Whether the distance of two numbers, rounded to so many digits, is at most `10 ** exponent`.
    pub(crate) fn is_within(&self, other: &Self, exponent: i64, precision: usize) -> bool {
        let distance = self.plus(&other.negated(), precision);
        match distance.is_zero() {
            true => true,
            false => match distance.adjusted().cmp(&exponent) {
                Ordering::Less => true,
                Ordering::Equal => distance.digits.trim_end_matches('0') == "1",
                Ordering::Greater => false,
            },
        }
    }

    /// Rounded to so many significant digits, the exponent of the last one included where rounding carries.
    pub(crate) fn significant(&self, digits: i64) -> Self {
        let to = self.adjusted() - digits + 1;
        let (coefficient, exponent) = self.parts();
        Self::scaled(rescaled(coefficient, exponent, to), to)
    }
}

/// The exponent behind the `e`; more than 18 digits are beyond any that Python takes.
fn read_exponent(text: &str) -> Option<i64> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let kept = digits.trim_start_matches('0');
    let size: i64 = match kept.len() {
        0 => 0,
        1..=18 => kept.parse().ok()?,
        _ => return None,
    };
    Some(if text.starts_with('-') { -size } else { size })
}

/// A coefficient for another exponent, rounded where that is higher.
fn rescaled(coefficient: BigInt, from: i64, to: i64) -> BigInt {
    match from.cmp(&to) {
        Ordering::Equal => coefficient,
        Ordering::Greater => coefficient * BigInt::from(10).pow((from - to) as u32),
        Ordering::Less => half_even(&coefficient, (to - from).min(1 << 20) as u32),
    }
}

/// A number without its last digits, rounded half to even.
fn half_even(value: &BigInt, dropped: u32) -> BigInt {
    let unit = BigUint::from(10_u32).pow(dropped);
    let (quotient, rest) = (value.magnitude() / &unit, value.magnitude() % &unit);
    let twice = rest * 2_u32;
    let up = twice > unit || (twice == unit && quotient.bit(0));
    let rounded = if up { quotient + 1_u32 } else { quotient };
    BigInt::from_biguint(if rounded.is_zero() { Sign::NoSign } else { value.sign() }, rounded)
}

impl fmt::Display for Decimal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_negative {
            formatter.write_str("-")?;
        }
        let length = self.digits.len() as i64;
        let left = self.exponent + length;
        let is_plain = self.exponent <= 0 && left > -6;
        let dot = if is_plain { left } else { 1 };
        if dot <= 0 {
            write!(formatter, "0.{}{}", "0".repeat(-dot as usize), self.digits)?;
        } else if dot >= length {
            write!(formatter, "{}{}", self.digits, "0".repeat((dot - length) as usize))?;
        } else {
            let (whole, fraction) = self.digits.split_at(dot as usize);
            write!(formatter, "{whole}.{fraction}")?;
        }
        if left != dot { write!(formatter, "E{:+}", left - dot) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decimal(text: &str) -> Decimal {
        Decimal::parse(text).unwrap()
    }

    #[test]
    fn numbers_are_read_and_written_as_python_does() {
        for text in ["0", "1.50", "-0.001", "1E+3", "1.23E-9", "0E-7", "0.000001", "12345"] {
            assert_eq!(decimal(text).to_string(), text);
        }
        assert_eq!(decimal(" +_1_0.5e-1 ").to_string(), "1.05");
        assert_eq!(decimal("٣.٥").to_string(), "3.5");
        for text in ["", ".", "1e", "nan", "inf", "1 0", "0x1", "1e9999999999999999999"] {
            assert!(Decimal::parse(text).is_none(), "{text}");
        }
        assert!(decimal("100").equals(&decimal("1e2")) && decimal("-0").equals(&decimal("0.0")));
        assert!(!decimal("1e999999999999999999").equals(&decimal("1")));
    }

    #[test]
    fn arithmetic_rounds_half_to_even_and_keeps_exponents() {
        let (a, b) = (decimal("7.250"), decimal("2.9"));
        assert_eq!(a.plus(&b, 12).to_string(), "10.150");
        assert_eq!(a.times(&b, 3).to_string(), "21.0");
        assert_eq!(a.over(&b, 12).unwrap().to_string(), "2.50");
        assert_eq!(decimal("2").over(&decimal("3"), 5).unwrap().to_string(), "0.66667");
        assert_eq!(decimal("0.00").over(&decimal("-3.5"), 5).unwrap().to_string(), "-0.0");
        assert_eq!(decimal("99.95").plus(&decimal("0.05"), 3).to_string(), "100");
        assert_eq!(decimal("99.96").plus(&decimal("0.00"), 3).to_string(), "100");
        assert!(a.over(&decimal("0"), 5).is_none());
        assert!(decimal("1.001").is_within(&decimal("1"), -3, 12));
        assert!(!decimal("1.0011").is_within(&decimal("1"), -3, 12));
        assert!(!decimal("1e999999").is_within(&decimal("1"), -3, 12));
        assert!(decimal("9.996").significant(3).equals(&decimal("10.01").significant(3)));
    }
}
