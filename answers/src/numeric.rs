//! Values as complex numbers, with how wrong they may be.

use num_complex::Complex64;
use num_rational::BigRational;
use num_traits::{ToPrimitive, Zero};

use crate::expression::{Constant, Expression, Function};
use crate::identity::mix;
use crate::{Unclear, exact};

const EPSILON: f64 = f64::EPSILON;

/// A value and a bound of its error.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Approximate {
    pub(crate) value: Complex64,
    pub(crate) error: f64,
}

/// What comparing two values has told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Closeness {
    Same,
    Different,
    /// One of them is no number, or too rough.
    Unknown,
}

impl Approximate {
    fn new(value: Complex64, error: f64) -> Self {
        Self { value, error: error + EPSILON * value.norm() }
    }

    fn real(value: f64) -> Self {
        Self::new(Complex64::new(value, 0.0), 0.0)
    }

    /// Whether two values may be one, as far as their errors tell.
    pub(crate) fn compare(self, other: Self) -> Closeness {
        let scale = self.value.norm().max(other.value.norm());
        let error = 8.0 * (self.error + other.error);
        let apart = (self.value - other.value).norm();
        if !(scale.is_finite() && error.is_finite() && apart.is_finite()) {
            Closeness::Unknown
        } else if apart > error {
            Closeness::Different
        } else if error <= 1e-7 * scale || scale.is_zero() {
            Closeness::Same
        } else {
            // Both vanish as far as anybody can see.
            match scale <= 1e-12 && error <= 1e-12 {
                true => Closeness::Same,
                false => Closeness::Unknown,
            }
        }
    }

    fn is_real(self) -> bool {
        self.value.im.abs() <= self.error.max(4.0 * EPSILON * self.value.re.abs())
    }
}

/// The real number that a variable stands for in a round: positive in even rounds, in odd ones of either sign or, in every
/// other one, negative.
pub(crate) fn point(name: &str, round: u64) -> f64 {
    let hashed = name.bytes().fold(mix(round), |so_far, byte| mix(so_far ^ u64::from(byte)));
    #[expect(clippy::cast_precision_loss, reason = "53 bits are kept")]
    let share = (mix(hashed) >> 11) as f64 / (1_u64 << 53) as f64;
    let size = 0.35 + 2.3 * share;
    let is_negative = match round % 4 {
        1 => hashed & 1 == 1,
        3 => true,
        _ => false,
    };
    if is_negative { -size } else { size }
}

/// The value of a formula, its variables standing for the numbers of a round.
pub(crate) fn value(expression: &Expression, round: u64) -> Result<Approximate, Unclear> {
    use Expression as E;
    match expression {
        E::Number { value, .. } => Ok(of_rational(value)),
        E::Constant(Constant::Pi) => Ok(Approximate::real(std::f64::consts::PI)),
        E::Constant(Constant::E) => Ok(Approximate::real(std::f64::consts::E)),
        E::Constant(Constant::I) => Ok(Approximate { value: Complex64::I, error: 0.0 }),
        E::Constant(Constant::Infinity) => Err(Unclear::NotComputed { what: "infinity" }),
        E::Variable(name) => {
            Ok(Approximate { value: Complex64::new(point(name, round), 0.0), error: 0.0 })
        }
        E::Sum(items) => {
            let mut sum = Approximate { value: Complex64::ZERO, error: 0.0 };
            for item in items {
                let item = value(item, round)?;
                sum = Approximate::new(sum.value + item.value, sum.error + item.error);
            }
            Ok(sum)
        }
        E::Product(items) => {
            let mut product = Approximate { value: Complex64::ONE, error: 0.0 };
            for item in items {
                product = times(product, value(item, round)?);
            }
            Ok(product)
        }
        E::Negative(it) => {
            let it = value(it, round)?;
            Ok(Approximate { value: -it.value, error: it.error })
        }
        E::Percent(it) => Ok(over(value(it, round)?, Approximate::real(100.0))),
        E::Degrees(it) => value(it, round),
        E::Quotient(above, below) => {
            let (above, below) = (value(above, round)?, value(below, round)?);
            match below.value.is_zero() {
                true => Err(Unclear::DivisionByZero),
                false => Ok(over(above, below)),
            }
        }
        E::Power(base, exponent) => {
            let written = exact::value(exponent)?;
            power(value(base, round)?, value(exponent, round)?, written.as_ref())
        }
        E::Root { index, of } => {
            let written = exact::value(index)?.filter(|index| !index.is_zero());
            let one = Approximate { value: Complex64::ONE, error: 0.0 };
            let exponent = over(one, value(index, round)?);
            power(value(of, round)?, exponent, written.map(|index| index.recip()).as_ref())
        }
        E::Call(function, arguments) => call(*function, arguments, round),
        _ => Err(Unclear::NotComputed { what: "a collection is no number" }),
    }
}

