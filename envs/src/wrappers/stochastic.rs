//! Environments made stochastic.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use rand::{Rng, RngExt};
use spar_core::{Action, Observation, Seed, Step, ToolSpec, Trajectory, Verdict};
use spar_tasks::graders::{FreshSandbox, ScriptFinding};
use spar_tasks::{CodeInterpreter, ReferenceAnswer, TerminalVerifier};

use super::stochastic_options::{
    Concept, ConceptDriftOptions, Drift, MissingObservationsOptions, NoisyObservationsOptions,
    RandomActionsOptions, RandomEventsOptions, Replacement, Unit,
};
use crate::environment::CHANCE_TAG;
use crate::{Environment, EnvironmentError, TimeRules, ToolsetChoice};

/// An environment made stochastic, in one of the five ways of STORI.
///
/// STORI (arXiv 2509.01793) tells apart stochasticity that depends on actions (its type 1), that does not (2.1), drift of the concept
/// (2.2), other representations of the state (3.1) and missing parts of it (3.2). Its code does this to Atari games, by their memory and
/// pixels; for text it is reconstructed: an event (2.1) is a listed action that happens by itself before the policy's, another
/// representation (3.1) has wrong letters and digits, and what is missing (3.2) are lines or sentences. As there, an action is replaced by
/// one of the action space with a probability, and a concept is sudden (once, behind `threshold` steps) or cyclic (every `threshold` steps). Added:
/// sticky actions (Machado et al., arXiv 1709.06009), and the concept of renamed actions.
///
/// Every draw derives from the episode's seed and the number of the step, so that forks go on alike; with a probability of 0 all is as without.
/// The oracle is that of the environment, who knows which names are exchanged and does not foresee what else is drawn here.
pub(crate) struct Stochastic {
    name: &'static str,
    inner: Box<dyn Environment>,
    noise: Noise,
    /// From when on, and whether by turns.
    schedule: Option<(Drift, u32)>,
    episode: Option<Episode>,
}

/// What is stochastic.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Noise {
    Actions(f64, Replacement),
    Events(f64),
    Renamed(f64),
    Missing(f64, Unit),
    Wrong(f64),
}

#[derive(Clone)]
struct Episode {
    seed: Seed,
    num_steps: u32,
    last: Option<Action>,
    admissible: Option<Arc<[Arc<str>]>>,
    is_over: bool,
}

impl Stochastic {
    /// Actions are replaced.
    pub(super) fn random_actions(
        options: &RandomActionsOptions,
        inner: Box<dyn Environment>,
    ) -> Result<Self, EnvironmentError> {
        let noise = Noise::Actions(options.probability, options.replacement);
        Self::new("random_actions", inner, noise, None)
    }

    /// Actions happen by themselves.
    pub(super) fn random_events(
        options: &RandomEventsOptions,
        inner: Box<dyn Environment>,
    ) -> Result<Self, EnvironmentError> {
        Self::new("random_events", inner, Noise::Events(options.probability), None)
    }

    /// From some step on, another noise.
    pub(super) fn concept_drift(
        options: &ConceptDriftOptions,
        inner: Box<dyn Environment>,
    ) -> Result<Self, EnvironmentError> {
        let probability = options.probability;
        let noise = match options.concept {
            Concept::RenamedActions => Noise::Renamed(probability),
            Concept::RandomActions => Noise::Actions(probability, Replacement::Random),
            Concept::RandomEvents => Noise::Events(probability),
            Concept::MissingObservations => Noise::Missing(probability, Unit::Sentence),
            Concept::NoisyObservations => Noise::Wrong(probability),
        };
        Self::new("concept_drift", inner, noise, Some((options.drift, options.threshold)))
    }

    /// Parts of what is shown are missing.
    pub(super) fn missing_observations(
        options: &MissingObservationsOptions,
        inner: Box<dyn Environment>,
    ) -> Result<Self, EnvironmentError> {
        let noise = Noise::Missing(options.probability, options.unit);
        Self::new("missing_observations", inner, noise, None)
    }

    /// Letters and digits of what is shown are wrong.
    pub(super) fn noisy_observations(
        options: &NoisyObservationsOptions,
        inner: Box<dyn Environment>,
    ) -> Result<Self, EnvironmentError> {
        Self::new("noisy_observations", inner, Noise::Wrong(options.probability), None)
    }

