//! Getting the helper into containers.
//!
//! It lies on a volume that all sandboxes of an engine mount read-only. The engine makes the
//! volume with the first container that names it; who then finds it empty fills it.

use std::collections::HashMap;
use std::sync::OnceLock;
use std::time::Duration;

use bollard::errors::Error;
use bollard::models::{ContainerCreateBody, HostConfig, Mount, MountType, MountVolumeOptions};
use bollard::query_parameters::{
    ContainerArchiveInfoOptionsBuilder, CreateContainerOptionsBuilder,
    UploadToContainerOptionsBuilder,
};
use bytes::Bytes;

use super::container::remove;
use super::engine::{Engine, REQUEST, status, within};
use super::labels::{HELPER, KIND, Tag};
use crate::{SandboxError, SandboxSpec};

/// The program, or nothing where this crate was built for something it does not run on.
pub(super) static PROGRAM: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/spar-exec"));

/// Its path in every container. `/dev` is a file system of its own there, so that the image and
/// its snapshots show nothing of it.
pub(super) const PATH: &str = "/dev/spar/exec";
pub(super) const FOLDER: &str = "/dev/spar";
const FILE: &str = "exec";
/// Nobody inside may read it: the kernel lets no process look into one that runs a program which it
/// may not read, from its first instruction on. Otherwise others of the same user could open its
/// standard streams before it hides them, and speak in its place.
const MODE: u32 = 0o111;

/// What the names of such volumes begin with.
pub(super) const VOLUME: &str = "spar-helper-";

/// The volume's name: another version of the program, or of its permissions, has another.
fn volume() -> &'static str {
    static NAME: OnceLock<String> = OnceLock::new();
    NAME.get_or_init(|| {
        let mut hasher = blake3::Hasher::new();
        hasher.update(PROGRAM).update(&MODE.to_le_bytes());
        format!("{VOLUME}{}", &hasher.finalize().to_hex()[..12])
    })
}

/// The mount that brings it into a container.
pub(super) fn mount(read_only: bool) -> Mount {
    Mount {
        target: Some(FOLDER.into()),
        source: Some(volume().into()),
        typ: Some(MountType::VOLUME),
        read_only: Some(read_only),
        volume_options: Some(MountVolumeOptions {
            // What an image has at this path must not get into the volume.
            no_copy: Some(true),
            labels: Some(HashMap::from([(KIND.to_owned(), HELPER.to_owned())])),
            ..Default::default()
        }),
        ..Default::default()
    }
}

/// Puts the program into the volume, unless it is there. `image` is any that the engine has.
///
/// The container through which it is done has a fixed name, so that one process at a time does it.
pub(super) async fn install(engine: &Engine, image: &str) -> Result<(), SandboxError> {
    let name = volume();
    let body = ContainerCreateBody {
        image: Some(image.into()),
        entrypoint: Some(vec![PATH.into()]),
        labels: Some(Tag::new(&SandboxSpec::new(crate::Image::Default)).labels(HELPER)),
        host_config: Some(HostConfig {
            mounts: Some(vec![mount(false)]),
            network_mode: Some("none".into()),
            ..Default::default()
        }),
        ..Default::default()
    };
    let options = CreateContainerOptionsBuilder::new().name(name).build();
    for attempt in 0..120 {
        let made =
            within(REQUEST, engine.docker.create_container(Some(options.clone()), body.clone()))
                .await;
        match made {
            Ok(_) => {
                let filled = fill(engine, name).await;
                let removed = remove(engine, name).await;
                return filled.and(removed);
            }
            // Somebody else is at it, or was and did not get to removing it.
            Err(error) if status(&error) == Some(409) => {
                if attempt == 119 {
                    let _ = remove(engine, name).await;
                }
                tokio::time::sleep(Duration::from_millis(250)).await;
            }
            Err(error) => return Err(engine.error("install the helper", error)),
        }
    }
    Err(engine.error("install the helper", Error::RequestTimeoutError))
}

async fn fill(engine: &Engine, container: &str) -> Result<(), SandboxError> {
    let asked = ContainerArchiveInfoOptionsBuilder::new().path(PATH).build();
    let there =
        within(REQUEST, engine.docker.get_container_archive_info(container, Some(asked))).await;
    if there.is_ok_and(|file| file.size == PROGRAM.len() as i64) {
        return Ok(());
    }
    let mut archive = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_gnu();
    header.set_size(PROGRAM.len() as u64);
    header.set_mode(MODE);
    archive.append_data(&mut header, FILE, PROGRAM).expect("a vector takes everything");
    let archive = archive.into_inner().expect("a vector takes everything");
    let options = UploadToContainerOptionsBuilder::new().path(FOLDER).build();
    let body = bollard::body_full(Bytes::from(archive));
    within(REQUEST, engine.docker.upload_to_container(container, Some(options), body))
        .await
        .map_err(|error| engine.error("install the helper", error))
}