fn of_rational(value: &BigRational) -> Approximate {
    Approximate::real(value.to_f64().unwrap_or(f64::NAN))
}

fn times(a: Approximate, b: Approximate) -> Approximate {
    let error = a.value.norm() * b.error + b.value.norm() * a.error + a.error * b.error;
    let value = a.value * b.value;
    Approximate::new(value, error + 2.0 * EPSILON * value.norm())
}

fn over(a: Approximate, b: Approximate) -> Approximate {
    let size = (b.value.norm() - b.error).max(f64::MIN_POSITIVE);
    let value = a.value / b.value;
    Approximate::new(
        value,
        (a.error + value.norm() * b.error) / size + 2.0 * EPSILON * value.norm(),
    )
}

fn power(
    base: Approximate,
    exponent: Approximate,
    written: Option<&BigRational>,
) -> Result<Approximate, Unclear> {
    if base.value.is_zero() {
        return match exponent.value.re > 0.0 {
            true => Ok(base),
            false => Err(Unclear::DivisionByZero),
        };
    }
    // What is written as a fraction has a value for negative numbers too, a real one where its denominator is odd.
    if let Some(written) = written {
        let whole = written.to_integer().to_i32().filter(|_| written.is_integer());
        if let Some(whole) = whole {
            let value = base.value.powi(whole);
            let slope = f64::from(whole.unsigned_abs()) * value.norm() / base.value.norm();
            let rounding = f64::from(whole.unsigned_abs().min(64)) * EPSILON * value.norm();
            return Ok(Approximate::new(value, slope * base.error + 2.0 * rounding));
        }
        let is_odd = written.denom().bit(0);
        if is_odd && base.is_real() && base.value.re < 0.0 {
            let size = Approximate { value: -base.value, error: base.error };
            let found = principal(size, exponent);
            let sign = if written.numer().bit(0) { -1.0 } else { 1.0 };
            return Ok(Approximate { value: found.value * sign, error: found.error });
        }
    }
    Ok(principal(base, exponent))
}

/// `exp(w ln z)`, the logarithm's imaginary part in (-π, π].
fn principal(base: Approximate, exponent: Approximate) -> Approximate {
    let mut z = base.value;
    if base.is_real() {
        // Rounding must not choose the side of the cut.
        z.im = 0.0;
    }
    let value = (exponent.value * z.ln()).exp();
    let by_base = exponent.value.norm() / z.norm() * base.error;
    let by_exponent = z.ln().norm() * exponent.error;
    let rounding = 4.0 * EPSILON * (1.0 + exponent.value.norm() * z.ln().norm());
    Approximate::new(value, value.norm() * (by_base + by_exponent + rounding))
}

fn call(function: Function, arguments: &[Expression], round: u64) -> Result<Approximate, Unclear> {
    use Function as F;
    if let [angle] = arguments
        && function.takes_angles()
    {
        let angle = match angle {
            Expression::Degrees(angle) => {
                times(value(angle, round)?, Approximate::real(std::f64::consts::PI / 180.0))
            }
            angle => value(angle, round)?,
        };
        return trigonometric(function, angle);
    }
    let values: Vec<Approximate> =
        arguments.iter().map(|it| value(it, round)).collect::<Result<_, _>>()?;
    let smooth = |value: Complex64, slope: f64, at: Approximate| {
        Ok(Approximate::new(value, slope * at.error + 4.0 * EPSILON * value.norm()))
    };
    let what = "a function of such arguments";
    match (function, &values[..]) {
        (F::Exp, [x]) => smooth(x.value.exp(), x.value.exp().norm(), *x),
        (F::Ln, [x]) => ln(*x),
        (F::Log, [base, x]) => {
            let base = ln(*base)?;
            match base.value.is_zero() {
                true => Err(Unclear::DivisionByZero),
                false => Ok(over(ln(*x)?, base)),
            }
        }
        (F::Sinh, [x]) => smooth(x.value.sinh(), x.value.cosh().norm(), *x),
        (F::Cosh, [x]) => smooth(x.value.cosh(), x.value.sinh().norm(), *x),
        (F::Tanh, [x]) => smooth(x.value.tanh(), 1.0 / x.value.cosh().norm_sqr(), *x),
        (F::Asin, [x]) => smooth(on_axis(*x).asin(), slope_of_arc(x.value), *x),
        (F::Acos, [x]) => smooth(on_axis(*x).acos(), slope_of_arc(x.value), *x),
        (F::Atan, [x]) => smooth(on_axis(*x).atan(), 1.0 / (1.0 + x.value * x.value).norm(), *x),
        (F::Abs, [x]) => smooth(Complex64::new(x.value.norm(), 0.0), 1.0, *x),
        (F::Floor | F::Ceil, [x]) => {
            let whole = if function == F::Floor { x.value.re.floor() } else { x.value.re.ceil() };
            let nearest = (x.value.re - x.value.re.round()).abs();
            match x.is_real() && nearest > x.error {
                true => Ok(Approximate { value: Complex64::new(whole, 0.0), error: 0.0 }),
                false => Err(Unclear::NotComputed { what: "a step at the edge" }),
            }
        }
        (F::Max | F::Min, [first, rest @ ..]) => {
            if !values.iter().all(|it| it.is_real()) {
                return Err(Unclear::NotComputed { what });
            }
            let is_better = |a: &Approximate, b: &Approximate| match function {
                F::Max => a.value.re > b.value.re,
                _ => a.value.re < b.value.re,
            };
            Ok(rest
                .iter()
                .fold(*first, |so_far, it| if is_better(it, &so_far) { *it } else { so_far }))
        }
        (F::Factorial, [x]) if x.is_real() => Ok(gamma(x.value.re + 1.0, x.error)),
        (F::Binomial, [n, k]) if n.is_real() && k.is_real() => {
            let (n, k, error) = (n.value.re, k.value.re, n.error + k.error);
            let below = times(gamma(k + 1.0, error), gamma(n - k + 1.0, error));
            Ok(over(gamma(n + 1.0, error), below))
        }
        _ => Err(Unclear::NotComputed { what }),
    }
}

