//! Connections of a sandbox that are carried over the standard streams of one helper.
//!
//! `helper/relay.rs` describes what is spoken. A [`Stream`] is one connection as the frames find it; a
//! task of its own moves its bytes, by [`inward`] and [`outward`].

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use bytes::{Buf, BufMut, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc::{self, Sender, UnboundedReceiver, UnboundedSender};
use tokio::sync::{Notify, Semaphore};

/// What the helper may send of a stream, and what it has room for, without word from here.
pub(super) const WINDOW: usize = 256 << 10;
/// What was handed on before that is worth a credit.
const WORTH_A_CREDIT: usize = WINDOW / 4;
/// Bytes of a stream in one frame.
pub(super) const CHUNK: usize = 32 << 10;
/// Frames on their way to the helper.
pub(super) const QUEUE: usize = 16;

pub(super) const READY: u8 = 0;
pub(super) const OPEN: u8 = 1;
pub(super) const DATA: u8 = 2;
pub(super) const CREDIT: u8 = 3;
pub(super) const END: u8 = 4;
pub(super) const CLOSE: u8 = 5;
pub(super) const DIAL: u8 = 6;
pub(super) const REFUSED: u8 = 7;

/// One connection as the frames find it.
pub(super) struct Stream {
    /// Absent once the side in the sandbox has ended.
    bytes: Option<UnboundedSender<Bytes>>,
    pub(super) shared: Arc<Carried>,
    is_closed_inside: bool,
}

/// What a connection's own task has in common with the frames.
pub(super) struct Carried {
    /// Bytes that came and are not credited yet.
    waiting: AtomicUsize,
    /// Bytes that may be sent.
    credit: Semaphore,
    /// The side in the sandbox has said its last word.
    pub(super) gone: Notify,
    /// It has ended by itself, with all that it had to say.
    pub(super) has_ended: AtomicBool,
    /// This side has said its last word.
    pub(super) is_closed: AtomicBool,
}

impl Stream {
    /// A new one, and what comes out of it.
    pub(super) fn new() -> (Self, UnboundedReceiver<Bytes>) {
        let shared = Arc::new(Carried {
            waiting: AtomicUsize::new(0),
            credit: Semaphore::new(WINDOW),
            gone: Notify::new(),
            has_ended: AtomicBool::new(false),
            is_closed: AtomicBool::new(false),
        });
        // As much as the window at the most, which `obey` watches over.
        let (sender, receiver) = mpsc::unbounded_channel();
        (Self { bytes: Some(sender), shared, is_closed_inside: false }, receiver)
    }

    /// Whether both sides have said their last word.
    pub(super) fn is_over(&self) -> bool {
        self.is_closed_inside && self.shared.is_closed.load(Ordering::Acquire)
    }

    /// Does what a frame about it says. Waits for nothing: whoever waited here would hold up all streams.
    pub(super) fn obey(&mut self, kind: u8, bytes: Bytes) -> Result<(), &'static str> {
        if self.is_closed_inside {
            return Err("a word after the last");
        }
        match kind {
            DATA => {
                let carried = &self.shared.waiting;
                let waiting = carried.fetch_add(bytes.len(), Ordering::AcqRel) + bytes.len();
                if bytes.is_empty() || waiting > WINDOW {
                    return Err("more bytes than it had credit for");
                }
                match &self.bytes {
                    // Nobody takes them any more where the host has ended.
                    Some(sender) => drop(sender.send(bytes)),
                    None => return Err("bytes after the end"),
                }
            }
            CREDIT => {
                let credit = <[u8; 4]>::try_from(&bytes[..]).map_err(|_| "half a number")?;
                let credit = u32::from_le_bytes(credit) as usize;
                let semaphore = &self.shared.credit;
                if credit > WINDOW - semaphore.available_permits().min(WINDOW) {
                    return Err("more credit than there is");
                }
                semaphore.add_permits(credit);
            }
            END => {
                self.shared.has_ended.store(true, Ordering::Release);
                self.bytes = None;
            }
            CLOSE => {
                self.bytes = None;
                self.is_closed_inside = true;
                self.shared.gone.notify_one();
            }
            _ => return Err("a word that is not known"),
        }
        Ok(())
    }
}

/// Hands on what comes from inside, to its end; false once nobody takes it any more.
pub(super) async fn inward(
    number: u16,
    bytes: &mut UnboundedReceiver<Bytes>,
    to: &mut (impl AsyncWrite + Unpin),
    shared: &Carried,
    out: &Sender<Bytes>,
) -> bool {
    let (mut handed_on, mut is_taken) = (0, true);
    while let Some(part) = bytes.recv().await {
        is_taken = to.write_all(&part).await.is_ok();
        handed_on += part.len();
        if handed_on >= WORTH_A_CREDIT {
            shared.waiting.fetch_sub(handed_on, Ordering::AcqRel);
            let _ = out.send(frame(CREDIT, number, &(handed_on as u32).to_le_bytes())).await;
            handed_on = 0;
        }
        if !is_taken {
            break;
        }
    }
    is_taken
}

/// Sends what comes from out here, and that it has ended.
pub(super) async fn outward(
    number: u16,
    from: &mut (impl AsyncRead + Unpin),
    shared: &Carried,
    out: &Sender<Bytes>,
) {
    let mut buffer = vec![0; CHUNK];
    while let Ok(count @ 1..) = from.read(&mut buffer).await {
        let Ok(permits) = shared.credit.acquire_many(count as u32).await else { return };
        permits.forget();
        if out.send(frame(DATA, number, &buffer[..count])).await.is_err() {
            return;
        }
    }
    let _ = out.send(frame(END, number, &[])).await;
}

/// A frame without the length before it, which the conversation adds.
pub(super) fn frame(kind: u8, number: u16, bytes: &[u8]) -> Bytes {
    let mut frame = BytesMut::with_capacity(4 + bytes.len());
    frame.put_u8(kind);
    frame.put_u8(0);
    frame.put_u16_le(number);
    frame.put_slice(bytes);
    frame.freeze()
}

/// One word of the helper.
pub(super) struct Frame {
    pub(super) kind: u8,
    pub(super) number: u16,
    pub(super) bytes: Bytes,
}

/// Takes what the helper writes apart into frames.
#[derive(Default)]
pub(super) struct Frames {
    buffer: BytesMut,
}

impl Frames {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    pub(super) fn next(&mut self) -> Result<Option<Frame>, &'static str> {
        let Some(header) = self.buffer.get(..4) else { return Ok(None) };
        let length = u32::from_le_bytes(header.try_into().expect("4 bytes")) as usize;
        if !(4..=4 + CHUNK).contains(&length) {
            return Err("a frame of no possible length");
        }
        if self.buffer.len() < 4 + length {
            return Ok(None);
        }
        self.buffer.advance(4);
        let mut frame = self.buffer.split_to(length).freeze();
        let kind = frame.get_u8();
        frame.advance(1);
        let number = frame.get_u16_le();
        Ok(Some(Frame { kind, number, bytes: frame }))
    }
}
