//! Answers that have to be the right JSON value.

use async_trait::async_trait;
use serde_json::Value;
use spar_answers::{AnswerForm, FinalAnswer, final_answer};
use spar_core::{RewardPart, Verdict};

use super::{GradedEpisode, Grader, GraderNeeds, GradingPlace};
use crate::{GraderError, ReferenceAnswer, Task};

/// How long an answer may be to be read, in bytes.
const MAX_BYTES: usize = 1 << 20;

/// An answer is right if it is one of the right JSON values: grids, lists, objects, texts.
///
/// It stands in `<answer>` tags, in a fenced block, in `\boxed{}`, or is all that was written; where one of the first three occurs several times
/// with different values, none counts. `success = 1[json(answer) = json(r)]` for an `r` of the reference, numbers being equal by
/// value, members of objects in any order. What is no JSON is a text.
///
/// Source: own, after the rewards of Guru's logic and simulation tasks (arXiv 2506.14965), without their shares for what is partly right.
#[derive(Debug, Clone, Copy, Default)]
pub struct Structured;

impl Structured {
    /// The verdict on an answer: the reward part `success`, 1, where it is right.
    pub fn verdict(&self, answer: &str, reference: &ReferenceAnswer) -> Verdict {
        let rights = reference.texts();
        let found = value_in(answer);
        let success = found
            .as_ref()
            .is_some_and(|found| rights.iter().any(|right| is_same(&value_of(right), found)));
        let part = RewardPart { name: "success".to_owned(), value: 1.0 };
        Verdict {
            parts: if success { vec![part] } else { Vec::new() },
            success,
            details: format!("right: {}", rights.join(" or ")),
            ..Verdict::default()
        }
    }
}

/// The one value that a text comes to.
fn value_in(text: &str) -> Option<Value> {
    if text.len() > MAX_BYTES {
        return None;
    }
    let tagged: Vec<&str> = between(text, "<answer>", "</answer>");
    let fenced: Vec<&str> = between(text, "```", "```");
    let candidates: Vec<Value> = if !tagged.is_empty() {
        tagged.into_iter().map(value_of).collect()
    } else if !fenced.is_empty() {
        let bare = |block: &str| {
            let head =
                block.find('\n').filter(|at| block[..*at].chars().all(char::is_alphanumeric));
            value_of(head.map_or(block, |at| &block[at..]))
        };
        fenced.into_iter().map(bare).collect()
    } else {
        match final_answer(text, AnswerForm::Boxed) {
            FinalAnswer::Found(found) => vec![value_of(&found)],
            FinalAnswer::Conflicting => return None,
            FinalAnswer::Missing => vec![value_of(text)],
        }
    };
    let (last, others) = candidates.split_last()?;
    let is_empty = last.as_str().is_some_and(str::is_empty);
    (!is_empty && others.iter().all(|other| is_same(other, last))).then(|| last.clone())
}

/// What stands between marks, pair by pair.
fn between<'a>(text: &'a str, open: &str, close: &str) -> Vec<&'a str> {
    let (mut found, mut rest) = (Vec::new(), text);
    while let Some((_, behind)) = rest.split_once(open)
        && let Some((inside, behind)) = behind.split_once(close)
    {
        found.push(inside);
        rest = behind;
    }
    found
}

/// The JSON value that a text is; otherwise the text.
fn value_of(text: &str) -> Value {
    let text = text.trim();
    serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()))
}

fn is_same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => {
            a == b || a.as_f64() == b.as_f64() && (a.is_f64() || b.is_f64())
        }
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_same(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter().all(|(name, a)| b.get(name).is_some_and(|b| is_same(a, b)))
        }
        (a, b) => a == b,
    }
}

#[async_trait]
impl Grader for Structured {
    fn name(&self) -> &'static str {
        "structured"
    }

    fn needs(&self) -> GraderNeeds {
        GraderNeeds { reference: true, ..GraderNeeds::default() }
    }

    fn judge_answer(&self, _: &Task, answer: &str, reference: &ReferenceAnswer) -> Option<Verdict> {
        Some(self.verdict(answer, reference))
    }

    async fn grade(
        &self,
        episode: &GradedEpisode<'_>,
        _: &mut dyn GradingPlace,
    ) -> Result<Verdict, GraderError> {
        let reference = super::expect_reference(episode, "structured")?;
        Ok(self.verdict(&episode.final_answer(), reference))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_right_by_what_they_hold() {
        let is_right = |answer: &str, right: &str| {
            Structured.verdict(answer, &ReferenceAnswer::Text(right.to_owned())).success
        };
        let grid = "[[1, 2], [3, 4]]";
        assert!(is_right("<answer>[[1,2],[3,4]]</answer>", grid));
        assert!(is_right("So:\n```json\n[[1, 2.0],\n [3, 4]]\n```\n", grid));
        assert!(is_right(r"\boxed{[[1,2],[3,4]]}", grid));
        assert!(is_right(r#"{"b": "x", "a": 1}"#, r#"{"a": 1, "b": "x"}"#));
        assert!(is_right("<answer> left </answer>", "left"));
        let deep = "[".repeat(500_000);
        for wrong in [
            "<answer>[[1,2],[3,5]]</answer>",
            "<answer>[[1,2],[3,4]]</answer> or <answer>[[1,2],[3,5]]</answer>",
            "[[1,2],[3,4],[5,6]]",
            "",
            "<answer></answer>",
            deep.as_str(),
        ] {
            assert!(!is_right(wrong, grid), "{wrong:.40}");
        }
        assert!(!is_right("", "") && !is_right("9007199254740993", "9007199254740992"));
    }
}
