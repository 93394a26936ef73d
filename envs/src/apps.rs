//! Contacts, mail, calendar, files and payments of one person, used by calls of tools.

use std::sync::{Arc, OnceLock};
use std::time::Instant;

use async_trait::async_trait;
use serde::Deserialize;
use spar_apps::{AppTask, Families, Offer, Session, specs};
use spar_core::registry::known_names;
use spar_core::{
    Action, Observation, RewardPart, Seed, Step, ToolCall, ToolResult, ToolSpec, Verdict,
};
use spar_tasks::Task;

use crate::calls::{MOST_CALLS, clipped, too_many};
use crate::{Environment, EnvironmentError, idle_tag};

const NAME: &str = "apps";

/// A task in the applications of one person: contacts, mail, calendar, files, payments.
///
/// Parameters: `seed`; `families`, `seen` (default) or `unseen`; `levels`, a list of 1 to 4 (default all); `tools`, which of
/// them are offered: `needed` (those of a demonstration and a few others), `apps` (those of the applications that the task is
/// about, default) or `all`; and `progress`, what all required changes weigh together, from 0 to 0.9 (default 0.5).
///
/// The call of `finish` ends the task, with an answer where a question was asked. It is solved where all that differs from
/// the beginning was demanded, all that was demanded differs, nothing happened that must not, and the answer is right; that
/// gives the reward parts `progress` and `success`, 1 together. Where only some of the required changes are there, and nothing
/// else has changed, `progress` has their share, of those that were made after what they follow from had been looked up. An
/// episode that does not end by `finish` earns nothing. Calls that cannot be carried out are answered with an error and
/// change nothing. Words are no action.
#[derive(Debug, Clone)]
pub struct Apps {
    shared: Arc<Shared>,
    session: Option<Session>,
}

#[derive(Debug)]
struct Shared {
    task: Arc<AppTask>,
    offer: Offer,
    progress: f64,
    tools: OnceLock<Arc<[ToolSpec]>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Parameters {
    seed: u64,
    #[serde(default)]
    families: Families,
    #[serde(default = "all_levels")]
    levels: Vec<u8>,
    #[serde(default)]
    tools: Offer,
    #[serde(default = "half")]
    progress: f64,
}

fn all_levels() -> Vec<u8> {
    vec![1, 2, 3, 4]
}

fn half() -> f64 {
    0.5
}

impl Parameters {
    fn seed(&self) -> Seed {
        Seed::from_u64(self.seed).derive(NAME, "task")
    }
}

impl Apps {
    /// Makes the applications of a task.
    ///
    /// # Errors
    ///
    /// [`EnvironmentError::Parameters`] when the task's parameters are not understood.
    pub fn open(task: &Task) -> Result<Self, EnvironmentError> {
        let refuse = |detail: String| EnvironmentError::Parameters {
            task: task.id.clone(),
            environment: NAME,
            detail,
        };
        let parameters =
            Parameters::deserialize(&task.parameters).map_err(|error| refuse(error.to_string()))?;
        if !(0.0..=0.9).contains(&parameters.progress) {
            let detail = format!("`progress` is {}, allowed are 0 to 0.9", parameters.progress);
            return Err(refuse(detail));
        }
        let drawn = AppTask::draw(parameters.seed(), parameters.families, &parameters.levels);
        let task = drawn.ok_or_else(|| {
            let levels = &parameters.levels;
            refuse(format!(
                "no family of these is of one of the levels {levels:?}, which are 1 to 4"
            ))
        })?;
        let shared = Shared {
            task: Arc::new(task),
            offer: parameters.tools,
            progress: parameters.progress,
            tools: OnceLock::new(),
        };
        Ok(Self { shared: Arc::new(shared), session: None })
    }

    /// The family of a task, which its parameters tell without making it.
    pub(crate) fn family(task: &Task) -> Option<String> {
        let parameters = Parameters::deserialize(&task.parameters).ok()?;
        let family = AppTask::family_of(parameters.seed(), parameters.families, &parameters.levels);
        family.map(str::to_owned)
    }

    fn offered(&self) -> Arc<[ToolSpec]> {
        let shared = &self.shared;
        let choose = || {
            let places = shared.task.offered(shared.offer);
            places.into_iter().map(|place| specs()[place].clone()).collect()
        };
        Arc::clone(shared.tools.get_or_init(choose))
    }

