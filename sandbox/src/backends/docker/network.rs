//! The network of sandboxes that may reach others, but not each other.
//!
//! An engine's own bridge lets its containers talk. That of sandboxes does not: the engine drops what
//! goes from one of its ports to another. All sandboxes of an engine share it, since an engine has
//! addresses for a few dozen networks only; it belongs to no process and stays.

use std::collections::HashMap;

use bollard::errors::Error;
use bollard::models::{NetworkCreateRequest, NetworkCreateResponse};
use bollard::query_parameters::ListNetworksOptionsBuilder;

use super::container;
use super::engine::{Engine, REQUEST, within};
use super::labels::KIND;
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
