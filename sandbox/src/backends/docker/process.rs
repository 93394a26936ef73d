//! Processes in a container that their starter talks to.

use std::sync::Arc;

use bytes::Bytes;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::sync::{mpsc, oneshot};

use super::conversation::{Conversation, Input, Said};
use super::sandbox::Shared;
use crate::{ExecEnd, ExecRequest, Process, ProcessHandle, SandboxError};

/// Bytes of a stream that wait to be read.
const BUFFER: usize = 1 << 16;

/// What is done where the helper of a process is gone, and with it the word on its end.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Loss {
    /// What came of the process is ended, as behind a command.
    IsCleared,
    /// Nothing: whoever started it looks after that.
    IsTold,
}

/// Starts a command that runs until it ends, or until nobody wants it any more.
pub(super) async fn spawn(
    sandbox: &Arc<Shared>,
    request: &ExecRequest,
    loss: Loss,
) -> Result<Process, SandboxError> {
    let (input, receiver) = mpsc::channel(8);
    let begun = sandbox.begin(request, request.timeout, Input::Channel(receiver)).await?;
    let conversation = begun.ok_or(SandboxError::UsedUp { what: "processes" })?;
    let (stdin, from_caller) = tokio::io::duplex(BUFFER);
    let (stdout, to_stdout) = tokio::io::duplex(BUFFER);
    let (stderr, to_stderr) = tokio::io::duplex(BUFFER);
    let (sandbox, request) = (Arc::clone(sandbox), request.clone());
    let handle = ProcessHandle::of(async move |hung_up| {
        let outputs = (to_stdout, to_stderr);
        let follow = follow(&sandbox, &request, loss, conversation, outputs, hung_up);
        let feed = feed(from_caller, input);
        tokio::pin!(follow, feed);
        tokio::select! {
            end = &mut follow => end,
            // The channel's end is the end of the process's input.
            () = &mut feed => follow.await,
        }
    });
    Ok(Process {
        stdin: Box::new(stdin),
        stdout: Box::new(stdout),
        stderr: Box::new(stderr),
        handle,
    })
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
async fn follow(
    sandbox: &Shared,
    request: &ExecRequest,
    loss: Loss,
    mut conversation: Conversation<'static>,
    (mut stdout, mut stderr): (DuplexStream, DuplexStream),
    hung_up: oneshot::Receiver<()>,
) -> Result<ExecEnd, SandboxError> {
    let hand_on = async {
        loop {
            // Nobody reading is no reason to stop: the process must not wait for ever.
            match sandbox.hear(&mut conversation).await? {
                Said::Stdout(bytes) => drop(stdout.write_all(&bytes).await),
                Said::Stderr(bytes) => drop(stderr.write_all(&bytes).await),
                last => return Ok::<_, SandboxError>(last),
            }
        }
    };
    let last = tokio::select! {
        last = hand_on => last?,
        _ = hung_up => {
            conversation.hang_up().await;
            return Ok(ExecEnd::Signalled { signal: 9 });
        }
    };
    if let (Loss::IsTold, Said::Broken(said)) = (loss, &last) {
        let (doing, source) = ("follow a process to its end".into(), said.clone().into());
        return Err(SandboxError::Backend { doing, source });
    }
    let (end, words) = match sandbox.end(last, request).await? {
        Some(ended) => ended,
        None => return Err(SandboxError::UsedUp { what: "processes" }),
    };
    let _ = stderr.write_all(words.as_bytes()).await;
    Ok(end)
}
