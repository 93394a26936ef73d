//! Judging services that the agent leaves running.
//!
//! ```text
//!   agent's sandbox                │ this process            │ fresh sandbox
//!   service :8080 ◀── connect ─────┼── proxy of allow-list ◀─┼── verifier, SERVICE_8080=service.internal:8080
//! ```
//!
//! The agent's processes run on, and nothing is judged beside them: the verifier, its files and its reward are in a
//! sandbox that never held anything of the agent. Connections are opened from there alone, to the ports that the task
//! names; whatever comes back is what the service answers. Nothing on the host listens for them.

use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use spar_sandbox::allow_list::ServedHosts;
use spar_sandbox::pool::PooledSandbox;
use spar_sandbox::{ByteStream, Death, NetworkPolicy, Sandbox, SandboxError, SandboxSpec};
use spar_tasks::graders::ScriptFinding as Finding;
use spar_tasks::{SERVICE_HOST, TerminalTask, TerminalVerifier};
use tokio::time::timeout;

use super::Deadlines;
use super::deadlines::whole_script;
use super::machine::{
    Machine, in_time, in_verifying, nothing, own_fault, spec_of, unjudged, with_sources,
};
use crate::SandboxPhase::Verify;
use crate::{EnvironmentError, Sandboxes};

/// Ways to the services of one sandbox, which end with it.
struct Services {
    agent: Weak<PooledSandbox>,
    ports: Vec<u16>,
    trouble: Trouble,
}

/// What first kept a connection from a service, where the service is not to blame for sure.
#[derive(Clone, Default)]
struct Trouble(Arc<Mutex<Option<SandboxError>>>);

impl Trouble {
    fn keep(&self, error: SandboxError) {
        let is_of_service = matches!(
            error,
            SandboxError::NotListening { .. } | SandboxError::ConnectRefused { .. }
        );
        if !is_of_service {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        }
    }

    fn take(&self) -> Option<SandboxError> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Services {
    fn of(agent: &Arc<PooledSandbox>, script: &TerminalVerifier) -> Self {
        let ports = script.service_ports.clone();
        Self { agent: Arc::downgrade(agent), ports, trouble: Trouble::default() }
    }

    /// The spec of the sandbox that reaches them, beside what the task itself allows.
    fn admitted_to(&self, mut spec: SandboxSpec) -> SandboxSpec {
        let places: Vec<_> =
            self.ports.iter().map(|port| (*port, format!("{SERVICE_HOST}:{port}"))).collect();
        let entries = places.iter().map(|(_, place)| {
            place.parse().expect("a name and a port are an entry of an allow-list")
        });
        spec.network = match spec.network {
            NetworkPolicy::Allow { mut hosts, max_bytes } => {
                hosts.extend(entries);
                NetworkPolicy::Allow { hosts, max_bytes }
            }
            // `bridge` is refused with the task.
            NetworkPolicy::None | NetworkPolicy::Bridge => NetworkPolicy::allow(entries),
        };
        spec.env
            .extend(places.iter().map(|(port, place)| (format!("SERVICE_{port}"), place.clone())));
        let (agent, trouble) = (self.agent.clone(), self.trouble.clone());
        spec.served = ServedHosts::default().with(SERVICE_HOST, move |port| {
            let (agent, trouble) = (agent.clone(), trouble.clone());
            connect(agent, port, trouble)
        });
        spec
    }
}

/// A connection to a service; what keeps it away is told to the client in words, and kept.
async fn connect(
    agent: Weak<PooledSandbox>,
    port: u16,
    trouble: Trouble,
) -> Result<ByteStream, String> {
    let agent = agent.upgrade().ok_or("the sandbox of the service is gone")?;
    agent.connect(port).await.map_err(|error| {
        let said = with_sources(&error);
        tracing::debug!(port, error = said, "a connection to a service failed");
        trouble.keep(error);
        format!("could not {said}")
    })
}

impl Machine {
    /// Judges the services that the script names from a fresh sandbox, which takes the place of the agent's.
    pub(super) async fn verify_services(
        &mut self,
        sandboxes: &Sandboxes,
        task: &TerminalTask,
        script: &TerminalVerifier,
        deadlines: &Deadlines,
    ) -> Result<Finding, EnvironmentError> {
        if self.is_judges {
            let when = "after the services were judged: what ran on is ended";
            return Err(EnvironmentError::Misused { call: "verify", when });
        }
        // 1. The judge's sandbox: a second one for this episode, of which there are only as many at one time as
        // there is room for beside those of agents, so that episodes do not wait for each other.
        let _turn = sandboxes.judging(deadlines.turn).await.map_err(of_judge)?;
        let services = Services::of(&self.sandbox, script);
        let spec = services.admitted_to(spec_of(sandboxes, task, deadlines));
        let mut judge =
            Self::begin_of(sandboxes, &spec, task, deadlines).await.map_err(in_verifying)?;
        judge.is_judges = true;
        let found = self.judge_from(&mut judge, &services.trouble, task, script).await;
        // Whatever was found holds, whether or not what is left can be removed now: the pool tries again.
        let mut agent = std::mem::replace(self, judge);
        if let Err(error) = agent.close().await {
            tracing::warn!(sandbox = agent.id(), %error, "could not close a sandbox after judging its services");
        }
        found
    }

