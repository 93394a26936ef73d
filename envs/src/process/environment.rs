//! A task that is played in a program.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::Deserialize;
use spar_core::{Action, Observation, Seed, Step, ToolSpec};
use spar_tasks::{ProcessSuite, ProcessTask, ProgramActions, ProgramTimeouts, Task};

use super::messages::{
    AnswerLimits, Call, Guides, Nothing, ResetAnswer, Shown, SnapshotAnswer, StepAnswer, Stepped,
    ToolsAnswer, seed_number,
};
use super::pool::{Parked, Place, ProgramPool, unpark};
use super::program_error::ProgramError;
use crate::validate::chain;
use crate::{Actions, Environment, EnvironmentError, Resources, TimeRules};

/// A task that is played in a program of any language.
///
/// Parameters: those of a [`ProcessTask`]. The place in a program that a session needs is taken with the reset. Until the
/// first step it may be lost to others who wait for one; then the session is brought up anew when it is played, and has to
/// show the same. So the starts that groups share hold up nobody.
pub struct Process {
    task: Arc<ProcessTask>,
    pool: Arc<ProgramPool>,
    has_tools: bool,
    session: Session,
    /// What the session was reset with, and showed.
    start: Option<(Seed, Arc<Shown>)>,
    tools: Arc<[ToolSpec]>,
    guides: Guides,
}

/// Where a session is.
enum Session {
    /// Nowhere yet, or no more.
    None,
    /// It was reset, or is to be when it is played.
    AtStart(Option<Parked>),
    /// It has been played, or is about to be.
    InPlay { place: Place, has_moved: bool },
    /// The task has ended, or something broke.
    Over,
}

impl Process {
    /// The registry's name of it.
    pub const NAME: &str = ProcessSuite::ENVIRONMENT;

    /// Makes a task interactive; its program is started with the first reset.
    ///
    /// # Errors
    ///
    /// [`EnvironmentError::Parameters`] with all that is wrong with the task's parameters.
    pub fn open(task: &Task, resources: &Resources) -> Result<Self, EnvironmentError> {
        let refuse = |detail: String| EnvironmentError::Parameters {
            task: task.id.clone(),
            environment: Self::NAME,
            detail,
        };
        let parameters = ProcessTask::deserialize(&task.parameters);
        let parameters = parameters.map_err(|error| refuse(error.to_string()))?;
        let problems = parameters.program.problems();
        if !problems.is_empty() {
            return Err(refuse(problems.join("; ")));
        }
        Ok(Self {
            pool: resources.programs.pool(&parameters.program),
            has_tools: parameters.program.actions == ProgramActions::Calls,
            task: Arc::new(parameters),
            session: Session::None,
            start: None,
            tools: Arc::default(),
            guides: Guides::default(),
        })
    }

    /// In what a task of it is played; absent where its parameters do not tell.
    pub(crate) fn actions(task: &Task) -> Option<Actions> {
        let actions = task.parameters.get("program")?.get("actions")?;
        Some(match ProgramActions::deserialize(actions).ok()? {
            ProgramActions::Words => Actions::Words,
            ProgramActions::Calls => Actions::Calls,
            ProgramActions::Both => Actions::Both,
        })
    }

    /// Resets a session in a place.
    async fn bring_up(
        &self,
        place: &mut Place,
        seed: Seed,
    ) -> Result<(Shown, Arc<[ToolSpec]>), EnvironmentError> {
        let program = Arc::clone(&place.program);
        let limit = Duration::from_secs(self.pool.spec().timeouts.reset_secs);
        let call = Call::Reset {
            env: place.env,
            seed: seed_number(seed),
            tools: self.has_tools,
            task: &self.task.task,
        };
        place.is_known = true;
        let answer: ResetAnswer =
            program.ask(&call, limit).await.map_err(broke("reset a session"))?;
        let shown = match answer.check(program.answer_limits()) {
            Ok(shown) => shown,
            Err(detail) => {
                let error = program.no_answer("reset", detail).await;
                return Err(broke("reset a session")(error));
            }
        };
        Ok((shown, self.ask_tools(place).await?))
    }

