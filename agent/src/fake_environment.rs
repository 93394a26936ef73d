//! A small environment for the tests of this crate.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use spar_core::{Action, Observation, RewardPart, Seed, Step, Verdict};
use spar_envs::{Environment, EnvironmentError, TimeRules};
use spar_tasks::Task;

use crate::OpenEnvironment;

/// A corridor of four places; the task is to get from its left to its right end.
#[derive(Clone)]
pub(crate) struct FakeEnvironment {
    pub(crate) place: usize,
    pub(crate) steps: usize,
    pub(crate) detour: usize,
    /// Whether it can be forked.
    pub(crate) can_fork: bool,
    /// How long a step takes.
    pub(crate) step_time: Duration,
    /// How much of it is the environment's own, and given back to the task's time.
    pub(crate) own_time: Duration,
    /// Whether every step takes a time of its own, up to `step_time`, that no seed settles.
    pub(crate) is_erratic: bool,
    /// After how many steps it panics.
    pub(crate) panics_after: Option<usize>,
    /// Whether every step panics, shared by forks.
    pub(crate) panics: Arc<AtomicBool>,
    /// What it judges an episode to be.
    pub(crate) verdict: Option<Verdict>,
    /// Of those that were opened or forked, the ones that were not closed.
    pub(crate) open: Arc<AtomicUsize>,
    /// What it offers, as often as anybody holds it.
    pub(crate) right: Arc<str>,
    /// What it says about time.
    pub(crate) time_rules: TimeRules,
    /// After how many steps it breaks.
    pub(crate) breaks_after: Option<usize>,
    /// How many more resets or steps break, shared by forks.
    pub(crate) mishaps: Arc<AtomicUsize>,
    /// How many more resets and steps there are before one breaks, plus one; 0 for never. Shared by forks.
    pub(crate) countdown: Arc<AtomicUsize>,
}

const LAST: usize = 3;

pub(crate) fn fake_task(index: usize) -> Task {
    Task {
        id: format!("corridor/train/{index}"),
        environment: "corridor".to_owned(),
        parameters: serde_json::Value::Null,
        instruction: "Answer left or right.".to_owned(),
        max_turns: 10,
        tags: vec!["fake".to_owned()],
        graders: Vec::new(),
    }
}

impl FakeEnvironment {
    pub(crate) fn new() -> Self {
        Self {
            place: 0,
            steps: 0,
            detour: 1,
            can_fork: true,
            step_time: Duration::ZERO,
            own_time: Duration::ZERO,
            is_erratic: false,
            panics_after: None,
            panics: Arc::default(),
            verdict: None,
            open: Arc::default(),
            right: "right".into(),
            time_rules: TimeRules::default(),
            breaks_after: None,
            mishaps: Arc::default(),
            countdown: Arc::default(),
        }
    }

    /// A clone that counts as open.
    fn opened(&self) -> Self {
        self.open.fetch_add(1, Ordering::SeqCst);
        self.clone()
    }

    /// One reset or step breaks, behind so many.
    pub(crate) fn breaks_once_after(&self, calls: usize) {
        self.countdown.store(calls + 1, Ordering::SeqCst);
    }

    /// Opens clones of it.
    pub(crate) fn opener(&self) -> OpenEnvironment {
        let origin = self.clone();
        Arc::new(move |_| Ok(Box::new(origin.opened())))
    }

    fn observation(&self) -> Observation {
        let mut admissible: Vec<Arc<str>> = vec![Arc::clone(&self.right)];
        if self.place > 0 {
            admissible.insert(0, "left".into());
        }
        Observation {
            text: format!("You are at {}.", self.place),
            instruction: Some("go right".into()),
            admissible: Some(admissible.into()),
            state_key: format!("at {}", self.place),
            ..Observation::default()
        }
    }

    fn mishap(&self) -> Result<(), EnvironmentError> {
        let less = |count: usize| count.checked_sub(1);
        if self.countdown.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less) == Ok(1) {
            return Err(EnvironmentError::Misused { call: "fake", when: "on its bad day" });
        }
        match self.mishaps.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less) {
            Ok(_) => Err(EnvironmentError::Misused { call: "fake", when: "on a bad day" }),
            Err(_) => Ok(()),
        }
    }
}

#[async_trait]
impl Environment for FakeEnvironment {
    fn name(&self) -> &'static str {
        "corridor"
    }

    fn tags(&self) -> Vec<String> {
        vec!["short".to_owned()]
    }

    fn time_rules(&self) -> TimeRules {
        self.time_rules
    }

    async fn reset(&mut self, _seed: Seed) -> Result<Observation, EnvironmentError> {
        self.mishap()?;
        (self.place, self.steps, self.detour) = (0, 0, 1);
        Ok(self.observation())
    }

    async fn step(&mut self, action: &Action) -> Result<Step, EnvironmentError> {
        self.mishap()?;
        if self.breaks_after == Some(self.steps) {
            return Err(EnvironmentError::Misused { call: "step", when: "too often" });
        }
        let panics = self.panics_after == Some(self.steps) || self.panics.load(Ordering::SeqCst);
        assert!(!panics, "the floor of the corridor gave way");
        if self.step_time > Duration::ZERO {
            let share = if self.is_erratic { rand::random_range(0.0..1.0) } else { 1.0 };
            tokio::time::sleep(self.step_time.mul_f64(share)).await;
        }
        if let Some(given) = &mut self.time_rules.task {
            *given += self.own_time;
        }
        self.steps += 1;
        let valid = match action.said() {
            "right" => {
                self.place += 1;
                true
            }
            "left" if self.place > 0 => {
                self.place -= 1;
                true
            }
            _ => false,
        };
        let success = self.place == LAST;
        let reward = RewardPart { name: "success".to_owned(), value: 1.0 };
        Ok(Step {
            observation: self.observation(),
            rewards: if success { vec![reward] } else { Vec::new() },
            terminated: success,
            success,
            valid,
            wall_time: Duration::ZERO,
        })
    }

    async fn verify(&mut self) -> Result<Option<Verdict>, EnvironmentError> {
        Ok(self.verdict.clone())
    }

    async fn fork(&mut self) -> Result<Option<Box<dyn Environment>>, EnvironmentError> {
        Ok(self.can_fork.then(|| Box::new(self.opened()) as Box<dyn Environment>))
    }

    fn oracle_action(&self) -> Option<Action> {
        Some("right".into())
    }

    async fn close(&mut self) -> Result<(), EnvironmentError> {
        self.open.fetch_sub(1, Ordering::SeqCst);
        Ok(())
    }

    /// Goes back once before it goes on.
    fn expert_action(&mut self) -> Option<Action> {
        if self.place == 1 && self.detour > 0 {
            self.detour -= 1;
            return Some("left".into());
        }
        Some("right".into())
    }
}
