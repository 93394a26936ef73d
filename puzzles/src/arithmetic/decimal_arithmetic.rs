//! Arithmetic of decimal numbers.

use crate::decimal::{DIVISION_BY_ZERO, Decimal};
use crate::prelude::*;

options! {
    /// Options of `decimal_arithmetic`.
    DecimalArithmeticOptions {
        /// Fewest digits behind the point, at least 0. Default 3.
        min_num_decimal_places: i64 = 3,
        /// Most digits behind the point, up to 15. Default 3.
        max_num_decimal_places: i64 = 3,
        /// Fewest numbers, at least 1. Default 2.
        min_terms: i64 = 2,
        /// Most numbers, up to 200. Default 6.
        max_terms: i64 = 6,
        /// Significant digits of results, at least 2 more than decimal places, up to 100. Default 12.
        precision: i64 = 12,
    }
    |given, problems| {
        let places = (given.min_num_decimal_places, given.max_num_decimal_places);
        problems.span(("min_num_decimal_places", "max_num_decimal_places"), places, (0, 15));
        problems.span(("min_terms", "max_terms"), (given.min_terms, given.max_terms), (1, 200));
        problems.between("precision", given.precision, given.max_num_decimal_places + 2, 100);
    }
}

/// An expression of decimal numbers, partly in parentheses.
pub(crate) struct DecimalArithmetic;

impl Generator for DecimalArithmetic {
    type Options = DecimalArithmeticOptions;

    fn item(options: &DecimalArithmeticOptions, rng: &mut Random) -> Result<Item, ItemError> {
        let terms = rng.int(options.min_terms, options.max_terms)?;
        let (mut operands, mut operators) = (Vec::new(), Vec::new());
        for place in 0..terms {
            let places =
                rng.int(options.min_num_decimal_places, options.max_num_decimal_places)? as u32;
            let unit = 10_i64.pow(places);
            let raw = rng.int(1, 10 * unit)?;
            operands.push(match places {
                0 => raw.to_string(),
                places => format!("{}.{:0width$}", raw / unit, raw % unit, width = places as usize),
            });
            if place < terms - 1 {
                operators.push(*rng.choice(&['+', '-', '*', '/'])?);
            }
        }
        let expression = grouped(rng, &operands, &operators)?;
        let answer = Evaluation { rest: &expression, precision: options.precision as usize }
            .sum()
            .ok_or_else(|| ItemError::raised(DIVISION_BY_ZERO))?;
        let question = format!(
            "Please solve this problem to a maximum of {} significant digits, rounding up from the half. Only reply with the final value.\n{expression} = ?",
            options.precision
        );
        Ok(Item::new(question, answer))
    }

    fn score(options: &DecimalArithmeticOptions, answer: Option<&str>, item: &Item) -> f64 {
        let is_near = || {
            let (given, gold) = (Decimal::parse(answer?)?, Decimal::parse(item.gold())?);
            Some(given.is_within(
                &gold,
                -options.max_num_decimal_places,
                options.precision as usize,
            ))
        };
        f64::from(is_near().unwrap_or_default())
    }
}

/// Numbers with operators between them, every part in parentheses or not.
fn grouped(rng: &mut Random, operands: &[String], operators: &[char]) -> Result<String, ItemError> {
    if let [operand] = operands {
        return Ok(operand.clone());
    }
    let split = rng.int(1, operands.len() as i64 - 1)? as usize;
    let left = grouped(rng, &operands[..split], &operators[..split - 1])?;
    let right = grouped(rng, &operands[split..], &operators[split..])?;
    let expression = format!("{left}{}{right}", operators[split - 1]);
    Ok(if *rng.choice(&[true, false])? { format!("({expression})") } else { expression })
}

/// An expression under evaluation; what comes is absent where a divisor is zero.
struct Evaluation<'e> {
    rest: &'e str,
    precision: usize,
}

impl Evaluation<'_> {
    fn take(&mut self, operators: [char; 2]) -> Option<char> {
        let found = self.rest.chars().next().filter(|c| operators.contains(c))?;
        self.rest = &self.rest[1..];
        Some(found)
    }

    fn sum(&mut self) -> Option<Decimal> {
        let mut left = self.product()?;
        while let Some(operator) = self.take(['+', '-']) {
            let right = self.product()?;
            let right = if operator == '+' { right } else { right.negated() };
            left = left.plus(&right, self.precision);
        }
        Some(left)
    }

    fn product(&mut self) -> Option<Decimal> {
        let mut left = self.operand()?;
        while let Some(operator) = self.take(['*', '/']) {
            let right = self.operand()?;
            left = match operator {
                '*' => left.times(&right, self.precision),
                _ => left.over(&right, self.precision)?,
            };
        }
        Some(left)
    }

    fn operand(&mut self) -> Option<Decimal> {
        if let Some(inside) = self.rest.strip_prefix('(') {
            self.rest = inside;
            let value = self.sum()?;
            self.rest = self.rest.strip_prefix(')')?;
            return Some(value);
        }
        let end =
            self.rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(self.rest.len());
        let (number, rest) = self.rest.split_at(end);
        self.rest = rest;
        // Python reads a number with a point as a float, and the decimal number is what that is written as.
        match number.contains('.') {
            true => Decimal::parse(&repr_float(number.parse().ok()?)),
            false => Decimal::parse(number),
        }
    }
}
