//! Values that are fractions, without rounding.

use num_bigint::{BigInt, Sign};
use num_integer::Integer;
use num_rational::BigRational;
use num_traits::{One, Pow, Signed, ToPrimitive, Zero};

use crate::Unclear;
use crate::expression::{Expression, Function};

/// How many bits a numerator or denominator may have.
pub(crate) const MAX_BITS: u64 = 32_768;
/// The largest number whose factorial is computed.
pub(crate) const MAX_FACTORIAL: u32 = 2_000;

/// The value of a formula that is a fraction; `None` where it is none, or cannot be seen to be one.
pub(crate) fn value(expression: &Expression) -> Result<Option<BigRational>, Unclear> {
    use Expression as E;
    let found = match expression {
        E::Number { value, .. } => value.clone(),
        E::Percent(it) => match value(it)? {
            Some(it) => it / BigInt::from(100),
            None => return Ok(None),
        },
        E::Degrees(it) => return value(it),
        E::Negative(it) => match value(it)? {
            Some(it) => -it,
            None => return Ok(None),
        },
        E::Sum(items) => {
            let mut sum = BigRational::zero();
            for item in items {
                let Some(item) = value(item)? else { return Ok(None) };
                sum = bounded(sum + item)?;
            }
            sum
        }
        E::Product(items) => {
            let mut product = BigRational::one();
            for item in items {
                let Some(item) = value(item)? else { return Ok(None) };
                product = bounded(product * item)?;
            }
            product
        }
        E::Quotient(above, below) => {
            let (above, below) = (value(above)?, value(below)?);
            if below.as_ref().is_some_and(Zero::is_zero) {
                return Err(Unclear::DivisionByZero);
            }
            match (above, below) {
                (Some(above), Some(below)) => above / below,
                _ => return Ok(None),
            }
        }
        E::Power(base, exponent) => match (value(base)?, value(exponent)?) {
            (Some(base), Some(exponent)) => return power(&base, &exponent),
            _ => return Ok(None),
        },
        E::Root { index, of } => match (value(index)?, value(of)?) {
            (Some(index), Some(of)) if !index.is_zero() => return power(&of, &index.recip()),
            (Some(_), Some(_)) => return Err(Unclear::DivisionByZero),
            _ => return Ok(None),
        },
        E::Call(function, arguments) => {
            let values: Option<Vec<BigRational>> =
                arguments.iter().map(value).collect::<Result<_, _>>()?;
            match values {
                Some(values) => return call(*function, &values),
                None => return Ok(None),
            }
        }
        _ => return Ok(None),
    };
    bounded(found).map(Some)
}

fn bounded(value: BigRational) -> Result<BigRational, Unclear> {
    match value.numer().bits().max(value.denom().bits()) > MAX_BITS {
        true => Err(Unclear::TooLarge),
        false => Ok(value),
    }
}

/// A power that is a fraction; nought to the nought is one.
fn power(base: &BigRational, exponent: &BigRational) -> Result<Option<BigRational>, Unclear> {
    if exponent.is_zero() {
        return Ok(Some(BigRational::one()));
    }
    if base.is_zero() {
        return match exponent.is_positive() {
            true => Ok(Some(BigRational::zero())),
            false => Err(Unclear::DivisionByZero),
        };
    }
    let Some(base) = root(base, exponent.denom()) else { return Ok(None) };
    if base.is_one() {
        return Ok(Some(base));
    }
    if (-base.clone()).is_one() {
        return Ok(Some(if exponent.numer().is_even() { -base } else { base }));
    }
    let bits = base.numer().bits().max(base.denom().bits());
    let times = exponent.numer().magnitude().to_u64().ok_or(Unclear::TooLarge)?;
    if bits.saturating_sub(1).saturating_mul(times) > MAX_BITS {
        return Err(Unclear::TooLarge);
    }
    let times = u32::try_from(times).map_err(|_| Unclear::TooLarge)?;
    let raised = BigRational::new_raw(
        Pow::pow(base.numer().clone(), times),
        Pow::pow(base.denom().clone(), times),
    );
    let raised = bounded(raised)?;
    Ok(Some(if exponent.is_negative() { raised.recip() } else { raised.reduced() }))
}

/// A root that is a fraction; of a negative number the odd ones, which are real.
fn root(of: &BigRational, index: &BigInt) -> Option<BigRational> {
    if index.is_one() {
        return Some(of.clone());
    }
    let index = index.to_u32().filter(|index| *index <= 1024)?;
    if of.is_negative() && index % 2 == 0 {
        return None;
    }
    let whole = |number: &BigInt| {
        let root = number.nth_root(index);
        (Pow::pow(root.clone(), index) == *number).then_some(root)
    };
    Some(BigRational::new(whole(of.numer())?, whole(of.denom())?))
}

fn call(function: Function, values: &[BigRational]) -> Result<Option<BigRational>, Unclear> {
    let whole: Option<Vec<BigInt>> =
        values.iter().map(|it| it.is_integer().then(|| it.to_integer())).collect();
    let integer = |it: BigInt| Ok(Some(BigRational::from_integer(it)));
    match (function, values, whole.as_deref()) {
        (Function::Abs, [it], _) => Ok(Some(it.abs())),
        (Function::Floor, [it], _) => Ok(Some(it.floor())),
        (Function::Ceil, [it], _) => Ok(Some(it.ceil())),
        (Function::Max, [_, ..], _) => Ok(values.iter().max().cloned()),
        (Function::Min, [_, ..], _) => Ok(values.iter().min().cloned()),
        (Function::Gcd, _, Some([first, rest @ ..])) => {
            integer(rest.iter().fold(first.abs(), |so_far, it| so_far.gcd(it)))
        }
        (Function::Lcm, _, Some([first, rest @ ..])) => {
            let mut lcm = first.abs();
            for it in rest {
                lcm = lcm.lcm(it);
                if lcm.bits() > MAX_BITS {
                    return Err(Unclear::TooLarge);
                }
            }
            integer(lcm)
        }
        (Function::Mod, _, Some([of, by])) => match by.is_zero() {
            true => Err(Unclear::DivisionByZero),
            false => integer(of.mod_floor(by)),
        },
        (Function::Factorial, _, Some([of])) => match of.sign() {
            Sign::Minus => Err(Unclear::DivisionByZero),
            _ => {
                let of = of.to_u32().filter(|of| *of <= MAX_FACTORIAL).ok_or(Unclear::TooLarge)?;
                integer((2..=of).fold(BigInt::one(), |so_far, it| so_far * it))
            }
        },
        (Function::Binomial, _, Some([of, take])) => {
            if take.is_negative() || (!of.is_negative() && take > of) {
                return integer(BigInt::zero());
            }
            let take = match of.is_negative() {
                true => take.clone(),
                false => take.clone().min(of - take),
            };
            let take = take.to_u32().filter(|it| *it <= MAX_FACTORIAL).ok_or(Unclear::TooLarge)?;
            let mut found = BigInt::one();
            for k in 0..take {
                found = found * (of - k) / (k + 1);
                if found.bits() > MAX_BITS {
                    return Err(Unclear::TooLarge);
                }
            }
            integer(found)
        }
        _ => Ok(None),
    }
}
