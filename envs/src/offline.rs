//! Episodes that others played, done again.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::Deserialize;
use spar_core::{Action, Observation, Seed, Step, ToolSpec, Verdict};
use spar_tasks::{Recording, Task};

use crate::environment::{NO_ORACLE_TAG, SCORED_TAG};
use crate::{Environment, EnvironmentError};

const NAME: &str = "offline";

/// What is shown where something else is done than was recorded.
const ELSEWHERE: &str = "The recording goes another way: it ends here.";

/// An episode that others played, done again: it shows and pays what it showed and paid then, and knows nothing else.
///
/// Parameters: `recording`, a [`Recording`]. Its oracle does what was done. An action that differs, blanks aside, ends the episode
/// without a reward, since nobody knows what would have come of it; the wrapper `semi_online` has it go on as recorded.
#[derive(Debug, Clone)]
pub struct Offline {
    recording: Arc<Recording>,
    place: Option<usize>,
    /// Whether something else was done than was recorded.
    has_left: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Parameters {
    recording: Recording,
}

impl Offline {
    /// The name in the registry.
    pub const NAME: &'static str = NAME;

    /// Opens the recording of a task.
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
        let Parameters { recording } =
            Parameters::deserialize(&task.parameters).map_err(|error| refuse(error.to_string()))?;
        if let Some(problem) = recording.problem() {
            return Err(refuse(problem));
        }
        Ok(Self { recording: Arc::new(recording), place: None, has_left: false })
    }

    /// Whether an action was listed as one that could be carried out in a turn.
    fn was_listed(&self, turn: usize, action: &Action) -> bool {
        let shown = match turn.checked_sub(1) {
            None => &self.recording.first,
            Some(before) => &self.recording.turns[before].step.observation,
        };
        let said = action.said().trim();
        let listed = shown.admissible.as_ref().filter(|_| action.tool_calls().is_empty());
        listed.is_some_and(|listed| listed.iter().any(|it| **it == *said))
    }

    fn is_over(&self) -> bool {
        self.has_left || self.place == Some(self.recording.turns.len())
    }
}

/// Whether an action is the recorded one, blanks aside.
fn is_same(done: &Action, recorded: &Action) -> bool {
    let (done, recorded) = (done.key(), recorded.key());
    done == recorded || done.split_whitespace().eq(recorded.split_whitespace())
}

#[async_trait]
impl Environment for Offline {
    fn name(&self) -> &'static str {
        NAME
    }

    fn tags(&self) -> Vec<String> {
        let mut tags = Vec::new();
        let was_valid = self.recording.turns.iter().all(|turn| turn.step.valid);
        if !(self.recording.success && was_valid) {
            tags.push(NO_ORACLE_TAG.to_owned());
        }
        if (self.recording.total_reward() - 1.0).abs() > 1e-9 {
            tags.push(SCORED_TAG.to_owned());
        }
        tags
    }

    fn takes_any_words(&self) -> bool {
        true
    }

    fn tools(&self) -> Arc<[ToolSpec]> {
        let place = self.place.unwrap_or(0);
        let last = self.recording.tools.iter().rfind(|offered| offered.turn <= place);
        last.map(|offered| Arc::clone(&offered.tools)).unwrap_or_default()
    }

    async fn reset(&mut self, _seed: Seed) -> Result<Observation, EnvironmentError> {
        (self.place, self.has_left) = (Some(0), false);
        Ok(self.recording.first.clone())
    }

    async fn step(&mut self, action: &Action) -> Result<Step, EnvironmentError> {
        let misused = |when| EnvironmentError::Misused { call: "step", when };
        let place = self.place.ok_or(misused("before reset"))?;
        if self.is_over() {
            return Err(misused("after the end"));
        }
        let recorded = &self.recording.turns[place];
        if !is_same(action, &recorded.action) {
            self.has_left = true;
            let results = action.tool_calls().iter();
            let results = results.map(|call| spar_core::ToolResult::error(call, ELSEWHERE));
            return Ok(Step {
                observation: Observation {
                    results: results.collect(),
                    ..Observation::new(ELSEWHERE)
                },
                rewards: Vec::new(),
                terminated: true,
                success: false,
                // It could have been carried out where it was listed, and nobody knows what would have come of it.
                valid: self.was_listed(place, action),
                wall_time: Duration::ZERO,
            });
        }
        self.place = Some(place + 1);
        let mut step = recorded.step.clone();
        // Results name the calls that they answer.
        for (result, call) in step.observation.results.iter_mut().zip(action.tool_calls()) {
            result.call.clone_from(&call.id);
        }
        // Nothing is known of what would come behind it.
        step.terminated = self.is_over();
        Ok(step)
    }

    async fn verify(&mut self) -> Result<Option<Verdict>, EnvironmentError> {
        let place = self.place;
        place.ok_or(EnvironmentError::Misused { call: "verify", when: "before reset" })?;
        let is_whole = !self.has_left && self.is_over();
        // The last step has what it was paid.
        let success = is_whole && self.recording.success;
        let verdict = self.recording.verdict.clone().filter(|_| is_whole).unwrap_or_default();
        Ok(Some(Verdict { parts: Vec::new(), success, duration: Duration::ZERO, ..verdict }))
    }

    async fn fork(&mut self) -> Result<Option<Box<dyn Environment>>, EnvironmentError> {
        Ok(Some(Box::new(self.clone())))
    }

    fn oracle_action(&self) -> Option<Action> {
        let place = self.place.filter(|_| !self.is_over())?;
        Some(self.recording.turns[place].action.clone())
    }
}

