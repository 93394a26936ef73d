//! Bytes that go both ways between this process and something in a sandbox.

use std::fmt;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

use crate::SandboxError;

/// How long a sandbox may take to accept or refuse a connection.
const ANSWER: Duration = Duration::from_secs(10);
/// Waits between two tries grow from the first to the second.
const WAITS: [Duration; 2] = [Duration::from_millis(2), Duration::from_millis(200)];

/// Bytes that go both ways between this process and something in a sandbox: a
/// [connection](crate::Sandbox::connect), or a [terminal](crate::PtyProcess).
///
/// Neither side can make the other hold more than a few hundred kilobytes: who writes faster than is read
/// waits. Dropping it closes it.
pub struct ByteStream {
    stream: Box<dyn ReadWrite>,
}

trait ReadWrite: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> ReadWrite for T {}

impl ByteStream {
    /// One that reads from and writes to `stream`.
    pub fn new(stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static) -> Self {
        Self { stream: Box::new(stream) }
    }
}

impl fmt::Debug for ByteStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ByteStream").finish_non_exhaustive()
    }
}

impl AsyncRead for ByteStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for ByteStream {
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
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

/// Connects by `attempt`, again and again for as long as `patience` says where nobody listens.
pub(crate) async fn connect_by<T, F>(
    port: u16,
    patience: Duration,
    mut attempt: impl FnMut() -> F + Send,
) -> Result<T, SandboxError>
where
    F: Future<Output = Result<T, SandboxError>> + Send,
{
    let begun = Instant::now();
    // Far enough where adding would overflow.
    let until = begun.checked_add(patience).unwrap_or_else(|| begun + Duration::from_secs(1 << 30));
    let [mut wait, longest] = WAITS;
    loop {
        let answer = until.max(Instant::now() + ANSWER);
        let tried = tokio::time::timeout_at(answer, attempt()).await;
        match tried.unwrap_or(Err(SandboxError::ConnectTimedOut { port, after: begun.elapsed() })) {
            Err(SandboxError::NotListening { .. }) if Instant::now() + wait < until => {
                tokio::time::sleep(wait).await;
                wait = (wait * 2).min(longest);
            }
            tried => return tried,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn one_that_listens_late_is_waited_for_and_one_that_never_does_is_told() {
        let begun = Instant::now();
        let listens = async || match begun.elapsed() < Duration::from_secs(3) {
            true => Err(SandboxError::NotListening { port: 80 }),
            false => Ok(()),
        };
        let at_once = connect_by(80, Duration::ZERO, &listens).await;
        assert!(matches!(at_once, Err(SandboxError::NotListening { port: 80 })));
        assert!(begun.elapsed() < Duration::from_millis(1));
        let soon = connect_by(80, Duration::from_secs(1), &listens).await;
        assert!(matches!(soon, Err(SandboxError::NotListening { port: 80 })));
        assert!(begun.elapsed() <= Duration::from_secs(1));
        connect_by(80, Duration::MAX, &listens).await.unwrap();
        assert!(begun.elapsed() < Duration::from_secs(4));
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_does_not_answer_is_given_up() {
        let silent = || std::future::pending::<Result<(), SandboxError>>();
        let begun = Instant::now();
        let given_up = connect_by(80, Duration::ZERO, silent).await;
        assert!(
            matches!(given_up, Err(SandboxError::ConnectTimedOut { port: 80, after }) if after >= ANSWER)
        );
        assert!(begun.elapsed() < ANSWER * 2);
    }

    #[tokio::test(start_paused = true)]
    async fn trouble_of_another_kind_is_told_at_once() {
        let mut tries = 0;
        let failed = connect_by(80, Duration::from_secs(9), || {
            tries += 1;
            async { Err::<(), _>(SandboxError::UsedUp { what: "processes" }) }
        });
        assert!(matches!(failed.await, Err(SandboxError::UsedUp { .. })));
        assert_eq!(tries, 1);
    }
}
