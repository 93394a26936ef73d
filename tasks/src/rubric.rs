//! What a task asks of an answer, criterion by criterion.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Task;

/// A criterion of a rubric.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RubricCriterion {
    /// What it asks for, in words.
    pub criterion: String,
    /// What satisfying it is worth; below 0 where it tells what an answer must not have. Default 1.
    #[serde(default = "one")]
    pub points: f64,
    /// Phrases of which an answer that satisfies it has one, as whole words and whatever their capitals; empty: a judge tells. Default empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mentions: Vec<String>,
}

fn one() -> f64 {
    1.0
}

impl RubricCriterion {
    /// Whether an answer has one of its phrases, as whole words and numbers; `None` where it has none to look for.
    pub fn is_mentioned(&self, answer: &str) -> Option<bool> {
        let answer = answer.to_lowercase();
        let is_there = |phrase: &String| has_phrase(&answer, phrase.to_lowercase().trim());
        (!self.mentions.is_empty()).then(|| self.mentions.iter().any(is_there))
    }
}

/// Whether a phrase stands in a text and neither begins nor ends within a word or a number.
fn has_phrase(text: &str, phrase: &str) -> bool {
    let (Some(first), Some(last)) = (phrase.chars().next(), phrase.chars().next_back()) else {
        return false;
    };
    text.char_indices().any(|(at, _)| {
        let Some(behind) = text[at..].strip_prefix(phrase) else { return false };
        let (mut before, mut behind) = (text[..at].chars().rev(), behind.chars());
        !goes_on(first, before.next(), before.next())
            && !goes_on(last, behind.next(), behind.next())
    })
}

/// Whether a word or a number goes on from the character at its edge to those next to it.
fn goes_on(edge: char, next: Option<char>, one_more: Option<char>) -> bool {
    let Some(next) = next else { return false };
    let is_digit = |c: char| c.is_ascii_digit();
    let in_number = is_digit(edge) && matches!(next, '.' | ',') && one_more.is_some_and(is_digit);
    in_number || (is_of_word(edge) && is_of_word(next))
}

/// Whether a character is one of a word that blanks or signs end, which is not so in scripts without blanks between words.
fn is_of_word(c: char) -> bool {
    let is_unspaced = matches!(
        c,
        '\u{e00}'..='\u{eff}'
            | '\u{1000}'..='\u{109f}'
            | '\u{1780}'..='\u{17ff}'
            | '\u{3040}'..='\u{30ff}'
            | '\u{3400}'..='\u{4dbf}'
            | '\u{4e00}'..='\u{9fff}'
            | '\u{f900}'..='\u{faff}'
            | '\u{20000}'..='\u{3ffff}'
    );
    c.is_alphanumeric() && !is_unspaced
}

/// The rubric of a task, the list `rubric` of its metadata; empty where it has none.
///
/// # Errors
///
/// What is wrong with it.
pub fn rubric_of(task: &Task) -> Result<Vec<RubricCriterion>, String> {
    let told = match &task.parameters["metadata"]["rubric"] {
        serde_json::Value::Null => return Ok(Vec::new()),
        told => told.clone(),
    };
    let rubric: Vec<RubricCriterion> = serde_json::from_value(told)
        .map_err(|error| format!("`metadata.rubric` of task `{}`: {error}", task.id))?;
    if let Some(wrong) = rubric.iter().find(|it| !it.points.is_finite() || it.points == 0.0) {
        let (id, points) = (&task.id, wrong.points);
        return Err(format!(
            "`metadata.rubric` of task `{id}`: `points` is {points}, must not be 0"
        ));
    }
    let has_empty = |it: &&RubricCriterion| it.mentions.iter().any(|it| it.trim().is_empty());
    if let Some(wrong) = rubric.iter().find(has_empty) {
        let (id, criterion) = (&task.id, &wrong.criterion);
        return Err(format!(
            "`metadata.rubric` of task `{id}`: `mentions` of `{criterion}` has an empty phrase"
        ));
    }
    if !rubric.is_empty() && rubric.iter().all(|it| it.points < 0.0) {
        let id = &task.id;
        return Err(format!(
            "`metadata.rubric` of task `{id}`: no `points` are above 0, so that no answer can be worth anything"
        ));
    }
    Ok(rubric)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phrases_are_whole_words_and_numbers() {
        let mentioned = |phrase: &str, answer: &str| {
            let mentions = vec![phrase.to_owned()];
            let criterion = RubricCriterion { criterion: String::new(), points: 1.0, mentions };
            criterion.is_mentioned(answer).unwrap()
        };
        for answer in ["5 mg", "Take 5 MG.", "15 mg, or 5 mg", "(5 mg)", "Dose:5 mg, daily"] {
            assert!(mentioned("5 mg", answer), "{answer}");
        }
        for answer in ["15 mg", "1.5 mg", "1,5 mg", "5 mgs", "", "5"] {
            assert!(!mentioned("5 mg", answer), "{answer}");
        }
        assert!(mentioned(" at 5 ", "Come at 5.") && !mentioned("at 5", "Come at 5.5"));
        // No blanks are between these words.
        assert!(mentioned("\u{5410}", "\u{4f1a}\u{5410}\u{4e86}"));
    }
}
