//! Recorded episodes, replayed step by step while a policy acts.

use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use rand::RngExt;
use rand::seq::{IndexedRandom, SliceRandom};
use serde::Deserialize;
use spar_core::{Action, Observation, RewardPart, Seed, Step, Verdict};
use spar_tasks::Task;

use crate::wrappers::{Matcher, matches, measured};
use crate::{Environment, EnvironmentError};

const NAME: &str = "replay";

/// Steps of a recording.
const MOST_STEPS: usize = 256;
/// Characters of an action that are compared.
const MOST_CHARS: usize = 4_096;

/// A recorded episode that is replayed while a policy acts: semi-online, as in UI-S1.
///
/// Parameters: `steps`, a list of what was `shown`, the `action` that was taken there, and what else it `accepts`; with `instruction`; or `seed`, of a generated recording of screens. Of both:
/// `patches`, how many steps may differ from the recording before the episode ends (default 1; `"unlimited"`); `matcher`, when a step does
/// not ([`Matcher`], default `action`); `history`, whether the policy's history has its own answers `replaced` by the recorded action where they differ (the default), or keeps them
/// with that `told` behind them.
///
/// A step matches where its action is the recorded one or one that the step accepts. It gives the reward part `match`, its share of the steps. Behind a step that does not match the history goes on as
/// recorded, by the action and nothing of why it was taken (UI-S1's thought-free patch), and the next recorded screen is shown; such a step counts as one that could not be carried out,
/// which is what the credit `ui_s1` goes by. Where no patch is left, or at the last screen, the episode ends. It is solved where all steps match without one.
///
/// The verdict's artifact `semi_online` has `progress`, the share of steps before the first that does not match, `success`, 1 or 0, and `sop`, their mean: UI-S1's metric, with `patches = 0`.
///
/// Source: UI-S1 (arXiv 2509.11543), sections 3.2 and 3.4.
#[derive(Debug, Clone)]
pub struct Replay {
    recording: Arc<Recording>,
    course: Option<Course>,
}

#[derive(Debug)]
struct Recording {
    instruction: Arc<str>,
    steps: Vec<RecordedStep>,
    patches: Option<u32>,
    matcher: Matcher,
    history: History,
}

/// What becomes of an answer that differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum History {
    /// The recorded action stands in its place.
    #[default]
    Replaced,
    /// It stays, and the recorded action is told behind it.
    Told,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct RecordedStep {
    shown: String,
    action: String,
    #[serde(default)]
    accepts: Vec<String>,
}

#[derive(Debug, Clone, Default)]
struct Course {
    place: usize,
    /// Which steps did not match.
    missed: Vec<usize>,
    is_over: bool,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Patches {
    Count(u32),
    Word(String),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Parameters {
    seed: Option<u64>,
    steps: Option<Vec<RecordedStep>>,
    instruction: Option<String>,
    patches: Option<Patches>,
    #[serde(default)]
    matcher: Matcher,
    #[serde(default)]
    history: History,
}

impl Replay {
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
        let given =
            Parameters::deserialize(&task.parameters).map_err(|error| refuse(error.to_string()))?;
        let patches = match given.patches {
            None => Some(1),
            Some(Patches::Count(count)) => Some(count),
            Some(Patches::Word(word)) if word == "unlimited" => None,
            Some(Patches::Word(word)) => {
                let detail = format!("`patches` is `{word}`, allowed are a number and `unlimited`");
                return Err(refuse(detail));
            }
        };
        let (instruction, steps) = match (given.steps, given.instruction, given.seed) {
            (Some(steps), Some(instruction), _) => (instruction, steps),
            (None, None, Some(seed)) => screens(Seed::from_u64(seed).derive(NAME, "screens")),
            _ => {
                let detail = "either `steps` and `instruction`, or `seed` alone, are needed";
                return Err(refuse(detail.to_owned()));
            }
        };
        if !(1..=MOST_STEPS).contains(&steps.len()) {
            let found = steps.len();
            return Err(refuse(format!("`steps` has {found}, allowed are 1 to {MOST_STEPS}")));
        }
        if let Some(place) = steps.iter().position(|step| plain(&step.action).is_empty()) {
            return Err(refuse(format!("the action of step {place} is empty")));
        }
        if let Some(problem) = given.matcher.problem() {
            return Err(refuse(problem));
        }
        let recording = Recording {
            instruction: instruction.into(),
            steps,
            patches,
            matcher: given.matcher,
            history: given.history,
        };
        Ok(Self { recording: Arc::new(recording), course: None })
    }

    fn state_key(&self, course: &Course) -> String {
        let over = if course.is_over { " over" } else { "" };
        format!("{} missed {:?}{over}", course.place, course.missed)
    }
}

/// An action with single blanks.
fn plain(action: &str) -> String {
    let end = action.char_indices().nth(MOST_CHARS).map_or(action.len(), |(place, _)| place);
    action[..end].split_whitespace().collect::<Vec<_>>().join(" ")
}

#[async_trait]
impl Environment for Replay {
    fn name(&self) -> &'static str {
        NAME
    }

