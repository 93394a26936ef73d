//! Tasks of one turn that may be tried again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_answers::{AnswerForm, FinalAnswer, final_answer};
use spar_core::registry::NamedOptions;
use spar_core::{Action, Observation, RewardPart, Seed, Step, ToolSpec, Verdict};
use spar_tasks::graders::Graders;
use spar_tasks::{GraderError, ReferenceAnswer, Task};

use crate::{Environment, EnvironmentError, TimeRules, ToolsetChoice};

const NAME: &str = "unary_feedback";
/// The most tries there may be.
const MAX_ATTEMPTS: u32 = 64;
/// Why an environment that does not fork is refused.
const NO_FORK: &str = "it does not fork, and every answer needs a fresh one";

/// Options of [`UnaryFeedback`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct UnaryFeedbackOptions {
    /// How many answers may be given, 2 to 64, and no more than the task has turns. Default 5.
    pub attempts: u32,
    /// What the reward of a right answer is multiplied by for every valid answer before it; above 0, at most 1. Default 0.5.
    pub decay: f64,
    /// What is taken off at the end where all valid answers but one were repeated, and its share where fewer were; from 0 to 1.
    /// Default 0.
    pub repetition_penalty: f64,
    /// What is told of a wrong answer, whatever it was. Default `That is not right. Try again.`
    pub feedback: String,
}

impl Default for UnaryFeedbackOptions {
    fn default() -> Self {
        Self {
            attempts: 5,
            decay: 0.5,
            repetition_penalty: 0.0,
            feedback: "That is not right. Try again.".to_owned(),
        }
    }
}

impl NamedOptions for UnaryFeedbackOptions {
    fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        let Self { attempts, decay, repetition_penalty, feedback } = self;
        if !(2..=MAX_ATTEMPTS).contains(attempts) {
            problems.push(format!("`attempts` is {attempts}, must be from 2 to {MAX_ATTEMPTS}"));
        }
        if !(*decay > 0.0 && *decay <= 1.0) {
            problems.push(format!("`decay` is {decay}, must be above 0 and at most 1"));
        }
        if !(0.0..=1.0).contains(repetition_penalty) {
            problems
                .push(format!("`repetition_penalty` is {repetition_penalty}, must be from 0 to 1"));
        }
        if feedback.trim().is_empty() {
            problems
                .push("`feedback` is empty, and has to be what a wrong answer is told".to_owned());
        }
        problems
    }
}

/// A task of one turn that may be tried again: all that is told of a wrong answer is that it is wrong.
///
/// The episode ends with the first right answer, or when all tries are used up. With `j` valid answers before the right one, `m` valid answers in
/// all and `u` distinct ones among them, `R = 1[right] decay^j - repetition_penalty (1 - u / m)`, in the parts `success` and `repetition` of
/// the verdict. What is no valid answer, or none at all, uses up a try, and nothing of the decay; where the task would go on behind it, what it would be
/// told is told. Answers are distinct by what they come to, spaces and capitals aside.
///
/// Source: UFO (arXiv 2507.14295) and its code. Deviations: what is told at the end does not say whether the answer was right (the code
/// says that it was, even when the tries ran out), and the reward is told by the verdict, once.
pub struct UnaryFeedback {
    options: UnaryFeedbackOptions,
    /// Who judges answers; absent: the environment itself.
    judging: Option<Arc<(Task, Graders)>>,
    /// The environment as it is when the episode begins; every answer goes to a fork of it.
    start: Box<dyn Environment>,
    first: Option<Observation>,
    tries: Tries,
}

/// What has been tried.
#[derive(Debug, Clone, Default)]
struct Tries {
    attempts: u32,
    valid: u32,
    distinct: BTreeSet<String>,
    /// Set when it is over: how many valid answers were before the right one, if there was one.
    outcome: Option<Option<u32>>,
}

impl Tries {
    /// Takes in an answer, and says whether it is over.
    fn note(
        &mut self,
        options: &UnaryFeedbackOptions,
        answer: &str,
        is_valid: bool,
        is_right: bool,
    ) -> bool {
        let before = self.valid;
        self.attempts += 1;
        if is_valid {
            self.valid += 1;
            self.distinct.insert(key(answer));
        }
        if is_right {
            self.outcome = Some(Some(before));
        } else if self.attempts == options.attempts {
            self.outcome = Some(None);
        }
        self.outcome.is_some()
    }

