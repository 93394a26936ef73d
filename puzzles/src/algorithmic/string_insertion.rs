//! Letters put into a string.

use spar_python::{NoNames, eval, join};

use crate::prelude::*;

options! {
    /// Options of `string_insertion`.
    StringInsertionOptions {
        /// Fewest letters, at least 5. Default 5.
        min_string_length: i64 = 5,
        /// Most letters, up to 100000. Default 20.
        max_string_length: i64 = 20,
    }
    |given, problems| {
        let lengths = (given.min_string_length, given.max_string_length);
        problems.span(("min_string_length", "max_string_length"), lengths, (5, 100_000));
    }
}

/// A string of letters, into which others are put behind some of its parts.
pub(crate) struct StringInsertion;

impl Generator for StringInsertion {
    type Options = StringInsertionOptions;

    fn item(options: &StringInsertionOptions, rng: &mut Random) -> Result<Item, ItemError> {
        let length = rng.int(options.min_string_length, options.max_string_length)?;
        let mut string = String::new();
        for _ in 0..length {
            string.push(*rng.choice(&['A', 'B', 'C', 'D', 'E'])?);
        }
        let question = format!(
            "Given a string consisting of characters A, B, C, D, and E, your job is to insert a character according to the following pattern:\n1. If there is a substring ABCD in the string, insert the character A after the substring.\n2. If there is a substring BCDE in the string, insert the character B after the substring.\n3. If there is a substring CDEA in the string, insert the character C after the substring.\n4. If there is a substring DEAB in the string, insert the character D after the substring.\n5. If there is a substring EABC in the string, insert the character E after the substring.\n\nOnce you have inserted a character, you have to skip over the substring and the inserted character and continue the search from the next character.\n\nYour output should be a string that has been modified according to the pattern.\n\nGiven the following string, provide the answer after inserting the characters according to the pattern: {string}\n"
        );
        Ok(Item::new(question, inserted(&string)))
    }

    fn score(_: &StringInsertionOptions, answer: Option<&str>, item: &Item) -> f64 {
        let Some(answer) = answer else { return 0.0 };
        if answer == item.gold() {
            return 1.0;
        }
        let evaluated = || join("", &eval(answer, &mut NoNames).ok()?).ok();
        let is_gold = |value: String| value == item.gold();
        if evaluated().is_some_and(is_gold) { 0.1 } else { 0.0 }
    }
}

fn inserted(string: &str) -> String {
    const RULES: [(&str, char); 5] =
        [("ABCD", 'A'), ("BCDE", 'B'), ("CDEA", 'C'), ("DEAB", 'D'), ("EABC", 'E')];
    let mut out = String::with_capacity(string.len() * 2);
    let mut rest = string;
    while let Some(first) = rest.chars().next() {
        match RULES.iter().find(|(part, _)| rest.starts_with(part)) {
            Some((part, letter)) => {
                out.push_str(part);
                out.push(*letter);
                rest = &rest[part.len()..];
            }
            None => {
                out.push(first);
                rest = &rest[1..];
            }
        }
    }
    out
}
