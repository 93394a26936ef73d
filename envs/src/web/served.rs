//! A web application that runs in a sandbox, whose pages a browser is shown.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hyper::body::{Body, Incoming};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use spar_sandbox::pool::PooledSandbox;
use spar_sandbox::{
    ByteStream, ExecRequest, Image, Lifetimes, Limits, Mount, ProcessHandle, Sandbox, SandboxError,
    SandboxSpec,
};
use spar_web::{Request, Response, Server, SlowAnswer};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::miniwob::STEP;
use crate::EnvironmentError;
use crate::error::SandboxPhase::{Close, Create, SetUp, Step};
use crate::resources::Sandboxes;
use crate::terminal::machine::{at, own_fault};

/// The host of its pages.
pub(super) const HOST: &str = "site.test";
/// Where the application's folder is copied to, and where it lies unchanged.
const PLACE: &str = "/site";
const SOURCE: &str = "/site-source";
/// How long the application may take for one answer, the wait for its turn included: well below how long the browser waits for a page.
const ANSWER: Duration = Duration::from_secs(10);
/// The largest answer that is shown.
const MAX_ANSWER_BYTES: usize = 16 << 20;
/// Requests that are under way in it at one time; others wait.
const CONNECTIONS: usize = 16;
/// What is kept of its last words.
const LAST_WORDS: usize = 2000;
/// Headers that belong to one connection, or are told of the body that is sent on.
const OF_CONNECTION: [&str; 9] = [
    "connection",
    "keep-alive",
    "transfer-encoding",
    "upgrade",
    "te",
    "trailer",
    "content-length",
    "content-encoding",
    "content-type",
];

/// A web application: a folder, and what starts it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Application {
    /// Its folder on this machine, absolute; a copy of it is `/site` in the sandbox.
    pub(super) folder: PathBuf,
    /// What starts it there, a line of `sh`; it goes on until the episode ends.
    pub(super) command: String,
    /// The port that it listens at, on the sandbox's loopback.
    pub(super) port: u16,
    /// The sandbox's image. Default the run's.
    pub(super) image: Option<String>,
    /// Environment variables.
    #[serde(default)]
    pub(super) env: BTreeMap<String, String>,
    /// How long it may take until it listens, in seconds, 1 to 600. Default 30.
    #[serde(default = "ready_secs")]
    pub(super) ready_secs: u64,
    /// What it may use up.
    #[serde(default)]
    pub(super) limits: Limits,
}

fn ready_secs() -> u64 {
    30
}

impl Application {
    /// What cannot be started.
    pub(super) fn problem(&self) -> Option<String> {
        if !self.folder.is_absolute() || !self.folder.is_dir() {
            return Some(format!(
                "`serve.folder` is `{}`, must be the absolute path of a folder",
                self.folder.display()
            ));
        }
        if self.command.trim().is_empty() || self.command.contains('\0') {
            return Some(
                "`serve.command` must be a line of sh that starts the application".to_owned(),
            );
        }
        if self.port == 0 {
            return Some(
                "`serve.port` is 0, must be the port that the application listens at".to_owned(),
            );
        }
        if !(1..=600).contains(&self.ready_secs) {
            return Some(format!("`serve.ready_secs` is {}, must be 1 to 600", self.ready_secs));
        }
        None
    }

    /// As long as an episode may take.
    fn lifetimes(&self, sandboxes: &Sandboxes) -> Lifetimes {
        let turns = u64::from(sandboxes.max_turns.unwrap_or(64));
        let of_turn = sandboxes.answer.as_secs().saturating_add(STEP.as_secs());
        let agent_secs = self.ready_secs.saturating_add(of_turn.saturating_mul(turns));
        Lifetimes { agent_secs, ..Lifetimes::default() }
    }

    /// How long it may take until the application listens, the wait for a sandbox included.
    pub(super) fn start_time(&self, sandboxes: &Sandboxes) -> Duration {
        let Lifetimes { create_secs, setup_secs, .. } = self.lifetimes(sandboxes);
        let waited = sandboxes.pool.config().acquire_secs;
        Duration::from_secs(waited + create_secs + setup_secs + self.ready_secs)
    }

