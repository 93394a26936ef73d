//! Expressions of whole numbers.

use num_bigint::BigInt;
use num_integer::Integer;
use num_traits::{Signed, ToPrimitive, Zero};

use crate::prelude::*;

const OPERATORS: [&str; 4] = ["+", "-", "*", "/"];
/// Divisors are tried up to here; the package tries on for hours.
const MOST_DIVISORS: u64 = 100_000_000;

options! {
    /// Options of `basic_arithmetic`.
    BasicArithmeticOptions {
        /// Fewest terms, at least 1. Default 2.
        min_terms: i64 = 2,
        /// Most terms, up to 200. Default 6.
        max_terms: i64 = 6,
        /// Fewest digits of a term, at least 1. Default 1.
        min_digits: i64 = 1,
        /// Most digits of a term, up to 9. Default 4.
        max_digits: i64 = 4,
        /// Operators, of `+`, `-`, `*`, `/`. Default all.
        operators: Vec<String> = texts(&OPERATORS),
        /// Whether there are parentheses. Default true.
        allow_parentheses: bool = true,
        /// Whether there are minus signs in front of parentheses. Default true.
        allow_negation: bool = true,
        /// `simple`, or `natural` with several ways to ask. Default `simple`.
        format_style: String = "simple".to_owned(),
        /// Spaces: `no_space`, `single` or `random`. Default `single`.
        whitespace: String = "single".to_owned(),
    }
    |given, problems| {
        problems.span(("min_terms", "max_terms"), (given.min_terms, given.max_terms), (1, 200));
        problems.span(("min_digits", "max_digits"), (given.min_digits, given.max_digits), (1, 9));
        problems.subset("operators", &given.operators, &OPERATORS);
        problems.subset("format_style", std::slice::from_ref(&given.format_style), &["simple", "natural"]);
        problems.subset("whitespace", std::slice::from_ref(&given.whitespace), &["no_space", "single", "random"]);
    }
}

/// An expression of whole numbers, in which divisions come out even or are rounded down.
pub(crate) struct BasicArithmetic;

impl Generator for BasicArithmetic {
    type Options = BasicArithmeticOptions;

    fn item(options: &BasicArithmeticOptions, rng: &mut Random) -> Result<Item, ItemError> {
        let num_terms = rng.int(options.min_terms, options.max_terms)?;
        let num_digits = rng.int(options.min_digits, options.max_digits)?;
        let unit = 10_i64.pow(num_digits as u32);
        let (expression, result) = match options.allow_parentheses {
            true => complex(options, rng, num_terms, unit)?,
            false => simple(options, rng, num_terms, unit)?,
        };
        let question = match options.format_style.as_str() {
            "simple" => format!("Calculate {expression}."),
            _ => match rng.below(4) {
                0 => format!("What is {expression}?"),
                1 => format!("Solve {expression}."),
                2 => format!("Compute {expression}."),
                _ => format!("Evaluate: {expression}."),
            },
        };
        Ok(Item::new(question, result).with("expression", expression))
    }
}

fn complex(
    options: &BasicArithmeticOptions,
    rng: &mut Random,
    num_terms: i64,
    unit: i64,
) -> Result<(String, BigInt), ItemError> {
    let parts = terms(options, rng, num_terms, unit)?;
    let expression = match options.whitespace.as_str() {
        "no_space" => parts.concat(),
        "single" => parts.join(" "),
        _ => {
            let mut spaced = String::new();
            for part in &parts {
                if rng.random() < 0.15 {
                    spaced.push(' ');
                }
                spaced.push_str(part);
            }
            strip(&spaced).to_owned()
        }
    };
    let expression = expression.replace("/ 0", "/ 1");
    let result = evaluate(&expression)?;
    Ok((expression, result))
}

/// So many terms with operators between them.
fn terms(
    options: &BasicArithmeticOptions,
    rng: &mut Random,
    remaining: i64,
    unit: i64,
) -> Result<Vec<String>, ItemError> {
    let num_left = rng.int(1, remaining)?;
    let num_right = remaining - num_left;
    let mut left = Vec::new();
    if num_left > 1 && rng.random() > 0.5 {
        let is_negated = rng.random() > 0.5 && options.allow_negation;
        left.push(if is_negated { "-(" } else { "(" }.to_owned());
        left.extend(terms(options, rng, num_left, unit)?);
        left.push(")".to_owned());
    } else {
        let undivided: Vec<&String> = options.operators.iter().filter(|one| *one != "/").collect();
        for place in 0..num_left {
            left.push(rng.int(1 - unit, unit - 1)?.to_string());
            if place + 1 < num_left {
                left.push((*rng.choice(&undivided)?).clone());
            }
        }
    }
    if num_right == 0 {
        return Ok(left);
    }
    let operator = rng.choice(&options.operators)?.clone();
    if operator != "/" {
        left.push(operator);
        left.extend(terms(options, rng, num_right, unit)?);
        return Ok(left);
    }
    let last = left.last().expect("there is a term");
    let dividend = if last == ")" { evaluate(&left.concat())? } else { evaluate(last)? };
    left.push(operator);
    let divisor = |rng: &mut Random| -> Result<String, ItemError> {
        match dividend.is_zero() {
            true => Ok(rng.int(1, unit - 1)?.to_string()),
            false => Ok(rng.choice(&common_divisors(&dividend, &BigInt::zero())?)?.to_string()),
        }
    };
    if num_right == 1 {
        left.push(divisor(rng)?);
        return Ok(left);
    }
    let mut right = terms(options, rng, num_right - 1, unit)?;
    if right.last().is_some_and(|last| last == ")") {
        let value = evaluate(&right.concat())?;
        let correction = match value.is_zero() {
            true => BigInt::from(1),
            false => {
                let divisors = common_divisors(&dividend, &value)?;
                BigInt::from(*rng.choice(&divisors)?) - &value
            }
        };
        right.pop();
        right.extend(["+".to_owned(), correction.to_string(), ")".to_owned()]);
    } else {
        left.push(divisor(rng)?);
        left.push("+".to_owned());
    }
    left.extend(right);
    Ok(left)
}

