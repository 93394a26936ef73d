//! Strings to be cut into palindromes.

use std::collections::HashSet;

use super::palindrome_generation::palindrome;
use crate::prelude::*;

/// Partitions beyond which a string is refused: the package would go on to billions.
const MOST_PARTITIONS: usize = 200_000;

options! {
    /// Options of `palindrome_partitioning`.
    PalindromePartitioningOptions {
        /// Fewest letters, at least 1. Default 5.
        min_string_len: i64 = 5,
        /// Most letters, up to 40. Default 15.
        max_string_len: i64 = 15,
        /// Fewest letters of the palindromes that a string is made of, at least 1. Default 1.
        min_substring_palindrome_len: i64 = 1,
        /// Most letters of these palindromes, up to those of the string. Default 5.
        max_substring_palindrome_len: i64 = 5,
    }
    |given, problems| {
        problems.span(("min_string_len", "max_string_len"), (given.min_string_len, given.max_string_len), (1, 40));
        let lengths = (given.min_substring_palindrome_len, given.max_substring_palindrome_len);
        problems.span(("min_substring_palindrome_len", "max_substring_palindrome_len"), lengths, (1, given.max_string_len));
    }
}

/// A string of which all partitions into palindromes are asked for.
pub(crate) struct PalindromePartitioning;

impl Generator for PalindromePartitioning {
    type Options = PalindromePartitioningOptions;

    fn item(options: &PalindromePartitioningOptions, rng: &mut Random) -> Result<Item, ItemError> {
        let length = rng.int(options.min_string_len, options.max_string_len)? as usize;
        let mut letters = Vec::new();
        while letters.len() < length {
            let (least, most) =
                (options.min_substring_palindrome_len, options.max_substring_palindrome_len);
            let part = (rng.int(least, most)? as usize).min(length - letters.len());
            letters.extend(palindrome(rng, part)?);
        }
        let string: String = letters.into_iter().collect();
        let question = format!(
            "Given a string, partition it such that every substring is a palindrome.\n\nA palindrome is a word that reads the same backward as forward.\n\nYou may return all possible palindrome partitioning in any order.\n\nYour output should be a list of lists, where each list represents a palindrome partition, e.g. [[\"a\",\"a\",\"b\"],[\"aa\",\"b\"]].\n\nPartition the following string into palindromes: {string}\n"
        );
        let mut partitions = Vec::new();
        partition(&string, 0, &mut Vec::new(), &mut partitions);
        if partitions.len() > MOST_PARTITIONS {
            return Err(ItemError::TooManyTries { tries: MOST_PARTITIONS as u64 });
        }
        partitions.sort_by(|a, b| a[0].cmp(b[0]));
        let written =
            partitions.iter().map(|parts| list(parts.iter().map(|part| format!("\"{part}\""))));
        let answer = list(written);
        Ok(Item::new(question, answer).with("string", string.as_str()))
    }

    fn score(_: &PalindromePartitioningOptions, answer: Option<&str>, item: &Item) -> f64 {
        let is_right = || {
            let (given, gold) = (json_loads(answer?)?, json_loads(item.gold())?);
            let texts = |value: &Value| -> Option<HashSet<String>> {
                value
                    .as_array()?
                    .iter()
                    .map(|parts| parts.as_array().map(|_| parts.to_string()))
                    .collect()
            };
            Some(texts(&given)? == texts(&gold)?)
        };
        f64::from(is_right().unwrap_or_default())
    }
}

/// All partitions of a string from a place on, behind the parts before it; some beyond the bound are left out.
fn partition<'s>(
    string: &'s str,
    from: usize,
    parts: &mut Vec<&'s str>,
    found: &mut Vec<Vec<&'s str>>,
) {
    if found.len() > MOST_PARTITIONS {
        return;
    }
    if from == string.len() {
        found.push(parts.clone());
        return;
    }
    for end in from + 1..=string.len() {
        let part = &string[from..end];
        if part.bytes().eq(part.bytes().rev()) {
            parts.push(part);
            partition(string, end, parts, found);
            parts.pop();
        }
    }
}
