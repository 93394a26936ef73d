//! The seam: what makes sandboxes, and what can be done with one.

use std::path::Path;
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::allow_list::NetworkStats;
use crate::{
    ByteStream, Changes, ExecRequest, ExecResult, Limits, NetworkPolicy, OutputSink, Owner,
    OwnerState, Process, PtyProcess, PtySize, SandboxError, SandboxSpec, Shell, ShellOptions,
};

/// What a backend can do. Asking for more is [`SandboxError::Unsupported`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Capabilities {
    /// Commands are programs of a POSIX system, with `sh` among them.
    pub posix: bool,
    /// [`Sandbox::open_shell`].
    pub shell: bool,
    /// [`Sandbox::spawn`].
    #[serde(default)]
    pub spawn: bool,
    /// [`Sandbox::spawn_pty`].
    #[serde(default)]
    pub pty: bool,
    /// [`Sandbox::connect`], but for networks that the backend names when asked.
    #[serde(default)]
    pub connect: bool,
    /// [`Sandbox::snapshot`] and [`SandboxBackend::restore`].
    pub snapshot: bool,
    /// [`Sandbox::fork`].
    pub fork: bool,
    /// Snapshots hold the memory of what runs, not only files.
    pub memory_in_snapshot: bool,
    /// [`Limits::cpus`](crate::Limits::cpus) is kept.
    pub cpu_limit: bool,
    /// [`Limits::memory_bytes`](crate::Limits::memory_bytes) is kept.
    pub memory_limit: bool,
    /// [`Limits::pids`](crate::Limits::pids) is kept.
    pub pids_limit: bool,
    /// Processes beyond [`Limits::pids`](crate::Limits::pids) that its sandboxes may hold, kept for starting
    /// commands where the limit is used up. Commands may take them.
    #[serde(default)]
    pub pids_reserve: u32,
    /// [`Limits::disk_bytes`](crate::Limits::disk_bytes) is kept whatever else the spec says.
    pub disk_limit: bool,
    /// [`Limits::shm_bytes`](crate::Limits::shm_bytes) is kept.
    #[serde(default)]
    pub shm_limit: bool,
    /// [`Limits::open_files`](crate::Limits::open_files) is kept.
    #[serde(default)]
    pub open_files_limit: bool,
    /// [`Limits::fuel`](crate::Limits::fuel) is kept.
    pub fuel_limit: bool,
    /// [`NetworkPolicy::Bridge`](crate::NetworkPolicy::Bridge).
    pub network: bool,
    /// [`NetworkPolicy::Allow`](crate::NetworkPolicy::Allow).
    pub network_allow_list: bool,
    /// [`Sandbox::set_network`] from and to all that [`Capabilities::network_allow_list`] and no network allow.
    #[serde(default)]
    pub network_change: bool,
    /// [`Sandbox::set_network`] from and to [`NetworkPolicy::Bridge`](crate::NetworkPolicy::Bridge) as well.
    #[serde(default)]
    pub bridge_change: bool,
    /// [`SandboxSpec::capabilities`] beside none.
    #[serde(default)]
    pub capability_sets: bool,
    /// [`SandboxSpec::determinism`].
    pub determinism: bool,
    /// Images built from a Dockerfile.
    pub image_build: bool,
    /// Images from a root-file-system archive.
    pub image_root_tar: bool,
}

impl Capabilities {
    /// Whether a sandbox of one network can get another while it runs; true where both are the same.
    pub fn can_change_network(&self, from: &NetworkPolicy, to: &NetworkPolicy) -> bool {
        let can = |network: &NetworkPolicy| match network {
            NetworkPolicy::None => self.network_change,
            NetworkPolicy::Allow { .. } => self.network_change && self.network_allow_list,
            NetworkPolicy::Bridge => self.bridge_change && self.network,
        };
        from == to || can(from) && can(to)
    }
}