    async fn judge_from(
        &mut self,
        judge: &mut Self,
        trouble: &Trouble,
        task: &TerminalTask,
        script: &TerminalVerifier,
    ) -> Result<Finding, EnvironmentError> {
        let whole = whole_script(script);
        // 2. Something listens, or there is nothing to judge.
        match in_time(Verify, whole, timeout(whole, self.all_listen(script)).await) {
            Ok(()) => {}
            Err(error @ SandboxError::NotListening { .. }) => {
                return Ok(nothing(format!("could not {}", with_sources(&error))));
            }
            Err(error) => return unjudged(&self.sandbox, &self.pool, error).await,
        }
        let taken = timeout(whole, self.take_out(task, script)).await;
        let carried = match in_time(Verify, whole, taken) {
            Ok(Ok(carried)) => carried,
            Ok(Err(finding)) => return Ok(finding),
            Err(error) => return unjudged(&self.sandbox, &self.pool, error).await,
        };
        let brought = timeout(whole, judge.bring_in(task, script, &carried)).await;
        if let Err(error) = in_time(Verify, whole, brought) {
            return judge.kept_from_judging(script, error).await;
        }
        // 3. It judges, while the agent's sandbox goes on.
        let judged = timeout(whole, judge.judged(task, script)).await;
        let finding = match in_time(Verify, whole, judged) {
            Ok(finding) => finding,
            Err(error) => judge.kept_from_judging(script, error).await?,
        };
        // 4. What kept a service from answering may be the infrastructure's.
        if finding.reward < 1.0 {
            let error = match trouble.take() {
                Some(error) => Some(error),
                None => self.sandbox.check().await.err().filter(|error| !is_of_age(error)),
            };
            if let Some(error) = error {
                own_fault(&self.sandbox, &self.pool, Verify, error).await?;
            }
        }
        Ok(finding)
    }

    /// Waits until something listens on each port.
    async fn all_listen(&mut self, script: &TerminalVerifier) -> Result<(), SandboxError> {
        let patience = Duration::from_secs(script.service_secs);
        for port in &script.service_ports {
            drop(self.sandbox.connect_within(*port, patience).await?);
        }
        Ok(())
    }

    /// What is found where this sandbox, the judge's, could not do its part. Of the agent it holds what was carried
    /// over, if anything, and what the services answered: that can fill it, and nothing else.
    async fn kept_from_judging(
        &mut self,
        script: &TerminalVerifier,
        error: SandboxError,
    ) -> Result<Finding, EnvironmentError> {
        let is_full = matches!(
            error,
            SandboxError::Died { death: Death::OutOfMemory, .. }
                | SandboxError::UsedUp { .. }
                | SandboxError::NoSpace { .. }
                | SandboxError::DiskFull { .. }
        );
        if script.carry.is_empty() && !is_full {
            return Err(of_judge(error));
        }
        unjudged(&self.sandbox, &self.pool, error).await
    }
}

/// The agent's sandbox was there for all of the verifier's connections, and its time to live ended only then.
fn is_of_age(error: &SandboxError) -> bool {
    matches!(error, SandboxError::Died { death: Death::Expired, .. })
}

fn of_judge(source: SandboxError) -> EnvironmentError {
    EnvironmentError::Sandbox { phase: Verify, source }
}
