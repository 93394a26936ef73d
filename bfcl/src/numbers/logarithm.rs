//! Logarithms of any precision, rounded to the nearest.

use num_bigint::{BigInt, BigUint};
use num_traits::{One, Signed, ToPrimitive, Zero};
use spar_python::{Exception, ExceptionKind, Outcome, Value, repr, text, to_int};

use super::binary_float::{BinaryFloat, Rounding, bits_of, shown_digits};

/// More decimal digits are not computed.
const MAX_DIGITS: i64 = 2_000;
/// Bits beyond the precision in which logarithms are computed, so that the last rounding is right.
const GUARD: u64 = 64;
/// Exponents of ten beyond which numbers are not read.
const MAX_EXPONENT: i64 = 20_000;

/// A complex number, or a real one.
enum Logarithm {
    Real(BinaryFloat),
    Complex(BinaryFloat, BinaryFloat),
}

/// `repr(mpmath.log(value) / mpmath.log(base))` with so many digits.
///
/// # Errors
///
/// What mpmath raises, of which the program tells the words.
pub(crate) fn repr_of_ratio(value: &Value, base: &Value, precision: &Value) -> Outcome<String> {
    let digits = to_int(precision)?;
    // Bits of a precision are reckoned in double precision.
    spar_python::int_to_float(&digits)?;
    let digits = match digits.to_i64() {
        Some(digits) if digits <= MAX_DIGITS => digits.max(-1),
        _ if digits.is_negative() => -1,
        _ => {
            return Err(Exception::refused(format_args!(
                "logarithms have at most {MAX_DIGITS} digits here"
            )));
        }
    };
    let bits = bits_of(digits);
    let value = logarithm(&converted(value, bits)?, bits)?;
    let base = logarithm(&converted(base, bits)?, bits)?;
    let by_zero = || Exception::new(ExceptionKind::ZeroDivision, "");
    let shown = |number: &BinaryFloat| number.written(shown_digits(bits));
    let divide = |a: &BinaryFloat, b: &BinaryFloat| a.divided_by(b, bits).ok_or_else(by_zero);
    let (real, imaginary) = match (&value, &base) {
        (Logarithm::Real(a), Logarithm::Real(b)) => {
            return Ok(format!("mpf('{}')", shown(&divide(a, b)?)));
        }
        (Logarithm::Complex(a, b), Logarithm::Real(c)) => (divide(a, c)?, divide(b, c)?),
        (Logarithm::Real(p), Logarithm::Complex(a, b)) => {
            let size = a.times(a).plus(&b.times(b), bits + 10);
            (divide(&a.times(p), &size)?, divide(&b.times(p).negated(), &size)?)
        }
        (Logarithm::Complex(a, b), Logarithm::Complex(c, d)) => {
            let bits = bits + 10;
            let size = c.times(c).plus(&d.times(d), bits);
            let real = a.times(c).plus(&b.times(d), bits);
            let imaginary = b.times(c).plus(&a.times(d).negated(), bits);
            (divide(&real, &size)?, divide(&imaginary, &size)?)
        }
    };
    Ok(format!("mpc(real='{}', imag='{}')", shown(&real), shown(&imaginary)))
}

/// `mp.convert(value)`
fn converted(value: &Value, bits: u64) -> Outcome<BinaryFloat> {
    let refuse = || -> Outcome<BinaryFloat> {
        Err(Exception::type_error(format_args!("cannot create mpf from {}", repr(value)?)))
    };
    match value {
        Value::Float(value) => Ok(BinaryFloat::of_f64(*value)),
        Value::Complex(..) => Err(Exception::refused("logarithms take real numbers here")),
        Value::Str(given) => match read(given, bits) {
            Some(number) => Ok(number),
            None if given.to_lowercase().contains('j') => {
                let is_number =
                    given.chars().all(|c| c.is_ascii_digit() || "+-.eEjJ() ".contains(c));
                if is_number {
                    return Err(Exception::refused("complex numbers are not read here"));
                }
                Err(Exception::no_attribute("NoneType", "group"))
            }
            None => refuse(),
        },
        _ => match value.as_int() {
            Some(whole) => Ok(BinaryFloat::of_int(whole)),
            None => refuse(),
        },
    }
}

