//! Identities of rational functions with square roots, decided in a finite field.
//!
//! A formula of numbers, variables, sums, products, quotients and whole powers is a quotient of two polynomials `n / d`. Two of
//! them are equal if and only if `n₁ d₂ - n₂ d₁` is the zero polynomial; a polynomial of degree `k` that is not zero vanishes at
//! a random point of a field with `p` elements with probability `k / p` at most (Schwartz 1980, Zippel 1979). Here `p = 2⁶¹ - 1`,
//! and several points are asked: nothing is expanded, so that `(x + 1)^1000` costs ten multiplications. π and e are transcendental and
//! count as variables.
//!
//! Square roots of whole numbers and the imaginary unit have their place where `p ≡ 3 (mod 4)`: in `F_p[i]`, in which every number
//! of `F_p` is a square. The roots of -1 and of the primes are independent over the rationals, so that each may stand for either of the
//! two, and what is true of them is true of what stands for them: two equal formulas are never told apart, which rounding does where
//! values differ by their last digits alone (`(√2 - 17576)³` and the same plus one).

use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::{Signed, ToPrimitive, Zero};

use crate::expression::{Constant, Expression};
use crate::{Unclear, exact};

const P: u64 = (1 << 61) - 1;

/// Up to where the prime factors of what stands under a root are looked for.
const MAX_DIVISOR: u64 = 2_000;

/// An element `re + im i` of the field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Element {
    re: u64,
    im: u64,
}

impl Element {
    const ZERO: Self = Self::real(0);
    const ONE: Self = Self::real(1);
    const I: Self = Self { re: 0, im: 1 };

    const fn real(re: u64) -> Self {
        Self { re, im: 0 }
    }

    fn plus(self, other: Self) -> Self {
        Self { re: plus(self.re, other.re), im: plus(self.im, other.im) }
    }

    fn times(self, other: Self) -> Self {
        let minus = negative(times(self.im, other.im));
        Self {
            re: plus(times(self.re, other.re), minus),
            im: plus(times(self.re, other.im), times(self.im, other.re)),
        }
    }

    fn negative(self) -> Self {
        Self { re: negative(self.re), im: negative(self.im) }
    }

    fn raised(self, mut exponent: u64) -> Self {
        let (mut base, mut found) = (self, Self::ONE);
        while exponent > 0 {
            if exponent & 1 == 1 {
                found = found.times(base);
            }
            base = base.times(base);
            exponent >>= 1;
        }
        found
    }

    /// One of the two roots of a prime: of a square of `F_p` one in `F_p`, of another number `i` times the root of its negative.
    fn root_of_prime(prime: u64) -> Self {
        let number = Self::real(prime % P);
        let root = number.raised(P.div_ceil(4));
        if root.times(root) == number {
            return root;
        }
        number.negative().raised(P.div_ceil(4)).times(Self::I)
    }

    /// The root of a whole number; absent where it has prime factors that are not found.
    fn root(mut number: u64) -> Option<Self> {
        if number == 0 {
            return Some(Self::ZERO);
        }
        let mut found = Self::ONE;
        let mut divisor = 2;
        while divisor * divisor <= number && divisor <= MAX_DIVISOR {
            while number.is_multiple_of(divisor * divisor) {
                found = found.times(Self::real(divisor));
                number /= divisor * divisor;
            }
            if number.is_multiple_of(divisor) {
                found = found.times(Self::root_of_prime(divisor));
                number /= divisor;
            }
            divisor += 1;
        }
        match number {
            1 => Some(found),
            prime if prime <= MAX_DIVISOR * MAX_DIVISOR => {
                Some(found.times(Self::root_of_prime(prime)))
            }
            square if square.isqrt().pow(2) == square => {
                Some(found.times(Element::real(square.isqrt() % P)))
            }
            _ => None,
        }
    }
}

/// Numerator and denominator at a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fraction {
    above: Element,
    below: Element,
}

impl Fraction {
    const ONE: Self = Self::whole(Element::ONE);

    const fn whole(above: Element) -> Self {
        Self { above, below: Element::ONE }
    }

    /// Whether two are equal.
    pub(crate) fn is_same(self, other: Self) -> bool {
        self.above.times(other.below) == other.above.times(self.below)
    }

    fn plus(self, other: Self) -> Self {
        Self {
            above: self.above.times(other.below).plus(other.above.times(self.below)),
            below: self.below.times(other.below),
        }
    }

    fn times(self, other: Self) -> Self {
        Self { above: self.above.times(other.above), below: self.below.times(other.below) }
    }

