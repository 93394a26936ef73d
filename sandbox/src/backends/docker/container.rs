//! Making containers, and removing them.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Duration;

use bollard::models::{
    ContainerCreateBody, ContainerInspectResponse, HostConfig, HostConfigLogConfig, Mount,
    MountBindOptions, MountBindOptionsPropagationEnum, MountType, ResourcesUlimits,
};
use bollard::query_parameters::{
    CreateContainerOptionsBuilder, InspectContainerOptions, RemoveContainerOptionsBuilder,
    StartContainerOptions,
};

use super::engine::{Engine, REQUEST, SLOW_REQUEST, is_unreachable, message, status, within};
use super::labels::{SANDBOX, Tag};
use super::{NAME, helper, network};
use crate::{NetworkPolicy, Owner, SandboxError, SandboxSpec};

/// Processes beyond [`Limits::pids`](crate::Limits::pids): the first one, the relay of an allow-list, what
/// carries connections into the sandbox, and what the engine and the helper need to start a command even
/// when the limit is used up.
pub(super) const OWN_PIDS: u32 = 14;
/// What is given where nothing is asked for: more than an engine has itself it cannot give, and some have little.
const OPEN_FILES: i64 = 4096;
/// Processes of one user on the engine's machine. Podman asks for more than some machines allow unless
/// it is told how many; what bounds a sandbox is [`Limits::pids`](crate::Limits::pids).
const PODMAN_PROCESSES: i64 = 16_384;

/// How often a start is tried again while there are two networks of sandboxes, and after which time.
const NETWORK_TRIES: u32 = 20;
const NETWORK_PAUSE: Duration = Duration::from_millis(100);

/// How often the removal of a container is asked for again whose connection was cut.
const REMOVAL_CUTS: u32 = 3;

/// Names of the containers that this process has use for, whatever the engine.
static HELD: LazyLock<Mutex<HashSet<String>>> = LazyLock::new(Mutex::default);

/// A container of this process is wanted as long as this lives; afterwards a reaper removes it if it
/// is still there.
pub(super) struct Hold(String);

impl Hold {
    fn new(name: &str) -> Self {
        HELD.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned());
        Self(name.to_owned())
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        HELD.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.0);
    }
}

/// Whether this process has use for one of its containers.
pub(super) fn is_held(name: &str) -> bool {
    HELD.lock().unwrap_or_else(PoisonError::into_inner).contains(name)
}

/// A container that runs.
pub(super) struct Started {
    pub(super) name: String,
    pub(super) hold: Hold,
    /// Where commands start that name no folder.
    pub(super) workdir: String,
    /// Folders that it can write to and that are of no image that is made of it: volumes, and what
    /// lies in memory.
    pub(super) beside: Vec<String>,
}

/// Makes a container of `image` and starts it within the spec's time.
///
/// Whatever was made is removed when this fails or is dropped.
pub(super) async fn start(
    engine: &Arc<Engine>,
    spec: &SandboxSpec,
    image: &str,
) -> Result<Started, SandboxError> {
    let seconds = spec.lifetimes.create_secs;
    let name = new_name();
    let hold = Hold::new(&name);
    let mut guard = Removal { engine: Arc::clone(engine), name: Some(name.clone()) };
    let made = async {
        create(engine, spec, image, &name).await?;
        match run_settled(engine, &name).await {
            Ok(()) => {}
            Err(error) if message_of(&error).contains(helper::PATH) => {
                // The volume is new, or being filled by somebody else at this moment.
                helper::install(engine, image).await?;
                run(engine, &name).await?;
            }
            Err(error) => {
                if says(&error, &["network", "not found"]) {
                    // Somebody removed it; the next sandbox makes it anew.
                    network::forget(engine);
                }
                return Err(error);
            }
        }
        let container = within(
            REQUEST,
            engine.docker.inspect_container(&name, None::<InspectContainerOptions>),
        )
        .await
        .map_err(|error| engine.error("look at the new container", error))?;
        let beside = beside(spec, &container);
        let workdir = container.config.and_then(|config| config.working_dir);
        Ok((workdir.filter(|folder| !folder.is_empty()).unwrap_or_else(|| "/".into()), beside))
    };
    let (workdir, beside) = tokio::time::timeout(Duration::from_secs(seconds), made)
        .await
        .unwrap_or(Err(SandboxError::CreateTimedOut { seconds }))?;
    guard.name = None;
    Ok(Started { name, hold, workdir, beside })
}

