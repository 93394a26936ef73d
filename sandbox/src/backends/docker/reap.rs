//! Listing what is spar's on an engine, and removing what owners left who are dead or late.

use std::collections::HashMap;
use std::time::Duration;

use bollard::errors::Error;
use bollard::models::{ContainerSummary, Network};
use bollard::query_parameters::{
    ListContainersOptionsBuilder, ListImagesOptionsBuilder, ListNetworksOptionsBuilder,
    ListVolumesOptionsBuilder, RemoveImageOptionsBuilder, RemoveVolumeOptionsBuilder,
};

use serde::Deserialize;

use super::engine::{Engine, REQUEST, SLOW_REQUEST, message, status, within};
use super::labels::{HELPER, KIND, NETWORK, SANDBOX, SNAPSHOT, Tag, VOLUME, filter};
use super::{container, helper};
use crate::OwnerState;
use crate::{ReapReport, SandboxError, SandboxRecord};

/// Looks at the most, and the time between two.
const PASSES: u32 = 5;
const BETWEEN: Duration = Duration::from_millis(500);

/// The repository of the images of snapshots; their tags are names like those of containers.
pub(super) const SNAPSHOTS: &str = "spar-snapshot";

/// What is read of an engine's list of containers.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Entry {
    id: Option<String>,
    names: Option<Vec<String>>,
    labels: Option<HashMap<String, String>>,
}

impl From<ContainerSummary> for Entry {
    fn from(summary: ContainerSummary) -> Self {
        Self { id: summary.id, names: summary.names, labels: summary.labels }
    }
}

/// The entries of an answer that has states Docker does not know: for Podman a container may be
/// `stopped` or `initialized`, for an instant or, where its monitor was killed, for good.
fn entries(list: Result<Vec<ContainerSummary>, Error>) -> Result<Vec<Entry>, Error> {
    match list {
        Err(Error::JsonDataError { contents, .. }) => Ok(serde_json::from_str(&contents)?),
        list => Ok(list?.into_iter().map(Entry::from).collect()),
    }
}

/// One of spar's containers.
struct Found {
    name: String,
    tag: Tag,
    is_sandbox: bool,
}

/// All sandboxes on the engine.
pub(super) async fn list(engine: &Engine) -> Result<Vec<SandboxRecord>, SandboxError> {
    let found = containers(engine, &mut Vec::new()).await?;
    let sandboxes = found.into_iter().filter(|found| found.is_sandbox);
    Ok(sandboxes.map(|found| found.tag.into_record(found.name)).collect())
}