    fn new(
        name: &'static str,
        inner: Box<dyn Environment>,
        noise: Noise,
        schedule: Option<(Drift, u32)>,
    ) -> Result<Self, EnvironmentError> {
        if inner.seats().len() != 1 {
            let detail = "it has several seats".to_owned();
            return Err(EnvironmentError::Wrapper {
                wrapper: name,
                environment: inner.name(),
                detail,
            });
        }
        Ok(Self { name, inner, noise, schedule, episode: None })
    }

    /// Whether the noise is there at a step, counted from 0.
    fn is_on(&self, step: u32) -> bool {
        match self.schedule {
            None => true,
            Some((Drift::Sudden, threshold)) => step >= threshold,
            Some((Drift::Cyclic, threshold)) => step / threshold % 2 == 1,
        }
    }

    /// A listed action, where there are some.
    fn draw(
        &self,
        rng: &mut impl Rng,
        admissible: Option<&Arc<[Arc<str>]>>,
    ) -> Result<Action, EnvironmentError> {
        match admissible.filter(|listed| !listed.is_empty()) {
            Some(listed) => Ok(Action::text(&*listed[rng.random_range(0..listed.len())])),
            None => Err(EnvironmentError::Wrapper {
                wrapper: self.name,
                environment: self.inner.name(),
                detail: "it lists no actions, of which one could be drawn".to_owned(),
            }),
        }
    }

    /// What is carried out in the place of an action that can be.
    fn replaced(&self, action: &Action, episode: &Episode) -> Result<Action, EnvironmentError> {
        let mut rng = episode.seed.derive("action", episode.num_steps).rng();
        let listed = episode.admissible.as_ref();
        let is_listed = listed.is_none_or(|listed| {
            listed.iter().any(|it| **it == *action.said().trim()) && action.tool_calls().is_empty()
        });
        match self.noise {
            Noise::Actions(probability, replacement)
                if is_listed && rng.random_bool(probability) =>
            {
                match (replacement, &episode.last) {
                    (Replacement::Sticky, Some(last)) => Ok(last.clone()),
                    (Replacement::Sticky, None) => Ok(action.clone()),
                    (Replacement::Random, _) => self.draw(&mut rng, listed),
                }
            }
            Noise::Renamed(probability) if is_listed => {
                // The same names are exchanged all through the episode.
                let mut rng = episode.seed.derive("names", 0).rng();
                let Some(listed) = listed.filter(|_| rng.random_bool(probability)) else {
                    return Ok(action.clone());
                };
                let at = listed.iter().position(|it| **it == *action.said().trim());
                let shift = 1
                    + (rng.random_range(0..u32::MAX) as usize)
                        % listed.len().max(2).saturating_sub(1);
                Ok(match at {
                    Some(at) => Action::text(&*listed[(at + shift) % listed.len()]),
                    None => action.clone(),
                })
            }
            _ => Ok(action.clone()),
        }
    }

    /// The listed action that is carried out as this one, where names are exchanged now.
    fn renamed(&self, wanted: &Action) -> Option<Action> {
        let episode = self.episode.as_ref().filter(|episode| self.is_on(episode.num_steps))?;
        let listed =
            episode.admissible.as_ref().filter(|_| matches!(self.noise, Noise::Renamed(_)))?;
        let said = |done: &Action| done.said().trim() == wanted.said().trim();
        let mut actions = listed.iter().map(|name| Action::text(&**name));
        actions.find(|action| self.replaced(action, episode).is_ok_and(|done| said(&done)))
    }

    /// What is seen of an observation.
    fn seen(&self, mut shown: Observation, seed: &Seed, step: u32) -> Observation {
        let mut rng = seed.derive("seen", step).rng();
        let text = match self.noise {
            Noise::Missing(probability, unit) => thinned(&shown.text, probability, unit, &mut rng),
            Noise::Wrong(probability) => garbled(&shown.text, probability, &mut rng),
            _ => return shown,
        };
        if text != shown.text {
            // All that the policy knows of the situation is what it sees of it.
            shown.state_key.clone_from(&text);
            shown.text = text;
        }
        shown
    }
}