    /// What they have earned, once it is over.
    fn parts(&self, options: &UnaryFeedbackOptions) -> Vec<RewardPart> {
        let mut parts = Vec::new();
        if let Some(Some(before)) = self.outcome {
            let exponent = i32::try_from(before).unwrap_or(i32::MAX);
            parts.push(RewardPart {
                name: "success".to_owned(),
                value: options.decay.powi(exponent),
            });
        }
        if options.repetition_penalty > 0.0 && self.valid > 0 {
            #[expect(clippy::cast_precision_loss, reason = "there are few answers")]
            let share = 1.0 - self.distinct.len() as f64 / f64::from(self.valid);
            if share > 0.0 {
                let value = -options.repetition_penalty * share;
                parts.push(RewardPart { name: "repetition".to_owned(), value });
            }
        }
        parts
    }
}

impl UnaryFeedback {
    /// The environment of `task`, to be tried again; the task's graders judge its answers.
    ///
    /// # Errors
    ///
    /// [`EnvironmentError`] where the environment has several seats, or the graders cannot judge an answer alone. That it takes more than
    /// one turn, or does not fork, is known when it is reset: where not even a solution ends it.
    pub fn new(
        options: UnaryFeedbackOptions,
        inner: Box<dyn Environment>,
        task: &Task,
    ) -> Result<Self, EnvironmentError> {
        let refuse = |detail: String| {
            Err(EnvironmentError::Wrapper { wrapper: NAME, environment: inner.name(), detail })
        };
        if inner.seats().len() != 1 {
            return refuse("it has several seats".to_owned());
        }
        if task.max_turns < options.attempts {
            let (attempts, turns) = (options.attempts, task.max_turns);
            return refuse(format!(
                "`attempts` is {attempts}, and the task's `max_turns` is {turns}"
            ));
        }
        let judging = match &task.graders[..] {
            [] => None,
            [only] if only.kind == "environment" => None,
            graders => {
                let opened = Graders::open(graders)?;
                let reference = inner.reference_answer();
                let can_judge = reference
                    .as_ref()
                    .is_some_and(|it| opened.judge_answer(task, "", it).is_some());
                if !can_judge {
                    let problem = format!(
                        "`{NAME}` has answers judged while the episode goes on, by graders that need nothing but an answer and what is right: \
                         `exact`, `math`, `choice`, `squad` or `structured`"
                    );
                    return Err(GraderError::Problems { problems: vec![problem] }.into());
                }
                Some(Arc::new((task.clone(), opened)))
            }
        };
        Ok(Self { options, judging, start: inner, first: None, tries: Tries::default() })
    }
}

/// Whether it goes on after an answer, as far as a solution tells: then there is nothing to be tried again.
async fn check_turns(start: &mut dyn Environment) -> Result<(), EnvironmentError> {
    let environment = start.name();
    let refuse = |detail: &str| EnvironmentError::Wrapper {
        wrapper: NAME,
        environment,
        detail: detail.to_owned(),
    };
    let Some(solution) = start.oracle_action() else { return Ok(()) };
    let Some(mut attempt) = start.fork().await? else { return Err(refuse(NO_FORK)) };
    let step = attempt.step(&solution).await?;
    attempt.close().await?;
    match step.valid && !step.terminated {
        true => {
            Err(refuse("it goes on after an answer: only tasks of one turn can be tried again"))
        }
        false => Ok(()),
    }
}

/// Whether an answer is right, as who judges says.
async fn is_right(
    judging: Option<Arc<(Task, Graders)>>,
    attempt: &mut dyn Environment,
    answer: &str,
    step: &Step,
) -> Result<bool, EnvironmentError> {
    let Some(judging) = judging else {
        return Ok(attempt.verify().await?.map_or(step.success, |verdict| verdict.success));
    };
    let (task, graders) = &*judging;
    let reference = attempt.reference_answer();
    let verdict = reference.and_then(|it| graders.judge_answer(task, answer, &it));
    Ok(verdict.is_some_and(|verdict| verdict.success))
}

