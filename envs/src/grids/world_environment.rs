//! An environment over a world that is played in words.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use async_trait::async_trait;
use spar_core::{Action, Observation, RewardPart, Seed, Step};

use crate::{Environment, EnvironmentError};

/// A world that is played in words. A clone goes on by itself.
pub(crate) trait GridWorld: Clone + Send + Sync + 'static {
    /// The registry's name of the environment.
    const NAME: &'static str;
    /// Whether all that matters is shown, so that knowing all is no advantage.
    const IS_OPEN: bool;
    /// Whether what is to be done differs from task to task, so that the first thing shown says it.
    const TELLS_GOAL: bool;

    /// Labels of the task.
    fn tags(&self) -> Vec<String>;

    /// What is to be done.
    fn instruction(&self) -> Arc<str>;

    /// What can be seen now.
    fn text(&self) -> String;

    /// The actions that can be carried out now, sorted.
    fn actions(&self) -> Arc<[Arc<str>]>;

    /// Carries out an action; `None` where that is none.
    fn act(&mut self, words: &str) -> Option<Acted>;

    /// Actions that solve it from here, or the first of them, where some were found.
    fn plan(&self) -> Option<Vec<Arc<str>>>;
}

/// What came of an action.
#[derive(Debug, Default)]
pub(crate) struct Acted {
    pub(crate) rewards: Vec<RewardPart>,
    pub(crate) is_over: bool,
    pub(crate) success: bool,
}

impl Acted {
    /// That something was earned, where it is not nothing.
    pub(crate) fn earn(&mut self, name: &str, value: f64) {
        if value != 0.0 {
            self.rewards.push(RewardPart { name: name.to_owned(), value });
        }
    }
}

/// An environment over a [`GridWorld`].
pub(crate) struct WorldEnvironment<W> {
    start: Arc<W>,
    now: Option<W>,
    is_over: bool,
    /// What was planned and is not done yet, last first.
    plan: Mutex<Option<Vec<Arc<str>>>>,
}

impl<W: GridWorld> WorldEnvironment<W> {
    /// Plays a world from how it is.
    pub(crate) fn new(start: W) -> Self {
        Self { start: Arc::new(start), now: None, is_over: false, plan: Mutex::new(None) }
    }

    /// The world as an episode begins.
    #[cfg(test)]
    pub(crate) fn start_of_test(&self) -> &W {
        &self.start
    }

    fn observe(&self, world: &W) -> Observation {
        let text = world.text();
        let state_key = format!("{}\n{text}", world.instruction());
        let admissible = if self.is_over { Arc::default() } else { world.actions() };
        Observation { text, state_key, admissible: Some(admissible), ..Observation::default() }
    }

    /// What is planned from here on, which is planned once; again where a plan did not lead to the end.
    fn next(&self) -> Option<Arc<str>> {
        let world = self.now.as_ref().filter(|_| !self.is_over)?;
        let mut plan = self.plan.lock().unwrap_or_else(PoisonError::into_inner);
        if plan.as_ref().is_none_or(Vec::is_empty) {
            *plan = world.plan().map(|mut actions| {
                actions.reverse();
                actions
            });
        }
        plan.as_ref()?.last().cloned()
    }

    /// Takes in what was done.
    fn go_on_with_plan(&mut self, done: &str) {
        let plan = self.plan.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(actions) = plan
            && actions.pop().is_none_or(|planned| *planned != *done)
        {
            *plan = None;
        }
    }
}

impl<W: Clone> Clone for WorldEnvironment<W> {
    fn clone(&self) -> Self {
        let plan = self.plan.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Self {
            start: Arc::clone(&self.start),
            now: self.now.clone(),
            is_over: self.is_over,
            plan: Mutex::new(plan),
        }
    }
}

#[async_trait]
impl<W: GridWorld> Environment for WorldEnvironment<W> {
    fn name(&self) -> &'static str {
        W::NAME
    }

    fn tags(&self) -> Vec<String> {
        self.start.tags()
    }

    /// Worlds draw from the seed of their task alone, so that all episodes of it begin and go alike.
    async fn reset(&mut self, _seed: Seed) -> Result<Observation, EnvironmentError> {
        let world = W::clone(&self.start);
        self.is_over = false;
        self.plan = Mutex::new(None);
        let goal = world.instruction();
        let mut first = self.observe(&world);
        if W::TELLS_GOAL && !goal.is_empty() {
            first.text.insert_str(0, &format!("Your goal is to {goal}.\n"));
        }
        first.instruction = Some(goal);
        self.now = Some(world);
        Ok(first)
    }

    async fn step(&mut self, action: &Action) -> Result<Step, EnvironmentError> {
        let start = Instant::now();
        let misused = |when| EnvironmentError::Misused { call: "step", when };
        if self.is_over {
            return Err(misused("after the end"));
        }
        let Some(mut world) = self.now.take() else { return Err(misused("before reset")) };
        let words = action.said().trim();
        let acted = world.act(words);
        let valid = acted.is_some();
        let Acted { rewards, is_over, success } = acted.unwrap_or_default();
        if valid {
            self.go_on_with_plan(words);
        }
        self.is_over = is_over;
        let mut observation = self.observe(&world);
        if !valid {
            observation.text = "Nothing happens.".to_owned();
        }
        self.now = Some(world);
        Ok(Step {
            observation,
            rewards,
            terminated: is_over,
            success,
            valid,
            wall_time: start.elapsed(),
        })
    }

    async fn fork(&mut self) -> Result<Option<Box<dyn Environment>>, EnvironmentError> {
        Ok(Some(Box::new(self.clone())))
    }

    fn oracle_action(&self) -> Option<Action> {
        Some(Action::text(&*self.next()?))
    }

    fn expert_action(&mut self) -> Option<Action> {
        self.oracle_action().filter(|_| W::IS_OPEN)
    }
}
