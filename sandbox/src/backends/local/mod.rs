//! Linux namespaces without a daemon.
//!
//! ```text
//!   LocalBackend ──▶ image: the host's programs, or a root file system unpacked once
//!        │                      │ lower layers
//!        ▼                      ▼
//!   LocalSandbox ──▶ init (pid 1 in new namespaces) on an overlay ──▶ one process namespace per exec
//!        │
//!        ├── files: the same root, from outside      ├── cgroup: limits of all of it
//!        └── store: records, layers, snapshots       └── seccomp: what commands may not do
//! ```
//!
//! A sandbox has user, mount, process, network, IPC, host-name and control-group namespaces of its
//! own. Commands have no capabilities but those of the spec, gain none, and run under a filter of system calls. What a
//! command leaves running when it ends goes on, as in a container; a deadline or a dropped exec
//! ends all that it started.
//!
//! As root, users inside are those of the host without their powers. An ordinary user becomes
//! `root` inside and can be nobody else.

mod cgroup;
mod changes;
mod connect;
mod exec;
mod files;
mod image;
mod init;
mod packing;
mod reach;
mod running;
mod sandbox;
mod seccomp;
mod store;
mod terminal;
#[cfg(test)]
mod tests;
mod transport;
mod tree;
mod users;
mod walk;

use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use self::cgroup::Hierarchy;
use self::running::RunningSandbox;
use self::sandbox::LocalSandbox;
use self::store::Store;
use crate::error::is_no_space;
use crate::set_up::set_up;
use crate::{
    Capabilities, CapabilitySet, ExecRequest, Limits, NetworkPolicy, ReapReport, Sandbox,
    SandboxBackend, SandboxError, SandboxRecord, SandboxSpec, Snapshot,
};

/// Its name in the registry.
const BACKEND: &str = "local";

/// Makes sandboxes of namespaces of this machine's kernel.
#[derive(Debug, Clone)]
pub struct LocalBackend {
    store: Store,
    cache: PathBuf,
}

impl LocalBackend {
    /// With its state in the folder for temporary files, and unpacked images in the user's cache
    /// (`$XDG_CACHE_HOME/spar/images`, or below `~/.cache`).
    ///
    /// # Errors
    ///
    /// [`SandboxError::Unavailable`] if the folder for its state cannot be used.
    pub fn new() -> Result<Self, SandboxError> {
        let state = env::temp_dir();
        let cache = env::var_os("XDG_CACHE_HOME")
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
            .or_else(|| Some(PathBuf::from(env::var_os("HOME")?).join(".cache")))
            .unwrap_or_else(|| state.clone());
        Self::in_folders(&state, &cache.join("spar/images"))
    }

    /// With its state below `state` and unpacked images in `cache`.
    ///
    /// # Errors
    ///
    /// As [`LocalBackend::new`].
    pub fn in_folders(state: &Path, cache: &Path) -> Result<Self, SandboxError> {
        Ok(Self { store: Store::open(state)?, cache: cache.to_owned() })
    }

    async fn make(
        &self,
        spec: &SandboxSpec,
        layers: Vec<String>,
    ) -> Result<LocalSandbox, SandboxError> {
        self.check(spec)?;
        // Making an image has no deadline of its own.
        self.prepare(spec).await?;
        let seconds = spec.lifetimes.create_secs;
        let (backend, spec) = (self.clone(), spec.clone());
        // If it comes too late, it is dropped and cleared away by the thread that made it.
        let made = blocking(move || {
            let sandbox = RunningSandbox::make(&backend.store, &backend.cache, &spec, layers)?;
            Ok(LocalSandbox::new(backend, Arc::new(sandbox)))
        });
        tokio::time::timeout(Duration::from_secs(seconds), made)
            .await
            .map_err(|_| SandboxError::CreateTimedOut { seconds })?
    }

