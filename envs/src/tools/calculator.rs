//! Arithmetic.

use std::iter::Peekable;
use std::str::Chars;

use schemars::JsonSchema;
use serde::Deserialize;
use spar_core::registry::{OptionSet, Row};

use super::{FunctionTool, NamedTool, ToolOutput, ToolRow, spec_of};

const NAME: &str = "calculator";
/// Characters of an expression.
const MOST_CHARS: usize = 2000;
/// Levels of nesting.
const MOST_DEPTH: usize = 60;
/// Arguments of a function.
const MOST_ARGUMENTS: usize = 100;

pub(super) const ROW: ToolRow = Row {
    name: NAME,
    about: "Computes an arithmetic expression.",
    source: "own",
    formula: "",
    options: OptionSet::NONE,
    open: NamedTool {
        needs_sandbox: false,
        specs: || vec![spec_of::<Calculate>(NAME)],
        open: |_, _| Ok(Box::new(FunctionTool::new(NAME, (), |(), call| calculate(&call)))),
    },
};

/// Computes an arithmetic expression of numbers, + - * / // % ** ( ), the constants pi and e, and the functions abs, min, max,
/// round, floor, ceil, sqrt, exp, ln, log10, log2, sin, cos, tan, factorial, gcd.
#[derive(Debug, Deserialize, JsonSchema)]
struct Calculate {
    /// The expression, such as `(3 + 4) * 2 ** 10 / 7`.
    expression: String,
}

fn calculate(call: &Calculate) -> Result<ToolOutput, String> {
    let written = evaluate(&call.expression).map(Number::written);
    written.map(ToolOutput::from).map_err(|detail| format!("This cannot be computed: {detail}."))
}

