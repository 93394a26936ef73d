//! Changes that are worth as much as they are like the right one.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use spar_core::registry::NamedOptions;
use spar_core::{RewardPart, Verdict};
use spar_swe::similarity::{
    Files, SimilarityError, SimilarityReward, patch_reward, reversed_patch, search_replace_reward,
};
use spar_swe::{Gold, Instance, Patch, PatchLimits};

use super::{GradedEpisode, Grader, GradingPlace, expect_reference};
use crate::{GraderError, ReferenceAnswer, SweTask, Task};

const NAME: &str = "patch_similarity";
/// The part of the reward.
const PART: &str = "similarity";

/// Options of [`PatchSimilarity`].
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PatchSimilarityOptions {
    /// What is compared. Default `patch`.
    pub answer: AnswerShape,
}

/// What a policy hands in to be compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AnswerShape {
    /// The patch of an episode of the environment `swe`, against the instance's own solution. The grader `environment` stands before this one.
    #[default]
    Patch,
    /// SWE-RL's answer, `<think>...</think><solution>...</solution>` with SEARCH/REPLACE blocks. The answer that is right is a
    /// JSON object of `code` and `oracle`: contents of files by path, before the change and after it.
    SearchReplace,
}

impl NamedOptions for PatchSimilarityOptions {
    fn problems(&self) -> Vec<String> {
        Vec::new()
    }
}

/// A change is worth how like it is to the one that is right (SWE-RL, arXiv 2502.18449).
///
/// `r = mean_f ratio(predicted_f, oracle_f)` over the files that either side changes, `ratio` being that of Python's
/// `difflib.SequenceMatcher(autojunk=False)` on their unified diffs, and -1 for an answer that is malformed: one without the
/// tags or blocks, blocks that find nothing or change nothing, a patch that cannot be read, and what is too large to be
/// compared. No test runs for it; success is a change that is the same.
#[derive(Debug, Clone, Copy, Default)]
pub struct PatchSimilarity {
    options: PatchSimilarityOptions,
}

/// What SWE-RL's answers are held against.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Change {
    code: Files,
    oracle: Files,
}

impl PatchSimilarity {
    /// The grader with these options.
    pub fn new(options: PatchSimilarityOptions) -> Self {
        Self { options }
    }

    fn search_replace(
        task: &Task,
        answer: &str,
        reference: &ReferenceAnswer,
    ) -> Result<Verdict, GraderError> {
        let mut best: Option<Verdict> = None;
        for text in reference.texts() {
            let change: Change = serde_json::from_str(&text).map_err(|error| {
                problem(
                    task,
                    &format!("its right answer is no JSON object of `code` and `oracle`: {error}"),
                )
            })?;
            let verdict = verdict(search_replace_reward(&change.code, &change.oracle, answer));
            if best.as_ref().is_none_or(|best| verdict.reward() > best.reward()) {
                best = Some(verdict);
            }
        }
        best.ok_or_else(|| problem(task, "it has no right answer"))
    }

    fn patch(episode: &GradedEpisode<'_>) -> Result<Verdict, GraderError> {
        let task = episode.task;
        let swe = SweTask::deserialize(&task.parameters)
            .map_err(|error| problem(task, &format!("it is no instance: {error}")))?;
        let oracle = oracle(&swe.instance).map_err(|what| problem(task, what))?;
        let found = episode.earlier.iter().find_map(|(_, verdict)| verdict.artifacts.get("swe"));
        let found = found.ok_or_else(|| {
            problem(task, "nothing has taken its patch: name the grader `environment` before")
        })?;
        let Some(patch) = found.get("patch").and_then(Value::as_str) else {
            return Ok(malformed("it left no patch"));
        };
        if let Err(error) = Patch::parse(patch.as_bytes(), &PatchLimits::default()) {
            return Ok(malformed(&error.to_string()));
        }
        Ok(verdict(patch_reward(&oracle, patch)))
    }
}

fn problem(task: &Task, what: &str) -> GraderError {
    GraderError::Problems { problems: vec![format!("`{NAME}` of task `{}`: {what}", task.id)] }
}

/// The right change of an instance as a diff.
fn oracle(instance: &Instance) -> Result<String, &'static str> {
    match &instance.gold {
        Some(Gold::Patch(patch)) => Ok(patch.clone()),
        Some(Gold::ReversePatch(patch)) => Ok(reversed_patch(patch)),
        Some(_) => Err("its solution is no diff"),
        None => Err("it has no solution"),
    }
}

fn malformed(what: &str) -> Verdict {
    Verdict {
        parts: vec![RewardPart { name: PART.to_owned(), value: -1.0 }],
        details: format!("malformed: {what}"),
        ..Verdict::default()
    }
}

fn verdict(found: Result<SimilarityReward, SimilarityError>) -> Verdict {
    let found = match found {
        Ok(found) => found,
        // It is the answer that makes them so long.
        Err(error) => return malformed(&error.to_string()),
    };
    if let Some(problem) = found.problem {
        return malformed(&problem.to_string());
    }
    let by_file: serde_json::Map<String, Value> =
        found.files.iter().map(|file| (file.path.clone(), file.similarity.into())).collect();
    Verdict {
        parts: vec![RewardPart { name: PART.to_owned(), value: found.value }],
        success: found.value >= 1.0,
        details: format!("as like as {:.3} in {} files", found.value, found.files.len()),
        artifacts: [("files".to_owned(), Value::Object(by_file))].into(),
        ..Verdict::default()
    }
}

