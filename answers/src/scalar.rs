//! Whether two values are equal.

use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::{Signed, ToPrimitive, Zero};

use crate::expression::{Constant, Expression};
use crate::numeric::{self, Closeness};
use crate::{Unclear, exact, identity};

/// Digits behind the decimal point to which a number that was written with one is compared.
const DIGITS: u32 = 6;
/// At how many points identities are tried.
const POINTS: u64 = 3;
/// In how many rounds values are compared numerically, and how many of them have to be conclusive.
const ROUNDS: u64 = 8;
const CONCLUSIVE: u32 = 3;

/// Whether two values are equal.
///
/// A number that was written with a decimal point and stands alone equals what rounds to the same six digits behind it, unless
/// that is a whole number; where these are all nought, what has the same first six digits that are not. `10%` is 10 as well as a tenth. All else is equal by value, for all values of its variables.
pub(crate) fn are_equal(a: &Expression, b: &Expression) -> Result<bool, Unclear> {
    if let (Some(a), Some(b)) = (infinite(a), infinite(b)) {
        return Ok(a == b);
    }
    if infinite(a).is_some() || infinite(b).is_some() {
        return Ok(false);
    }
    let (x, y) = (exactly(a)?, exactly(b)?);
    if let (Some(x), Some(y)) = (&x, &y) {
        return Ok(x == y || are_rounded(a, b, x, y) || are_percent(a, b));
    }
    if is_decimal(a) || is_decimal(b) {
        return are_near(a, b, x.as_ref(), y.as_ref());
    }
    if let Some(decided) = by_identity(a, b)? {
        return Ok(decided);
    }
    numerically(a, b)
}

/// The value without rounding, if there is one.
fn exactly(expression: &Expression) -> Result<Option<BigRational>, Unclear> {
    match exact::value(expression) {
        Err(Unclear::TooLarge) => Ok(None),
        other => other,
    }
}

/// Whether it is +∞, or -∞; absent where it is neither.
pub(crate) fn infinite(expression: &Expression) -> Option<bool> {
    match expression {
        Expression::Constant(Constant::Infinity) => Some(true),
        Expression::Negative(it) => infinite(it).map(|is_positive| !is_positive),
        _ => None,
    }
}

/// Whether it is one number with a decimal point, a percentage or with a sign perhaps.
fn is_decimal(expression: &Expression) -> bool {
    match expression {
        Expression::Number { is_decimal, .. } => *is_decimal,
        Expression::Percent(it) | Expression::Degrees(it) | Expression::Negative(it) => {
            is_decimal(it)
        }
        _ => false,
    }
}

fn are_rounded(a: &Expression, b: &Expression, x: &BigRational, y: &BigRational) -> bool {
    let is_rough = is_decimal(a) || is_decimal(b);
    is_rough && !is_whole(a, x) && !is_whole(b, y) && are_same_digits(x, y)
}

/// Whether two numbers round to the same digits behind the point. Where these are all 0, the first six others have to be the
/// same, so that the numbers differ by five millionths at the most: otherwise `0.0` would be every small number.
fn are_same_digits(x: &BigRational, y: &BigRational) -> bool {
    let (a, b) = (rounded(x), rounded(y));
    a == b
        && (!a.is_zero()
            || (x - y).abs() * BigInt::from(10_u32.pow(DIGITS)) <= y.abs() * BigInt::from(5))
}

/// Whether it is a whole number that was written as one.
fn is_whole(expression: &Expression, value: &BigRational) -> bool {
    value.is_integer() && !is_decimal(expression)
}

fn rounded(value: &BigRational) -> BigInt {
    let scaled = value * BigInt::from(10_u32.pow(DIGITS));
    scaled.round().to_integer()
}

/// The number of per cent where it is a whole one.
fn per_cent(expression: &Expression) -> Option<BigRational> {
    match expression {
        Expression::Percent(it) => match &**it {
            Expression::Number { value, is_decimal: false } if value.is_integer() => {
                Some(value.clone())
            }
            _ => None,
        },
        Expression::Negative(it) => per_cent(it).map(|it| -it),
        _ => None,
    }
}

fn are_percent(a: &Expression, b: &Expression) -> bool {
    let whole = |it: &Expression| match exact::value(it) {
        Ok(Some(value)) if is_whole(it, &value) => Some(value),
        _ => None,
    };
    match (per_cent(a), per_cent(b)) {
        (Some(a), None) => whole(b) == Some(a),
        (None, Some(b)) => whole(a) == Some(b),
        _ => false,
    }
}

/// A number with a decimal point against what is no fraction.
fn are_near(
    a: &Expression,
    b: &Expression,
    x: Option<&BigRational>,
    y: Option<&BigRational>,
) -> Result<bool, Unclear> {
    if !(a.is_constant() && b.is_constant()) {
        return Ok(false);
    }
    let whole = |it: &Expression, value: Option<&BigRational>| {
        value.is_some_and(|value| is_whole(it, value))
    };
    if whole(a, x) || whole(b, y) {
        return numerically(a, b);
    }
    let number = |it: &Expression| -> Result<Option<BigRational>, Unclear> {
        let found = numeric::value(it, 0)?;
        if found.value.im.abs() > 8.0 * found.error {
            return Ok(None);
        }
        match found.error < 1e-7 {
            true => Ok(BigRational::from_float(found.value.re)),
            false => Err(Unclear::NotComputed { what: "its digits" }),
        }
    };
    let of = |it: &Expression, value: Option<&BigRational>| match value {
        Some(value) => Ok(Some(value.clone())),
        None => number(it),
    };
    let (Some(a), Some(b)) = (of(a, x)?, of(b, y)?) else { return Ok(false) };
    Ok(are_same_digits(&a, &b))
}

