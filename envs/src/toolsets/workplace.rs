//! The machine of an episode, as a toolset sees it.

use std::time::Duration;

use spar_core::Action;
use spar_sandbox::{ExecRequest, ExecResult, PtyProcess, PtySize, Sandbox, SandboxError};
use tokio::time::timeout;

use super::{Acted, Briefing, ToolSession};
use crate::EnvironmentError;
use crate::SandboxPhase::Step;
use crate::terminal::Deadlines;
use crate::terminal::machine::{Machine, in_time, own_fault};

/// A toolset that works at a machine, and where it does.
pub(crate) struct Hands {
    session: Box<dyn ToolSession>,
    workdir: String,
    user: Option<String>,
}

impl Hands {
    pub(crate) fn new(
        session: Box<dyn ToolSession>,
        workdir: impl Into<String>,
        user: Option<String>,
    ) -> Self {
        Self { session, workdir: workdir.into(), user }
    }

    /// The same at a copy of the machine; absent where there is none.
    pub(crate) fn fork(&self) -> Option<Self> {
        let session = self.session.fork()?;
        Some(Self { session, workdir: self.workdir.clone(), user: self.user.clone() })
    }

    /// The first message, where that shows something of `machine`; why there is none.
    pub(crate) async fn open(
        &mut self,
        briefing: &Briefing<'_>,
        machine: &mut Machine,
        deadlines: &Deadlines,
    ) -> Result<Result<String, String>, EnvironmentError> {
        let Self { session, workdir, user } = self;
        let mut place = Workplace { machine, deadlines, workdir, user: user.as_deref() };
        match session.open(briefing, &mut place).await {
            Ok(text) => Ok(Ok(text)),
            Err(Halt::Refused(reason) | Halt::Lost(reason)) => Ok(Err(reason)),
            Err(Halt::Broken(error)) => Err(error),
        }
    }

    /// Carries out an action at `machine`. Whatever the machine's part has come to, the action is answered.
    ///
    /// # Errors
    ///
    /// [`EnvironmentError`] where something speaks against backend or host.
    pub(crate) async fn act(
        &mut self,
        action: &Action,
        machine: &mut Machine,
        deadlines: &Deadlines,
    ) -> Result<Worked, EnvironmentError> {
        let Self { session, workdir, user } = self;
        let mut place = Workplace { machine, deadlines, workdir, user: user.as_deref() };
        let calls = action.tool_calls();
        Ok(match session.act(action, &mut place).await {
            Ok(acted) => Worked { acted, is_lost: false },
            Err(Halt::Refused(reason)) => {
                let acted = Acted::refused(calls, &format!("[could not {reason}]"));
                Worked { acted, is_lost: false }
            }
            Err(Halt::Lost(reason)) => {
                let text = format!("[the sandbox cannot go on: could not {reason}]");
                let acted = Acted { is_valid: true, ..Acted::refused(calls, &text) };
                Worked { acted, is_lost: true }
            }
            Err(Halt::Broken(error)) => return Err(error),
        })
    }
}

/// What has come of an action at a machine.
pub(crate) struct Worked {
    pub(crate) acted: Acted,
    /// Nothing can be done there any more; what is left is judged.
    pub(crate) is_lost: bool,
}

/// Why a machine has not done its part.
#[derive(Debug)]
pub enum Halt {
    /// It could not be done for what it was.
    Refused(String),
    /// By what the agent did, nothing can be done there any more.
    Lost(String),
    /// Something speaks against backend or host.
    Broken(EnvironmentError),
}

impl From<EnvironmentError> for Halt {
    fn from(error: EnvironmentError) -> Self {
        Self::Broken(error)
    }
}

/// The machine of an episode, as a toolset sees it.
pub struct Workplace<'a> {
    machine: &'a mut Machine,
    deadlines: &'a Deadlines,
    workdir: &'a str,
    user: Option<&'a str>,
}

impl Workplace<'_> {
    /// Where shells of the agent begin.
    pub fn workdir(&self) -> &str {
        self.workdir
    }

    /// How long one command may take.
    pub fn command_limit(&self) -> Duration {
        self.deadlines.command
    }

    /// Runs a program as the agent, in its working directory unless the request says otherwise, for no longer than a
    /// command may take.
    ///
    /// # Errors
    ///
    /// [`Halt`].
    pub async fn exec(&mut self, mut request: ExecRequest) -> Result<ExecResult, Halt> {
        let limit = self.command_limit();
        request.timeout = Some(request.timeout.map_or(limit, |own| own.min(limit)));
        request.workdir.get_or_insert_with(|| self.workdir.to_owned());
        request.user = request.user.or_else(|| self.user.map(str::to_owned));
        let whole = self.deadlines.whole_command();
        let ran = timeout(whole, self.machine.sandbox.exec(&request)).await;
        let ran = in_time(Step, whole, ran);
        self.settled(ran).await
    }

    /// Starts a program on a terminal as the agent, in its working directory. It runs until it ends or is dropped.
    ///
    /// # Errors
    ///
    /// [`Halt`].
    pub async fn spawn_pty(
        &mut self,
        mut request: ExecRequest,
        size: PtySize,
    ) -> Result<PtyProcess, Halt> {
        request.workdir.get_or_insert_with(|| self.workdir.to_owned());
        request.user = request.user.or_else(|| self.user.map(str::to_owned));
        let whole = self.deadlines.whole_command();
        let spawned = timeout(whole, self.machine.sandbox.spawn_pty(&request, size)).await;
        let spawned = in_time(Step, whole, spawned);
        self.settled(spawned).await
    }

    /// What came of the machine's part, or whose fault it is that nothing did.
    async fn settled<T>(&mut self, result: Result<T, SandboxError>) -> Result<T, Halt> {
        let error = match result {
            Ok(done) => return Ok(done),
            Err(error) => error,
        };
        let fault = own_fault(&self.machine.sandbox, &self.machine.pool, Step, error).await?;
        Err(match fault.is_of_request {
            true => Halt::Refused(fault.text),
            false => Halt::Lost(fault.text),
        })
    }
}
