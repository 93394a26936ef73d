//! Binary floating-point numbers of any precision, as mpmath 1.3 has them.

use num_bigint::{BigInt, BigUint, Sign};
use num_traits::{One, Pow, Signed, ToPrimitive, Zero};

/// A number `mantissa * 2**exponent`, or what is no number.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum BinaryFloat {
    Finite {
        mantissa: BigInt,
        exponent: i64,
    },
    /// Infinity; negative if so said.
    Infinite {
        is_negative: bool,
    },
    NotANumber,
}

/// How a number is brought to a precision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rounding {
    /// To the nearest, ties to even.
    Nearest,
    /// Towards zero.
    Down,
}

impl BinaryFloat {
    pub(crate) fn zero() -> Self {
        Self::Finite { mantissa: BigInt::zero(), exponent: 0 }
    }

    /// `mantissa * 2**exponent` in so many bits.
    pub(crate) fn rounded(mantissa: BigInt, exponent: i64, bits: u64, rounding: Rounding) -> Self {
        let excess = mantissa.bits().saturating_sub(bits);
        if excess == 0 {
            return Self::Finite { mantissa, exponent };
        }
        let size = mantissa.magnitude();
        let mut kept: BigUint = size >> excess;
        if rounding == Rounding::Nearest {
            let rest = size - (&kept << excess);
            let half = BigUint::one() << (excess - 1);
            let is_odd = !(&kept % 2_u32).is_zero();
            if rest > half || (rest == half && is_odd) {
                kept += 1_u32;
            }
        }
        let mantissa = BigInt::from_biguint(mantissa.sign(), kept);
        Self::Finite { mantissa, exponent: exponent + excess as i64 }
    }

    pub(crate) fn of_int(value: BigInt) -> Self {
        Self::Finite { mantissa: value, exponent: 0 }
    }

    pub(crate) fn of_f64(value: f64) -> Self {
        if value.is_nan() {
            return Self::NotANumber;
        }
        if value.is_infinite() {
            return Self::Infinite { is_negative: value < 0.0 };
        }
        let bits = value.to_bits();
        let (fraction, power) = (bits & ((1 << 52) - 1), (bits >> 52 & 0x7ff) as i64);
        let (size, exponent) =
            if power == 0 { (fraction, -1074) } else { (fraction | 1 << 52, power - 1075) };
        let mantissa = BigInt::from(size);
        Self::Finite { mantissa: if value < 0.0 { -mantissa } else { mantissa }, exponent }
    }

    /// `numerator / denominator`, rounded to the nearest; the denominator is not zero.
    pub(crate) fn of_ratio(numerator: &BigInt, denominator: &BigInt, bits: u64) -> Self {
        let one = Self::of_int(numerator.clone());
        one.divided_by(&Self::of_int(denominator.clone()), bits).unwrap_or(Self::NotANumber)
    }

    pub(crate) fn is_zero(&self) -> bool {
        matches!(self, Self::Finite { mantissa, .. } if mantissa.is_zero())
    }

    fn is_nan(&self) -> bool {
        matches!(self, Self::NotANumber)
    }

    pub(crate) fn is_negative(&self) -> bool {
        match self {
            Self::Finite { mantissa, .. } => mantissa.is_negative(),
            Self::Infinite { is_negative } => *is_negative,
            Self::NotANumber => false,
        }
    }

    pub(crate) fn negated(&self) -> Self {
        match self {
            Self::Finite { mantissa, exponent } => {
                Self::Finite { mantissa: -mantissa, exponent: *exponent }
            }
            Self::Infinite { is_negative } => Self::Infinite { is_negative: !is_negative },
            Self::NotANumber => Self::NotANumber,
        }
    }

    /// The exact product.
    pub(crate) fn times(&self, other: &Self) -> Self {
        match (self, other) {
            (Self::Infinite { .. }, _) | (_, Self::Infinite { .. })
                if !self.is_zero() && !other.is_zero() && !self.is_nan() && !other.is_nan() =>
            {
                Self::Infinite { is_negative: self.is_negative() != other.is_negative() }
            }
            (
                Self::Finite { mantissa: a, exponent: e },
                Self::Finite { mantissa: b, exponent: f },
            ) => Self::Finite { mantissa: a * b, exponent: e + f },
            _ => Self::NotANumber,
        }
    }

    /// The sum, rounded down.
    pub(crate) fn plus(&self, other: &Self, bits: u64) -> Self {
        match (self, other) {
            (Self::Infinite { is_negative: a }, Self::Infinite { is_negative: b }) if a != b => {
                Self::NotANumber
            }
            (Self::Infinite { .. }, Self::Infinite { .. } | Self::Finite { .. }) => self.clone(),
            (Self::Finite { .. }, Self::Infinite { .. }) => other.clone(),
            (
                Self::Finite { mantissa: a, exponent: e },
                Self::Finite { mantissa: b, exponent: f },
            ) => {
                let low = (*e).min(*f);
                let sum = (a << (e - low) as u64) + (b << (f - low) as u64);
                Self::rounded(sum, low, bits, Rounding::Down)
            }
            _ => Self::NotANumber,
        }
    }