/// As [`run`], while somebody else makes a second network of the same name: it is soon gone.
async fn run_settled(engine: &Arc<Engine>, name: &str) -> Result<(), SandboxError> {
    for _ in 0..NETWORK_TRIES {
        match run(engine, name).await {
            Err(error) if says(&error, &["network", "is ambiguous"]) => {
                network::settle(engine).await?;
                tokio::time::sleep(NETWORK_PAUSE).await;
            }
            result => return result,
        }
    }
    run(engine, name).await
}

/// Whether all these words stand in what the engine said.
fn says(error: &SandboxError, words: &[&str]) -> bool {
    let message = message_of(error);
    words.iter().all(|word| message.contains(word))
}

/// The folders of [`Started::beside`].
fn beside(spec: &SandboxSpec, container: &ContainerInspectResponse) -> Vec<String> {
    let volumes = container.mounts.iter().flatten().filter(|mount| {
        mount.typ.as_deref() == Some("volume")
            && mount.destination.as_deref() != Some(helper::FOLDER)
    });
    let volumes = volumes.filter_map(|mount| mount.destination.clone());
    let memory = spec.read_only_root.then(|| "/tmp".to_owned());
    memory.into_iter().chain(volumes).collect()
}

async fn create(
    engine: &Engine,
    spec: &SandboxSpec,
    image: &str,
    name: &str,
) -> Result<(), SandboxError> {
    if spec.read_only_root || spec.limits.disk_bytes.is_some() {
        check_volumes(engine, image).await?;
    }
    let ways = Ways {
        is_podman: engine.is_podman(),
        mounts_read_only_wholly: engine.mounts_read_only_wholly(),
        bridge: match spec.network {
            NetworkPolicy::Bridge => Some(network::bridge(engine).await?),
            NetworkPolicy::None | NetworkPolicy::Allow { .. } => None,
        },
    };
    let options = CreateContainerOptionsBuilder::new().name(name).build();
    let made = engine.docker.create_container(Some(options), body(spec, image, &ways)?).await;
    match made {
        Ok(_) => Ok(()),
        Err(error) if status(&error) == Some(404) && message(&error).contains("image") => {
            Err(super::image::missing(image, message(&error)))
        }
        Err(error) => {
            let text = message(&error);
            if spec.limits.disk_bytes.is_some()
                && (text.contains("storage-opt") || text.contains("pquota"))
            {
                return Err(unsupported("limit the disk"));
            }
            if text.contains("bind source path does not exist") {
                return Err(SandboxError::InvalidSpec { problems: vec![text] });
            }
            Err(engine.error("make a container", error))
        }
    }
}

/// An image may ask for volumes, which are written on the host's disk whatever the root allows.
async fn check_volumes(engine: &Engine, image: &str) -> Result<(), SandboxError> {
    let found = within(REQUEST, engine.docker.inspect_image(image)).await;
    let found = found.map_err(|error| match status(&error) {
        Some(404) => super::image::missing(image, message(&error)),
        _ => engine.error("look at the image", error),
    })?;
    let volumes = found.config.and_then(|config| config.volumes).unwrap_or_default();
    if volumes.is_empty() {
        return Ok(());
    }
    let what = "keep a root read-only or limit the disk of an image with volumes of its own";
    Err(unsupported(what))
}

async fn run(engine: &Engine, name: &str) -> Result<(), SandboxError> {
    engine
        .docker
        .start_container(name, None::<StartContainerOptions>)
        .await
        .map_err(|error| engine.error("start a container", error))
}

fn message_of(error: &SandboxError) -> String {
    match error {
        SandboxError::Backend { source, .. } => source.to_string(),
        _ => String::new(),
    }
}

/// Unique on every engine, whoever else uses it.
pub(super) fn new_name() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("spar-{}-{count}", Owner::this_process().run)
}

