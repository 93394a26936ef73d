//! The way out of a container with an allow-list.
//!
//! ```text
//!   container, no network                    │  this process
//!   client ──▶ 127.0.0.1:3128 exec relay ────┼─ standard streams ─▶ Relay ──▶ carry ──▶ Proxy
//! ```
//!
//! Nothing but the engine is needed, wherever it runs. `helper/relay.rs` describes what is spoken.
//! A container has one relay; commands start only while it works, or can be started anew.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex, split};
use tokio::sync::mpsc::{self, Sender, UnboundedReceiver, UnboundedSender};
use tokio::sync::{Mutex, Notify, Semaphore};
use tokio::task::{JoinHandle, JoinSet};

use super::conversation::{Conversation, Input, Said, Status, Surroundings};
use super::sandbox::{ROOM_MS, Shared};
use crate::allow_list::{NetworkStats, PORT, Proxy};
use crate::{NetworkPolicy, SandboxError};

/// How long the relay may take to listen.
const START: Duration = Duration::from_secs(60);
/// What the relay may send of a stream, and what it has room for, without word from here.
const WINDOW: usize = 256 << 10;
/// What was handed on before that is worth a credit.
const WORTH_A_CREDIT: usize = WINDOW / 4;
/// Bytes of a stream in one frame.
const CHUNK: usize = 32 << 10;
/// Numbers that streams may have.
const STREAMS: u16 = 64;
/// Frames on their way to the relay.
const QUEUE: usize = 16;
/// The port is another program's.
const EADDRINUSE: u32 = 98;

const READY: u8 = 0;
const OPEN: u8 = 1;
const DATA: u8 = 2;
const CREDIT: u8 = 3;
const END: u8 = 4;
const CLOSE: u8 = 5;

/// The relay of one sandbox, and the proxy behind it.
pub(super) struct Relay {
    proxy: Arc<Proxy>,
    running: Mutex<Option<JoinHandle<()>>>,
}

impl Relay {
    /// For a sandbox of this name, where its policy is a list.
    pub(super) fn new(sandbox: &str, policy: &NetworkPolicy) -> Option<Self> {
        let NetworkPolicy::Allow { hosts, max_bytes } = policy else { return None };
        let proxy = Arc::new(Proxy::new(sandbox, hosts, *max_bytes));
        Some(Self { proxy, running: Mutex::default() })
    }

    pub(super) fn stats(&self) -> NetworkStats {
        self.proxy.stats()
    }

    /// Makes sure that it works: the first time, and after something has killed it.
    pub(super) async fn ensure(&self, sandbox: &Shared) -> Result<(), SandboxError> {
        let mut running = self.running.lock().await;
        if running.as_ref().is_some_and(|task| !task.is_finished()) {
            return Ok(());
        }
        let mut started = self.start(sandbox).await;
        for wait in ROOM_MS {
            if !matches!(started, Err(Trouble::PortTaken)) {
                break;
            }
            // Something that was left running inside is in its place.
            sandbox.sweep().await?;
            tokio::time::sleep(Duration::from_millis(wait)).await;
            started = self.start(sandbox).await;
        }
        *running = Some(started.map_err(|trouble| match trouble {
            Trouble::PortTaken => failed(io::Error::from(io::ErrorKind::AddrInUse)),
            Trouble::Other(error) => error,
        })?);
        Ok(())
    }