/// What an answer comes to, as repeated ones are told.
fn key(answer: &str) -> String {
    let found = match final_answer(answer, AnswerForm::Any) {
        FinalAnswer::Found(found) => found,
        FinalAnswer::Missing | FinalAnswer::Conflicting => answer.to_owned(),
    };
    found.split_whitespace().collect::<String>().to_lowercase()
}

#[async_trait]
impl Environment for UnaryFeedback {
    fn name(&self) -> &'static str {
        self.start.name()
    }

    fn version(&self) -> u32 {
        self.start.version()
    }

    fn tags(&self) -> Vec<String> {
        self.start.tags()
    }

    fn time_rules(&self) -> TimeRules {
        self.start.time_rules()
    }

    async fn reset(&mut self, seed: Seed) -> Result<Observation, EnvironmentError> {
        let first = self.start.reset(seed).await?;
        check_turns(&mut *self.start).await?;
        self.tries = Tries::default();
        self.first = Some(first.clone());
        Ok(first)
    }

    async fn prepare(&mut self) -> Result<(), EnvironmentError> {
        self.start.prepare().await
    }

    fn use_tools(&mut self) {
        self.start.use_tools();
    }

    fn use_toolset(&mut self, toolset: &ToolsetChoice) -> bool {
        self.start.use_toolset(toolset)
    }

    fn tools(&self) -> Arc<[ToolSpec]> {
        self.start.tools()
    }

    fn reads_whole_answers(&self) -> bool {
        self.start.reads_whole_answers()
    }

    async fn step(&mut self, action: &Action) -> Result<Step, EnvironmentError> {
        let misused = |when| EnvironmentError::Misused { call: "step", when };
        let Some(first) = &self.first else { return Err(misused("before reset")) };
        if self.tries.outcome.is_some() {
            return Err(misused("after the end"));
        }
        let no_fork = EnvironmentError::Wrapper {
            wrapper: NAME,
            environment: self.start.name(),
            detail: NO_FORK.to_owned(),
        };
        let (admissible, state_key) = (first.admissible.clone(), first.state_key.clone());
        let Some(mut attempt) = self.start.fork().await? else { return Err(no_fork) };
        let step = attempt.step(action).await?;
        // What ends nothing is no answer, and uses up a try all the same: else who never answers would never come to an end.
        let is_answer = step.valid && step.terminated;
        let answer = action.key();
        let judging = self.judging.clone();
        let is_right = is_answer && is_right(judging, &mut *attempt, action.said(), &step).await?;
        attempt.close().await?;
        let is_over = self.tries.note(&self.options, &answer, is_answer, is_right);
        let told = match is_over || !step.terminated {
            true => step.observation.text,
            false => self.options.feedback.clone(),
        };
        let answers: Vec<&str> = self.tries.distinct.iter().map(String::as_str).collect();
        Ok(Step {
            observation: Observation {
                text: told,
                results: step.observation.results,
                admissible: admissible.filter(|_| !is_over),
                state_key: format!("{state_key}\n{}\n{}", self.tries.attempts, answers.join("\n")),
                ..Observation::default()
            },
            rewards: Vec::new(),
            terminated: is_over,
            success: is_right,
            valid: step.valid,
            wall_time: step.wall_time,
        })
    }

    async fn verify(&mut self) -> Result<Option<Verdict>, EnvironmentError> {
        let success = matches!(self.tries.outcome, Some(Some(_)));
        let graders = match &self.judging {
            None => Vec::new(),
            Some(judging) => judging.1.versions().into_keys().collect(),
        };
        Ok(Some(Verdict {
            parts: self.tries.parts(&self.options),
            success,
            details: format!(
                "{} answers, {} distinct",
                self.tries.attempts,
                self.tries.distinct.len()
            ),
            graders,
            ..Verdict::default()
        }))
    }

    fn reference_answer(&self) -> Option<ReferenceAnswer> {
        self.start.reference_answer()
    }

    fn grader_versions(&self) -> BTreeMap<String, u32> {
        self.judging.as_ref().map(|judging| judging.1.versions()).unwrap_or_default()
    }

    async fn fork(&mut self) -> Result<Option<Box<dyn Environment>>, EnvironmentError> {
        let Some(start) = self.start.fork().await? else { return Ok(None) };
        Ok(Some(Box::new(Self {
            options: self.options.clone(),
            judging: self.judging.clone(),
            start,
            first: self.first.clone(),
            tries: self.tries.clone(),
        })))
    }

    fn oracle_action(&self) -> Option<Action> {
        self.start.oracle_action().filter(|_| self.tries.outcome.is_none())
    }

    fn expert_action(&mut self) -> Option<Action> {
        match self.tries.outcome {
            None => self.start.expert_action(),
            Some(_) => None,
        }
    }

    async fn close(&mut self) -> Result<(), EnvironmentError> {
        self.start.close().await
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{Resources, open_environment};

    fn task(options: serde_json::Value, graders: serde_json::Value) -> Task {
        let mut wrapper = json!({ "kind": NAME });
        wrapper.as_object_mut().unwrap().extend(options.as_object().unwrap().clone());
        serde_json::from_value(json!({
            "id": "quiz/test/0", "environment": "question", "instruction": "", "max_turns": 5, "tags": [], "graders": graders,
            "parameters": { "prompt": "A half and a half of it?", "answer": "\\frac34", "wrappers": [wrapper] },
        }))
        .unwrap()
    }

    async fn opened(options: serde_json::Value) -> Box<dyn Environment> {
        let task = task(options, json!([{ "kind": "math" }]));
        let mut env = open_environment(&task, &Resources::default()).unwrap();
        assert!(env.step(&"1".into()).await.is_err(), "it was not reset");
        assert_eq!(env.reset(Seed::from_u64(1)).await.unwrap().text, "A half and a half of it?");
        env
    }

    async fn reward(options: serde_json::Value, answers: &[&str]) -> (bool, f64) {
        let mut env = opened(options).await;
        for (number, answer) in (1..).zip(answers) {
            let step = env.step(&(*answer).into()).await.unwrap();
            assert_eq!(step.terminated, number == answers.len(), "{answer}");
            assert!(step.rewards.is_empty());
        }
        assert!(env.step(&"0.75".into()).await.is_err(), "it is over");
        let verdict = env.verify().await.unwrap().unwrap();
        (verdict.success, verdict.reward())
    }

    /// The cases of the fixture `name`, and of the folder of vectors where it exists.
    fn cases(name: &str) -> Vec<serde_json::Value> {
        let own = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
        let folder = std::env::var_os("SPAR_VECTORS")
            .map_or_else(|| own.join("../../shared/vectors"), std::path::PathBuf::from);
        let fixture = own.join(format!("tests/fixtures/{name}.json"));
        let mut texts = vec![std::fs::read_to_string(fixture).unwrap()];
        match std::fs::read_to_string(folder.join(format!("{name}.json"))) {
            Ok(text) => texts.push(text),
            Err(error) => println!("skipped: {name} in {}: {error}", folder.display()),
        }
        let cases = |text: &String| -> Vec<serde_json::Value> {
            let mut file: serde_json::Value = serde_json::from_str(text).unwrap();
            serde_json::from_value(file["cases"].take()).unwrap()
        };
        texts.iter().flat_map(cases).collect()
    }

    /// What is told is an option here, and at the end does not say whether the answer was right.
    #[test]
    fn tries_end_and_earn_as_in_the_reference() {
        for name in ["ufo_unary_feedback", "ufo_metamath_repetition"] {
            for case in cases(name) {
                let (inputs, params) = (&case["inputs"], &case["params"]);
                let list =
                    |value: &serde_json::Value| value.as_array().cloned().unwrap_or_default();
                let is_right = match inputs.get("correct") {
                    Some(correct) => list(correct),
                    None => list(&inputs["correct_per_attempt"]),
                };
                let answers = list(&inputs["answers"]);
                let options = UnaryFeedbackOptions {
                    // Without a bound the reference goes on for as long as it is asked.
                    attempts: params["max_steps"].as_u64().unwrap_or(1000) as u32,
                    repetition_penalty: params["penalty_lambda"].as_f64().unwrap_or_default(),
                    ..UnaryFeedbackOptions::default()
                };
                let mut tries = Tries::default();
                let expected = list(&case["outputs"]["observation_reward_done"]);
                let mut earned = 0.0;
                for (place, told) in expected.iter().enumerate() {
                    let own = place.to_string();
                    let answer = answers.get(place).and_then(|it| it.as_str()).unwrap_or(&own);
                    let is_over =
                        tries.note(&options, answer, true, is_right[place].as_bool().unwrap());
                    assert_eq!(is_over, told[2].as_bool().unwrap(), "{case}");
                    earned += told[1].as_f64().unwrap();
                }
                let found: f64 = match tries.outcome {
                    Some(_) => tries.parts(&options).iter().map(|part| part.value).sum(),
                    None => 0.0,
                };
                assert!((found - earned).abs() < 1e-9, "{name}: {found} {earned} {case}");
            }
        }
    }

    #[tokio::test]
    async fn the_reward_halves_with_every_wrong_answer() {
        assert_eq!(reward(json!({}), &["0.75"]).await, (true, 1.0));
        assert_eq!(reward(json!({}), &["1", "2", r"\boxed{3/4}"]).await, (true, 0.25));
        // What is no answer costs a try, and nothing else.
        assert_eq!(reward(json!({}), &["", "1", "3/4"]).await, (true, 0.5));
        assert_eq!(
            reward(json!({ "decay": 1.0 }), &["1", "2", "3", "4", "3/4"]).await,
            (true, 1.0)
        );
        assert_eq!(reward(json!({ "attempts": 3 }), &["1", "2", "3"]).await, (false, 0.0));
        assert_eq!(
            reward(json!({ "attempts": 2 }), &[r"\boxed{1}\boxed{3/4}", "1, 2, 3/4"]).await,
            (false, 0.0)
        );
    }

    #[tokio::test]
    async fn answers_that_are_repeated_cost_and_gain_nothing() {
        let options = json!({ "repetition_penalty": 0.6, "attempts": 4 });
        let (success, reward_of_same) =
            reward(options.clone(), &["1", " 1 ", "the answer is 1.", "1"]).await;
        assert!(!success && (reward_of_same + 0.45).abs() < 1e-12, "{reward_of_same}");
        let (success, with_one) = reward(options.clone(), &["1", "1", "0.75"]).await;
        assert!(success && (with_one - (0.25 - 0.2)).abs() < 1e-12, "{with_one}");
        assert_eq!(reward(options, &["1", "2", "3", "4"]).await, (false, 0.0));
    }

    #[tokio::test]
    async fn wrong_answers_are_told_the_same_whatever_they_are() {
        let mut env = opened(json!({ "feedback": "No." })).await;
        let mut shown = Vec::new();
        for answer in ["0.74", "east", &"9".repeat(100_000)] {
            shown.push(env.step(&answer.into()).await.unwrap().observation.text);
        }
        assert_eq!(shown, ["No."; 3]);
        let right = env.step(&"0.75".into()).await.unwrap();
        let mut env = opened(json!({ "attempts": 2 })).await;
        env.step(&"1".into()).await.unwrap();
        let wrong = env.step(&"2".into()).await.unwrap();
        assert_eq!(right.observation.text, wrong.observation.text, "the end does not tell");
        assert!(right.success && !wrong.success);
    }

    /// Asks until there is an answer, or goes on behind it.
    #[derive(Clone)]
    struct Asks {
        ends: bool,
        has_oracle: bool,
    }

    #[async_trait]
    impl Environment for Asks {
        fn name(&self) -> &'static str {
            "asks"
        }

        async fn reset(&mut self, _: Seed) -> Result<Observation, EnvironmentError> {
            Ok(Observation::default())
        }

        async fn step(&mut self, action: &Action) -> Result<Step, EnvironmentError> {
            let is_answer = action.said().starts_with("answer");
            let text = if is_answer { "It was answered." } else { "There is no answer yet." };
            Ok(Step {
                observation: Observation { text: text.to_owned(), ..Observation::default() },
                rewards: Vec::new(),
                terminated: is_answer && self.ends,
                success: action.said() == "answer 1",
                valid: is_answer,
                wall_time: std::time::Duration::ZERO,
            })
        }

        async fn fork(&mut self) -> Result<Option<Box<dyn Environment>>, EnvironmentError> {
            Ok(Some(Box::new(self.clone())))
        }

        fn oracle_action(&self) -> Option<Action> {
            self.has_oracle.then(|| "answer 1".into())
        }
    }

    async fn asked(asks: Asks) -> Result<UnaryFeedback, EnvironmentError> {
        let options = UnaryFeedbackOptions { attempts: 3, ..UnaryFeedbackOptions::default() };
        let mut env = UnaryFeedback::new(options, Box::new(asks), &task(json!({}), json!([])))?;
        env.reset(Seed::from_u64(1)).await?;
        Ok(env)
    }

    #[tokio::test]
    async fn what_ends_nothing_uses_up_a_try_and_is_told_why() {
        let one_turn = Asks { ends: true, has_oracle: true };
        let mut env = asked(one_turn.clone()).await.unwrap();
        for text in ["I am not sure yet.", "answer 2"] {
            let step = env.step(&text.into()).await.unwrap();
            let told = &step.observation.text;
            assert_eq!(told == "There is no answer yet.", !step.valid, "{told}");
            assert!(!step.terminated && !step.success);
        }
        let step = env.step(&"answer 1".into()).await.unwrap();
        assert!(step.terminated && step.success);
        // The one valid answer before it has halved it; the words have not.
        assert_eq!(env.verify().await.unwrap().unwrap().reward(), 0.5);
        let mut env = asked(one_turn).await.unwrap();
        for number in 1..=3 {
            let step = env.step(&"I am not sure yet.".into()).await.unwrap();
            assert_eq!(step.terminated, number == 3);
            assert_eq!(step.observation.text, "There is no answer yet.");
        }
        assert_eq!(env.verify().await.unwrap().unwrap().reward(), 0.0);
    }

    #[tokio::test]
    async fn what_goes_on_after_an_answer_is_refused_where_a_solution_tells_it() {
        let refused = asked(Asks { ends: false, has_oracle: true }).await.err().unwrap();
        assert!(refused.to_string().contains("only tasks of one turn"), "{refused}");
        // Where none does, its tries end as others do.
        let mut env = asked(Asks { ends: false, has_oracle: false }).await.unwrap();
        for number in 1..=3 {
            let step = env.step(&"answer 1".into()).await.unwrap();
            assert!(step.terminated == (number == 3) && !step.success);
        }
        assert!(!env.verify().await.unwrap().unwrap().success);
    }

    #[test]
    fn what_cannot_be_tried_again_is_told() {
        let told = |task: &Task| match open_environment(task, &Resources::default()) {
            Ok(_) => String::new(),
            Err(error) => {
                let source = std::error::Error::source(&error).map(ToString::to_string);
                format!("{error}: {}", source.unwrap_or_default())
            }
        };
        let math = json!([{ "kind": "math" }]);
        for (options, part) in [
            (json!({ "attempts": 1 }), "`attempts` is 1"),
            (json!({ "decay": 0.0, "repetition_penalty": 2.0 }), "`repetition_penalty` is 2"),
            (json!({ "feedback": " " }), "`feedback` is empty"),
            (json!({ "attempts": 6 }), "`max_turns` is 5"),
        ] {
            let told = told(&task(options, math.clone()));
            assert!(told.contains(part), "{told}");
        }
        let script = told(&task(json!({}), json!([{ "kind": "likelihood" }])));
        assert!(script.contains("`exact`, `math`, `choice`, `squad` or `structured`"), "{script}");
        let mut lake: Task = task(json!({}), json!([]));
        lake.environment = "tic-tac-toe".to_owned();
        lake.parameters = json!({ "seed": 1, "wrappers": [{ "kind": NAME }] });
        assert!(told(&lake).contains("several seats"), "{}", told(&lake));
    }
}