pub(super) fn unsupported(what: &str) -> SandboxError {
    SandboxError::Unsupported { backend: NAME, what: what.into() }
}

/// What engines do differently.
#[derive(Debug, Default)]
struct Ways {
    is_podman: bool,
    /// Whether what is mounted within a read-only mount is read-only as well.
    mounts_read_only_wholly: bool,
    /// The network of sandboxes that may reach others.
    bridge: Option<String>,
}

fn body(spec: &SandboxSpec, image: &str, ways: &Ways) -> Result<ContainerCreateBody, SandboxError> {
    // Those of an allow-list come with each command: the list may change, and images made of this know none.
    let env = spec.env.iter().map(|(name, value)| format!("{name}={value}")).collect();
    Ok(ContainerCreateBody {
        image: Some(image.into()),
        hostname: Some("sandbox".into()),
        user: spec.user.clone(),
        env: Some(env),
        working_dir: spec.workdir.clone(),
        entrypoint: Some(vec![helper::PATH.into(), "init".into()]),
        // The image's own must not become arguments.
        cmd: Some(Vec::new()),
        healthcheck: Some(bollard::models::HealthConfig {
            test: Some(vec!["NONE".into()]),
            ..Default::default()
        }),
        labels: Some(Tag::new(spec).labels(SANDBOX)),
        stop_signal: Some("SIGTERM".into()),
        host_config: Some(host_config(spec, ways)?),
        ..Default::default()
    })
}

fn host_config(spec: &SandboxSpec, ways: &Ways) -> Result<HostConfig, SandboxError> {
    let limits = &spec.limits;
    let memory = limits.memory_bytes.map(|bytes| i64::try_from(bytes).unwrap_or(i64::MAX));
    let ulimit = |name: &str, value: i64| ResourcesUlimits {
        name: Some(name.into()),
        soft: Some(value),
        hard: Some(value),
    };
    let open_files = limits.open_files.map(|files| i64::try_from(files).unwrap_or(i64::MAX));
    let mut ulimits = vec![ulimit("nofile", open_files.unwrap_or(OPEN_FILES)), ulimit("core", 0)];
    if ways.is_podman {
        ulimits.push(ulimit("nproc", PODMAN_PROCESSES));
    }
    Ok(HostConfig {
        nano_cpus: limits.cpus.map(|cpus| (cpus * 1e9) as i64),
        memory,
        // Equal to the memory: none of it is swap.
        memory_swap: memory,
        pids_limit: limits.pids.map(|pids| i64::from(pids) + i64::from(OWN_PIDS)),
        storage_opt: limits
            .disk_bytes
            .filter(|_| !spec.read_only_root)
            .map(|bytes| HashMap::from([("size".to_owned(), bytes.to_string())])),
        ulimits: Some(ulimits),
        network_mode: Some(match &spec.network {
            // The way to single hosts leads through the engine, not through a network.
            NetworkPolicy::None | NetworkPolicy::Allow { .. } => "none".into(),
            NetworkPolicy::Bridge => {
                ways.bridge.clone().ok_or_else(|| unsupported("make a network of sandboxes"))?
            }
        }),
        mounts: Some(mounts(spec, ways)?),
        readonly_rootfs: Some(spec.read_only_root),
        // All of the file system of its own that can be written, so that its size is the limit of
        // the disk whatever the engine's storage can do.
        tmpfs: spec.read_only_root.then(|| {
            let size = limits.disk_bytes.map(|bytes| format!(",size={bytes}")).unwrap_or_default();
            HashMap::from([("/tmp".to_owned(), format!("rw,exec,nosuid,nodev,mode=1777{size}"))])
        }),
        cap_drop: Some(vec!["ALL".into()]),
        cap_add: Some(capability_names(spec)).filter(|names| !names.is_empty()),
        shm_size: limits.shm_bytes.map(|bytes| i64::try_from(bytes).unwrap_or(i64::MAX)),
        security_opt: Some(vec!["no-new-privileges".into()]),
        ipc_mode: Some("private".into()),
        init: Some(false),
        // Output goes to whoever runs the command; a log would only fill the disk.
        log_config: Some(HostConfigLogConfig { typ: Some("none".into()), config: None }),
        ..Default::default()
    })
}

