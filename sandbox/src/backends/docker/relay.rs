//! The way out of a container with an allow-list.
//!
//! ```text
//!   container, no network                    │  this process
//!   client ──▶ 127.0.0.1:3128 exec relay ────┼─ standard streams ─▶ Relay ──▶ carry ──▶ Proxy
//! ```
//!
//! Nothing but the engine is needed, wherever it runs. `helper/relay.rs` describes what is spoken.
//! A container has one relay; commands start only while it works, or can be started anew. What it lets
//! through may change while it works.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::io::{AsyncWriteExt, duplex, split};
use tokio::sync::mpsc::{self, Sender, UnboundedReceiver};
use tokio::sync::{Mutex, watch};
use tokio::task::{JoinHandle, JoinSet};

use super::conversation::{Conversation, Input, Said, Status, Surroundings};
use super::mux::{
    CHUNK, CLOSE, Carried, Frame, Frames, OPEN, QUEUE, READY, Stream, frame, inward, outward,
};
use super::sandbox::{ROOM_MS, Shared};
use crate::allow_list::{NetworkStats, PORT, Proxy, ServedHosts};
use crate::{NetworkPolicy, SandboxError, SandboxSpec};

/// How long the relay may take to listen.
const START: Duration = Duration::from_secs(60);
/// How long connections may take to end once they have to.
const ENDING: Duration = Duration::from_secs(10);
/// Numbers that streams may have.
const STREAMS: u16 = 64;
/// The port is another program's.
const EADDRINUSE: u32 = 98;

/// The relay of one sandbox, and the proxy behind it.
pub(super) struct Relay {
    sandbox: String,
    served: ServedHosts,
    /// That of the present list, which is empty where nothing is allowed.
    proxy: watch::Sender<Arc<Proxy>>,
    running: Mutex<Option<JoinHandle<()>>>,
}

impl Relay {
    /// For a sandbox of this name and the network of its spec.
    pub(super) fn new(sandbox: &str, spec: &SandboxSpec) -> Self {
        let proxy = watch::Sender::new(proxy_of(sandbox, &spec.served, &spec.network));
        let (sandbox, served) = (sandbox.to_owned(), spec.served.clone());
        Self { sandbox, served, proxy, running: Mutex::default() }
    }

    /// Lets through what a network allows from now on; what passes by the one before is cut off.
    ///
    /// # Errors
    ///
    /// [`SandboxError::Backend`] where connections stay open that passed by the one before.
    pub(super) async fn allow(&self, network: &NetworkPolicy) -> Result<(), SandboxError> {
        let next = proxy_of(&self.sandbox, &self.served, network);
        let before = self.proxy.send_replace(next);
        let begun = Instant::now();
        while before.stats().open > 0 && begun.elapsed() < ENDING {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        match before.stats().open {
            0 => Ok(()),
            open => Err(SandboxError::Backend {
                doing: "end the connections of the network that the sandbox had".to_owned(),
                source: format!("{open} of them are still open").into(),
            }),
        }
    }

    pub(super) fn stats(&self) -> NetworkStats {
        self.proxy.borrow().stats()
    }

    /// Whether it runs.
    pub(super) async fn is_running(&self) -> bool {
        self.running.lock().await.as_ref().is_some_and(|task| !task.is_finished())
    }

    /// Makes sure that it works: the first time, and after something has killed it. Where something that was left running is in its
    /// place, that is ended if `may_sweep`, with all else that no living helper stands above.
    ///
    /// # Errors
    ///
    /// [`SandboxError::PortTaken`] where something inside is in its place and stays there, and those of the backend.
    pub(super) async fn ensure(
        &self,
        sandbox: &Shared,
        may_sweep: bool,
    ) -> Result<(), SandboxError> {
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
            if may_sweep {
                sandbox.sweep().await?;
            }
            tokio::time::sleep(Duration::from_millis(wait)).await;
            started = self.start(sandbox).await;
        }
        *running = Some(started.map_err(|trouble| match trouble {
            Trouble::PortTaken => SandboxError::PortTaken { port: PORT },
            Trouble::Other(error) => error,
        })?);
        Ok(())
    }

