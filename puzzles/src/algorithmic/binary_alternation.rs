//! Bits to be brought into turns.

use crate::prelude::*;

options! {
    /// Options of `binary_alternation`.
    BinaryAlternationOptions {
        /// Fewest bits, at least 1. Default 10.
        min_n: i64 = 10,
        /// Most bits, up to 100000. Default 30.
        max_n: i64 = 30,
        /// How often there is a solution, 0 to 1. Default 0.8.
        p_solvable: f64 = 0.8,
    }
    |given, problems| {
        problems.span(("min_n", "max_n"), (given.min_n, given.max_n), (1, 100_000));
        problems.between("p_solvable", given.p_solvable, 0.0, 1.0);
    }
}

/// A string of bits, to be made alternating by as few swaps as possible.
pub(crate) struct BinaryAlternation;

impl Generator for BinaryAlternation {
    type Options = BinaryAlternationOptions;

    fn item(options: &BinaryAlternationOptions, rng: &mut Random) -> Result<Item, ItemError> {
        let length = rng.int(options.min_n, options.max_n)? as usize;
        let is_solvable = rng.random() < options.p_solvable;
        let (mut ones, mut zeros) = (length / 2, length / 2);
        if length % 2 == 1 {
            *(if rng.random() < 0.5 { &mut ones } else { &mut zeros }) += 1;
        }
        if !is_solvable {
            if ones > zeros {
                ones += 1;
            } else if ones < zeros {
                zeros += 1;
            } else if rng.random() < 0.5 {
                ones += 2;
            } else {
                zeros += 2;
            }
        }
        let mut bits = [vec!['1'; ones], vec!['0'; zeros]].concat();
        rng.shuffle(&mut bits);
        let string: String = bits.into_iter().collect();
        let question = format!(
            "Given a binary string, return the minimum number of character swaps to make it alternating, or -1 if it is impossible.\n\nThe string is called alternating if no two adjacent characters are equal. For example, the strings \"010\" and \"1010\" are alternating, while the string \"0100\" is not.\n\nAny two characters may be swapped, even if they are not adjacent.\n\nNow, determine the minimum number of swaps to make the following binary string alternating: {string}\n"
        );
        Ok(Item::new(question, swaps(&string, ones, zeros)))
    }
}

fn swaps(string: &str, ones: usize, zeros: usize) -> i64 {
    let from = |first: char| {
        let other = if first == '0' { '1' } else { '0' };
        let wrong = string
            .chars()
            .enumerate()
            .filter(|(place, bit)| *bit != if place % 2 == 0 { first } else { other });
        wrong.count() as i64 / 2
    };
    match ones as i64 - zeros as i64 {
        1 => from('1'),
        -1 => from('0'),
        0 => from('0').min(from('1')),
        _ => -1,
    }
}
