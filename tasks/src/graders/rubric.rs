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
/// them from 0 to 1, all in one question.
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

    /// How far a judge finds criteria to be satisfied.
    async fn judged(
        &self,
        asked: &[&RubricCriterion],
        episode: &GradedEpisode<'_>,
        place: &mut dyn GradingPlace,
    ) -> Result<Vec<f64>, GraderError> {
        let name = |number: usize| format!("c{}", number + 1);
        let criterion = |(number, it): (usize, &&RubricCriterion)| Criterion {
            name: name(number),
            text: it.criterion.clone(),
            weight: 1.0,
        };
        let options = JudgeOptions {
            mode: JudgeMode::Criteria,
            range: [0.0, 1.0],
            criteria: asked.iter().enumerate().map(criterion).collect(),
            ..JudgeOptions::default()
        };
        let verdict = Judge::new(options)?.grade(episode, place).await?;
        let scores = verdict.artifacts.get("scores");
        let score = |number| scores.and_then(|it| it.get(name(number))?.as_f64()).unwrap_or(0.0);
        Ok((0..asked.len()).map(score).collect())
    }
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
        let mut judged = match asked.is_empty() {
            true => Vec::new(),
            false => self.judged(&asked, episode, place).await?,
        }
        .into_iter();
        let satisfied = found.iter().map(|found| match found {
            Some(found) => f64::from(u8::from(*found)),
            None => judged.next().unwrap_or(0.0),
        });
        let satisfied: Vec<f64> = satisfied.collect();
        Ok(self.verdict(&rubric, &satisfied))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::GradingModels;
    use super::super::test_episodes::{NoPlace, episode, task};
    use super::*;

    async fn grade(rubric: serde_json::Value, answer: &str) -> Result<Verdict, GraderError> {
        let mut task = task();
        task.parameters["metadata"] = json!({ "rubric": rubric });
        let (trajectory, models) = (episode(&[answer]), GradingModels::default());
        let episode = GradedEpisode {
            task: &task,
            trajectory: &trajectory,
            reference: None,
            earlier: &[],
            models: &models,
            seed: spar_core::Seed::from_u64(0),
        };
        Rubric::default().grade(&episode, &mut NoPlace).await
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
        assert!(Rubric::new(RubricOptions { success_at: 0.0, judge: false }).is_err());
    }
}