/// The value of an expression. Whole numbers are exact, within 128 bits; what is no whole number has 64 bits.
fn evaluate(expression: &str) -> Result<Number, String> {
    if expression.chars().count() > MOST_CHARS {
        return Err(format!("it has more than {MOST_CHARS} characters"));
    }
    let mut reader = Reader { rest: expression.chars().peekable(), depth: MOST_DEPTH };
    let value = reader.sum()?;
    match reader.next_visible() {
        None => Ok(value),
        Some(other) => Err(format!("there is `{other}` where an operator or the end is expected")),
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Number {
    Whole(i128),
    Real(f64),
}

use Number::{Real, Whole};

impl Number {
    fn real(self) -> f64 {
        match self {
            Whole(value) => value as f64,
            Real(value) => value,
        }
    }

    /// A result, which has to be finite.
    fn finite(value: f64) -> Result<Self, String> {
        if value.is_nan() {
            return Err("a result is no real number".to_owned());
        }
        value.is_finite().then_some(Real(value)).ok_or_else(too_large)
    }

    /// A real number with a whole value as that.
    fn whole_of(value: f64) -> Result<Self, String> {
        match value.abs() < 1e38 {
            true => Ok(Whole(value as i128)),
            false => Self::finite(value),
        }
    }

    /// Whole numbers as they are, others with up to 12 digits.
    fn written(self) -> String {
        let value = match self {
            Whole(value) => return value.to_string(),
            Real(value) => value,
        };
        if value == 0.0 {
            return "0".to_owned();
        }
        let digits = format!("{value:.11e}");
        let (mantissa, exponent) = digits.split_once('e').expect("it is written so");
        let exponent: i32 = exponent.parse().expect("it is a number");
        let mantissa = trimmed(mantissa);
        if !(-5..16).contains(&exponent) {
            return format!("{mantissa}e{exponent}");
        }
        let places = (11 - exponent).max(0) as usize;
        trimmed(&format!("{value:.places$}")).to_owned()
    }
}

fn trimmed(digits: &str) -> &str {
    match digits.contains('.') {
        true => digits.trim_end_matches('0').trim_end_matches('.'),
        false => digits,
    }
}

fn too_large() -> String {
    "a result is too large".to_owned()
}

/// Reads an expression and computes it.
struct Reader<'a> {
    rest: Peekable<Chars<'a>>,
    depth: usize,
}

impl Reader<'_> {
    fn next_visible(&mut self) -> Option<char> {
        while self.rest.peek().is_some_and(|c| c.is_whitespace()) {
            self.rest.next();
        }
        self.rest.peek().copied()
    }

    /// Takes `wanted`, where it comes next.
    fn take(&mut self, wanted: char) -> bool {
        let is_next = self.next_visible() == Some(wanted);
        if is_next {
            self.rest.next();
        }
        is_next
    }

    fn deeper<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, String>,
    ) -> Result<T, String> {
        self.depth = self.depth.checked_sub(1).ok_or("it is nested too deeply")?;
        let value = read(self);
        self.depth += 1;
        value
    }

    fn sum(&mut self) -> Result<Number, String> {
        let mut value = self.product()?;
        loop {
            value = if self.take('+') {
                exact(value, self.product()?, i128::checked_add, |a, b| a + b)?
            } else if self.take('-') || self.take('−') {
                exact(value, self.product()?, i128::checked_sub, |a, b| a - b)?
            } else {
                return Ok(value);
            };
        }
    }

    fn product(&mut self) -> Result<Number, String> {
        let mut value = self.signed()?;
        loop {
            value = if self.take('*') || self.take('×') || self.take('·') {
                exact(value, self.signed()?, i128::checked_mul, |a, b| a * b)?
            } else if self.take('/') || self.take('÷') {
                match self.rest.peek() {
                    Some('/') => {
                        self.rest.next();
                        divided(value, self.signed()?, i128::checked_div_euclid, |a, b| {
                            (a / b).floor()
                        })?
                    }
                    _ => quotient(value, self.signed()?)?,
                }
            } else if self.take('%') {
                divided(value, self.signed()?, i128::checked_rem_euclid, |a, b| {
                    a - b * (a / b).floor()
                })?
            } else {
                return Ok(value);
            };
        }
    }

    fn signed(&mut self) -> Result<Number, String> {
        if self.take('+') {
            return self.deeper(Self::signed);
        }
        if self.take('-') || self.take('−') {
            let value = self.deeper(Self::signed)?;
            return exact(Whole(0), value, i128::checked_sub, |a, b| a - b);
        }
        self.power()
    }

    fn power(&mut self) -> Result<Number, String> {
        let base = self.atom()?;
        let mut ahead = self.rest.clone();
        let is_power = match self.next_visible() {
            Some('^') => {
                self.rest.next();
                true
            }
            Some('*') => {
                ahead.by_ref().find(|c| !c.is_whitespace());
                let is_double = ahead.next() == Some('*');
                if is_double {
                    self.next_visible();
                    self.rest.next();
                    self.rest.next();
                }
                is_double
            }
            _ => false,
        };
        if !is_power {
            return Ok(base);
        }
        // Binds to the right: 2 ** 3 ** 2 is 2 ** 9.
        let exponent = self.deeper(Self::signed)?;
        if let (Whole(base), Whole(exponent)) = (base, exponent)
            && let Ok(exponent) = u32::try_from(exponent)
            && let Some(value) = base.checked_pow(exponent)
        {
            return Ok(Whole(value));
        }
        if base.real() == 0.0 && exponent.real() < 0.0 {
            return Err("it divides by 0".to_owned());
        }
        Number::finite(base.real().powf(exponent.real()))
    }

    fn atom(&mut self) -> Result<Number, String> {
        match self.next_visible() {
            None => Err("it ends where a number is expected".to_owned()),
            Some('(') => {
                self.rest.next();
                let value = self.deeper(Self::sum)?;
                if self.take(')') { Ok(value) } else { Err("a `)` is missing".to_owned()) }
            }
            Some(c) if c.is_ascii_digit() || c == '.' => self.number(),
            Some(c) if c.is_ascii_alphabetic() => self.name(),
            Some(other) => Err(format!("there is `{other}` where a number is expected")),
        }
    }

    fn number(&mut self) -> Result<Number, String> {
        let mut text = String::new();
        while let Some(&c) = self.rest.peek() {
            let is_sign = "+-".contains(c) && text.ends_with(['e', 'E']);
            let is_exponent = "eE".contains(c) && !text.contains(['e', 'E']) && {
                let mut ahead = self.rest.clone();
                ahead.next();
                ahead.next_if(|c| "+-".contains(*c));
                ahead.next().is_some_and(|c| c.is_ascii_digit())
            };
            if !(c.is_ascii_digit() || c == '.' || c == '_' || is_sign || is_exponent) {
                break;
            }
            self.rest.next();
            if c != '_' {
                text.push(c);
            }
        }
        if let Ok(value) = text.parse() {
            return Ok(Whole(value));
        }
        let value: f64 = text.parse().map_err(|_| format!("`{text}` is no number"))?;
        Number::finite(value)
    }

    fn name(&mut self) -> Result<Number, String> {
        let mut name = String::new();
        while let Some(c) = self.rest.next_if(|c| c.is_ascii_alphanumeric() || *c == '_') {
            name.push(c.to_ascii_lowercase());
        }
        if !self.take('(') {
            return match name.as_str() {
                "pi" => Ok(Real(std::f64::consts::PI)),
                "e" => Ok(Real(std::f64::consts::E)),
                _ => Err(format!("there is no `{name}` that has a value")),
            };
        }
        let arguments = self.deeper(|reader| {
            let mut arguments = Vec::new();
            if reader.take(')') {
                return Ok(arguments);
            }
            loop {
                arguments.push(reader.sum()?);
                if arguments.len() > MOST_ARGUMENTS {
                    return Err(format!("`{name}` has more than {MOST_ARGUMENTS} arguments"));
                }
                if reader.take(')') {
                    return Ok(arguments);
                }
                if !reader.take(',') {
                    return Err("a `)` is missing".to_owned());
                }
            }
        })?;
        apply(&name, &arguments)
    }
}