/// Makes sandboxes of one kind.
#[async_trait]
pub trait SandboxBackend: Send + Sync {
    /// Its name in the registry.
    fn name(&self) -> &'static str;

    /// What its sandboxes can do on this machine.
    fn capabilities(&self) -> Capabilities;

    /// Whether it works here: a line with versions for people.
    ///
    /// # Errors
    ///
    /// [`SandboxError::Unavailable`] with the one thing to do.
    async fn probe(&self) -> Result<String, SandboxError>;

    /// Makes the image available (pulls, builds, compiles), so that creating is quick.
    ///
    /// # Errors
    ///
    /// [`SandboxError::ImageMissing`], [`SandboxError::ImageBuild`] and those of the backend.
    async fn prepare(&self, spec: &SandboxSpec) -> Result<(), SandboxError>;

    /// A new sandbox, its set-up done.
    ///
    /// Dropping the future leaves nothing behind that [`SandboxBackend::reap`] would not find.
    ///
    /// # Errors
    ///
    /// [`SandboxError::InvalidSpec`], [`SandboxError::Unsupported`], those of
    /// [`SandboxBackend::prepare`], [`SandboxError::CreateTimedOut`], [`SandboxError::Setup`].
    async fn create(&self, spec: &SandboxSpec) -> Result<Box<dyn Sandbox>, SandboxError>;

    /// A new sandbox that goes on from `snapshot`.
    ///
    /// # Errors
    ///
    /// As [`SandboxBackend::create`]; [`SandboxError::ImageMissing`] if the snapshot is gone.
    async fn restore(&self, snapshot: &Snapshot) -> Result<Box<dyn Sandbox>, SandboxError>;

    /// Removes a snapshot; one that is gone already is no error.
    ///
    /// # Errors
    ///
    /// Those of the backend.
    async fn remove_snapshot(&self, snapshot: &Snapshot) -> Result<(), SandboxError>;

    /// All sandboxes of spar's on this backend, whoever owns them.
    ///
    /// # Errors
    ///
    /// Those of the backend.
    async fn list(&self) -> Result<Vec<SandboxRecord>, SandboxError>;

    /// Removes everything that owners left who are [`OwnerState::Dead`], or whose time to live
    /// is over: sandboxes, volumes, networks, snapshots, mounts, control groups, folders. Nothing
    /// of a living owner, of one who cannot be seen, or with a record that cannot be read, and
    /// nothing that is not spar's.
    ///
    /// # Errors
    ///
    /// Those of the backend, when it cannot be asked; things that resist are in the report.
    async fn reap(&self) -> Result<ReapReport, SandboxError>;
}

/// An isolated machine.
///
/// Whoever creates one closes it. Dropping one that was not closed closes it in the background as
/// far as that is possible, and [`SandboxBackend::reap`] is the net behind that.
#[async_trait]
pub trait Sandbox: Send + Sync {
    /// Unique among the backend's sandboxes.
    fn id(&self) -> &str;

    /// What of the backend keeps it: sandboxes of one engine live and end together, those of
    /// another do not. Default: the empty name, for backends that are one.
    fn engine(&self) -> &str {
        ""
    }

    /// What it was made from. [`Sandbox::set_network`] changes nothing of it.
    fn spec(&self) -> &SandboxSpec;

    /// What it can do.
    fn capabilities(&self) -> Capabilities;

    /// Runs a command to its end; several may run at one time.
    ///
    /// # Errors
    ///
    /// [`SandboxError::Died`] and those of the backend. How the command ended is no error. Nothing
    /// it started outlives a deadline, and a dropped future ends it as well.
    async fn exec(&self, request: &ExecRequest) -> Result<ExecResult, SandboxError> {
        self.exec_streaming(request, &mut |_: crate::Stream, _: &[u8]| {}).await
    }

