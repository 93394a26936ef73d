//! One engine, and what its answers mean.

use std::error::Error as _;
use std::future::Future;
use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use bollard::Docker;
use bollard::errors::Error;
use tokio::sync::OnceCell;
use tokio::time::Instant;

use super::container::OWN_PIDS;
use super::health::Health;
use super::host::DockerHost;
use super::{NAME, helper};
use crate::{Capabilities, SandboxError};

/// How long a request may take that the engine answers from memory.
pub(super) const REQUEST: Duration = Duration::from_secs(60);
/// How long it may take to look at a container or to signal it, when that decides whether it lives.
pub(super) const SIGN_OF_LIFE: Duration = Duration::from_secs(20);
/// How long an engine of a pool may take to say that it lives, before it is given up for a while.
const ALIVE: Duration = Duration::from_secs(5);
/// How long the engine may take to remove something or to write a layer.
pub(super) const SLOW_REQUEST: Duration = Duration::from_secs(600);

/// Milliseconds between two signs of life of what runs long: on their way over TCP there may be
/// something that drops connections which are idle for a minute.
const HEARTBEAT_MS: u64 = 15_000;

/// A connection to one engine.
pub(super) struct Engine {
    pub(super) host: DockerHost,
    pub(super) docker: Docker,
    facts: OnceCell<Facts>,
    /// Whether it is asked for sandboxes where there are others.
    pub(super) health: Health,
    /// Milliseconds between two signs of life of what runs long.
    pub(super) heartbeat_ms: AtomicU64,
    /// Sandboxes of this process on it.
    pub(super) live: AtomicUsize,
    /// Images of forks that could not be removed when their sandbox was, because others build on
    /// them.
    pub(super) left_images: Mutex<Vec<String>>,
    /// The network of sandboxes that may reach others, once it is known.
    pub(super) bridge: Mutex<Option<String>>,
    /// Images that this process knows to be there.
    pub(super) prepared: Mutex<Vec<(crate::Image, String)>>,
}

/// What an engine says about itself.
#[derive(Debug, Clone)]
pub(super) struct Facts {
    version: String,
    api: String,
    kernel: String,
    storage: String,
    limits: [bool; 3],
    disk_limit: bool,
    is_podman: bool,
}

impl Engine {
    pub(super) fn new(host: DockerHost) -> Result<Self, SandboxError> {
        let docker = host.client()?;
        Ok(Self {
            host,
            docker,
            facts: OnceCell::new(),
            health: Health::default(),
            heartbeat_ms: AtomicU64::new(HEARTBEAT_MS),
            live: AtomicUsize::new(0),
            left_images: Mutex::default(),
            bridge: Mutex::default(),
            prepared: Mutex::default(),
        })
    }

    /// Asks it about itself, once.
    pub(super) async fn facts(&self) -> Result<&Facts, SandboxError> {
        self.facts.get_or_try_init(|| self.ask()).await
    }

    async fn ask(&self) -> Result<Facts, SandboxError> {
        let unavailable = |error: Error| self.host.unavailable(message(&error));
        let patience = Duration::from_secs(20);
        let docker =
            within(patience, self.docker.clone().negotiate_version()).await.map_err(unavailable)?;
        let version = within(patience, docker.version()).await.map_err(unavailable)?;
        let info = within(patience, docker.info()).await.map_err(unavailable)?;
        let architecture = match info.architecture.unwrap_or_default().as_str() {
            // Podman uses the names of Go.
            "amd64" => "x86_64".to_owned(),
            "arm64" => "aarch64".to_owned(),
            other => other.to_owned(),
        };
        let system = info.os_type.unwrap_or_default();
        if helper::PROGRAM.is_empty() || system != "linux" || architecture != env_architecture() {
            return Err(SandboxError::Unavailable {
                backend: NAME,
                reason: format!(
                    "{} runs {system} containers on {architecture}, and this program was built \
                     for Linux on {}",
                    self.host.address(),
                    env_architecture()
                ),
                hint: "use an engine of the same architecture, x86_64 or aarch64".into(),
            });
        }
        let components = version.components.unwrap_or_default();
        let is_podman = components.iter().any(|component| component.name.contains("Podman"));
        let storage = info.driver.unwrap_or_default();
        let backing = info.driver_status.unwrap_or_default();
        let on_xfs = backing.iter().any(|pair| {
            pair.first().is_some_and(|name| name == "Backing Filesystem")
                && pair.get(1).is_some_and(|value| value == "xfs")
        });
        Ok(Facts {
            version: info.server_version.unwrap_or_default(),
            api: version.api_version.unwrap_or_default(),
            kernel: info.kernel_version.unwrap_or_default(),
            limits: [info.cpu_cfs_quota, info.memory_limit, info.pids_limit]
                .map(|limit| limit.unwrap_or(false)),
            // Overlays on XFS need a mount option that the engine does not tell; it says so when
            // a container is made.
            disk_limit: matches!(storage.as_str(), "btrfs" | "zfs" | "devicemapper")
                || storage.starts_with("overlay") && on_xfs,
            storage,
            is_podman,
        })
    }

    /// Whether it is Podman; before it was asked, Docker.
    pub(super) fn is_podman(&self) -> bool {
        self.facts.get().is_some_and(|facts| facts.is_podman)
    }

