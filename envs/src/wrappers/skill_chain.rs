//! Similar tasks one after the other, with skills that are kept between them.

use std::fmt::Write as _;
use std::sync::Arc;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use spar_core::registry::NamedOptions;
use spar_core::{Action, Choices, Observation, RewardPart, Seed, Step};
use spar_tasks::{SAVE_SKILL, SKILL_PART, Task, USE_SKILL};

use crate::{Environment, EnvironmentError, Resources, TimeRules, open_environment};

const NAME: &str = "skill_chain";
/// The most tasks of a chain.
const MAX_TASKS: usize = 16;
/// The most skills that are kept, actions of one, and characters of its name.
const MAX_SKILLS: usize = 16;
const MAX_ACTIONS: usize = 64;
const MAX_NAME: usize = 40;

/// Options of the wrapper `skill_chain`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SkillChainOptions {
    /// Tasks of a chain, 2 to 16. Default 2.
    pub tasks: usize,
    /// What skills of earlier tasks earn together in every later one that is solved with them, at least 0. Default 1.
    pub bonus: f64,
    /// Turns of the first task, at least 1; the others have their own `max_turns`. Default: the `max_turns` of the task that is wrapped. A suite puts those there that the task had before it became the first of a chain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turns: Option<u32>,
    /// The tasks behind the first one, one fewer than `tasks`. Default empty: a suite puts the next ones of its split there that have the same stratum.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<serde_json::Map<String, Value>>")]
    pub following: Vec<Value>,
}

impl Default for SkillChainOptions {
    fn default() -> Self {
        Self { tasks: 2, bonus: 1.0, turns: None, following: Vec::new() }
    }
}

impl NamedOptions for SkillChainOptions {
    fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        let Self { tasks, bonus, turns, following } = self;
        if !(2..=MAX_TASKS).contains(tasks) {
            problems.push(format!("`tasks` is {tasks}, must be from 2 to {MAX_TASKS}"));
        }
        if !(bonus.is_finite() && *bonus >= 0.0) {
            problems.push(format!("`bonus` is {bonus}, must be at least 0"));
        }
        if *turns == Some(0) {
            problems.push("`turns` is 0, must be at least 1".to_owned());
        }
        if !following.is_empty() && following.len() + 1 != *tasks {
            let found = following.len();
            problems.push(format!("`following` has {found} tasks, and `tasks` is {tasks}"));
        }
        problems
    }
}

/// A chain of similar tasks in one episode, with a library of skills that goes along (SAGE, arXiv 2512.17102: sequential rollout).
///
/// `save skill NAME` keeps the actions that were carried out since the task began, or since the skill before was saved; right behind a task it keeps that one's.
/// `use skill NAME` carries them out again, one after the other, until one cannot be carried out or the task is over. Both are turns of their own and no
/// actions of the task. A task is over when its environment says so, or behind its own turns; the chain is solved where all of its tasks are.
///
/// `R = sum over tasks of R_k + bonus 1[k solved and a skill saved in a task before k was used in k]`, which the skills used in `k` share evenly, each in the part `skill NAME` of the step that
/// solved the task; the reward shaper `skill_credit` tells it to the step that saved the skill. A skill is used where at least one of its actions could be carried out.
///
/// Reconstructed from the abstract. Assumed: a skill is a row of actions with a name (there it is a function that the agent writes); the tasks of a chain are one
/// conversation; the bonus is a number for each task that skills were of use in, so that more skills earn no more.
pub(super) struct SkillChain {
    options: SkillChainOptions,
    tasks: Arc<[Task]>,
    resources: Resources,
    /// The environment of the present task.
    inner: Box<dyn Environment>,
    /// That of the first one, where the chain is behind it.
    start: Option<Box<dyn Environment>>,
    seed: Option<Seed>,
    chain: Chain,
}

/// How far a chain is.
#[derive(Debug, Clone, Default)]
struct Chain {
    /// The number of the present task, and the steps that were taken in it.
    at: usize,
    taken: u32,
    solved: usize,
    is_over: bool,
    /// What was carried out and is in no skill; `is_behind` where that was in the task before.
    recent: Vec<Action>,
    is_behind: bool,
    skills: Vec<Skill>,
    /// The skills of earlier tasks of which something was carried out in this one, by number.
    used: Vec<usize>,
    /// What the environment listed and called its state last.
    admissible: Option<Choices>,
    state_key: String,
}

