//! Connections into a container.
//!
//! ```text
//!   container, whatever its network           │  this process
//!   server ◀── 127.0.0.1:PORT ── exec dial ───┼─ standard streams ─▶ Dialer ──▶ ByteStream
//! ```
//!
//! A container has one such helper, which is started with the first connection and carries all of them.
//! `helper/relay.rs` describes what is spoken. What runs inside may kill the helper, as it could end the
//! connections otherwise; it can neither read nor write what passes, nor make it connect elsewhere than
//! to the container's own loopback.

use std::collections::HashMap;
use std::io;
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, DuplexStream, ReadBuf, duplex, split};
use tokio::sync::mpsc::{self, Sender, UnboundedReceiver};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::task::JoinHandle;

use super::conversation::{Conversation, Input, Said, Surroundings};
use super::mux::{
    CHUNK, CLOSE, Carried, DIAL, Frame, Frames, OPEN, QUEUE, READY, REFUSED, Stream, frame, inward,
    outward,
};
use super::sandbox::{Shared, wants_processes};
use crate::{ByteStream, SandboxError};

/// How long the helper may take to be there.
const START: Duration = Duration::from_secs(60);
/// Connections at one time; more wait until one is closed.
const STREAMS: u16 = 128;
/// Times that the helper is started for one connection.
const TRIES: usize = 3;
const ECONNREFUSED: i32 = 111;

/// The way into one sandbox.
#[derive(Default)]
pub(super) struct Dialer {
    running: Arc<tokio::sync::Mutex<Option<Way>>>,
}

/// A helper that runs.
#[derive(Clone)]
struct Way {
    out: Sender<Bytes>,
    streams: Arc<Mutex<HashMap<u16, Dialed>>>,
    room: Arc<Semaphore>,
    task: Arc<JoinHandle<()>>,
}

/// A connection as the frames find it.
struct Dialed {
    stream: Stream,
    /// Until the helper has answered; absent once it has.
    answer: Option<oneshot::Sender<Result<(), i32>>>,
    /// Room for another connection when this one is over.
    _permit: OwnedSemaphorePermit,
}

impl Dialer {
    /// Connects to a port of the container's loopback.
    pub(super) async fn connect(
        &self,
        sandbox: &Arc<Shared>,
        port: u16,
    ) -> Result<ByteStream, SandboxError> {
        for _ in 0..TRIES {
            sandbox.check_open()?;
            match self.way(sandbox).await?.connect(port).await {
                Some(Ok(stream)) => return Ok(stream),
                Some(Err(ECONNREFUSED)) => return Err(SandboxError::NotListening { port }),
                Some(Err(errno)) => {
                    let source = io::Error::from_raw_os_error(errno);
                    return Err(SandboxError::ConnectRefused { port, source });
                }
                // It ended: with all else that ran in the sandbox, or by somebody who does, or with it.
                None => {}
            }
        }
        match sandbox.death().await {
            Some(death) => Err(sandbox.died(death)),
            None => Err(failed("the helper that carries connections is ended again and again")),
        }
    }

    /// The helper that runs, or a new one.
    async fn way(&self, sandbox: &Arc<Shared>) -> Result<Way, SandboxError> {
        let (running, sandbox) = (Arc::clone(&self.running), Arc::clone(sandbox));
        // A task of its own: whoever asks first may lose patience, and the next one need not begin anew.
        let starting = tokio::spawn(async move {
            let mut running = running.lock().await;
            if let Some(way) = running.as_ref().filter(|way| !way.task.is_finished()) {
                return Ok(way.clone());
            }
            sandbox.check_open()?;
            let way = start(&sandbox).await?;
            *running = Some(way.clone());
            Ok(way)
        });
        starting.await.unwrap_or_else(|error| Err(failed(error)))
    }

    /// Whether a helper of it runs.
    pub(super) async fn is_running(&self) -> bool {
        self.running.lock().await.as_ref().is_some_and(|way| !way.task.is_finished())
    }

    /// Ends it with all its connections.
    pub(super) async fn end(&self) {
        if let Some(way) = self.running.lock().await.take() {
            way.task.abort();
            way.forget();
        }
    }
}

