//! A shell in a container.

use std::sync::Arc;

use async_trait::async_trait;

use super::process::Loss;
use super::sandbox::Shared;
use super::{NAME, process};
use crate::shell::{PosixShell, ShellProcess, ShellTransport};
use crate::{ExecRequest, Process, ProcessHandle, SandboxError, Shell, ShellOptions};

/// Opens a shell in a sandbox.
pub(super) async fn open(
    sandbox: &Arc<Shared>,
    options: &ShellOptions,
) -> Result<Box<dyn Shell>, SandboxError> {
    let transport = DockerTransport { sandbox: Arc::clone(sandbox), user: None, running: None };
    let shell = PosixShell::open(transport, options.clone()).await?;
    Ok(Box::new(shell))
}

struct DockerTransport {
    sandbox: Arc<Shared>,
    user: Option<String>,
    running: Option<ProcessHandle>,
}

#[async_trait]
impl ShellTransport for DockerTransport {
    fn backend(&self) -> &'static str {
        NAME
    }

    fn sandbox(&self) -> &str {
        &self.sandbox.name
    }

    async fn start(
        &mut self,
        command: &[String],
        options: &ShellOptions,
    ) -> Result<ShellProcess, SandboxError> {
        self.end().await?;
        self.user.clone_from(&options.user);
        let mut request = ExecRequest::new(command.iter().cloned());
        request.user.clone_from(&options.user);
        request.workdir.clone_from(&options.workdir);
        let Process { stdin, stdout, stderr, handle } =
            process::spawn(&self.sandbox, &request, Loss::IsTold).await?;
        self.running = Some(handle);
        Ok(ShellProcess { stdin, stdout, stderr })
    }

    async fn run_aside(&mut self, script: &str) -> Result<(), SandboxError> {
        let mut request = ExecRequest::sh(script);
        request.user.clone_from(&self.user);
        request.workdir = Some("/".into());
        self.sandbox.exec(&request).await.map(drop)
    }

    async fn end(&mut self) -> Result<(), SandboxError> {
        let Some(mut running) = self.running.take() else { return Ok(()) };
        // What resists, the first process of the container ends, which has other means.
        if running.end().await { Ok(()) } else { self.sandbox.sweep().await }
    }
}