    /// Whether what `spec` asks for can be done here.
    fn check(&self, spec: &SandboxSpec) -> Result<(), SandboxError> {
        spec.validate()?;
        walk::check()?;
        let can = self.capabilities();
        let unsupported =
            |what: &str| Err(SandboxError::Unsupported { backend: BACKEND, what: what.to_owned() });
        // Limits that nobody asked for are kept as far as they can be.
        let default = Limits::default();
        let limits = &spec.limits;
        if !can.memory_limit && limits.memory_bytes != default.memory_bytes {
            return unsupported("limit the memory without control groups");
        }
        if !can.pids_limit && limits.pids != default.pids {
            return unsupported("limit the processes without control groups");
        }
        if !can.cpu_limit && limits.cpus != default.cpus {
            return unsupported("limit the processor time without control groups");
        }
        if !can.disk_limit && limits.disk_bytes.is_some() {
            return unsupported("limit the disk before Linux 6.6");
        }
        if let (Some(files), Some(most)) = (limits.open_files, most_open_files())
            && files > most
        {
            return unsupported(&format!("let a process hold more than {most} files open"));
        }
        if spec.capabilities != CapabilitySet::None && !can.capability_sets {
            return unsupported("give capabilities over several users without being root");
        }
        if limits.fuel.is_some() {
            return unsupported("limit the fuel");
        }
        if spec.network == NetworkPolicy::Bridge && !can.network {
            return unsupported(
                "give root the host's network, and with it sockets that trust root (name the hosts \
                 that are needed: `allow:HOST`)",
            );
        }
        if spec.determinism.is_some() {
            return unsupported("make a deterministic sandbox");
        }
        Ok(())
    }
}

#[async_trait]
impl SandboxBackend for LocalBackend {
    fn name(&self) -> &'static str {
        BACKEND
    }

    fn capabilities(&self) -> Capabilities {
        let groups = Hierarchy::this_process();
        Capabilities {
            posix: true,
            shell: true,
            spawn: true,
            pty: true,
            connect: true,
            snapshot: true,
            fork: true,
            cpu_limit: groups.has("cpu"),
            memory_limit: groups.has("memory"),
            // Ordinary users are counted in each user namespace by itself.
            pids_limit: groups.has("pids") || !rustix::process::geteuid().is_root(),
            // Only then can an overlay write to a file system in memory.
            disk_limit: kernel_release() >= (6, 6),
            shm_limit: true,
            open_files_limit: true,
            // An ordinary user is the only one there is.
            capability_sets: rustix::process::geteuid().is_root(),
            // Sockets of the host that have no path (the abstract ones, of container engines among
            // them) belong to its network namespace and look at nothing but the user.
            network: !rustix::process::geteuid().is_root(),
            network_allow_list: true,
            // The host's network is shared from the beginning or never.
            network_change: true,
            image_root_tar: true,
            ..Capabilities::default()
        }
    }

    async fn probe(&self) -> Result<String, SandboxError> {
        let spec = SandboxSpec::new(crate::Image::Default);
        let trial = async {
            let sandbox = self.make(&spec, Vec::new()).await?;
            let result = sandbox.exec(&ExecRequest::sh("exit 7")).await;
            sandbox.close().await?;
            match result?.end {
                crate::ExecEnd::Exited { code: 7 } => Ok(()),
                end => Err(backend_error("run a command")(io::Error::other(end.to_string()))),
            }
        };
        match trial.await {
            Ok(()) => {
                let (major, minor) = kernel_release();
                let user = if rustix::process::geteuid().is_root() { "root" } else { "a user" };
                let groups = Hierarchy::this_process().describe();
                Ok(format!("Linux {major}.{minor}, as {user}, {groups}"))
            }
            Err(error @ SandboxError::Unavailable { .. }) => Err(error),
            Err(error) => Err(SandboxError::Unavailable {
                backend: BACKEND,
                reason: with_sources(&error),
                hint: advice(),
            }),
        }
    }

    async fn prepare(&self, spec: &SandboxSpec) -> Result<(), SandboxError> {
        let (image, cache) = (spec.image.clone(), self.cache.clone());
        blocking(move || image::base(&image, &cache).map(drop)).await
    }

    async fn create(&self, spec: &SandboxSpec) -> Result<Box<dyn Sandbox>, SandboxError> {
        let sandbox = self.make(spec, Vec::new()).await?;
        if let Err(error) = set_up(spec, |request| {
            let sandbox = &sandbox;
            async move { sandbox.exec(&request).await }
        })
        .await
        {
            let _ = sandbox.close().await;
            return Err(error);
        }
        Ok(Box::new(sandbox))
    }

    async fn restore(&self, snapshot: &Snapshot) -> Result<Box<dyn Sandbox>, SandboxError> {
        let record = self.store.read_snapshot(snapshot)?;
        Ok(Box::new(self.make(&snapshot.spec, record.layers).await?))
    }

    async fn remove_snapshot(&self, snapshot: &Snapshot) -> Result<(), SandboxError> {
        let (store, snapshot) = (self.store.clone(), snapshot.clone());
        blocking(move || store.remove_snapshot(&snapshot)).await
    }

    async fn list(&self) -> Result<Vec<SandboxRecord>, SandboxError> {
        let store = self.store.clone();
        blocking(move || Ok(store.list())).await
    }

    async fn reap(&self) -> Result<ReapReport, SandboxError> {
        let (store, cache) = (self.store.clone(), self.cache.clone());
        blocking(move || {
            let mut report = store.reap()?;
            Hierarchy::this_process().reap_trials(&mut report);
            image::reap(&cache, &mut report).map_err(host_error("look through", &cache))?;
            Ok(report)
        })
        .await
    }
}