/// The common divisors of two numbers, in the package's order: every one is followed by its counterpart.
fn common_divisors(a: &BigInt, b: &BigInt) -> Result<Vec<u64>, ItemError> {
    let all = a.gcd(b).to_u64().filter(|all| all.isqrt() <= MOST_DIVISORS);
    let all = all.ok_or(ItemError::TooManyTries { tries: MOST_DIVISORS })?;
    let mut divisors = Vec::new();
    let mut one = 1;
    while one * one <= all {
        if all % one == 0 {
            divisors.push(one);
            if one * one != all {
                divisors.push(all / one);
            }
        }
        one += 1;
    }
    Ok(divisors)
}

/// Terms one after the other. A division shows the number that was drawn first, and divides by another that comes out even,
/// as in the package.
fn simple(
    options: &BasicArithmeticOptions,
    rng: &mut Random,
    num_terms: i64,
    unit: i64,
) -> Result<(String, BigInt), ItemError> {
    let mut constants = Vec::new();
    for _ in 0..num_terms {
        constants.push(rng.int(0, unit)?);
    }
    let mut operators = Vec::new();
    for _ in 1..num_terms {
        operators.push(rng.choice(&options.operators)?.as_str());
    }
    let mut expression = constants[0].to_string();
    let mut result = BigInt::from(constants[0]);
    for (operator, &constant) in operators.into_iter().zip(&constants[1..]) {
        expression.push_str(&format!(" {operator} {constant}"));
        match operator {
            "+" => result += constant,
            "-" => result -= constant,
            "*" => result *= constant,
            _ => {
                let end = result.abs().to_i64().map_or(unit, |size| size.min(unit));
                let divides = |one: &i64| match result.to_i64() {
                    Some(result) => result % one == 0,
                    None => (&result % *one).is_zero(),
                };
                let divisors: Vec<i64> = (2..end).filter(divides).collect();
                match divisors.is_empty() {
                    false => result /= *rng.choice(&divisors)?,
                    true => result *= rng.int(1, unit - 1)?,
                }
            }
        }
    }
    Ok((expression, result))
}

/// The value of an expression, with divisions rounded down.
fn evaluate(expression: &str) -> Result<BigInt, ItemError> {
    let mut evaluation = Evaluation { rest: expression.as_bytes() };
    evaluation.sum()
}

struct Evaluation<'e> {
    rest: &'e [u8],
}

impl Evaluation<'_> {
    fn peek(&mut self) -> Option<u8> {
        while let [b' ', rest @ ..] = self.rest {
            self.rest = rest;
        }
        self.rest.first().copied()
    }

    fn take(&mut self, wanted: &[u8]) -> Option<u8> {
        let found = self.peek().filter(|found| wanted.contains(found))?;
        self.rest = &self.rest[1..];
        Some(found)
    }

    fn sum(&mut self) -> Result<BigInt, ItemError> {
        let mut left = self.product()?;
        while let Some(operator) = self.take(b"+-") {
            let right = self.product()?;
            if operator == b'+' { left += right } else { left -= right }
        }
        Ok(left)
    }

    fn product(&mut self) -> Result<BigInt, ItemError> {
        let mut left = self.signed()?;
        while let Some(operator) = self.take(b"*/") {
            let right = self.signed()?;
            if operator == b'*' {
                left *= right;
            } else if right.is_zero() {
                return Err(ItemError::raised("integer division or modulo by zero"));
            } else {
                left = left.div_floor(&right);
            }
        }
        Ok(left)
    }

    fn signed(&mut self) -> Result<BigInt, ItemError> {
        if self.take(b"-").is_some() {
            return Ok(-self.signed()?);
        }
        if self.take(b"(").is_some() {
            let inside = self.sum()?;
            self.take(b")");
            return Ok(inside);
        }
        self.peek();
        let length = self.rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (digits, rest) = self.rest.split_at(length);
        self.rest = rest;
        BigInt::parse_bytes(digits, 10).ok_or_else(|| ItemError::raised("invalid syntax"))
    }
}