    async fn start(&self, sandbox: &Shared) -> Result<JoinHandle<()>, Trouble> {
        // As root, whom commands of other users cannot end.
        let surroundings = Surroundings { user: Some("0".into()), ..Default::default() };
        let (out, queue) = mpsc::channel(QUEUE);
        let operation = vec!["relay".to_owned(), PORT.to_string(), sandbox.engine.heartbeat()];
        let starting = async {
            let mut conversation =
                sandbox.converse(operation, surroundings, Input::Channel(queue)).await?;
            let mut frames = Frames::default();
            loop {
                match conversation.next().await {
                    Said::Stdout(bytes) => frames.push(&bytes),
                    Said::Stderr(_) => {}
                    Said::Status(Status { value: EADDRINUSE, .. }) => {
                        return Err(Trouble::PortTaken);
                    }
                    Said::Status(status) => {
                        let error = io::Error::from_raw_os_error(status.value as i32);
                        return Err(failed(error).into());
                    }
                    Said::Broken(said) => {
                        return Err(sandbox
                            .broken("start the relay of the sandbox", said)
                            .await
                            .into());
                    }
                }
                match frames.next() {
                    Ok(Some(Frame { kind: READY, .. })) => return Ok((conversation, frames)),
                    Ok(None) => {}
                    Ok(Some(_)) | Err(_) => {
                        return Err(failed(io::ErrorKind::InvalidData.into()).into());
                    }
                }
            }
        };
        let (conversation, frames) = tokio::time::timeout(START, starting)
            .await
            .map_err(|_| failed(io::ErrorKind::TimedOut.into()))??;
        let streams = Streams {
            proxy: Arc::clone(&self.proxy),
            out,
            frames,
            streams: HashMap::new(),
            carrying: JoinSet::new(),
        };
        let name = sandbox.name.clone();
        Ok(tokio::spawn(async move {
            let why = streams.work(conversation).await;
            tracing::warn!(sandbox = name, "the relay of a sandbox ended: {why}");
        }))
    }

    /// Ends it with all its connections.
    pub(super) async fn end(&self) {
        if let Some(task) = self.running.lock().await.take() {
            task.abort();
            // That it was ended is no news.
            let _ = task.await;
        }
    }
}

/// Why a relay does not start.
enum Trouble {
    PortTaken,
    Other(SandboxError),
}

impl From<SandboxError> for Trouble {
    fn from(error: SandboxError) -> Self {
        Self::Other(error)
    }
}

fn failed(error: io::Error) -> SandboxError {
    SandboxError::Backend {
        doing: format!("start the relay of the sandbox's network on its port {PORT}"),
        source: Box::new(error),
    }
}

/// All connections of a relay.
struct Streams {
    proxy: Arc<Proxy>,
    out: Sender<Bytes>,
    frames: Frames,
    streams: HashMap<u16, Stream>,
    carrying: JoinSet<()>,
}

/// One connection as the relay's frames find it.
struct Stream {
    /// Absent once the client has ended.
    bytes: Option<UnboundedSender<Bytes>>,
    shared: Arc<Carried>,
    client_closed: bool,
}

/// What a connection's own task has in common with the frames.
struct Carried {
    /// Bytes that came and are not credited yet.
    waiting: AtomicUsize,
    /// Bytes that may be sent.
    credit: Semaphore,
    client_gone: Notify,
    is_closed: AtomicBool,
}

impl Streams {
    /// Works until the relay ends; why it did.
    async fn work(mut self, mut conversation: Conversation<'static>) -> String {
        loop {
            loop {
                match self.frames.next() {
                    Ok(Some(frame)) => {
                        if let Err(what) = self.obey(frame) {
                            return format!("it said what it may not: {what}");
                        }
                    }
                    Ok(None) => break,
                    Err(what) => return format!("it said what it may not: {what}"),
                }
            }
            while self.carrying.try_join_next().is_some() {}
            match conversation.next().await {
                Said::Stdout(bytes) => self.frames.push(&bytes),
                Said::Stderr(_) => {}
                Said::Status(status) => return format!("it failed with error {}", status.value),
                Said::Broken(said) => return said,
            }
        }
    }

