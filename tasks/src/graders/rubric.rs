//! Answers by the rubric of their task.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::registry::{NamedOptions, RowError};
use spar_core::{RewardPart, Verdict};

use super::registry::AXIS;
use super::{
    Criterion, GradedEpisode, Grader, GraderNeeds, GradingModel, GradingPlace, Judge, JudgeMode,
    JudgeOptions,
};
use crate::{GraderError, RubricCriterion, rubric_of};

/// Options of [`Rubric`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RubricOptions {
    /// Whether a judge tells of criteria without phrases whether they are satisfied; without it such criteria are refused. Default false.
    pub judge: bool,
    /// The task counts as solved from this value on, above 0, at most 1. Default 1.
    pub success_at: f64,
}

impl Default for RubricOptions {
    fn default() -> Self {
        Self { judge: false, success_at: 1.0 }
    }
}

impl NamedOptions for RubricOptions {
    fn problems(&self) -> Vec<String> {
        let at = self.success_at;
        let is_wrong = !(at > 0.0 && at <= 1.0);
        let problem = || format!("`success_at` is {at}, must be above 0 and at most 1");
        is_wrong.then(problem).into_iter().collect()
    }
}

/// The share of the points of a task's rubric that the final answer has: `max(0, sum_k points_k s_k) / sum_{points_k > 0} points_k`, `s_k` being 1 where criterion `k` is
/// satisfied. Part `rubric`.
///
/// The rubric is the list `metadata.rubric` of the task: what each criterion asks for, its points, and phrases of which the answer has to have one; whether it satisfies criteria without phrases a judge tells, who scores
/// them from 0 to 1, all in one question. An answer that keeps the judge from judging it, as one that it refuses does, is worth nothing, whatever phrases it has.
///
/// Source: RuscaRL (arXiv 2508.16949) and HealthBench (arXiv 2505.08775). Deviation: criteria with phrases need no judge.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Rubric {
    options: RubricOptions,
}

impl Rubric {
    /// The grader with these options.
    ///
    /// # Errors
    ///
    /// [`GraderError::Row`] when one is outside its range.
    pub fn new(options: RubricOptions) -> Result<Self, GraderError> {
        RowError::refuse(AXIS.what, "rubric", options.problems())?;
        Ok(Self { options })
    }

    /// What an answer is worth that satisfies the criteria so far, each from 0 to 1.
    fn verdict(&self, rubric: &[RubricCriterion], satisfied: &[f64]) -> Verdict {
        let most: f64 = rubric.iter().map(|it| it.points.max(0.0)).sum();
        let points: f64 = rubric.iter().zip(satisfied).map(|(it, share)| it.points * share).sum();
        let value = if most > 0.0 { (points / most).clamp(0.0, 1.0) } else { 0.0 };
        let told = rubric.iter().zip(satisfied);
        let told: Vec<String> =
            told.map(|(it, share)| format!("{share} of {}: {}", it.points, it.criterion)).collect();
        let parts = vec![RewardPart { name: "rubric".to_owned(), value }];
        let mut verdict = Verdict {
            parts: parts.into_iter().filter(|part| part.value > 0.0).collect(),
            // What is a whole share in figures may be less in floats.
            success: value >= self.options.success_at - 1e-9,
            details: told.join("\n"),
            ..Verdict::default()
        };
        verdict.artifacts.insert("satisfied".to_owned(), serde_json::json!(satisfied));
        verdict
    }

    /// What a judge finds, who scores how far criteria are satisfied, by the names of [`asked_as`].
    async fn judged(
        asked: &[&RubricCriterion],
        episode: &GradedEpisode<'_>,
        place: &mut dyn GradingPlace,
    ) -> Result<Verdict, GraderError> {
        let criterion = |(number, it): (usize, &&RubricCriterion)| Criterion {
            name: asked_as(number),
            text: it.criterion.clone(),
            weight: 1.0,
        };
        let options = JudgeOptions {
            mode: JudgeMode::Criteria,
            range: [0.0, 1.0],
            criteria: asked.iter().enumerate().map(criterion).collect(),
            ..JudgeOptions::default()
        };
        Judge::new(options)?.grade(episode, place).await
    }
}