async fn start(sandbox: &Shared) -> Result<Way, SandboxError> {
    let surroundings = Surroundings { user: Some(sandbox.carrier().into()), ..Default::default() };
    let (out, queue) = mpsc::channel(QUEUE);
    let operation = vec!["dial".to_owned(), sandbox.engine.heartbeat()];
    let starting = async {
        let conversation = sandbox.converse(operation, surroundings, Input::Channel(queue)).await;
        let mut conversation = match conversation {
            Err(SandboxError::Backend { doing, source })
                if wants_processes(&format!("{doing}: {source}")) =>
            {
                return Err(SandboxError::UsedUp { what: "processes" });
            }
            conversation => conversation?,
        };
        let mut frames = Frames::default();
        loop {
            match conversation.next().await {
                Said::Stdout(bytes) => frames.push(&bytes),
                Said::Stderr(_) => {}
                Said::Status(status) => {
                    return Err(failed(io::Error::from_raw_os_error(status.value as i32)));
                }
                Said::Broken(said) if wants_processes(&said) => {
                    return Err(SandboxError::UsedUp { what: "processes" });
                }
                Said::Broken(said) => {
                    return Err(sandbox.broken("connect to the sandbox", said).await);
                }
            }
            match frames.next() {
                Ok(Some(Frame { kind: READY, .. })) => return Ok((conversation, frames)),
                Ok(None) => {}
                Ok(Some(_)) | Err(_) => return Err(failed(io::ErrorKind::InvalidData)),
            }
        }
    };
    let (conversation, frames) = tokio::time::timeout(START, starting)
        .await
        .map_err(|_| failed(io::Error::from(io::ErrorKind::TimedOut)))??;
    let streams = Arc::<Mutex<HashMap<u16, Dialed>>>::default();
    let working = Working { streams: Arc::clone(&streams), frames };
    let name = sandbox.name.clone();
    let forgets = Forgets(Arc::clone(&streams));
    let task = tokio::spawn(async move {
        // Dropped behind the conversation, also where this task is ended: until then words for the helper are
        // still taken, and who said one waits for an answer.
        let _forgets = forgets;
        let why = working.work(conversation).await;
        tracing::debug!(sandbox = name, "the way into a sandbox ended: {why}");
    });
    let room = Arc::new(Semaphore::new(STREAMS.into()));
    Ok(Way { out, streams, room, task: Arc::new(task) })
}

fn failed(source: impl ToString) -> SandboxError {
    let source = source.to_string().into();
    SandboxError::Backend { doing: "connect to the sandbox".into(), source }
}

impl Way {
    fn streams(&self) -> MutexGuard<'_, HashMap<u16, Dialed>> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends all connections: nothing comes for them any more.
    fn forget(&self) {
        self.streams().clear();
    }

    /// A connection, or the kernel's error. Absent: the helper has ended.
    async fn connect(self, port: u16) -> Option<Result<ByteStream, i32>> {
        let permit = Arc::clone(&self.room).acquire_owned().await.ok()?;
        let (stream, bytes) = Stream::new();
        let shared = Arc::clone(&stream.shared);
        let (answer, answered) = oneshot::channel();
        let number = {
            let mut streams = self.streams();
            let number = (0..STREAMS).find(|number| !streams.contains_key(number))?;
            streams.insert(number, Dialed { stream, answer: Some(answer), _permit: permit });
            number
        };
        let (reply, replied) = oneshot::channel();
        // A task of its own: whoever asks may lose patience, and the helper has to be told.
        tokio::spawn(self.carry(number, port, shared, bytes, answered, reply));
        replied.await.ok()
    }

    /// Asks for a connection and carries it to its end.
    async fn carry(
        self,
        number: u16,
        port: u16,
        shared: Arc<Carried>,
        mut bytes: UnboundedReceiver<Bytes>,
        answered: oneshot::Receiver<Result<(), i32>>,
        mut reply: oneshot::Sender<Result<ByteStream, i32>>,
    ) {
        let asked = self.out.send(frame(DIAL, number, &port.to_le_bytes())).await;
        if asked.is_err() || self.task.is_finished() {
            self.remove(number, &shared);
            return;
        }
        let answer = tokio::select! {
            biased;
            answer = answered => answer,
            () = reply.closed() => return self.close(number, &shared).await,
        };
        match answer {
            Ok(Ok(())) => {}
            Ok(Err(errno)) => return drop(reply.send(Err(errno))),
            // The helper has ended.
            Err(_) => return,
        }
        let (ours, theirs) = duplex(CHUNK);
        let is_dropped = Arc::new(Notify::new());
        let stream = DialedStream {
            stream: theirs,
            shared: Arc::clone(&shared),
            is_dropped: Arc::clone(&is_dropped),
        };
        if reply.send(Ok(ByteStream::new(stream))).is_ok() {
            let (mut from_caller, mut to_caller) = split(ours);
            let came = async {
                let is_taken = inward(number, &mut bytes, &mut to_caller, &shared, &self.out).await;
                let has_ended = is_taken && shared.has_ended.load(Ordering::Acquire);
                if has_ended {
                    let _ = to_caller.shutdown().await;
                }
                has_ended
            };
            let went = outward(number, &mut from_caller, &shared, &self.out);
            tokio::pin!(came, went);
            let (mut has_come, mut has_gone) = (false, false);
            while !(has_come && has_gone) {
                tokio::select! {
                    has_ended = &mut came, if !has_come => {
                        has_come = true;
                        // Torn down, or nobody is there to take it.
                        if !has_ended {
                            break;
                        }
                    }
                    () = &mut went, if !has_gone => has_gone = true,
                    // What it wrote before is on its way.
                    () = is_dropped.notified(), if has_gone => break,
                    () = shared.gone.notified(), if has_come => break,
                }
            }
        }
        self.close(number, &shared).await;
    }