    /// Does what a frame says. Waits for nothing: whoever waited here would hold up all streams.
    fn obey(&mut self, frame: Frame) -> Result<(), &'static str> {
        let Frame { kind, number, bytes } = frame;
        if kind == OPEN {
            return self.open(number);
        }
        let stream = self.streams.get_mut(&number).ok_or("a stream that is not open")?;
        if stream.client_closed {
            return Err("a word after the last");
        }
        match kind {
            DATA => {
                let carried = &stream.shared.waiting;
                let waiting = carried.fetch_add(bytes.len(), Ordering::AcqRel) + bytes.len();
                if bytes.is_empty() || waiting > WINDOW {
                    return Err("more bytes than it had credit for");
                }
                match &stream.bytes {
                    // Nobody takes them any more where the host has ended.
                    Some(sender) => drop(sender.send(bytes)),
                    None => return Err("bytes after the end"),
                }
            }
            CREDIT => {
                let credit = <[u8; 4]>::try_from(&bytes[..]).map_err(|_| "half a number")?;
                let credit = u32::from_le_bytes(credit) as usize;
                let semaphore = &stream.shared.credit;
                if credit > WINDOW - semaphore.available_permits().min(WINDOW) {
                    return Err("more credit than there is");
                }
                semaphore.add_permits(credit);
            }
            END => stream.bytes = None,
            CLOSE => {
                stream.bytes = None;
                stream.client_closed = true;
                stream.shared.client_gone.notify_one();
                if stream.shared.is_closed.load(Ordering::Acquire) {
                    self.streams.remove(&number);
                }
            }
            _ => return Err("a word that is not known"),
        }
        Ok(())
    }

    fn open(&mut self, number: u16) -> Result<(), &'static str> {
        let is_over = |stream: &Stream| {
            stream.client_closed && stream.shared.is_closed.load(Ordering::Acquire)
        };
        if number >= STREAMS || self.streams.get(&number).is_some_and(|stream| !is_over(stream)) {
            return Err("a stream that is open already");
        }
        let shared = Arc::new(Carried {
            waiting: AtomicUsize::new(0),
            credit: Semaphore::new(WINDOW),
            client_gone: Notify::new(),
            is_closed: AtomicBool::new(false),
        });
        let (sender, receiver) = mpsc::unbounded_channel();
        let stream =
            Stream { bytes: Some(sender), shared: Arc::clone(&shared), client_closed: false };
        self.streams.insert(number, stream);
        let (proxy, out) = (Arc::clone(&self.proxy), self.out.clone());
        self.carrying.spawn(async move {
            let gone = shared.client_gone.notified();
            tokio::select! {
                () = carry(number, &proxy, receiver, &shared, &out) => {}
                () = gone => {}
            }
            // Set first: the relay may use the number again as soon as it has the frame.
            shared.is_closed.store(true, Ordering::Release);
            let _ = out.send(frame(CLOSE, number, &[])).await;
        });
        Ok(())
    }
}

/// Carries one connection to the proxy and back, to its end.
async fn carry(
    number: u16,
    proxy: &Proxy,
    mut bytes: UnboundedReceiver<Bytes>,
    shared: &Carried,
    out: &Sender<Bytes>,
) {
    let permit = proxy.permit().await;
    let (ours, theirs) = duplex(CHUNK);
    let (mut from_proxy, mut to_proxy) = split(ours);
    let inward = async {
        let mut handed_on = 0;
        while let Some(part) = bytes.recv().await {
            // Where nobody listens any more, the client's bytes come to nothing.
            let _ = to_proxy.write_all(&part).await;
            handed_on += part.len();
            if handed_on >= WORTH_A_CREDIT {
                shared.waiting.fetch_sub(handed_on, Ordering::AcqRel);
                let _ = out.send(frame(CREDIT, number, &(handed_on as u32).to_le_bytes())).await;
                handed_on = 0;
            }
        }
        let _ = to_proxy.shutdown().await;
    };
    let outward = async {
        let mut buffer = vec![0; CHUNK];
        while let Ok(count @ 1..) = from_proxy.read(&mut buffer).await {
            let Ok(permits) = shared.credit.acquire_many(count as u32).await else { return };
            permits.forget();
            if out.send(frame(DATA, number, &buffer[..count])).await.is_err() {
                return;
            }
        }
        let _ = out.send(frame(END, number, &[])).await;
    };
    let serving = async { tokio::join!(proxy.serve(theirs, permit), outward) };
    tokio::select! {
        _ = serving => {}
        () = async { inward.await; std::future::pending().await } => {}
    }
}

/// A frame without the length before it, which the conversation adds.
fn frame(kind: u8, number: u16, bytes: &[u8]) -> Bytes {
    let mut frame = BytesMut::with_capacity(4 + bytes.len());
    frame.put_u8(kind);
    frame.put_u8(0);
    frame.put_u16_le(number);
    frame.put_slice(bytes);
    frame.freeze()
}

struct Frame {
    kind: u8,
    number: u16,
    bytes: Bytes,
}

/// Takes what the relay writes apart into frames.
#[derive(Default)]
struct Frames {
    buffer: BytesMut,
}

