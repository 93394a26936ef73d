//! A scripted backend for tests: no process, no isolation, files in memory.

mod files;
mod programs;
mod sandbox;
mod script;
mod service;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use tokio::io::DuplexStream;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use crate::{
    Capabilities, CapabilitySet, Death, ExecEnd, ExecRequest, Image, NetworkPolicy, Owner,
    OwnerState, ReapReport, Sandbox, SandboxBackend, SandboxError, SandboxRecord, SandboxSpec,
    Snapshot,
};

pub use files::FakeFiles;
use sandbox::FakeSandbox;
use service::Service;

/// Its name in the registry.
pub const NAME: &str = "fake";

/// What it can do.
pub const CAPABILITIES: Capabilities = Capabilities {
    posix: false,
    shell: true,
    spawn: false,
    pty: false,
    connect: true,
    snapshot: true,
    fork: true,
    memory_in_snapshot: false,
    cpu_limit: false,
    memory_limit: false,
    pids_limit: false,
    pids_reserve: 0,
    disk_limit: false,
    shm_limit: false,
    open_files_limit: false,
    fuel_limit: false,
    network: false,
    network_allow_list: false,
    network_change: false,
    bridge_change: false,
    capability_sets: false,
    determinism: false,
    image_build: false,
    image_root_tar: false,
};

/// Answers a command in place of the built-in ones; absent leaves it to them.
pub type FakeScript = dyn Fn(&ExecRequest, &mut FakeFiles) -> Option<FakeReply> + Send + Sync;

/// Sandboxes that exist in memory alone.
///
/// Commands are answered by a script, or by programs built in: `echo WORDS`, `cat [PATHS]`,
/// `write PATH WORDS`, `sleep SECONDS`, `pwd`, `env`, `repeat NUM` (zeros),
/// `complain WORDS` (to standard error, exits with 1), `exit CODE`, `true`, `false`, `listen PORT` (from then
/// on what connects there gets back what it sends; no part of a script), `ask HOST:PORT WORDS` (sends them to a host
/// that this process serves and writes the answer, or exits with 1; all of a script or none of it), and the plainest
/// forms of `ls`, `mkdir`, `rm`, `mv`, `cp`, `test`, `grep`, `sort`, `sed`, `cut`, `head`, `tail` and
/// `wc`; all others exit with 127. `sh -c` knows lists, pipes, redirections, quotes, `$(...)` and `*`.
/// Time is tokio's, so that it can be paused. Clones are the same backend.
///
/// ```
/// use spar_sandbox::backends::fake::{FakeBackend, FakeReply};
/// use spar_sandbox::{ExecRequest, Image, SandboxBackend, SandboxSpec};
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// let backend = FakeBackend::with_script(|request, files| {
///     files.write("/log", request.command.join(" "));
///     (request.command[0] == "pytest").then(|| FakeReply::exited(1, "1 failed\n"))
/// });
/// let sandbox = backend.create(&SandboxSpec::new(Image::Default)).await?;
/// let result = sandbox.exec(&ExecRequest::new(["pytest", "-q"])).await?;
/// assert_eq!(result.end.shell_code(), 1);
/// assert_eq!(sandbox.read_file("/log", 100).await?, b"pytest -q");
/// drop(sandbox);
/// assert_eq!(backend.num_live(), 0);
/// # Ok::<(), spar_sandbox::SandboxError>(())
/// # }).unwrap();
/// ```
#[derive(Clone)]
pub struct FakeBackend {
    shared: Arc<Shared>,
}

/// What a scripted command does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FakeReply {
    /// How it ends.
    pub end: ExecEnd,
    /// What it writes to standard output.
    pub stdout: Vec<u8>,
    /// What it writes to standard error.
    pub stderr: Vec<u8>,
    /// How long it runs. A deadline that comes first ends it.
    pub takes: Duration,
}

impl FakeReply {
    /// Exits with `code` at once, after writing `stdout`.
    pub fn exited(code: i32, stdout: impl Into<Vec<u8>>) -> Self {
        let end = ExecEnd::Exited { code };
        Self { end, stdout: stdout.into(), stderr: Vec::new(), takes: Duration::ZERO }
    }

    /// Exits with `code` at once, after writing `stderr`.
    pub fn failed(code: i32, stderr: impl Into<Vec<u8>>) -> Self {
        Self { stdout: Vec::new(), stderr: stderr.into(), ..Self::exited(code, "") }
    }

    /// The same, later.
    #[must_use]
    pub fn after(mut self, takes: Duration) -> Self {
        self.takes = takes;
        self
    }
}

