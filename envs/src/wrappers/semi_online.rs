//! Demonstrations that a policy goes along, and is put back on where it leaves them.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::registry::NamedOptions;
use spar_core::{Action, Observation, RewardPart, Seed, Step, ToolResult, ToolSpec, Verdict};

use super::matching::{Matcher, matches};
use crate::{Environment, EnvironmentError, TimeRules, ToolsetChoice};

const NAME: &str = "semi_online";
/// Steps of a demonstration.
const MOST_STEPS: usize = 1_024;
/// What is shown where it ends because of what was done.
const OVER: &str = "The episode is over.";

/// Options of [`SemiOnline`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SemiOnlineOptions {
    /// How many steps may differ from the demonstration before the episode ends; -1: any number. Default 2, the authors'; 0 measures.
    pub patches: i64,
    /// When an action is the demonstrated one. Default `action`.
    pub matcher: Matcher,
}

impl Default for SemiOnlineOptions {
    fn default() -> Self {
        Self { patches: 2, matcher: Matcher::Action }
    }
}

impl NamedOptions for SemiOnlineOptions {
    fn problems(&self) -> Vec<String> {
        let is_wrong = self.patches < -1 || self.patches > MOST_STEPS as i64;
        let told = format!(
            "`patches` is {}, must be from 0 to {MOST_STEPS}, or -1 for any number",
            self.patches
        );
        is_wrong.then_some(told).into_iter().chain(self.matcher.problem()).collect()
    }
}

/// A demonstration that a policy goes along: what its environment's oracle does, which in a dataset is what was recorded.
///
/// A step that matches what the oracle would do earns `match`, its share of the demonstration's steps, in the place of what the environment
/// pays. One that differs is [patched](Observation::carried_out): the oracle's action is carried out, the policy's history shows that in
/// the place of its own answer, and the step counts as one that could not be carried out, which is what the credit `ui_s1` goes by. With
/// no patch left the episode ends. It is solved where every step matched and the environment says so.
///
/// The verdict's artifact `semi_online` has `progress`, the share of steps before the first that differed, `success`, 1 or 0, and `sop`, their
/// mean: UI-S1's measure of semi-online performance, with `patches = 0`.
///
/// Source: UI-S1 (arXiv 2509.11543), sections 3.2 and 3.4, and its code, with patches that have no thoughts.
pub struct SemiOnline {
    options: SemiOnlineOptions,
    inner: Box<dyn Environment>,
    course: Option<Course>,
}

#[derive(Debug, Clone, Default)]
struct Course {
    /// Steps of the whole demonstration.
    steps: usize,
    done: usize,
    /// Which of them differed.
    missed: Vec<usize>,
    is_over: bool,
    /// What the environment said of the last step.
    is_solved: bool,
}

impl Course {
    fn state_key(&self, inner: &str) -> String {
        format!("{inner} missed {:?}", self.missed)
    }
}

/// What is measured of an episode in which `before` of `steps` steps stood before the first that differed.
pub(crate) fn measured(before: usize, steps: usize, success: bool) -> serde_json::Value {
    let progress = before as f64 / steps.max(1) as f64;
    let sop = f64::midpoint(progress, f64::from(u8::from(success)));
    serde_json::json!({ "progress": progress, "success": success, "sop": sop })
}

impl SemiOnline {
    /// The environment of `task`, along its demonstration.
    ///
    /// # Errors
    ///
    /// [`EnvironmentError`] where the environment has several seats. That it has no oracle, or does not fork, is known when it is reset.
    pub(super) fn new(
        options: SemiOnlineOptions,
        inner: Box<dyn Environment>,
    ) -> Result<Self, EnvironmentError> {
        let env = Self { options, inner, course: None };
        match env.inner.seats().len() {
            1 => Ok(env),
            _ => Err(env.refuse("it has several seats")),
        }
    }

    fn refuse(&self, detail: &str) -> EnvironmentError {
        EnvironmentError::Wrapper {
            wrapper: NAME,
            environment: self.inner.name(),
            detail: detail.to_owned(),
        }
    }

    /// How many steps the demonstration has from here.
    async fn count(&mut self) -> Result<usize, EnvironmentError> {
        if self.inner.oracle_action().is_none() {
            return Err(self.refuse("it has no oracle whose steps could be gone along"));
        }
        let Some(mut ahead) = self.inner.fork().await? else {
            let problem = "it does not fork, so that nobody knows how long its demonstration is";
            return Err(self.refuse(problem));
        };
        let mut steps = 0;
        while let Some(action) = ahead.oracle_action().filter(|_| steps < MOST_STEPS) {
            steps += 1;
            if ahead.step(&action).await?.terminated {
                break;
            }
        }
        ahead.close().await?;
        Ok(steps)
    }
}

