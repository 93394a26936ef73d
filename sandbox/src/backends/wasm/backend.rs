//! The backend: finds guests, makes sandboxes, keeps snapshots.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;

use super::engine::{EngineKind, Runtime, Ticker};
use super::opaque::Load;
use super::precompiled::Cache;
use super::run::message;
use super::sandbox::{Frozen, Guest, Inner, WasmSandbox, blocking, path_error, unsupported};
use super::settings::{Allocation, WasmSettings};
use super::surroundings::Surroundings;
use super::tree::{ROOT, Tree};
use super::{NAME, capabilities, tree_tar};
use crate::set_up::set_up;
use crate::{
    Capabilities, CapabilitySet, Death, Image, Limits, NetworkPolicy, Owner, ReapReport, Sandbox,
    SandboxBackend, SandboxError, SandboxRecord, SandboxSpec, Snapshot, Stream,
};

/// The guests that ship.
const GUESTS: [&str; 3] = ["python", "javascript", "shell"];
/// The one that runs set-up commands, and the default image.
const SHELL: &str = "shell";

/// Makes sandboxes out of WebAssembly guests.
///
/// Clones share engines, compiled guests and snapshots.
#[derive(Clone)]
pub struct WasmBackend(Arc<Shared>);

/// What all sandboxes of a backend share.
pub(crate) struct Shared {
    pub(crate) settings: WasmSettings,
    pub(crate) ticker: Ticker,
    cache: Cache,
    runtimes: Mutex<HashMap<EngineKind, Arc<dyn Load>>>,
    /// Hashes of guest files that did not change since they were read.
    hashes: Mutex<HashMap<PathBuf, (SystemTime, u64, blake3::Hash)>>,
    sandboxes: Mutex<HashMap<String, Weak<Inner>>>,
    snapshots: Mutex<HashMap<String, Arc<Frozen>>>,
}

impl WasmBackend {
    /// A backend; nothing is compiled or reserved yet.
    ///
    /// # Errors
    ///
    /// [`SandboxError::Unavailable`] and [`SandboxError::Host`] if the cache folder cannot be used.
    pub fn new(settings: WasmSettings) -> Result<Self, SandboxError> {
        let cache = Cache::open(&settings.cache)?;
        let ticker = Ticker::start().map_err(|error| SandboxError::Unavailable {
            backend: NAME,
            reason: format!("no thread can be started: {error}"),
            hint: "raise the limit on processes (ulimit -u)".into(),
        })?;
        Ok(Self(Arc::new(Shared {
            settings,
            ticker,
            cache,
            runtimes: Mutex::default(),
            hashes: Mutex::default(),
            sandboxes: Mutex::default(),
            snapshots: Mutex::default(),
        })))
    }

    async fn guest(&self, image: &Image, kind: EngineKind) -> Result<Guest, SandboxError> {
        let (name, path) = self.0.locate(image)?;
        let missing = |reason: String| missing(image, &path, reason);
        let metadata = fs::metadata(&path).map_err(|error| missing(error.to_string()))?;
        let modified = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
        let known = lock(&self.0.hashes).get(&path).copied();
        if let Some((at, len, hash)) = known
            && (at, len) == (modified, metadata.len())
            && let Some(runtime) = lock(&self.0.runtimes).get(&kind)
            && let Some(program) = runtime.loaded(&hash)
        {
            return Ok(Guest { program, name });
        }
        let (shared, image, len) = (Arc::clone(&self.0), image.clone(), metadata.len());
        blocking(move || {
            let wasm =
                fs::read(&path).map_err(|error| self::missing(&image, &path, error.to_string()))?;
            let hash = blake3::hash(&wasm);
            let runtime = shared.runtime(kind)?;
            let program = runtime.load(&shared.cache, hash, &wasm).map_err(|error| {
                SandboxError::ImageBuild { image: image.to_string(), reason: message(&error) }
            })?;
            lock(&shared.hashes).insert(path, (modified, len, hash));
            Ok(Guest { program, name })
        })
        .await
    }

    async fn set_up(&self, inner: &Arc<Inner>, kind: EngineKind) -> Result<(), SandboxError> {
        let shell = &self.guest(&Image::Reference(SHELL.into()), kind).await?;
        set_up(inner.spec(), |request| async move {
            inner.exec_in(shell, &request, &mut |_: Stream, _: &[u8]| {}).await
        })
        .await
    }
}