    /// As [`Sandbox::exec`], and hands over output as it comes.
    ///
    /// # Errors
    ///
    /// As [`Sandbox::exec`].
    async fn exec_streaming(
        &self,
        request: &ExecRequest,
        sink: &mut dyn OutputSink,
    ) -> Result<ExecResult, SandboxError>;

    /// Starts a command and returns while it runs, with its streams; several may run at one time.
    ///
    /// It runs until it ends, is [killed](crate::ProcessHandle::kill) or dropped, or at its
    /// [`ExecRequest::timeout`] where there is one; with it ends what it started, but for what it leaves
    /// running when it ends by itself. A program that cannot be run or found ends with 126 or 127.
    /// `output_limit_bytes` says nothing here.
    ///
    /// # Errors
    ///
    /// [`SandboxError::Unsupported`], also for a request that has `stdin`, which is to be written to the
    /// process; and as [`Sandbox::exec`].
    async fn spawn(&self, request: &ExecRequest) -> Result<Process, SandboxError>;

    /// As [`Sandbox::spawn`], on a pseudo-terminal of this size, which the process controls: it has job
    /// control, and keys such as Ctrl-C reach what is in its foreground. `TERM` is `xterm` unless the request
    /// or the spec says another.
    ///
    /// # Errors
    ///
    /// As [`Sandbox::spawn`].
    async fn spawn_pty(
        &self,
        request: &ExecRequest,
        size: PtySize,
    ) -> Result<PtyProcess, SandboxError>;

    /// Connects to what listens on a TCP port of the sandbox's own loopback, `127.0.0.1` or else `::1`. It
    /// needs no network in the sandbox, and never leads to a port of the host.
    ///
    /// # Errors
    ///
    /// [`SandboxError::NotListening`], [`SandboxError::ConnectRefused`], [`SandboxError::ConnectTimedOut`]
    /// after ten seconds, [`SandboxError::Unsupported`] also where the sandbox shares the host's loopback,
    /// [`SandboxError::Died`] and those of the backend.
    async fn connect(&self, port: u16) -> Result<ByteStream, SandboxError> {
        self.connect_within(port, Duration::ZERO).await
    }

    /// As [`Sandbox::connect`], where it waits for as long as `patience` says until somebody listens: for a
    /// server that is being started.
    ///
    /// # Errors
    ///
    /// As [`Sandbox::connect`]; [`SandboxError::NotListening`] where nobody did in time.
    async fn connect_within(
        &self,
        port: u16,
        patience: Duration,
    ) -> Result<ByteStream, SandboxError>;

    /// A shell that keeps its working directory and variables between commands.
    ///
    /// # Errors
    ///
    /// [`SandboxError::Unsupported`] and as [`Sandbox::exec`].
    async fn open_shell(&self, options: &ShellOptions) -> Result<Box<dyn Shell>, SandboxError>;

    /// A regular file's bytes; links inside are followed and never lead out.
    ///
    /// # Errors
    ///
    /// [`SandboxError::NotFound`], [`SandboxError::PathRefused`], [`SandboxError::TooLarge`] beyond
    /// `limit_bytes`.
    async fn read_file(&self, path: &str, limit_bytes: u64) -> Result<Vec<u8>, SandboxError>;

    /// Writes a regular file with the permissions `mode` (`0o644`), folders above it included.
    /// Written as the sandbox's user where the backend knows users.
    ///
    /// # Errors
    ///
    /// [`SandboxError::PathRefused`] and those of the backend.
    async fn write_file(&self, path: &str, bytes: &[u8], mode: u32) -> Result<(), SandboxError>;

    /// What lies in a folder, sorted by name.
    ///
    /// # Errors
    ///
    /// [`SandboxError::NotFound`], [`SandboxError::PathRefused`].
    async fn list_files(&self, path: &str) -> Result<Vec<FileEntry>, SandboxError>;

