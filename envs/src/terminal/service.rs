//! Judging services that the agent leaves running.
//!
//! ```text
//!   agent's sandbox                │ this process                      │ fresh sandbox
//!   service :8080 ◀── connect ─────┼── 127.0.0.1:PORT ◀── allow-list ──┼── verifier, SERVICE_8080
//! ```
//!
//! The agent's processes run on, and nothing is judged beside them: the verifier, its files and its reward are in a
//! sandbox that never held anything of the agent. Connections are opened from there alone, to the ports that the task
//! names; whatever comes back is what the service answers.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use spar_sandbox::pool::PooledSandbox;
use spar_sandbox::{NetworkPolicy, Sandbox, SandboxError, SandboxSpec};
use spar_tasks::graders::ScriptFinding as Finding;
use spar_tasks::{TerminalTask, TerminalVerifier};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::Deadlines;
use super::deadlines::whole_script;
use super::machine::{
    Machine, in_time, in_verifying, nothing, own_fault, spec_of, unjudged, with_sources,
};
use crate::SandboxPhase::Verify;
use crate::{EnvironmentError, Sandboxes};

/// Connections to one service at one time; more wait.
const MAX_CONNECTIONS: usize = 64;
/// How long accepting rests after the system could not.
const REST: Duration = Duration::from_millis(100);

/// Ways to the services of one sandbox, closed when dropped.
struct Services {
    /// Of each port, the address of this machine that leads to it.
    addresses: Vec<(u16, SocketAddr)>,
    _passing: JoinSet<()>,
}

impl Services {
    /// Opens a way to each port once something listens there.
    async fn open(
        agent: &Arc<PooledSandbox>,
        script: &TerminalVerifier,
    ) -> Result<Self, SandboxError> {
        let (mut addresses, mut passing) = (Vec::new(), JoinSet::new());
        for port in script.service_ports.iter().copied() {
            let patience = Duration::from_secs(script.service_secs);
            drop(agent.connect_within(port, patience).await?);
            let failed = |source: std::io::Error| SandboxError::Backend {
                doing: format!("open a way to port {port} of the sandbox"),
                source: source.into(),
            };
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.map_err(failed)?;
            addresses.push((port, listener.local_addr().map_err(failed)?));
            passing.spawn(pass_all(listener, Arc::clone(agent), port));
        }
        Ok(Self { addresses, _passing: passing })
    }

    /// The spec of the sandbox that reaches them, beside what the task itself allows.
    fn admitted_to(&self, mut spec: SandboxSpec) -> SandboxSpec {
        let entries = self.addresses.iter().map(|(_, address)| {
            address.to_string().parse().expect("an address is an entry of an allow-list")
        });
        spec.network = match spec.network {
            NetworkPolicy::Allow { mut hosts, max_bytes } => {
                hosts.extend(entries);
                NetworkPolicy::Allow { hosts, max_bytes }
            }
            // `bridge` is refused with the task.
            NetworkPolicy::None | NetworkPolicy::Bridge => NetworkPolicy::allow(entries),
        };
        for (port, address) in &self.addresses {
            spec.env.insert(format!("SERVICE_{port}"), address.to_string());
        }
        spec
    }
}

/// Passes every connection on to the port of the sandbox. Dropping it ends them all.
async fn pass_all(listener: TcpListener, agent: Arc<PooledSandbox>, port: u16) {
    let mut passing = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept(), if passing.len() < MAX_CONNECTIONS => match accepted {
                Ok((client, _)) => drop(passing.spawn(pass(client, Arc::clone(&agent), port))),
                Err(error) => {
                    tracing::warn!(%error, "could not accept a connection to a service");
                    sleep(REST).await;
                }
            },
            Some(_) = passing.join_next() => {}
        }
    }
}

async fn pass(mut client: TcpStream, agent: Arc<PooledSandbox>, port: u16) {
    // A service that has gone is told by the connection's end.
    let Ok(mut service) = agent.connect(port).await else { return };
    let _ = copy_bidirectional(&mut client, &mut service).await;
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
        let whole = whole_script(script);
        // 1. Something listens, or there is nothing to judge.
        let opened = timeout(whole, Services::open(&self.sandbox, script)).await;
        let services = match in_time(Verify, whole, opened) {
            Ok(services) => services,
            Err(error @ SandboxError::NotListening { .. }) => {
                return Ok(nothing(format!("could not {}", with_sources(&error))));
            }
            Err(error) => return unjudged(&self.sandbox, &self.pool, error).await,
        };
        let taken = timeout(whole, self.take_out(task, script)).await;
        let carried = match in_time(Verify, whole, taken) {
            Ok(Ok(carried)) => carried,
            Ok(Err(finding)) => return Ok(finding),
            Err(error) => return unjudged(&self.sandbox, &self.pool, error).await,
        };
        // 2. The judge's sandbox: a second one for this episode, of which there are only as many at one time as
        // there is room for beside those of agents, so that episodes do not wait for each other.
        let _turn = sandboxes.judging().await;
        let spec = services.admitted_to(spec_of(sandboxes, task, deadlines));
        let judge =
            Self::begin_of(sandboxes, &spec, task, deadlines).await.map_err(in_verifying)?;
        let mut agent = std::mem::replace(self, judge);
        let brought = timeout(whole, self.bring_in(task, script, &carried)).await;
        if let Err(error) = in_time(Verify, whole, brought) {
            return unjudged(&self.sandbox, &self.pool, error).await;
        }
        // 3. It judges, while the agent's sandbox goes on.
        let judged = timeout(whole, self.judged(task, script)).await;
        let finding = match in_time(Verify, whole, judged) {
            Ok(finding) => finding,
            Err(error) => unjudged(&self.sandbox, &self.pool, error).await?,
        };
        // 4. What kept a service from answering may be the infrastructure's.
        if finding.reward < 1.0
            && let Err(error) = agent.sandbox.check().await
        {
            own_fault(&agent.sandbox, &agent.pool, Verify, error).await?;
        }
        drop(services);
        agent.close().await?;
        Ok(finding)
    }
}
