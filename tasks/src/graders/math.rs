//! Answers that have to be right as mathematics.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_answers::{AnswerForm, Equivalence, FinalAnswer, final_answer, math_equal};
use spar_core::registry::NamedOptions;
use spar_core::{RewardPart, Verdict};

use super::{GradedEpisode, Grader, GraderNeeds, GradingPlace};
use crate::{GraderError, ReferenceAnswer, Task};

/// Options of [`MathAnswer`].
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct MathAnswerOptions {
    /// Where the answer stands in what the policy wrote. Default `any`.
    pub answer: AnswerPlace,
}

impl NamedOptions for MathAnswerOptions {}

/// Where an answer stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AnswerPlace {
    /// In the first of `boxed`, `hashes` and `stated` that occurs; without any, one line is an answer.
    #[default]
    Any,
    /// In `\boxed{}`.
    Boxed,
    /// Behind `####`.
    Hashes,
    /// Behind "the answer is", "answer:" and the like.
    Stated,
    /// All that was written is the answer.
    Whole,
}

impl AnswerPlace {
    fn form(self) -> AnswerForm {
        match self {
            Self::Any => AnswerForm::Any,
            Self::Boxed => AnswerForm::Boxed,
            Self::Hashes => AnswerForm::Hashes,
            Self::Stated => AnswerForm::Stated,
            Self::Whole => AnswerForm::Whole,
        }
    }
}

/// An answer is right if it says the same as one of the right ones, as mathematics.
///
/// `success = 1[∃ r in reference: final(answer) = r]`, where `final` is the answer that a text [comes to](final_answer) and `=`
/// is [`math_equal`]. Several answers that differ, and those of which nothing can be told, are wrong.
///
/// Source: math-verify, with the differences that docs/answers.md judges.
#[derive(Debug, Clone, Default)]
pub struct MathAnswer {
    options: MathAnswerOptions,
}

impl MathAnswer {
    /// The comparison with these options.
    pub fn new(options: MathAnswerOptions) -> Self {
        Self { options }
    }

    /// The verdict on an answer: the reward part `success`, 1, where it is right.
    pub fn verdict(&self, answer: &str, reference: &ReferenceAnswer) -> Verdict {
        let rights = reference.texts();
        let (success, found) = match final_answer(answer, self.options.answer.form()) {
            FinalAnswer::Missing => (false, "no answer".to_owned()),
            FinalAnswer::Conflicting => (false, "several answers that differ".to_owned()),
            FinalAnswer::Found(answer) => {
                let mut why = "different".to_owned();
                let success = rights.iter().any(|right| match math_equal(right, &answer) {
                    Equivalence::Equal => true,
                    Equivalence::Different => false,
                    Equivalence::CannotTell(unclear) => {
                        why = unclear.to_string();
                        false
                    }
                });
                (success, if success { "equal".to_owned() } else { why })
            }
        };
        let part = RewardPart { name: "success".to_owned(), value: 1.0 };
        Verdict {
            parts: if success { vec![part] } else { Vec::new() },
            success,
            details: format!("right: {}; {found}", rights.join(" or ")),
            ..Verdict::default()
        }
    }
}

#[async_trait]
impl Grader for MathAnswer {
    fn name(&self) -> &'static str {
        "math"
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
        let reference = super::expect_reference(episode, "math")?;
        Ok(self.verdict(&episode.final_answer(), reference))
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_episodes::{NoPlace, episode, task};
    use super::super::{GraderConfig, Graders, GradingModels};
    use super::*;

    #[test]
    fn answers_are_right_by_what_they_say() {
        let is_right = |options: &str, answer: &str, right: &str| {
            let math = MathAnswer::new(toml::from_str(options).unwrap());
            math.verdict(answer, &serde_json::from_str(right).unwrap()).success
        };
        assert!(is_right("", r"so \boxed{\frac{2}{4}}", "0.5"));
        assert!(is_right("", "12 - 5 = 7\n#### 7", r#""7""#));
        assert!(is_right("", "3", r#"["2", "3"]"#));
        assert!(is_right("answer = 'whole'", "x = 3", r#""3""#));
        for wrong in [
            r"\boxed{3} \boxed{4}",
            "",
            "1, 2, 3, 4, 5",
            r"\boxed{}",
            "I know\nbut do not say",
            "3 or 4",
            "3, 4",
            "x = 4 = 3",
        ] {
            assert!(!is_right("", wrong, r#""3""#), "{wrong}");
        }
        assert!(!is_right("answer = 'boxed'", "The answer is 3", r#""3""#));
        assert!(!is_right("answer = 'hashes'", r"\boxed{3}", r#""3""#));
    }

    #[tokio::test]
    async fn the_grader_judges_what_was_written_last() {
        let graders = Graders::open(&[GraderConfig::new("math")]).unwrap();
        let (task, models) = (task(), GradingModels::default());
        let right = ReferenceAnswer::Text(r"2\sqrt{2}".to_owned());
        for (texts, success) in
            [(["3", r"\boxed{\sqrt{8}}"], true), ([r"\boxed{\sqrt{8}}", "3"], false)]
        {
            let episode = episode(&texts);
            let verdict =
                graders.grade(&task, &episode, Some(&right), &models, &mut NoPlace).await.unwrap();
            assert_eq!((verdict.success, verdict.reward()), (success, f64::from(success)));
            assert!(verdict.details.contains(r"right: 2\sqrt{2}"), "{}", verdict.details);
        }
    }
}