/// Whether two rational functions are one; absent where they are none, or too large.
fn by_identity(a: &Expression, b: &Expression) -> Result<Option<bool>, Unclear> {
    let mut all = true;
    for seed in 0..POINTS {
        let found = match (identity::at(a, seed), identity::at(b, seed)) {
            (Err(Unclear::TooLarge), _) | (_, Err(Unclear::TooLarge)) => return Ok(None),
            (a, b) => (a?, b?),
        };
        let (Some(a), Some(b)) = found else { return Ok(None) };
        all &= a.is_same(b);
    }
    Ok(Some(all))
}

fn numerically(a: &Expression, b: &Expression) -> Result<bool, Unclear> {
    let is_constant = a.is_constant() && b.is_constant();
    let (rounds, needed) = if is_constant { (1, 1) } else { (ROUNDS, CONCLUSIVE) };
    let (mut same, mut unclear) = (0, None);
    for round in 0..rounds {
        let pair = (numeric::value(a, round), numeric::value(b, round));
        match pair {
            (Ok(a), Ok(b)) => match a.compare(b) {
                Closeness::Same => same += 1,
                Closeness::Different => return Ok(false),
                Closeness::Unknown => {}
            },
            // One of them has no value where the other has one.
            (Err(error), _) | (_, Err(error)) => unclear = Some(error),
        }
    }
    if same >= needed {
        return Ok(true);
    }
    Err(unclear.unwrap_or(Unclear::NotComputed { what: "its digits" }))
}

/// The real number that a constant is, rounded; absent where it is none. Infinities are.
pub(crate) fn real(expression: &Expression) -> Option<f64> {
    if let Some(is_positive) = infinite(expression) {
        return Some(if is_positive { f64::INFINITY } else { f64::NEG_INFINITY });
    }
    if !expression.is_constant() {
        return None;
    }
    if let Ok(Some(value)) = exact::value(expression) {
        return value.to_f64().filter(|it| it.is_finite());
    }
    let found = numeric::value(expression, 0).ok()?;
    (found.value.im.abs() <= 8.0 * found.error && found.value.re.is_finite())
        .then_some(found.value.re)
}

/// Whether one difference `left - right` is a multiple of another: 1 where it is the same, -1 where its sign is turned, another
/// number of that sign where it is a multiple by a constant; `None` where it is none.
pub(crate) fn ratio(
    a: (&Expression, &Expression),
    b: (&Expression, &Expression),
) -> Result<Option<i32>, Unclear> {
    let difference = |(left, right): (&Expression, &Expression)| {
        Expression::Sum(vec![left.clone(), right.clone().negative()])
    };
    let (a, b) = (difference(a), difference(b));
    if are_equal(&a, &b)? {
        return Ok(Some(1));
    }
    if are_equal(&a, &b.clone().negative())? {
        return Ok(Some(-1));
    }
    let mut names = Vec::new();
    a.collect_variables(&mut names);
    if names.len() < 2 {
        return Ok(None);
    }
    let mut found: Option<f64> = None;
    for round in 0..ROUNDS {
        let (Ok(a), Ok(b)) = (numerator(&a, round), numerator(&b, round)) else { return Ok(None) };
        let share = a / b;
        if !share.is_finite() || share.is_zero() {
            return Ok(None);
        }
        match found {
            None => found = Some(share),
            Some(found) if (found - share).abs() > 1e-9 * found.abs() => return Ok(None),
            Some(_) => {}
        }
    }
    Ok(found.map(|it| if it > 0.0 { 2 } else { -2 }))
}

/// The numerator of a quotient of polynomials, unless something else stands in it, at the numbers of a round.
fn numerator(expression: &Expression, round: u64) -> Result<f64, Unclear> {
    Ok(fraction(expression, round)?.0)
}

/// Numerator and denominator, without anything cancelled.
fn fraction(expression: &Expression, round: u64) -> Result<(f64, f64), Unclear> {
    use Expression as E;
    Ok(match expression {
        E::Sum(items) => {
            let mut sum = (0.0, 1.0);
            for item in items {
                let item = fraction(item, round)?;
                sum = if item.1 == sum.1 {
                    (sum.0 + item.0, sum.1)
                } else {
                    (sum.0 * item.1 + item.0 * sum.1, sum.1 * item.1)
                };
            }
            sum
        }
        E::Product(items) => {
            let mut product = (1.0, 1.0);
            for item in items {
                let item = fraction(item, round)?;
                product = (product.0 * item.0, product.1 * item.1);
            }
            product
        }
        E::Negative(it) => {
            let it = fraction(it, round)?;
            (-it.0, it.1)
        }
        E::Quotient(above, below) => {
            let (above, below) = (fraction(above, round)?, fraction(below, round)?);
            (above.0 * below.1, above.1 * below.0)
        }
        other => {
            let found = numeric::value(other, round)?;
            match found.value.im.abs() <= 8.0 * found.error {
                true => (found.value.re, 1.0),
                false => {
                    return Err(Unclear::NotComputed { what: "an equation of complex numbers" });
                }
            }
        }
    })
}
