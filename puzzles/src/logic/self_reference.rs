//! Statements about themselves.

use crate::prelude::*;

options! {
    /// Options of `self_reference`.
    SelfReferenceOptions {
        /// Has no effect, as in the package, 1 to 10. Default 5.
        difficulty: i64 = 5,
    }
    |given, problems| {
        problems.between("difficulty", given.difficulty, 1, 10);
    }
}

/// Seven statements about how many of them are true; in how many ways they can be is asked.
pub(crate) struct SelfReference;

/// Statements.
const COUNT: i64 = 7;

fn is_prime(n: i64) -> bool {
    matches!(n, 2 | 3 | 5 | 7)
}

fn is_composite(n: i64) -> bool {
    matches!(n, 4 | 6)
}

impl Generator for SelfReference {
    type Options = SelfReferenceOptions;

    fn item(_: &SelfReferenceOptions, rng: &mut Random) -> Result<Item, ItemError> {
        let mut truths = 1 + rng.below(6) as i64;
        let forced = i64::from(is_prime(truths)) + i64::from(is_composite(COUNT - truths));
        let mut intended = [false; 5];
        match truths - forced {
            others @ 0..=5 => {
                if others > 0 {
                    for place in rng.sample(&[0, 1, 2, 3, 4], others as usize)? {
                        intended[place] = true;
                    }
                }
            }
            _ => {
                truths = 4;
                intended = [true, true, true, true, false];
            }
        }
        let falsehoods = COUNT - truths;
        let at_least = if intended[0] { rng.int(1, truths)? } else { rng.int(truths + 1, COUNT)? };
        let at_most = match intended[1] {
            true => rng.int(falsehoods, COUNT)?,
            false => rng.int(0, (falsehoods - 1).max(0))?,
        };
        let mut exactly = |number: i64, is_intended: bool| -> Result<i64, ItemError> {
            if is_intended {
                return Ok(number);
            }
            let others: Vec<i64> = (0..=COUNT).filter(|other| *other != number).collect();
            Ok(*rng.choice(&others)?)
        };
        let exactly_true = exactly(truths, intended[2])?;
        let exactly_false = exactly(falsehoods, intended[3])?;
        let question = format!(
            "Given the truthfulness of these statements, please tell me the number of possible solutions: \n - Statement 1: 'At least {at_least} of these 7 statements are true.'\n - Statement 2: 'At most {at_most} of these 7 statements are false.'\n - Statement 3: 'Exactly {exactly_true} of these 7 statements are true.'\n - Statement 4: 'Exactly {exactly_false} of these 7 statements are false.'\n - Statement 5: 'Either Statement 3 or Statement 4 is true, but not both.'\n - Statement 6: 'The number of true statements is a prime number.'\n - Statement 7: 'The number of false statements is a composite number.'\n"
        );
        let is_solution = |candidate: &u32| {
            let truths = i64::from(candidate.count_ones());
            let falsehoods = COUNT - truths;
            let (third, fourth) = (truths == exactly_true, falsehoods == exactly_false);
            let facts = [
                truths >= at_least,
                falsehoods <= at_most,
                third,
                fourth,
                third != fourth,
                is_prime(truths),
                is_composite(falsehoods),
            ];
            facts.iter().enumerate().all(|(place, fact)| (candidate >> place & 1 == 1) == *fact)
        };
        Ok(Item::new(question, (0..128).filter(is_solution).count()))
    }

    fn score(_: &SelfReferenceOptions, answer: Option<&str>, item: &Item) -> f64 {
        f64::from(answer == Some(item.gold()))
    }
}
