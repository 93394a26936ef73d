//! Letters drawn as tiles.

use crate::prelude::*;

options! {
    /// Options of `mahjong_puzzle`.
    MahjongPuzzleOptions {
        /// Fewest rounds, at least 1. Default 10.
        min_num_rounds: i64 = 10,
        /// Most rounds, up to 10000. Default 50.
        max_num_rounds: i64 = 50,
    }
    |given, problems| {
        problems.span(("min_num_rounds", "max_num_rounds"), (given.min_num_rounds, given.max_num_rounds), (1, 10_000));
    }
}

/// Cards that come and go; what the last one makes is asked for.
pub(crate) struct MahjongPuzzle;

impl Generator for MahjongPuzzle {
    type Options = MahjongPuzzleOptions;

    fn item(options: &MahjongPuzzleOptions, rng: &mut Random) -> Result<Item, ItemError> {
        let alphabet: Vec<u8> = (b'A'..=b'Z').collect();
        let mut cards = rng.sample(&[alphabet.clone(), alphabet.clone()].concat(), 13)?;
        let first: String = cards.iter().copied().map(char::from).collect();
        let rounds = rng.int(options.min_num_rounds, options.max_num_rounds)?;
        let mut result = "Pass";
        let mut told = Vec::new();
        for round in 1..=rounds {
            let mut counts = [0_u32; 28];
            cards.iter().for_each(|card| counts[usize::from(card - b'A') + 1] += 1);
            let makes: [fn(&[u32; 28], usize) -> bool; 2] = [makes_peng, makes_chi];
            let wanted = rng.below(3) as usize;
            let good: Vec<u8> = match makes.get(wanted) {
                Some(makes) => alphabet
                    .iter()
                    .copied()
                    .filter(|card| makes(&counts, usize::from(card - b'A') + 1))
                    .collect(),
                None => Vec::new(),
            };
            let added = if good.is_empty() { *rng.choice(&alphabet)? } else { *rng.choice(&good)? };
            result = if good.is_empty() { "Pass" } else { ["Peng", "Chi"][wanted] };
            let removed = *rng.choice(&cards)?;
            if let Some(place) = cards.iter().position(|card| *card == removed) {
                cards.remove(place);
            }
            cards.push(added);
            let shown = |card: u8| {
                let article = if b"AEIOU".contains(&card) { "an" } else { "a" };
                format!("{article} {}", char::from(card))
            };
            told.push(format!(
                "Round {round}: Add {} card and remove {} card.",
                shown(added),
                shown(removed)
            ));
        }
        let question = format!(
            "There are several letter cards, and the game rules are as follows:\n1. Initially, there are 13 cards.\n2. Each time, a new card is added, and a result is determined. Then, one card is removed.\n3. When there are two identical cards in hand, and the newly added card is the same as these two cards, the result is determined as \"Peng\".\n4. If there are two cards in hand such that the new card can form a consecutive letter sequence with these two cards, the result is determined as \"Chi\". For example: ABC, BCD, CDE, etc.\n5. If the new card does not meet the conditions of 3 and 4, the result is determined as \"Pass\".\n6. \"Peng\" takes precedence over \"Chi\".\n7. The card that is removed does not affect the result determination of the current round.\n\nYour output should be one of the following: \"Peng\", \"Chi\", or \"Pass\" (without quotes).\n\nNow, given the initial cards {first}, what is the result at the end of performing the following rounds of operations:\n{}\n",
            told.join("\n")
        );
        Ok(Item::new(question, result))
    }
}

fn makes_peng(counts: &[u32; 28], card: usize) -> bool {
    counts[card] >= 2
}

/// Whether a card makes three in a row. The package looks at three neighbours among all cards in order, where a card that is
/// there twice stands between others.
fn makes_chi(counts: &[u32; 28], card: usize) -> bool {
    let count = |place: usize| counts[place] + u32::from(place == card);
    let is_row = |middle: usize| {
        (1..27).contains(&middle)
            && count(middle - 1) > 0
            && count(middle) == 1
            && middle < 27
            && count(middle + 1) > 0
    };
    (card.saturating_sub(1)..=card + 1).any(is_row)
}