    /// The tools that a session offers now.
    async fn ask_tools(&self, place: &Place) -> Result<Arc<[ToolSpec]>, EnvironmentError> {
        let program = &place.program;
        if !self.has_tools || !program.hello.tools {
            return Ok(Arc::default());
        }
        let doing = "tell its tools";
        let answer = program.ask(&Call::Tools { env: place.env }, program.step_limit()).await;
        let answer: ToolsAnswer = answer.map_err(broke(doing))?;
        match answer.check() {
            Ok(tools) => Ok(tools),
            Err(detail) => Err(broke(doing)(program.no_answer("tools", detail).await)),
        }
    }

    /// Sees to it that the session has a place that it cannot lose.
    async fn hold_place(&mut self) -> Result<(), EnvironmentError> {
        let misused = |when| EnvironmentError::Misused { call: "step", when };
        let parked = match &mut self.session {
            Session::InPlay { .. } => return Ok(()),
            Session::None => return Err(misused("before reset")),
            Session::Over => return Err(misused("after the end")),
            Session::AtStart(parked) => parked.take(),
        };
        let kept = parked.as_deref().and_then(unpark).filter(|place| place.program.is_alive());
        let place = match kept {
            Some(place) => place,
            None => {
                let (seed, first) = self.start.clone().ok_or(misused("before reset"))?;
                let mut place = self.pool.place().await?;
                let (shown, tools) = self.bring_up(&mut place, seed).await?;
                if shown != *first {
                    let doing = "reset with the same seed";
                    return Err(EnvironmentError::NotRepeatable { doing });
                }
                self.tools = tools;
                place
            }
        };
        self.session = Session::InPlay { place, has_moved: false };
        Ok(())
    }

    /// A session of the same program that is where another is; absent where it cannot be copied, or has no room.
    async fn copied(&self, place: &Place) -> Result<Option<Place>, EnvironmentError> {
        let program = &place.program;
        let beside = if program.hello.fork { self.pool.place_beside(program) } else { None };
        let Some(mut copied) = beside else { return Ok(None) };
        copied.is_known = true;
        let call = Call::Fork { env: place.env, to: copied.env };
        let answer = program.ask::<Nothing>(&call, program.step_limit()).await;
        answer.map_err(broke("fork a session"))?;
        Ok(Some(copied))
    }

    /// A session of any program that is where another told to be; absent where it cannot tell, or there is no room.
    async fn restored(&self, place: &Place) -> Result<Option<Place>, EnvironmentError> {
        let program = &place.program;
        if !program.hello.snapshot {
            return Ok(None);
        }
        let Some(mut restored) = self.pool.place_at_once().await? else { return Ok(None) };
        let limit = program.step_limit();
        let told = program.ask(&Call::Snapshot { env: place.env }, limit).await;
        let SnapshotAnswer { snapshot } = told.map_err(broke("tell its state"))?;
        restored.is_known = true;
        let call = Call::Restore { env: restored.env, snapshot: &snapshot };
        let answer = restored.program.ask::<Nothing>(&call, limit).await;
        answer.map_err(broke("restore a session"))?;
        Ok(Some(restored))
    }

    /// A session that has been stepped, restored from what it tells of its state, whether or not it could be copied; absent
    /// where there is no room.
    pub(super) async fn restore(&self) -> Result<Option<Box<dyn Environment>>, EnvironmentError> {
        let Session::InPlay { place, .. } = &self.session else { return Ok(None) };
        let restored = self.restored(place).await?;
        Ok(restored.map(|place| self.with_session(Session::InPlay { place, has_moved: true })))
    }

    /// The same environment, with another session.
    fn with_session(&self, session: Session) -> Box<dyn Environment> {
        Box::new(Self {
            task: Arc::clone(&self.task),
            pool: Arc::clone(&self.pool),
            has_tools: self.has_tools,
            session,
            start: self.start.clone(),
            tools: Arc::clone(&self.tools),
            guides: self.guides.clone(),
        })
    }
}

fn broke(doing: &'static str) -> impl Fn(Arc<ProgramError>) -> EnvironmentError {
    move |source| EnvironmentError::Program { doing, source }
}

#[async_trait]
impl Environment for Process {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn tags(&self) -> Vec<String> {
        self.start.as_ref().map(|(_, first)| first.tags.clone()).unwrap_or_default()
    }