/// An operation that whole numbers take exactly.
fn exact(
    a: Number,
    b: Number,
    whole: fn(i128, i128) -> Option<i128>,
    real: fn(f64, f64) -> f64,
) -> Result<Number, String> {
    match (a, b) {
        (Whole(a), Whole(b)) => whole(a, b).map(Whole).ok_or_else(too_large),
        _ => Number::finite(real(a.real(), b.real())),
    }
}

fn quotient(a: Number, b: Number) -> Result<Number, String> {
    if b.real() == 0.0 {
        return Err("it divides by 0".to_owned());
    }
    if let (Whole(a), Whole(b)) = (a, b)
        && a.checked_rem(b) == Some(0)
    {
        return a.checked_div(b).map(Whole).ok_or_else(too_large);
    }
    Number::finite(a.real() / b.real())
}

/// A quotient rounded down, or what is left by it, which has the divisor's sign.
fn divided(
    a: Number,
    b: Number,
    euclid: fn(i128, i128) -> Option<i128>,
    real: fn(f64, f64) -> f64,
) -> Result<Number, String> {
    if b.real() == 0.0 {
        return Err("it divides by 0".to_owned());
    }
    match (a, b) {
        (Whole(a), Whole(b)) if b > 0 => euclid(a, b).map(Whole).ok_or_else(too_large),
        // Euclid's remainder is never negative: with both signs turned, the quotient is the same and the rest is turned.
        (Whole(a), Whole(b)) => {
            let turned = a.checked_neg().zip(b.checked_neg());
            let value = turned.and_then(|(a, b)| euclid(a, b)).ok_or_else(too_large)?;
            let is_rest = real(1.0, 2.0) == 1.0;
            Ok(Whole(if is_rest { -value } else { value }))
        }
        _ => Number::finite(real(a.real(), b.real())),
    }
}

fn apply(name: &str, arguments: &[Number]) -> Result<Number, String> {
    let real = |function: fn(f64) -> f64| match arguments {
        [value] => Number::finite(function(value.real())),
        _ => Err(format!("`{name}` takes one argument, not {}", arguments.len())),
    };
    let rounded = |function: fn(f64) -> f64| match arguments {
        [Whole(value)] => Ok(Whole(*value)),
        [Real(value)] => Number::whole_of(function(*value)),
        _ => Err(format!("`{name}` takes one argument, not {}", arguments.len())),
    };
    let smaller = |a: &Number, b: &Number| match (a, b) {
        (Whole(a), Whole(b)) => a < b,
        _ => a.real() < b.real(),
    };
    match (name, arguments) {
        ("min" | "max", [first, rest @ ..]) => {
            let is_better = |a: &Number, b: &Number| match name {
                "min" => smaller(a, b),
                _ => smaller(b, a),
            };
            Ok(rest.iter().fold(*first, |best, it| if is_better(it, &best) { *it } else { best }))
        }
        ("abs", [Whole(value)]) => value.checked_abs().map(Whole).ok_or_else(too_large),
        ("abs", _) => real(f64::abs),
        ("round", [Real(value), Whole(places)]) if (0..=15).contains(places) => {
            let factor = 10_f64.powi(*places as i32);
            let rounded = (value * factor).round_ties_even() / factor;
            Ok(if rounded.is_finite() { Real(rounded) } else { Real(*value) })
        }
        ("round", [Whole(value), Whole(places)]) if *places >= 0 => Ok(Whole(*value)),
        ("round", [_, _]) => Err("`round` takes 0 to 15 places".to_owned()),
        ("round", _) => rounded(f64::round_ties_even),
        ("floor", _) => rounded(f64::floor),
        ("ceil", _) => rounded(f64::ceil),
        ("sqrt", [Whole(value)]) if is_square(*value) => Ok(Whole(value.isqrt())),
        ("sqrt", _) => real(f64::sqrt),
        ("exp", _) => real(f64::exp),
        ("ln" | "log", [_]) => real(f64::ln),
        ("log10", _) => real(f64::log10),
        ("log2", _) => real(f64::log2),
        ("sin", _) => real(f64::sin),
        ("cos", _) => real(f64::cos),
        ("tan", _) => real(f64::tan),
        ("factorial", [Whole(value)]) if (0..=33).contains(value) => {
            Ok(Whole((1..=*value).product()))
        }
        ("factorial", _) => Err("`factorial` takes a whole number from 0 to 33".to_owned()),
        ("gcd", [Whole(a), Whole(b)]) => Ok(Whole(divisor(*a, *b)?)),
        ("gcd", _) => Err("`gcd` takes two whole numbers".to_owned()),
        ("min" | "max", []) => Err(format!("`{name}` takes an argument")),
        _ => Err(format!("there is no function `{name}`")),
    }
}