    fn version(&self) -> u32 {
        2
    }

    fn tags(&self) -> Vec<String> {
        vec![format!("steps-{}", self.recording.steps.len())]
    }

    async fn reset(&mut self, _seed: Seed) -> Result<Observation, EnvironmentError> {
        let course = Course::default();
        let first = Observation {
            text: format!("{}\n\n{}", self.recording.instruction, self.recording.steps[0].shown),
            instruction: Some(Arc::clone(&self.recording.instruction)),
            state_key: self.state_key(&course),
            ..Observation::default()
        };
        self.course = Some(course);
        Ok(first)
    }

    async fn step(&mut self, action: &Action) -> Result<Step, EnvironmentError> {
        let start = Instant::now();
        let misused = |when| EnvironmentError::Misused { call: "step", when };
        let course = self.course.as_mut().ok_or(misused("before reset"))?;
        if course.is_over {
            return Err(misused("after the end"));
        }
        let Recording { steps, patches, matcher, history, .. } = &*self.recording;
        let recorded = &steps[course.place];
        let mut right = std::iter::once(&recorded.action).chain(&recorded.accepts);
        let is_match = right.any(|right| matches(matcher, action, &right.as_str().into()));
        let mut told = String::new();
        if !is_match {
            course.missed.push(course.place);
            if *history == History::Told {
                told = format!("Another action was carried out: {}\n\n", recorded.action);
            }
        }
        course.place += 1;
        let is_patched = patches.is_none_or(|most| course.missed.len() <= most as usize);
        course.is_over = !is_patched || course.place == steps.len();
        match steps.get(course.place).filter(|_| !course.is_over) {
            Some(next) => told.push_str(&next.shown),
            None => told = "The episode is over.".to_owned(),
        }
        let is_replaced = !is_match && !course.is_over && *history == History::Replaced;
        let carried_out = is_replaced.then(|| recorded.action.as_str().into());
        let (is_over, success) = (course.is_over, course.is_over && course.missed.is_empty());
        let value = 1.0 / steps.len() as f64;
        let rewards = match is_match {
            true => vec![RewardPart { name: "match".to_owned(), value }],
            false => Vec::new(),
        };
        let course = self.course.as_ref().ok_or(misused("before reset"))?;
        Ok(Step {
            observation: Observation {
                text: told,
                carried_out,
                state_key: self.state_key(course),
                ..Observation::default()
            },
            rewards,
            terminated: is_over,
            success,
            valid: is_match,
            wall_time: start.elapsed(),
        })
    }

    async fn verify(&mut self) -> Result<Option<Verdict>, EnvironmentError> {
        let misused = EnvironmentError::Misused { call: "verify", when: "before reset" };
        let course = self.course.as_ref().ok_or(misused)?;
        let all = self.recording.steps.len();
        let before = course.missed.first().copied().unwrap_or(course.place);
        let success = course.is_over && course.missed.is_empty();
        let mut verdict = Verdict {
            success,
            details: format!("{before} of {all} steps matched before the first that did not"),
            ..Verdict::default()
        };
        verdict.artifacts.insert("semi_online".to_owned(), measured(before, all, success));
        Ok(Some(verdict))
    }