#[derive(Debug, Clone)]
struct Skill {
    name: String,
    actions: Vec<Action>,
    /// The task in which it was saved.
    task: usize,
}

impl Chain {
    /// What can be done now, where actions are listed.
    fn listed(&self) -> Option<Choices> {
        let listed = self.admissible.as_ref().filter(|_| !self.is_over)?;
        let mut all: Vec<Arc<str>> = listed.to_vec();
        if !self.recent.is_empty() && self.skills.len() < MAX_SKILLS {
            all.push(format!("{SAVE_SKILL}{}", self.skills.len() + 1).into());
        }
        all.extend(self.skills.iter().map(|skill| format!("{USE_SKILL}{}", skill.name).into()));
        Some(all.into())
    }

    /// Its state, which is the environment's, the task's number, and all skills.
    fn key(&self) -> String {
        let mut key = format!("task {}", self.at + 1);
        for Skill { name, actions, .. } in &self.skills {
            let actions: Vec<_> = actions.iter().map(Action::key).collect();
            // Writing into a string cannot fail.
            let _ = write!(key, "; skill {name}: {}", actions.join(", "));
        }
        if !self.recent.is_empty() {
            let _ = write!(key, "; {} to save", self.recent.len());
        }
        format!("{key}\n{}", self.state_key)
    }

    /// Keeps an action that was carried out in the present task.
    fn note(&mut self, action: &Action) {
        if std::mem::take(&mut self.is_behind) {
            self.recent.clear();
        }
        if self.recent.len() == MAX_ACTIONS {
            self.recent.remove(0);
        }
        self.recent.push(action.clone());
    }

    /// Saves a skill; an error is why not.
    fn save(&mut self, name: &str) -> Result<String, String> {
        if name.is_empty() || name.chars().count() > MAX_NAME {
            return Err(format!("A skill has a name of 1 to {MAX_NAME} characters."));
        }
        if self.skills.iter().any(|skill| skill.name == name) {
            return Err(format!("There is a skill {name} already."));
        }
        if self.skills.len() == MAX_SKILLS {
            return Err(format!("No more than {MAX_SKILLS} skills are kept."));
        }
        if self.recent.is_empty() {
            return Err("Nothing was done that could be saved.".to_owned());
        }
        let task = if self.is_behind { self.at - 1 } else { self.at };
        let actions = std::mem::take(&mut self.recent);
        let told: Vec<_> = actions.iter().map(|action| action.key().into_owned()).collect();
        self.skills.push(Skill { name: name.to_owned(), actions, task });
        Ok(format!("Saved as skill {name}: {}.", told.join(", ")))
    }
}

impl SkillChain {
    /// A chain that begins with a task, in this environment.
    ///
    /// # Errors
    ///
    /// [`EnvironmentError`] where there are several seats, graders judge the tasks, or those that follow are missing or in other environments.
    pub(super) fn new(
        options: SkillChainOptions,
        inner: Box<dyn Environment>,
        task: &Task,
        resources: &Resources,
    ) -> Result<Self, EnvironmentError> {
        let refuse = |detail: String| EnvironmentError::Wrapper {
            wrapper: NAME,
            environment: inner.name(),
            detail,
        };
        if inner.seats().len() != 1 {
            return Err(refuse("it has several seats".to_owned()));
        }
        let following = options.following.iter().cloned().map(serde_json::from_value::<Task>);
        let following = following.collect::<Result<Vec<Task>, _>>();
        let following = following.map_err(|error| refuse(format!("`following`: {error}")))?;
        if following.len() + 1 != options.tasks {
            let problem = "no tasks follow it: `following` names some, and so does a suite";
            return Err(refuse(problem.to_owned()));
        }
        let max_turns = options.turns.unwrap_or(task.max_turns);
        let first = Task { max_turns, ..task.clone() };
        let tasks: Arc<[Task]> = std::iter::once(first).chain(following).collect();
        if tasks.iter().any(|task| !task.graders.is_empty()) {
            let problem = "graders judge whole episodes, and a chain has several tasks in one";
            return Err(refuse(problem.to_owned()));
        }
        if let Some(other) = tasks.iter().find(|it| it.environment != task.environment) {
            let problem = format!("`{}` is none, and follows in the chain", other.id);
            return Err(refuse(problem));
        }
        let resources = resources.clone().without_graders();
        let (start, seed, chain) = (None, None, Chain::default());
        Ok(Self { options, tasks, resources, inner, start, seed, chain })
    }