/// A text of which parts are missing.
fn thinned(text: &str, probability: f64, unit: Unit, rng: &mut impl Rng) -> String {
    let parts: Vec<&str> = match unit {
        Unit::All => vec![text],
        Unit::Line => text.split_inclusive('\n').collect(),
        Unit::Sentence => text.split_inclusive(['.', '\n', '!', '?']).collect(),
    };
    parts.into_iter().filter(|_| !rng.random_bool(probability)).collect()
}

/// A text in which letters and digits are exchanged for others of their kind.
fn garbled(text: &str, probability: f64, rng: &mut impl Rng) -> String {
    let mut other = |letter: char| {
        let (first, count) = match letter {
            'a'..='z' => (b'a', 26),
            'A'..='Z' => (b'A', 26),
            '0'..='9' => (b'0', 10),
            _ => return letter,
        };
        match rng.random_bool(probability) {
            true => char::from(first + rng.random_range(0..count)),
            false => letter,
        }
    };
    text.chars().map(&mut other).collect()
}

#[async_trait]
impl Environment for Stochastic {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn version(&self) -> u32 {
        self.inner.version()
    }

    fn tags(&self) -> Vec<String> {
        let mut tags = self.inner.tags();
        let is_lucky = match self.noise {
            Noise::Actions(probability, _)
            | Noise::Events(probability)
            | Noise::Renamed(probability) => probability > 0.0,
            Noise::Missing(..) | Noise::Wrong(_) => false,
        };
        if is_lucky && !tags.iter().any(|tag| tag == CHANCE_TAG) {
            tags.push(CHANCE_TAG.to_owned());
        }
        tags
    }

    fn time_rules(&self) -> TimeRules {
        self.inner.time_rules()
    }

    async fn reset(&mut self, seed: Seed) -> Result<Observation, EnvironmentError> {
        // What is drawn here and there do not depend on each other, and the environment draws as it would without.
        let first = self.inner.reset(seed).await?;
        let seed = seed.derive("stochastic", self.name);
        let admissible = first.admissible.clone();
        self.episode = Some(Episode { seed, num_steps: 0, last: None, admissible, is_over: false });
        Ok(if self.is_on(0) { self.seen(first, &seed, 0) } else { first })
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
        let Some(mut episode) = self.episode.clone() else { return Err(misused("before reset")) };
        if episode.is_over {
            return Err(misused("after the end"));
        }
        let is_on = self.is_on(episode.num_steps);
        let mut before = None;
        if let Noise::Events(probability) = self.noise
            && is_on
        {
            let mut rng = episode.seed.derive("event", episode.num_steps).rng();
            if rng.random_bool(probability) {
                let event = self.draw(&mut rng, episode.admissible.as_ref())?;
                let step = self.inner.step(&event).await?;
                episode.admissible.clone_from(&step.observation.admissible);
                before = Some(step);
            }
        }
        let mut step = match before {
            // The event has ended it, and the action comes too late.
            Some(step) if step.terminated => step,
            before => {
                let done = if is_on { self.replaced(action, &episode)? } else { action.clone() };
                let mut step = self.inner.step(&done).await?;
                episode.last = Some(done);
                if let Some(before) = before {
                    step.rewards.splice(0..0, before.rewards);
                    step.success |= before.success;
                    step.wall_time += before.wall_time;
                }
                step
            }
        };
        episode.num_steps += 1;
        episode.is_over = step.terminated;
        episode.admissible.clone_from(&step.observation.admissible);
        if self.is_on(episode.num_steps) {
            step.observation = self.seen(step.observation, &episode.seed, episode.num_steps);
        }
        self.episode = Some(episode);
        Ok(step)
    }

    async fn verify(&mut self) -> Result<Option<Verdict>, EnvironmentError> {
        self.inner.verify().await
    }

    async fn grade(
        &mut self,
        trajectory: &Trajectory,
    ) -> Result<Option<Verdict>, EnvironmentError> {
        self.inner.grade(trajectory).await
    }

    fn reference_answer(&self) -> Option<ReferenceAnswer> {
        self.inner.reference_answer()
    }

    fn grader_versions(&self) -> BTreeMap<String, u32> {
        self.inner.grader_versions()
    }

    fn takes_scripts(&self) -> bool {
        self.inner.takes_scripts()
    }

    async fn run_script(
        &mut self,
        script: &TerminalVerifier,
    ) -> Result<ScriptFinding, EnvironmentError> {
        self.inner.run_script(script).await
    }

