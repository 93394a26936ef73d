//! Sums in letters.

use std::collections::{BTreeMap, BTreeSet};

use crate::prelude::*;

options! {
    /// Options of `cryptarithm`.
    CryptarithmOptions {
        /// Fewest words, at least 2. Default 2.
        min_words: i64 = 2,
        /// Most words, up to 1000. Default 3.
        max_words: i64 = 3,
        /// Whether numbers can begin with zero. Default false.
        allow_leading_zero: bool = false,
    }
    |given, problems| {
        problems.span(("min_words", "max_words"), (given.min_words, given.max_words), (2, 1_000));
    }
}

/// A sum whose digits are letters. Where the package would have to draw again it raises an exception, and so does this.
pub(crate) struct Cryptarithm;

impl Generator for Cryptarithm {
    type Options = CryptarithmOptions;

    fn item(options: &CryptarithmOptions, rng: &mut Random) -> Result<Item, ItemError> {
        let count = rng.int(options.min_words, options.max_words)?;
        let mut lengths = Vec::new();
        for _ in 0..count {
            lengths.push(rng.int(3, 5)? as u32);
        }
        let mut numbers = Vec::new();
        for length in lengths {
            let least = if options.allow_leading_zero { 0 } else { 10_i64.pow(length - 1) };
            numbers.push(rng.int(least, 10_i64.pow(length) - 1)?);
        }
        let sum: i64 = numbers.iter().sum();
        let written: Vec<String> = numbers.iter().chain([&sum]).map(i64::to_string).collect();
        let mut digits: Vec<char> = written
            .iter()
            .flat_map(|number| number.chars())
            .collect::<BTreeSet<_>>()
            .into_iter()
            .collect();
        rng.shuffle(&mut digits);
        let mut letters: Vec<char> = ('A'..='Z').collect();
        rng.shuffle(&mut letters);
        let letter_of: BTreeMap<char, char> = digits.iter().copied().zip(letters).collect();
        if !options.allow_leading_zero && written.iter().any(|number| number.starts_with('0')) {
            return Err(ItemError::raised("a number begins with zero"));
        }
        let words: Vec<String> = written
            .iter()
            .map(|number| number.chars().map(|digit| letter_of[&digit]).collect())
            .collect();
        let (result, words) = words.split_last().expect("there is a sum");
        let width = words.iter().map(String::len).max().unwrap_or_default().max(result.len());
        let mut lines = Vec::new();
        for (place, word) in words.iter().enumerate() {
            lines.push(match place + 1 == words.len() {
                true => format!("+ {word:>width$}"),
                false => format!("{word:>width$}", width = width + 2),
            });
        }
        lines.push("-".repeat(width + 2));
        lines.push(format!("{result:>width$}", width = width + 2));
        let rule = match options.allow_leading_zero {
            true => "Leading letters may be zero.\n",
            false => "No leading letter can be zero.\n",
        };
        let question = format!(
            "Solve this cryptarithm:\n\n{}\n\nEach letter stands for a unique digit (0-9). {rule}Provide a comma separated mapping from letters to digits that satisfies the equation in your final answer. Output format: \"A=1,B=2,C=3\" (without quotes)\n",
            lines.join("\n")
        );
        let digit_of: BTreeMap<char, char> =
            letter_of.iter().map(|(digit, letter)| (*letter, *digit)).collect();
        let answer =
            joined(digit_of.iter().map(|(letter, digit)| format!("{letter}={digit}")), ",");
        Ok(Item::new(question, answer)
            .with("words_letters", words.to_vec())
            .with("result_letters", result.as_str())
            .with("allow_leading_zero", options.allow_leading_zero))
    }

    fn score(_: &CryptarithmOptions, answer: Option<&str>, item: &Item) -> f64 {
        let Some(mapping) = answer.and_then(read_mapping) else { return 0.0 };
        if is_solution(&mapping, item) { 1.0 } else { 0.01 }
    }
}

/// Letters with their numbers, the last one of a letter that is named twice; numbers beyond one digit are -1.
fn read_mapping(answer: &str) -> Option<BTreeMap<&str, i64>> {
    let mut mapping = BTreeMap::new();
    for pair in answer.split(',') {
        let (letter, digit) =
            strip(pair).split_once('=').filter(|(_, digit)| !digit.contains('='))?;
        let digit = big_int(digit)?;
        mapping.insert(
            strip(letter),
            i64::try_from(digit).ok().filter(|d| (0..10).contains(d)).unwrap_or(-1),
        );
    }
    Some(mapping)
}

fn is_solution(mapping: &BTreeMap<&str, i64>, item: &Item) -> bool {
    let words = item.fact("words_letters").as_array().into_iter().flatten();
    let mut numbers: Vec<&str> = words.filter_map(Value::as_str).collect();
    numbers.push(item.text("result_letters"));
    let letters: BTreeSet<&str> = numbers
        .iter()
        .flat_map(|word| word.split("").filter(|letter| !letter.is_empty()))
        .collect();
    let digits: BTreeSet<i64> = mapping.values().copied().collect();
    if !letters.iter().eq(mapping.keys()) || digits.contains(&-1) || digits.len() != mapping.len() {
        return false;
    }
    let digit =
        |letter: char| mapping.get(letter.to_string().as_str()).copied().unwrap_or_default();
    let may_lead = item.fact("allow_leading_zero").as_bool() == Some(true);
    if !may_lead && numbers.iter().any(|word| word.chars().next().map(digit) == Some(0)) {
        return false;
    }
    let value = |word: &str| {
        word.chars().fold(0_i128, |value, letter| value * 10 + i128::from(digit(letter)))
    };
    let (result, words) = numbers.split_last().expect("there is a result");
    words.iter().map(|word| value(word)).sum::<i128>() == value(result)
}
