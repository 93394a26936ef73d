//! Whether answers say what is right, as SQuAD's evaluation has it.

use std::collections::HashMap;
use std::sync::LazyLock;

use regex::Regex;

/// An answer in the form in which answers are compared: small letters, no ASCII punctuation, no articles, words apart by
/// one space.
///
/// `" ".join(words(articles(punctuation(lower(s)))))`, in this order, with letters, words and white space as Python has
/// them. Source: SQuAD's evaluation script, version 1.1, `normalize_answer`.
///
/// ```
/// assert_eq!(spar_search::squad::normalize("The  Beatles' \"Let It Be\""), "beatles let it be");
/// ```
pub fn normalize(answer: &str) -> String {
    let lower = answer.to_lowercase();
    let kept: String = lower.chars().filter(|c| !c.is_ascii_punctuation()).collect();
    let without_articles = without_articles(&kept);
    let words: Vec<&str> = split(&without_articles).collect();
    words.join(" ")
}

/// 1 where an answer is one of the right ones once all are [normalized](normalize), else 0.
///
/// Source: SQuAD, arXiv 1606.05250, its evaluation script, `exact_match_score` and `metric_max_over_ground_truths`.
pub fn exact_match<'a>(answer: &str, right: impl IntoIterator<Item = &'a str>) -> bool {
    let answer = normalize(answer);
    right.into_iter().any(|right| normalize(right) == answer)
}

/// The best F1 over the right answers, 0 to 1: with words counted as often as they stand in both,
/// `2 P R / (P + R)`, `P` being their share in the answer and `R` in the right one.
///
/// Source: SQuAD, arXiv 1606.05250, its evaluation script, `f1_score` and `metric_max_over_ground_truths`.
pub fn f1<'a>(answer: &str, right: impl IntoIterator<Item = &'a str>) -> f64 {
    let answer = normalize(answer);
    right.into_iter().map(|right| f1_of_normal(&answer, &normalize(right))).fold(0.0, f64::max)
}

fn f1_of_normal(answer: &str, right: &str) -> f64 {
    let mut counts: HashMap<&str, usize> = HashMap::new();
    split(right).for_each(|word| *counts.entry(word).or_default() += 1);
    let mut common = 0;
    for word in split(answer) {
        if let Some(count) = counts.get_mut(word).filter(|count| **count > 0) {
            *count -= 1;
            common += 1;
        }
    }
    if common == 0 {
        return 0.0;
    }
    let precision = common as f64 / split(answer).count() as f64;
    let recall = common as f64 / split(right).count() as f64;
    2.0 * precision * recall / (precision + recall)
}

/// The words of a text, as Python's `str.split()` has them.
fn split(text: &str) -> impl Iterator<Item = &str> {
    text.split(is_space).filter(|word| !word.is_empty())
}

/// A text without white space around it, as Python's `str.strip()` has it.
pub(crate) fn strip(text: &str) -> &str {
    text.trim_matches(is_space)
}

/// White space as Python's `str.isspace` has it: Unicode's, and four separators of ASCII.
fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c)
}

/// With every run of word characters that is an article replaced by a space: `re.sub(r"\b(a|an|the)\b", " ", text)`.
fn without_articles(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(is_word) {
        kept.push_str(&rest[..start]);
        rest = &rest[start..];
        let end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
        kept.push_str(if matches!(&rest[..end], "a" | "an" | "the") { " " } else { &rest[..end] });
        rest = &rest[end..];
    }
    kept + rest
}

/// What Python's `\w` matches: letters, numbers and the underscore, and no combining marks.
fn is_word(c: char) -> bool {
    static LETTER_OR_NUMBER: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"^[\p{L}\p{N}]$").expect("the expression is fixed"));
    match c.is_ascii() {
        true => c.is_ascii_alphanumeric() || c == '_',
        false => LETTER_OR_NUMBER.is_match(c.encode_utf8(&mut [0; 4])),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde::Deserialize;

    use super::*;

    #[derive(Deserialize)]
    struct Golden {
        answer: String,
        right: Vec<String>,
        normal: String,
        exact_match: bool,
        f1: f64,
    }

    /// What SQuAD's own script says, recorded by `tests/fixtures/make_squad.py`.
    #[test]
    fn answers_are_judged_as_the_script_does() {
        let text = include_str!("../tests/fixtures/squad.json");
        let golden: Vec<Golden> = serde_json::from_str(text).unwrap();
        assert!(golden.len() > 200);
        for Golden { answer, right, normal, exact_match: is_right, f1: score } in golden {
            assert_eq!(normalize(&answer), normal, "{answer:?}");
            let right = || right.iter().map(String::as_str);
            assert_eq!(exact_match(&answer, right()), is_right, "{answer:?}");
            assert!((f1(&answer, right()) - score).abs() < 1e-12, "{answer:?}");
        }
    }

    #[test]
    fn many_facts_are_no_right_answer() {
        let dump = "Paris London Berlin Rome Madrid";
        assert!(!exact_match(dump, ["Paris"]));
        assert!((f1(dump, ["Paris", "Lima"]) - 1.0 / 3.0).abs() < 1e-12);
        assert_eq!(f1("", ["Paris"]), 0.0);
        assert_eq!(f1("Paris", []), 0.0);
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

        #[test]
        fn what_is_right_word_for_word_is_right(answer in any::<String>()) {
            prop_assert!(exact_match(&answer, [&*answer]));
            let words = split(&normalize(&answer)).count();
            prop_assert_eq!(f1(&answer, [&*answer]), f64::from(u8::from(words > 0)));
        }
    }
}