    fn has_fresh_sandboxes(&self) -> bool {
        self.inner.has_fresh_sandboxes()
    }

    async fn fresh_sandbox(
        &mut self,
        interpreter: &CodeInterpreter,
    ) -> Result<FreshSandbox, EnvironmentError> {
        self.inner.fresh_sandbox(interpreter).await
    }

    async fn fork(&mut self) -> Result<Option<Box<dyn Environment>>, EnvironmentError> {
        let Some(inner) = self.inner.fork().await? else { return Ok(None) };
        Ok(Some(Box::new(Self {
            name: self.name,
            inner,
            noise: self.noise,
            schedule: self.schedule,
            episode: self.episode.clone(),
        })))
    }

    fn oracle_action(&self) -> Option<Action> {
        let wanted = self.inner.oracle_action()?;
        Some(self.renamed(&wanted).unwrap_or(wanted))
    }

    fn breaking_actions(&self) -> Vec<Action> {
        self.inner.breaking_actions()
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
    use serde_json::{Value, json};
    use spar_tasks::Task;

    use super::*;
    use crate::{Resources, open_environment, test_task};

    const KINDS: [&str; 5] = [
        "random_actions",
        "random_events",
        "concept_drift",
        "missing_observations",
        "noisy_observations",
    ];

    fn lake(wrappers: Value) -> Task {
        test_task("frozen-lake", json!({ "seed": 3, "size": 8, "wrappers": wrappers }))
    }

    /// What an episode of these actions shows, until it ends.
    async fn play(task: &Task, seed: u64, actions: &[&str]) -> Vec<(Observation, f64, bool)> {
        let mut env = open_environment(task, &Resources::default()).unwrap();
        let mut shown = vec![(env.reset(Seed::from_u64(seed)).await.unwrap(), 0.0, true)];
        for action in actions {
            let step = env.step(&(*action).into()).await.unwrap();
            let is_over = step.terminated;
            shown.push((step.observation.clone(), step.reward(), step.valid));
            if is_over {
                break;
            }
        }
        shown
    }

    // Right of the start there is a hole.
    const WALK: [&str; 12] = [
        "jump", "down", "jump", "down", "right", "jump", "left", "up", "down", "right", "down",
        "up",
    ];

    #[tokio::test]
    async fn nothing_changes_with_a_probability_of_0() {
        for kind in KINDS {
            for seed in 0..8 {
                let without = play(&lake(json!([])), seed, &WALK).await;
                let wrapper = json!([{ "kind": kind, "probability": 0.0 }]);
                assert_eq!(play(&lake(wrapper), seed, &WALK).await, without, "{kind}");
            }
        }
    }

    #[tokio::test]
    async fn equal_seeds_are_equal_episodes_and_forks_go_on_alike() {
        for kind in KINDS {
            let mut wrapper = json!({ "kind": kind, "probability": 0.5 });
            if kind == "concept_drift" {
                // Most walks end before it would drift.
                wrapper["threshold"] = json!(1);
            }
            let task = lake(json!([wrapper]));
            let mut differ = 0;
            for seed in 0..8 {
                let once = play(&task, seed, &WALK).await;
                assert_eq!(play(&task, seed, &WALK).await, once, "{kind}");
                differ += usize::from(once != play(&lake(json!([])), seed, &WALK).await);
                let mut env = open_environment(&task, &Resources::default()).unwrap();
                env.reset(Seed::from_u64(seed)).await.unwrap();
                if env.step(&"jump".into()).await.unwrap().terminated {
                    continue;
                }
                let mut fork = env.fork().await.unwrap().unwrap();
                for action in ["down", "jump", "up", "left"] {
                    let (one, other) = (
                        env.step(&action.into()).await.unwrap(),
                        fork.step(&action.into()).await.unwrap(),
                    );
                    assert_eq!((&one.observation, one.valid), (&other.observation, other.valid));
                    if one.terminated {
                        break;
                    }
                }
            }
            assert!(differ > 0, "{kind} does something");
        }
    }

    #[tokio::test]
    async fn actions_that_are_none_stay_none() {
        let task = lake(json!([{ "kind": "random_actions", "probability": 1.0 }]));
        let shown = play(&task, 1, &["jump", "jump"]).await;
        assert!(
            shown[1..].iter().all(|(observation, _, valid)| {
                !valid && observation.text == "Nothing happens."
            })
        );
    }

    #[tokio::test]
    async fn a_sticky_action_is_done_again() {
        let wrapper =
            json!([{ "kind": "random_actions", "probability": 1.0, "replacement": "sticky" }]);
        let sticky = play(&lake(wrapper), 1, &["right", "down"]).await;
        let twice = play(&lake(json!([])), 1, &["right", "right"]).await;
        assert_eq!(sticky, twice);
    }

    #[tokio::test]
    async fn a_concept_drifts_once_or_by_turns() {
        let drift = |drift: &str| {
            lake(json!([{
                "kind": "concept_drift", "drift": drift, "threshold": 2, "concept": "missing_observations",
            }]))
        };
        // Words that mean nothing leave the lake as it is, whatever is seen of it.
        let seen = |shown: Vec<(Observation, f64, bool)>| -> Vec<bool> {
            shown.iter().map(|(observation, ..)| observation.text.is_empty()).collect()
        };
        let sudden = seen(play(&drift("sudden"), 1, &["jump"; 6]).await);
        assert_eq!(sudden, [false, false, true, true, true, true, true]);
        let cyclic = seen(play(&drift("cyclic"), 1, &["jump"; 6]).await);
        assert_eq!(cyclic, [false, false, true, true, false, false, true]);
    }

    #[tokio::test]
    async fn the_oracle_knows_which_names_are_exchanged() {
        let goes = async |task: &Task, seed: u64| {
            let mut env = open_environment(task, &Resources::default()).unwrap();
            let mut shown = vec![env.reset(Seed::from_u64(seed)).await.unwrap().text];
            let mut said = Vec::new();
            while let Some(action) = env.oracle_action()
                && said.len() < 40
            {
                let step = env.step(&action).await.unwrap();
                said.push(action.said().to_owned());
                shown.push(step.observation.text);
                if step.terminated {
                    break;
                }
            }
            (shown, said)
        };
        let mut differ = 0;
        for seed in 0..8 {
            let (shown, said) = goes(&lake(json!([])), seed).await;
            for drift in ["sudden", "cyclic"] {
                let wrapper = json!([{ "kind": "concept_drift", "drift": drift, "threshold": 1 }]);
                let (as_shown, renamed) = goes(&lake(wrapper), seed).await;
                assert_eq!(as_shown, shown, "{drift}");
                differ += usize::from(renamed != said);
            }
        }
        assert!(differ > 0);
    }

    #[test]
    fn parts_go_missing_and_letters_go_wrong() {
        let mut rng = Seed::from_u64(1).rng();
        let text = "You see a ball. You see 2 doors.\nMore.";
        assert_eq!(thinned(text, 1.0, Unit::Sentence, &mut rng), "");
        assert_eq!(thinned(text, 0.0, Unit::Line, &mut rng), text);
        let half = thinned(&text.repeat(50), 0.5, Unit::Sentence, &mut rng);
        assert!(half.len() > text.len() * 15 && half.len() < text.len() * 35, "{}", half.len());
        let wrong = garbled(text, 1.0, &mut rng);
        assert_eq!(
            (wrong.len(), wrong.matches(' ').count()),
            (text.len(), text.matches(' ').count())
        );
        assert_ne!(wrong, text);
        assert_eq!(garbled("übel √", 1.0, &mut rng).chars().count(), 6);
    }

    #[test]
    fn options_out_of_range_and_environments_of_several_seats_are_refused() {
        let told = |task: &Task| match open_environment(task, &Resources::default()) {
            Ok(_) => String::new(),
            Err(error) => crate::validate::chain(&error),
        };
        for kind in KINDS {
            let wrong = told(&lake(json!([{ "kind": kind, "probability": 1.5 }])));
            assert!(wrong.contains("`probability` is 1.5"), "{wrong}");
            let mut task = lake(json!([{ "kind": kind }]));
            task.environment = "tic-tac-toe".to_owned();
            task.parameters = json!({ "seed": 1, "wrappers": [{ "kind": kind }] });
            assert!(told(&task).contains("several seats"), "{}", told(&task));
        }
        let wrong = told(&lake(json!([{ "kind": "concept_drift", "threshold": 0 }])));
        assert!(wrong.contains("`threshold` is 0"), "{wrong}");
    }
}