    fn observe(&self, session: &Session, text: String) -> Observation {
        let state_key = format!("{:016x} of {}", session.knowledge(), self.shared.task.instruction);
        Observation { text, state_key, ..Observation::default() }
    }
}

/// Carries out a call of one of the tools that are offered.
fn carry_out(
    session: &mut Session,
    offered: &[ToolSpec],
    call: &ToolCall,
) -> Result<String, String> {
    if session.judgement().is_none() && !offered.iter().any(|tool| tool.name == call.name) {
        let name = clipped(&call.name);
        let known = known_names(name, offered.iter().map(|tool| tool.name.as_str()));
        return Err(format!("There is no tool `{name}`; known are {known}."));
    }
    session.call(&call.name, &call.arguments)
}

#[async_trait]
impl Environment for Apps {
    fn name(&self) -> &'static str {
        NAME
    }

    fn tags(&self) -> Vec<String> {
        let task = &self.shared.task;
        // An episode that nobody ends earns nothing, whatever is left as it was.
        vec![task.family.to_owned(), format!("level-{}", task.level), idle_tag(0.0)]
    }

    async fn reset(&mut self, _seed: Seed) -> Result<Observation, EnvironmentError> {
        let task = &self.shared.task;
        let session = Session::new(Arc::clone(task));
        let mut first = self.observe(&session, format!("Your task is to: {}", task.instruction));
        first.instruction = Some(task.instruction.as_str().into());
        self.session = Some(session);
        Ok(first)
    }

    fn tools(&self) -> Arc<[ToolSpec]> {
        match &self.session {
            Some(session) if session.judgement().is_none() => self.offered(),
            _ => Arc::default(),
        }
    }

    async fn step(&mut self, action: &Action) -> Result<Step, EnvironmentError> {
        let start = Instant::now();
        let misused = |when| EnvironmentError::Misused { call: "step", when };
        let offered = self.offered();
        let session = self.session.as_mut().ok_or(misused("before reset"))?;
        if session.judgement().is_some() {
            return Err(misused("after the end"));
        }
        let calls = action.tool_calls();
        let mut results = Vec::with_capacity(calls.len());
        for (place, call) in calls.iter().enumerate() {
            let done = match place < MOST_CALLS {
                true => carry_out(session, &offered, call),
                false => Err(too_many(MOST_CALLS)),
            };
            results.push(match done {
                Ok(text) => ToolResult::new(call, text),
                Err(text) => ToolResult::error(call, text),
            });
        }
        let judged = session.judgement().map(|judgement| judgement.success);
        let text = if calls.is_empty() { "Nothing happens: call a tool." } else { "" };
        let valid = !calls.is_empty() && results.iter().all(|result| !result.is_error);
        let session = self.session.as_ref().ok_or(misused("before reset"))?;
        let mut observation = self.observe(session, text.to_owned());
        observation.results = results;
        Ok(Step {
            observation,
            rewards: Vec::new(),
            terminated: judged.is_some(),
            success: judged == Some(true),
            valid,
            wall_time: start.elapsed(),
        })
    }

    async fn verify(&mut self) -> Result<Option<Verdict>, EnvironmentError> {
        let misused = EnvironmentError::Misused { call: "verify", when: "before reset" };
        let session = self.session.as_ref().ok_or(misused)?;
        let Some(judgement) = session.judgement() else {
            let details = "`finish` was not called".to_owned();
            return Ok(Some(Verdict { details, ..Verdict::default() }));
        };
        let all = self.shared.progress;
        let progress = if judgement.success { all } else { all * judgement.progress };
        let success = if judgement.success { 1.0 - all } else { 0.0 };
        let parts = [("progress", progress), ("success", success)];
        let earned = parts.into_iter().filter(|(_, value)| *value > 0.0);
        let parts =
            earned.map(|(name, value)| RewardPart { name: name.to_owned(), value }).collect();
        let mut details = Vec::new();
        if !judgement.is_answered {
            details.push("the answer is not the right one".to_owned());
        }
        if let Some(what) = judgement.minefield {
            details.push(format!("what must not happen: {what}"));
        }
        if !judgement.damage.is_empty() {
            details.push(format!("what nobody demanded: {}", judgement.damage.join("; ")));
        }
        if !judgement.success && details.is_empty() {
            details.push("something that was demanded is missing".to_owned());
        }
        let success = judgement.success;
        Ok(Some(Verdict { parts, success, details: details.join(". "), ..Verdict::default() }))
    }

    async fn fork(&mut self) -> Result<Option<Box<dyn Environment>>, EnvironmentError> {
        Ok(Some(Box::new(self.clone())))
    }

    fn oracle_action(&self) -> Option<Action> {
        let gold = self.session.as_ref()?.next_gold()?;
        Some(Action::calls(vec![ToolCall::new(gold.tool, gold.arguments.clone())]))
    }

    fn expert_action(&mut self) -> Option<Action> {
        // Demonstrations look up what they say.
        self.oracle_action()
    }
}

#[cfg(test)]
mod tests {
    use futures::executor::block_on;
    use serde_json::{Value, json};

