//! What it takes to compare values, told before it is done.

use std::cell::Cell;

use num_rational::BigRational;
use num_traits::ToPrimitive;

use crate::Unclear;
use crate::exact::{MAX_BITS, MAX_FACTORIAL};
use crate::expression::{Expression, Function};

/// What one text may take, in [units](of): some tenths of a second.
const MOST: u64 = 400_000;

/// What comparisons may still take.
#[derive(Debug)]
pub(crate) struct Effort {
    left: Cell<u64>,
}

impl Default for Effort {
    fn default() -> Self {
        Self { left: Cell::new(MOST) }
    }
}

impl Effort {
    /// Takes what comparing two formulas once will take.
    ///
    /// # Errors
    ///
    /// [`Unclear::TooLarge`] where that is more than is left.
    pub(crate) fn spend(&self, a: &Expression, b: &Expression) -> Result<(), Unclear> {
        let needed = of(a).saturating_add(of(b)).saturating_add(1);
        // What is too much for this pair is too much for all behind it.
        self.left.set(self.left.get().saturating_sub(needed));
        if self.left.get() == 0 { Err(Unclear::TooLarge) } else { Ok(()) }
    }
}

/// About how many microseconds of a core the value of a formula takes.
fn of(expression: &Expression) -> u64 {
    estimate(expression).0
}

/// What a formula takes, and about how many words of 64 bits its value has; absent where it is seen to be no fraction.
fn estimate(expression: &Expression) -> (u64, Option<u64>) {
    use Expression as E;
    let most_words = MAX_BITS / 64;
    let parts: Vec<(u64, Option<u64>)> = expression.parts().into_iter().map(estimate).collect();
    let effort = parts.iter().fold(1_u64, |sum, (effort, _)| sum.saturating_add(*effort));
    let sum_of_words = || -> Option<u64> { parts.iter().map(|(_, words)| *words).sum() };
    let (extra, words) = match expression {
        E::Number { value, .. } => {
            (0, Some((value.numer().bits() + value.denom().bits()).div_ceil(64)))
        }
        E::Variable(_) | E::Constant(_) | E::NamedSet(_) => (0, None),
        E::Power(base, exponent) => {
            let words = sum_of_words().map(|_| {
                let bits = match &**base {
                    E::Number { value, .. } => value.numer().bits() + value.denom().bits(),
                    _ => parts[0].1.unwrap_or(0).saturating_mul(64),
                };
                bits.saturating_mul(whole(exponent).unwrap_or(MAX_BITS)) / 64
            });
            (0, words)
        }
        E::Call(Function::Factorial, items) if sum_of_words().is_some() => {
            let of = items.first().and_then(whole).unwrap_or(u64::MAX).min(MAX_FACTORIAL.into());
            let words = of.saturating_mul(of.max(2).ilog2().into()) / 64;
            (of.saturating_mul(words) / 2_000, Some(words))
        }
        E::Call(Function::Binomial, items) if sum_of_words().is_some() => {
            let of = |place: usize| items.get(place).and_then(whole);
            let take = match (of(0), of(1)) {
                (Some(of), Some(take)) if take <= of => take.min(of - take),
                (_, take) => take.unwrap_or(u64::MAX),
            };
            let take = take.min(MAX_FACTORIAL.into());
            let bits = of(0).unwrap_or(MAX_BITS).max(2).ilog2();
            let words = take.saturating_mul(bits.into()) / 64;
            (take.saturating_mul(words.min(most_words)) / 200, Some(words))
        }
        _ => (0, sum_of_words()),
    };
    // Fractions are reduced after every operation, which takes the square of their length.
    let words = words.map(|words| words.min(most_words));
    let reducing = words.map_or(0, |words| words * words / 30);
    (effort.saturating_add(extra).saturating_add(reducing), words)
}

/// A whole number that is written as such, without its sign.
fn whole(expression: &Expression) -> Option<u64> {
    match expression {
        Expression::Number { value, .. } => whole_of(value),
        Expression::Negative(it) => match &**it {
            Expression::Number { value, .. } => whole_of(value),
            _ => None,
        },
        _ => None,
    }
}

fn whole_of(value: &BigRational) -> Option<u64> {
    value.is_integer().then(|| value.numer().magnitude().to_u64().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::latex::{self, Units};

    fn of_text(text: &str) -> u64 {
        of(&latex::read(text, Units::Words).unwrap())
    }

    #[test]
    fn large_numbers_take_more_than_small_ones() {
        assert!(of_text("x+1") < 10);
        assert!(of_text(r"\binom{10}{3} + 2^{64} - 20!") < 30);
        assert!(of_text("1999!") > 200);
        assert!(of_text(r"\binom{9999}{2000}") > 1_000);
        assert!(of_text("3^{20000}") > 1_000);
        assert!(of_text("3^{n} + n!") < 20, "no fraction is computed");
        assert!(of_text(&format!("{}9{}", "9^{".repeat(30), "}".repeat(30))) > 1_000);
    }
}