/// Calls with ids of their own, so that results can name them.
fn with_ids(action: Action, step: usize) -> Action {
    match action {
        Action::Text { .. } => action,
        Action::Calls { text, mut calls } => {
            for (place, call) in calls.iter_mut().enumerate() {
                call.id = format!("p{step:05}{place:03}");
            }
            Action::Calls { text, calls }
        }
    }
}

#[async_trait]
impl Environment for SemiOnline {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn version(&self) -> u32 {
        self.inner.version()
    }

    fn tags(&self) -> Vec<String> {
        self.inner.tags()
    }

    fn time_rules(&self) -> TimeRules {
        self.inner.time_rules()
    }

    async fn reset(&mut self, seed: Seed) -> Result<Observation, EnvironmentError> {
        let mut first = self.inner.reset(seed).await?;
        let steps = self.count().await?;
        let course = Course { steps, ..Course::default() };
        first.state_key = course.state_key(&first.state_key);
        self.course = Some(course);
        Ok(first)
    }

    async fn prepare(&mut self) -> Result<(), EnvironmentError> {
        self.inner.prepare().await
    }

    fn use_tools(&mut self) {
        self.inner.use_tools();
    }

    fn use_toolset(&mut self, toolset: &ToolsetChoice) -> bool {
        self.inner.use_toolset(toolset)
    }

    fn tools(&self) -> Arc<[ToolSpec]> {
        self.inner.tools()
    }

    fn takes_any_words(&self) -> bool {
        self.inner.takes_any_words()
    }

    fn reads_whole_answers(&self) -> bool {
        self.inner.reads_whole_answers()
    }

    async fn step(&mut self, action: &Action) -> Result<Step, EnvironmentError> {
        let misused = |when| EnvironmentError::Misused { call: "step", when };
        let Some(mut course) = self.course.clone() else { return Err(misused("before reset")) };
        if course.is_over {
            return Err(misused("after the end"));
        }
        let Some(shown) = self.inner.oracle_action() else {
            return Err(self.refuse("its oracle does not know how to go on"));
        };
        let is_match = matches(&self.options.matcher, action, &shown);
        let number = course.done;
        course.done += 1;
        if !is_match {
            course.missed.push(number);
        }
        let patches = usize::try_from(self.options.patches).ok();
        let goes_on = patches.is_none_or(|most| course.missed.len() <= most);
        let mut step = if is_match || goes_on {
            // The same in other words is carried out as it was said.
            let is_same = is_match && action.key() == shown.key();
            let done = if is_same { action.clone() } else { with_ids(shown, number) };
            let mut step = self.inner.step(&done).await?;
            step.observation.carried_out = (!is_same && !step.terminated).then_some(done);
            step
        } else {
            let results = action.tool_calls().iter().map(|call| ToolResult::error(call, OVER));
            Step {
                observation: Observation { results: results.collect(), ..Observation::new(OVER) },
                rewards: Vec::new(),
                terminated: true,
                success: false,
                valid: false,
                wall_time: std::time::Duration::ZERO,
            }
        };
        let value = 1.0 / course.steps.max(course.done) as f64;
        step.rewards = match is_match {
            true => vec![RewardPart { name: "match".to_owned(), value }],
            false => Vec::new(),
        };
        step.valid = is_match;
        course.is_solved = step.success;
        step.success &= course.missed.is_empty();
        course.is_over = step.terminated;
        step.observation.state_key = course.state_key(&step.observation.state_key);
        self.course = Some(course);
        Ok(step)
    }

    async fn verify(&mut self) -> Result<Option<Verdict>, EnvironmentError> {
        let misused = EnvironmentError::Misused { call: "verify", when: "before reset" };
        let course = self.course.clone().ok_or(misused)?;
        let judged = self.inner.verify().await?;
        let is_solved = judged.as_ref().map_or(course.is_solved, |verdict| verdict.success);
        let success = course.is_over && course.missed.is_empty() && is_solved;
        let before = course.missed.first().copied().unwrap_or(course.done);
        let steps = course.steps.max(course.done);
        let told =
            format!("{before} of {steps} steps were as demonstrated before the first that was not");
        let mut artifacts = judged.map(|verdict| verdict.artifacts).unwrap_or_default();
        artifacts.insert("semi_online".to_owned(), measured(before, steps, success));
        // What steps match is all that is paid.
        Ok(Some(Verdict { success, details: told, artifacts, ..Verdict::default() }))
    }

    fn grader_versions(&self) -> BTreeMap<String, u32> {
        self.inner.grader_versions()
    }

    async fn fork(&mut self) -> Result<Option<Box<dyn Environment>>, EnvironmentError> {
        let Some(inner) = self.inner.fork().await? else { return Ok(None) };
        let (options, course) = (self.options.clone(), self.course.clone());
        Ok(Some(Box::new(Self { options, inner, course })))
    }