impl Shared {
    /// An engine of this kind, made when it is first needed.
    fn runtime(&self, kind: EngineKind) -> Result<Arc<dyn Load>, SandboxError> {
        let mut runtimes = lock(&self.runtimes);
        if let Some(runtime) = runtimes.get(&kind) {
            return Ok(Arc::clone(runtime));
        }
        let runtime = Runtime::new(&self.settings, kind).map_err(|error| {
            let pooled = matches!(self.settings.allocation, Allocation::Pooled { .. });
            SandboxError::Unavailable {
                backend: NAME,
                reason: message(&error),
                hint: if pooled {
                    "set `allocation` to `on_demand`, or raise the limit on address space (ulimit -v)"
                } else {
                    "wasmtime does not work on this machine: use another backend"
                }
                .into(),
            }
        })?;
        self.ticker.add(&runtime.engine);
        let runtime: Arc<dyn Load> = Arc::new(runtime);
        runtimes.insert(kind, Arc::clone(&runtime));
        Ok(runtime)
    }

    /// Name and file of an image.
    fn locate(&self, image: &Image) -> Result<(String, PathBuf), SandboxError> {
        let name = match image {
            Image::Default => SHELL,
            Image::Reference(name) => name.as_str(),
            Image::RootTar(_) => return Err(unsupported("unpack a root file system")),
            Image::Build { .. } => return Err(unsupported("build an image from a Dockerfile")),
        };
        if GUESTS.contains(&name) {
            return Ok((name.to_owned(), self.settings.guests.join(format!("{name}.wasm"))));
        }
        let path = Path::new(name);
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("wasm" | "wat") => {
                let stem = path.file_stem().unwrap_or_default();
                Ok((stem.to_string_lossy().into_owned(), path.to_owned()))
            }
            _ => Err(SandboxError::ImageMissing {
                image: name.to_owned(),
                reason: "there is no guest of that name".into(),
                hint: format!("use one of {}, or the path of a .wasm file", GUESTS.join(", ")),
            }),
        }
    }

    pub(crate) fn register(&self, inner: &Arc<Inner>) {
        lock(&self.sandboxes).insert(inner.id().to_owned(), Arc::downgrade(inner));
    }

    pub(crate) fn forget(&self, id: &str) {
        lock(&self.sandboxes).remove(id);
    }

    fn living(&self) -> Vec<Arc<Inner>> {
        lock(&self.sandboxes).values().filter_map(Weak::upgrade).collect()
    }

    /// Keeps a state until [`SandboxBackend::remove_snapshot`] or the end of the process.
    pub(crate) fn keep(&self, frozen: Frozen) -> Snapshot {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let id = format!("wasm-snapshot-{}-{number}", Owner::this_process().run);
        let spec = frozen.spec.clone();
        lock(&self.snapshots).insert(id.clone(), Arc::new(frozen));
        Snapshot { backend: NAME.into(), id, spec }
    }
}

/// Refuses what this backend cannot do.
fn check(spec: &SandboxSpec) -> Result<(), SandboxError> {
    spec.validate()?;
    if spec.network != NetworkPolicy::None {
        return Err(unsupported("reach a network"));
    }
    if spec.user.is_some() {
        return Err(unsupported("run as another user"));
    }
    if spec.capabilities != CapabilitySet::None {
        return Err(unsupported("give capabilities"));
    }
    if spec.limits.shm_bytes.is_some() {
        return Err(unsupported("limit shared memory, of which there is none"));
    }
    if spec.limits.open_files.is_some() {
        return Err(unsupported("limit open files"));
    }
    // One core is what a command has anyway.
    if spec.limits.cpus.is_some_and(|_| spec.limits.cpus != Limits::default().cpus) {
        return Err(unsupported("limit the cpus"));
    }
    if spec.mounts.iter().any(|mount| !mount.read_only) {
        return Err(unsupported("mount a folder of the host to be written"));
    }
    Ok(())
}

fn kind_of(spec: &SandboxSpec) -> EngineKind {
    EngineKind { fuel: spec.limits.fuel.is_some(), deterministic: spec.determinism.is_some() }
}

/// The files of the image, and those that a sandbox starts with.
fn first_trees(
    spec: &SandboxSpec,
    settings: &WasmSettings,
    now: u64,
) -> Result<(Arc<Tree>, Arc<Tree>), SandboxError> {
    let limit = spec.limits.disk_bytes.unwrap_or(settings.disk_bytes);
    let mut tree = Tree::new(settings.disk_bytes.max(limit));
    for mount in &spec.mounts {
        tree_tar::import(&mut tree, &mount.host, &mount.guest, now)?;
    }
    let base = Arc::new(tree.clone());
    if let Some(workdir) = &spec.workdir {
        tree.make_folders(ROOT, workdir, now).map_err(|errno| path_error(workdir, errno))?;
    }
    tree.limit_growth(limit);
    for mount in &spec.mounts {
        tree.protect(&mount.guest).map_err(|errno| path_error(&mount.guest, errno))?;
    }
    if spec.read_only_root {
        tree.make_read_only();
    }
    Ok((base, Arc::new(tree)))
}

