//! Moving bytes between a client and a host.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadHalf, WriteHalf, split};
use tokio::time::Instant;

use super::body::{Body, BodyEnd};
use super::proxy::Counters;
use super::request::{MAX_HEAD_BYTES, Malformed, head_end};
use super::response::rewrite;

/// Bytes moved at one time.
const CHUNK: usize = 16 << 10;
/// How long a connection may be without a byte: a model that is asked may think for long.
const IDLE: Duration = Duration::from_secs(900);
/// The same once one side has said its last.
const IDLE_AFTER_END: Duration = Duration::from_secs(60);
/// How often that is looked at.
const WATCH: Duration = Duration::from_secs(5);
/// What a client may send behind its request before nobody listens any more.
const MAX_SURPLUS_BYTES: usize = 64 << 10;

/// Which way bytes go.
#[derive(Clone, Copy)]
pub(super) enum Direction {
    ToHost,
    FromHost,
}

/// A connection with both of its ends.
pub(super) struct Tunnel<'a, C, H> {
    client: (ReadHalf<C>, WriteHalf<C>),
    host: (ReadHalf<H>, WriteHalf<H>),
    flow: Flow<'a>,
}

/// Counts what passes, and sees when nothing does.
struct Flow<'a> {
    counters: &'a Counters,
    begun: Instant,
    last_millis: AtomicU64,
    has_end: AtomicBool,
}

impl Flow<'_> {
    async fn pass(
        &self,
        direction: Direction,
        bytes: &[u8],
        to: &mut (impl AsyncWrite + Unpin),
    ) -> io::Result<()> {
        if !self.counters.take(direction, bytes.len() as u64) {
            return Err(io::ErrorKind::QuotaExceeded.into());
        }
        to.write_all(bytes).await?;
        to.flush().await?;
        self.last_millis.store(self.begun.elapsed().as_millis() as u64, Ordering::Relaxed);
        Ok(())
    }

    fn ended(&self) {
        self.has_end.store(true, Ordering::Relaxed);
    }

    /// Returns when nothing has passed for too long.
    async fn idle(&self) {
        loop {
            tokio::time::sleep(WATCH).await;
            let last = Duration::from_millis(self.last_millis.load(Ordering::Relaxed));
            let patience = if self.has_end.load(Ordering::Relaxed) { IDLE_AFTER_END } else { IDLE };
            if self.begun.elapsed().saturating_sub(last) >= patience {
                return;
            }
        }
    }
}

impl<'a, C, H> Tunnel<'a, C, H>
where
    C: AsyncRead + AsyncWrite,
    H: AsyncRead + AsyncWrite,
{
    pub(super) fn new(client: C, host: H, counters: &'a Counters) -> Self {
        let flow = Flow {
            counters,
            begun: Instant::now(),
            last_millis: AtomicU64::new(0),
            has_end: AtomicBool::new(false),
        };
        Self { client: split(client), host: split(host), flow }
    }

    /// Passes everything both ways, `early` first, until both sides have ended, one breaks off, or
    /// neither says anything any more.
    pub(super) async fn pass_all(self, early: &[u8]) {
        let Self { client: (mut from_client, mut to_client), host, flow } = self;
        let (mut from_host, mut to_host) = host;
        let there = async {
            flow.pass(Direction::ToHost, early, &mut to_host).await?;
            pump(&flow, Direction::ToHost, &mut from_client, &mut to_host).await
        };
        let back = pump(&flow, Direction::FromHost, &mut from_host, &mut to_client);
        tokio::select! {
            // What breaks off on one side breaks off on the other when all is dropped.
            _ = async { tokio::try_join!(there, back) } => {}
            () = flow.idle() => {}
        }
    }

    /// Passes one request with its body and the answer to it. `early` is what the client sent
    /// behind the head.
    ///
    /// # Errors
    ///
    /// [`Malformed`] if the host's answer cannot be understood; the client has got nothing of it.
    pub(super) async fn pass_request(
        self,
        head: &[u8],
        body: Body,
        early: &[u8],
    ) -> Result<(), Malformed> {
        let Self { client: (mut from_client, mut to_client), host, flow } = self;
        let (mut from_host, mut to_host) = host;
        let there = async {
            let sent = async {
                flow.pass(Direction::ToHost, head, &mut to_host).await?;
                send_body(&flow, body, early, &mut from_client, &mut to_host).await
            };
            match sent.await {
                // Nobody knows what the host made of it.
                Err(error) if error.kind() == io::ErrorKind::InvalidData => {}
                // A host may answer and close before it has read everything; the answer counts.
                _ => {
                    flow.ended();
                    std::future::pending().await
                }
            }
        };
        tokio::select! {
            outcome = answer(&flow, &mut from_host, &mut to_client) => outcome,
            () = there => Ok(()),
            () = flow.idle() => Ok(()),
        }
    }
}

async fn pump(
    flow: &Flow<'_>,
    direction: Direction,
    from: &mut (impl AsyncRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
) -> io::Result<()> {
    let mut buffer = vec![0; CHUNK];
    loop {
        let count = from.read(&mut buffer).await?;
        if count == 0 {
            flow.ended();
            return to.shutdown().await;
        }
        flow.pass(direction, &buffer[..count], to).await?;
    }
}

/// Sends what belongs to the body and nothing behind it, and then waits for the client's end.
async fn send_body(
    flow: &Flow<'_>,
    body: Body,
    early: &[u8],
    from: &mut (impl AsyncRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
) -> io::Result<()> {
    let mut end = BodyEnd::new(body);
    let mut buffer = early.to_vec();
    loop {
        let malformed = |error| io::Error::new(io::ErrorKind::InvalidData, error);
        let count = end.take(&buffer).map_err(malformed)?;
        flow.pass(Direction::ToHost, &buffer[..count], to).await?;
        if end.is_done() {
            break;
        }
        buffer.resize(CHUNK, 0);
        let count = from.read(&mut buffer).await?;
        if count == 0 {
            // Half a body is not sent on as a whole one.
            return to.shutdown().await;
        }
        buffer.truncate(count);
    }
    let mut surplus = 0;
    buffer.resize(CHUNK, 0);
    while surplus < MAX_SURPLUS_BYTES {
        match from.read(&mut buffer).await? {
            0 => break,
            count => surplus += count,
        }
    }
    Ok(())
}

/// Passes an answer on. Only one that is not understood is an error.
async fn answer(
    flow: &Flow<'_>,
    from: &mut (impl AsyncRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
) -> Result<(), Malformed> {
    let mut buffer = Vec::new();
    loop {
        let mut looked_at = 0;
        let end = loop {
            if let Some(end) = head_end(&buffer, looked_at) {
                break end;
            }
            looked_at = buffer.len();
            if buffer.len() > MAX_HEAD_BYTES {
                return Err(Malformed("the head of its answer is too long"));
            }
            buffer.reserve(4096);
            match from.read_buf(&mut buffer).await {
                Ok(0) | Err(_) => return Err(Malformed("it ended before its answer did")),
                Ok(_) => {}
            }
        };
        let (head, is_interim) = rewrite(&buffer[..end])?;
        if flow.pass(Direction::FromHost, &head, to).await.is_err() {
            return Ok(());
        }
        buffer.drain(..end);
        if !is_interim {
            break;
        }
    }
    if flow.pass(Direction::FromHost, &buffer, to).await.is_ok() {
        let _ = pump(flow, Direction::FromHost, from, to).await;
    }
    Ok(())
}