/// The value, on the real axis where it is real, so that rounding does not choose the side of a cut.
fn on_axis(x: Approximate) -> Complex64 {
    if x.is_real() { Complex64::new(x.value.re, 0.0) } else { x.value }
}

fn ln(x: Approximate) -> Result<Approximate, Unclear> {
    if x.value.is_zero() {
        return Err(Unclear::DivisionByZero);
    }
    let value = on_axis(x).ln();
    Ok(Approximate::new(value, x.error / x.value.norm() + 2.0 * EPSILON * (1.0 + value.norm())))
}

fn slope_of_arc(x: Complex64) -> f64 {
    1.0 / (1.0 - x * x).sqrt().norm().max(1e-8)
}

fn trigonometric(function: Function, angle: Approximate) -> Result<Approximate, Unclear> {
    use Function as F;
    let one = Approximate { value: Complex64::ONE, error: 0.0 };
    let rounding = EPSILON * (2.0 + 2.0 * angle.value.norm());
    let (sine, cosine) = (angle.value.sin(), angle.value.cos());
    let sine_of = Approximate::new(sine, cosine.norm() * angle.error + rounding);
    let cosine_of = Approximate::new(cosine, sine.norm() * angle.error + rounding);
    let (above, below) = match function {
        F::Sin => return Ok(sine_of),
        F::Cos => return Ok(cosine_of),
        F::Tan => (sine_of, cosine_of),
        F::Cot => (cosine_of, sine_of),
        F::Sec => (one, cosine_of),
        F::Csc => (one, sine_of),
        _ => return Err(Unclear::NotComputed { what: "no trigonometric function" }),
    };
    // A pole, as far as anybody can see.
    match below.value.norm() <= below.error {
        true => Err(Unclear::DivisionByZero),
        false => Ok(over(above, below)),
    }
}

/// The gamma function by Lanczos' approximation with g = 7 and nine terms, to about 13 digits.
fn gamma(x: f64, error: f64) -> Approximate {
    const G: f64 = 7.0;
    const TERMS: [f64; 9] = [
        0.999_999_999_999_809_9,
        676.520_368_121_885_1,
        -1_259.139_216_722_402_8,
        771.323_428_777_653_1,
        -176.615_029_162_140_6,
        12.507_343_278_686_905,
        -0.138_571_095_265_720_12,
        9.984_369_578_019_572e-6,
        1.505_632_735_149_311_6e-7,
    ];
    if x < 0.5 {
        let pi = std::f64::consts::PI;
        let reflected = gamma(1.0 - x, error);
        let sine = (pi * x).sin();
        return over(Approximate::real(pi), times(Approximate::real(sine), reflected));
    }
    let x = x - 1.0;
    let mut sum = TERMS[0];
    for (number, term) in (1_u32..).zip(&TERMS[1..]) {
        sum += term / (x + f64::from(number));
    }
    let t = x + G + 0.5;
    let value = (2.0 * std::f64::consts::PI).sqrt() * t.powf(x + 0.5) * (-t).exp() * sum;
    let slope = value.abs() * (t.ln() + 1.0);
    Approximate::new(Complex64::new(value, 0.0), 1e-12 * value.abs() + slope * error)
}
