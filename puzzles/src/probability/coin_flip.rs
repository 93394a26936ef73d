//! Heads of coins.

use num_bigint::{BigInt, BigUint};
use num_traits::{Signed, ToPrimitive, Zero};
use spar_python::characters::decimal_value;

use crate::prelude::*;
use crate::text::general;

options! {
    /// Options of `coin_flip`.
    CoinFlipOptions {
        /// Fewest flips, at least 1. Default 3.
        min_trials: i64 = 3,
        /// Most flips, up to 1000. Default 15.
        max_trials: i64 = 15,
        /// Whether exact numbers of heads are asked for. Default true.
        allow_exact: bool = true,
        /// Whether least numbers of heads are asked for. Default true.
        allow_at_least: bool = true,
    }
    |given, problems| {
        problems.span(("min_trials", "max_trials"), (given.min_trials, given.max_trials), (1, 1_000));
        problems.require(given.allow_exact || given.allow_at_least, || {
            "allow_exact or allow_at_least must be true".to_owned()
        });
    }
}

/// The probability of so many heads of several coins.
pub(crate) struct CoinFlip;

impl Generator for CoinFlip {
    type Options = CoinFlipOptions;

    fn item(options: &CoinFlipOptions, rng: &mut Random) -> Result<Item, ItemError> {
        let flips = rng.int(options.min_trials, options.max_trials)?;
        let mut kinds = Vec::new();
        if options.allow_exact {
            kinds.push(("exactly", true));
        }
        if options.allow_at_least {
            kinds.push(("at least", false));
        }
        let (told, is_exact) = *rng.choice(&kinds)?;
        let heads = rng.int(0, flips)?;
        let last = if is_exact { heads } else { flips };
        let mut ways = BigUint::default();
        let mut choices = BigUint::from(1_u32);
        for count in 0..=last {
            if count >= heads {
                ways += &choices;
            }
            choices = choices * (flips - count) as u64 / (count + 1) as u64;
        }
        let probability = ways.to_f64().unwrap_or(f64::INFINITY) * 0.5_f64.powi(flips as i32);
        let question = format!(
            "What is the probability of getting {told} {heads} heads in {flips} fair coin flips?"
        );
        Ok(Item::new(question, general(probability, 10)).with("num_trials", flips))
    }

    fn score(_: &CoinFlipOptions, answer: Option<&str>, item: &Item) -> f64 {
        let read = |text: &str| fraction(&text.replace(',', ""));
        let Some((given, gold)) =
            answer.and_then(|answer| Some((read(answer)?, read(item.gold())?)))
        else {
            return 0.0;
        };
        if (given - gold).abs() <= 0.0001 {
            return 1.0;
        }
        let (given, gold) = (general(given, 10), general(gold, 10));
        let equal = given.bytes().zip(gold.bytes()).take_while(|(a, b)| a == b).count();
        equal as f64 / given.len().min(gold.len()) as f64
    }
}

/// `float(Fraction(text))`, absent where that raises; as CPython 3.11 reads fractions, without spaces around the slash.
fn fraction(text: &str) -> Option<f64> {
    let plain = strip(text);
    let unsigned = plain.strip_prefix(['+', '-']).unwrap_or(plain);
    if !unsigned.strip_prefix('.').unwrap_or(unsigned).starts_with(|c| decimal_value(c).is_some()) {
        return None;
    }
    let Some((above, below)) = plain.split_once('/') else {
        return float(plain).filter(|value| value.is_finite());
    };
    if !below.starts_with(|c| decimal_value(c).is_some())
        || below.ends_with(|c: char| c.is_whitespace())
    {
        return None;
    }
    let (above, below) = (big_int(above)?, big_int(below)?);
    (!below.is_zero()).then(|| quotient(&above, &below)).filter(|value| value.is_finite())
}

/// The float next to the quotient of two numbers.
fn quotient(above: &BigInt, below: &BigInt) -> f64 {
    const EXACT: u64 = 1 << 53;
    if let (Some(a), Some(b)) = (above.magnitude().to_u64(), below.magnitude().to_u64())
        && a <= EXACT
        && b <= EXACT
    {
        let value = a as f64 / b as f64;
        return if above.is_negative() { -value } else { value };
    }
    // 66 bits and one that tells whether anything follows are enough for the right rounding.
    let shift = 66 + below.bits() as i64 - above.bits() as i64;
    let (a, b) = match shift >= 0 {
        true => (above.magnitude() << shift as u64, below.magnitude().clone()),
        false => (above.magnitude().clone(), below.magnitude() << (-shift) as u64),
    };
    let (whole, rest) = (&a / &b, &a % &b);
    let whole = whole * 2_u32 + u32::from(!rest.is_zero());
    let value = whole.to_f64().unwrap_or(f64::INFINITY)
        * 2_f64.powi(-(shift + 1).clamp(-2_000, 2_000) as i32);
    if above.is_negative() { -value } else { value }
}