    /// What is said at the beginning of a task.
    fn heading(&self) -> String {
        format!("Task {} of {}", self.chain.at + 1, self.tasks.len())
    }

    /// Carries out an action in the present task, which may be of a skill of an earlier one, and goes on to the next one where that is over.
    async fn carry_out(
        &mut self,
        action: &Action,
        of: Option<usize>,
    ) -> Result<Step, EnvironmentError> {
        let mut step = self.inner.step(action).await?;
        self.chain.taken += 1;
        if step.valid {
            self.chain.note(action);
            let is_new = |number: &usize| !self.chain.used.contains(number);
            if let Some(number) = of.filter(is_new) {
                self.chain.used.push(number);
            }
        }
        self.see(&step.observation);
        if !step.terminated && self.chain.taken < self.tasks[self.chain.at].max_turns.max(1) {
            step.success = false;
            return Ok(step);
        }
        if let Some(verdict) = self.inner.verify().await? {
            verdict.apply(&mut step);
        }
        if step.success {
            self.chain.solved += 1;
            let value = self.options.bonus / self.chain.used.len().max(1) as f64;
            for used in &self.chain.used {
                let name = format!("{SKILL_PART}{}", self.chain.skills[*used].name);
                step.rewards.push(RewardPart { name, value });
            }
        }
        self.chain.used.clear();
        self.chain.is_over = self.chain.at + 1 == self.tasks.len();
        step.terminated = self.chain.is_over;
        step.success = self.chain.is_over && self.chain.solved == self.tasks.len();
        if !self.chain.is_over {
            let next = self.begin_next().await?;
            let text = &mut step.observation.text;
            text.push_str("\n\n");
            text.push_str(&next.text);
            step.observation.media.extend(next.media);
        }
        Ok(step)
    }

    /// Brings up the next task.
    async fn begin_next(&mut self) -> Result<Observation, EnvironmentError> {
        let misused = EnvironmentError::Misused { call: "step", when: "before reset" };
        let seed = self.seed.ok_or(misused)?;
        self.chain.at += 1;
        (self.chain.taken, self.chain.is_behind) = (0, true);
        let task = &self.tasks[self.chain.at];
        let next = open_environment(task, &self.resources)?;
        let mut before = std::mem::replace(&mut self.inner, next);
        before.close().await?;
        if self.chain.at == 1 {
            self.start = Some(before);
        }
        let mut first = self.inner.reset(seed.derive("chain", self.chain.at)).await?;
        self.inner.prepare().await?;
        self.see(&first);
        let heading = self.heading();
        first.text = match &first.instruction {
            Some(instruction) => format!("{heading}: {instruction}\n{}", first.text),
            None => format!("{heading}.\n{}", first.text),
        };
        Ok(first)
    }

    fn see(&mut self, shown: &Observation) {
        self.chain.admissible.clone_from(&shown.admissible);
        self.chain.state_key.clone_from(&shown.state_key);
    }

    /// A step that was none of the task's.
    fn aside(text: String, valid: bool) -> Step {
        Step {
            observation: Observation { text, ..Observation::default() },
            rewards: Vec::new(),
            terminated: false,
            success: false,
            valid,
            wall_time: std::time::Duration::ZERO,
        }
    }

    /// Carries out the actions of a skill.
    async fn use_skill(&mut self, name: &str) -> Result<Step, EnvironmentError> {
        let Some(number) = self.chain.skills.iter().position(|skill| skill.name == name) else {
            return Ok(Self::aside(format!("There is no skill {name}."), false));
        };
        let Skill { actions, task, .. } = self.chain.skills[number].clone();
        let at = self.chain.at;
        let of = (task < at).then_some(number);
        let mut whole: Option<Step> = None;
        for action in &actions {
            let mut step = self.carry_out(action, of).await?;
            let is_last = !step.valid || step.terminated || self.chain.at != at;
            if let Some(before) = whole {
                step.rewards.splice(0..0, before.rewards);
                step.wall_time += before.wall_time;
                // That some of it could be done is enough.
                step.valid |= before.valid;
            }
            whole = Some(step);
            if is_last {
                break;
            }
        }
        Ok(whole.expect("no skill is empty"))
    }
}

#[async_trait]
impl Environment for SkillChain {
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

    fn takes_any_words(&self) -> bool {
        self.inner.takes_any_words()
    }

    fn reads_whole_answers(&self) -> bool {
        self.inner.reads_whole_answers()
    }

