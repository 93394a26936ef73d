//! A sandbox: a program, files in memory, and sessions.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant, SystemTime};

use async_trait::async_trait;
use tokio::sync::{Semaphore, SemaphorePermit, watch};

use super::NAME;
use super::backend::Shared;
use super::engine::Ticking;
use super::errno::Errno;
use super::host::{SharedTree, lock};
use super::opaque::Start;
use super::output::Output;
use super::run::{Launch, deadline, drive, end_of, host_error, message};
use super::session::{Session, SessionImage, Slot, images};
use super::surroundings::Surroundings;
use super::tree::{ROOT, Tree};
use super::usage::Usage;
use super::{capabilities, tree_tar};
use crate::archive::{check_tar, normalise};
use crate::changes::is_apart;
use crate::{
    ByteStream, Capabilities, Changes, Death, ExecEnd, ExecRequest, ExecResult, FileEntry,
    FileKind, NetworkPolicy, OutputSink, Owner, OwnerState, Process, PtyProcess, PtySize, Sandbox,
    SandboxError, SandboxRecord, SandboxSpec, SandboxStats, Shell, ShellOptions, Snapshot, Stream,
};

/// How long instances may take to end.
const ENDING: Duration = Duration::from_secs(30);

/// How a command ends that is ended with everything else.
pub(crate) const KILLED: ExecEnd = ExecEnd::Signalled { signal: 9 };

/// A program under its name.
#[derive(Clone)]
pub(crate) struct Guest {
    pub(crate) program: Arc<dyn Start>,
    /// What it is called, its first argument.
    pub(crate) name: String,
}

/// Everything that a sandbox is, at rest.
pub(crate) struct Frozen {
    pub(crate) spec: SandboxSpec,
    pub(crate) guest: Guest,
    /// The files that changes are told against.
    pub(crate) base: Arc<Tree>,
    pub(crate) tree: Arc<Tree>,
    pub(crate) surroundings: Surroundings,
    pub(crate) sessions: Vec<SessionImage>,
}

/// A sandbox, shared by its handle, its shells and the backend's list.
pub(crate) struct Inner {
    id: String,
    spec: SandboxSpec,
    guest: Guest,
    shared: Arc<Shared>,
    tree: SharedTree,
    /// Its files as they were when it began.
    base: Mutex<Arc<Tree>>,
    surroundings: Arc<Surroundings>,
    usage: Arc<Usage>,
    /// One for each instance that may run at a time.
    permits: Semaphore,
    sessions: Mutex<Vec<Weak<Slot>>>,
    /// Sessions that came with a fork and that nobody has opened yet.
    suspended: Mutex<Vec<SessionImage>>,
    death: OnceLock<Death>,
    closed: watch::Sender<bool>,
    /// How often everything that ran was ended.
    ends: watch::Sender<u64>,
    created: SystemTime,
}

/// The handle on a sandbox; dropping it closes the sandbox.
pub(crate) struct WasmSandbox(pub(crate) Arc<Inner>);