/// What goes wrong, and what is slow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FakeFaults {
    /// How many of the next creations fail. Default none.
    pub failing_creates: u64,
    /// How long creating, restoring and forking take. Default no time.
    pub create_takes: Duration,
    /// How long each command takes beside its own time. Default no time.
    pub exec_takes: Duration,
    /// How long closing takes. Default no time.
    pub close_takes: Duration,
    /// Each sandbox dies in its n-th command, the first being 1. Default never.
    pub dies_at_exec: Option<u64>,
    /// This befalls each sandbox in its n-th command, the first being 1; it lives on. Default never.
    pub trouble_at_exec: Option<(u64, FakeTrouble)>,
    /// How many sandboxes die so; the others live. Default all.
    pub most_deaths: Option<u64>,
    /// Each sandbox's n-th connection fails, the first being 1, and the backend does not know why. Default never.
    pub fails_at_connect: Option<u64>,
    /// How many of the next calls of close fail; the sandbox is left. Default none.
    pub failing_closes: u64,
}

/// What may befall a command of a sandbox that lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FakeTrouble {
    /// The backend cannot start it, and does not know why.
    Refused,
    /// All processes that the sandbox may have are there already.
    UsedUp,
    /// It never comes back, not even at its deadline.
    Hangs,
}

impl FakeFaults {
    /// Whether a sandbox dies in its command of this number; that is one death less to come.
    fn dies_now(&mut self, num_execs: u64) -> bool {
        if self.dies_at_exec != Some(num_execs) || self.most_deaths == Some(0) {
            return false;
        }
        self.most_deaths = self.most_deaths.map(|deaths| deaths - 1);
        true
    }
}

struct Shared {
    script: Box<FakeScript>,
    services: Mutex<BTreeMap<u16, Arc<Service>>>,
    faults: Mutex<FakeFaults>,
    /// Whether it takes allow-lists, whose served hosts `ask` reaches.
    takes_lists: AtomicBool,
    world: Mutex<World>,
    next: AtomicU64,
}

/// All that exists.
#[derive(Default)]
struct World {
    sandboxes: BTreeMap<String, State>,
    snapshots: BTreeMap<String, FakeFiles>,
    most_live: usize,
}

/// A living sandbox.
struct State {
    files: FakeFiles,
    /// As they were when it began.
    base: FakeFiles,
    spec: SandboxSpec,
    created: SystemTime,
    num_execs: u64,
    num_connects: u64,
    /// Where `listen` was told to.
    listening: BTreeSet<u16>,
    /// How often everything that ran was ended.
    ends: watch::Sender<u64>,
}

impl Default for FakeBackend {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for FakeBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FakeBackend").field("num_live", &self.num_live()).finish_non_exhaustive()
    }
}

impl FakeBackend {
    /// One that knows only the built-in commands.
    pub fn new() -> Self {
        Self::with_script(|_, _| None)
    }

    /// One whose commands `script` answers, unless it leaves one to the built-in ones.
    pub fn with_script(
        script: impl Fn(&ExecRequest, &mut FakeFiles) -> Option<FakeReply> + Send + Sync + 'static,
    ) -> Self {
        let shared = Shared {
            script: Box::new(script),
            services: Mutex::default(),
            faults: Mutex::default(),
            takes_lists: AtomicBool::new(false),
            world: Mutex::default(),
            next: AtomicU64::new(1),
        };
        Self { shared: Arc::new(shared) }
    }

    /// The same with these faults.
    #[must_use]
    pub fn with_faults(self, faults: FakeFaults) -> Self {
        self.set_faults(faults);
        self
    }

    /// The same, where `service` serves whoever connects to `port` of a sandbox: until it returns, and
    /// no longer than all that runs in the sandbox.
    #[must_use]
    pub fn with_service<F>(
        self,
        port: u16,
        service: impl Fn(DuplexStream) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let service: Arc<Service> = Arc::new(move |stream| Box::pin(service(stream)));
        self.shared.services().insert(port, service);
        self
    }

    /// The same, which takes allow-lists: of their hosts, those that this process serves can be asked.
    #[must_use]
    pub fn with_allow_lists(self) -> Self {
        self.shared.takes_lists.store(true, Ordering::Relaxed);
        self
    }

    /// From now on these faults.
    pub fn set_faults(&self, faults: FakeFaults) {
        *self.shared.faults() = faults;
    }

    /// Sandboxes that live.
    pub fn num_live(&self) -> usize {
        self.shared.world().sandboxes.len()
    }

    /// The most sandboxes that lived at one time.
    pub fn most_live(&self) -> usize {
        self.shared.world().most_live
    }

    /// Snapshots that were not removed.
    pub fn num_snapshots(&self) -> usize {
        self.shared.world().snapshots.len()
    }

