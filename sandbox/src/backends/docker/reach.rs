//! What a container reaches, and how that changes while it runs.
//!
//! | network | the container's own | the relay |
//! | --- | --- | --- |
//! | `None` | none | absent, or of an empty list where there was another before |
//! | `Allow` | none | of the list |
//! | `Bridge` | that of sandboxes (`network.rs`) | as for `None` |
//!
//! A relay that was started stays: its port is free at once for none but itself.

use std::sync::{Arc, Mutex, PoisonError};

use super::network;
use super::relay::Relay;
use super::sandbox::Shared;
use crate::allow_list::{self, NetworkStats};
use crate::{NetworkPolicy, SandboxError, SandboxSpec};

/// What a container reaches now.
pub(super) struct Reach {
    network: Mutex<NetworkPolicy>,
    relay: Relay,
    /// Held by whoever changes it.
    changing: tokio::sync::Mutex<()>,
}

impl Reach {
    /// Of a container of this name that was made by the spec.
    pub(super) fn new(sandbox: &str, spec: &SandboxSpec) -> Self {
        Self {
            network: Mutex::new(spec.network.clone()),
            relay: Relay::new(sandbox, spec),
            changing: tokio::sync::Mutex::default(),
        }
    }

    pub(super) fn network(&self) -> NetworkPolicy {
        self.network.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn note(&self, network: NetworkPolicy) {
        *self.network.lock().unwrap_or_else(PoisonError::into_inner) = network;
    }

    /// The variables of a command, but for its own: where the way out is, unless the spec sets them itself.
    pub(super) fn variables(&self, spec: &SandboxSpec) -> Vec<(String, String)> {
        match self.network() {
            NetworkPolicy::Allow { hosts, .. } => {
                let mut variables = allow_list::variables(&hosts);
                variables.retain(|(name, _)| !spec.env.contains_key(name));
                variables
            }
            NetworkPolicy::None | NetworkPolicy::Bridge => Vec::new(),
        }
    }

    /// Makes sure that there is a way to the hosts of a list, where there is one.
    pub(super) async fn ensure(&self, sandbox: &Shared) -> Result<(), SandboxError> {
        match self.network() {
            NetworkPolicy::Allow { .. } => self.relay.ensure(sandbox, true).await,
            NetworkPolicy::None | NetworkPolicy::Bridge => Ok(()),
        }
    }

    /// What passed the list; absent without one.
    pub(super) fn stats(&self) -> Option<NetworkStats> {
        matches!(self.network(), NetworkPolicy::Allow { .. }).then(|| self.relay.stats())
    }

    /// Whether the relay runs, which is a process of the container.
    pub(super) async fn is_relay_running(&self) -> bool {
        self.relay.is_running().await
    }

    /// Ends the way out with all its connections.
    pub(super) async fn end(&self) {
        self.relay.end().await;
    }

    /// Has the container reach something else. Whoever gives up waiting does not interrupt that.
    pub(super) async fn change(
        sandbox: &Arc<Shared>,
        network: &NetworkPolicy,
    ) -> Result<(), SandboxError> {
        let (sandbox, network) = (Arc::clone(sandbox), network.clone());
        let changing = tokio::spawn(async move { sandbox.reach.set(&sandbox, &network).await });
        changing.await.unwrap_or_else(|error| {
            let doing = "change the network of the sandbox".into();
            Err(SandboxError::Backend { doing, source: Box::new(error) })
        })
    }

    async fn set(&self, sandbox: &Shared, network: &NetworkPolicy) -> Result<(), SandboxError> {
        let _changing = self.changing.lock().await;
        let before = self.network();
        if before == *network {
            return Ok(());
        }
        // 1. What it reached so far ends.
        if before == NetworkPolicy::Bridge {
            network::leave(sandbox).await?;
        }
        self.note(NetworkPolicy::None);
        self.relay.allow(&NetworkPolicy::None).await?;
        // 2. It reaches the other.
        match network {
            NetworkPolicy::None => {}
            NetworkPolicy::Bridge => {
                // Noted first: where the engine does not answer, it may have joined all the same.
                self.note(NetworkPolicy::Bridge);
                if let Err(error) = network::join(sandbox).await {
                    match network::leave(sandbox).await {
                        Ok(()) => self.note(NetworkPolicy::None),
                        Err(left) => {
                            let sandbox = &sandbox.name;
                            tracing::warn!(sandbox, error = %left, "it may reach a network still");
                        }
                    }
                    return Err(error);
                }
            }
            NetworkPolicy::Allow { .. } => {
                // What the agent left running there goes on.
                self.relay.ensure(sandbox, false).await?;
                if let Err(error) = self.relay.allow(network).await {
                    // Nobody is told of the list, so that nothing may pass by it.
                    let _ = self.relay.allow(&NetworkPolicy::None).await;
                    return Err(error);
                }
            }
        }
        self.note(network.clone());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Image;

    #[test]
    fn commands_are_told_of_a_list_unless_the_spec_tells_them_itself() {
        let mut spec = SandboxSpec::new(Image::Default);
        assert!(Reach::new("test", &spec).variables(&spec).is_empty());
        spec.network = NetworkPolicy::allow(["example.org:443".parse().unwrap()]);
        spec.env.insert("no_proxy".into(), "own".into());
        let reach = Reach::new("test", &spec);
        let variables = reach.variables(&spec);
        assert!(variables.contains(&("https_proxy".into(), "http://127.0.0.1:3128".into())));
        assert!(variables.len() == 7 && variables.iter().all(|(name, _)| name != "no_proxy"));
        reach.note(NetworkPolicy::Bridge);
        assert!(reach.variables(&spec).is_empty() && reach.stats().is_none());
    }
}