/// What commands of the first user may do, as the engine calls it.
fn capability_names(spec: &SandboxSpec) -> Vec<String> {
    spec.capabilities.capabilities().iter().map(|(name, _)| format!("CAP_{name}")).collect()
}

fn mounts(spec: &SandboxSpec, ways: &Ways) -> Result<Vec<Mount>, SandboxError> {
    let mut mounts = vec![helper::mount(true)];
    for mount in &spec.mounts {
        let host = mount.host.to_str().filter(|host| host.starts_with('/')).ok_or_else(|| {
            let problem = format!("`{}` is not an absolute path", mount.host.display());
            SandboxError::InvalidSpec { problems: vec![problem] }
        })?;
        mounts.push(Mount {
            target: Some(mount.guest.clone()),
            source: Some(host.into()),
            typ: Some(MountType::BIND),
            read_only: Some(mount.read_only),
            // What is mounted within it stays writable where the engine knows no better: there it
            // does not appear at all.
            bind_options: mount.read_only.then(|| MountBindOptions {
                non_recursive: Some(!ways.mounts_read_only_wholly),
                read_only_force_recursive: ways.mounts_read_only_wholly.then_some(true),
                propagation: Some(MountBindOptionsPropagationEnum::RPRIVATE),
                ..Default::default()
            }),
            ..Default::default()
        });
    }
    Ok(mounts)
}

/// Removes a container with its anonymous volumes, killing what runs in it; one that is gone
/// already is no error.
pub(super) async fn remove(engine: &Engine, name: &str) -> Result<(), SandboxError> {
    let options = || Some(RemoveContainerOptionsBuilder::new().force(true).v(true).build());
    let (mut wait, mut cuts) = (Duration::from_millis(50), 0);
    loop {
        let removed = within(SLOW_REQUEST, engine.docker.remove_container(name, options())).await;
        match removed {
            Ok(()) => return Ok(()),
            Err(error) if status(&error) == Some(404) => return Ok(()),
            // Somebody else is removing it, or the kernel is slow to let go of a mount.
            Err(error) if matches!(status(&error), Some(409 | 500)) && wait.as_secs() < 10 => {
                tokio::time::sleep(wait).await;
                wait *= 2;
            }
            // A way over a network may cut what is idle, and with it a request whose answer takes a while. Asking
            // again does no harm, whether it was carried out or not.
            Err(error) if is_unreachable(&error) && cuts < REMOVAL_CUTS => {
                tokio::time::sleep(wait).await;
                (wait, cuts) = (wait * 2, cuts + 1);
            }
            Err(error) => return Err(engine.error(format!("remove container {name}"), error)),
        }
    }
}

/// Removes a container whose making did not come to its end.
struct Removal {
    engine: Arc<Engine>,
    name: Option<String>,
}

impl Drop for Removal {
    fn drop(&mut self) {
        let Some(name) = self.name.take() else { return };
        let engine = Arc::clone(&self.engine);
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                // The request that makes it may still be on its way, so that there is nothing to
                // remove yet.
                for wait in [0, 1, 2, 4, 8, 16] {
                    tokio::time::sleep(Duration::from_secs(wait)).await;
                    let gone = remove(&engine, &name).await;
                    if let Err(error) = gone {
                        tracing::warn!(container = name, %error, "could not remove a container");
                    }
                }
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Image, Limits, Mount as SpecMount};