impl Inner {
    /// A sandbox in the state of `frozen`, known to the backend's list.
    pub(crate) fn thaw(shared: &Arc<Shared>, frozen: &Frozen) -> Arc<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let instances = frozen.spec.limits.pids.unwrap_or(1024) as usize;
        let inner = Arc::new(Self {
            id: format!("wasm-{}-{number}", Owner::this_process().run),
            spec: frozen.spec.clone(),
            guest: frozen.guest.clone(),
            shared: Arc::clone(shared),
            tree: Arc::new(Mutex::new(frozen.tree.fork())),
            base: Mutex::new(Arc::clone(&frozen.base)),
            surroundings: Arc::new(frozen.surroundings.fork()),
            usage: Arc::default(),
            permits: Semaphore::new(instances),
            sessions: Mutex::default(),
            suspended: Mutex::new(frozen.sessions.clone()),
            death: OnceLock::new(),
            closed: watch::Sender::new(false),
            ends: watch::Sender::new(0),
            created: SystemTime::now(),
        });
        shared.register(&inner);
        inner
    }

    /// A copy of its state. Waits for sessions that run a command.
    pub(crate) async fn freeze(&self) -> Result<Frozen, SandboxError> {
        self.check_alive()?;
        let sessions = guard(&self.sessions).clone();
        let mut copies = images(sessions).await;
        copies.extend(guard(&self.suspended).iter().cloned());
        let tree = Arc::new(lock(&self.tree).clone());
        Ok(Frozen {
            spec: self.spec.clone(),
            guest: self.guest.clone(),
            base: Arc::clone(&tree),
            tree,
            surroundings: self.surroundings.fork(),
            sessions: copies,
        })
    }

    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    pub(crate) fn spec(&self) -> &SandboxSpec {
        &self.spec
    }

    pub(crate) fn program(&self) -> &dyn Start {
        &*self.guest.program
    }

    pub(crate) fn usage(&self) -> &Usage {
        &self.usage
    }

    pub(crate) fn ticking(&self) -> Ticking {
        self.shared.ticker.running()
    }

    pub(crate) fn record(&self) -> SandboxRecord {
        SandboxRecord {
            id: self.id.clone(),
            backend: NAME.into(),
            image: self.spec.image.to_string(),
            owner: Owner::this_process().clone(),
            owner_state: OwnerState::Own,
            created: self.created,
            expires: self.created + self.spec.lifetimes.time_to_live(),
        }
    }

    /// Whether its time to live is over.
    pub(crate) fn is_expired(&self) -> bool {
        self.created.elapsed().is_ok_and(|age| age > self.spec.lifetimes.time_to_live())
    }

    /// Ends it: what runs is dropped, files and sessions are gone.
    pub(crate) fn end(&self, death: Death) {
        if self.death.set(death).is_err() {
            return;
        }
        self.closed.send_replace(true);
        guard(&self.suspended).clear();
        for slot in guard(&self.sessions).drain(..).filter_map(|slot| slot.upgrade()) {
            if let Ok(mut slot) = slot.try_lock() {
                slot.take();
            }
        }
        *lock(&self.tree) = Tree::new(0x1000);
        *guard(&self.base) = Arc::new(Tree::new(0x1000));
        self.shared.forget(&self.id);
    }

    pub(crate) fn check_alive(&self) -> Result<(), SandboxError> {
        match self.death.get() {
            None => Ok(()),
            Some(death) => Err(SandboxError::Died { sandbox: self.id.clone(), death: *death }),
        }
    }

    /// `work`, or the sandbox's death if that comes first; absent where everything was ended.
    pub(crate) async fn until_ended<F: Future>(
        &self,
        work: F,
    ) -> Result<Option<F::Output>, SandboxError> {
        let (mut closed, mut ends) = (self.closed.subscribe(), self.ends.subscribe());
        let closing = async move { drop(closed.wait_for(|closed| *closed).await) };
        tokio::select! {
            biased;
            () = closing => {
                self.check_alive()?;
                Err(SandboxError::Died { sandbox: self.id.clone(), death: Death::Closed })
            }
            _ = ends.changed() => Ok(None),
            output = work => Ok(Some(output)),
        }
    }

    /// Ends all instances: those that run a command, and the sessions that wait for one.
    async fn end_all(&self) -> Result<(), SandboxError> {
        self.check_alive()?;
        let ending = async {
            self.ends.send_modify(|number| *number += 1);
            // A session that nobody has opened yet is one of the origin of a fork.
            guard(&self.suspended).clear();
            let sessions = guard(&self.sessions).clone();
            for slot in sessions.iter().filter_map(Weak::upgrade) {
                slot.lock().await.take();
            }
            while self.usage.running.load(Ordering::Relaxed) > 0 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::time::timeout(ENDING, ending).await.map_err(|_| SandboxError::Backend {
            doing: format!("end all commands of sandbox {}", self.id),
            source: format!("some still ran after {} s", ENDING.as_secs()).into(),
        })
    }

    /// A place among the instances that run.
    pub(crate) async fn begin(&self, deadline: Instant) -> Result<Running<'_>, SandboxError> {
        self.check_alive()?;
        let permit = match self.permits.try_acquire() {
            Ok(permit) => permit,
            Err(_) => tokio::time::timeout_at(deadline.into(), self.permits.acquire())
                .await
                .ok()
                .and_then(Result::ok)
                .ok_or(SandboxError::UsedUp { what: "processes" })?,
        };
        self.usage.running.fetch_add(1, Ordering::Relaxed);
        Ok(Running { usage: &self.usage, _permit: permit })
    }

    /// The host's side of an instance of its own program.
    pub(crate) fn launch(
        &self,
        arguments: &[String],
        workdir: &str,
        extra: &std::collections::BTreeMap<String, String>,
        output: Arc<Output>,
        deadline: Instant,
    ) -> Launch {
        let mut environment = self.spec.env.clone();
        environment.extend(extra.iter().map(|(name, value)| (name.clone(), value.clone())));
        environment.insert("PWD".into(), workdir.to_owned());
        let name = std::iter::once(self.guest.name.clone());
        Launch {
            tree: Arc::clone(&self.tree),
            surroundings: Arc::clone(&self.surroundings),
            usage: Arc::clone(&self.usage),
            output,
            arguments: name.chain(arguments.iter().cloned()).collect(),
            environment: environment.into_iter().collect(),
            stdin: Vec::new(),
            deadline,
            memory_limit: self
                .spec
                .limits
                .memory_bytes
                .unwrap_or(self.shared.settings.memory_bytes),
            table_limit: self.shared.settings.table_elements,
            fuel: self.spec.limits.fuel,
        }
    }

    /// The folder that a command starts in.
    pub(crate) fn existing_workdir(&self, workdir: Option<&str>) -> Result<String, SandboxError> {
        let own = self.spec.workdir.as_deref().unwrap_or("/");
        let path = normalise(workdir.unwrap_or(own), own)?;
        let tree = lock(&self.tree);
        let folder = tree.find(ROOT, &path, true).map_err(|errno| path_error(&path, errno))?;
        tree.entries(folder).map_err(|errno| path_error(&path, errno))?;
        Ok(path)
    }

    pub(crate) fn register_session(&self, slot: Weak<Slot>) {
        let mut sessions = guard(&self.sessions);
        sessions.retain(|slot| slot.strong_count() > 0);
        sessions.push(slot);
    }

    pub(crate) fn take_suspended(&self) -> Option<SessionImage> {
        let mut suspended = guard(&self.suspended);
        if suspended.is_empty() { None } else { Some(suspended.remove(0)) }
    }

    /// Keeps what an end tells beyond itself: counts a kill, shows a trap on standard error.
    pub(crate) fn note(
        &self,
        end: ExecEnd,
        result: &wasmtime::Result<i32>,
        output: &Output,
    ) -> ExecEnd {
        match (end, result) {
            (ExecEnd::OutOfMemory, _) => {
                self.usage.out_of_memory_kills.fetch_add(1, Ordering::Relaxed);
            }
            (ExecEnd::Trapped, Err(error)) => {
                let trap = error.downcast_ref::<wasmtime::Trap>();
                let text = trap.map_or_else(|| message(error), ToString::to_string);
                output.push(Stream::Stderr, format!("{text}\n").as_bytes());
            }
            _ => {}
        }
        end
    }

    /// Runs `guest`, which need not be its own program, on its files.
    pub(crate) async fn exec_in(
        &self,
        guest: &Guest,
        request: &ExecRequest,
        sink: &mut dyn OutputSink,
    ) -> Result<ExecResult, SandboxError> {
        let started = Instant::now();
        let timeout = request.timeout.unwrap_or_else(|| self.spec.lifetimes.exec());
        let deadline = deadline(timeout);
        if request.user.is_some() {
            return Err(unsupported("run a command as another user"));
        }
        let _running = self.begin(deadline).await?;
        let workdir = self.existing_workdir(request.workdir.as_deref())?;
        let output = Arc::new(Output::new(request.output_limit_bytes));
        let mut launch =
            self.launch(&request.command, &workdir, &request.env, Arc::clone(&output), deadline);
        launch.arguments[0].clone_from(&guest.name);
        launch.stdin.clone_from(&request.stdin);
        let mut command = guest.program.command(launch)?;
        let ended = {
            let _ticking = self.ticking();
            let work = self.until_ended(command.run());
            drive(work, deadline, &output, &self.usage, sink).await
        };
        let refused = command.was_refused_memory();
        drop(command);
        let end = match ended {
            None => ExecEnd::TimedOut,
            Some(Err(death)) => return Err(death),
            Some(Ok(None)) => KILLED,
            Some(Ok(Some(result))) => match end_of(&result, refused) {
                Some(end) => self.note(end, &result, &output),
                None => return Err(host_error(result.expect_err("an exit code has an end"))),
            },
        };
        output.drain(sink);
        let (stdout, stderr) = output.take(0);
        Ok(ExecResult { end, stdout, stderr, wall: started.elapsed() })
    }

    fn path(&self, path: &str) -> Result<String, SandboxError> {
        self.check_alive()?;
        normalise(path, self.spec.workdir.as_deref().unwrap_or("/"))
    }

    fn write(&self, path: &str, bytes: &[u8], mode: u32) -> Result<(), Errno> {
        let now = self.surroundings.file_time();
        let (folder, name) = path.rsplit_once('/').unwrap_or(("/", path));
        let mut tree = lock(&self.tree);
        let folder = tree.make_folders(ROOT, folder, now)?;
        let file = match tree.find(folder, name, true) {
            Err(Errno::NotFound) => tree.make_file(folder, name, mode, now)?,
            found => found?,
        };
        if tree.entries(file).is_ok() {
            return Err(Errno::IsFolder);
        }
        tree.check_path_writable(folder, name)?;
        tree.set_len(file, 0, now)?;
        tree.set_mode(file, mode)?;
        let mut written = 0;
        while written < bytes.len() {
            written += tree.write_at(file, written as u64, &bytes[written..], now)?;
        }
        Ok(())
    }
}