    use super::*;

    fn apps(parameters: Value) -> Apps {
        let mut apps = Apps::open(&crate::test_task(NAME, parameters)).unwrap();
        block_on(apps.reset(Seed::from_u64(0))).unwrap();
        apps
    }

    fn step(apps: &mut Apps, calls: Vec<ToolCall>) -> Step {
        block_on(apps.step(&Action::calls(calls))).unwrap()
    }

    fn verdict(apps: &mut Apps) -> Verdict {
        block_on(apps.verify()).unwrap().unwrap()
    }

    fn call(name: &str, arguments: Value) -> ToolCall {
        ToolCall::new(name, arguments.as_object().unwrap().clone())
    }

    #[test]
    fn a_solved_task_gives_one_and_half_of_it_gives_part_of_that() {
        let mut found = 0;
        for seed in 0..40 {
            let mut apps = apps(json!({ "seed": seed, "levels": [2], "progress": 0.4 }));
            let mut partly = apps.clone();
            let mut calls = Vec::new();
            while let Some(action) = apps.oracle_action() {
                calls.push(action.tool_calls()[0].clone());
                step(&mut apps, action.tool_calls().to_vec());
            }
            let solved = verdict(&mut apps);
            assert!(solved.success && (solved.reward() - 1.0).abs() < 1e-12, "{solved:?}");
            if apps.shared.task.family != "decline-requests" {
                continue;
            }
            found += 1;
            // All but the last change, in one answer.
            calls.remove(calls.len() - 2);
            assert!(step(&mut partly, calls).terminated);
            let part = verdict(&mut partly);
            assert!(!part.success && part.parts.len() == 1 && part.parts[0].name == "progress");
            assert!(part.reward() > 0.1 && part.reward() < 0.4, "{part:?}");
            assert_eq!(part.details, "something that was demanded is missing");
        }
        assert!(found > 0);
    }

    #[test]
    fn an_episode_without_an_end_and_one_with_damage_earn_nothing() {
        let mut apps = apps(json!({ "seed": 3, "levels": [1], "tools": "all" }));
        let mut damaged = apps.clone();
        let action = apps.oracle_action().unwrap();
        step(&mut apps, action.tool_calls().to_vec());
        assert_eq!(verdict(&mut apps).reward(), 0.0);
        let note = call("files_make_folder", json!({ "folder": "/more" }));
        step(&mut damaged, vec![action.tool_calls()[0].clone(), note]);
        assert!(damaged.oracle_action().is_none());
        step(&mut damaged, vec![call("finish", json!({}))]);
        let verdict = verdict(&mut damaged);
        assert!(!verdict.success && verdict.parts.is_empty());
        assert_eq!(verdict.details.matches("what nobody demanded: folder /more made").count(), 1);
    }

    #[test]
    fn tools_are_those_of_the_option_and_others_are_errors() {
        for (offer, least, most) in [("needed", 4, 14), ("apps", 10, 45), ("all", 60, 75)] {
            let mut apps = apps(json!({ "seed": 1, "levels": [1], "tools": offer }));
            let tools = apps.tools();
            assert!((least..=most).contains(&tools.len()), "{offer}: {}", tools.len());
            let told = step(&mut apps, vec![call("burn", json!({}))]);
            assert!(!told.valid && told.observation.results[0].is_error);
            assert!(told.observation.results[0].text.starts_with("There is no tool `burn`"));
            let said = block_on(apps.step(&"finish".into())).unwrap();
            assert!(!said.valid && !said.terminated);
            step(&mut apps, vec![call("finish", json!({}))]);
            assert!(apps.tools().is_empty());
            assert!(block_on(apps.step(&"look".into())).is_err());
        }
    }

    #[test]
    fn an_answer_of_very_many_calls_is_cut_off() {
        let mut apps = apps(json!({ "seed": 2, "tools": "all" }));
        let step = step(&mut apps, vec![call("now", json!({})); 1_000]);
        let done = step.observation.results.iter().filter(|result| !result.is_error).count();
        assert_eq!((step.observation.results.len(), done, step.valid), (1_000, MOST_CALLS, false));
    }

    #[test]
    fn parameters_that_would_be_ignored_are_refused() {
        for wrong in [
            json!({ "seed": 1, "levels": [] }),
            json!({ "seed": 1, "levels": [7] }),
            json!({ "seed": 1, "families": "unseen", "levels": [1] }),
            json!({ "seed": 1, "progress": 1.0 }),
            json!({ "seed": 1, "tools": "some" }),
            json!({ "seed": 1, "level": 1 }),
            json!({}),
        ] {
            assert!(Apps::open(&crate::test_task(NAME, wrong.clone())).is_err(), "{wrong}");
        }
    }
}
