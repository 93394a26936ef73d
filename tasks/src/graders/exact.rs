//! Answers that have to say what is right.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::registry::NamedOptions;
use spar_core::{RewardPart, Verdict};

use super::{GradedEpisode, Grader, GraderNeeds, GradingPlace};
use crate::{GraderError, ReferenceAnswer, Task};

/// Options of [`Exact`].
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ExactOptions {
    /// What stands before the answer proper, such as `Answer:`; what comes behind its last occurrence counts, and an answer
    /// without it is wrong. Default absent: all counts.
    pub after: Option<String>,
    /// Whether capitals count as small letters. Default false.
    pub ignore_case: bool,
}

impl NamedOptions for ExactOptions {}

/// An answer is right if it is one of the right texts, whitespace aside, or a number equal to one.
///
/// `success = 1[normal(answer) in { normal(r) : r in reference }]`, where `normal` takes what stands behind `after`, joins words
/// by one space each, and writes small letters where it is told to. Two numbers are equal by value: `2.0` is `2`.
///
/// Source: exact match as SQuAD has it (Rajpurkar et al., arXiv 1606.05250), without its removal of articles and punctuation.
#[derive(Debug, Clone, Default)]
pub struct Exact {
    options: ExactOptions,
}

impl Exact {
    /// The comparison with these options.
    pub fn new(options: ExactOptions) -> Self {
        Self { options }
    }

    /// Whether an answer is right.
    pub fn is_right(&self, answer: &str, reference: &ReferenceAnswer) -> bool {
        let answer = match &self.options.after {
            None => answer,
            Some(mark) => match answer.rsplit_once(mark.as_str()) {
                Some((_, answer)) => answer,
                None => return false,
            },
        };
        let answer = self.normal(answer);
        !answer.is_empty()
            && reference.texts().iter().any(|right| is_same(&answer, &self.normal(right)))
    }

    fn normal(&self, text: &str) -> String {
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        if self.options.ignore_case { text.to_lowercase() } else { text }
    }
}

impl Exact {
    /// The verdict on an answer: the reward part `success`, 1, where it is right.
    pub fn verdict(&self, answer: &str, reference: &ReferenceAnswer) -> Verdict {
        let success = self.is_right(answer, reference);
        let part = RewardPart { name: "success".to_owned(), value: 1.0 };
        Verdict {
            parts: if success { vec![part] } else { Vec::new() },
            success,
            details: format!("right: {}", reference.texts().join(" or ")),
            ..Verdict::default()
        }
    }
}

#[async_trait]
impl Grader for Exact {
    fn name(&self) -> &'static str {
        "exact"
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
        let reference = super::expect_reference(episode, "exact")?;
        Ok(self.verdict(&episode.final_answer(), reference))
    }
}

fn is_same(answer: &str, right: &str) -> bool {
    // Whole numbers as such: floating-point ones cannot tell large ones apart.
    if let (Ok(answer), Ok(right)) = (answer.parse::<i128>(), right.parse::<i128>()) {
        return answer == right;
    }
    let number = |text: &str| text.parse::<f64>().ok().filter(|number| number.is_finite());
    answer == right
        || number(answer).zip(number(right)).is_some_and(|(answer, right)| answer == right)
}

#[cfg(test)]
mod tests {
    use spar_core::{Action, ParsedAction, ToolCall};

    use super::super::GradingModels;
    use super::super::test_episodes::{episode, task};
    use super::*;

    #[test]
    fn an_answer_that_is_given_by_a_call_is_its_text() {
        let graded = |calls: serde_json::Value| {
            let mut trajectory = episode(&["written"]);
            let calls: Vec<ToolCall> = serde_json::from_value(calls).unwrap();
            trajectory.turns[0].parsed = ParsedAction::of(Action::calls(calls));
            let models = GradingModels::default();
            let graded = GradedEpisode {
                task: &task(),
                trajectory: &trajectory,
                reference: None,
                earlier: &[],
                models: &models,
                seed: trajectory.seed,
            };
            graded.final_answer().into_owned()
        };
        let call = |name: &str, arguments: serde_json::Value| serde_json::json!({ "name": name, "arguments": arguments });
        let answer = call("answer", serde_json::json!({ "answer": "42" }));
        let other = call("look", serde_json::json!({}));
        assert_eq!(graded(serde_json::json!([other, answer])), "42");
        assert_eq!(graded(serde_json::json!([other])), "look {}");
        let more = call("answer", serde_json::json!({ "answer": "42", "sure": true }));
        assert_eq!(graded(serde_json::json!([more])), r#"answer {"answer":"42","sure":true}"#);
    }

    #[test]
    fn words_and_numbers_are_compared_and_spaces_are_not() {
        let is_right = |options: &str, answer: &str, right: &str| {
            let exact = Exact::new(toml::from_str(options).unwrap());
            exact.is_right(answer, &serde_json::from_str(right).unwrap())
        };
        assert!(is_right("", " the  cat\n", r#""the cat""#));
        assert!(!is_right("", "The cat", r#""the cat""#));
        assert!(is_right("ignore_case = true", "The cat", r#""the cat""#));
        assert!(is_right("", "2.0", "2") && !is_right("", "2.5", "2"));
        assert!(!is_right("", "9007199254740992", "9007199254740993"));
        assert!(is_right("", "b", r#"["a", "b"]"#) && !is_right("", "", r#"["a", "b"]"#));
        assert!(!is_right("", "nan", r#""inf""#));
        let after = "after = 'Answer:'";
        assert!(is_right(after, "It is 3. Answer: 2? Answer: 4", "4"));
        assert!(!is_right(after, "4", "4") && !is_right(after, "Answer: 4 no", "4"));
    }
}