/// Runs `work` where it may block.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, SandboxError> + Send + 'static,
) -> Result<T, SandboxError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => Err(backend_error("finish in the background")(io::Error::other(error))),
    }
}

/// What a process of this one may raise its limit of open files to; absent where there is none.
fn most_open_files() -> Option<u64> {
    rustix::process::getrlimit(rustix::process::Resource::Nofile).maximum
}

fn kernel_release() -> (u32, u32) {
    let text = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut numbers = text.split('.').map(|part| part.parse().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

/// The most likely thing that keeps namespaces from working.
fn advice() -> String {
    let is = |name: &str, value: &str| {
        fs::read_to_string(Path::new("/proc/sys").join(name)).is_ok_and(|text| text.trim() == value)
    };
    if is("kernel/unprivileged_userns_clone", "0") {
        "sysctl kernel.unprivileged_userns_clone=1".to_owned()
    } else if is("user/max_user_namespaces", "0") {
        "sysctl user.max_user_namespaces=65536".to_owned()
    } else if is("kernel/apparmor_restrict_unprivileged_userns", "1") {
        "sysctl kernel.apparmor_restrict_unprivileged_userns=0".to_owned()
    } else if kernel_release() < (5, 12) {
        "use Linux 5.12 or later".to_owned()
    } else {
        "run it where user namespaces and overlay mounts are allowed: not inside a container that \
         forbids them"
            .to_owned()
    }
}

fn with_sources(error: &SandboxError) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(error) = source {
        text += &format!(": {error}");
        source = error.source();
    }
    text
}

fn backend_error(doing: &'static str) -> impl Fn(io::Error) -> SandboxError {
    move |error| match is_no_space(&error) {
        true => SandboxError::DiskFull { doing: doing.to_owned() },
        false => SandboxError::Backend { doing: doing.to_owned(), source: Box::new(error) },
    }
}

fn host_error<'a>(doing: &'static str, path: &'a Path) -> impl Fn(io::Error) -> SandboxError + 'a {
    move |source| match is_no_space(&source) {
        true => SandboxError::DiskFull { doing: format!("{doing} `{}`", path.display()) },
        false => SandboxError::Host { doing, path: path.to_owned(), source },
    }
}

fn unpack_error(path: &str, error: io::Error) -> SandboxError {
    match error.raw_os_error() {
        Some(libc::EXDEV | libc::ELOOP) => SandboxError::PathRefused {
            path: path.to_owned(),
            reason: "it leads out of the folder".to_owned(),
        },
        Some(libc::ENOTDIR | libc::EISDIR | libc::EEXIST | libc::EROFS) => {
            SandboxError::PathRefused { path: path.to_owned(), reason: error.to_string() }
        }
        _ => SandboxError::Backend { doing: format!("unpack `{path}`"), source: Box::new(error) },
    }
}