    async fn reset(&mut self, seed: Seed) -> Result<Observation, EnvironmentError> {
        if self.chain.at > 0 {
            let Some(start) = self.start.take() else {
                let when = "in a fork that is behind its first task";
                return Err(EnvironmentError::Misused { call: "reset", when });
            };
            self.inner.close().await?;
            self.inner = start;
        }
        let mut first = self.inner.reset(seed).await?;
        if !self.inner.tools().is_empty() {
            let detail = "its tools are called, and skills are rows of actions in words".to_owned();
            let environment = self.inner.name();
            return Err(EnvironmentError::Wrapper { wrapper: NAME, environment, detail });
        }
        (self.chain, self.seed) = (Chain::default(), Some(seed));
        self.see(&first);
        let told = format!(
            "{}; `{SAVE_SKILL}NAME` keeps what was done in a task, and `{USE_SKILL}NAME` does it again in another one",
            self.heading()
        );
        first.instruction = Some(match &first.instruction {
            Some(instruction) => format!("{instruction}. {told}").into(),
            None => told.into(),
        });
        (first.admissible, first.state_key) = (self.chain.listed(), self.chain.key());
        Ok(first)
    }

    async fn prepare(&mut self) -> Result<(), EnvironmentError> {
        self.inner.prepare().await
    }

    async fn step(&mut self, action: &Action) -> Result<Step, EnvironmentError> {
        let misused = |when| EnvironmentError::Misused { call: "step", when };
        if self.seed.is_none() {
            return Err(misused("before reset"));
        }
        if self.chain.is_over {
            return Err(misused("after the end"));
        }
        let said = action.said().trim();
        let (saved, used) = (said.strip_prefix(SAVE_SKILL), said.strip_prefix(USE_SKILL));
        let mut step = match (saved, used) {
            (Some(name), _) => match self.chain.save(name.trim()) {
                Ok(told) => Self::aside(told, true),
                Err(told) => Self::aside(told, false),
            },
            (None, Some(name)) => self.use_skill(name.trim()).await?,
            (None, None) => self.carry_out(action, None).await?,
        };
        step.observation.admissible = self.chain.listed();
        if self.chain.is_over && self.chain.admissible.is_some() {
            step.observation.admissible = Some(Arc::default());
        }
        step.observation.state_key = self.chain.key();
        Ok(step)
    }

    async fn fork(&mut self) -> Result<Option<Box<dyn Environment>>, EnvironmentError> {
        let Some(inner) = self.inner.fork().await? else { return Ok(None) };
        Ok(Some(Box::new(Self {
            options: self.options.clone(),
            tasks: Arc::clone(&self.tasks),
            resources: self.resources.clone(),
            inner,
            start: None,
            seed: self.seed,
            chain: self.chain.clone(),
        })))
    }

    fn oracle_action(&self) -> Option<Action> {
        self.inner.oracle_action()
    }

    fn expert_action(&mut self) -> Option<Action> {
        self.inner.expert_action()
    }

