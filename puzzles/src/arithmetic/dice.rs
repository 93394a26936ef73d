//! Odds of dice.

use num_bigint::BigUint;
use num_integer::Integer;
use spar_python::Random;

use crate::dataset::Generator;
use crate::options::options;
use crate::text::joined;
use crate::{Item, ItemError};

options! {
    /// Options of `dice`.
    DiceOptions {
        /// Dice, 1 to 100. Default 4.
        num_dice: i64 = 4,
        /// Sides of the largest die, 2 to 1000. Default 20.
        max_dice_size: i64 = 20,
    }
    |given, problems| {
        problems.between("num_dice", given.num_dice, 1, 100);
        problems.between("max_dice_size", given.max_dice_size, 2, 1_000);
    }
}

/// Several dice, and the odds of rolling so much or more with them.
pub(crate) struct Dice;

impl Generator for Dice {
    type Options = DiceOptions;

    fn item(options: &DiceOptions, rng: &mut Random) -> Result<Item, ItemError> {
        let mut dice = vec![options.max_dice_size];
        for _ in 1..options.num_dice {
            dice.push(match options.max_dice_size > 2 {
                true => rng.int(2, options.max_dice_size - 1)?,
                false => 2,
            });
        }
        dice.sort_unstable_by(|a, b| b.cmp(a));
        let (least, most) = (options.num_dice, dice.iter().sum::<i64>());
        let target = rng.int(least + (most - least) / 3, least + 2 * (most - least) / 3)?;
        let ways = ways(&dice, target as usize);
        let all: BigUint = dice.iter().map(|&sides| BigUint::from(sides as u64)).product();
        let common = ways.gcd(&all);
        let question = format!(
            "I have these dice: {}. What are the odds of rolling {target} or higher? (Assume that all dice are rolled at once, and that '1d6' represents one roll of a 6-sided dice.) Please respond with a reduced fraction representing the probability [ex., 1/60].",
            joined(dice.iter().map(|sides| format!("1d{sides}")), ", ")
        );
        Ok(Item::new(question, format!("{}/{}", ways / &common, all / &common)))
    }

    fn score(_: &DiceOptions, answer: Option<&str>, item: &Item) -> f64 {
        let plain = |text: &str| text.to_lowercase().replace('\n', "");
        f64::from(answer.is_some_and(|answer| plain(answer) == plain(item.gold())))
    }
}

/// In how many ways dice show the target or more together.
fn ways(dice: &[i64], target: usize) -> BigUint {
    if let Some(ways) = small_ways(dice, target) {
        return ways.into();
    }
    let mut counts = vec![BigUint::from(1_u32)];
    for &sides in dice {
        let sides = sides as usize;
        let mut next = vec![BigUint::default(); counts.len() + sides];
        for (sum, count) in counts.iter().enumerate() {
            for slot in &mut next[sum + 1..=sum + sides] {
                *slot += count;
            }
        }
        counts = next;
    }
    counts.iter().skip(target).sum()
}

/// As [`ways`], where all numbers have 128 bits.
fn small_ways(dice: &[i64], target: usize) -> Option<u128> {
    dice.iter().try_fold(1_u128, |all, &sides| all.checked_mul(sides as u128))?;
    let mut counts = vec![1_u128];
    for &sides in dice {
        let sides = sides as usize;
        let mut next = vec![0; counts.len() + sides];
        for (sum, count) in counts.iter().enumerate() {
            for slot in &mut next[sum + 1..=sum + sides] {
                *slot += count;
            }
        }
        counts = next;
    }
    Some(counts.iter().skip(target).sum())
}