#[async_trait]
impl Grader for PatchSimilarity {
    fn name(&self) -> &'static str {
        NAME
    }

    fn needs(&self) -> super::GraderNeeds {
        let reference = self.options.answer == AnswerShape::SearchReplace;
        super::GraderNeeds { reference, ..super::GraderNeeds::default() }
    }

    async fn grade(
        &self,
        episode: &GradedEpisode<'_>,
        _: &mut dyn GradingPlace,
    ) -> Result<Verdict, GraderError> {
        match self.options.answer {
            AnswerShape::Patch => Self::patch(episode),
            AnswerShape::SearchReplace => {
                let reference = expect_reference(episode, NAME)?;
                // The tags around the thoughts belong to the form.
                let last = episode.trajectory.last_acting();
                let answer = last.map_or("", |turn| turn.text.as_str());
                Self::search_replace(episode.task, answer, reference)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use spar_core::Seed;

    use super::super::GradingModels;
    use super::super::test_episodes::{NoPlace, episode, task};
    use super::*;

    async fn grade(
        shape: AnswerShape,
        task: &Task,
        answer: &str,
        reference: Option<&ReferenceAnswer>,
        earlier: &[(String, Verdict)],
    ) -> Result<Verdict, GraderError> {
        let (trajectory, models) = (episode(&[answer]), GradingModels::default());
        let seed = Seed::from_u64(0);
        let graded = GradedEpisode {
            task,
            trajectory: &trajectory,
            reference,
            earlier,
            models: &models,
            seed,
        };
        let grader = PatchSimilarity::new(PatchSimilarityOptions { answer: shape });
        grader.grade(&graded, &mut NoPlace).await
    }

    #[tokio::test]
    async fn answers_are_worth_what_the_reference_says() {
        // Those of the crate that compares them.
        let recorded = include_str!("../../../swe/tests/fixtures/reward_swe_rl.json");
        let recorded: Value = serde_json::from_str(recorded).unwrap();
        let (mut count, task) = (0, task());
        for case in recorded["cases"].as_array().unwrap() {
            let Some(output) = case["inputs"]["output"].as_str() else { continue };
            let right = serde_json::json!({
                "code": case["inputs"]["code_context"], "oracle": case["inputs"]["oracle_new_content"],
            });
            let right = ReferenceAnswer::Text(right.to_string());
            let found = grade(AnswerShape::SearchReplace, &task, output, Some(&right), &[]);
            let (found, expected) =
                (found.await.unwrap(), case["outputs"]["reward"].as_f64().unwrap());
            assert!((found.reward() - expected).abs() < 1e-12, "{}", case["tag"]);
            assert_eq!(found.success, expected == 1.0);
            count += 1;
        }
        assert!(count >= 4, "{count} answers");
    }

    #[tokio::test]
    async fn what_is_malformed_is_worth_minus_one() {
        let task = task();
        let right =
            ReferenceAnswer::Text(r#"{"code": {"a": "w\nx\n"}, "oracle": {"a": "w\ny\n"}}"#.into());
        for answer in ["", "y", "<think></think><solution>y</solution>"] {
            let found = grade(AnswerShape::SearchReplace, &task, answer, Some(&right), &[]);
            assert_eq!(found.await.unwrap().reward(), -1.0, "{answer}");
        }
        let answer = "<think>\nIt is y.\n</think>\n<solution>\n```\n### a\n<<<<<<< SEARCH\nx\n=======\ny\n>>>>>>> REPLACE\n```\n</solution>";
        let found = grade(AnswerShape::SearchReplace, &task, answer, Some(&right), &[]);
        let found = found.await.unwrap();
        assert_eq!((found.reward(), found.success), (1.0, true), "{}", found.details);
        let none = ReferenceAnswer::Text("y".into());
        let told = grade(AnswerShape::SearchReplace, &task, answer, Some(&none), &[]).await;
        assert!(told.unwrap_err().to_string().contains("`code` and `oracle`"));
    }

    #[tokio::test]
    async fn patches_are_held_against_the_solution_in_either_direction() {
        let forward = "diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n@@ -1,2 +1,2 @@\n one\n-two\n+three\n";
        let with = |gold: Option<Gold>| {
            let instance = Instance { id: "a".into(), gold, ..Instance::default() };
            Task { parameters: serde_json::to_value(SweTask::new(instance)).unwrap(), ..task() }
        };
        let taken = |patch: Value| {
            let artifacts = [("swe".to_owned(), serde_json::json!({ "patch": patch }))].into();
            vec![("environment".to_owned(), Verdict { artifacts, ..Verdict::default() })]
        };
        let back = reversed_patch(forward);
        for gold in [Gold::Patch(forward.into()), Gold::ReversePatch(back)] {
            let task = with(Some(gold));
            let worth = async |patch: Value| {
                let found = grade(AnswerShape::Patch, &task, "submit", None, &taken(patch)).await;
                found.unwrap().reward()
            };
            assert_eq!(worth(forward.into()).await, 1.0);
            assert_eq!(worth("".into()).await, 0.0);
            assert_eq!(worth(Value::Null).await, -1.0);
            assert_eq!(worth("--- a/a.py\n+++ b/a.py\n@@ -1,2 +1,2 @@\n one\n".into()).await, -1.0);
            let near = worth(forward.replace("three", "there").into()).await;
            assert!(0.5 < near && near < 1.0, "{near}");
        }
        let told = grade(AnswerShape::Patch, &with(None), "submit", None, &taken("".into())).await;
        assert!(told.unwrap_err().to_string().contains("it has no solution"));
        let gold = Some(Gold::Patch(forward.into()));
        let told = grade(AnswerShape::Patch, &with(gold), "submit", None, &[]).await;
        assert!(told.unwrap_err().to_string().contains("name the grader `environment` before"));
    }
}