    /// Whether what is mounted within a read-only mount is read-only as well (API 1.44, Engine 25).
    pub(super) fn mounts_read_only_wholly(&self) -> bool {
        self.facts.get().is_some_and(|facts| !facts.is_podman && version(&facts.api) >= (1, 44))
    }

    /// What its sandboxes can do; before it was asked, what engines can as a rule.
    pub(super) fn capabilities(&self) -> Capabilities {
        let facts = self.facts.get();
        let [cpu_limit, memory_limit, pids_limit] = facts.map_or([true; 3], |facts| facts.limits);
        Capabilities {
            posix: true,
            shell: true,
            spawn: true,
            pty: true,
            connect: true,
            snapshot: true,
            fork: true,
            memory_in_snapshot: false,
            cpu_limit,
            memory_limit,
            pids_limit,
            pids_reserve: OWN_PIDS,
            disk_limit: facts.is_some_and(|facts| facts.disk_limit),
            shm_limit: true,
            open_files_limit: true,
            fuel_limit: false,
            network: !self.is_podman(),
            network_allow_list: true,
            network_change: true,
            bridge_change: !self.is_podman(),
            capability_sets: true,
            determinism: false,
            image_build: true,
            image_root_tar: true,
        }
    }

    /// Whether it answers, and can be used: quickly, where it was asked before.
    pub(super) async fn answers(&self) -> Result<(), SandboxError> {
        let asked = async {
            within(ALIVE, self.docker.ping())
                .await
                .map_err(|error| self.host.unavailable(message(&error)))?;
            self.facts().await.map(drop)
        };
        let answered = asked.await;
        match &answered {
            Ok(()) => self.health.answered(),
            Err(_) => self.health.failed(Instant::now()),
        }
        answered
    }

    /// A line about it for people.
    pub(super) async fn describe(&self) -> Result<String, SandboxError> {
        let facts = self.facts().await?;
        within(Duration::from_secs(20), self.docker.ping())
            .await
            .map_err(|error| self.host.unavailable(message(&error)))?;
        Ok(format!(
            "engine {} (API {}) at {}, kernel {}, storage {}",
            facts.version,
            facts.api,
            self.host.address(),
            facts.kernel,
            facts.storage
        ))
    }

    /// What an answer that is an error means.
    pub(super) fn error(&self, doing: impl Into<String>, error: Error) -> SandboxError {
        let (doing, message) = (doing.into(), message(&error));
        let says = |words: &str| message.contains(words);
        if says("no space left on device") || says("disk quota exceeded") {
            return SandboxError::DiskFull { doing };
        }
        if is_unreachable(&error) {
            return self.host.unavailable(message);
        }
        SandboxError::Backend { doing, source: Box::new(Refused { message, source: error }) }
    }

    /// As the helper is told it.
    pub(super) fn heartbeat(&self) -> String {
        self.heartbeat_ms.load(Ordering::Relaxed).to_string()
    }

    pub(super) fn count_live(&self) -> usize {
        self.live.load(Ordering::Relaxed)
    }
}

/// The numbers of a version of the API.
fn version(text: &str) -> (u32, u32) {
    let mut numbers = text.split('.').map(|part| part.parse().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

/// The name by which engines call the architecture that this program was built for.
fn env_architecture() -> &'static str {
    std::env::consts::ARCH
}

/// What the engine said, without the client's words around it.
#[derive(Debug)]
struct Refused {
    message: String,
    source: Error,
}

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Refused {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.source()
    }
}

/// Waits for an answer at most so long.
pub(super) async fn within<T>(
    time: Duration,
    request: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    tokio::time::timeout(time, request).await.unwrap_or(Err(Error::RequestTimeoutError))
}

/// The engine's own words, or the whole chain of what went wrong on the way to it.
pub(super) fn message(error: &Error) -> String {
    if let Error::DockerResponseServerError { message, .. } = error {
        return message.trim().to_owned();
    }
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let part = error.to_string();
        if !text.contains(&part) {
            text = format!("{text}: {part}");
        }
        source = error.source();
    }
    text
}

/// The answer's HTTP status, where there was an answer.
pub(super) fn status(error: &Error) -> Option<u16> {
    match error {
        Error::DockerResponseServerError { status_code, .. } => Some(*status_code),
        _ => None,
    }
}

/// Whether no engine answered at all.
pub(super) fn is_unreachable(error: &Error) -> bool {
    let broken = |kind: io::ErrorKind| {
        use io::ErrorKind::*;
        matches!(
            kind,
            ConnectionRefused
                | ConnectionReset
                | ConnectionAborted
                | NotConnected
                | NotFound
                | BrokenPipe
                | UnexpectedEof
                | HostUnreachable
                | NetworkUnreachable
        )
    };
    match error {
        Error::HyperLegacyError { .. }
        | Error::HyperResponseError { .. }
        | Error::SocketNotFoundError(_) => true,
        Error::IOError { err } => broken(err.kind()),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_as_numbers() {
        assert!(version("1.44") >= (1, 44) && version("1.100") > (1, 44));
        assert!(version("1.9") < (1, 44) && version("") < (1, 44));
    }
}