fn missing(image: &Image, path: &Path, reason: String) -> SandboxError {
    let is_ours = match image {
        Image::Default => true,
        Image::Reference(name) => GUESTS.contains(&name.as_str()),
        Image::RootTar(_) | Image::Build { .. } => false,
    };
    SandboxError::ImageMissing {
        image: image.to_string(),
        reason: format!("{}: {reason}", path.display()),
        hint: if is_ours {
            "scripts/build_guests.sh builds it".into()
        } else {
            format!("use one of {}, or the path of a .wasm file", GUESTS.join(", "))
        },
    }
}

#[async_trait]
impl SandboxBackend for WasmBackend {
    fn name(&self) -> &'static str {
        NAME
    }

    fn capabilities(&self) -> Capabilities {
        capabilities()
    }

    async fn probe(&self) -> Result<String, SandboxError> {
        let shared = Arc::clone(&self.0);
        let kind = EngineKind { fuel: false, deterministic: false };
        blocking(move || shared.runtime(kind).map(drop)).await?;
        let built = GUESTS
            .iter()
            .filter(|name| self.0.settings.guests.join(format!("{name}.wasm")).is_file());
        let built: Vec<&str> = built.copied().collect();
        if built.is_empty() {
            return Err(SandboxError::Unavailable {
                backend: NAME,
                reason: format!("no guest lies in {}", self.0.settings.guests.display()),
                hint: "scripts/build_guests.sh builds them".into(),
            });
        }
        let allocation = match self.0.settings.allocation {
            Allocation::Pooled { instances } => format!("{instances} pooled instances"),
            Allocation::OnDemand => "instances on demand".to_owned(),
        };
        Ok(format!("wasmtime 48, {allocation}, guests: {}", built.join(", ")))
    }

    async fn prepare(&self, spec: &SandboxSpec) -> Result<(), SandboxError> {
        check(spec)?;
        self.guest(&spec.image, kind_of(spec)).await?;
        if !spec.setup.is_empty() {
            self.guest(&Image::Reference(SHELL.into()), kind_of(spec)).await?;
        }
        Ok(())
    }

    async fn create(&self, spec: &SandboxSpec) -> Result<Box<dyn Sandbox>, SandboxError> {
        check(spec)?;
        let kind = kind_of(spec);
        let guest = self.guest(&spec.image, kind).await?;
        let surroundings = Surroundings::new(spec.determinism.as_ref());
        let now = surroundings.file_time();
        let (base, tree) = if spec.mounts.is_empty() {
            first_trees(spec, &self.0.settings, now)?
        } else {
            let (spec, shared) = (spec.clone(), Arc::clone(&self.0));
            let seconds = spec.lifetimes.create_secs;
            let reading = blocking(move || first_trees(&spec, &shared.settings, now));
            tokio::time::timeout(Duration::from_secs(seconds), reading)
                .await
                .map_err(|_| SandboxError::CreateTimedOut { seconds })??
        };
        let (spec, sessions) = (spec.clone(), Vec::new());
        let frozen = Frozen { spec, guest, base, tree, surroundings, sessions };
        let sandbox = WasmSandbox(Inner::thaw(&self.0, &frozen));
        if !frozen.spec.setup.is_empty() {
            self.set_up(&sandbox.0, kind).await?;
        }
        Ok(Box::new(sandbox))
    }

    async fn restore(&self, snapshot: &Snapshot) -> Result<Box<dyn Sandbox>, SandboxError> {
        let frozen = lock(&self.0.snapshots).get(&snapshot.id).cloned();
        let frozen = frozen.filter(|_| snapshot.backend == NAME);
        let frozen = frozen.ok_or_else(|| SandboxError::ImageMissing {
            image: snapshot.id.clone(),
            reason: "the snapshot is gone: it lived in the memory of the process that took it"
                .into(),
            hint: "take it anew".into(),
        })?;
        Ok(Box::new(WasmSandbox(Inner::thaw(&self.0, &frozen))))
    }

    async fn remove_snapshot(&self, snapshot: &Snapshot) -> Result<(), SandboxError> {
        lock(&self.0.snapshots).remove(&snapshot.id);
        Ok(())
    }

    async fn list(&self) -> Result<Vec<SandboxRecord>, SandboxError> {
        let mut records: Vec<_> = self.0.living().iter().map(|inner| inner.record()).collect();
        records.sort_by(|one, other| one.id.cmp(&other.id));
        Ok(records)
    }

    async fn reap(&self) -> Result<ReapReport, SandboxError> {
        let mut report = ReapReport::default();
        for inner in self.0.living() {
            if inner.is_expired() {
                inner.end(Death::Expired);
                report.removed.push(format!("sandbox {}", inner.id()));
            } else {
                report.kept += 1;
            }
        }
        let cache = self.0.cache.clone();
        let folder = self.0.settings.cache.clone();
        blocking(move || {
            cache.reap(&mut report).map(|()| report).map_err(|source| SandboxError::Host {
                doing: "look through",
                path: folder,
                source,
            })
        })
        .await
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