    /// Says the last word about a connection.
    async fn close(&self, number: u16, shared: &Arc<Carried>) {
        // Absent where the helper has ended.
        let Ok(room) = self.out.reserve().await else { return self.remove(number, shared) };
        let mut streams = self.streams();
        shared.is_closed.store(true, Ordering::Release);
        // It may have been refused meanwhile, and its number be another's.
        let own = streams.get(&number).filter(|dialed| dialed.is_of(shared));
        let Some(is_over) = own.map(|dialed| dialed.stream.is_over()) else { return };
        // While nobody else can take the number, so that it is not used again before this is said.
        room.send(frame(CLOSE, number, &[]));
        if is_over {
            streams.remove(&number);
        }
    }

    /// Forgets a connection of which the helper knows nothing.
    fn remove(&self, number: u16, shared: &Arc<Carried>) {
        let mut streams = self.streams();
        if streams.get(&number).is_some_and(|dialed| dialed.is_of(shared)) {
            streams.remove(&number);
        }
    }
}

impl Dialed {
    fn is_of(&self, shared: &Arc<Carried>) -> bool {
        Arc::ptr_eq(&self.stream.shared, shared)
    }
}

/// Forgets all connections when it is dropped.
struct Forgets(Arc<Mutex<HashMap<u16, Dialed>>>);

impl Drop for Forgets {
    fn drop(&mut self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

/// What takes in the helper's words.
struct Working {
    streams: Arc<Mutex<HashMap<u16, Dialed>>>,
    frames: Frames,
}

impl Working {
    /// Works until the helper ends; why it did.
    async fn work(mut self, mut conversation: Conversation<'static>) -> String {
        loop {
            match self.frames.next() {
                Ok(Some(frame)) => match self.obey(frame) {
                    Ok(()) => continue,
                    Err(what) => return format!("it said what it may not: {what}"),
                },
                Ok(None) => {}
                Err(what) => return format!("it said what it may not: {what}"),
            }
            match conversation.next().await {
                Said::Stdout(bytes) => self.frames.push(&bytes),
                Said::Stderr(_) => {}
                Said::Status(status) => return format!("it failed with error {}", status.value),
                Said::Broken(said) => return said,
            }
        }
    }

    fn streams(&self) -> MutexGuard<'_, HashMap<u16, Dialed>> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does what a frame says. Waits for nothing: whoever waited here would hold up all streams.
    fn obey(&mut self, frame: Frame) -> Result<(), &'static str> {
        let Frame { kind, number, bytes } = frame;
        let mut streams = self.streams();
        let dialed = streams.get_mut(&number).ok_or("a stream that nobody asked for")?;
        match (kind, dialed.answer.take()) {
            // Whoever asked may have lost patience.
            (OPEN, Some(answer)) => drop(answer.send(Ok(()))),
            (REFUSED, Some(answer)) => {
                let errno = <[u8; 4]>::try_from(&bytes[..]).map_err(|_| "half a number")?;
                let _ = answer.send(Err(i32::from_le_bytes(errno)));
                streams.remove(&number);
            }
            (CLOSE, _) | (_, None) => {
                dialed.stream.obey(kind, bytes)?;
                if dialed.stream.is_over() {
                    streams.remove(&number);
                }
            }
            (_, Some(_)) => return Err("a word before the answer"),
        }
        Ok(())
    }
}

/// The caller's end of a connection.
struct DialedStream {
    stream: DuplexStream,
    shared: Arc<Carried>,
    is_dropped: Arc<Notify>,
}

impl Drop for DialedStream {
    fn drop(&mut self) {
        self.is_dropped.notify_one();
    }
}

impl AsyncRead for DialedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let (before, room) = (buffer.filled().len(), buffer.remaining());
        let read = std::task::ready!(Pin::new(&mut self.stream).poll_read(context, buffer));
        let is_at_end = read.is_ok() && room > 0 && buffer.filled().len() == before;
        if is_at_end && !self.shared.has_ended.load(Ordering::Acquire) {
            return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
        }
        Poll::Ready(read)
    }
}

