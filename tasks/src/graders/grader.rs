//! The judge of an episode that is over.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use spar_core::{Observation, ParsedAction, Policy, Seed, Trajectory, Turn, Verdict};
use spar_sandbox::Sandbox;

use super::ScriptFinding;
use crate::{CodeInterpreter, GraderError, ReferenceAnswer, Task, TerminalVerifier};

/// Judges an episode that is over: what became of it in, a verdict out.
///
/// What keeps it from judging is an error, never a verdict: such an episode counts as the infrastructure's failure and is
/// played anew. What the episode itself has brought about is none: such an episode is worth nothing, so that making itself
/// hard to judge buys it no other try.
#[async_trait]
pub trait Grader: Send + Sync + fmt::Debug {
    /// The name in suites and recipes.
    fn name(&self) -> &'static str;

    /// The version of what it asks and how it judges, which trajectories name: it grows with every change after which
    /// equal episodes may be judged otherwise. Default 1.
    fn version(&self) -> u32 {
        1
    }

    /// What it has to be given. Default nothing.
    fn needs(&self) -> GraderNeeds {
        GraderNeeds::default()
    }

    /// Whether it gives parts of its reward names that tell them apart, however many of them are worth something. Default
    /// false: it has one part.
    fn has_named_parts(&self) -> bool {
        false
    }

    /// The script that it runs in the episode's sandbox, so that the sandbox lives for it. Default none.
    fn script(&self) -> Option<&TerminalVerifier> {
        None
    }

    /// Judges an answer by itself, within an episode; `None` where it takes more than the answer to judge, which is the default.
    fn judge_answer(
        &self,
        task: &Task,
        answer: &str,
        reference: &ReferenceAnswer,
    ) -> Option<Verdict> {
        let _ = (task, answer, reference);
        None
    }

    /// Judges an episode; `place` is where it was played.
    ///
    /// # Errors
    ///
    /// [`GraderError`] when it could not judge, which says nothing about the episode.
    async fn grade(
        &self,
        episode: &GradedEpisode<'_>,
        place: &mut dyn GradingPlace,
    ) -> Result<Verdict, GraderError>;
}

/// What a grader has to be given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct GraderNeeds {
    /// A model.
    pub model: Option<GradingModel>,
    /// A model that can tell log-probabilities of given tokens.
    pub can_score: bool,
    /// A task that says what is right.
    pub reference: bool,
    /// [Fresh sandboxes](GradingPlace::fresh_sandbox) for programs.
    pub fresh_sandbox: bool,
}

/// A model that takes part in judging.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Default,
    serde::Serialize,
    serde::Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum GradingModel {
    /// The one that was named as the judge: an endpoint or a checkpoint.
    #[default]
    Judge,
    /// The policy that plays, with its present weights.
    Policy,
    /// The policy that a run is held to.
    Reference,
}

impl GradingModel {
    /// What it is called in messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Judge => "judge",
            Self::Policy => "policy",
            Self::Reference => "reference model",
        }
    }
}

/// The models that take part in judging; by default none. Clones share them.
#[derive(Clone, Default)]
pub struct GradingModels {
    /// The judge.
    pub judge: Option<Arc<dyn Policy>>,
    /// The policy that plays.
    pub policy: Option<Arc<dyn Policy>>,
    /// The policy that a run is held to.
    pub reference: Option<Arc<dyn Policy>>,
}

impl GradingModels {
    /// One of them, where it was given.
    pub fn get(&self, which: GradingModel) -> Option<&Arc<dyn Policy>> {
        match which {
            GradingModel::Judge => self.judge.as_ref(),
            GradingModel::Policy => self.policy.as_ref(),
            GradingModel::Reference => self.reference.as_ref(),
        }
    }

    /// One of them, for the grader of this name.
    pub(super) fn expect(
        &self,
        which: GradingModel,
        grader: &str,
    ) -> Result<&Arc<dyn Policy>, GraderError> {
        self.get(which)
            .ok_or_else(|| GraderError::Problems { problems: vec![lacks_model(grader, which)] })
    }
}

impl fmt::Debug for GradingModels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name =
            |policy: &Option<Arc<dyn Policy>>| policy.as_ref().map(|it| it.name().to_owned());
        f.debug_struct("GradingModels")
            .field("judge", &name(&self.judge))
            .field("policy", &name(&self.policy))
            .field("reference", &name(&self.reference))
            .finish()
    }
}