    async fn close(&mut self) -> Result<(), EnvironmentError> {
        self.inner.close().await
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use spar_tasks::{SuiteOptions, WrapperConfig, open_suite};

    use super::*;
    use crate::test_task;
    use crate::wrappers::WrappedSuite;

    fn lake(seed: u64) -> Task {
        test_task("frozen-lake", json!({ "seed": seed }))
    }

    /// A chain over the same lake again and again, so that what solved it once does so again.
    fn chain(tasks: usize) -> Box<dyn Environment> {
        let following = vec![lake(3); tasks - 1];
        let mut task = lake(3);
        task.parameters["wrappers"] =
            json!([{ "kind": NAME, "tasks": tasks, "bonus": 0.5, "following": following }]);
        open_environment(&task, &Resources::default()).unwrap()
    }

    async fn act(env: &mut dyn Environment, said: &str) -> Step {
        env.step(&said.into()).await.unwrap()
    }

    /// Has the oracle solve the present task, and gives the last step.
    async fn solve(env: &mut dyn Environment) -> Step {
        loop {
            let action = env.oracle_action().unwrap();
            let step = env.step(&action).await.unwrap();
            if !step.rewards.is_empty() {
                return step;
            }
        }
    }

    fn listed(step: &Step) -> Vec<String> {
        let listed = step.observation.admissible.as_ref().unwrap();
        listed.iter().filter(|it| it.contains("skill")).map(|it| it.to_string()).collect()
    }

    #[tokio::test]
    async fn a_skill_saved_in_a_task_can_be_used_in_the_next_and_pays_where_that_is_solved() {
        let mut env = chain(3);
        let first = env.reset(Seed::from_u64(0)).await.unwrap();
        assert!(first.instruction.unwrap().contains("Task 1 of 3; `save skill NAME`"));
        assert!(!act(&mut *env, "use skill way").await.valid);
        assert!(!act(&mut *env, "save skill way").await.valid, "nothing was done yet");
        let solved = solve(&mut *env).await;
        assert!(!solved.terminated && !solved.success);
        assert!(solved.observation.text.contains("\n\nTask 2 of 3: cross the lake"));
        assert_eq!(listed(&solved), ["save skill 1"]);

        let saved = act(&mut *env, "save skill way").await;
        assert!(saved.valid && saved.observation.text.starts_with("Saved as skill way: "));
        assert_eq!(listed(&saved), ["use skill way"]);
        assert!(!act(&mut *env, "save skill way").await.valid, "there is one of that name");

        let mut fork = env.fork().await.unwrap().unwrap();
        let used = act(&mut *env, "use skill way").await;
        assert_eq!(
            used,
            Step { wall_time: used.wall_time, ..act(&mut *fork, "use skill way").await }
        );
        let parts: Vec<_> = used.rewards.iter().map(|it| (it.name.as_str(), it.value)).collect();
        assert_eq!(parts, [("goal", 1.0), ("skill way", 0.5)]);
        assert!(used.valid && !used.terminated);

        // Of use again, and all are solved.
        let last = act(&mut *env, "use skill way").await;
        assert!(last.terminated && last.success && last.reward() == 1.5);
        assert_eq!(last.observation.admissible.unwrap().len(), 0);
        assert!(env.step(&"up".into()).await.is_err());
        env.reset(Seed::from_u64(0)).await.unwrap();
        assert!(!act(&mut *env, "use skill way").await.valid, "a chain begins without skills");
    }

    #[tokio::test]
    async fn a_skill_of_the_same_task_or_of_no_use_pays_nothing() {
        let mut env = chain(2);
        env.reset(Seed::from_u64(0)).await.unwrap();
        // Nobody leaves the lake upwards.
        assert!(act(&mut *env, "up").await.valid);
        assert!(act(&mut *env, "save skill a").await.valid);
        assert!(act(&mut *env, "use skill a").await.valid);
        let solved = solve(&mut *env).await;
        assert_eq!(solved.reward(), 1.0, "it was saved in this very task");
        // In the second task it is used, and the task is not solved.
        act(&mut *env, "use skill a").await;
        let mut last = act(&mut *env, "up").await;
        for _ in 0..100 {
            if last.terminated {
                break;
            }
            last = act(&mut *env, "up").await;
        }
        assert!(last.terminated && !last.success && last.rewards.is_empty(), "{last:?}");
    }

    #[tokio::test]
    async fn a_skill_that_cannot_be_carried_out_pays_nothing_and_several_share_the_bonus() {
        let resources = Resources::default();
        for (action, is_valid, reward) in [("dance", false, 1.0), ("up", true, 1.5)] {
            let following = vec![serde_json::to_value(lake(3)).unwrap()];
            let options = SkillChainOptions { bonus: 0.5, following, ..Default::default() };
            let inner = open_environment(&lake(3), &resources).unwrap();
            let mut env = SkillChain::new(options, inner, &lake(3), &resources).unwrap();
            env.reset(Seed::from_u64(0)).await.unwrap();
            solve(&mut env).await;
            for name in ["a", "b"] {
                let (name, actions) = (name.to_owned(), vec![action.into()]);
                env.chain.skills.push(Skill { name, actions, task: 0 });
            }
            for said in ["use skill a", "use skill b", "use skill a"] {
                assert_eq!(act(&mut env, said).await.valid, is_valid, "{said}");
            }
            let solved = solve(&mut env).await;
            assert!(solved.success && solved.reward() == reward, "{solved:?}");
            let shared = solved.rewards.iter().filter(|it| it.name.starts_with(SKILL_PART));
            let shared: Vec<f64> = shared.map(|it| it.value).collect();
            assert_eq!(shared, vec![0.25; if is_valid { 2 } else { 0 }]);
        }
    }

    #[tokio::test]
    async fn every_task_of_a_chain_has_its_own_turns() {
        let plain = || open_suite("frozen-lake", &SuiteOptions::default()).unwrap();
        let own = plain().task("train", 5).unwrap().max_turns;
        for (typed, first) in [("skill_chain,tasks=3", own), ("skill_chain,tasks=3,turns=4", 4)] {
            let suite = WrappedSuite::wrap(plain(), vec![typed.parse().unwrap()]).unwrap();
            let task = suite.task("train", 5).unwrap();
            assert_eq!(suite.task_by_id(&task.id).unwrap(), task);
            assert_eq!(task.max_turns, first + 2 * own);
            let mut env = open_environment(&task, &Resources::default()).unwrap();
            env.reset(Seed::from_u64(0)).await.unwrap();
            let mut begun = Vec::new();
            for turn in 1..=task.max_turns {
                // Nobody comes anywhere by a word that is none.
                let step = act(&mut *env, "wait").await;
                if step.observation.text.contains("\n\nTask ") {
                    begun.push(turn);
                }
                assert_eq!(step.terminated, turn == task.max_turns, "{turn}");
            }
            assert_eq!(begun, [first, first + own]);
        }
    }

    #[test]
    fn what_stands_within_a_chain_is_around_its_following_tasks_too() {
        let plain = open_suite("household", &SuiteOptions::default()).unwrap();
        let wrappers = ["noisy_observations", "skill_chain,tasks=3", "random_actions"];
        let wrappers = wrappers.map(|it| it.parse::<WrapperConfig>().unwrap()).to_vec();
        let suite = WrappedSuite::wrap(plain, wrappers).unwrap();
        let task = suite.task("train", 5).unwrap();
        assert_eq!(suite.task_by_id(&task.id).unwrap(), task);
        let following = task.parameters["wrappers"][1]["following"].as_array().unwrap();
        assert_eq!(following.len(), 2);
        for it in following {
            let wrappers = &it["parameters"]["wrappers"];
            assert_eq!(*wrappers, json!([{ "kind": "noisy_observations" }]));
        }
        open_environment(&task, &Resources::default()).unwrap();
    }

    #[tokio::test]
    async fn a_suite_chains_tasks_of_the_same_stratum_and_finds_them_by_their_ids() {
        let wrapper: WrapperConfig = "skill_chain,tasks=3".parse().unwrap();
        let plain = || open_suite("household", &SuiteOptions::default()).unwrap();
        let suite = WrappedSuite::wrap(plain(), vec![wrapper.clone()]).unwrap();
        let task = suite.task("train", 5).unwrap();
        assert_eq!(suite.task_by_id(&task.id).unwrap(), task);
        let following = task.parameters["wrappers"][0]["following"].as_array().unwrap();
        let ids: Vec<&str> = following.iter().map(|it| it["id"].as_str().unwrap()).collect();
        assert_eq!(ids.len(), 2);
        let stratum = |id: &str| {
            let index = id.rsplit_once('/').unwrap().1.parse().unwrap();
            crate::registry::stratum_of(&plain().task("train", index).unwrap()).unwrap()
        };
        assert!(ids.iter().all(|id| *id != task.id && stratum(id) == stratum(&task.id)), "{ids:?}");
        let one = plain().task("train", 5).unwrap().max_turns;
        assert!(task.max_turns > 2 * one, "{}", task.max_turns);
        open_environment(&task, &Resources::default()).unwrap();
    }

    #[test]
    fn what_is_no_chain_is_refused() {
        let told = |task: &Task, options: Value| {
            let mut task = task.clone();
            task.parameters["wrappers"] = json!([options]);
            match open_environment(&task, &Resources::default()) {
                Ok(_) => String::new(),
                Err(error) => error.to_string(),
            }
        };
        let kind = json!({ "kind": NAME });
        assert!(told(&lake(1), kind.clone()).contains("no tasks follow it"));
        let one = json!({ "kind": NAME, "tasks": 1 });
        assert!(told(&lake(1), one).contains("from 2 to 16"));
        let two =
            json!({ "kind": NAME, "tasks": 2, "bonus": -1.0, "turns": 0, "following": [1, 2] });
        let two = told(&lake(1), two);
        for part in ["`bonus` is -1", "`turns` is 0", "has 2 tasks"] {
            assert!(two.contains(part), "{two}");
        }
        let other = test_task("errand", json!({ "seed": 1 }));
        let mixed = json!({ "kind": NAME, "following": [other] });
        assert!(told(&lake(1), mixed).contains("follows in the chain"));
        assert!(told(&other, json!({ "kind": NAME, "following": [other] })).contains("seats"));
    }
}
