//! What a shell session needs of a local sandbox.

use std::sync::Arc;

use async_trait::async_trait;
use rustix::pipe::{PipeFlags, pipe_with};
use tokio::net::unix::pipe::Sender;

use super::exec::{Status, Streams, no_input, output_pipe};
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
        let failed = backend_error("start a shell");
        let (stdin, writer) =
            pipe_with(PipeFlags::CLOEXEC).map_err(|error| failed(error.into()))?;
        let writer = Sender::from_owned_fd(writer).map_err(&failed)?;
        let (out, stdout) = output_pipe().map_err(&failed)?;
        let (err, stderr) = output_pipe().map_err(&failed)?;
        let mut request = ExecRequest::new(command.iter().cloned());
        request.workdir.clone_from(&options.workdir);
        request.user.clone_from(&options.user);
        self.user.clone_from(&options.user);
        let streams = Streams { stdin, stdout, stderr };
        self.running = Some(Status::start(&self.sandbox, &request, streams).await?);
        Ok(ShellProcess { stdin: Box::new(writer), stdout: Box::new(out), stderr: Box::new(err) })
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