/// Counts a command among those that run.
pub(crate) struct Running<'a> {
    usage: &'a Usage,
    _permit: SemaphorePermit<'a>,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.usage.running.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Drop for WasmSandbox {
    fn drop(&mut self) {
        self.0.end(Death::Closed);
    }
}

#[async_trait]
impl Sandbox for WasmSandbox {
    fn id(&self) -> &str {
        self.0.id()
    }

    fn spec(&self) -> &SandboxSpec {
        &self.0.spec
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { shell: self.0.guest.program.has_sessions(), ..capabilities() }
    }

    async fn exec_streaming(
        &self,
        request: &ExecRequest,
        sink: &mut dyn OutputSink,
    ) -> Result<ExecResult, SandboxError> {
        self.0.exec_in(&self.0.guest, request, sink).await
    }

    async fn spawn(&self, _: &ExecRequest) -> Result<Process, SandboxError> {
        Err(unsupported("start a process to talk to"))
    }

    async fn spawn_pty(&self, _: &ExecRequest, _: PtySize) -> Result<PtyProcess, SandboxError> {
        Err(unsupported("start a process on a terminal"))
    }

    async fn connect_within(&self, _: u16, _: Duration) -> Result<ByteStream, SandboxError> {
        Err(unsupported("connect to a sandbox"))
    }