    async fn fork(&mut self) -> Result<Option<Box<dyn Environment>>, EnvironmentError> {
        Ok(Some(Box::new(self.clone())))
    }

    fn oracle_action(&self) -> Option<Action> {
        let course = self.course.as_ref().filter(|course| !course.is_over)?;
        Some(self.recording.steps[course.place].action.as_str().into())
    }
}

/// Pages of a made-up telephone, and what stands on them.
const PAGES: &[&str] = &[
    "Display", "Sound", "Network", "Privacy", "Battery", "Storage", "Clock", "Keyboard", "Camera",
    "Contacts", "Language", "Accounts", "Updates", "Printing", "Location",
];
const SWITCHES: &[&str] = &[
    "Night light",
    "Silent hours",
    "Large text",
    "Data saver",
    "Auto lock",
    "Key clicks",
    "Grid lines",
    "Backup",
    "Vibration",
    "Flight mode",
    "Captions",
    "Guest access",
];

/// A recording of somebody who turns a switch on, some pages deep.
fn screens(seed: Seed) -> (String, Vec<RecordedStep>) {
    let mut rng = seed.rng();
    let mut pages = PAGES.to_vec();
    pages.shuffle(&mut rng);
    let way: Vec<&str> = pages.split_off(pages.len() - rng.random_range(1..=4));
    let switch = SWITCHES.choose(&mut rng).expect("there are switches");
    let mut steps = Vec::new();
    let mut title = "Settings".to_owned();
    for page in &way {
        let mut listed: Vec<&str> = pages.sample(&mut rng, 3).copied().collect();
        listed.push(page);
        listed.shuffle(&mut rng);
        let shown = format!("{title}\nButtons: {}", listed.join(", "));
        steps.push(RecordedStep { shown, action: format!("click {page}"), accepts: Vec::new() });
        title = format!("{title} > {page}");
    }
    let shown = format!("{title}\nSwitches: {switch} (off)\nButtons: Back, Save");
    let turn = RecordedStep {
        shown,
        action: format!("click {switch}"),
        accepts: vec![format!("turn on {switch}")],
    };
    steps.push(turn);
    let shown = format!("{title}\nSwitches: {switch} (on)\nButtons: Back, Save");
    steps.push(RecordedStep { shown, action: "click Save".to_owned(), accepts: Vec::new() });
    (format!("Turn on {switch} under {} and save it.", way.join(" > ")), steps)
}

#[cfg(test)]
mod tests {
    use futures::executor::block_on;
    use serde_json::{Value, json};

    use super::*;

    fn replay(patches: Value) -> Replay {
        let steps = json!([
            { "shown": "one", "action": "click A", "accepts": ["press A"] },
            { "shown": "two", "action": "type  hello" },
            { "shown": "three", "action": "click C" },
            { "shown": "four", "action": "done" },
        ]);
        let parameters = json!({ "steps": steps, "instruction": "do it", "patches": patches });
        let mut replay = Replay::open(&crate::test_task(NAME, parameters)).unwrap();
        block_on(replay.reset(Seed::from_u64(0))).unwrap();
        replay
    }

    fn say(replay: &mut Replay, text: &str) -> Step {
        block_on(replay.step(&text.into())).unwrap()
    }

    fn sop(replay: &mut Replay) -> Value {
        block_on(replay.verify()).unwrap().unwrap().artifacts["semi_online"].clone()
    }

    #[test]
    fn what_differs_is_patched_as_often_as_is_allowed() {
        for (patches, ends_at) in
            [(json!(0), 2), (json!(1), 3), (json!(2), 4), (json!("unlimited"), 4)]
        {
            let mut replay = replay(patches);
            let mut steps = Vec::new();
            for said in ["press A", "wrong", "wrong", "wrong"] {
                steps.push(say(&mut replay, said));
                if steps.last().unwrap().terminated {
                    break;
                }
            }
            assert_eq!(steps.len(), ends_at);
            assert!(
                steps[0].valid && steps[0].reward() == 0.25 && steps[0].observation.text == "two"
            );
            assert!(!steps[1].valid && steps[1].reward() == 0.0);
            if ends_at > 2 {
                let shown = &steps[1].observation;
                assert_eq!(shown.text, "three");
                assert_eq!(shown.carried_out, Some("type  hello".into()));
            }
            assert_eq!(
                sop(&mut replay),
                json!({ "progress": 0.25, "success": false, "sop": 0.125 })
            );
            assert!(block_on(replay.step(&"done".into())).is_err());
        }
    }