    /// Sandboxes that were ever made.
    pub fn num_created(&self) -> u64 {
        self.shared.next.load(Ordering::SeqCst) - 1
    }

    /// Kills a sandbox, as if somebody had; `false` if it is not there.
    pub fn kill(&self, id: &str) -> bool {
        self.shared.world().sandboxes.remove(id).is_some()
    }
}

impl Shared {
    fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().expect("nothing panics while it holds the world")
    }

    fn services(&self) -> MutexGuard<'_, BTreeMap<u16, Arc<Service>>> {
        self.services.lock().expect("nothing panics while it holds the services")
    }

    fn faults(&self) -> MutexGuard<'_, FakeFaults> {
        self.faults.lock().expect("nothing panics while it holds the faults")
    }

    /// A new sandbox with these files, in time.
    async fn make(
        self: &Arc<Self>,
        spec: &SandboxSpec,
        base: FakeFiles,
        files: FakeFiles,
    ) -> Result<FakeSandbox, SandboxError> {
        let takes = self.faults().create_takes;
        let seconds = spec.lifetimes.create_secs;
        timeout(Duration::from_secs(seconds), sleep(takes))
            .await
            .map_err(|_| SandboxError::CreateTimedOut { seconds })?;
        {
            let mut faults = self.faults();
            if faults.failing_creates > 0 {
                faults.failing_creates -= 1;
                return Err(SandboxError::Backend {
                    doing: "create a sandbox".into(),
                    source: "the test wants it to fail".into(),
                });
            }
        }
        let id = format!("fake-{}", self.next.fetch_add(1, Ordering::SeqCst));
        let created = SystemTime::now();
        let state = State {
            files,
            spec: spec.clone(),
            created,
            num_execs: 0,
            num_connects: 0,
            listening: BTreeSet::new(),
            base,
            ends: watch::Sender::new(0),
        };
        let mut world = self.world();
        world.sandboxes.insert(id.clone(), state);
        world.most_live = world.most_live.max(world.sandboxes.len());
        Ok(FakeSandbox::new(id, spec.clone(), self.clone()))
    }
}

/// What this backend cannot do, as the spec asks for it.
fn unsupported(spec: &SandboxSpec, takes_lists: bool) -> Option<&'static str> {
    let is_listed = takes_lists && matches!(spec.network, NetworkPolicy::Allow { .. });
    let asked = [
        (!matches!(spec.image, Image::Default | Image::Reference(_)), "use images from files"),
        (spec.network != NetworkPolicy::None && !is_listed, "reach a network"),
        (spec.limits.disk_bytes.is_some(), "limit the disk"),
        (spec.limits.fuel.is_some(), "limit the fuel"),
        (spec.limits.shm_bytes.is_some(), "limit shared memory"),
        (spec.limits.open_files.is_some(), "limit open files"),
        (spec.capabilities != CapabilitySet::None, "give capabilities"),
        (spec.determinism.is_some(), "seed chance and time"),
        (!spec.mounts.is_empty(), "mount folders of the host"),
        (spec.user.is_some(), "run as another user"),
    ];
    asked.into_iter().find_map(|(is_asked, what)| is_asked.then_some(what))
}

fn refuse(what: &str) -> SandboxError {
    SandboxError::Unsupported { backend: NAME, what: what.to_owned() }
}

fn died(sandbox: &str, death: Death) -> SandboxError {
    SandboxError::Died { sandbox: sandbox.to_owned(), death }
}

