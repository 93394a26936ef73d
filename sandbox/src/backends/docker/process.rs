//! Processes in a container that their starter talks to.

use std::sync::Arc;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream};
use tokio::sync::{mpsc, oneshot, watch};

use super::conversation::{Conversation, Input, Said, Typed};
use super::sandbox::Shared;
use crate::pty::with_term;
use crate::{
    ByteStream, ExecEnd, ExecRequest, Process, ProcessHandle, PtyProcess, PtySize, PtyWindow,
    SandboxError,
};

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
    let begun = sandbox.begin(request, None, request.timeout, Input::Channel(receiver)).await?;
    let conversation = begun.ok_or(SandboxError::UsedUp { what: "processes" })?;
    let (stdin, from_caller) = tokio::io::duplex(BUFFER);
    let (stdout, to_stdout) = tokio::io::duplex(BUFFER);
    let (stderr, to_stderr) = tokio::io::duplex(BUFFER);
    let (sandbox, request) = (Arc::clone(sandbox), request.clone());
    let handle = ProcessHandle::of(async move |hung_up| {
        let outputs = Outputs { stdout: to_stdout, stderr: Some(to_stderr) };
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

/// Starts a command on a terminal.
pub(super) async fn spawn_pty(
    sandbox: &Arc<Shared>,
    request: &ExecRequest,
    size: PtySize,
) -> Result<PtyProcess, SandboxError> {
    let request = with_term(request, &sandbox.spec.env);
    let (input, receiver) = mpsc::channel(8);
    let begun =
        sandbox.begin(&request, Some(size), request.timeout, Input::Terminal(receiver)).await?;
    let conversation = begun.ok_or(SandboxError::UsedUp { what: "processes" })?;
    let (terminal, ours) = tokio::io::duplex(BUFFER);
    let (sizes, changes) = watch::channel(size);
    let sandbox = Arc::clone(sandbox);
    let handle = ProcessHandle::of(async move |hung_up| {
        let (from_caller, to_caller) = tokio::io::split(ours);
        let outputs = Outputs { stdout: to_caller, stderr: None };
        let follow = follow(&sandbox, &request, Loss::IsCleared, conversation, outputs, hung_up);
        let operate = operate(from_caller, changes, input);
        tokio::pin!(follow, operate);
        tokio::select! {
            end = &mut follow => end,
            // The channel's end hangs the terminal up.
            () = &mut operate => follow.await,
        }
    });
    let window = PtyWindow::new(move |size| {
        sizes.send_replace(size);
        Ok(())
    });
    Ok(PtyProcess { terminal: ByteStream::new(terminal), window, handle })
}

/// Takes what the caller types, and how large the terminal is to be, to the conversation.
async fn operate(
    mut from: impl AsyncRead + Unpin,
    mut sizes: watch::Receiver<PtySize>,
    to: mpsc::Sender<Typed>,
) {
    let mut buffer = vec![0; BUFFER];
    loop {
        let typed = tokio::select! {
            read = from.read(&mut buffer) => match read {
                Ok(count @ 1..) => Typed::Bytes(Bytes::copy_from_slice(&buffer[..count])),
                _ => return,
            },
            Ok(()) = sizes.changed() => Typed::Size(*sizes.borrow_and_update()),
        };
        if to.send(typed).await.is_err() {
            return;
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

/// Where what a process writes is handed on.
struct Outputs<W> {
    stdout: W,
    /// Absent on a terminal, which is one stream.
    stderr: Option<DuplexStream>,
}

impl<W: AsyncWrite + Unpin> Outputs<W> {
    /// Nobody reading is no reason to stop: the process must not wait for ever.
    async fn write(&mut self, bytes: &[u8], is_error: bool) {
        let _ = match &mut self.stderr {
            Some(stderr) if is_error => stderr.write_all(bytes).await,
            _ => self.stdout.write_all(bytes).await,
        };
    }
}

/// Hands on what the process writes until it ends, or until the caller hangs up.
async fn follow(
    sandbox: &Shared,
    request: &ExecRequest,
    loss: Loss,
    mut conversation: Conversation<'static>,
    mut outputs: Outputs<impl AsyncWrite + Unpin>,
    hung_up: oneshot::Receiver<()>,
) -> Result<ExecEnd, SandboxError> {
    let hand_on = async {
        loop {
            match sandbox.hear(&mut conversation).await? {
                Said::Stdout(bytes) => outputs.write(&bytes, false).await,
                Said::Stderr(bytes) => outputs.write(&bytes, true).await,
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
    outputs.write(words.as_bytes(), true).await;
    Ok(end)
}
