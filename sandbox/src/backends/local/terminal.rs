//! Our side of a pseudo-terminal.

use std::io;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use rustix::io::Errno;
use rustix::termios::{Winsize, tcsetwinsize};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::sync::oneshot;

use super::backend_error;
use crate::{PtySize, PtyWindow};

/// What is still shown once the process has ended: more than a terminal holds. What the process left
/// behind may open the terminal again and write to it without end.
const REST_BYTES: usize = 1 << 20;

/// The side of a terminal that types and looks. Absent once it was hung up.
pub(super) struct Terminal(Option<Side>);

/// The terminal three times; it is hung up once all are closed.
struct Side {
    shown: Receiver,
    typed: Sender,
    size: Arc<OwnedFd>,
    /// Until the process has ended.
    runs: Option<oneshot::Receiver<()>>,
    rest_bytes: usize,
}

impl Terminal {
    /// Takes over `fd`, which does not wait. Its end comes where the other end of `runs` is dropped: what
    /// the process left behind may hold the terminal open, but cannot use it.
    pub(super) fn new(fd: OwnedFd, runs: oneshot::Receiver<()>) -> io::Result<Self> {
        // It is no pipe, but is read, written and waited for like one.
        let shown = Receiver::from_owned_fd_unchecked(fd.try_clone()?)?;
        let typed = Sender::from_owned_fd_unchecked(fd.try_clone()?)?;
        let (size, runs) = (Arc::new(fd), Some(runs));
        Ok(Self(Some(Side { shown, typed, size, runs, rest_bytes: REST_BYTES })))
    }

    /// What changes its size; it does not keep the terminal open.
    pub(super) fn window(&self) -> PtyWindow {
        let terminal = self.0.as_ref().map(|side| Arc::downgrade(&side.size)).unwrap_or_default();
        PtyWindow::new(move |PtySize { rows, columns }| {
            let Some(terminal) = terminal.upgrade() else { return Ok(()) };
            let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
            let changed = tcsetwinsize(terminal, size);
            changed.map_err(|error| backend_error("resize a terminal")(error.into()))
        })
    }
}

impl AsyncRead for Terminal {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Some(side) = &mut self.0 else { return Poll::Ready(Ok(())) };
        if let Some(runs) = &mut side.runs {
            match Pin::new(&mut side.shown).poll_read(context, buffer) {
                // Nobody holds the other side any more.
                Poll::Ready(Err(error)) if is_gone(&error) => return Poll::Ready(Ok(())),
                Poll::Ready(read) => return Poll::Ready(read),
                Poll::Pending => {}
            }
            let _ = ready!(Pin::new(runs).poll(context));
            side.runs = None;
        }
        // Read directly: what was written just now need not have been announced yet.
        let room = buffer.remaining().min(side.rest_bytes);
        match rustix::io::read(&side.size, buffer.initialize_unfilled_to(room)) {
            Ok(count) => {
                side.rest_bytes -= count;
                buffer.advance(count);
                Poll::Ready(Ok(()))
            }
            Err(Errno::IO | Errno::AGAIN) => Poll::Ready(Ok(())),
            Err(error) => Poll::Ready(Err(error.into())),
        }
    }
}

impl AsyncWrite for Terminal {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let gone = || Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        let Some(side) = &mut self.0 else { return gone() };
        match ready!(Pin::new(&mut side.typed).poll_write(context, bytes)) {
            Err(error) if is_gone(&error) => gone(),
            written => Poll::Ready(written),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0 = None;
        Poll::Ready(Ok(()))
    }
}

fn is_gone(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::IO.raw_os_error())
}