    async fn open_shell(&self, options: &ShellOptions) -> Result<Box<dyn Shell>, SandboxError> {
        self.0.check_alive()?;
        if options.user.is_some() {
            return Err(unsupported("open a shell as another user"));
        }
        if !self.0.guest.program.has_sessions() {
            return Err(unsupported("open a shell in a guest without sessions"));
        }
        Ok(Box::new(Session::open(&self.0, options).await?))
    }

    async fn read_file(&self, path: &str, limit_bytes: u64) -> Result<Vec<u8>, SandboxError> {
        let path = self.0.path(path)?;
        let tree = lock(&self.0.tree);
        let refused = |errno| path_error(&path, errno);
        let file = tree.find(ROOT, &path, true).map_err(refused)?;
        let stat = tree.stat(file).map_err(refused)?;
        if stat.kind != FileKind::File {
            return Err(refused(Errno::IsFolder));
        }
        if stat.size > limit_bytes {
            return Err(SandboxError::TooLarge { path, limit_bytes });
        }
        let mut bytes = vec![0; stat.size as usize];
        tree.read_at(file, 0, &mut bytes).map_err(refused)?;
        Ok(bytes)
    }

    async fn write_file(&self, path: &str, bytes: &[u8], mode: u32) -> Result<(), SandboxError> {
        let path = self.0.path(path)?;
        self.0.write(&path, bytes, mode).map_err(|errno| path_error(&path, errno))
    }

