//! Whole numbers.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use num_bigint::BigInt;
use num_traits::ToPrimitive;

/// A whole number, without bounds. One of 64 bits with its sign stands in the value itself, so that it costs no more than
/// a float; larger ones are shared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Int(Form);

/// Every number has one form: what fits is never large.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Form {
    Small(i64),
    Large(Arc<BigInt>),
}

impl Int {
    /// The number, if it has 64 bits with its sign.
    pub fn to_i64(&self) -> Option<i64> {
        match &self.0 {
            Form::Small(number) => Some(*number),
            Form::Large(_) => None,
        }
    }

    /// The number with all its digits.
    pub fn to_big(&self) -> BigInt {
        match &self.0 {
            Form::Small(number) => BigInt::from(*number),
            Form::Large(number) => (**number).clone(),
        }
    }

    /// Whether it is zero.
    pub fn is_zero(&self) -> bool {
        matches!(self.0, Form::Small(0))
    }

    /// How many bits its size has.
    pub fn bits(&self) -> u64 {
        match &self.0 {
            Form::Small(number) => u64::from(u64::BITS - number.unsigned_abs().leading_zeros()),
            Form::Large(number) => number.bits(),
        }
    }

    /// The float next to it, an infinity where it is too large for one.
    pub fn to_f64(&self) -> f64 {
        match &self.0 {
            Form::Small(number) => *number as f64,
            Form::Large(number) => number.to_f64().unwrap_or(f64::INFINITY),
        }
    }
}

impl Default for Int {
    fn default() -> Self {
        Self::from(0_i64)
    }
}

impl Hash for Int {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        match &self.0 {
            Form::Small(number) => number.hash(hasher),
            Form::Large(number) => number.hash(hasher),
        }
    }
}

impl From<i64> for Int {
    fn from(number: i64) -> Self {
        Self(Form::Small(number))
    }
}

impl From<BigInt> for Int {
    fn from(number: BigInt) -> Self {
        match number.to_i64() {
            Some(small) => Self::from(small),
            None => Self(Form::Large(Arc::new(number))),
        }
    }
}

impl From<u64> for Int {
    fn from(number: u64) -> Self {
        i64::try_from(number).map_or_else(|_| Self::from(BigInt::from(number)), Self::from)
    }
}

impl From<usize> for Int {
    fn from(number: usize) -> Self {
        Self::from(number as u64)
    }
}

impl std::fmt::Display for Int {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.0 {
            Form::Small(number) => number.fmt(formatter),
            Form::Large(number) => number.fmt(formatter),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_has_one_form() {
        for number in [0, 1, -1, i64::MAX, i64::MIN] {
            let big = BigInt::from(number);
            assert_eq!(Int::from(big.clone()), Int::from(number));
            assert_eq!(Int::from(number).to_big(), big);
            assert_eq!(Int::from(number).bits(), big.bits());
        }
        let beyond: BigInt = BigInt::from(i64::MAX) + 1_i32;
        assert_eq!(Int::from(beyond.clone()), Int::from(i64::MAX as u64 + 1));
        assert_eq!(Int::from(beyond.clone()).to_i64(), None);
        assert_eq!(Int::from(beyond.clone()).to_string(), beyond.to_string());
        assert_eq!(Int::from(beyond.clone()).bits(), 64);
        assert_eq!(Int::from(BigInt::from(10).pow(400)).to_f64(), f64::INFINITY);
    }
}