impl Frames {
    fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    fn next(&mut self) -> Result<Option<Frame>, &'static str> {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn streams() -> (Streams, mpsc::Receiver<Bytes>) {
        let (out, queue) = mpsc::channel(QUEUE);
        let policy = NetworkPolicy::allow(["example.org".parse().unwrap()]);
        let proxy = Relay::new("test", &policy).unwrap().proxy;
        let streams = Streams {
            proxy,
            out,
            frames: Frames::default(),
            streams: HashMap::new(),
            carrying: JoinSet::new(),
        };
        (streams, queue)
    }

    fn obey(streams: &mut Streams, frames: &[(u8, u16, &[u8])]) -> Result<(), &'static str> {
        frames.iter().try_for_each(|&(kind, number, bytes)| {
            let bytes = Bytes::copy_from_slice(bytes);
            streams.obey(Frame { kind, number, bytes })
        })
    }

    #[tokio::test]
    async fn a_relay_that_says_what_it_may_not_is_given_up() {
        let much = [0; WINDOW + 1];
        let credit = (1u32).to_le_bytes();
        for frames in [
            &[(OPEN, STREAMS, &[][..])][..],
            &[(OPEN, 0, &[]), (OPEN, 0, &[])],
            &[(DATA, 0, b"x")],
            &[(OPEN, 0, &[]), (DATA, 0, &[])],
            &[(OPEN, 0, &[]), (DATA, 0, &much)],
            &[(OPEN, 0, &[]), (DATA, 0, &much[1..]), (DATA, 0, b"x")],
            &[(OPEN, 0, &[]), (END, 0, &[]), (DATA, 0, b"x")],
            &[(OPEN, 0, &[]), (CLOSE, 0, &[]), (END, 0, &[])],
            &[(OPEN, 0, &[]), (CREDIT, 0, &credit)],
            &[(OPEN, 0, &[]), (CREDIT, 0, &credit[1..])],
            &[(OPEN, 0, &[]), (9, 0, &[])],
        ] {
            let (mut streams, _queue) = streams();
            assert!(obey(&mut streams, frames).is_err());
        }
        for length in [0u32, 3, WINDOW as u32 + 5, u32::MAX] {
            let mut frames = Frames::default();
            frames.push(&length.to_le_bytes());
            assert!(frames.next().is_err(), "{length}");
        }
    }

    #[tokio::test]
    async fn a_connection_is_carried_to_the_proxy_and_back() {
        let (mut streams, mut queue) = streams();
        let request = b"CONNECT other.org:443 HTTP/1.1\r\n\r\n";
        obey(&mut streams, &[(OPEN, 3, &[]), (DATA, 3, request)]).unwrap();
        let (mut answer, mut kinds) = (Vec::new(), Vec::new());
        while kinds.last() != Some(&CLOSE) {
            let frame = queue.recv().await.unwrap();
            assert_eq!(frame[2..4], [3, 0]);
            kinds.push(frame[0]);
            if frame[0] == DATA {
                answer.extend_from_slice(&frame[4..]);
                // The client hangs up once it has its answer.
                obey(&mut streams, &[(END, 3, &[])]).unwrap();
            }
        }
        assert!(answer.starts_with(b"HTTP/1.1 403 "), "{}", answer.escape_ascii());
        assert_eq!(kinds, [DATA, END, CLOSE]);
        // Both have closed it: the number is free.
        obey(&mut streams, &[(CLOSE, 3, &[]), (OPEN, 3, &[])]).unwrap();
    }

    #[test]
    fn frames_are_understood_wherever_they_are_cut() {
        let mut bytes = Vec::new();
        for (kind, number, content) in [(OPEN, 1, &b""[..]), (DATA, 1, b"abc"), (END, 1, b"")] {
            let frame = frame(kind, number, content);
            bytes.extend((frame.len() as u32).to_le_bytes());
            bytes.extend(frame);
        }
        for size in 1..bytes.len() {
            let (mut frames, mut seen) = (Frames::default(), Vec::new());
            for piece in bytes.chunks(size) {
                frames.push(piece);
                while let Some(Frame { kind, number, bytes }) = frames.next().unwrap() {
                    seen.push((kind, number, bytes.to_vec()));
                }
            }
            assert_eq!(seen, [(OPEN, 1, vec![]), (DATA, 1, b"abc".to_vec()), (END, 1, vec![])]);
        }
    }
}
