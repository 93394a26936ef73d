//! The servers that episodes have.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use spar_mcp::{McpClient, McpError, McpServerStreams};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::McpOptions;
use super::within::{Bridge, Within};
use crate::EnvironmentError;
use crate::process::{Launched, Launcher, Running};

/// How long a server may take to end by itself when its input has ended.
const ENDING: Duration = Duration::from_secs(2);
/// How long is waited for the end of a server that has closed its streams, to tell how it ended.
const SETTLING: Duration = Duration::from_millis(500);

/// Kinds of servers that are kept where no episode has any.
const MOST_IDLE_KINDS: usize = 64;

/// The kinds of servers that episodes have, each with the places for it. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct McpServers {
    kinds: Arc<Mutex<HashMap<String, Arc<ServerKind>>>>,
}

impl McpServers {
    /// The kind of equal options.
    pub(super) fn kind(&self, options: &McpOptions) -> Arc<ServerKind> {
        let key = serde_json::to_string(options).expect("options have only string keys");
        let mut kinds = self.kinds.lock().unwrap_or_else(PoisonError::into_inner);
        if kinds.len() >= MOST_IDLE_KINDS && !kinds.contains_key(&key) {
            // Tasks may each have a server of their own: what no episode holds any more is let go.
            kinds.retain(|_, kind| Arc::strong_count(kind) > 1);
        }
        Arc::clone(kinds.entry(key).or_insert_with(|| Arc::new(ServerKind::new(options.clone()))))
    }

    /// Closes the sandboxes of servers; none is started afterwards.
    pub(crate) async fn close(&self) {
        let kinds: Vec<_> = {
            let kinds = self.kinds.lock().unwrap_or_else(PoisonError::into_inner);
            kinds.values().cloned().collect()
        };
        let closed = kinds.iter().filter_map(|kind| kind.launcher.as_ref());
        futures::future::join_all(closed.map(|launcher| launcher.close())).await;
    }
}

impl fmt::Debug for McpServers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kinds = self.kinds.lock().unwrap_or_else(PoisonError::into_inner);
        f.debug_struct("McpServers").field("kinds", &kinds.len()).finish()
    }
}

/// Servers of equal options.
pub(super) struct ServerKind {
    pub(super) options: McpOptions,
    /// Absent where they are reached by a URL.
    launcher: Option<Launcher>,
    /// Where they are in a sandbox that their episode has anyway.
    within: Option<Within>,
    places: Arc<Semaphore>,
}

/// A server that an episode has to itself.
pub(super) struct Connection {
    pub(super) client: McpClient,
    running: Option<Running>,
    /// The way into a sandbox that the server listens in.
    _bridge: Option<Bridge>,
    _place: OwnedSemaphorePermit,
}

impl ServerKind {
    fn new(options: McpOptions) -> Self {
        let is_process = options.url.is_none();
        let launcher = is_process.then(|| Launcher::new(Arc::new(options.program())));
        let places = Arc::new(Semaphore::new(options.servers));
        Self { options, launcher, within: None, places }
    }

    /// The one server of these options that is in a sandbox.
    pub(super) fn within(options: McpOptions, within: Within) -> Self {
        let places = Arc::new(Semaphore::new(1));
        Self { options, launcher: None, within: Some(within), places }
    }

    /// Starts a server, or takes up a connection with one.
    pub(super) async fn connect(&self) -> Result<Connection, EnvironmentError> {
        let (options, limits) = (&self.options, self.options.limits());
        let patience = Duration::from_secs(options.wait_secs);
        let place = timeout(patience, Arc::clone(&self.places).acquire_owned()).await;
        let place = place.map_err(|_| EnvironmentError::NoPlace { seconds: options.wait_secs })?;
        let place = place.expect("nobody closes it");
        if let Some(within) = &self.within {
            let (client, running, _bridge) = within.connect(options, limits).await?;
            return Ok(Connection { client, running, _bridge, _place: place });
        }
        let Some(launcher) = &self.launcher else {
            let url = options.url.as_deref().unwrap_or_default();
            let at = options.http(url).map_err(|detail| EnvironmentError::NoServer {
                server: options.name.clone(),
                detail,
            })?;
            let client = McpClient::over_http(&options.name, &at, limits).await?;
            return Ok(Connection { client, running: None, _bridge: None, _place: place });
        };
        let Launched { stdin, stdout, stderr, mut running } = launcher.launch().await?;
        let streams = McpServerStreams::new(stdin, stdout, stderr);
        match McpClient::over_streams(&options.name, streams, limits).await {
            Ok(client) => {
                let running = Some(running);
                Ok(Connection { client, running, _bridge: None, _place: place })
            }
            Err(error) => {
                let how = timeout(SETTLING, running.wait()).await.ok();
                running.end().await;
                Err(ended(error, how))
            }
        }
    }
}

impl Connection {
    /// The same error, with how the server ended where that is behind it.
    pub(super) async fn explain(&mut self, error: McpError) -> EnvironmentError {
        let how = match &mut self.running {
            Some(running) => timeout(SETTLING, running.wait()).await.ok(),
            None => None,
        };
        ended(error, how)
    }

    /// Ends the server, or the connection with it.
    pub(super) async fn close(self) {
        let Self { client, running, _bridge, _place } = self;
        client.close().await;
        if let Some(mut running) = running {
            // Its input has ended, and with it most servers do.
            let _ = timeout(ENDING, running.wait()).await;
            running.end().await;
        }
    }
}

fn ended(error: McpError, how: Option<String>) -> EnvironmentError {
    match how {
        Some(how) => error.with_end(how).into(),
        None => error.into(),
    }
}