    /// A sandbox with nothing to reach from inside, in which the application listens.
    pub(super) async fn start(&self, sandboxes: &Sandboxes) -> Result<Served, EnvironmentError> {
        let image = match &self.image {
            Some(image) => {
                let Ok(image) = image.parse::<Image>();
                image
            }
            None => sandboxes.image.clone(),
        };
        let spec = SandboxSpec {
            limits: self.limits.clone(),
            env: self.env.clone(),
            mounts: vec![mount(&self.folder)],
            lifetimes: self.lifetimes(sandboxes),
            setup: vec![format!("mkdir -p {PLACE} && cp -a {SOURCE}/. {PLACE}/")],
            ..SandboxSpec::new(image)
        };
        sandboxes.warm_up(&spec);
        let sandbox = Arc::new(sandboxes.pool.acquire(&spec).await.map_err(at(Create))?);
        let request =
            ExecRequest { workdir: Some(PLACE.to_owned()), ..ExecRequest::sh(&self.command) };
        let process = sandbox.spawn(&request).await.map_err(at(SetUp))?;
        let last_words = Arc::new(Mutex::new(Vec::new()));
        // Nobody reads what it writes: it must not wait for that.
        for stream in [process.stdout, process.stderr] {
            tokio::spawn(drain(stream, Arc::clone(&last_words)));
        }
        let served = Served(Arc::new(Inner {
            sandbox,
            _process: process.handle,
            port: self.port,
            turns: Semaphore::new(CONNECTIONS),
            failure: Mutex::new(None),
        }));
        let ready = Duration::from_secs(self.ready_secs);
        if let Err(source) = served.0.sandbox.connect_within(self.port, ready).await {
            let words = last_words.lock().unwrap_or_else(PoisonError::into_inner);
            let words = String::from_utf8_lossy(&words).trim().to_owned();
            return Err(at(SetUp)(match source {
                SandboxError::NotListening { port } => SandboxError::Backend {
                    doing: format!(
                        "have the application listen at port {port} within {} s",
                        self.ready_secs
                    ),
                    source: match words.is_empty() {
                        true => "it said nothing".into(),
                        false => format!("its last words: {words}").into(),
                    },
                },
                other => other,
            }));
        }
        Ok(served)
    }
}

fn mount(folder: &Path) -> Mount {
    Mount { host: folder.to_owned(), guest: SOURCE.to_owned(), read_only: true }
}

async fn drain(mut stream: impl AsyncRead + Unpin, last_words: Arc<Mutex<Vec<u8>>>) {
    let mut buffer = [0; 4096];
    while let Ok(count @ 1..) = stream.read(&mut buffer).await {
        let mut kept = last_words.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend_from_slice(&buffer[..count]);
        let surplus = kept.len().saturating_sub(LAST_WORDS);
        kept.drain(..surplus);
    }
}

/// The pages of an application under way, `http://site.test/`. Clones are the same; the sandbox goes with the last of them.
#[derive(Clone)]
pub(super) struct Served(Arc<Inner>);

struct Inner {
    sandbox: Arc<PooledSandbox>,
    /// Dropping it ends the application.
    _process: ProcessHandle,
    port: u16,
    turns: Semaphore,
    /// Of the sandbox, once it cannot be used any more.
    failure: Mutex<Option<SandboxError>>,
}

impl std::fmt::Debug for Served {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Served").field("port", &self.0.port).finish_non_exhaustive()
    }
}

impl Served {
    /// Fails where the sandbox could not do its part, and it was not the policy's doing; what the policy did stays a page that tells of it. An
    /// application that has ended by itself is no failure.
    pub(super) async fn check(&self, sandboxes: &Sandboxes) -> Result<(), EnvironmentError> {
        let failure = self.0.failure.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(error) = failure else { return Ok(()) };
        own_fault(&self.0.sandbox, &sandboxes.pool, Step, error).await.map(drop)
    }

    /// Ends the application with its sandbox.
    pub(super) async fn close(&self) -> Result<(), EnvironmentError> {
        self.0.sandbox.close().await.map_err(at(Close))
    }
}