/// That a grader has no model, and the way out.
pub(super) fn lacks_model(grader: &str, which: GradingModel) -> String {
    match which {
        GradingModel::Judge => format!(
            "`{grader}` needs a judge: name an endpoint (--judge URL --judge-model NAME, or [judge] in a recipe) or a \
             checkpoint (--judge-checkpoint FOLDER)"
        ),
        GradingModel::Policy => {
            format!("`{grader}` needs the policy that plays, and none in this process does")
        }
        GradingModel::Reference => {
            format!("`{grader}` needs a reference model, and nothing gives one here")
        }
    }
}

/// What an environment does for graders of its episode.
#[async_trait]
pub trait GradingPlace: Send {
    /// What the environment itself judges; absent where its steps have said it all.
    ///
    /// # Errors
    ///
    /// [`GraderError::Place`] when it could not judge.
    async fn own_verdict(&mut self) -> Result<Option<Verdict>, GraderError>;

    /// Ends everything that the agent left running and runs a script on what it left behind, in its sandbox or in a
    /// fresh one.
    ///
    /// # Errors
    ///
    /// [`GraderError::Place`] when that could not be done, by no doing of the agent.
    async fn run_script(&mut self, script: &TerminalVerifier)
    -> Result<ScriptFinding, GraderError>;

    /// A sandbox in which nobody has worked yet, for programs of the interpreter's language; that of the episode is closed
    /// for it. By default there is none.
    ///
    /// # Errors
    ///
    /// [`GraderError::Place`] when none could be had.
    async fn fresh_sandbox(
        &mut self,
        interpreter: &CodeInterpreter,
    ) -> Result<FreshSandbox, GraderError> {
        let language = interpreter.language.title();
        let text = format!("there is no sandbox for programs in {language} where this is played");
        Err(GraderError::Place(text.into()))
    }
}

/// A sandbox in which nobody has worked yet.
#[derive(Clone)]
pub struct FreshSandbox {
    /// The sandbox.
    pub sandbox: Arc<dyn Sandbox>,
    /// The name of its backend.
    pub backend: String,
}

/// An episode that is over, as graders see it.
pub struct GradedEpisode<'a> {
    /// Its task.
    pub task: &'a Task,
    /// Its record, whose end is known.
    pub trajectory: &'a Trajectory,
    /// What the task calls right, if it says so.
    pub reference: Option<&'a ReferenceAnswer>,
    /// What graders that are named before this one have found, by what they are called.
    pub earlier: &'a [(String, Verdict)],
    /// The models that take part.
    pub models: &'a GradingModels,
    /// Where the grader's random choices start.
    pub seed: Seed,
}

impl GradedEpisode<'_> {
    /// What the policy answered last: the text of a call `answer` with nothing but that, or else the action. Empty where it
    /// never did.
    pub fn final_answer(&self) -> Cow<'_, str> {
        let Some(last) = self.trajectory.last_acting() else { return Cow::Borrowed("") };
        given_by_call(last).map_or_else(|| answer_of(last), Cow::Borrowed)
    }
}

/// The answer that a turn gives by a call, as tasks for tools end by.
fn given_by_call(turn: &Turn) -> Option<&str> {
    let calls = turn.parsed.action()?.tool_calls();
    calls.iter().find_map(|call| {
        let is_answer = call.name == "answer" && call.arguments.len() == 1;
        is_answer.then(|| call.arguments.get("answer")?.as_str())?
    })
}

/// The action of a turn, calls as JSON behind what is said beside them; all that was written where none could be read.
pub(super) fn answer_of(turn: &Turn) -> Cow<'_, str> {
    match turn.parsed.action() {
        None => Cow::Borrowed(&turn.text),
        Some(action) if action.tool_calls().is_empty() => Cow::Borrowed(action.said()),
        Some(action) if action.said().is_empty() => action.key(),
        Some(action) => Cow::Owned(format!("{}\n{}", action.said(), action.key())),
    }
}

/// All that the policy wrote in a turn, with calls behind it that stand beside the text, as those of endpoints do.
pub(super) fn written(turn: &Turn) -> Cow<'_, str> {
    match &turn.parsed {
        ParsedAction::Action { action, spans, .. }
            if !action.tool_calls().is_empty() && spans.is_empty() =>
        {
            match turn.text.is_empty() {
                true => action.key(),
                false => Cow::Owned(format!("{}\n{}", turn.text, action.key())),
            }
        }
        _ => Cow::Borrowed(&turn.text),
    }
}

/// What an observation shows in words, the results of calls included.
pub(super) fn shown_text(observation: &Observation) -> Cow<'_, str> {
    if observation.results.is_empty() {
        return Cow::Borrowed(&observation.text);
    }
    let texts =
        std::iter::once(&observation.text).chain(observation.results.iter().map(|it| &it.text));
    let texts: Vec<&str> = texts.map(String::as_str).filter(|text| !text.is_empty()).collect();
    Cow::Owned(texts.join("\n"))
}
