//! What a shell session needs of a local sandbox.

use std::sync::Arc;

use async_trait::async_trait;

use super::exec::{Pipes, Status, Streams, no_input};
use super::running::RunningSandbox;
use super::{BACKEND, backend_error};
use crate::shell::{ShellProcess, ShellTransport};
use crate::{ExecRequest, SandboxError, ShellOptions};

/// Keeps one exec in which everything of a shell session runs.
#[derive(Debug)]
pub(crate) struct LocalTransport {
    sandbox: Arc<RunningSandbox>,
    running: Option<Status>,
    user: Option<String>,
}

impl LocalTransport {
    pub(crate) fn new(sandbox: Arc<RunningSandbox>) -> Self {
        Self { sandbox, running: None, user: None }
    }
}

#[async_trait]
impl ShellTransport for LocalTransport {
    fn backend(&self) -> &'static str {
        BACKEND
    }

    fn sandbox(&self) -> &str {
        &self.sandbox.record.id
    }

    async fn start(
        &mut self,
        command: &[String],
        options: &ShellOptions,
    ) -> Result<ShellProcess, SandboxError> {
        let (pipes, streams) = Pipes::new().map_err(backend_error("start a shell"))?;
        let mut request = ExecRequest::new(command.iter().cloned());
        request.workdir.clone_from(&options.workdir);
        request.user.clone_from(&options.user);
        self.user.clone_from(&options.user);
        self.running = Some(Status::start(&self.sandbox, &request, streams).await?);
        let Pipes { stdin, stdout, stderr } = pipes;
        Ok(ShellProcess {
            stdin: Box::new(stdin),
            stdout: Box::new(stdout),
            stderr: Box::new(stderr),
        })
    }

    async fn run_aside(&mut self, script: &str) -> Result<(), SandboxError> {
        let Some(running) = &self.running else { return Ok(()) };
        let failed = backend_error("run a command beside a shell");
        let null = || std::fs::File::options().write(true).open("/dev/null");
        let streams = Streams {
            stdin: no_input().map_err(&failed)?,
            stdout: null().map_err(&failed)?.into(),
            stderr: null().map_err(&failed)?.into(),
        };
        let mut request = ExecRequest::sh(script);
        request.user.clone_from(&self.user);
        let mut status = running.join(&self.sandbox, &request, streams).await?;
        // How it ended does not matter; the shell itself may have ended with it.
        let _ = status.report().await;
        Ok(())
    }

    async fn end(&mut self) -> Result<(), SandboxError> {
        match self.running.take() {
            Some(running) => {
                // Nothing ends while its files are copied.
                let _gate = self.sandbox.gate.read().await;
                running.end().await.map_err(backend_error("end a shell"))
            }
            None => Ok(()),
        }
    }
}
