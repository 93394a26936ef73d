//! The servers that episodes are played on.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use spar_ors::{OrsLimits, OrsServer, OrsSession, OrsTaskChoice};
use spar_tasks::OrsSpec;
use tokio::sync::{OnceCell, OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::EnvironmentError;

/// Servers that are kept where no episode is played on any.
const MOST_IDLE: usize = 64;

/// The servers that episodes are played on, each with the places for it. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct OrsServers {
    servers: Arc<Mutex<HashMap<String, Arc<SharedServer>>>>,
}

/// A server, with the places for episodes on it.
pub(super) struct SharedServer {
    pub(super) spec: OrsSpec,
    server: OrsServer,
    /// Its first environment, where the spec names none.
    first: OnceCell<String>,
    places: Arc<Semaphore>,
}

impl OrsServers {
    /// The server of equal specs; an error says why it cannot be had.
    pub(super) fn server(&self, spec: &OrsSpec) -> Result<Arc<SharedServer>, String> {
        let key = serde_json::to_string(spec).expect("a spec has only string keys");
        let mut servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(server) = servers.get(&key) {
            return Ok(Arc::clone(server));
        }
        if servers.len() >= MOST_IDLE {
            servers.retain(|_, server| Arc::strong_count(server) > 1);
        }
        let start = Duration::from_secs(spec.start_secs);
        let limits = OrsLimits { start, ..OrsLimits::default() };
        let server = OrsServer::new(&spec.address()?, limits).map_err(|error| error.to_string())?;
        let places = Arc::new(Semaphore::new(spec.sessions));
        let shared = SharedServer { spec: spec.clone(), server, first: OnceCell::new(), places };
        Ok(Arc::clone(servers.entry(key).or_insert(Arc::new(shared))))
    }
}

impl fmt::Debug for OrsServers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        f.debug_struct("OrsServers").field("servers", &servers.len()).finish()
    }
}

impl SharedServer {
    /// A place for an episode.
    pub(super) async fn place(&self) -> Result<OwnedSemaphorePermit, EnvironmentError> {
        let seconds = self.spec.wait_secs;
        let place = Arc::clone(&self.places).acquire_owned();
        let place = timeout(Duration::from_secs(seconds), place).await;
        let place = place.map_err(|_| EnvironmentError::NoPlace { seconds })?;
        Ok(place.expect("nobody closes it"))
    }

    /// Begins a task.
    pub(super) async fn begin(&self, task: &OrsTaskChoice) -> Result<OrsSession, EnvironmentError> {
        let environment = match &self.spec.environment {
            Some(name) => name,
            None => {
                let ask = async || Ok(self.server.environments().await?.swap_remove(0));
                let asked: Result<_, EnvironmentError> = self.first.get_or_try_init(ask).await;
                asked?
            }
        };
        Ok(self.server.begin(environment, task).await?)
    }
}