fn is_square(value: i128) -> bool {
    value >= 0 && value.isqrt().checked_mul(value.isqrt()) == Some(value)
}

fn divisor(a: i128, b: i128) -> Result<i128, String> {
    let (mut a, mut b) = a.checked_abs().zip(b.checked_abs()).ok_or_else(too_large)?;
    while b != 0 {
        (a, b) = (b, a % b);
    }
    Ok(a)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn value(expression: &str) -> String {
        evaluate(expression).map_or_else(|error| error, Number::written)
    }

    #[test]
    fn expressions_are_computed_as_they_are_written() {
        for (expression, expected) in [
            ("1 + 2 * 3", "7"),
            ("(1 + 2) * 3 - -4", "13"),
            ("2 ** 3 ** 2", "512"),
            ("-2 ^ 2", "-4"),
            ("2 ** -1", "0.5"),
            ("2 * * 3", "there is `*` where a number is expected"),
            ("7 / 2", "3.5"),
            ("8 / 2", "4"),
            ("0.1 + 0.2", "0.3"),
            ("1 / 3", "0.333333333333"),
            ("1e3 + 1_000", "2000"),
            ("2e", "there is `e` where an operator or the end is expected"),
            ("1e400", "a result is too large"),
            ("123456789012345678901234567890 * 2", "246913578024691357802469135780"),
            ("10 ** 20 + 1", "100000000000000000001"),
            ("1.5e300 * 2", "3e300"),
            ("1 / 10 ** 9", "1e-9"),
            ("-7 // 2", "-4"),
            ("7 // -2", "-4"),
            ("-7 % 3", "2"),
            ("7 % -3", "-2"),
            ("-7 % -3", "-1"),
            ("7.5 % 2", "1.5"),
            ("3 × 4 ÷ 6 − 1", "1"),
            ("sqrt(144) + sqrt(2)", "13.4142135624"),
            ("round(2.5) + round(2.675, 2) + floor(-1.5) + ceil(1.2)", "4.68"),
            ("max(1, 2.5, 2) + min(3, 1)", "3.5"),
            ("factorial(20) / gcd(12, 18)", "405483668029440000"),
            ("2 * pi", "6.28318530718"),
            ("ln(e) + log10(1000) + log2(8) + sin(0) + abs(-3)", "10"),
            ("", "it ends where a number is expected"),
            ("1 / 0", "it divides by 0"),
            ("0 ** -1", "it divides by 0"),
            ("1 % 0.0", "it divides by 0"),
            ("sqrt(-1)", "a result is no real number"),
            ("(1", "a `)` is missing"),
            ("1 2", "there is `2` where an operator or the end is expected"),
            ("1.2.3", "`1.2.3` is no number"),
            ("foo(1)", "there is no function `foo`"),
            ("foo", "there is no `foo` that has a value"),
            ("sin(1, 2)", "`sin` takes one argument, not 2"),
        ] {
            assert_eq!(value(expression), expected, "{expression}");
        }
    }

    #[test]
    fn what_is_too_large_is_told_at_once() {
        assert_eq!(value("9 ** 9 ** 9 ** 9"), "a result is too large");
        assert_eq!(value(&format!("{0} * {0}", i128::MAX)), "a result is too large");
        assert_eq!(value(&format!("(-{} - 1) // -1", i128::MAX)), "a result is too large");
        assert_eq!(value(&"(".repeat(1000)), "it is nested too deeply");
        assert_eq!(value(&"-".repeat(1000)), "it is nested too deeply");
        assert_eq!(value(&"1+".repeat(2000)), "it has more than 2000 characters");
        assert_eq!(value("factorial(34)"), "`factorial` takes a whole number from 0 to 33");
    }

    proptest! {
        #[test]
        fn no_text_does_harm(text in "[0-9a-z+*/%(),.^ é-]{0,60}") {
            let _ = value(&text);
        }

        #[test]
        fn whole_numbers_are_divided_as_python_does(a in -1000_i128..1000, b in -50_i128..50) {
            prop_assume!(b != 0);
            let quotient = (a as f64 / b as f64).floor() as i128;
            prop_assert_eq!(value(&format!("{a} // {b}")), quotient.to_string());
            prop_assert_eq!(value(&format!("{a} % {b}")), (a - quotient * b).to_string());
        }
    }
}