    /// Unpacks the tar archive at the host's `archive` into the folder `path`. Entries and links
    /// that lead out of `path`, and device files, are refused before anything is unpacked.
    ///
    /// # Errors
    ///
    /// [`SandboxError::PathRefused`], [`SandboxError::Host`].
    async fn upload_tar(&self, path: &str, archive: &Path) -> Result<(), SandboxError>;

    /// Packs the file or folder `path` into the tar archive `archive` on the host, entries named
    /// from the last part of `path` on. What the sandbox wrote into it is not to be trusted.
    ///
    /// # Errors
    ///
    /// [`SandboxError::NotFound`], [`SandboxError::TooLarge`], [`SandboxError::Host`].
    async fn download_tar(
        &self,
        path: &str,
        archive: &Path,
        limit_bytes: u64,
    ) -> Result<(), SandboxError>;

    /// Ends everything that runs in it: commands under way, shells, and whatever any of them left
    /// behind, however that hides. When it returns there is no process of the sandbox but those that
    /// the backend itself keeps there, none of which runs what the sandbox brought. Its files stay;
    /// those in memory alone (`/dev/shm`, shared segments) may go.
    ///
    /// Commands under way end as if they were killed; shells are started anew by their next command,
    /// or not at all. Bounded by a minute.
    ///
    /// # Errors
    ///
    /// [`SandboxError::Died`] and those of the backend: then something may still run.
    async fn end_all(&self) -> Result<(), SandboxError>;

    /// Has it reach what `network` says from now on, and nothing else. What runs in it goes on, but for its
    /// connections to what is outside, which end. Commands and shells that are started later have the variables that
    /// name the proxy of an allow-list, or none of these; those that run keep theirs. What passes an
    /// allow-list is counted anew. Snapshots and forks have the network of their moment.
    ///
    /// # Errors
    ///
    /// [`SandboxError::InvalidSpec`] where the spec would be wrong with it, [`SandboxError::Unsupported`] where
    /// [`Capabilities::can_change_network`] is false, [`SandboxError::PortTaken`] where what runs in it holds the port of an
    /// allow-list's proxy, [`SandboxError::Died`] and those of the backend: then it reaches what it did before, nothing, or `network`, until
    /// a later call comes about.
    async fn set_network(&self, network: &NetworkPolicy) -> Result<(), SandboxError>;

    /// What differs in its files from the state that it began in, what its set-up did included; at most
    /// `limit` of it. Mounts, and what lies in memory alone (`/dev/shm`, `/tmp` of a read-only root), are left out.
    /// What changes meanwhile may be told or not.
    ///
    /// # Errors
    ///
    /// [`SandboxError::Died`] and those of the backend.
    async fn changes(&self, limit: usize) -> Result<Changes, SandboxError>;

    /// Keeps the present state; the sandbox goes on.
    ///
    /// # Errors
    ///
    /// [`SandboxError::Unsupported`] and those of the backend.
    async fn snapshot(&self) -> Result<Snapshot, SandboxError>;

    /// A second sandbox in the present state; neither sees what the other does from here on.
    ///
    /// # Errors
    ///
    /// [`SandboxError::Unsupported`] and those of the backend.
    async fn fork(&self) -> Result<Box<dyn Sandbox>, SandboxError>;

    /// What it has used up.
    ///
    /// # Errors
    ///
    /// [`SandboxError::Died`] and those of the backend.
    async fn stats(&self) -> Result<SandboxStats, SandboxError>;

    /// Whether it can still be used, as quickly as the backend can tell.
    ///
    /// # Errors
    ///
    /// [`SandboxError::Died`] and those of the backend.
    async fn check(&self) -> Result<(), SandboxError>;

    /// Removes it with everything that was made for it. Closing twice is no error; what the first
    /// time could not remove, the second tries again.
    ///
    /// # Errors
    ///
    /// Those of the backend; [`SandboxBackend::reap`] finds what is left.
    async fn close(&self) -> Result<(), SandboxError>;
}

