//! What the helper is given, frame by frame.
//!
//! `helper/wire.rs` describes the frames.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use tokio::sync::mpsc::Receiver;
use tokio::sync::oneshot;

use crate::PtySize;

/// The most bytes of one frame, where frames may be cut.
const CHUNK: usize = 1 << 16;
/// Bytes of a command's input that may be under way before the helper has said that the command took them.
/// It has room for as many: so it always reads what comes behind them, and the end of the connection.
const WINDOW: usize = 256 << 10;

/// What the operation reads.
pub(super) enum Input<'a> {
    Bytes(&'a [u8]),
    /// Comes bit by bit; the channel's end is its end.
    Channel(Receiver<Bytes>),
    /// What is done at a terminal.
    Terminal(Operated),
}

/// What is done at a terminal.
pub(super) struct Operated {
    /// What is typed; the channel's end hangs the terminal up.
    pub(super) keys: Receiver<Bytes>,
    /// Its new sizes, which do not wait behind keys.
    pub(super) sizes: Receiver<PtySize>,
    /// Once this is told, or nobody can tell it any more, the terminal is hung up, whatever waits to be typed.
    pub(super) hung_up: oneshot::Receiver<()>,
}

/// Makes frames of an input.
pub(super) struct InputFrames<'a> {
    input: Input<'a>,
    /// Taken from the input and not sent yet.
    unsent: Bytes,
    /// Sent and not acknowledged; absent for operations that acknowledge nothing.
    under_way: Option<usize>,
    has_ended: bool,
}

impl<'a> InputFrames<'a> {
    pub(super) fn new(input: Input<'a>) -> Self {
        Self { input, unsent: Bytes::new(), under_way: None, has_ended: false }
    }

    /// From now on sends no more than the window has room for.
    pub(super) fn expect_acknowledgements(&mut self) {
        self.under_way = Some(0);
    }

    /// So many more bytes have been taken by the command.
    pub(super) fn acknowledge(&mut self, bytes: usize) {
        // The helper cannot have passed on more than there was.
        self.under_way = self.under_way.map(|under_way| under_way.saturating_sub(bytes));
    }

    /// Whether the end was the last frame.
    pub(super) fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// No more frames: nobody takes them.
    pub(super) fn cut(&mut self) {
        self.has_ended = true;
    }

    /// The next frame, of which the last is the end; not to be asked for behind that.
    pub(super) fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Bytes> {
        if let Input::Terminal(operated) = &mut self.input {
            if Pin::new(&mut operated.hung_up).poll(context).is_ready() {
                return Poll::Ready(self.end());
            }
            if let Poll::Ready(Some(size)) = operated.sizes.poll_recv(context) {
                return Poll::Ready(resizing(size));
            }
        }
        // An empty frame would be the end.
        while self.unsent.is_empty() {
            match ready!(self.input.poll_next(context)) {
                Some(bytes) => self.unsent = bytes,
                None => return Poll::Ready(self.end()),
            }
        }
        let Some(under_way) = &mut self.under_way else {
            return Poll::Ready(framed(&std::mem::take(&mut self.unsent)));
        };
        let count = self.unsent.len().min(WINDOW - *under_way).min(CHUNK);
        if count == 0 {
            // Whoever acknowledges asks again.
            return Poll::Pending;
        }
        *under_way += count;
        Poll::Ready(framed(&self.unsent.split_to(count)))
    }

    fn end(&mut self) -> Bytes {
        self.has_ended = true;
        framed(&[])
    }
}

impl Input<'_> {
    /// The next bytes; absent at the end.
    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        match self {
            Self::Bytes([]) => Poll::Ready(None),
            Self::Bytes(bytes) => {
                let (chunk, rest) = bytes.split_at(bytes.len().min(CHUNK));
                *bytes = rest;
                Poll::Ready(Some(Bytes::copy_from_slice(chunk)))
            }
            Self::Channel(channel) | Self::Terminal(Operated { keys: channel, .. }) => {
                channel.poll_recv(context)
            }
        }
    }
}

/// A frame of these bytes; without any it is the end.
fn framed(bytes: &[u8]) -> Bytes {
    let mut frame = BytesMut::with_capacity(bytes.len() + 4);
    frame.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
    frame.extend_from_slice(bytes);
    frame.freeze()
}

/// A frame that gives a terminal another size.
fn resizing(PtySize { rows, columns }: PtySize) -> Bytes {
    let mut frame = BytesMut::with_capacity(8);
    frame.extend_from_slice(&u32::MAX.to_le_bytes());
    frame.extend_from_slice(&rows.to_le_bytes());
    frame.extend_from_slice(&columns.to_le_bytes());
    frame.freeze()
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc;

    use super::*;

    fn next(frames: &mut InputFrames<'_>) -> Option<Bytes> {
        match frames.poll_next(&mut Context::from_waker(std::task::Waker::noop())) {
            Poll::Ready(frame) => Some(frame),
            Poll::Pending => None,
        }
    }

    /// Bytes of input in the frames that come now.
    fn sent(frames: &mut InputFrames<'_>) -> usize {
        let mut sent = 0;
        while !frames.has_ended()
            && let Some(frame) = next(frames)
        {
            let length = u32::from_le_bytes(frame[..4].try_into().unwrap()) as usize;
            assert_eq!(length, frame.len() - 4);
            sent += length;
        }
        sent
    }

    #[test]
    fn no_more_is_under_way_than_the_window_holds() {
        let bytes = vec![7; 3 * WINDOW];
        let mut frames = InputFrames::new(Input::Bytes(&bytes));
        frames.expect_acknowledgements();
        assert_eq!(sent(&mut frames), WINDOW);
        frames.acknowledge(1000);
        assert_eq!(sent(&mut frames), 1000);
        // What cannot be true gives no more room than there is.
        frames.acknowledge(10 * WINDOW);
        assert_eq!(sent(&mut frames), WINDOW);
        assert!(!frames.has_ended());
        frames.acknowledge(WINDOW);
        assert_eq!(sent(&mut frames), WINDOW - 1000);
        assert!(frames.has_ended());
        let mut frames = InputFrames::new(Input::Bytes(&bytes));
        assert_eq!(sent(&mut frames), bytes.len(), "nothing is acknowledged");
    }

    #[test]
    fn sizes_and_hanging_up_overtake_keys_that_wait() {
        let (keys, receiver) = mpsc::channel(8);
        let (sizes, changes) = mpsc::channel(1);
        let (hang_up, hung_up) = oneshot::channel();
        let operated = Operated { keys: receiver, sizes: changes, hung_up };
        let mut frames = InputFrames::new(Input::Terminal(operated));
        frames.expect_acknowledgements();
        keys.try_send(Bytes::from(vec![7; WINDOW])).unwrap();
        keys.try_send(Bytes::from_static(b"more")).unwrap();
        assert_eq!(sent(&mut frames), WINDOW);
        sizes.try_send(PtySize { rows: 3, columns: 4 }).unwrap();
        assert_eq!(next(&mut frames).as_deref(), Some(&[255, 255, 255, 255, 3, 0, 4, 0][..]));
        assert_eq!(next(&mut frames), None);
        drop(hang_up);
        assert_eq!(next(&mut frames).as_deref(), Some(&[0; 4][..]));
        assert!(frames.has_ended());
    }
}
