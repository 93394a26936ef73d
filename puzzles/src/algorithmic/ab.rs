//! Programs of A::B.

use std::collections::HashSet;

use crate::prelude::*;

/// Programs drawn before options are taken to give none that ends.
const MOST_TRIES: u64 = 100_000;

options! {
    /// Options of `ab`.
    AbOptions {
        /// Tokens of a program, 1 to 100. Default 10.
        length: i64 = 10,
    }
    |given, problems| {
        problems.between("length", given.length, 1, 100);
    }
}

/// A program of four tokens, rewritten until nothing faces anything.
pub(crate) struct Ab;

impl Generator for Ab {
    type Options = AbOptions;

    fn item(options: &AbOptions, rng: &mut Random) -> Result<Item, ItemError> {
        for _ in 0..MOST_TRIES {
            let mut program = Vec::new();
            for _ in 0..options.length {
                program.push(*rng.choice(&["A#", "B#", "#A", "#B"])?);
            }
            if let Some(last) = last_state(&program) {
                let question = format!(
                    "A::B is a system with 4 tokens: `A#`, `#A`, `B#` and `#B`.\n\nAn A::B program is a sequence of tokens. Example:\n\n    B# A# #B #A B#\n\nTo *compute* a program, we must rewrite neighbor tokens, using the rules:\n\n    A# #A ... becomes ... nothing\n    A# #B ... becomes ... #B A#\n    B# #A ... becomes ... #A B#\n    B# #B ... becomes ... nothing\n\nIn other words, whenever two neighbor tokens have their '#' facing each-other,\nthey must be rewritten according to the corresponding rule.\n\nNow, consider the following program:\n\n{}\n\nReturn the final state of the program.\n",
                    program.join(" ")
                );
                return Ok(Item::new(question, last.join(" ")));
            }
        }
        Err(ItemError::TooManyTries { tries: MOST_TRIES })
    }

    fn score(_: &AbOptions, answer: Option<&str>, item: &Item) -> f64 {
        f64::from(answer == Some(item.gold()))
    }
}

/// Where a program ends; absent where it does not within a hundred steps.
fn last_state<'t>(program: &[&'t str]) -> Option<Vec<&'t str>> {
    let mut state = program.to_vec();
    let mut seen = HashSet::from([state.clone()]);
    for _ in 0..100 {
        let facing =
            state.windows(2).position(|pair| pair[0].ends_with('#') && pair[1].starts_with('#'));
        let Some(at) = facing else { return Some(state) };
        match state[at].as_bytes()[0] == state[at + 1].as_bytes()[1] {
            true => {
                state.drain(at..at + 2);
            }
            false => state.swap(at, at + 1),
        }
        if !seen.insert(state.clone()) {
            return None;
        }
    }
    None
}
