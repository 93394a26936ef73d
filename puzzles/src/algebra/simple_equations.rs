//! Linear equations.

use num_bigint::BigInt;
use num_traits::{One, Signed, Zero};

use crate::prelude::*;

const OPERATORS: [&str; 3] = ["+", "-", "*"];

options! {
    /// Options of `simple_equations`.
    SimpleEquationsOptions {
        /// Fewest terms, at least 1. Default 2.
        min_terms: i64 = 2,
        /// Most terms, up to 200. Default 4.
        max_terms: i64 = 4,
        /// Least number, at least 1. Default 1.
        min_value: i64 = 1,
        /// Largest number, up to 10^15. Default 100.
        max_value: i64 = 100,
        /// Operators, of `+`, `-`, `*`. Default all.
        operators: Vec<String> = texts(&OPERATORS),
        /// How often each operator is drawn; together 1. Default 0.4, 0.4, 0.2.
        operators_weights: Vec<f64> = vec![0.4, 0.4, 0.2],
    }
    |given, problems| {
        problems.span(("min_terms", "max_terms"), (given.min_terms, given.max_terms), (1, 200));
        problems.span(("min_value", "max_value"), (given.min_value, given.max_value), (1, 1_000_000_000_000_000));
        problems.subset("operators", &given.operators, &OPERATORS);
        problems.weights("operators_weights", &given.operators_weights, given.operators.len());
    }
}

/// A linear equation with one variable.
pub(crate) struct SimpleEquations;

impl Generator for SimpleEquations {
    type Options = SimpleEquationsOptions;

    fn item(options: &SimpleEquationsOptions, rng: &mut Random) -> Result<Item, ItemError> {
        let variable = char::from(b'a' + rng.below(26) as u8);
        let count = rng.int(options.min_terms, options.max_terms)?;
        // Each term is a multiple of the variable and a number.
        let mut terms = Vec::new();
        for _ in 0..count {
            let value = rng.int(options.min_value, options.max_value)?;
            terms.push((BigInt::zero(), BigInt::from(value)));
        }
        let place = rng.int(0, count - 1)? as usize;
        let factor = rng.int(options.min_value, options.max_value)?;
        let has_products = options.operators.iter().any(|operator| operator == "*");
        terms[place] = (BigInt::from(if has_products { factor } else { 1 }), BigInt::zero());
        let (mut factor, mut number) = terms[0].clone();
        for (by, term) in &terms[1..] {
            let operator =
                rng.weighted_choices(&options.operators, &options.operators_weights, 1)?[0];
            match operator.as_str() {
                "+" => {
                    factor += by;
                    number += term;
                }
                "-" => {
                    factor -= by;
                    number -= term;
                }
                // Only one of two factors has the variable.
                _ => {
                    factor = &factor * term + &number * by;
                    number *= term;
                }
            }
        }
        let solution = rng.int(options.min_value, options.max_value)?;
        let right = &factor * solution + &number;
        let equation = format!("{} = {right}", written(&factor, &number, variable));
        let question = match rng.below(3) {
            0 => format!("Find the value of {variable} in the equation: {equation}"),
            1 => format!("Solve for {variable}: {equation}"),
            _ => format!("Determine the value of {variable} that satisfies: {equation}"),
        };
        Ok(Item::new(question, solution).with("equation", equation))
    }
}

/// A linear expression as SymPy writes it.
fn written(factor: &BigInt, number: &BigInt, variable: char) -> String {
    let size = factor.abs();
    let multiple = if size.is_one() { variable.to_string() } else { format!("{size}*{variable}") };
    if factor.is_negative() && number.is_positive() {
        return format!("{number} - {multiple}");
    }
    let sign = if factor.is_negative() { "-" } else { "" };
    match number {
        _ if number.is_zero() => format!("{sign}{multiple}"),
        _ if number.is_negative() => format!("{sign}{multiple} - {}", number.abs()),
        _ => format!("{sign}{multiple} + {number}"),
    }
}