    fn inverse(self) -> Result<Self, Unclear> {
        match self.above == Element::ZERO {
            true => Err(Unclear::DivisionByZero),
            false => Ok(Self { above: self.below, below: self.above }),
        }
    }

    fn raised(self, exponent: &BigInt) -> Result<Self, Unclear> {
        let times = exponent.magnitude().to_u64().ok_or(Unclear::TooLarge)?;
        let raised = Self { above: self.above.raised(times), below: self.below.raised(times) };
        if exponent.is_negative() { raised.inverse() } else { Ok(raised) }
    }
}

/// A formula at a point, which `seed` chooses; `None` where it is no quotient of polynomials.
pub(crate) fn at(expression: &Expression, seed: u64) -> Result<Option<Fraction>, Unclear> {
    use Expression as E;
    let variable = |name: &str| Some(Fraction::whole(Element::real(point(name, seed))));
    let found = match expression {
        E::Number { value, .. } => of_rational(value),
        E::Variable(name) => variable(name),
        E::Constant(Constant::Pi) => variable("\\pi"),
        E::Constant(Constant::E) => variable("\\e"),
        E::Constant(Constant::I) => Some(Fraction::whole(Element::I)),
        E::Degrees(it) => at(it, seed)?,
        E::Percent(it) => at(it, seed)?.map(|it| {
            let hundredth = Fraction { below: Element::real(100), ..Fraction::ONE };
            it.times(hundredth)
        }),
        E::Negative(it) => at(it, seed)?.map(|it| Fraction { above: it.above.negative(), ..it }),
        E::Sum(items) => fold(items, seed, Fraction::whole(Element::ZERO), Fraction::plus)?,
        E::Product(items) => fold(items, seed, Fraction::ONE, Fraction::times)?,
        E::Quotient(above, below) => match (at(above, seed)?, at(below, seed)?) {
            (above, Some(below)) => {
                let inverse = below.inverse()?;
                above.map(|above| above.times(inverse))
            }
            _ => None,
        },
        E::Power(base, exponent) => match exact::value(exponent)? {
            Some(exponent) if exponent.is_integer() => match at(base, seed)? {
                Some(base) => Some(base.raised(exponent.numer())?),
                None => None,
            },
            Some(exponent) if is_half(&exponent) => match root(base)? {
                Some(root) => Some(root.raised(exponent.numer())?),
                None => None,
            },
            _ => None,
        },
        E::Root { .. } | E::Call(..) => match (exact::value(expression)?, expression) {
            (Some(value), _) => of_rational(&value),
            (None, E::Root { index, of }) => match exact::value(index)? {
                Some(index) if !index.is_zero() && is_half(&index.recip()) => match root(of)? {
                    Some(root) => Some(root.raised(index.recip().numer())?),
                    None => None,
                },
                _ => None,
            },
            _ => None,
        },
        _ => None,
    };
    Ok(found)
}

/// Whether it is a half of an odd number.
fn is_half(exponent: &BigRational) -> bool {
    *exponent.denom() == BigInt::from(2)
}

/// The square root of what is a fraction, the one that is written `√`: positive, or `i` times what is.
fn root(expression: &Expression) -> Result<Option<Fraction>, Unclear> {
    let Some(value) = exact::value(expression)? else { return Ok(None) };
    // √(a / b) = √(a b) / b for positive b.
    let whole = value.numer().magnitude() * value.denom().magnitude();
    let (Some(root), Some(below)) = (
        whole.to_u64().and_then(Element::root),
        of_rational(&BigRational::from(value.denom().clone())),
    ) else {
        return Ok(None);
    };
    let turned = if value.is_negative() { root.times(Element::I) } else { root };
    Ok(Some(Fraction::whole(turned).times(below.inverse()?)))
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
    (below != 0).then_some(Fraction { above: Element::real(above), below: Element::real(below) })
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn roots_of_what_has_large_factors_are_not_told() {
        assert_eq!(Element::root(2_003 * 2_011), None);
        assert!(Element::root(2 * 3 * 1_999 * 1_999 * 3_999_971).is_some());
        assert!(Element::root(u64::MAX - 58).is_none());
    }

    proptest! {
        #[test]
        fn a_root_is_one_and_those_of_factors_make_it(a in 0..100_000_u64, b in 0..1_000_u64) {
            let root = |number| Element::root(number).unwrap();
            prop_assert_eq!(root(a).times(root(a)), Element::real(a));
            prop_assert_eq!(root(a).times(root(b)), root(a * b));
            prop_assert_eq!(root(a * a), Element::real(a % P));
        }
    }
}