/// Spar's own containers; those with labels that cannot be read are told.
async fn containers(engine: &Engine, unread: &mut Vec<String>) -> Result<Vec<Found>, SandboxError> {
    let options = ListContainersOptionsBuilder::new().all(true).filters(&filter()).build();
    let mut tries = 0;
    let containers = loop {
        let list = engine.docker.list_containers(Some(options.clone()));
        match entries(within(REQUEST, list).await) {
            Ok(containers) => break containers,
            // Podman stumbles over containers that go while it makes the list.
            Err(error) if matches!(status(&error), Some(404 | 500)) && tries < 20 => {
                tries += 1;
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            Err(error) => return Err(engine.error("list containers", error)),
        }
    };
    let mut all = Vec::new();
    for container in containers {
        let labels = container.labels.unwrap_or_default();
        let names = container.names.unwrap_or_default();
        let name = names.first().map(|name| name.trim_start_matches('/').to_owned());
        let Some(name) = name.or(container.id) else { continue };
        let is_sandbox = labels.get(KIND).is_some_and(|kind| kind == SANDBOX);
        match Tag::read(&labels, &[SANDBOX, HELPER]) {
            Ok(Some(tag)) if !is_sandbox && name.starts_with(helper::VOLUME) => {
                all.push(Found { name, tag, is_sandbox });
            }
            Ok(Some(tag)) if is_sandbox && tag.has_named(&name) => {
                all.push(Found { name, tag, is_sandbox });
            }
            // Somebody's own, of an image that was made of a sandbox.
            Ok(_) => {}
            Err(reason) => unread.push(format!("container {name}: {reason}")),
        }
    }
    Ok(all)
}

impl Found {
    /// Whether it is to be removed: its owner is dead or late, or is this process and has given it
    /// up without getting to removing it.
    fn is_over(&self) -> bool {
        let is_own = self.tag.owner.state() == OwnerState::Own;
        self.tag.is_over() || is_own && self.is_sandbox && !container::is_held(&self.name)
    }
}

/// Removes what is over, until a look finds nothing: an engine goes on with what an owner asked for
/// before it was killed.
pub(super) async fn reap(engine: &Engine, report: &mut ReapReport) -> Result<(), SandboxError> {
    for pass in 0..PASSES {
        if pass > 0 {
            tokio::time::sleep(BETWEEN).await;
        }
        let mut found = ReapReport::default();
        let looked = look(engine, &mut found).await;
        if looked.is_err() || pass + 1 == PASSES || found.removed.is_empty() {
            report.add(found);
            return looked;
        }
        // What stays is told by the last look.
        report.removed.append(&mut found.removed);
    }
    Ok(())
}

/// Containers first, since they hold the rest.
async fn look(engine: &Engine, report: &mut ReapReport) -> Result<(), SandboxError> {
    for found in containers(engine, &mut report.unread).await? {
        if !found.is_over() {
            report.kept += 1;
            continue;
        }
        let removed = container::remove(engine, &found.name).await;
        note(report, format!("container {}", found.name), removed.map_err(|e| e.to_string()));
    }
    volumes(engine, report).await?;
    networks(engine, report).await?;
    images(engine, report).await?;
    remove_left_images(engine).await;
    Ok(())
}

fn note(report: &mut ReapReport, what: String, removed: Result<(), String>) {
    match removed {
        Ok(()) => report.removed.push(what),
        Err(error) => report.failed.push(format!("{what}: {error}")),
    }
}

/// Whether a thing of this kind with these labels is to be removed; tells what is kept.
fn is_over(
    kind: &str,
    name: &str,
    labels: &HashMap<String, String>,
    report: &mut ReapReport,
) -> bool {
    match Tag::read(labels, &[kind]) {
        Ok(Some(tag)) if tag.is_over() => return true,
        Ok(Some(_)) => report.kept += 1,
        Ok(None) => {}
        Err(reason) => report.unread.push(format!("{kind} {name}: {reason}")),
    }
    false
}

async fn volumes(engine: &Engine, report: &mut ReapReport) -> Result<(), SandboxError> {
    let options = ListVolumesOptionsBuilder::new().filters(&filter()).build();
    let volumes = within(REQUEST, engine.docker.list_volumes(Some(options)))
        .await
        .map_err(|error| engine.error("list volumes", error))?;
    for volume in volumes.volumes.unwrap_or_default() {
        if !is_over(VOLUME, &volume.name, &volume.labels, report) {
            continue;
        }
        let options = RemoveVolumeOptionsBuilder::new().force(true).build();
        let removal = engine.docker.remove_volume(&volume.name, Some(options));
        let removed = within(SLOW_REQUEST, removal).await.map_err(|error| message(&error));
        note(report, format!("volume {}", volume.name), removed);
    }
    Ok(())
}

async fn networks(engine: &Engine, report: &mut ReapReport) -> Result<(), SandboxError> {
    let options = ListNetworksOptionsBuilder::new().filters(&filter()).build();
    let networks = within(REQUEST, engine.docker.list_networks(Some(options)))
        .await
        .map_err(|error| engine.error("list networks", error))?;
    for Network { name, labels, .. } in networks {
        let name = name.unwrap_or_default();
        if !is_over(NETWORK, &name, &labels.unwrap_or_default(), report) {
            continue;
        }
        let removal = engine.docker.remove_network(&name);
        let removed = within(SLOW_REQUEST, removal).await.map_err(|error| message(&error));
        note(report, format!("network {name}"), removed);
    }
    Ok(())
}

async fn images(engine: &Engine, report: &mut ReapReport) -> Result<(), SandboxError> {
    let options = ListImagesOptionsBuilder::new().all(true).filters(&filter()).build();
    let images = within(REQUEST, engine.docker.list_images(Some(options)))
        .await
        .map_err(|error| engine.error("list images", error))?;
    let mut over = Vec::new();
    for image in images {
        match Tag::read(&image.labels, &[SNAPSHOT]) {
            Ok(Some(tag)) if own_tag(&image.repo_tags, &tag).is_none() => {}
            Ok(Some(tag)) if tag.is_over() => over.push(image),
            Ok(Some(_)) => report.kept += 1,
            Ok(None) => {}
            Err(reason) => report.unread.push(format!("image {}: {reason}", image.id)),
        }
    }
    // One that others build on can only go after them.
    over.sort_by_key(|image| std::cmp::Reverse(image.created));
    let mut ids: Vec<_> = over.into_iter().map(|image| image.id).collect();
    let mut errors = HashMap::new();
    loop {
        let before = ids.len();
        let mut left = Vec::new();
        for id in ids {
            match try_remove_image(engine, &id).await {
                Ok(()) => report.removed.push(format!("image {id}")),
                Err(error) => {
                    errors.insert(id.clone(), error);
                    left.push(id);
                }
            }
        }
        ids = left;
        if ids.is_empty() || ids.len() == before {
            break;
        }
    }
    for id in ids {
        match errors.remove(&id) {
            // A container or an image stands on it, and that was not to be removed.
            Some(error) if status(&error) == Some(409) => report.kept += 1,
            Some(error) => report.failed.push(format!("image {id}: {}", message(&error))),
            None => {}
        }
    }
    Ok(())
}

/// The name under which the owner keeps a snapshot. What people build of one has no such name, though
/// it has the labels.
fn own_tag<'a>(names: &'a [String], tag: &Tag) -> Option<&'a str> {
    names
        .iter()
        .map(String::as_str)
        .find(|name| snapshot_name(name).is_some_and(|name| tag.has_named(name)))
}

