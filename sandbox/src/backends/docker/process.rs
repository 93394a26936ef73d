//! Processes in a container that their starter talks to.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream, ReadBuf};
use tokio::sync::{mpsc, oneshot, watch};

use super::conversation::{Conversation, Said};
use super::input::{Input, Operated};
use super::sandbox::Shared;
use crate::pty::with_term;
use crate::{
    ByteStream, ExecEnd, ExecRequest, Process, ProcessHandle, PtyProcess, PtySize, PtyWindow,
    SandboxError,
};

/// Bytes of a stream that wait to be read.
const BUFFER: usize = 1 << 16;
/// Pieces of the input that wait for the helper.
const QUEUE: usize = 2;
/// How long a terminal that was hung up waits for what was typed before.
const LAST_KEYS: Duration = Duration::from_secs(1);

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
    let (input, receiver) = mpsc::channel(QUEUE);
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
    let (keys, typed) = mpsc::channel(QUEUE);
    let (resize, resized) = mpsc::channel(1);
    let (hang_up, hung_up) = oneshot::channel();
    let operated = Operated { keys: typed, sizes: resized, hung_up };
    let operator = Operator { keys, resize, _hang_up: hang_up };
    let begun =
        sandbox.begin(&request, Some(size), request.timeout, Input::Terminal(operated)).await?;
    let conversation = begun.ok_or(SandboxError::UsedUp { what: "processes" })?;
    let (stream, ours) = tokio::io::duplex(BUFFER);
    let (in_use, unused) = oneshot::channel();
    let terminal = TerminalEnd { stream, in_use: Some(in_use) };
    let (sizes, changes) = watch::channel(size);
    let sandbox = Arc::clone(sandbox);
    let handle = ProcessHandle::of(async move |hung_up| {
        let (from_caller, to_caller) = tokio::io::split(ours);
        let outputs = Outputs { stdout: to_caller, stderr: None };
        let follow = follow(&sandbox, &request, Loss::IsCleared, conversation, outputs, hung_up);
        let operate = operator.operate(from_caller, changes, unused);
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

/// The caller's end of a terminal. It tells at once that it is shut down or dropped, which its stream tells
/// only behind what was typed.
struct TerminalEnd {
    stream: DuplexStream,
    /// Absent once it is shut down.
    in_use: Option<oneshot::Sender<()>>,
}

impl AsyncRead for TerminalEnd {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for TerminalEnd {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.in_use = None;
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

/// Does at a terminal what the caller does.
struct Operator {
    keys: mpsc::Sender<Bytes>,
    resize: mpsc::Sender<PtySize>,
    /// Dropping it hangs the terminal up.
    _hang_up: oneshot::Sender<()>,
}

impl Operator {
    /// Takes what the caller types, and how large the terminal is to be, to the conversation, until some time
    /// after `unused`: by then the last keys have been taken, or nobody takes them.
    async fn operate(
        self,
        from: impl AsyncRead + Unpin,
        mut sizes: watch::Receiver<PtySize>,
        unused: oneshot::Receiver<()>,
    ) {
        let typing = feed(from, self.keys);
        let resizing = async {
            while sizes.changed().await.is_ok() {
                let size = *sizes.borrow_and_update();
                if self.resize.send(size).await.is_err() {
                    return;
                }
            }
        };
        let hanging_up = async {
            let _ = unused.await;
            tokio::time::sleep(LAST_KEYS).await;
        };
        tokio::select! {
            () = hanging_up => {}
            () = async { tokio::join!(typing, resizing); std::future::pending().await } => {}
        }
    }
}

/// Takes what the caller writes to the conversation.
async fn feed(mut from: impl AsyncRead + Unpin, to: mpsc::Sender<Bytes>) {
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

    /// As [`Outputs::write`]; a reader who takes his time does not hold up the process's input.
    async fn write_and_feed(
        &mut self,
        bytes: &[u8],
        is_error: bool,
        conversation: &mut Conversation<'_>,
    ) {
        tokio::select! {
            biased;
            () = self.write(bytes, is_error) => {}
            never = conversation.feed() => match never {},
        }
    }
}

/// Hands on what the process writes until it ends, or until the caller hangs up.
async fn follow(
    sandbox: &Shared,
    request: &ExecRequest,
    loss: Loss,
    mut conversation: Conversation<'static>,
    mut outputs: Outputs<impl AsyncWrite + Unpin>,
    mut hung_up: oneshot::Receiver<()>,
) -> Result<ExecEnd, SandboxError> {
    let hand_on = async {
        loop {
            match sandbox.hear(&mut conversation).await? {
                Said::Stdout(bytes) => {
                    outputs.write_and_feed(&bytes, false, &mut conversation).await
                }
                Said::Stderr(bytes) => {
                    outputs.write_and_feed(&bytes, true, &mut conversation).await
                }
                last => return Ok::<_, SandboxError>(last),
            }
        }
    };
    let last = tokio::select! {
        last = hand_on => last?,
        _ = &mut hung_up => {
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
    tokio::select! {
        () = outputs.write(words.as_bytes(), true) => {}
        _ = hung_up => {}
    }
    Ok(end)
}