    #[test]
    fn limits_and_walls_are_as_the_spec_says() {
        let mut spec = SandboxSpec::new(Image::Default);
        spec.limits = Limits {
            cpus: Some(0.5),
            memory_bytes: Some(64 << 20),
            pids: Some(100),
            disk_bytes: Some(1 << 30),
            shm_bytes: Some(1 << 20),
            open_files: Some(100),
            fuel: None,
        };
        spec.read_only_root = true;
        let config = host_config(&spec, &Ways::default()).unwrap();
        assert_eq!(config.nano_cpus, Some(500_000_000));
        assert_eq!((config.memory, config.memory_swap), (Some(64 << 20), Some(64 << 20)));
        assert_eq!(config.pids_limit, Some(100 + i64::from(OWN_PIDS)));
        assert!(config.storage_opt.is_none());
        assert_eq!(config.network_mode.as_deref(), Some("none"));
        assert_eq!(config.cap_drop, Some(vec!["ALL".to_owned()]));
        assert_eq!((config.cap_add, config.shm_size), (None, Some(1 << 20)));
        let nofile = &config.ulimits.unwrap()[0];
        assert_eq!((nofile.name.as_deref(), nofile.hard), (Some("nofile"), Some(100)));
        assert_eq!(config.security_opt, Some(vec!["no-new-privileges".to_owned()]));
        assert_eq!(config.readonly_rootfs, Some(true));
        assert!(config.tmpfs.unwrap()["/tmp"].ends_with(",size=1073741824"));
        assert!(config.privileged.is_none());
        assert_eq!(config.mounts.unwrap()[0].read_only, Some(true));
        spec.read_only_root = false;
        spec.capabilities = crate::CapabilitySet::Packages;
        let config = host_config(&spec, &Ways::default()).unwrap();
        assert_eq!(config.cap_drop, Some(vec!["ALL".to_owned()]));
        assert!(config.cap_add.unwrap().contains(&"CAP_SETUID".to_owned()));
        assert_eq!(config.storage_opt.unwrap()["size"], "1073741824");
        assert!(config.tmpfs.is_none());
    }

    #[test]
    fn what_is_mounted_within_a_read_only_mount_is_read_only_or_not_there() {
        let mut spec = SandboxSpec::new(Image::Default);
        for read_only in [true, false] {
            spec.mounts.push(SpecMount { host: "/a".into(), guest: "/a".into(), read_only });
        }
        let options = |mounts_read_only_wholly| {
            let ways = Ways { mounts_read_only_wholly, ..Ways::default() };
            let [_, read, write] = <[Mount; 3]>::try_from(mounts(&spec, &ways).unwrap()).unwrap();
            assert!(write.bind_options.is_none());
            let read = read.bind_options.unwrap();
            (read.non_recursive, read.read_only_force_recursive)
        };
        assert_eq!(options(false), (Some(true), None));
        assert_eq!(options(true), (Some(false), Some(true)));
    }

    #[test]
    fn a_sandbox_gets_no_network_of_the_engines_own() {
        let mut spec = SandboxSpec::new(Image::Default);
        spec.network = NetworkPolicy::Bridge;
        assert!(host_config(&spec, &Ways::default()).is_err());
        let ways = Ways { bridge: Some("0123".into()), ..Ways::default() };
        assert_eq!(host_config(&spec, &ways).unwrap().network_mode.as_deref(), Some("0123"));
    }

    #[test]
    fn an_allow_list_is_no_network_of_the_engines() {
        let mut spec = SandboxSpec::new(Image::Default);
        spec.network = NetworkPolicy::allow(["example.org:443".parse().unwrap()]);
        spec.env.insert("no_proxy".into(), "own".into());
        let body = body(&spec, "image", &Ways::default()).unwrap();
        assert_eq!(body.host_config.unwrap().network_mode.as_deref(), Some("none"));
        assert_eq!(body.env.unwrap(), ["no_proxy=own"]);
    }

    #[test]
    fn what_cannot_be_done_is_said_before_anything_is_made() {
        let mut spec = SandboxSpec::new(Image::Default);
        let mount = SpecMount { host: "data".into(), guest: "/data".into(), read_only: true };
        spec.mounts.push(mount);
        assert!(matches!(
            host_config(&spec, &Ways::default()),
            Err(SandboxError::InvalidSpec { .. })
        ));
    }

    #[test]
    fn names_are_never_given_twice_and_held_as_long_as_somebody_wants_them() {
        let name = new_name();
        assert_ne!(name, new_name());
        let hold = Hold::new(&name);
        assert!(is_held(&name));
        drop(hold);
        assert!(!is_held(&name));
    }
}
