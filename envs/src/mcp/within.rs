//! Servers in a sandbox that an episode has anyway, and those that its task has elsewhere.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::Duration;

use spar_mcp::{McpClient, McpHttpServer, McpLimits, McpServerStreams, authority};
use spar_sandbox::allow_list::{AllowedHost, Target, resolve};
use spar_sandbox::pool::PooledSandbox;
use spar_sandbox::{ExecRequest, Process, Sandbox, SandboxError};
use tempfile::TempDir;
use tokio::io::copy_bidirectional;
use tokio::net::{UnixListener, UnixStream};
use tokio::task::{JoinHandle, JoinSet};

use super::McpOptions;
use crate::process::Running;
use crate::validate::chain;
use crate::{EnvironmentError, SandboxPhase};

/// Connections to one server at one time.
const MOST_CONNECTIONS: usize = 64;

/// The sandbox that a server is in, and how it is reached there.
#[derive(Clone)]
pub(crate) struct Within {
    pub(crate) sandbox: Arc<PooledSandbox>,
    pub(crate) at: ServerPlace,
}

/// How a server in a sandbox is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ServerPlace {
    /// It is started there, as this user and in this folder, where these are not the sandbox's own.
    Started { user: Option<String>, workdir: Option<String> },
    /// It listens on this port of the sandbox's loopback, and answers by streamable HTTP.
    Listens(u16),
    /// The same, and answers in a stream of events.
    ListensForEvents(u16),
    /// It is elsewhere, at the URL of its options, which this process reaches.
    Outside {
        /// Whether it answers in a stream of events.
        by_events: bool,
        /// The list that names its host. What that stands for has to be of the public internet, or on the list itself.
        hosts: Vec<AllowedHost>,
    },
}

impl Within {
    pub(super) async fn connect(
        &self,
        options: &McpOptions,
        limits: McpLimits,
    ) -> Result<(McpClient, Option<Running>, Option<Bridge>), EnvironmentError> {
        let failed = |source| EnvironmentError::Sandbox { phase: SandboxPhase::SetUp, source };
        let port = match &self.at {
            ServerPlace::Started { user, workdir } => {
                let mut request = ExecRequest::new(options.command.clone());
                request.user.clone_from(user);
                request.workdir.clone_from(workdir);
                let Process { stdin, stdout, stderr, handle } =
                    self.sandbox.spawn(&request).await.map_err(failed)?;
                let streams = McpServerStreams::new(stdin, stdout, stderr);
                let client = McpClient::over_streams(&options.name, streams, limits).await?;
                return Ok((client, Some(Running::Inside { handle }), None));
            }
            ServerPlace::Outside { by_events, hosts } => {
                let reached = Reached::At(addresses(options, hosts).await?);
                let client = over_http(options, reached, *by_events, limits).await?;
                return Ok((client, None, None));
            }
            ServerPlace::Listens(port) | ServerPlace::ListensForEvents(port) => *port,
        };
        // What the task starts may take a while to listen.
        let listens = self.sandbox.connect_within(port, limits.start).await;
        drop(listens.map_err(failed)?);
        let bridge = Bridge::open(&self.sandbox, port).map_err(|source| {
            let doing = "make a socket for a server of tools in";
            failed(SandboxError::Host { doing, path: std::env::temp_dir(), source })
        })?;
        let by_events = matches!(self.at, ServerPlace::ListensForEvents(_));
        let client =
            over_http(options, Reached::Behind(bridge.socket()), by_events, limits).await?;
        Ok((client, None, Some(bridge)))
    }
}

/// Where connections to a server's URL are made to.
enum Reached {
    /// These addresses.
    At(Vec<SocketAddr>),
    /// This socket.
    Behind(PathBuf),
}

/// The addresses of a server elsewhere, which are looked up once, so that its name cannot come to mean another place.
async fn addresses(
    options: &McpOptions,
    hosts: &[AllowedHost],
) -> Result<Vec<SocketAddr>, EnvironmentError> {
    let url = options.url.as_deref().unwrap_or_default();
    let failed = |detail| EnvironmentError::NoServer { server: options.name.clone(), detail };
    let target = authority(url).and_then(|authority| Target::parse(&authority, None));
    let target = target.ok_or_else(|| failed(format!("`{url}` names no host")))?;
    resolve(hosts, &target).await.map_err(|error| failed(chain(&error)))
}

/// Takes up a connection with the server at the options' URL.
async fn over_http(
    options: &McpOptions,
    reached: Reached,
    by_events: bool,
    limits: McpLimits,
) -> Result<McpClient, EnvironmentError> {
    let url = options.url.clone().unwrap_or_default();
    let (socket, addresses) = match reached {
        Reached::At(addresses) => (None, Some(addresses)),
        Reached::Behind(socket) => (Some(socket), None),
    };
    let at = McpHttpServer { url, headers: options.headers.clone(), socket, addresses };
    Ok(match by_events {
        true => McpClient::over_events(&options.name, &at, limits).await?,
        false => McpClient::over_http(&options.name, &at, limits).await?,
    })
}

/// A Unix socket in a folder of this user alone, connections to which lead to a port inside a sandbox.
pub(super) struct Bridge {
    folder: TempDir,
    task: JoinHandle<()>,
}

impl Drop for Bridge {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Bridge {
    fn open(sandbox: &Arc<PooledSandbox>, port: u16) -> std::io::Result<Self> {
        let folder = tempfile::Builder::new().prefix("spar-mcp-").tempdir()?;
        let listener = UnixListener::bind(socket_in(folder.path()))?;
        // What holds a connection open keeps no sandbox.
        let task = tokio::spawn(accept(listener, Arc::downgrade(sandbox), port));
        Ok(Self { folder, task })
    }

    fn socket(&self) -> PathBuf {
        socket_in(self.folder.path())
    }
}

fn socket_in(folder: &Path) -> PathBuf {
    folder.join("server")
}

async fn accept(listener: UnixListener, sandbox: Weak<PooledSandbox>, port: u16) {
    let mut connections = JoinSet::new();
    loop {
        if connections.len() >= MOST_CONNECTIONS {
            connections.join_next().await;
        }
        match listener.accept().await {
            Ok((stream, _)) => {
                connections.spawn(carry(stream, sandbox.clone(), port));
            }
            Err(error) => {
                tracing::warn!(%error, "a connection to a server of tools was not taken");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
        while connections.try_join_next().is_some() {}
    }
}

/// Carries one connection; where none can be had inside, it is closed.
async fn carry(mut stream: UnixStream, sandbox: Weak<PooledSandbox>, port: u16) {
    let Some(sandbox) = sandbox.upgrade() else { return };
    let connected = sandbox.connect(port).await;
    drop(sandbox);
    match connected {
        Ok(mut inside) => {
            let _ = copy_bidirectional(&mut stream, &mut inside).await;
        }
        Err(error) => tracing::debug!(port, %error, "a server of tools was not reached"),
    }
}