    #[test]
    fn an_episode_that_matches_all_the_way_is_solved() {
        let mut replay = replay(json!(1));
        let mut reward = 0.0;
        for said in ["click A", " type hello\n", "click C", "done"] {
            let step = say(&mut replay, said);
            reward += step.reward();
            assert_eq!(step.success, said == "done");
        }
        assert_eq!((reward, sop(&mut replay)["sop"].clone()), (1.0, json!(1.0)));
        let mut late = self::replay(json!(1));
        say(&mut late, "wrong");
        for said in ["type hello", "click C", "done"] {
            say(&mut late, said);
        }
        assert_eq!(sop(&mut late), json!({ "progress": 0.0, "success": false, "sop": 0.0 }));
        let giant = "click A ".repeat(2_000_000);
        assert!(!say(&mut self::replay(json!(0)), &giant).valid);
    }

    #[test]
    fn an_answer_stays_where_that_is_asked_for_and_clicks_match_in_boxes() {
        let steps = json!([
            { "shown": "one", "action": "click [10, 10, 20, 20]" },
            { "shown": "two", "action": "done" },
        ]);
        let matcher = json!({ "click": { "within": 3.0 } });
        let parameters =
            json!({ "steps": steps, "instruction": "i", "history": "told", "matcher": matcher });
        let mut replay = Replay::open(&crate::test_task(NAME, parameters)).unwrap();
        block_on(replay.reset(Seed::from_u64(0))).unwrap();
        let mut fork = replay.clone();
        assert!(say(&mut fork, "click(12, 19)").valid);
        let missed = say(&mut replay, "click(12, 21)").observation;
        let told = "Another action was carried out: click [10, 10, 20, 20]\n\ntwo";
        assert_eq!((missed.text.as_str(), missed.carried_out), (told, None));
    }

    #[test]
    fn parameters_are_strict() {
        let step = json!({ "shown": "a", "action": "b" });
        for wrong in [
            json!({}),
            json!({ "steps": [], "instruction": "i" }),
            json!({ "steps": [step] }),
            json!({ "seed": 1, "instruction": "i" }),
            json!({ "seed": 1, "patches": "some" }),
            json!({ "seed": 1, "patches": -1 }),
            json!({ "seed": 1, "history": "kept" }),
            json!({ "seed": 1, "matcher": { "click": { "within": -1 } } }),
            json!({ "steps": [{ "shown": "a", "action": " " }], "instruction": "i" }),
            json!({ "steps": [{ "shown": "a", "action": "b", "other": 1 }], "instruction": "i" }),
        ] {
            assert!(Replay::open(&crate::test_task(NAME, wrong.clone())).is_err(), "{wrong}");
        }
    }

    /// The episode that docs/replay.md shows.
    #[test]
    fn the_documented_episode_is_played_so() {
        let mut replay =
            Replay::open(&crate::test_task(NAME, json!({ "seed": 2_000_001 }))).unwrap();
        let first = block_on(replay.reset(Seed::from_u64(0))).unwrap();
        let mut told = format!("{}\n", first.text);
        let mut actions: Vec<Action> = vec!["click Back".into()];
        while let Some(action) = actions.pop().or_else(|| replay.oracle_action()) {
            let step = block_on(replay.step(&action)).unwrap();
            let done =
                step.observation.carried_out.as_ref().map(|it| format!(" (in its place: {it})"));
            let done = done.unwrap_or_default();
            told.push_str(&format!("\n> {action}{done}\n{}\n", step.observation.text));
        }
        told.push_str(&format!("\n{}\n", sop(&mut replay)));
        let page = include_str!("../../docs/replay.md");
        assert!(page.contains(&told), "docs/replay.md is to show:\n{told}");
    }
}
