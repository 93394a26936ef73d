//! Answers judged as SQuAD's evaluation does.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use spar_core::registry::NamedOptions;
use spar_core::{RewardPart, Turn, Verdict};
use spar_search::squad::{exact_match, f1};

use super::grader::answer_of;
use super::{GradedEpisode, Grader, GraderNeeds, GradingPlace};
use crate::{GraderError, ReferenceAnswer, Task};

/// What SQuAD's measures are worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SquadReward {
    /// 1 for an answer that is right word for word.
    #[default]
    ExactMatch,
    /// The F1 of its words. Answers that name much are worth something.
    F1,
}

/// Options of [`Squad`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SquadOptions {
    /// What the answer is worth. Default `exact_match`.
    pub reward: SquadReward,
    /// Where the answer stands in the last turn: between `<mark>` and `</mark>`, or as the argument of this name of its one
    /// call; where it stands several times there is no answer. A turn with neither is the answer as a whole. Default
    /// `answer`.
    pub mark: String,
}

impl Default for SquadOptions {
    fn default() -> Self {
        Self { reward: SquadReward::default(), mark: "answer".to_owned() }
    }
}

impl NamedOptions for SquadOptions {
    fn problems(&self) -> Vec<String> {
        let is_word =
            !self.mark.is_empty() && self.mark.chars().all(|c| c.is_alphanumeric() || c == '_');
        let problem = || format!("mark is {:?}, must be a word", self.mark);
        (!is_word).then(problem).into_iter().collect()
    }
}

/// An answer is right if it is one of the right ones once small letters, punctuation, articles and spaces are left out of it.
///
/// Success is the exact match; the reward is that or the best F1 over the right answers, by
/// [`exact_match`](spar_search::squad::exact_match) and [`f1`](spar_search::squad::f1).
///
/// Source: SQuAD, arXiv 1606.05250, its evaluation script.
#[derive(Debug, Clone, Default)]
pub struct Squad {
    options: SquadOptions,
}

impl Squad {
    /// The judge with these options.
    pub fn new(options: SquadOptions) -> Self {
        Self { options }
    }

    /// The answer that a turn gives; empty where it gives several.
    fn answer(&self, turn: &Turn) -> String {
        let mark = &self.options.mark;
        if let Some([call]) = turn.parsed.action().map(|action| action.tool_calls())
            && let Some(Value::String(answer)) = call.arguments.get(mark)
        {
            return answer.clone();
        }
        self.marked(&answer_of(turn))
    }

    /// The answer in what was said; empty where there are several.
    fn marked(&self, said: &str) -> String {
        let mark = &self.options.mark;
        let (open, close) = (format!("<{mark}>"), format!("</{mark}>"));
        let mut whole = Vec::new();
        let mut rest = said;
        while let Some((_, inside)) = rest.split_once(&open)
            && let Some((answer, behind)) = inside.split_once(&close)
        {
            whole.push(answer);
            rest = behind;
        }
        match whole[..] {
            [] => said.to_owned(),
            [answer] => answer.to_owned(),
            [..] => String::new(),
        }
    }

    /// What an answer is worth.
    pub fn verdict(&self, answer: &str, right: &[String]) -> Verdict {
        let each = || right.iter().map(String::as_str);
        let success = !answer.trim().is_empty() && exact_match(answer, each());
        let f1 = f1(answer, each());
        let value = match self.options.reward {
            SquadReward::ExactMatch => f64::from(u8::from(success)),
            SquadReward::F1 => f1,
        };
        let part = RewardPart { name: "success".to_owned(), value };
        Verdict {
            parts: if value > 0.0 { vec![part] } else { Vec::new() },
            success,
            details: format!("right: {}", right.join(" or ")),
            artifacts: [("f1".to_owned(), f1.into())].into(),
            ..Verdict::default()
        }
    }
}

#[async_trait]
impl Grader for Squad {
    fn name(&self) -> &'static str {
        "squad"
    }

    fn needs(&self) -> GraderNeeds {
        GraderNeeds { reference: true, ..GraderNeeds::default() }
    }

    fn judge_answer(&self, _: &Task, answer: &str, reference: &ReferenceAnswer) -> Option<Verdict> {
        Some(self.verdict(&self.marked(answer), &reference.texts()))
    }

    async fn grade(
        &self,
        episode: &GradedEpisode<'_>,
        _: &mut dyn GradingPlace,
    ) -> Result<Verdict, GraderError> {
        let reference = super::expect_reference(episode, "squad")?;
        let answer = episode.trajectory.last_acting().map(|turn| self.answer(turn));
        Ok(self.verdict(&answer.unwrap_or_default(), &reference.texts()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_is_found_in_its_mark_and_several_are_none() {
        for (said, expected) in [
            ("<think>so</think><answer> Graz </answer>", " Graz "),
            ("Graz", "Graz"),
            ("<answer>Graz", "<answer>Graz"),
            ("<answer>Graz</answer><answer>Wien</answer>", ""),
        ] {
            let episode = super::super::test_episodes::episode(&["first", said]);
            assert_eq!(Squad::default().answer(episode.last_acting().unwrap()), expected);
            let right = ReferenceAnswer::Text("graz".to_owned());
            let task = super::super::test_episodes::task();
            let judged = Squad::default().judge_answer(&task, said, &right).unwrap();
            assert_eq!(judged.success, expected.trim() == "Graz", "{said}");
        }
    }

    #[test]
    fn exact_match_decides_and_f1_is_paid_where_it_is_wanted() {
        let right = ["The Eiffel Tower".to_owned(), "Paris".to_owned()];
        let exact = Squad::default();
        let verdict = exact.verdict("eiffel  tower!", &right);
        assert!(verdict.success && verdict.reward() == 1.0);
        let near = exact.verdict("Eiffel", &right);
        assert!(
            !near.success && near.parts.is_empty() && near.artifacts["f1"].as_f64().unwrap() > 0.6
        );
        let f1 = Squad::new(toml::from_str("reward = 'f1'").unwrap());
        let near = f1.verdict("Eiffel", &right);
        assert!(!near.success && (near.reward() - 2.0 / 3.0).abs() < 1e-12);
        assert!(f1.verdict("", &right).parts.is_empty());
        assert_eq!(
            SquadOptions { mark: "a b".to_owned(), ..SquadOptions::default() }.problems().len(),
            1
        );
    }
}