/// A number in words, as `from_str` of mpmath reads it.
fn read(given: &str, bits: u64) -> Option<BinaryFloat> {
    let lower = given.to_lowercase();
    let lower = text::strip(&lower);
    match lower {
        "inf" | "+inf" => return Some(BinaryFloat::Infinite { is_negative: false }),
        "-inf" => return Some(BinaryFloat::Infinite { is_negative: true }),
        "nan" => return Some(BinaryFloat::NotANumber),
        _ => {}
    }
    let whole = |text: &str| to_int(&Value::from(text)).ok();
    if let Some((numerator, denominator)) = lower.split_once('/') {
        let numerator = whole(numerator.trim_end_matches('l'))?;
        let denominator = whole(denominator.trim_end_matches('l'))?;
        if denominator.is_zero() {
            return None;
        }
        return Some(BinaryFloat::of_ratio(&numerator, &denominator, bits));
    }
    let lower = lower.trim_end_matches('l');
    spar_python::to_float(&Value::from(lower)).ok()?;
    let (mantissa, mut exponent) = match lower.split_once('e') {
        Some((mantissa, exponent)) => (mantissa, whole(exponent)?.to_i64()?),
        None => (lower, 0),
    };
    let digits = match mantissa.split_once('.') {
        Some((before, after)) => {
            let after = after.trim_end_matches('0');
            exponent -= after.len() as i64;
            format!("{before}{after}")
        }
        None => mantissa.to_owned(),
    };
    if exponent.abs() > MAX_EXPONENT {
        return None;
    }
    let size = whole(&digits)?;
    let power = BigInt::from(10).pow(exponent.unsigned_abs() as u32);
    Some(match exponent >= 0 {
        true => BinaryFloat::of_ratio(&(size * power), &BigInt::one(), bits),
        false => BinaryFloat::of_ratio(&size, &power, bits),
    })
}

fn logarithm(number: &BinaryFloat, bits: u64) -> Outcome<Logarithm> {
    Ok(match number {
        BinaryFloat::NotANumber => Logarithm::Real(BinaryFloat::NotANumber),
        BinaryFloat::Infinite { is_negative: false } => Logarithm::Real(number.clone()),
        BinaryFloat::Infinite { is_negative: true } => {
            Logarithm::Complex(BinaryFloat::Infinite { is_negative: false }, pi(bits))
        }
        BinaryFloat::Finite { mantissa, .. } if mantissa.is_zero() => {
            Logarithm::Real(BinaryFloat::Infinite { is_negative: true })
        }
        BinaryFloat::Finite { mantissa, exponent } => {
            let size = natural(mantissa.magnitude(), *exponent, bits);
            match mantissa.is_negative() {
                true => Logarithm::Complex(size, pi(bits)),
                false => Logarithm::Real(size),
            }
        }
    })
}