#[async_trait]
impl SandboxBackend for FakeBackend {
    fn name(&self) -> &'static str {
        NAME
    }

    fn capabilities(&self) -> Capabilities {
        let network_allow_list = self.shared.takes_lists.load(Ordering::Relaxed);
        Capabilities { network_allow_list, ..CAPABILITIES }
    }

    async fn probe(&self) -> Result<String, SandboxError> {
        Ok("in memory".to_owned())
    }

    async fn prepare(&self, spec: &SandboxSpec) -> Result<(), SandboxError> {
        spec.validate()?;
        let takes_lists = self.shared.takes_lists.load(Ordering::Relaxed);
        unsupported(spec, takes_lists).map_or(Ok(()), |what| Err(refuse(what)))
    }

    async fn create(&self, spec: &SandboxSpec) -> Result<Box<dyn Sandbox>, SandboxError> {
        self.prepare(spec).await?;
        let mut files = FakeFiles::default();
        if let Some(workdir) = &spec.workdir {
            files.make_folder(workdir)?;
        }
        let sandbox = self.shared.make(spec, FakeFiles::default(), files).await?;
        sandbox.set_up().await?;
        Ok(Box::new(sandbox))
    }

    async fn restore(&self, snapshot: &Snapshot) -> Result<Box<dyn Sandbox>, SandboxError> {
        let files = self.shared.world().snapshots.get(&snapshot.id).cloned();
        let files = files.ok_or_else(|| SandboxError::ImageMissing {
            image: snapshot.id.clone(),
            reason: "the snapshot was removed".into(),
            hint: "take another one".into(),
        })?;
        Ok(Box::new(self.shared.make(&snapshot.spec, files.clone(), files).await?))
    }

    async fn remove_snapshot(&self, snapshot: &Snapshot) -> Result<(), SandboxError> {
        self.shared.world().snapshots.remove(&snapshot.id);
        Ok(())
    }

    async fn list(&self) -> Result<Vec<SandboxRecord>, SandboxError> {
        let world = self.shared.world();
        let records = world.sandboxes.iter().map(|(id, state)| SandboxRecord {
            id: id.clone(),
            backend: NAME.to_owned(),
            image: state.spec.image.to_string(),
            owner: Owner::this_process().clone(),
            owner_state: OwnerState::Own,
            created: state.created,
            expires: state.created + state.spec.lifetimes.time_to_live(),
        });
        Ok(records.collect())
    }

    async fn reap(&self) -> Result<ReapReport, SandboxError> {
        // Memory is this process's, so what there is has a living owner; only time ends it.
        let mut report = ReapReport::default();
        let now = SystemTime::now();
        self.shared.world().sandboxes.retain(|id, state| {
            let lives = state.created + state.spec.lifetimes.time_to_live() > now;
            if lives {
                report.kept += 1;
            } else {
                report.removed.push(format!("sandbox {id}"));
            }
            lives
        });
        Ok(report)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::time::Instant;

    fn spec() -> SandboxSpec {
        SandboxSpec::new(Image::Default)
    }

    #[tokio::test(start_paused = true)]
    async fn faults_come_as_they_were_asked_for() {
        let backend = FakeBackend::new().with_faults(FakeFaults {
            failing_creates: 1,
            create_takes: Duration::from_secs(3),
            dies_at_exec: Some(2),
            failing_closes: 1,
            ..FakeFaults::default()
        });
        let began = Instant::now();
        assert!(backend.create(&spec()).await.is_err());
        assert_eq!(backend.num_created(), 0);
        let sandbox = backend.create(&spec()).await.unwrap();
        assert_eq!(began.elapsed().as_secs(), 6);
        let request = ExecRequest::new(["true"]);
        assert!(sandbox.exec(&request).await.unwrap().end.is_success());
        let error = sandbox.exec(&request).await.unwrap_err();
        assert!(matches!(error, SandboxError::Died { death: Death::Killed, .. }), "{error}");
        assert_eq!(backend.num_live(), 0);

        let sandbox = backend.create(&spec()).await.unwrap();
        assert!(sandbox.close().await.is_err());
        assert_eq!(backend.num_live(), 1);
        sandbox.close().await.unwrap();
        assert_eq!((backend.num_live(), backend.most_live(), backend.num_created()), (0, 1, 2));
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_creation_meets_its_deadline() {
        let create_takes = Duration::from_secs(121);
        let backend =
            FakeBackend::new().with_faults(FakeFaults { create_takes, ..FakeFaults::default() });
        let error = backend.create(&spec()).await.err().unwrap();
        assert!(matches!(error, SandboxError::CreateTimedOut { seconds: 120 }), "{error}");
    }

    #[tokio::test]
    async fn who_connects_is_served_until_all_in_the_sandbox_ends() {
        let backend = FakeBackend::new().with_service(80, async |mut stream| {
            let mut name = [0; 3];
            stream.read_exact(&mut name).await.unwrap();
            stream.write_all(&[b"hello ", &name[..]].concat()).await.unwrap();
        });
        let sandbox = backend.create(&spec()).await.unwrap();
        let mut stream = sandbox.connect(80).await.unwrap();
        stream.write_all(b"you").await.unwrap();
        let mut said = String::new();
        stream.read_to_string(&mut said).await.unwrap();
        assert_eq!(said, "hello you");
        let absent = sandbox.connect(81).await.unwrap_err();
        assert!(matches!(absent, SandboxError::NotListening { port: 81 }), "{absent}");

        let mut stream = sandbox.connect(80).await.unwrap();
        sandbox.end_all().await.unwrap();
        assert_eq!(stream.read_to_string(&mut said).await.unwrap(), 0);
    }

    #[tokio::test]
    async fn a_dropped_sandbox_is_gone() {
        let backend = FakeBackend::new();
        drop(backend.create(&spec()).await.unwrap());
        assert_eq!(backend.num_live(), 0);
    }
}