/// The name by which a judge scores the criterion of this number among those that it is asked of.
fn asked_as(number: usize) -> String {
    format!("c{}", number + 1)
}

/// The scores of so many criteria; `None` where the episode kept the judge from judging.
fn scores(judgement: &Verdict, count: usize) -> Option<Vec<f64>> {
    let scores = judgement.artifacts.get("scores")?;
    (0..count).map(|number| scores.get(asked_as(number))?.as_f64()).collect()
}

#[async_trait]
impl Grader for Rubric {
    fn name(&self) -> &'static str {
        "rubric"
    }

    fn needs(&self) -> GraderNeeds {
        let model = self.options.judge.then_some(GradingModel::Judge);
        GraderNeeds { model, ..GraderNeeds::default() }
    }

    async fn grade(
        &self,
        episode: &GradedEpisode<'_>,
        place: &mut dyn GradingPlace,
    ) -> Result<Verdict, GraderError> {
        let refuse = |problem: String| GraderError::Problems { problems: vec![problem] };
        let rubric = rubric_of(episode.task).map_err(refuse)?;
        let id = &episode.task.id;
        if rubric.is_empty() {
            return Err(refuse(format!("`rubric` of task `{id}`: its `metadata` has no `rubric`")));
        }
        let answer = episode.final_answer();
        let found: Vec<Option<bool>> =
            rubric.iter().map(|criterion| criterion.is_mentioned(&answer)).collect();
        let asked: Vec<&RubricCriterion> =
            rubric.iter().zip(&found).filter(|(_, it)| it.is_none()).map(|(it, _)| it).collect();
        if !asked.is_empty() && !self.options.judge {
            let criterion = &asked[0].criterion;
            return Err(refuse(format!(
                "`rubric` of task `{id}`: `{criterion}` has no `mentions`, so that it takes a judge: set `judge`"
            )));
        }
        let mut judgement = match asked.is_empty() {
            true => Verdict::default(),
            false => Self::judged(&asked, episode, place).await?,
        };
        let judged = match asked.is_empty() {
            true => Some(Vec::new()),
            false => scores(&judgement, asked.len()),
        };
        let Some(judged) = judged else {
            return Ok(Verdict { parts: Vec::new(), success: false, ..judgement });
        };
        let mut judged = judged.into_iter();
        let satisfied = found.iter().map(|found| match found {
            Some(found) => f64::from(u8::from(*found)),
            None => judged.next().unwrap_or(0.0),
        });
        let satisfied: Vec<f64> = satisfied.collect();
        let mut verdict = self.verdict(&rubric, &satisfied);
        if let Some(answers) = judgement.artifacts.remove("answers") {
            verdict.artifacts.insert("answers".to_owned(), answers);
        }
        verdict.graders = judgement.graders;
        Ok(verdict)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;
    use spar_core::{Completion, CompletionRequest, Message, Policy, PolicyError, StopCause};

    use super::super::GradingModels;
    use super::super::test_episodes::{NoPlace, episode, task};
    use super::*;

    /// Finds that criteria are satisfied to these shares, or refuses to judge.
    struct FakeJudge(Option<serde_json::Value>);

    #[async_trait]
    impl Policy for FakeJudge {
        fn name(&self) -> &'static str {
            "fake"
        }

        fn encode(&self, _: Option<&Message>, message: &Message) -> Vec<u32> {
            vec![message.text().len() as u32]
        }

        async fn complete(&self, request: CompletionRequest) -> Result<Completion, PolicyError> {
            let Some(scores) = &self.0 else {
                let (name, detail) = ("fake".to_owned(), "no".to_owned());
                return Err(PolicyError::Refused { name, detail });
            };
            let text = request.messages[1].text().into_owned();
            let (_, rest) = text.rsplit_once("verdict ").unwrap();
            let (mark, _) = rest.split_once(':').unwrap();
            let text = format!("verdict {mark}: {}", json!({ "scores": scores }));
            Ok(Completion::new("fake-1", text, StopCause::EndOfTurn))
        }
    }

    async fn grade(rubric: serde_json::Value, answer: &str) -> Result<Verdict, GraderError> {
        grade_by(&Rubric::default(), GradingModels::default(), rubric, answer).await
    }

    async fn grade_by(
        grader: &Rubric,
        models: GradingModels,
        rubric: serde_json::Value,
        answer: &str,
    ) -> Result<Verdict, GraderError> {
        let mut task = task();
        task.parameters["metadata"] = json!({ "rubric": rubric });
        let trajectory = episode(&[answer]);
        let episode = GradedEpisode {
            task: &task,
            trajectory: &trajectory,
            reference: None,
            earlier: &[],
            models: &models,
            seed: spar_core::Seed::from_u64(0),
        };
        grader.grade(&episode, &mut NoPlace).await
    }

    #[tokio::test]
    async fn an_answer_that_cannot_be_judged_is_worth_nothing() {
        let rubric = json!([
            { "criterion": "greets", "points": 2, "mentions": ["hello"] },
            { "criterion": "frightens", "points": -1 },
        ]);
        let grader = Rubric::new(RubricOptions { judge: true, success_at: 1.0 }).unwrap();
        let judged = async |scores| {
            let judge: Option<Arc<dyn Policy>> = Some(Arc::new(FakeJudge(scores)));
            let models = GradingModels { judge, ..GradingModels::default() };
            grade_by(&grader, models, rubric.clone(), "Hello!").await.unwrap()
        };
        let half = judged(Some(json!({ "c1": 1.0 }))).await;
        assert_eq!((half.reward(), half.success), (0.5, false));
        assert!(half.graders[0].starts_with("judge (prompt "), "{:?}", half.graders);
        assert_eq!(half.artifacts["answers"].as_array().unwrap().len(), 1);
        assert_eq!(half.artifacts["satisfied"], json!([1.0, 1.0]));
        assert_eq!(judged(Some(json!({ "c1": 0.0 }))).await.reward(), 1.0);
        let refused = judged(None).await;
        assert_eq!((refused.reward(), refused.success), (0.0, false));
        assert!(refused.details.contains("could not be judged"), "{}", refused.details);
        assert_eq!(refused.graders.len(), 1);
    }

    #[tokio::test]
    async fn a_reward_is_the_weighted_share_of_the_criteria_that_are_satisfied() {
        let rubric = json!([
            { "criterion": "greets", "points": 1, "mentions": ["hello", "good day"] },
            { "criterion": "names the dose", "points": 3, "mentions": ["5 mg"] },
            { "criterion": "frightens", "points": -2, "mentions": ["you will die"] },
        ]);
        for (answer, value) in [
            ("Hello, take 5 MG.", 1.0),
            ("Take 5 mg.", 0.75),
            ("Good day. 5 mg, or you will die.", 0.5),
            ("You will die.", 0.0),
            ("", 0.0),
        ] {
            let verdict = grade(rubric.clone(), answer).await.unwrap();
            assert_eq!((verdict.reward(), verdict.success), (value, value == 1.0), "{answer}");
        }
        let told = async |rubric| grade(rubric, "x").await.unwrap_err().to_string();
        assert!(told(json!([])).await.contains("has no `rubric`"));
        assert!(told(json!([{ "criterion": "kind" }])).await.contains("takes a judge"));
        assert!(
            told(json!([{ "criterion": "kind", "points": 0 }])).await.contains("must not be 0")
        );
        let empty = json!([{ "criterion": "kind", "mentions": ["so", " "] }]);
        assert!(told(empty).await.contains("`mentions` of `kind` has an empty phrase"));
        let negative = json!([{ "criterion": "rude", "points": -1, "mentions": ["so"] }]);
        assert!(told(negative).await.contains("no `points` are above 0"));
        assert!(Rubric::new(RubricOptions { success_at: 0.0, judge: false }).is_err());
    }
}
