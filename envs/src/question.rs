//! Questions that are answered in one turn.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use rand::RngExt;
use serde::Deserialize;
use spar_core::{Action, Observation, Seed, Step, Verdict};
use spar_tasks::graders::Exact;
use spar_tasks::{QuestionTask, ReferenceAnswer, Task};

use crate::{Environment, EnvironmentError, maths};

const NAME: &str = "question";
/// The largest sum of generated questions, and their largest summand.
const LARGEST: u32 = 18;

/// A question that is answered in one turn.
///
/// Parameters: those of a [`QuestionTask`], or the `seed` of one that is generated, with its `topic`: `sums` (the default) or `maths`. The answer ends the task, and is judged
/// behind it: one that says what the task calls right ([`Exact`]) gives the reward part `success`, 1. Where the right answer is a
/// number, an answer that is none is invalid. Questions without a right answer are for graders to judge; by themselves
/// they are never solved.
#[derive(Debug, Clone)]
pub struct Question {
    task: Arc<QuestionTask>,
    admissible: Option<Arc<[Arc<str>]>>,
    is_asked: bool,
    answer: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Generated {
    seed: u64,
    #[serde(default)]
    topic: Topic,
}

/// What generated questions are about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Topic {
    /// Sums of two numbers from 0 to 9.
    #[default]
    Sums,
    /// School mathematics, whose answers are formulas.
    Maths,
}

impl Question {
    /// Makes a task interactive.
    ///
    /// # Errors
    ///
    /// [`EnvironmentError::Parameters`] when the task's parameters are not understood.
    pub fn open(task: &Task) -> Result<Self, EnvironmentError> {
        let refuse = |error: serde_json::Error| EnvironmentError::Parameters {
            task: task.id.clone(),
            environment: NAME,
            detail: error.to_string(),
        };
        let (found, admissible) = if task.parameters.get("seed").is_some() {
            let Generated { seed, topic } =
                Generated::deserialize(&task.parameters).map_err(refuse)?;
            let mut numbers: Vec<Arc<str>> = (0..=LARGEST).map(|n| n.to_string().into()).collect();
            numbers.sort();
            match topic {
                Topic::Sums => (sum(seed), Some(numbers.into())),
                Topic::Maths => (maths::problem(seed), None),
            }
        } else {
            (QuestionTask::deserialize(&task.parameters).map_err(refuse)?, None)
        };
        Ok(Self { task: Arc::new(found), admissible, is_asked: false, answer: None })
    }

    /// Whether an answer has the form of the right one.
    fn is_valid(&self, answer: &str) -> bool {
        match &self.task.answer {
            Some(ReferenceAnswer::Number(_)) => answer.trim().parse::<f64>().is_ok(),
            _ => !answer.trim().is_empty(),
        }
    }
}

fn sum(seed: u64) -> QuestionTask {
    let mut rng = Seed::from_u64(seed).derive("sum", 0).rng();
    let (a, b): (u32, u32) = (rng.random_range(0..=LARGEST / 2), rng.random_range(0..=LARGEST / 2));
    QuestionTask {
        prompt: format!("What is {a} + {b}?"),
        answer: Some(ReferenceAnswer::Number((a + b).into())),
        metadata: serde_json::Map::new(),
    }
}

#[async_trait]
impl Environment for Question {
    fn name(&self) -> &'static str {
        NAME
    }

    /// Graders and what is compared find the answer behind what leads to it; one that is chosen from a list is all there is.
    fn reads_whole_answers(&self) -> bool {
        self.admissible.is_none()
    }

    async fn reset(&mut self, _seed: Seed) -> Result<Observation, EnvironmentError> {
        (self.is_asked, self.answer) = (true, None);
        Ok(Observation {
            admissible: self.admissible.clone(),
            ..Observation::new(self.task.prompt.as_str())
        })
    }

    async fn step(&mut self, action: &Action) -> Result<Step, EnvironmentError> {
        let misused = |when| EnvironmentError::Misused { call: "step", when };
        if !self.is_asked {
            return Err(misused("before reset"));
        }
        if self.answer.is_some() {
            return Err(misused("after the end"));
        }
        let action = action.said();
        self.answer = Some(action.to_owned());
        Ok(Step {
            observation: Observation {
                text: "The question was answered.".to_owned(),
                state_key: format!("{}\n{action}", self.task.prompt),
                ..Observation::default()
            },
            rewards: Vec::new(),
            terminated: true,
            success: false,
            valid: self.is_valid(action),
            wall_time: Duration::ZERO,
        })
    }

    async fn verify(&mut self) -> Result<Option<Verdict>, EnvironmentError> {
        let (Some(answer), Some(right)) = (&self.answer, &self.task.answer) else {
            return Ok(None);
        };
        Ok(Some(Exact::default().verdict(answer, right)))
    }

    fn reference_answer(&self) -> Option<ReferenceAnswer> {
        self.task.answer.clone()
    }

    async fn fork(&mut self) -> Result<Option<Box<dyn Environment>>, EnvironmentError> {
        Ok(Some(Box::new(self.clone())))
    }

    fn oracle_action(&self) -> Option<Action> {
        let is_open = self.is_asked && self.answer.is_none();
        let right = self.task.answer.as_ref().filter(|_| is_open)?;
        right.texts().into_iter().next().map(Action::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(parameters: serde_json::Value) -> Question {
        Question::open(&Task {
            id: "quiz/test/0".to_owned(),
            environment: NAME.to_owned(),
            parameters,
            instruction: String::new(),
            max_turns: 1,
            tags: Vec::new(),
            graders: Vec::new(),
        })
        .unwrap()
    }

    #[tokio::test]
    async fn the_right_answer_is_told_by_the_verdict_alone() {
        let parameters = serde_json::json!({ "prompt": "Tea?", "answer": ["yes", "please"] });
        for (answer, success) in [("please", true), (" yes\n", true), ("no", false), ("", false)] {
            let mut env = question(parameters.clone());
            assert!(env.step(&"yes".into()).await.is_err(), "it was not asked");
            assert_eq!(env.reset(Seed::from_u64(0)).await.unwrap().text, "Tea?");
            let step = env.step(&answer.into()).await.unwrap();
            assert!(step.terminated && !step.success && step.rewards.is_empty());
            assert_eq!(step.valid, !answer.is_empty());
            let verdict = env.verify().await.unwrap().unwrap();
            assert_eq!((verdict.success, verdict.reward()), (success, f64::from(success)));
            assert!(env.step(&"yes".into()).await.is_err(), "it is over");
        }
    }

    #[tokio::test]
    async fn without_a_right_answer_there_is_no_verdict() {
        let mut env = question(serde_json::json!({ "prompt": "Write a poem." }));
        env.reset(Seed::from_u64(0)).await.unwrap();
        assert_eq!(env.oracle_action(), None);
        env.step(&"Roses are red".into()).await.unwrap();
        assert_eq!(env.verify().await.unwrap(), None);
    }
}