    async fn list_files(&self, path: &str) -> Result<Vec<FileEntry>, SandboxError> {
        let path = self.0.path(path)?;
        let tree = lock(&self.0.tree);
        let refused = |errno| path_error(&path, errno);
        let folder = tree.find(ROOT, &path, true).map_err(refused)?;
        let entries = tree.entries(folder).map_err(refused)?.iter().map(|(name, node)| {
            let stat = tree.stat(*node).map_err(refused)?;
            let size_bytes = if stat.kind == FileKind::File { stat.size } else { 0 };
            Ok(FileEntry { name: name.clone(), kind: stat.kind, size_bytes })
        });
        entries.collect()
    }

    async fn upload_tar(&self, path: &str, archive: &Path) -> Result<(), SandboxError> {
        let path = self.0.path(path)?;
        let (archive, tree) = (archive.to_owned(), Arc::clone(&self.0.tree));
        let now = self.0.surroundings.file_time();
        blocking(move || {
            check_tar(&archive)?;
            tree_tar::unpack(&tree, &path, &archive, now)
        })
        .await
    }

    async fn download_tar(
        &self,
        path: &str,
        archive: &Path,
        limit_bytes: u64,
    ) -> Result<(), SandboxError> {
        let path = self.0.path(path)?;
        let archive = archive.to_owned();
        let tree = lock(&self.0.tree).clone();
        blocking(move || tree_tar::pack(&tree, &path, &archive, limit_bytes)).await
    }

    async fn end_all(&self) -> Result<(), SandboxError> {
        self.0.end_all().await
    }

    async fn changes(&self, limit: usize) -> Result<Changes, SandboxError> {
        self.0.check_alive()?;
        let (base, tree) = (guard(&self.0.base).clone(), lock(&self.0.tree).clone());
        let spec = self.0.spec.clone();
        blocking(move || {
            let (found, is_cut) = tree.changes(&base, limit, &|path| !is_apart(path, &spec));
            let changes = Changes::settle(found, &spec, limit);
            Ok(Changes { is_cut: is_cut || changes.is_cut, ..changes })
        })
        .await
    }

    async fn set_network(&self, network: &NetworkPolicy) -> Result<(), SandboxError> {
        self.0.check_alive()?;
        match *network == self.0.spec().network {
            true => Ok(()),
            false => Err(unsupported("change the network of a sandbox that runs")),
        }
    }

    async fn snapshot(&self) -> Result<Snapshot, SandboxError> {
        let frozen = self.0.freeze().await?;
        Ok(self.0.shared.keep(frozen))
    }

    async fn fork(&self) -> Result<Box<dyn Sandbox>, SandboxError> {
        let frozen = self.0.freeze().await?;
        Ok(Box::new(WasmSandbox(Inner::thaw(&self.0.shared, &frozen))))
    }

    async fn stats(&self) -> Result<SandboxStats, SandboxError> {
        self.0.check_alive()?;
        let usage = &self.0.usage;
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Ok(SandboxStats {
            cpu: Some(Duration::from_nanos(get(&usage.cpu_nanos))),
            memory_bytes: Some(get(&usage.memory_bytes)),
            peak_memory_bytes: Some(get(&usage.peak_memory_bytes)),
            pids: Some(get(&usage.running) as u32),
            disk_bytes: Some(lock(&self.0.tree).used()),
            out_of_memory_kills: Some(get(&usage.out_of_memory_kills)),
            free_disk_bytes: None,
            network: None,
        })
    }

    async fn check(&self) -> Result<(), SandboxError> {
        self.0.check_alive()
    }

    async fn close(&self) -> Result<(), SandboxError> {
        self.0.end(Death::Closed);
        Ok(())
    }
}

/// What the tree refused, as the seam tells it.
pub(crate) fn path_error(path: &str, errno: Errno) -> SandboxError {
    match errno {
        Errno::NotFound => SandboxError::NotFound { path: path.to_owned() },
        Errno::NoSpace => SandboxError::NoSpace { path: path.to_owned() },
        other => SandboxError::PathRefused { path: path.to_owned(), reason: other.to_string() },
    }
}

pub(crate) fn unsupported(what: &str) -> SandboxError {
    SandboxError::Unsupported { backend: NAME, what: what.to_owned() }
}

/// Runs what takes the processor or the disk where it holds up nobody.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, SandboxError> + Send + 'static,
) -> Result<T, SandboxError> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| {
        Err(SandboxError::Backend {
            doing: "wait for a blocking task".into(),
            source: Box::new(error),
        })
    })
}

fn guard<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