    fn time_rules(&self) -> TimeRules {
        let spec = self.pool.spec();
        let ProgramTimeouts { start_secs, reset_secs, step_secs } = spec.timeouts;
        let seconds = |parts: &[u64]| {
            let sum = parts.iter().fold(0, |sum: u64, part| sum.saturating_add(*part));
            Some(Duration::from_secs(sum))
        };
        // A program may answer one session after the other, each within its time.
        let sessions = spec.limits.sessions_per_program as u64;
        let [reset_secs, step_secs] =
            [reset_secs, step_secs].map(|secs| secs.saturating_mul(sessions));
        // What it asks of the program one after the other; the session before is closed first.
        TimeRules {
            reset: seconds(&[step_secs, spec.limits.wait_secs, start_secs, reset_secs, step_secs]),
            step: seconds(&[step_secs, step_secs]),
            ..TimeRules::default()
        }
    }

    fn reads_whole_answers(&self) -> bool {
        self.pool.spec().whole_answers
    }

    fn use_tools(&mut self) {
        self.has_tools |= self.pool.spec().actions == ProgramActions::Both;
    }

    fn tools(&self) -> Arc<[ToolSpec]> {
        Arc::clone(&self.tools)
    }

    async fn reset(&mut self, seed: Seed) -> Result<Observation, EnvironmentError> {
        self.close().await?;
        let mut place = self.pool.place().await?;
        let (shown, tools) = self.bring_up(&mut place, seed).await?;
        let first = shown.observation.clone();
        (self.guides, self.tools) = (shown.guides.clone(), tools);
        self.start = Some((seed, Arc::new(shown)));
        self.session = Session::AtStart(Some(self.pool.park(place)));
        Ok(first)
    }

    async fn prepare(&mut self) -> Result<(), EnvironmentError> {
        self.hold_place().await
    }

    async fn step(&mut self, action: &Action) -> Result<Step, EnvironmentError> {
        self.hold_place().await?;
        // A step that breaks off leaves nothing that could be gone on with.
        let Session::InPlay { place, .. } = std::mem::replace(&mut self.session, Session::Over)
        else {
            return Err(EnvironmentError::Misused { call: "step", when: "after the end" });
        };
        let doing = "carry out an action";
        let program = Arc::clone(&place.program);
        let began = std::time::Instant::now();
        let call = Call::Step { env: place.env, action: action.into() };
        let answer = program.ask::<StepAnswer>(&call, program.step_limit()).await;
        let limits: AnswerLimits = program.answer_limits();
        let stepped = match answer.map_err(broke(doing))?.check(action, limits) {
            Ok(stepped) => stepped,
            Err(detail) => return Err(broke(doing)(program.no_answer("step", detail).await)),
        };
        let Stepped { mut step, has_other_tools, guides } = stepped;
        if has_other_tools && !step.terminated {
            self.tools = self.ask_tools(&place).await?;
        }
        step.wall_time = began.elapsed();
        match step.terminated {
            true => {
                self.guides = Guides::default();
                // The step is what counts: the program has told it, and is replaced where it breaks behind it.
                if let Err(error) = place.close().await {
                    tracing::warn!(
                        error = chain(&error),
                        "could not close a session that has ended"
                    );
                }
            }
            false => {
                self.guides = guides;
                self.session = Session::InPlay { place, has_moved: true };
            }
        }
        Ok(step)
    }

    async fn fork(&mut self) -> Result<Option<Box<dyn Environment>>, EnvironmentError> {
        let place = match &self.session {
            // Brought up when it is played.
            Session::AtStart(_) | Session::InPlay { has_moved: false, .. } => {
                return Ok(Some(self.with_session(Session::AtStart(None))));
            }
            Session::InPlay { place, has_moved: true } => place,
            Session::None => {
                return Err(EnvironmentError::Misused { call: "fork", when: "before reset" });
            }
            Session::Over => return Ok(None),
        };
        let forked = match self.copied(place).await? {
            Some(forked) => Some(forked),
            // A state that can be told goes on in whatever program has room.
            None => self.restored(place).await?,
        };
        Ok(forked.map(|place| self.with_session(Session::InPlay { place, has_moved: true })))
    }

    fn oracle_action(&self) -> Option<Action> {
        self.guides.oracle.clone()
    }

    fn expert_action(&mut self) -> Option<Action> {
        self.guides.expert.clone()
    }

    async fn close(&mut self) -> Result<(), EnvironmentError> {
        let place = match std::mem::replace(&mut self.session, Session::None) {
            Session::AtStart(parked) => parked.as_deref().and_then(unpark),
            Session::InPlay { place, .. } => Some(place),
            Session::None | Session::Over => None,
        };
        match place {
            Some(place) => place.close().await,
            None => Ok(()),
        }
    }
}