    /// The quotient, rounded to the nearest; `None` for a division by zero.
    pub(crate) fn divided_by(&self, other: &Self, bits: u64) -> Option<Self> {
        if other.is_zero() {
            return None;
        }
        Some(match (self, other) {
            (Self::NotANumber, _) | (_, Self::NotANumber) => Self::NotANumber,
            (Self::Infinite { .. }, Self::Infinite { .. }) => Self::NotANumber,
            (Self::Infinite { is_negative }, other) => {
                Self::Infinite { is_negative: *is_negative != other.is_negative() }
            }
            (_, Self::Infinite { .. }) => Self::zero(),
            (
                Self::Finite { mantissa: a, exponent: e },
                Self::Finite { mantissa: b, exponent: f },
            ) => {
                if a.is_zero() {
                    return Some(Self::zero());
                }
                let extra = (bits as i64 - a.bits() as i64 + b.bits() as i64 + 5).max(5);
                let sign = if a.sign() == b.sign() { Sign::Plus } else { Sign::Minus };
                let scaled = a.magnitude() << extra as u64;
                // What is left over is kept in one more bit.
                let mut quotient = (&scaled / b.magnitude()) << 1_u32;
                if !(scaled % b.magnitude()).is_zero() {
                    quotient += 1_u32;
                }
                let mantissa = BigInt::from_biguint(sign, quotient);
                Self::rounded(mantissa, e - f - extra - 1, bits, Rounding::Nearest)
            }
        })
    }

    /// `to_str(number, digits)` of mpmath: digits cut off three places behind the last, then rounded up at five.
    pub(crate) fn written(&self, digits: usize) -> String {
        let (sign, size, exponent) = match self {
            Self::NotANumber => return "nan".to_owned(),
            Self::Infinite { is_negative: true } => return "-inf".to_owned(),
            Self::Infinite { is_negative: false } => return "+inf".to_owned(),
            Self::Finite { mantissa, .. } if mantissa.is_zero() => return "0.0".to_owned(),
            Self::Finite { mantissa, exponent } => {
                // Mantissas of mpmath are odd.
                let zeros = mantissa.trailing_zeros().unwrap_or(0);
                let sign = if mantissa.is_negative() { "-" } else { "" };
                (sign, mantissa.magnitude() >> zeros, exponent + zeros as i64)
            }
        };
        let (all, mut place) = decimal_digits(&size, exponent, digits + 3);
        let mut shown: String = all.chars().take(digits).collect();
        if all.as_bytes().get(digits).is_some_and(|digit| *digit >= b'5') {
            match shown.rfind(|digit| digit != '9') {
                Some(at) => {
                    let raised = char::from(shown.as_bytes()[at] + 1);
                    shown = format!("{}{raised}{}", &shown[..at], "0".repeat(digits - at - 1));
                }
                None => {
                    shown = format!("1{}", "0".repeat(digits - 1));
                    place += 1;
                }
            }
        }
        let lowest = -((digits / 3) as i64).max(5);
        let mut split = 1;
        if lowest < place && place < digits as i64 {
            if place < 0 {
                shown = "0".repeat(place.unsigned_abs() as usize) + &shown;
            } else {
                split = place as usize + 1;
                shown += &"0".repeat(split.saturating_sub(shown.len()));
            }
            place = 0;
        }
        let text = format!("{}.{}", &shown[..split], &shown[split..]);
        let text = text.trim_end_matches('0');
        let zero = if text.ends_with('.') { "0" } else { "" };
        match place {
            0 => format!("{sign}{text}{zero}"),
            1.. => format!("{sign}{text}{zero}e+{place}"),
            _ => format!("{sign}{text}{zero}e{place}"),
        }
    }
}

/// Digits of `size * 2**exponent`, cut off, and the place of the first: `d.ddd * 10**place`.
fn decimal_digits(size: &BigUint, exponent: i64, digits: usize) -> (String, i64) {
    let bits_of_ten = 10_f64.log2();
    let bits = (digits as f64 * bits_of_ten) as i64 + 10;
    let length = size.bits() as i64;
    let fixed_bits = (bits - exponent - length).max(0);
    let fixed_digits = (fixed_bits as f64 / bits_of_ten + 0.5) as i64;
    let shift = exponent + fixed_bits;
    let fixed = if shift >= 0 { size << shift as u64 } else { size >> shift.unsigned_abs() };
    let power: BigUint = Pow::pow(BigUint::from(10_u32), fixed_digits.unsigned_abs());
    let decimal = (fixed * power) >> fixed_bits as u64;
    let text = decimal.to_string();
    let place = text.len() as i64 - fixed_digits - 1;
    (text, place)
}

/// Bits of a precision in decimal digits.
pub(crate) fn bits_of(digits: i64) -> u64 {
    let bits = ((digits as f64 + 1.0) * 3.321_928_094_887_362_6).round_ties_even();
    bits.max(1.0).to_u64().unwrap_or(u64::MAX)
}

/// The digits in which a number of so many bits is shown so that it can be read back.
pub(crate) fn shown_digits(bits: u64) -> usize {
    let digits = ((bits as f64 / 3.321_928_094_887_362_6).round_ties_even() - 1.0).max(1.0);
    if digits == 15.0 { 17 } else { digits as usize + 3 }
}
