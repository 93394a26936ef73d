//! Sequences to be continued.

use num_bigint::BigInt;
use num_integer::Integer;
use num_traits::{Signed, ToPrimitive};
use spar_python::Random;

use crate::dataset::Generator;
use crate::options::options;
use crate::text::joined;
use crate::{Item, ItemError};

options! {
    /// Options of `number_sequence`.
    NumberSequenceOptions {
        /// Fewest terms shown, at least 4. Default 4.
        min_terms: i64 = 4,
        /// Most terms shown, up to 16. Default 8.
        max_terms: i64 = 8,
        /// Has no effect, as in the package. Default -100.
        min_value: i64 = -100,
        /// Above the least; has no effect, as in the package. Default 100.
        max_value: i64 = 100,
        /// Most steps of a rule without one, 1 to 5. Default 3.
        max_complexity: i64 = 3,
    }
    |given, problems| {
        problems.span(("min_terms", "max_terms"), (given.min_terms, given.max_terms), (4, 16));
        problems.require(given.max_value > given.min_value, || "max_value must be above min_value".to_owned());
        problems.between("max_complexity", given.max_complexity, 1, 5);
    }
}

/// Largest size of a term of a sequence that is shown.
const LARGEST: i64 = 1000;
/// Bits of a term beyond which a sequence can only be refused: its terms are not computed further.
const MOST_BITS: u64 = 200_000;

/// One step of a rule.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Operation {
    Add(i64),
    Multiply(i64),
    Square,
    Double,
    Half,
    PreviousPlus,
    /// Alternate and compose, which do nothing in rules that are drawn.
    Nothing,
}

/// The first terms of a sequence whose rule has a few steps; the next is asked for.
pub(crate) struct NumberSequence;

impl Generator for NumberSequence {
    type Options = NumberSequenceOptions;

    fn item(options: &NumberSequenceOptions, rng: &mut Random) -> Result<Item, ItemError> {
        let complexity = rng.int(1, options.max_complexity)?;
        let mut num_terms = 0;
        let mut found = None;
        for _ in 0..10 {
            let rule = draw_rule(rng, complexity)?;
            num_terms = rng.int(options.min_terms, options.max_terms)?;
            let first = rng.int(-10, 10)?;
            found =
                sequence(&rule, first, num_terms).filter(|terms| is_interesting(terms, complexity));
            if found.is_some() {
                break;
            }
        }
        let terms = found.unwrap_or_else(|| (0..=num_terms).map(|place| place * 2).collect());
        let (last, shown) = terms.split_last().expect("there are terms");
        Ok(Item::new(format!("{}, ?", joined(shown, ", ")), last))
    }
}

fn draw_rule(rng: &mut Random, complexity: i64) -> Result<Vec<Operation>, ItemError> {
    let count = rng.int(1, complexity + 1)?;
    let mut rule = Vec::with_capacity(count as usize);
    for _ in 0..count {
        let kind = rng.below(8);
        let mut parameter = || -> Result<i64, ItemError> {
            loop {
                match rng.int(-10, 10)? {
                    0 => {}
                    drawn => return Ok(drawn),
                }
            }
        };
        rule.push(match kind {
            0 => Operation::Add(parameter()?),
            1 => Operation::Multiply(parameter()?),
            2 => Operation::Square,
            3 => Operation::Double,
            4 => Operation::Half,
            5 => Operation::PreviousPlus,
            _ => Operation::Nothing,
        });
    }
    Ok(rule)
}

/// The first term and so many more; absent where one is so large that the sequence is not shown anyway.
fn sequence(rule: &[Operation], first: i64, more: i64) -> Option<Vec<i64>> {
    let mut terms = vec![BigInt::from(first)];
    let mut is_refused = false;
    for place in 0..more as usize {
        let mut term = terms[place].clone();
        for operation in rule {
            match operation {
                Operation::Add(parameter) => term += *parameter,
                Operation::Multiply(parameter) => term *= *parameter,
                Operation::Square => term = &term * &term,
                Operation::Double => term *= 2,
                Operation::Half => term = term.div_floor(&BigInt::from(2)),
                Operation::PreviousPlus if place > 0 => term += &terms[place - 1],
                Operation::PreviousPlus | Operation::Nothing => {}
            }
            if term.bits() > MOST_BITS {
                return None;
            }
        }
        is_refused |= term.abs() > BigInt::from(LARGEST);
        if is_refused {
            return None;
        }
        terms.push(term);
    }
    terms.iter().map(ToPrimitive::to_i64).collect()
}

fn is_interesting(terms: &[i64], complexity: i64) -> bool {
    let all_equal = |values: &[i64]| values.iter().all(|value| *value == values[0]);
    let differences: Vec<i64> = terms.windows(2).map(|pair| pair[1] - pair[0]).collect();
    terms.iter().all(|term| term.abs() <= LARGEST)
        && !all_equal(terms)
        && !(complexity > 1 && all_equal(&differences))
}
