//! The proxy of one sandbox.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout, timeout_at};

use super::connect::connect;
use super::host::Target;
use super::refusal::Refusal;
use super::request::{Kind, MAX_HEAD_BYTES, Malformed, Request, head_end};
use super::socks::{self, SocksGreeting, SocksRequest};
use super::tunnel::{Direction, Tunnel};
use super::{AllowedHost, NetworkStats, ServedHosts};

/// Connections of one sandbox at one time; more wait until one of them ends.
const MAX_CONNECTIONS: usize = 64;
/// Names of one sandbox that are looked up at one time.
const MAX_LOOKUPS: usize = 8;
/// How long a client may take to say what it wants.
const HEAD: Duration = Duration::from_secs(10);
/// How long a client that was refused may take to listen.
const LAST_WORDS: Duration = Duration::from_secs(2);
/// Different targets whose refusal is worth a warning; from then on they are told apart no more.
const MAX_WARNINGS: usize = 256;

/// Connects clients to the hosts of a list, and refuses all others.
#[derive(Debug)]
pub(crate) struct Proxy {
    /// For the log.
    sandbox: String,
    list: Vec<AllowedHost>,
    served: ServedHosts,
    counters: Counters,
    connections: Arc<Semaphore>,
    lookups: Arc<Semaphore>,
    warned: Mutex<HashSet<Target>>,
}

/// What passed so far.
#[derive(Debug)]
pub(super) struct Counters {
    max_bytes: Option<u64>,
    connections: AtomicU64,
    open: AtomicU64,
    refused: AtomicU64,
    failed: AtomicU64,
    sent: AtomicU64,
    received: AtomicU64,
}

impl Counters {
    /// Counts bytes that are about to pass; false where they may not.
    pub(super) fn take(&self, direction: Direction, bytes: u64) -> bool {
        let passed = self.passed().saturating_add(bytes);
        if self.max_bytes.is_some_and(|max| passed > max) {
            return false;
        }
        let counter = match direction {
            Direction::ToHost => &self.sent,
            Direction::FromHost => &self.received,
        };
        counter.fetch_add(bytes, Ordering::Relaxed);
        true
    }

    fn passed(&self) -> u64 {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        count(&self.sent).saturating_add(count(&self.received))
    }
}

/// The right to one connection.
pub(crate) struct Permit {
    _of_sandbox: OwnedSemaphorePermit,
    _of_process: OwnedSemaphorePermit,
}

impl Proxy {
    /// For the sandbox of this name, to these hosts, for so many bytes in both directions together.
    pub(crate) fn new(sandbox: &str, list: &[AllowedHost], max_bytes: Option<u64>) -> Self {
        let zero = || AtomicU64::new(0);
        Self {
            sandbox: sandbox.to_owned(),
            list: list.to_vec(),
            served: ServedHosts::default(),
            counters: Counters {
                max_bytes,
                connections: zero(),
                open: zero(),
                refused: zero(),
                failed: zero(),
                sent: zero(),
                received: zero(),
            },
            connections: Arc::new(Semaphore::new(MAX_CONNECTIONS)),
            lookups: Arc::new(Semaphore::new(MAX_LOOKUPS)),
            warned: Mutex::default(),
        }
    }

    /// The same, where this process itself connects to these hosts.
    pub(crate) fn with_served(self, served: &ServedHosts) -> Self {
        Self { served: served.clone(), ..self }
    }

    /// What passed so far.
    pub(crate) fn stats(&self) -> NetworkStats {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let counters = &self.counters;
        NetworkStats {
            connections: count(&counters.connections),
            open: count(&counters.open),
            refused: count(&counters.refused),
            failed: count(&counters.failed),
            sent_bytes: count(&counters.sent),
            received_bytes: count(&counters.received),
        }
    }

    /// Waits until there is room for a connection, here and in the whole process.
    pub(crate) async fn permit(&self) -> Permit {
        let acquire = |semaphore: &Arc<Semaphore>| {
            let acquiring = Arc::clone(semaphore).acquire_owned();
            async { acquiring.await.expect("nobody closes it") }
        };
        let of_sandbox = acquire(&self.connections).await;
        let of_process = acquire(places_of_process()).await;
        Permit { _of_sandbox: of_sandbox, _of_process: of_process }
    }

    /// The sandbox's name, for the log.
    #[cfg(feature = "local")]
    pub(super) fn sandbox(&self) -> &str {
        &self.sandbox
    }

    /// Serves one connection to its end.
    pub(crate) async fn serve<C>(&self, stream: C, permit: Permit)
    where
        C: AsyncRead + AsyncWrite + Send + Unpin,
    {
        self.counters.connections.fetch_add(1, Ordering::Relaxed);
        self.counters.open.fetch_add(1, Ordering::Relaxed);
        let _open = Open { counter: &self.counters.open, _permit: permit };
        let mut client = Client { stream, received: Vec::new(), speaks_socks: false };
        let Err(refusal) = self.converse(&mut client).await else { return };
        self.count(&refusal);
        let answer = if client.speaks_socks { refusal.as_socks() } else { refusal.as_http() };
        let _ = timeout(LAST_WORDS, client.end(&answer)).await;
    }

    fn count(&self, refusal: &Refusal) {
        let counter = match refusal {
            Refusal::Gone => return,
            refusal if refusal.is_policy() => &self.counters.refused,
            _ => &self.counters.failed,
        };
        counter.fetch_add(1, Ordering::Relaxed);
        let sandbox = &self.sandbox;
        let target = refusal.target();
        // Each target is a warning once: a program inside must not fill the log of the run.
        let is_new = refusal.is_policy()
            && target.is_some_and(|target| {
                let mut warned = self.warned.lock().expect("nobody panics while holding it");
                warned.len() < MAX_WARNINGS && warned.insert(target.clone())
            });
        let to = target.map(ToString::to_string).unwrap_or_default();
        if is_new {
            tracing::warn!(sandbox, to, "refused a connection: {refusal}");
        } else {
            tracing::debug!(sandbox, to, "a connection came to nothing: {refusal}");
        }
    }

