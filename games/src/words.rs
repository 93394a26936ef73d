//! The words of the games of words: spar's own list, from four to ten letters.

use std::ops::RangeInclusive;
use std::sync::LazyLock;

/// Sorted by length, then by letters.
static WORDS: LazyLock<Vec<&'static str>> =
    LazyLock::new(|| include_str!("../words/english.txt").lines().collect());

/// All words: of four to ten lower-case letters, shorter ones first, then by the alphabet.
///
/// [Wordle](crate#games) and Hangman draw secrets from it as Python's `random.choice` would from the list of those that
/// are as long as the game's settings say, in this order.
pub fn all_words() -> &'static [&'static str] {
    &WORDS
}

/// The words of these lengths, in their order.
pub(crate) fn words_within(lengths: RangeInclusive<usize>) -> &'static [&'static str] {
    let first = WORDS.partition_point(|word| word.len() < *lengths.start());
    let end = WORDS.partition_point(|word| word.len() <= *lengths.end());
    &WORDS[first..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_sorted_and_there_are_some_of_every_length() {
        assert!(WORDS.is_sorted_by(|one, two| (one.len(), *one) < (two.len(), *two)));
        assert!(WORDS.iter().all(|word| word.bytes().all(|letter| letter.is_ascii_lowercase())));
        for length in 4..=10 {
            assert!(words_within(length..=length).len() >= 30, "{length}");
        }
        assert_eq!(words_within(4..=10), all_words());
        let fives = words_within(5..=5);
        assert!(fives.iter().all(|word| word.len() == 5) && fives.contains(&"apple"));
        assert_eq!(words_within(11..=12), [""; 0]);
    }
}
