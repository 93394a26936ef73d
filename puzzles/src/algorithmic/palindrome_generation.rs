//! Letters of palindromes.

use crate::prelude::*;

options! {
    /// Options of `palindrome_generation`.
    PalindromeGenerationOptions {
        /// Fewest letters, at least 1. Default 3.
        min_length: i64 = 3,
        /// Most letters, up to 10000. Default 10.
        max_length: i64 = 10,
    }
    |given, problems| {
        problems.span(("min_length", "max_length"), (given.min_length, given.max_length), (1, 10_000));
    }
}

/// Letters of which a palindrome is to be formed.
pub(crate) struct PalindromeGeneration;

impl Generator for PalindromeGeneration {
    type Options = PalindromeGenerationOptions;

    fn item(options: &PalindromeGenerationOptions, rng: &mut Random) -> Result<Item, ItemError> {
        let length = rng.int(options.min_length, options.max_length)? as usize;
        let palindrome = palindrome(rng, length)?;
        let scrambled = rng.sample(&palindrome, length)?;
        let question = format!(
            "Your task is, given a list of letters, to form a valid palindrome.\n\nA palindrome is a phrase that reads the same forwards and backwards.\n\nIf there are multiple possible answers, only respond with one of them. You must use all the letters provided.\n\nYour output should be a single string, with no spaces or punctuation.\n\nNow, form a valid palindrome using the following letters: {}\n",
            joined(&scrambled, ", ")
        );
        let letters: Vec<String> = scrambled.iter().map(char::to_string).collect();
        Ok(Item::new(question, joined(palindrome, "")).with("letters", letters))
    }

    fn score(_: &PalindromeGenerationOptions, answer: Option<&str>, item: &Item) -> f64 {
        let Some(answer) = answer.filter(|answer| !answer.is_empty()) else { return 0.0 };
        let mut given: Vec<char> = lower(strip(answer)).chars().collect();
        if !given.iter().eq(given.iter().rev()) {
            return 0.02;
        }
        let mut gold: Vec<char> = item.gold().chars().collect();
        gold.sort_unstable();
        given.sort_unstable();
        if given == gold { 1.0 } else { 0.05 }
    }
}

/// A palindrome of so many letters.
pub(crate) fn palindrome(rng: &mut Random, length: usize) -> Result<Vec<char>, ItemError> {
    let alphabet: Vec<char> = ('a'..='z').collect();
    let half: Vec<char> = rng.choices(&alphabet, length / 2)?.into_iter().copied().collect();
    let mut letters = half.clone();
    if length % 2 == 1 {
        letters.push(*rng.choice(&alphabet)?);
    }
    letters.extend(half.into_iter().rev());
    Ok(letters)
}