    async fn converse<C>(&self, client: &mut Client<C>) -> Result<(), Refusal>
    where
        C: AsyncRead + AsyncWrite + Send + Unpin,
    {
        let until = Instant::now() + HEAD;
        let asked = timeout_at(until, client.ask());
        let request = asked.await.map_err(|_| Refusal::Slow { after: HEAD })??;
        let target = request.target;
        if let Some(max_bytes) = self.counters.max_bytes
            && self.counters.passed() >= max_bytes
        {
            return Err(Refusal::UsedUp { target, max_bytes });
        }
        let host = connect(&self.list, &self.served, &self.lookups, &target).await?;
        let early = std::mem::take(&mut client.received);
        match request.kind {
            Kind::Tunnel => {
                let told = if client.speaks_socks {
                    &[5, 0, 0, 1, 0, 0, 0, 0, 0, 0][..]
                } else {
                    b"HTTP/1.1 200 Connection Established\r\n\r\n"
                };
                let telling = async {
                    client.stream.write_all(told).await?;
                    client.stream.flush().await
                };
                match timeout(HEAD, telling).await {
                    Ok(Ok(())) => {}
                    _ => return Err(Refusal::Gone),
                }
                Tunnel::new(&mut client.stream, host, &self.counters).pass_all(&early).await;
                Ok(())
            }
            Kind::Forward { head, body } => {
                let tunnel = Tunnel::new(&mut client.stream, host, &self.counters);
                let passed = tunnel.pass_request(&head, body, &early).await;
                passed.map_err(|reason| Refusal::BadAnswer { target, reason })
            }
        }
    }
}

/// Counts a connection as open.
struct Open<'a> {
    counter: &'a AtomicU64,
    _permit: Permit,
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.counter.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The one who asks.
struct Client<C> {
    stream: C,
    /// What came and was not used yet.
    received: Vec<u8>,
    speaks_socks: bool,
}

impl<C: AsyncRead + AsyncWrite + Unpin> Client<C> {
    /// What it asks for.
    async fn ask(&mut self) -> Result<Request, Refusal> {
        self.receive().await?;
        self.speaks_socks = self.received[0] == socks::VERSION;
        if self.speaks_socks {
            return self.ask_socks().await;
        }
        let mut looked_at = 0;
        loop {
            // Empty lines before a request are left out, as is usual.
            let empty = self.received.iter().take_while(|byte| matches!(byte, b'\r' | b'\n'));
            let empty = empty.count();
            self.received.drain(..empty);
            looked_at = if empty > 0 { 0 } else { looked_at };
            let end = head_end(&self.received, looked_at);
            if end.unwrap_or(self.received.len()) > MAX_HEAD_BYTES {
                return Err(Refusal::TooLong { max_bytes: MAX_HEAD_BYTES });
            }
            if let Some(end) = end {
                let head: Vec<u8> = self.received.drain(..end).collect();
                return Ok(Request::parse(&head)?);
            }
            looked_at = self.received.len();
            self.receive().await?;
        }
    }

    async fn ask_socks(&mut self) -> Result<Request, Refusal> {
        let greeting = self.find(SocksGreeting::find).await?;
        let is_welcome = greeting.without_password;
        let answer = [socks::VERSION, if is_welcome { 0 } else { 0xff }];
        self.stream.write_all(&answer).await.map_err(|_| Refusal::Gone)?;
        self.stream.flush().await.map_err(|_| Refusal::Gone)?;
        if !is_welcome {
            return Err(Refusal::NoSuchCommand);
        }
        let request = self.find(SocksRequest::find).await?;
        if !request.is_connect {
            return Err(Refusal::NoSuchCommand);
        }
        Ok(Request { target: request.target, kind: Kind::Tunnel })
    }

    async fn find<T>(
        &mut self,
        find: impl Fn(&[u8]) -> Result<Option<(T, usize)>, Malformed>,
    ) -> Result<T, Refusal> {
        loop {
            if let Some((found, length)) = find(&self.received)? {
                self.received.drain(..length);
                return Ok(found);
            }
            self.receive().await?;
        }
    }

    async fn receive(&mut self) -> Result<(), Refusal> {
        self.received.reserve(4096);
        match self.stream.read_buf(&mut self.received).await {
            Ok(0) | Err(_) => Err(Refusal::Gone),
            Ok(_) => Ok(()),
        }
    }

    /// Tells it something last. What it still sends is taken, since it would not hear otherwise.
    async fn end(&mut self, answer: &[u8]) -> io::Result<()> {
        self.stream.write_all(answer).await?;
        self.stream.shutdown().await?;
        let mut surplus = [0; 4096];
        for _ in 0..64 {
            if self.stream.read(&mut surplus).await? == 0 {
                break;
            }
        }
        Ok(())
    }
}

/// Connections of all sandboxes together: half of the files that this process may open, of which
/// each connection has at most two.
fn places_of_process() -> &'static Arc<Semaphore> {
    static PLACES: OnceLock<Arc<Semaphore>> = OnceLock::new();
    PLACES.get_or_init(|| {
        let limits = fs::read_to_string("/proc/self/limits").unwrap_or_default();
        let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"));
        let files = line.and_then(|line| line.split_whitespace().next()?.parse::<usize>().ok());
        // 1024 is the usual limit where nobody set one.
        Arc::new(Semaphore::new((files.unwrap_or(1024) / 4).clamp(16, 4096)))
    })
}
