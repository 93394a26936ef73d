//! Identities of rational functions, decided in a prime field.
//!
//! A formula of numbers, variables, sums, products, quotients and whole powers is a quotient of two polynomials `n / d`. Two of
//! them are equal if and only if `n₁ d₂ - n₂ d₁` is the zero polynomial; a polynomial of degree `k` that is not zero vanishes at
//! a random point of a field with `p` elements with probability `k / p` at most (Schwartz 1980, Zippel 1979). Here `p = 2⁶¹ - 1`,
//! and several points are asked: nothing is expanded, so that `(x + 1)^1000` costs ten multiplications. π and e are transcendental and
//! count as variables.

use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::{Signed, ToPrimitive};

use crate::expression::{Constant, Expression};
use crate::{Unclear, exact};

const P: u64 = (1 << 61) - 1;

/// Numerator and denominator at a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fraction {
    pub(crate) above: u64,
    pub(crate) below: u64,
}

impl Fraction {
    /// Whether two are equal.
    pub(crate) fn is_same(self, other: Self) -> bool {
        times(self.above, other.below) == times(other.above, self.below)
    }

    fn plus(self, other: Self) -> Self {
        Self {
            above: plus(times(self.above, other.below), times(other.above, self.below)),
            below: times(self.below, other.below),
        }
    }

    fn times(self, other: Self) -> Self {
        Self { above: times(self.above, other.above), below: times(self.below, other.below) }
    }
}

/// A formula at a point, which `seed` chooses; `None` where it is no quotient of polynomials.
pub(crate) fn at(expression: &Expression, seed: u64) -> Result<Option<Fraction>, Unclear> {
    use Expression as E;
    let found = match expression {
        E::Number { value, .. } => of_rational(value),
        E::Variable(name) => Some(Fraction { above: point(name, seed), below: 1 }),
        E::Constant(Constant::Pi) => Some(Fraction { above: point("\\pi", seed), below: 1 }),
        E::Constant(Constant::E) => Some(Fraction { above: point("\\e", seed), below: 1 }),
        E::Degrees(it) => at(it, seed)?,
        E::Percent(it) => at(it, seed)?.map(|it| Fraction { below: times(it.below, 100), ..it }),
        E::Negative(it) => at(it, seed)?.map(|it| Fraction { above: negative(it.above), ..it }),
        E::Sum(items) => fold(items, seed, Fraction { above: 0, below: 1 }, Fraction::plus)?,
        E::Product(items) => fold(items, seed, Fraction { above: 1, below: 1 }, Fraction::times)?,
        E::Quotient(above, below) => match (at(above, seed)?, at(below, seed)?) {
            (_, Some(below)) if below.above == 0 => return Err(Unclear::DivisionByZero),
            (Some(above), Some(below)) => {
                Some(above.times(Fraction { above: below.below, below: below.above }))
            }
            _ => None,
        },
        E::Power(base, exponent) => match (at(base, seed)?, exact::value(exponent)?) {
            (Some(base), Some(exponent)) if exponent.is_integer() => {
                let times = exponent.numer().magnitude().to_u64().ok_or(Unclear::TooLarge)?;
                let raised =
                    Fraction { above: raise(base.above, times), below: raise(base.below, times) };
                match exponent.is_negative() {
                    false => Some(raised),
                    true if raised.above == 0 => return Err(Unclear::DivisionByZero),
                    true => Some(Fraction { above: raised.below, below: raised.above }),
                }
            }
            _ => None,
        },
        E::Root { .. } | E::Call(..) => match exact::value(expression)? {
            Some(value) => of_rational(&value),
            None => None,
        },
        _ => None,
    };
    Ok(found)
}

fn fold(
    items: &[Expression],
    seed: u64,
    start: Fraction,
    join: fn(Fraction, Fraction) -> Fraction,
) -> Result<Option<Fraction>, Unclear> {
    let mut so_far = start;
    for item in items {
        let Some(item) = at(item, seed)? else { return Ok(None) };
        so_far = join(so_far, item);
    }
    Ok(Some(so_far))
}

/// The element of the field that a name stands for at a point.
fn point(name: &str, seed: u64) -> u64 {
    let hashed = name.bytes().fold(seed, |so_far, byte| mix(so_far ^ u64::from(byte)));
    mix(hashed) % P
}

/// SplitMix64's finaliser.
pub(crate) fn mix(mut z: u64) -> u64 {
    z = z.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn of_rational(value: &BigRational) -> Option<Fraction> {
    let residue = |number: &BigInt| {
        let p = BigInt::from(P);
        (((number % &p) + &p) % &p).to_u64()
    };
    let (above, below) = (residue(value.numer())?, residue(value.denom())?);
    (below != 0).then_some(Fraction { above, below })
}

fn plus(a: u64, b: u64) -> u64 {
    (a + b) % P
}

fn negative(a: u64) -> u64 {
    (P - a) % P
}

fn times(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    u64::try_from(product % u128::from(P)).unwrap_or_default()
}

fn raise(mut base: u64, mut exponent: u64) -> u64 {
    let mut found = 1;
    while exponent > 0 {
        if exponent & 1 == 1 {
            found = times(found, base);
        }
        base = times(base, base);
        exponent >>= 1;
    }
    found
}