    fn oracle_action(&self) -> Option<Action> {
        let is_over = self.course.as_ref().is_none_or(|course| course.is_over);
        self.inner.oracle_action().filter(|_| !is_over)
    }

    async fn close(&mut self) -> Result<(), EnvironmentError> {
        self.inner.close().await
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use spar_tasks::Task;

    use super::*;
    use crate::{Resources, open_environment, test_task};

    fn lake(options: &Value) -> Task {
        let mut wrapper = options.clone();
        wrapper["kind"] = json!(NAME);
        test_task("frozen-lake", json!({ "seed": 3, "size": 4, "wrappers": [wrapper] }))
    }

    async fn opened(options: Value) -> Box<dyn Environment> {
        let mut env = open_environment(&lake(&options), &Resources::default()).unwrap();
        env.reset(Seed::from_u64(1)).await.unwrap();
        env
    }

    /// What is done: as shown, or another of the four directions.
    async fn play(env: &mut dyn Environment, plan: &[bool]) -> Vec<Step> {
        let mut steps = Vec::new();
        for as_shown in plan {
            let shown = env.oracle_action().unwrap();
            let other = if shown.said() == "up" { "left" } else { "up" };
            let action = if *as_shown { shown } else { other.into() };
            steps.push(env.step(&action).await.unwrap());
            if steps.last().unwrap().terminated {
                break;
            }
        }
        steps
    }

    async fn told(env: &mut dyn Environment) -> Value {
        env.verify().await.unwrap().unwrap().artifacts["semi_online"].clone()
    }

    #[tokio::test]
    async fn a_demonstration_that_is_gone_along_earns_one_and_is_solved() {
        let mut env = opened(json!({})).await;
        let steps = play(env.as_mut(), &[true; 64]).await;
        let reward: f64 = steps.iter().map(Step::reward).sum();
        assert!((reward - 1.0).abs() < 1e-9, "{reward}");
        assert!(steps.iter().all(|step| step.valid && step.observation.carried_out.is_none()));
        assert!(steps.last().unwrap().terminated);
        assert_eq!(
            told(env.as_mut()).await,
            json!({ "progress": 1.0, "success": true, "sop": 1.0 })
        );
        assert!(env.step(&"up".into()).await.is_err());
    }

    #[tokio::test]
    async fn steps_that_differ_are_patched_as_often_as_is_allowed() {
        let plan: Vec<bool> =
            [true, false, true, false, true, false].into_iter().chain([true; 64]).collect();
        for (patches, ends_at) in [(0, Some(2)), (1, Some(4)), (2, Some(6)), (-1, None)] {
            let mut env = opened(json!({ "patches": patches })).await;
            let mut alone = open_environment(
                &test_task("frozen-lake", json!({ "seed": 3, "size": 4 })),
                &Resources::default(),
            )
            .unwrap();
            alone.reset(Seed::from_u64(1)).await.unwrap();
            let mut whole = 0;
            while let Some(action) = alone.oracle_action() {
                whole += 1;
                if alone.step(&action).await.unwrap().terminated {
                    break;
                }
            }
            let steps = play(env.as_mut(), &plan).await;
            assert_eq!(steps.len(), ends_at.unwrap_or(whole).min(whole), "{patches}");
            for (step, as_shown) in steps.iter().zip(&plan) {
                assert_eq!((step.valid, step.reward() > 0.0), (*as_shown, *as_shown));
                let is_patched = step.observation.carried_out.is_some();
                assert_eq!(is_patched, !as_shown && !step.terminated);
            }
            let found = told(env.as_mut()).await;
            assert_eq!(found["success"], json!(false));
            assert_eq!(found["progress"], json!(1.0 / whole as f64));
        }
    }

    #[tokio::test]
    async fn forks_go_on_alike_and_what_cannot_be_gone_along_is_refused() {
        let mut env = opened(json!({ "patches": 1 })).await;
        play(env.as_mut(), &[false]).await;
        let mut fork = env.fork().await.unwrap().unwrap();
        let plan = [true; 64];
        let (one, other) = (play(env.as_mut(), &plan).await, play(fork.as_mut(), &plan).await);
        assert_eq!(one.len(), other.len());
        assert_eq!(told(env.as_mut()).await, told(fork.as_mut()).await);
        let refused = |task: &Task| {
            open_environment(task, &Resources::default()).err().map(|error| error.to_string())
        };
        assert!(refused(&lake(&json!({ "patches": -2 }))).unwrap().contains("`patches` is -2"));
        let mut seats = lake(&json!({}));
        seats.environment = "tic-tac-toe".to_owned();
        seats.parameters = json!({ "seed": 1, "wrappers": [{ "kind": NAME }] });
        assert!(refused(&seats).unwrap().contains(NAME));
    }
}
