//! An environment whose episodes graders judge.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use spar_core::{
    Action, Observation, Seat, SeatSpec, Seed, Step, Told, ToolSpec, Trajectory, Verdict,
};
use spar_tasks::graders::{FreshSandbox, Graders, GradingModels, GradingPlace, ScriptFinding};
use spar_tasks::{CodeInterpreter, GraderError, ReferenceAnswer, Task, TerminalVerifier};

use crate::{Environment, EnvironmentError, IDLE_TAG, TimeRules, ToolsetChoice};

/// Graders by which an episode without any action earns no more than its environment says.
const NOTHING_FOR_NOTHING: &[&str] = &[
    "environment",
    "exact",
    "math",
    "choice",
    "squad",
    "structured",
    "reasoning_sql",
    "unit_tests",
    "tau2",
];

/// An environment whose episodes are judged by the graders that its task and the recipe name.
pub struct Graded {
    inner: Box<dyn Environment>,
    judging: Arc<Judging>,
}

/// What the forks of an environment share.
struct Judging {
    task: Task,
    graders: Graders,
    models: GradingModels,
}

impl Graded {
    /// The same environment, judged by the graders of its task.
    ///
    /// # Errors
    ///
    /// [`EnvironmentError::Grader`] when they lack something that they need.
    pub fn new(
        inner: Box<dyn Environment>,
        task: Task,
        graders: Graders,
        models: GradingModels,
    ) -> Result<Self, EnvironmentError> {
        let has_reference = inner.reference_answer().is_some();
        let available = |which| models.get(which).map(|model| model.can_score());
        let (scripts, fresh) = (inner.takes_scripts(), inner.has_fresh_sandboxes());
        let mut problems = graders.lacks(&task, has_reference, scripts || fresh, available);
        // One kind of sandbox does not do for the other.
        if scripts != fresh {
            let name = inner.name();
            if !scripts && graders.scripts().next().is_some() {
                problems.push(format!("scripts of graders cannot run in environment `{name}`"));
            }
            if !fresh && graders.need_fresh_sandboxes() {
                problems.push(format!("programs of answers cannot run in environment `{name}`"));
            }
        }
        if !problems.is_empty() {
            return Err(EnvironmentError::Grader(GraderError::Problems { problems }));
        }
        Ok(Self { inner, judging: Arc::new(Judging { task, graders, models }) })
    }
}

/// What an environment does for graders.
pub(crate) struct Place<'a>(pub(crate) &'a mut dyn Environment);

#[async_trait]
impl GradingPlace for Place<'_> {
    async fn own_verdict(&mut self) -> Result<Option<Verdict>, GraderError> {
        self.0.verify().await.map_err(|error| GraderError::Place(Box::new(error)))
    }

    async fn run_script(
        &mut self,
        script: &TerminalVerifier,
    ) -> Result<ScriptFinding, GraderError> {
        let found = self.0.run_script(script).await;
        found.map_err(|error| GraderError::Place(Box::new(error)))
    }

    async fn fresh_sandbox(
        &mut self,
        interpreter: &CodeInterpreter,
    ) -> Result<FreshSandbox, GraderError> {
        let fresh = self.0.fresh_sandbox(interpreter).await;
        fresh.map_err(|error| GraderError::Place(Box::new(error)))
    }
}

#[async_trait]
impl Environment for Graded {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn version(&self) -> u32 {
        self.inner.version()
    }

    fn tags(&self) -> Vec<String> {
        let mut tags = self.inner.tags();
        // What others find of an episode without any action is not known before.
        if !self
            .judging
            .task
            .graders
            .iter()
            .all(|grader| NOTHING_FOR_NOTHING.contains(&&*grader.kind))
        {
            tags.retain(|tag| !tag.starts_with(IDLE_TAG));
        }
        tags
    }

    fn time_rules(&self) -> TimeRules {
        self.inner.time_rules()
    }

    async fn reset(&mut self, seed: Seed) -> Result<Observation, EnvironmentError> {
        self.inner.reset(seed).await
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

    fn seats(&self) -> &[SeatSpec] {
        self.inner.seats()
    }

    fn instructs_seats(&self) -> bool {
        self.inner.instructs_seats()
    }

    fn to_move(&self) -> Option<Seat> {
        self.inner.to_move()
    }

    fn told(&mut self, seat: Seat) -> Told {
        self.inner.told(seat)
    }

    async fn forfeit(&mut self, seat: Seat) -> Result<(), EnvironmentError> {
        self.inner.forfeit(seat).await
    }

    fn takes_any_words(&self) -> bool {
        self.inner.takes_any_words()
    }

    fn reads_whole_answers(&self) -> bool {
        self.inner.reads_whole_answers()
    }

    fn is_zero_sum(&self) -> bool {
        self.inner.is_zero_sum()
    }

    async fn step(&mut self, action: &Action) -> Result<Step, EnvironmentError> {
        self.inner.step(action).await
    }

    /// The environment's own verdict: graders see the record of the episode.
    async fn verify(&mut self) -> Result<Option<Verdict>, EnvironmentError> {
        self.inner.verify().await
    }

    async fn grade(
        &mut self,
        trajectory: &Trajectory,
    ) -> Result<Option<Verdict>, EnvironmentError> {
        let reference = self.inner.reference_answer();
        let Judging { task, graders, models } = &*self.judging;
        let mut place = Place(&mut *self.inner);
        let judged = graders.grade(task, trajectory, reference.as_ref(), models, &mut place);
        Ok(Some(judged.await?))
    }

    fn reference_answer(&self) -> Option<ReferenceAnswer> {
        self.inner.reference_answer()
    }

    fn grader_versions(&self) -> BTreeMap<String, u32> {
        self.judging.graders.versions()
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
        Ok(Some(Box::new(Self { inner, judging: Arc::clone(&self.judging) })))
    }

    fn oracle_action(&self) -> Option<Action> {
        self.inner.oracle_action()
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
