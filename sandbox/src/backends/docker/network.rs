//! The network of sandboxes that may reach others, but not each other.
//!
//! An engine's own bridge lets its containers talk. That of sandboxes does not: the engine drops what
//! goes from one of its ports to another. All sandboxes of an engine share it, since an engine has
//! addresses for a few dozen networks only; it belongs to no process and stays.

use std::collections::HashMap;

use bollard::errors::Error;
use bollard::models::{
    NetworkConnectRequest, NetworkCreateRequest, NetworkCreateResponse, NetworkDisconnectRequest,
};
use bollard::query_parameters::ListNetworksOptionsBuilder;

use super::container;
use super::engine::{Engine, REQUEST, message, within};
use super::labels::KIND;
use super::sandbox::Shared;
use crate::SandboxError;

const NAME: &str = "spar-bridge";
/// [`KIND`] of it.
const BRIDGE: &str = "bridge";
const APART: (&str, &str) = ("com.docker.network.bridge.enable_icc", "false");

/// Its id; it is made where the engine has none.
pub(super) async fn bridge(engine: &Engine) -> Result<String, SandboxError> {
    let known = engine.bridge.lock().expect("no holder panics").clone();
    if let Some(id) = known {
        return Ok(id);
    }
    if engine.is_podman() {
        // Its bridges know no such wall.
        return Err(container::unsupported("keep sandboxes on a bridge of Podman apart"));
    }
    let mut found = find(engine).await?;
    if found.is_none() {
        let made = create(engine).await;
        // Others may have made one at the same time: then all use the same.
        found = settle(engine).await?;
        if let (None, Err(error)) = (&found, made) {
            return Err(engine.error("make the network of sandboxes", error));
        }
    }
    let id = found.ok_or_else(|| SandboxError::Backend {
        doing: "find the network of sandboxes".into(),
        source: "it is gone as soon as it was made".into(),
    })?;
    *engine.bridge.lock().expect("no holder panics") = Some(id.clone());
    Ok(id)
}

/// Makes one, whether there is one or not.
pub(super) async fn create(engine: &Engine) -> Result<NetworkCreateResponse, Error> {
    let request = NetworkCreateRequest {
        name: NAME.into(),
        driver: Some("bridge".into()),
        options: Some(HashMap::from([(APART.0.into(), APART.1.into())])),
        labels: Some(HashMap::from([(KIND.to_owned(), BRIDGE.to_owned())])),
        ..Default::default()
    };
    within(REQUEST, engine.docker.create_network(request)).await
}

/// Forgets what is known of it: the engine says that it is gone.
pub(super) fn forget(engine: &Engine) {
    *engine.bridge.lock().expect("no holder panics") = None;
}

/// The engine's network of containers that have none. A container is in that or in others.
const NONE: &str = "none";

/// Brings a container that runs into it.
pub(super) async fn join(sandbox: &Shared) -> Result<(), SandboxError> {
    let bridge = bridge(&sandbox.engine).await?;
    disconnect(sandbox, NONE).await?;
    let joined = connect(sandbox, &bridge).await;
    if joined.is_err() {
        // Somebody may have removed it; the next sandbox makes it anew.
        forget(&sandbox.engine);
    }
    joined
}

/// Takes a container that runs out of it.
pub(super) async fn leave(sandbox: &Shared) -> Result<(), SandboxError> {
    let bridge = bridge(&sandbox.engine).await?;
    disconnect(sandbox, &bridge).await?;
    connect(sandbox, NONE).await
}

/// To one that it is in already, too.
async fn connect(sandbox: &Shared, network: &str) -> Result<(), SandboxError> {
    let request = NetworkConnectRequest { container: sandbox.name.clone(), endpoint_config: None };
    let asked = sandbox.engine.docker.connect_network(network, request);
    match within(REQUEST, asked).await {
        Ok(()) => Ok(()),
        Err(error) if message(&error).contains("already exists in network") => Ok(()),
        Err(error) => Err(sandbox.trouble("connect the sandbox to a network", error).await),
    }
}

/// Of one that it is not in, too: somebody was here before, and did not get any further.
async fn disconnect(sandbox: &Shared, network: &str) -> Result<(), SandboxError> {
    let request = NetworkDisconnectRequest { container: sandbox.name.clone(), force: None };
    let asked = sandbox.engine.docker.disconnect_network(network, request);
    match within(REQUEST, asked).await {
        Ok(()) => Ok(()),
        Err(error) if message(&error).contains("is not connected to") => Ok(()),
        Err(error) => Err(sandbox.trouble("disconnect the sandbox from a network", error).await),
    }
}

/// Leaves the oldest of its name alone and returns its id. Engines before 25 may make two at a time, and then
/// start no container in either of them, so that nothing is lost with the younger ones.
pub(super) async fn settle(engine: &Engine) -> Result<Option<String>, SandboxError> {
    let mut ids = all(engine).await?.into_iter();
    let oldest = ids.next();
    for younger in ids {
        let removed = within(REQUEST, engine.docker.remove_network(&younger)).await;
        if let Err(error) = removed {
            // Whoever made it may have been quicker.
            tracing::debug!(%error, younger, "could not remove a second network of sandboxes");
        }
    }
    Ok(oldest)
}

/// The oldest of its name that keeps its containers apart.
async fn find(engine: &Engine) -> Result<Option<String>, SandboxError> {
    Ok(all(engine).await?.into_iter().next())
}

/// All of its name that keep their containers apart, oldest first.
async fn all(engine: &Engine) -> Result<Vec<String>, SandboxError> {
    let filters = HashMap::from([
        ("name".to_owned(), vec![NAME.to_owned()]),
        ("label".to_owned(), vec![format!("{KIND}={BRIDGE}")]),
    ]);
    let options = ListNetworksOptionsBuilder::new().filters(&filters).build();
    let networks = within(REQUEST, engine.docker.list_networks(Some(options)))
        .await
        .map_err(|error| engine.error("list networks", error))?;
    let is_apart = |options: &HashMap<String, String>| {
        options.get(APART.0).is_some_and(|value| value == APART.1)
    };
    let mut own: Vec<_> = networks
        .into_iter()
        .filter(|network| network.name.as_deref() == Some(NAME))
        .filter(|network| network.options.as_ref().is_some_and(is_apart))
        .collect();
    own.sort_by_key(|network| (network.created.clone(), network.id.clone()));
    Ok(own.into_iter().filter_map(|network| network.id).collect())
}