impl AsyncWrite for DialedStream {
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backends::docker::mux::{CREDIT, DATA, END, WINDOW};
    use tokio::io::AsyncReadExt;

    struct Told {
        way: Way,
        working: Working,
        queue: mpsc::Receiver<Bytes>,
    }

    fn way() -> Told {
        let (out, queue) = mpsc::channel(QUEUE);
        let streams = Arc::<Mutex<HashMap<u16, Dialed>>>::default();
        let working = Working { streams: Arc::clone(&streams), frames: Frames::default() };
        let task = Arc::new(tokio::spawn(std::future::pending()));
        let way = Way { out, streams, room: Arc::new(Semaphore::new(STREAMS.into())), task };
        Told { way, working, queue }
    }

    impl Told {
        async fn dialed(&mut self) -> JoinHandle<Option<Result<ByteStream, i32>>> {
            let asking = tokio::spawn(self.way.clone().connect(80));
            assert_eq!(self.queue.recv().await.unwrap(), frame(DIAL, 0, &80u16.to_le_bytes()));
            asking
        }

        fn say(&mut self, kind: u8, bytes: &[u8]) -> Result<(), &'static str> {
            let bytes = Bytes::copy_from_slice(bytes);
            self.working.obey(Frame { kind, number: 0, bytes })
        }
    }

    #[tokio::test]
    async fn a_helper_that_says_what_it_may_not_is_given_up() {
        let much = [0; WINDOW + 1];
        for words in [
            &[(DATA, &b"x"[..])][..],
            &[(READY, b"")],
            &[(REFUSED, b"x")],
            &[(OPEN, b""), (OPEN, b"")],
            &[(OPEN, b""), (REFUSED, &[0; 4])],
            &[(OPEN, b""), (DATA, &much)],
            &[(OPEN, b""), (CREDIT, &[1, 0, 0, 0])],
            &[(OPEN, b""), (END, b""), (DATA, b"x")],
            &[(OPEN, b""), (CLOSE, b""), (DATA, b"x")],
            &[(OPEN, b""), (DIAL, b"xx")],
        ] {
            let mut told = way();
            let _asking = told.dialed().await;
            let said = words.iter().try_for_each(|(kind, bytes)| told.say(*kind, bytes));
            assert!(said.is_err(), "{words:?}");
        }
        assert!(way().say(OPEN, b"").is_err(), "nobody asked");
    }

    #[tokio::test]
    async fn what_came_before_the_end_is_read_and_a_connection_that_is_torn_is_told() {
        for is_torn in [false, true] {
            let mut told = way();
            let asking = told.dialed().await;
            told.say(OPEN, b"").unwrap();
            let mut stream = asking.await.unwrap().unwrap().unwrap();
            told.say(DATA, b"last words").unwrap();
            if !is_torn {
                told.say(END, b"").unwrap();
            }
            told.say(CLOSE, b"").unwrap();
            let mut words = Vec::new();
            let read = stream.read_to_end(&mut words).await;
            assert_eq!(words, b"last words");
            assert_eq!(read.is_err(), is_torn, "{read:?}");
            assert_eq!(told.queue.recv().await.unwrap(), frame(CLOSE, 0, b""));
            tokio::task::yield_now().await;
            assert!(told.way.streams().is_empty());
        }
    }

    #[tokio::test]
    async fn one_that_is_refused_or_given_up_makes_room() {
        let mut told = way();
        let asking = told.dialed().await;
        told.say(REFUSED, &ECONNREFUSED.to_le_bytes()).unwrap();
        assert!(matches!(asking.await.unwrap(), Some(Err(ECONNREFUSED))));
        assert_eq!(told.way.room.available_permits(), usize::from(STREAMS));

        let asking = told.dialed().await;
        asking.abort();
        assert_eq!(told.queue.recv().await.unwrap(), frame(CLOSE, 0, b""));
        told.say(OPEN, b"").unwrap();
        told.say(CLOSE, b"").unwrap();
        tokio::task::yield_now().await;
        assert_eq!(told.way.room.available_permits(), usize::from(STREAMS));

        let asking = told.dialed().await;
        told.way.forget();
        assert!(asking.await.unwrap().is_none(), "the helper has ended");
    }
}
