//! Scores that several datasets share, and how answers are read as Python reads them.

use num_bigint::BigInt;
use num_traits::ToPrimitive;
use spar_python::text::strip;
use spar_python::{Value, to_float, to_int};

use crate::decimal::Decimal;

/// The package's usual score: 1 for the right answer, its share of the answer's characters where that contains it.
pub(crate) fn default_score(answer: Option<&str>, gold: &str) -> f64 {
    match answer {
        None | Some("") => 0.0,
        Some(answer) if answer == gold => 1.0,
        Some(answer) => share(answer, gold),
    }
}

/// The share of an answer's characters that the right answer has in it; 0 where that is not in it.
pub(crate) fn share(answer: &str, gold: &str) -> f64 {
    match answer.contains(gold) {
        true => gold.chars().count() as f64 / answer.chars().count() as f64,
        false => 0.0,
    }
}

/// 1 for an equal decimal number, commas left out; else as [`share`].
pub(crate) fn decimal_reward(answer: Option<&str>, gold: &str) -> f64 {
    let Some(answer) = answer.filter(|answer| !answer.is_empty()) else { return 0.0 };
    let (answer, gold) = (answer.replace(',', ""), gold.replace(',', ""));
    let equal = || Some(Decimal::parse(&answer)?.equals(&Decimal::parse(&gold)?));
    match equal() {
        Some(true) => 1.0,
        // An answer of commas alone has nothing in it.
        _ if answer.is_empty() => 0.0,
        _ => share(&answer, &gold),
    }
}

/// `answer.strip() == gold.strip()`.
pub(crate) fn is_stripped_equal(answer: &str, gold: &str) -> bool {
    strip(answer) == strip(gold)
}

/// `int(text)`, absent where that raises a `ValueError`.
pub(crate) fn big_int(text: &str) -> Option<BigInt> {
    // `int` reads no more than 4300 digits; longer texts may still have white space around them.
    let stripped = strip(text);
    if stripped.len() > 20_000 {
        return None;
    }
    to_int(&Value::str(stripped)).ok()
}

/// `int(text)` of a number with 64 bits; absent where that raises, or the number is larger.
pub(crate) fn small_int(text: &str) -> Option<i64> {
    big_int(text)?.to_i64()
}

/// `float(text)`, absent where that raises a `ValueError`.
pub(crate) fn float(text: &str) -> Option<f64> {
    to_float(&Value::str(strip(text))).ok()
}

/// `json.loads(text)`, absent where that raises. Numbers that are infinite or none, which Python reads, are refused.
pub(crate) fn json_loads(text: &str) -> Option<serde_json::Value> {
    serde_json::from_str(text).ok()
}

/// Whether two values of JSON are equal to Python: numbers and truth values by their values.
pub(crate) fn is_json_equal(a: &serde_json::Value, b: &serde_json::Value) -> bool {
    use serde_json::Value;

    let number = |value: &Value| match value {
        Value::Bool(truth) => Some(f64::from(*truth)),
        Value::Number(number) => number.as_f64(),
        _ => None,
    };
    match (a, b) {
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_json_equal(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter().all(|(name, a)| b.get(name).is_some_and(|b| is_json_equal(a, b)))
        }
        _ => match (number(a), number(b)) {
            (Some(a), Some(b)) => a == b,
            (None, None) => a == b,
            _ => false,
        },
    }
}

/// The text between the last pair of `<answer>` and `</answer>`, stripped; absent where there is no such pair.
///
/// The tags are found as by the package's regular expression: each opening tag takes the next closing one behind it.
pub fn extract_answer(completion: &str) -> Option<&str> {
    const OPEN: &str = "<answer>";
    const CLOSE: &str = "</answer>";
    let (mut rest, mut last) = (completion, None);
    while let Some(start) = rest.find(OPEN) {
        let inside = &rest[start + OPEN.len()..];
        let Some(end) = inside.find(CLOSE) else { break };
        last = Some(strip(&inside[..end]));
        rest = &inside[end + CLOSE.len()..];
    }
    last
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_worth_the_share_of_what_is_right_in_it() {
        assert_eq!(default_score(Some("12"), "12"), 1.0);
        assert_eq!(default_score(Some("is 12"), "12"), 0.4);
        assert_eq!(default_score(Some("é12"), "12"), 2.0 / 3.0);
        assert_eq!([default_score(None, "1"), default_score(Some(""), "")], [0.0, 0.0]);
        assert_eq!(decimal_reward(Some(" +01,000.00 "), "1000"), 1.0);
        assert_eq!(decimal_reward(Some("x1000"), "1,000"), 0.8);
        assert_eq!([decimal_reward(Some(","), "1"), decimal_reward(Some("nan"), "1")], [0.0, 0.0]);
    }

    #[test]
    fn the_last_tagged_answer_counts() {
        let said = "<answer>1</answer> no, <answer>\n 2 </answer> <answer>3";
        assert_eq!(extract_answer(said), Some("2"));
        assert_eq!([extract_answer("2"), extract_answer("<answer>2")], [None, None]);
    }
}