    async fn start(&self, sandbox: &Shared) -> Result<JoinHandle<()>, Trouble> {
        let surroundings =
            Surroundings { user: Some(sandbox.carrier().into()), ..Default::default() };
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
            proxy: self.proxy.subscribe(),
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

/// A proxy that keeps to a network.
fn proxy_of(sandbox: &str, served: &ServedHosts, network: &NetworkPolicy) -> Arc<Proxy> {
    let (hosts, max_bytes) = match network {
        NetworkPolicy::Allow { hosts, max_bytes } => (hosts.as_slice(), *max_bytes),
        NetworkPolicy::None | NetworkPolicy::Bridge => (&[][..], None),
    };
    Arc::new(Proxy::new(sandbox, hosts, max_bytes).with_served(served))
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
    proxy: watch::Receiver<Arc<Proxy>>,
    out: Sender<Bytes>,
    frames: Frames,
    streams: HashMap<u16, Stream>,
    carrying: JoinSet<()>,
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
        stream.obey(kind, bytes)?;
        if stream.is_over() {
            self.streams.remove(&number);
        }
        Ok(())
    }

    fn open(&mut self, number: u16) -> Result<(), &'static str> {
        if number >= STREAMS || self.streams.get(&number).is_some_and(|stream| !stream.is_over()) {
            return Err("a stream that is open already");
        }
        let (stream, receiver) = Stream::new();
        let shared = Arc::clone(&stream.shared);
        self.streams.insert(number, stream);
        let (mut proxies, out) = (self.proxy.clone(), self.out.clone());
        let proxy = Arc::clone(&proxies.borrow_and_update());
        self.carrying.spawn(async move {
            let gone = shared.gone.notified();
            tokio::select! {
                () = carry(number, &proxy, receiver, &shared, &out) => {}
                () = gone => {}
                // Another list has taken the place of its own.
                _ = proxies.changed() => {}
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
    let taking = async {
        // Where the proxy listens no more, the client's bytes come to nothing.
        while !inward(number, &mut bytes, &mut to_proxy, shared, out).await {}
        let _ = to_proxy.shutdown().await;
    };
    let outward = outward(number, &mut from_proxy, shared, out);
    let serving = async { tokio::join!(proxy.serve(theirs, permit), outward) };
    tokio::select! {
        _ = serving => {}
        () = async { taking.await; std::future::pending().await } => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Image;
    use crate::backends::docker::mux::{CREDIT, DATA, END, WINDOW};

    fn streams() -> (Relay, Streams, mpsc::Receiver<Bytes>) {
        let (out, queue) = mpsc::channel(QUEUE);
        let network = NetworkPolicy::allow(["example.org".parse().unwrap()]);
        let spec = SandboxSpec { network, ..SandboxSpec::new(Image::Default) };
        let relay = Relay::new("test", &spec);
        let streams = Streams {
            proxy: relay.proxy.subscribe(),
            out,
            frames: Frames::default(),
            streams: HashMap::new(),
            carrying: JoinSet::new(),
        };
        (relay, streams, queue)
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
            let (_relay, mut streams, _queue) = streams();
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
        let (_relay, mut streams, mut queue) = streams();
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

    #[tokio::test]
    async fn another_list_cuts_off_what_passes_by_the_one_before() {
        let (relay, mut streams, mut queue) = streams();
        // It has not said yet what it wants.
        obey(&mut streams, &[(OPEN, 3, &[]), (DATA, 3, b"CONNECT ")]).unwrap();
        while relay.stats().open == 0 {
            tokio::task::yield_now().await;
        }
        relay.allow(&NetworkPolicy::None).await.unwrap();
        assert_eq!(queue.recv().await.unwrap()[0], CLOSE);
        assert_eq!((relay.stats().open, relay.stats().connections), (0, 0));
        let request = b"CONNECT example.org:443 HTTP/1.1\r\n\r\n";
        obey(&mut streams, &[(CLOSE, 3, &[]), (OPEN, 3, &[]), (DATA, 3, request)]).unwrap();
        let answer = queue.recv().await.unwrap();
        assert!(answer[4..].starts_with(b"HTTP/1.1 403 "), "{}", answer.escape_ascii());
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