/// `ln(size * 2**exponent)` of a number above zero: `ln(m) + e ln 2` with `m` from 3/4 to 3/2, so that nothing cancels, and
/// `ln(m) = 2**k * 2 artanh((r - 1) / (r + 1))` for the root `r = m**(2**-k)`.
fn natural(size: &BigUint, exponent: i64, bits: u64) -> BinaryFloat {
    let length = size.bits() as i64;
    let mut power = exponent + length - 1;
    // `size` is `m * 2**(length - 1)` for an `m` from 1 to 2, of which the upper half is taken as a half of it.
    let is_upper = (size * 2_u32) >= (BigUint::from(3_u32) << (length - 1) as u64);
    power += i64::from(is_upper);
    let scale = length - 1 + i64::from(is_upper);
    let unit = BigUint::one() << scale as u64;
    let distance = BigInt::from(size.clone()) - BigInt::from(unit);
    if distance.is_zero() && power == 0 {
        return BinaryFloat::zero();
    }
    // Next to one the logarithm is as small as the distance: its leading bits come on top.
    let cancelled = (scale - distance.bits() as i64).max(0) as u64;
    let halvings = 8 + bits.isqrt() / 4;
    let work = bits + GUARD + 2 * cancelled + 2 * halvings;
    let one = BigUint::one() << work;
    let mut root = if work as i64 >= scale {
        size << (work as i64 - scale) as u64
    } else {
        size >> (scale - work as i64) as u64
    };
    for _ in 0..halvings {
        root = (root << work).sqrt();
    }
    let (root, one) = (BigInt::from(root), BigInt::from(one));
    let ratio = ((&root - &one) << work) / (&root + &one);
    let mut total = artanh(&ratio, work) << (halvings + 1);
    if power != 0 {
        total += ln_two(work) * power;
    }
    BinaryFloat::rounded(total, -(work as i64), bits, Rounding::Nearest)
}

/// `artanh(x) = x + x**3/3 + x**5/5 + ...` in fixed point.
fn artanh(x: &BigInt, work: u64) -> BigInt {
    let square: BigInt = (x * x) >> work;
    let (mut total, mut power, mut odd) = (x.clone(), x.clone(), 1_u32);
    loop {
        power = (power * &square) >> work;
        odd += 2;
        let term = &power / odd;
        if term.abs() <= BigInt::one() {
            return total;
        }
        total += term;
    }
}

fn ln_two(work: u64) -> BigInt {
    let guard = 16;
    let one = BigInt::one() << (work + guard);
    let third = one / 3_u32;
    (artanh(&third, work + guard) << 1_u32) >> guard
}

/// Machin's formula: `16 arctan(1/5) - 4 arctan(1/239)`.
fn pi(bits: u64) -> BinaryFloat {
    let work = bits + GUARD;
    let arctan = |inverse: u32| {
        let square = BigInt::from(inverse) * inverse;
        let mut power = (BigInt::one() << work) / inverse;
        let (mut total, mut odd, mut is_added) = (power.clone(), 1_u32, false);
        while !power.is_zero() {
            power /= &square;
            odd += 2;
            let term = &power / odd;
            total = if is_added { total + term } else { total - term };
            is_added = !is_added;
        }
        total
    };
    let total = arctan(5) * 16_u32 - arctan(239) * 4_u32;
    BinaryFloat::rounded(total, -(work as i64), bits, Rounding::Nearest)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Written by `scripts/record_bfcl_fixtures.py`.
    const RECORDED: &str = include_str!("../../tests/fixtures/logarithms.json");

    #[test]
    fn logarithms_are_those_of_mpmath() {
        let recorded: serde_json::Value = serde_json::from_str(RECORDED).unwrap();
        let recorded = recorded.as_array().unwrap();
        assert!(recorded.len() > 60);
        for case in recorded {
            let given = |name: &str| {
                spar_python::eval(case[name].as_str().unwrap(), &mut spar_python::NoNames).unwrap()
            };
            let got = repr_of_ratio(&given("value"), &given("base"), &given("precision"));
            let got = got.unwrap_or_else(|error| format!("raised {}", error.text));
            assert_eq!(got, case["repr"].as_str().unwrap(), "{case}");
        }
    }

    #[test]
    fn infinite_logarithms_are_divided_and_precisions_have_bounds() {
        let told = |value: &str, base: &str, precision: &str| {
            let given = |text: &str| spar_python::eval(text, &mut spar_python::NoNames).unwrap();
            repr_of_ratio(&given(value), &given(base), &given(precision))
                .unwrap_or_else(|error| error.text)
        };
        assert_eq!(told("0", "-(10**25)", "50"), "mpc(real='-inf', imag='+inf')");
        assert_eq!(told("2", "3", "-(10**400)"), "int too large to convert to float");
    }
}
