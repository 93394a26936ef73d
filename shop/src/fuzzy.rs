//! How alike two texts are, as thefuzz has it.

use std::collections::BTreeSet;

/// Characters of a text that are looked at; the time of a comparison is the product of both lengths.
const MOST_CHARS: usize = 1_024;

/// `thefuzz.fuzz.token_set_ratio` from 0 to 100: how alike the sets of words are, where words that both have count in full.
///
/// With `s` the words in common, `a` and `b` those with the others of either text, all sorted and joined by blanks, it is the
/// greatest of the ratios of `(s, s a)`, `(s, s b)` and `(s a, s b)`; a ratio is `200 m / (|x| + |y|)`, rounded, with `m` the length
/// of the longest common subsequence, and 0 where one text is empty. Texts are read without characters from U+0080 to U+00FF, in
/// lower case, and with blanks for whatever is no letter, digit or underscore. Of very long texts the first 1,024 characters count.
pub fn token_set_ratio(left: &str, right: &str) -> u32 {
    let (left, right) = (processed(left), processed(right));
    let words =
        |text: &str| -> BTreeSet<String> { text.split_whitespace().map(str::to_owned).collect() };
    let (left, right) = (words(&left), words(&right));
    if left.is_empty() || right.is_empty() {
        return 0;
    }
    let join = |words: Vec<&str>| words.join(" ");
    let both = join(left.intersection(&right).map(String::as_str).collect());
    let with = |rest: Vec<&str>| {
        let rest = rest.join(" ");
        format!("{both} {rest}").trim().to_owned()
    };
    let left_all = with(left.difference(&right).map(String::as_str).collect());
    let right_all = with(right.difference(&left).map(String::as_str).collect());
    ratio(&both, &left_all).max(ratio(&both, &right_all)).max(ratio(&left_all, &right_all))
}

fn processed(text: &str) -> String {
    let kept = text.chars().take(MOST_CHARS).filter(|c| !('\u{80}'..='\u{ff}').contains(c));
    kept.flat_map(char::to_lowercase)
        .map(|c| if c.is_alphanumeric() || c == '_' { c } else { ' ' })
        .collect()
}

fn ratio(left: &str, right: &str) -> u32 {
    if left == right {
        return 100;
    }
    if left.is_empty() || right.is_empty() {
        return 0;
    }
    let (left, right): (Vec<char>, Vec<char>) = (left.chars().collect(), right.chars().collect());
    let sum = left.len() + right.len();
    let common = 2 * longest_common_subsequence(&left, &right);
    (100.0 * (common as f64 / sum as f64)).round_ties_even() as u32
}

fn longest_common_subsequence(left: &[char], right: &[char]) -> usize {
    let mut row = vec![0_usize; right.len() + 1];
    for a in left {
        let mut diagonal = 0;
        for (place, b) in right.iter().enumerate() {
            let above = row[place + 1];
            row[place + 1] = if a == b { diagonal + 1 } else { above.max(row[place]) };
            diagonal = above;
        }
    }
    row[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_in_common_count_in_full() {
        for (left, right, expected) in [
            ("essential oils", "essential oil", 96),
            ("cool powder snow", "powder snow", 100),
            ("('size', 'x-large')", "x-large", 100),
            ("tea bag", "tea tree", 60),
            ("", "a", 0),
            ("!", "a", 0),
            ("Rot", "rot", 100),
            ("a", "b", 0),
        ] {
            assert_eq!(token_set_ratio(left, right), expected, "{left} / {right}");
        }
    }

    #[test]
    fn giant_texts_take_no_time() {
        let giant = "wort ".repeat(2_000_000);
        assert_eq!(token_set_ratio(&giant, "wort"), 100);
        let other = "ab c".repeat(1_000_000);
        assert!(token_set_ratio(&giant, &other) < 60);
    }
}