impl Server for Served {
    fn answer(&self, _: &Request) -> Option<Response> {
        None
    }

    fn answer_slowly(&self, request: &Request) -> Option<SlowAnswer> {
        let (scheme, rest) = request.url.split_once("://")?;
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (host, path) = rest.split_at(end);
        if (scheme, host) != ("http", HOST) {
            return None;
        }
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        let (inner, request) = (Arc::clone(&self.0), request.clone());
        Some(Box::pin(async move {
            let answered = timeout(ANSWER, async {
                let _turn = inner.turns.acquire().await.map_err(|error| error.to_string())?;
                inner.ask(&request, &path).await
            });
            let answered = answered.await;
            Some(match answered {
                Ok(Ok(response)) => response,
                Ok(Err(why)) => bad_gateway(&why),
                Err(_) => bad_gateway(&format!("no answer within {} s", ANSWER.as_secs())),
            })
        }))
    }

    fn is_allowed(&self, url: &str) -> bool {
        is_its(url)
    }
}

/// Whether an address is one of an application's.
pub(super) fn is_its(url: &str) -> bool {
    let rest = url.strip_prefix("http://").and_then(|rest| rest.strip_prefix(HOST));
    url == "about:blank"
        || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '?', '#']))
}

fn bad_gateway(why: &str) -> Response {
    let text =
        format!("<!doctype html><title>502</title><h1>The site does not answer</h1><p>{why}");
    Response { status: 502, ..Response::html(text) }
}

impl Inner {
    async fn ask(&self, request: &Request, path: &str) -> Result<Response, String> {
        let stream = match self.sandbox.connect(self.port).await {
            Ok(stream) => stream,
            Err(error) => {
                let told = error.to_string();
                if !matches!(error, SandboxError::NotListening { .. }) {
                    *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                }
                return Err(told);
            }
        };
        talk(stream, request, path).await
    }
}

/// Sends one request over a connection of its own, and reads the answer.
async fn talk(stream: ByteStream, request: &Request, path: &str) -> Result<Response, String> {
    let told = |error: hyper::Error| error.to_string();
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(told)?;
    // However this ends, the connection does too.
    let _connection = Ends(tokio::spawn(async move { drop(connection.await) }));
    let mut asked = hyper::Request::builder().method(request.method.as_str()).uri(path);
    for (name, value) in &request.headers {
        let name = name.to_ascii_lowercase();
        if name != "host"
            && name != "accept-encoding"
            && (name == "content-type" || !OF_CONNECTION.contains(&&*name))
        {
            asked = asked.header(name, value);
        }
    }
    asked = asked
        .header("host", HOST)
        .header("accept-encoding", "identity")
        .header("connection", "close");
    if !request.cookies.is_empty() {
        asked = asked.header("cookie", &request.cookies);
    }
    let asked = asked.body(request.body.clone()).map_err(|error| error.to_string())?;
    let answer = sender.send_request(asked).await.map_err(told)?;
    let (parts, body) = answer.into_parts();
    let bytes = read(body).await?;
    let text =
        |value: &hyper::header::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let content_type =
        parts.headers.get("content-type").map_or_else(|| "text/html".to_owned(), text);
    let kept = parts.headers.iter().filter(|(name, _)| !OF_CONNECTION.contains(&name.as_str()));
    Ok(Response {
        status: parts.status.as_u16(),
        content_type: content_type.into(),
        headers: kept.map(|(name, value)| (name.to_string().into(), text(value))).collect(),
        body: bytes.into(),
    })
}

/// A task that ends with this.
struct Ends(JoinHandle<()>);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn read(mut body: Incoming) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    while let Some(frame) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
        let frame = frame.map_err(|error| error.to_string())?;
        let Ok(data) = frame.into_data() else { continue };
        if bytes.len() + data.len() > MAX_ANSWER_BYTES {
            return Err(format!("its answer has more than {MAX_ANSWER_BYTES} bytes"));
        }
        bytes.extend_from_slice(&data);
    }
    Ok(bytes)
}
