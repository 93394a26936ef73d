//! What environments may need of the machine.

use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use spar_core::Policy;
use spar_sandbox::pool::SandboxPool;
use spar_sandbox::{Image, SandboxError, SandboxSpec};
use spar_search::Corpora;
use spar_tasks::graders::{GraderConfig, GradingModels};

use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;

use crate::EnvironmentError;
use crate::mcp::McpServers;
use crate::ors::OrsServers;
use crate::process::Programs;
use crate::web::Windows;

/// What environments may need of the machine; by default nothing. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Resources {
    sandboxes: Option<Sandboxes>,
    /// The programs that environments are played in.
    pub(crate) programs: Programs,
    /// The corpora that environments search.
    pub(crate) corpora: Corpora,
    /// The servers whose tools episodes call.
    pub(crate) servers: McpServers,
    /// The servers that give tasks.
    pub(crate) task_servers: OrsServers,
    /// The browser that episodes look at pages in.
    pub(crate) windows: Windows,
    /// Who judges beside those that tasks name.
    pub(crate) graders: Arc<[GraderConfig]>,
    /// The models that take part in judging.
    pub(crate) models: GradingModels,
    /// Whether the environment judges by itself, whatever graders tasks name.
    pub(crate) is_ungraded: bool,
}

/// Where sandboxes are taken from. Clones share the pool.
#[derive(Clone)]
pub struct Sandboxes {
    /// Makes and bounds them.
    pub pool: Arc<SandboxPool>,
    /// The image of tasks that name none. Default the backend's smallest.
    pub image: Image,
    /// How long the agent's own commands may take in all, where the task's rules give no time.
    /// Default ten minutes, as episodes have it.
    pub commands: Duration,
    /// How long the policy may take for one answer. Default two minutes, as episodes have it.
    pub answer: Duration,
    /// The most turns of an episode, where that is not for the task alone to say. Default absent.
    pub max_turns: Option<u32>,
    /// Sandboxes of every spec that are kept ready in advance. Default none.
    pub warm: usize,
    warmed: Arc<Mutex<HashSet<String>>>,
    /// What was found in images, or could not be looked for.
    looked: Arc<Mutex<HashSet<String>>>,
    /// Episodes that may hold a second sandbox.
    judges: Arc<Semaphore>,
}

impl Resources {
    /// With sandboxes.
    pub fn with_sandboxes(sandboxes: Sandboxes) -> Self {
        Self { sandboxes: Some(sandboxes), ..Self::default() }
    }

    /// The same, with graders beside those that tasks name, and the models that take part in judging.
    #[must_use]
    pub fn with_graders(self, graders: Arc<[GraderConfig]>, models: GradingModels) -> Self {
        Self { graders, models, ..self }
    }

    /// The same, where the environment judges by itself whatever graders tasks name: for those who play again what was
    /// judged, or look at the environment alone.
    #[must_use]
    pub fn without_graders(self) -> Self {
        Self { is_ungraded: true, ..self }
    }

    /// The same, with this policy as the one that plays, for graders that ask it.
    #[must_use]
    pub fn with_policy(mut self, policy: Option<Arc<dyn Policy>>) -> Self {
        self.models.policy = policy;
        self
    }

    /// Ends the programs that environments were played in, the sandboxes of servers and the browser, and waits for it; nothing is
    /// played in them afterwards.
    pub async fn close_programs(&self) {
        let (programs, servers) = (self.programs.close(), self.servers.close());
        futures::future::join3(programs, servers, self.windows.close()).await;
    }

    /// Where an environment takes its sandboxes from.
    ///
    /// # Errors
    ///
    /// [`EnvironmentError::NoSandboxes`] where there are none.
    pub fn sandboxes(&self, environment: &'static str) -> Result<&Sandboxes, EnvironmentError> {
        self.sandboxes.as_ref().ok_or(EnvironmentError::NoSandboxes { environment })
    }
}

impl Sandboxes {
    /// Those of a pool, with the defaults; the fields can be set.
    pub fn new(pool: Arc<SandboxPool>) -> Self {
        Self {
            pool,
            image: Image::Default,
            commands: Duration::from_secs(600),
            answer: Duration::from_secs(120),
            max_turns: None,
            warm: 0,
            warmed: Arc::default(),
            looked: Arc::default(),
            judges: Arc::new(Semaphore::new(1)),
        }
    }

    /// The same, where so many episodes at one time may hold a second sandbox, in which a service of the first is
    /// judged; the pool needs room for them beside those of all episodes. Default 1.
    #[must_use]
    pub fn with_judges(self, judges: usize) -> Self {
        Self { judges: Arc::new(Semaphore::new(judges.max(1))), ..self }
    }

    /// Leave to hold a second sandbox.
    ///
    /// # Errors
    ///
    /// [`SandboxError::Saturated`] where it did not come within `patience`.
    pub(crate) async fn judging(
        &self,
        patience: Duration,
    ) -> Result<SemaphorePermit<'_>, SandboxError> {
        let turn = timeout(patience, self.judges.acquire()).await;
        let turn = turn.map_err(|_| SandboxError::Saturated {
            reason: format!(
                "as many services as there is room for are being judged, and the turn of this one did not come \
                 within {} s",
                patience.as_secs()
            ),
        })?;
        Ok(turn.expect("nobody closes it"))
    }

    /// Whether this was looked for in an image already.
    pub(crate) fn has_looked(&self, key: &str) -> bool {
        self.looked.lock().unwrap_or_else(PoisonError::into_inner).contains(key)
    }

    /// Notes that this need not be looked for any more.
    pub(crate) fn note_look(&self, key: String) {
        self.looked.lock().unwrap_or_else(PoisonError::into_inner).insert(key);
    }

    /// Has the pool keep some ready of a spec that is met for the first time.
    pub(crate) fn warm_up(&self, spec: &SandboxSpec) {
        let mut warmed = self.warmed.lock().unwrap_or_else(PoisonError::into_inner);
        if self.warm > 0 && warmed.insert(spec.key()) {
            self.pool.keep_warm(spec, self.warm);
        }
    }
}

impl fmt::Debug for Sandboxes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sandboxes")
            .field("backend", &self.pool.backend().name())
            .field("image", &self.image)
            .field("commands", &self.commands)
            .finish_non_exhaustive()
    }
}
