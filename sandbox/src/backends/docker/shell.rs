//! A shell in a container.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::NAME;
use super::conversation::{Conversation, Input, Said, Surroundings};
use super::sandbox::Shared;
use crate::shell::{PosixShell, ShellProcess, ShellTransport};
use crate::{ExecRequest, SandboxError, Shell, ShellOptions};

/// Bytes of a stream that wait to be read.
const BUFFER: usize = 1 << 16;

/// Opens a shell in a sandbox.
pub(super) async fn open(
    sandbox: &Arc<Shared>,
    options: &ShellOptions,
) -> Result<Box<dyn Shell>, SandboxError> {
    let transport = DockerTransport { sandbox: Arc::clone(sandbox), user: None, pump: None };
    let shell = PosixShell::open(transport, options.clone()).await?;
    Ok(Box::new(shell))
}

struct DockerTransport {
    sandbox: Arc<Shared>,
    user: Option<String>,
    /// Moves the bytes of the started process; dropping its conversation ends the process.
    pump: Option<Pump>,
}

struct Pump {
    task: JoinHandle<()>,
    /// Closing it asks the task to end the process and to wait for that.
    hang_up: Option<tokio::sync::oneshot::Sender<()>>,
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
        let workdir = options.workdir.as_deref().unwrap_or(&self.sandbox.workdir);
        let heartbeat = self.sandbox.engine.heartbeat();
        let mut operation = vec!["run".into(), u64::MAX.to_string(), heartbeat, workdir.to_owned()];
        operation.extend(command.iter().cloned());
        let surroundings = Surroundings { user: self.user.clone(), ..Default::default() };
        self.sandbox.remember_user(self.user.as_deref());
        self.sandbox.open_network().await?;
        let (input, receiver) = mpsc::channel(8);
        let conversation =
            self.sandbox.converse(operation, surroundings, Input::Channel(receiver)).await?;
        let (stdin, from_caller) = tokio::io::duplex(BUFFER);
        let (stdout, to_stdout) = tokio::io::duplex(BUFFER);
        let (stderr, to_stderr) = tokio::io::duplex(BUFFER);
        let (hang_up, hung_up) = tokio::sync::oneshot::channel();
        let task = tokio::spawn(async move {
            let feed = feed(from_caller, input);
            let drain = drain(conversation, to_stdout, to_stderr, hung_up);
            tokio::pin!(feed, drain);
            tokio::select! {
                () = &mut drain => {}
                // The channel's end is the end of the process's input.
                () = &mut feed => drain.await,
            }
        });
        self.pump = Some(Pump { task, hang_up: Some(hang_up) });
        Ok(ShellProcess {
            stdin: Box::new(stdin),
            stdout: Box::new(stdout),
            stderr: Box::new(stderr),
        })
    }

    async fn run_aside(&mut self, script: &str) -> Result<(), SandboxError> {
        let mut request = ExecRequest::sh(script);
        request.user.clone_from(&self.user);
        request.workdir = Some("/".into());
        self.sandbox.exec(&request).await.map(drop)
    }

    async fn end(&mut self) -> Result<(), SandboxError> {
        let Some(mut pump) = self.pump.take() else { return Ok(()) };
        drop(pump.hang_up.take());
        // The helper has its own deadline for ending the tree; this one is behind it.
        let patience = std::time::Duration::from_secs(30);
        if tokio::time::timeout(patience, &mut pump.task).await.is_err() {
            pump.task.abort();
            self.sandbox.sweep().await?;
        }
        Ok(())
    }
}

impl Drop for DockerTransport {
    fn drop(&mut self) {
        if let Some(pump) = &self.pump {
            pump.task.abort();
        }
    }
}

/// Takes what the caller writes to the conversation.
async fn feed(mut from: DuplexStream, to: mpsc::Sender<Bytes>) {
    let mut buffer = vec![0; BUFFER];
    while let Ok(count) = from.read(&mut buffer).await {
        if count == 0 || to.send(Bytes::copy_from_slice(&buffer[..count])).await.is_err() {
            return;
        }
    }
}

/// Hands on what the process writes until it ends, or until the caller hangs up.
async fn drain(
    mut conversation: Conversation<'static>,
    stdout: DuplexStream,
    stderr: DuplexStream,
    hung_up: tokio::sync::oneshot::Receiver<()>,
) {
    let (mut stdout, mut stderr) = (stdout, stderr);
    let hand_on = async {
        loop {
            // Nobody reading is no reason to stop: the process must not wait for ever.
            match conversation.next().await {
                Said::Stdout(bytes) => drop(stdout.write_all(&bytes).await),
                Said::Stderr(bytes) => drop(stderr.write_all(&bytes).await),
                Said::Status(_) | Said::Broken(_) => return,
            }
        }
    };
    let ended = tokio::select! {
        () = hand_on => true,
        _ = hung_up => false,
    };
    if !ended {
        conversation.hang_up().await;
    }
}
