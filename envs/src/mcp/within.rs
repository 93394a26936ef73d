//! Servers in a sandbox that an episode has anyway.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::Duration;

use spar_mcp::{McpClient, McpHttpServer, McpLimits, McpServerStreams};
use spar_sandbox::pool::PooledSandbox;
use spar_sandbox::{ExecRequest, Process, Sandbox, SandboxError};
use tempfile::TempDir;
use tokio::io::copy_bidirectional;
use tokio::net::{UnixListener, UnixStream};
use tokio::task::{JoinHandle, JoinSet};

use super::McpOptions;
use crate::process::Running;
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
            ServerPlace::Listens(port) | ServerPlace::ListensForEvents(port) => *port,
        };
        // What the task starts may take a while to listen.
        let listens = self.sandbox.connect_within(port, limits.start).await;
        drop(listens.map_err(failed)?);
        let bridge = Bridge::open(&self.sandbox, port).map_err(|source| {
            let doing = "make a socket for a server of tools in";
            failed(SandboxError::Host { doing, path: std::env::temp_dir(), source })
        })?;
        let url = options.url.clone().unwrap_or_default();
        let socket = Some(bridge.socket().to_owned());
        let at = McpHttpServer { url, headers: options.headers.clone(), socket };
        let client = match &self.at {
            ServerPlace::ListensForEvents(_) => {
                McpClient::over_events(&options.name, &at, limits).await?
            }
            _ => McpClient::over_http(&options.name, &at, limits).await?,
        };
        Ok((client, None, Some(bridge)))
    }
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