/// A kept state of a sandbox.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Snapshot {
    /// Name of the backend that can restore it.
    pub backend: String,
    /// Its id there.
    pub id: String,
    /// Limits, network and the rest of what it restores to.
    pub spec: SandboxSpec,
}

/// One thing in a folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileEntry {
    /// Its name, without the folder; bytes that are no UTF-8 become U+FFFD.
    pub name: String,
    /// What it is.
    pub kind: FileKind,
    /// Bytes of a regular file, else 0.
    pub size_bytes: u64,
}

/// What a directory entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileKind {
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// A symbolic link.
    Link,
    /// A pipe, socket or device.
    Other,
}

/// What a sandbox has used up. Absent: the backend cannot tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SandboxStats {
    /// Processor time.
    pub cpu: Option<Duration>,
    /// Memory in use.
    pub memory_bytes: Option<u64>,
    /// The most memory that was in use.
    pub peak_memory_bytes: Option<u64>,
    /// Processes and threads.
    pub pids: Option<u32>,
    /// Bytes in its own file system; what is empty may count as well, since it takes a place there. Containers count that, and what lies on
    /// volumes, where the disk is full.
    pub disk_bytes: Option<u64>,
    /// Bytes that may still be written to its file system: of its own limit, or else of what it shares with the host; absent as well where it is
    /// memory of its own without a limit. 0 where no more files can be made.
    #[serde(default)]
    pub free_disk_bytes: Option<u64>,
    /// Kills for memory so far.
    pub out_of_memory_kills: Option<u64>,
    /// What passed the proxy of an allow-list; absent without one.
    pub network: Option<NetworkStats>,
}

/// With less than this free, the disk of the host is full: what needs room gets none.
const FULL_BYTES: u64 = 16 << 20;
/// A sandbox without a limit of its disk has filled the host's if it holds this much.
pub(crate) const MUCH_BYTES: u64 = 1 << 30;

impl SandboxStats {
    /// Whether what the sandbox wrote has filled its disk, or the host's where it has no limit of its own.
    pub fn has_filled_disk(&self, limits: &Limits) -> bool {
        let much = limits.disk_bytes.map_or(MUCH_BYTES, |limit| limit / 10 * 9);
        self.disk_bytes.is_some_and(|bytes| bytes >= much)
    }

    /// Whether the disk that it shares with the host is full, and not by what it wrote.
    pub fn is_host_disk_full(&self, limits: &Limits) -> bool {
        limits.disk_bytes.is_none()
            && !self.has_filled_disk(limits)
            && self.free_disk_bytes.is_some_and(|bytes| bytes < FULL_BYTES)
    }
}

/// A sandbox as a backend lists it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SandboxRecord {
    /// Its id.
    pub id: String,
    /// Name of the backend.
    pub backend: String,
    /// The image as the spec writes it.
    pub image: String,
    /// Who made it.
    pub owner: Owner,
    /// Whether that process lives.
    pub owner_state: OwnerState,
    /// When it was made.
    pub created: SystemTime,
    /// When it may be removed whatever its owner does.
    pub expires: SystemTime,
}

/// What a reaper found.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReapReport {
    /// What was removed, `kind id` each: `container 3f2a...`, `volume ...`, `folder ...`.
    pub removed: Vec<String>,
    /// What is still there and why.
    pub failed: Vec<String>,
    /// Things of owners that live, or of whom that cannot be told, that were left alone.
    pub kept: usize,
    /// What is spar's but has a record that cannot be read here, so that nobody knows whether it is
    /// wanted; it was left alone. Each with the reason.
    #[serde(default)]
    pub unread: Vec<String>,
}

#[cfg(feature = "docker")]
impl ReapReport {
    /// Takes in what another look found.
    pub(crate) fn add(&mut self, other: Self) {
        let Self { removed, failed, kept, unread } = other;
        self.removed.extend(removed);
        self.failed.extend(failed);
        self.kept += kept;
        self.unread.extend(unread);
    }
}