/// The last part of a name in the repository of snapshots, which Podman puts behind a host.
fn snapshot_name(name: &str) -> Option<&str> {
    let last = name.rsplit('/').next()?;
    last.strip_prefix(SNAPSHOTS)?.strip_prefix(':')
}

async fn try_remove_image(engine: &Engine, id: &str) -> Result<(), Error> {
    let error = match remove_one_image(engine, id).await {
        Ok(()) => return Ok(()),
        Err(error) => error,
    };
    if status(&error) != Some(409) {
        return Err(error);
    }
    // Somebody gave it a name as well: from now on it is theirs, and only our name goes.
    let Ok(image) = within(REQUEST, engine.docker.inspect_image(id)).await else {
        return Err(error);
    };
    let names = image.repo_tags.unwrap_or_default();
    let (own, others): (Vec<_>, Vec<_>) =
        names.iter().partition(|name| snapshot_name(name).is_some());
    if others.is_empty() {
        return Err(error);
    }
    for name in own {
        remove_one_image(engine, name).await?;
    }
    Ok(())
}

async fn remove_one_image(engine: &Engine, name: &str) -> Result<(), Error> {
    // Parents are somebody's snapshots, or images that are wanted: they stay. By force, what others
    // named and made of it would go as well.
    let options = RemoveImageOptionsBuilder::new().force(false).noprune(true).build();
    match within(SLOW_REQUEST, engine.docker.remove_image(name, Some(options), None)).await {
        Ok(_) => Ok(()),
        Err(error) if status(&error) == Some(404) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Removes the image of a snapshot, now or once nothing builds on it any more.
pub(super) async fn remove_image(engine: &Engine, id: &str) -> Result<(), SandboxError> {
    match try_remove_image(engine, id).await {
        Ok(()) => Ok(()),
        Err(error) if status(&error) == Some(409) => {
            leave_image(engine, id);
            Ok(())
        }
        Err(error) => Err(engine.error(format!("remove image {id}"), error)),
    }
}

/// Nobody wants the image any more: it is removed with the next ones.
pub(super) fn leave_image(engine: &Engine, id: &str) {
    engine.left_images.lock().expect("no holder panics").push(id.to_owned());
}

/// Tries again what others built on.
pub(super) async fn remove_left_images(engine: &Engine) {
    let left = std::mem::take(&mut *engine.left_images.lock().expect("no holder panics"));
    // The youngest first: older ones may be what they build on.
    for id in left.iter().rev() {
        if let Err(error) = remove_image(engine, id).await {
            tracing::warn!(image = id, %error, "could not remove a snapshot");
            leave_image(engine, id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn containers_in_states_that_docker_does_not_know_are_listed() {
        let refused = |contents: &str| {
            let error = serde_json::from_str::<Vec<ContainerSummary>>(contents).unwrap_err();
            let (message, column) = (error.to_string(), error.column());
            Err(Error::JsonDataError { message, contents: contents.to_owned(), column })
        };
        let of_podman = r#"[
            {"Id": "a1", "Names": ["/one"], "Labels": {"k": "v"}, "State": "running"},
            {"Id": "b2", "Names": ["/two"], "Labels": null, "State": "stopped"}
        ]"#;
        let listed = entries(refused(of_podman)).unwrap();
        let names: Vec<_> = listed.iter().flat_map(|entry| entry.names.iter().flatten()).collect();
        assert_eq!(names, ["/one", "/two"]);
        assert_eq!(listed[0].labels.as_ref().unwrap()["k"], "v");
        assert!(entries(refused(r#"{"message": "busy"}"#)).is_err());
    }
}