#[cfg(test)]
mod tests {
    use futures::executor::block_on;
    use serde_json::{Value, json};

    use super::*;

    fn observation(text: &str) -> Value {
        json!({ "text": text, "state_key": text })
    }

    fn step(text: &str, reward: f64, terminated: bool) -> Value {
        json!({
            "observation": observation(text), "rewards": [{ "name": "success", "value": reward }],
            "terminated": terminated, "success": terminated, "valid": true,
            "wall_time": { "secs": 0, "nanos": 0 },
        })
    }

    fn parameters() -> Value {
        json!({ "recording": {
            "task": "s/train/1", "environment": "e", "player": "p", "first": observation("one"), "success": true,
            "tools": [{ "turn": 1, "tools": [{ "name": "look", "parameters": { "type": "object" } }] }],
            "turns": [
                { "action": { "kind": "text", "text": "go  on" }, "step": step("two", 0.25, false) },
                {
                    "action": { "kind": "calls", "calls": [{ "id": "a", "name": "look", "arguments": { "at": 1 } }] },
                    "step": step("three", 0.5, true),
                },
            ],
        } })
    }

    fn opened() -> Offline {
        let mut env = Offline::open(&crate::test_task(NAME, parameters())).unwrap();
        assert_eq!(block_on(env.reset(Seed::from_u64(0))).unwrap().text, "one");
        env
    }

    #[test]
    fn what_was_done_is_shown_and_paid_again() {
        let mut env = opened();
        assert!(env.tools().is_empty());
        assert_eq!(env.tags(), [SCORED_TAG]);
        let first = block_on(env.step(&" go on\n".into())).unwrap();
        assert_eq!((first.observation.text.as_str(), first.reward()), ("two", 0.25));
        assert!(!first.terminated && first.valid);
        assert_eq!(env.tools()[0].name, "look");
        let mut fork = block_on(env.fork()).unwrap().unwrap();
        let action = env.oracle_action().unwrap();
        let last = block_on(env.step(&action)).unwrap();
        assert_eq!(block_on(fork.step(&action)).unwrap(), last);
        assert!(last.terminated && last.reward() == 0.5 && env.oracle_action().is_none());
        let verdict = block_on(env.verify()).unwrap().unwrap();
        assert!(verdict.success && verdict.parts.is_empty(), "rewards are paid once");
        assert!(block_on(env.step(&action)).is_err());
    }

    #[test]
    fn what_was_not_recorded_ends_it_without_a_reward() {
        let mut listed = parameters();
        listed["recording"]["first"]["admissible"] = json!(["go back", "go on"]);
        let mut open = Offline::open(&crate::test_task(NAME, listed)).unwrap();
        block_on(open.reset(Seed::from_u64(0))).unwrap();
        assert!(block_on(open.step(&"go back".into())).unwrap().valid, "it was listed");
        let mut env = opened();
        let step = block_on(env.step(&"go back".into())).unwrap();
        assert!(step.terminated && !step.valid && step.reward() == 0.0);
        assert_eq!(step.observation.text, ELSEWHERE);
        assert!(!block_on(env.verify()).unwrap().unwrap().success);
        assert!(env.oracle_action().is_none() && block_on(env.step(&"go on".into())).is_err());
    }

    #[test]
    fn parameters_are_strict() {
        let told = |change: fn(&mut Value)| {
            let mut parameters = parameters();
            change(&mut parameters);
            let task = crate::test_task(NAME, parameters);
            Offline::open(&task).err().map(|error| error.to_string()).unwrap_or_default()
        };
        assert_eq!(told(|_| {}), "");
        assert!(told(|it| it["other"] = json!(1)).contains("other"));
        assert!(told(|it| it["recording"]["turns"] = json!([])).contains("no turns"));
        let media = told(|it| {
            let media = json!([{ "type": "image/png", "hash": "0".repeat(64) }]);
            it["recording"]["first"]["media"] = media;
        });
        assert!(!media.is_empty());
    }
}
