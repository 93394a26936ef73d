//! Answers that have to name the right choice.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_answers::{Choice, choice};
use spar_core::registry::NamedOptions;
use spar_core::{RewardPart, Verdict};

use super::{GradedEpisode, Grader, GraderNeeds, GradingPlace};
use crate::{GraderError, ReferenceAnswer, Task};

/// Options of [`ChoiceAnswer`].
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ChoiceAnswerOptions {
    /// How many choices there are, called A, B, C and so on; 2 to 26. Default absent: as many as the list `choices` in the task's
    /// metadata has, or 26.
    pub choices: Option<usize>,
}

impl NamedOptions for ChoiceAnswerOptions {
    fn problems(&self) -> Vec<String> {
        match self.choices {
            Some(choices) if !(2..=26).contains(&choices) => {
                vec![format!("`choices` is {choices}, must be from 2 to 26")]
            }
            _ => Vec::new(),
        }
    }
}

/// An answer is right if it names the letter of the right choice, and no other.
///
/// `success = 1[choice(answer) = choice(r)]` for an `r` of the reference, where [`choice`] finds the letter in its usual writings.
///
/// Source: own, after the extraction of lm-evaluation-harness and simple-evals.
#[derive(Debug, Clone, Default)]
pub struct ChoiceAnswer {
    options: ChoiceAnswerOptions,
}

impl ChoiceAnswer {
    /// The comparison with these options.
    pub fn new(options: ChoiceAnswerOptions) -> Self {
        Self { options }
    }

    /// How many choices a task has.
    fn num_choices(&self, task: &Task) -> usize {
        let told =
            task.parameters.pointer("/metadata/choices").and_then(serde_json::Value::as_array);
        self.options.choices.or(told.map(Vec::len)).unwrap_or(26)
    }

    /// The verdict on an answer to one of so many choices: the reward part `success`, 1, where it is right.
    pub fn verdict(
        &self,
        answer: &str,
        num_choices: usize,
        reference: &ReferenceAnswer,
    ) -> Verdict {
        let rights = reference.texts();
        let found = choice(answer, num_choices);
        let is_right = |right: &String| {
            matches!(found, Choice::Found(_)) && choice(right, num_choices) == found
        };
        let success = rights.iter().any(is_right);
        let told = match found {
            Choice::Found(number) => letter(number),
            Choice::Missing => "no choice".to_owned(),
            Choice::Conflicting => "several choices".to_owned(),
        };
        let part = RewardPart { name: "success".to_owned(), value: 1.0 };
        Verdict {
            parts: if success { vec![part] } else { Vec::new() },
            success,
            details: format!("right: {}; found: {told}", rights.join(" or ")),
            ..Verdict::default()
        }
    }
}

/// What a choice is called.
pub(crate) fn letter(number: usize) -> String {
    let letter =
        u8::try_from(number).ok().and_then(|number| b'A'.checked_add(number)).map(char::from);
    letter.map(String::from).unwrap_or_default()
}

#[async_trait]
impl Grader for ChoiceAnswer {
    fn name(&self) -> &'static str {
        "choice"
    }

    fn needs(&self) -> GraderNeeds {
        GraderNeeds { reference: true, ..GraderNeeds::default() }
    }

    fn judge_answer(
        &self,
        task: &Task,
        answer: &str,
        reference: &ReferenceAnswer,
    ) -> Option<Verdict> {
        Some(self.verdict(answer, self.num_choices(task), reference))
    }

    async fn grade(
        &self,
        episode: &GradedEpisode<'_>,
        _: &mut dyn GradingPlace,
    ) -> Result<Verdict, GraderError> {
        let reference = super::expect_reference(episode, "choice")?;
        Ok(self.verdict(&episode.final_answer(), self.num_choices(episode.task), reference))
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_episodes::{NoPlace, episode, task};
    use super::super::{GraderConfig, Graders, GradingModels};
    use super::*;

    #[tokio::test]
    async fn one_letter_is_a_choice_and_several_are_none() {
        let graders = Graders::open(&[GraderConfig::new("choice")]).unwrap();
        let models = GradingModels::default();
        let mut task = task();
        task.parameters["metadata"] = serde_json::json!({ "choices": ["1", "2", "3"] });
        let right = ReferenceAnswer::Text("B".to_owned());
        for (answer, success) in [
            ("B", true),
            ("The answer is (b).", true),
            (r"\boxed{\text{B}}", true),
            ("C", false),
            ("A, B, C", false),
            (r"\boxed{A} \boxed{B}", false),
            ("The answer is A.\nThe answer is B.", false),
            ("", false),
            ("E", false),
        ] {
            let episode = episode(&[answer]);
            let verdict =
                graders.grade(&task, &episode, Some(&right), &models, &mut NoPlace).await.unwrap();
            assert_eq!(
                (verdict.success, verdict.reward()),
                (success, f64::from(success)),
                "{answer}"
            );
        }
        let mut config = GraderConfig::new("choice");
        config.options.insert("choices".to_owned(), 1.into());
        assert!(Graders::open(&[config]).unwrap_err().to_string().contains("`choices` is 1"));
    }
}
