//! What lies on the disk: one folder per sandbox, kept layers, and the records by which other
//! processes find and reap them.
//!
//! ```text
//!   spar-local-vFORMAT-UID/
//!     lock                      shared while something is made or removed, owned while layers are
//!                               counted and what no record names is removed
//!     sandboxes/ID/             record.json, upper/, scratch/, merged/ (empty but inside), disk/
//!     layers/ID/                a frozen upper layer, part by part: root/, usr/, opt/
//!     snapshots/ID.json
//! ```
//!
//! Versions of spar that write other records, or put things elsewhere, have a folder of their own and
//! never look into each other's. A record that cannot be read all the same is somebody's: what it
//! speaks of, and every layer that it may stand on, is left alone.

use std::collections::HashSet;
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};

use super::{BACKEND, cgroup, host_error, tree};
use crate::folder_lock;
use crate::owner::process_start;
use crate::{Owner, OwnerState, ReapReport, SandboxError, SandboxRecord, SandboxSpec, Snapshot};

/// Part of the folder's name. Raised with every change of [`Record`], or of what lies where.
const FORMAT: u32 = 2;

/// How long processes of a dead sandbox may take to go.
const PATIENCE: Duration = Duration::from_secs(5);

/// One sandbox, or one snapshot, as it is written down.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) id: String,
    pub(crate) owner: Owner,
    pub(crate) spec: SandboxSpec,
    /// Ids of the frozen layers below its own, topmost first.
    pub(crate) layers: Vec<String>,
    /// Its control groups.
    pub(crate) groups: Vec<PathBuf>,
    /// The process that ends all others when it ends, and when that was started.
    pub(crate) process: Option<(u32, u64)>,
    pub(crate) created: SystemTime,
    pub(crate) expires: SystemTime,
}

impl Record {
    pub(crate) fn new(spec: &SandboxSpec, layers: Vec<String>) -> Self {
        let created = SystemTime::now();
        Self {
            id: crate::nonce::nonce()[..16].to_owned(),
            owner: Owner::this_process().clone(),
            spec: spec.clone(),
            layers,
            groups: Vec::new(),
            process: None,
            created,
            expires: created + spec.lifetimes.time_to_live(),
        }
    }

    /// As callers know a snapshot.
    pub(crate) fn as_snapshot(&self) -> Snapshot {
        Snapshot { backend: BACKEND.to_owned(), id: self.id.clone(), spec: self.spec.clone() }
    }

    fn is_over(&self) -> bool {
        // Several machines may have the folder in common: one who cannot be seen may live.
        self.owner.state() == OwnerState::Dead || SystemTime::now() > self.expires
    }
}

/// A record as it was found.
#[derive(Debug)]
enum Found {
    Record(Box<Record>),
    /// It cannot be read. The layers that it names, if that much of it can be understood.
    Unread {
        reason: String,
        layers: Option<Vec<String>>,
    },
}

/// The part of a record that tells what must stay, whatever else is in it.
#[derive(Deserialize)]
struct Needs {
    layers: Vec<String>,
}

/// The layers that somebody needs.
enum Needed {
    These(HashSet<String>),
    /// Somebody's needs cannot be told.
    All,
}

impl Needed {
    fn has(&self, layer: &str) -> bool {
        match self {
            Self::These(layers) => layers.contains(layer),
            Self::All => true,
        }
    }
}

/// The folder of all local sandboxes of one user.
#[derive(Debug, Clone)]
pub(crate) struct Store {
    root: PathBuf,
}

impl Store {
    /// That below `folder`, made where it is absent.
    ///
    /// # Errors
    ///
    /// [`SandboxError::Unavailable`] if somebody else has put something in its place.
    pub(crate) fn open(folder: &Path) -> Result<Self, SandboxError> {
        let user = rustix::process::geteuid().as_raw();
        let root = folder.join(format!("spar-local-v{FORMAT}-{user}"));
        let unavailable = |reason: String| SandboxError::Unavailable {
            backend: BACKEND,
            reason,
            hint: format!("remove `{}`", root.display()),
        };
        match DirBuilder::new().mode(0o700).create(&root) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(host_error("make", &root)(error));
            }
            _ => {}
        }
        let meta = fs::symlink_metadata(&root).map_err(host_error("look at", &root))?;
        if !meta.is_dir() || meta.uid() != user || meta.mode() & 0o022 != 0 {
            return Err(unavailable(format!("`{}` belongs to somebody else", root.display())));
        }
        let text = root.to_string_lossy();
        if text.contains([':', ',', '\\']) {
            return Err(SandboxError::Unavailable {
                backend: BACKEND,
                reason: format!("overlay mounts cannot take the path `{text}`"),
                hint: "set TMPDIR to a folder without `:`, `,` and `\\` in its path".to_owned(),
            });
        }
        for name in ["sandboxes", "layers", "snapshots"] {
            let path = root.join(name);
            DirBuilder::new()
                .mode(0o700)
                .recursive(true)
                .create(&path)
                .map_err(host_error("make", &path))?;
        }
        Ok(Self { root })
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn sandbox(&self, id: &str) -> PathBuf {
        self.root.join("sandboxes").join(id)
    }

    pub(crate) fn layer(&self, id: &str) -> PathBuf {
        self.root.join("layers").join(id)
    }

    fn snapshot(&self, id: &str) -> PathBuf {
        self.root.join("snapshots").join(format!("{id}.json"))
    }

    pub(crate) fn write_sandbox(&self, record: &Record) -> Result<(), SandboxError> {
        write_json(&self.sandbox(&record.id).join("record.json"), record)
    }

    pub(crate) fn write_snapshot(&self, record: &Record) -> Result<(), SandboxError> {
        let _lock = self.share()?;
        write_json(&self.snapshot(&record.id), record)
    }

    pub(crate) fn read_snapshot(&self, snapshot: &Snapshot) -> Result<Record, SandboxError> {
        let is_id = snapshot.id.bytes().all(|byte| byte.is_ascii_hexdigit());
        let found = if is_id { find_record(&self.snapshot(&snapshot.id)) } else { None };
        let reason = match found {
            Some(Found::Record(record)) => return Ok(*record),
            Some(Found::Unread { reason, .. }) => format!("its record cannot be read: {reason}"),
            None => "there is no such snapshot".to_owned(),
        };
        Err(SandboxError::ImageMissing {
            image: snapshot.id.clone(),
            reason,
            hint: "take it anew: it was removed, or its owner ended".to_owned(),
        })
    }

    /// Removes a snapshot and its layers that nothing else needs.
    pub(crate) fn remove_snapshot(&self, snapshot: &Snapshot) -> Result<(), SandboxError> {
        let Ok(record) = self.read_snapshot(snapshot) else { return Ok(()) };
        let path = self.snapshot(&record.id);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(host_error("remove", &path)(error));
            }
            _ => {}
        }
        self.remove_unused_layers(&record.layers)
    }

    /// Removes what a sandbox whose processes are gone has left.
    pub(crate) fn remove_sandbox(&self, id: &str, layers: &[String]) -> Result<(), SandboxError> {
        let folder = self.sandbox(id);
        let lock = self.share()?;
        tree::remove_tree(&folder).map_err(host_error("remove", &folder))?;
        drop(lock);
        self.remove_unused_layers(layers)
    }

    fn remove_unused_layers(&self, layers: &[String]) -> Result<(), SandboxError> {
        if layers.is_empty() {
            return Ok(());
        }
        let _lock = self.own()?;
        let needed = self.needed();
        for id in layers.iter().filter(|id| !needed.has(id)) {
            let folder = self.layer(id);
            tree::remove_tree(&folder).map_err(host_error("remove", &folder))?;
        }
        Ok(())
    }

    /// The layers that sandboxes and snapshots stand on.
    fn needed(&self) -> Needed {
        let found = self.find("sandboxes").into_iter().chain(self.find("snapshots"));
        let layers = found.map(|(_, found)| match found {
            Found::Record(record) => Some(record.layers),
            Found::Unread { layers, .. } => layers,
        });
        let layers: Option<Vec<Vec<String>>> = layers.collect();
        layers.map_or(Needed::All, |all| Needed::These(all.into_iter().flatten().collect()))
    }

    /// Held by whoever makes something whose record is not written yet, or removes something whose
    /// record may be gone already. A process that ends gives it back.
    pub(crate) fn share(&self) -> Result<File, SandboxError> {
        folder_lock::share(&self.root).map_err(host_error("lock", &self.root))
    }

    /// While it is held nobody makes or removes anything.
    fn own(&self) -> Result<File, SandboxError> {
        folder_lock::own(&self.root).map_err(host_error("lock", &self.root))
    }

    /// All records of a kind with their places; a sandbox without one is still being made, or its
    /// maker ended.
    fn find(&self, kind: &str) -> Vec<(PathBuf, Found)> {
        let mut all = Vec::new();
        for entry in fs::read_dir(self.root.join(kind)).into_iter().flatten().flatten() {
            let path = entry.path();
            let is_part = path.extension().is_some_and(|extension| extension == "part");
            let file = if kind == "sandboxes" { path.join("record.json") } else { path.clone() };
            if let Some(found) = find_record(&file).filter(|_| !is_part) {
                all.push((path, found));
            }
        }
        all
    }

    /// As [`Store::find`], without those that cannot be read; `unread` is told about them.
    fn records(&self, kind: &str, unread: &mut Vec<String>) -> Vec<(PathBuf, Record)> {
        let mut records = Vec::new();
        for (path, found) in self.find(kind) {
            match found {
                Found::Record(record) => records.push((path, *record)),
                Found::Unread { reason, .. } => {
                    unread.push(format!("{}: its record cannot be read: {reason}", path.display()));
                }
            }
        }
        records
    }

    /// All sandboxes, oldest first.
    pub(crate) fn list(&self) -> Vec<SandboxRecord> {
        let mut list: Vec<SandboxRecord> = self
            .records("sandboxes", &mut Vec::new())
            .into_iter()
            .map(|(_, record)| SandboxRecord {
                id: record.id,
                backend: BACKEND.to_owned(),
                image: record.spec.image.to_string(),
                owner_state: record.owner.state(),
                owner: record.owner,
                created: record.created,
                expires: record.expires,
            })
            .collect();
        list.sort_by(|a, b| (a.created, &a.id).cmp(&(b.created, &b.id)));
        list
    }

    /// Removes what is over.
    pub(crate) fn reap(&self) -> Result<ReapReport, SandboxError> {
        let mut report = ReapReport::default();
        let mut unread = Vec::new();
        for (_, record) in self.records("sandboxes", &mut unread) {
            if !record.is_over() {
                report.kept += 1;
                continue;
            }
            // Its owner may have ended while they stood still.
            cgroup::thaw_groups(&record.groups);
            end_processes(&record);
            let removed = cgroup::remove_groups(&record.groups, PATIENCE)
                .map_err(|error| error.to_string())
                .and_then(|()| {
                    self.remove_sandbox(&record.id, &record.layers).map_err(|e| e.to_string())
                });
            note(&mut report, format!("sandbox {}", record.id), removed);
        }
        for (path, record) in self.records("snapshots", &mut unread) {
            if !record.is_over() {
                report.kept += 1;
                continue;
            }
            let removed =
                fs::remove_file(&path).map_err(|error| error.to_string()).and_then(|()| {
                    self.remove_unused_layers(&record.layers).map_err(|e| e.to_string())
                });
            note(&mut report, format!("snapshot {}", record.id), removed);
        }
        self.reap_unrecorded(&mut report)?;
        report.unread = unread;
        Ok(report)
    }

    /// What nothing speaks of: its makers ended before they wrote it down, or between removing the
    /// record and the rest. Whoever lives and is about to do either holds the lock.
    fn reap_unrecorded(&self, report: &mut ReapReport) -> Result<(), SandboxError> {
        let _lock = self.own()?;
        for entry in fs::read_dir(self.root.join("snapshots")).into_iter().flatten().flatten() {
            if entry.path().extension().is_some_and(|extension| extension == "part") {
                let removed = fs::remove_file(entry.path()).map_err(|error| error.to_string());
                note(report, format!("file {}", entry.file_name().display()), removed);
            }
        }
        let known: HashSet<PathBuf> =
            self.find("sandboxes").into_iter().map(|(path, _)| path).collect();
        let needed = self.needed();
        let is_wanted = |kind, path: &Path, name: &str| match kind {
            "sandboxes" => known.contains(path),
            _ => needed.has(name),
        };
        for (kind, named) in [("sandboxes", "folder"), ("layers", "layer")] {
            for entry in fs::read_dir(self.root.join(kind)).into_iter().flatten().flatten() {
                let name = entry.file_name().to_string_lossy().into_owned();
                if is_wanted(kind, &entry.path(), &name) {
                    continue;
                }
                let removed = tree::remove_tree(&entry.path()).map_err(|error| error.to_string());
                note(report, format!("{named} {name}"), removed);
            }
        }
        Ok(())
    }
}

fn note(report: &mut ReapReport, what: String, removed: Result<(), String>) {
    match removed {
        Ok(()) => report.removed.push(what),
        Err(error) => report.failed.push(format!("{what}: {error}")),
    }
}

/// Ends the process that all others of the sandbox end with, if it is still that process.
fn end_processes(record: &Record) {
    if record.owner.boot != Owner::this_process().boot
        || record.owner.namespace != Owner::this_process().namespace
    {
        return;
    }
    let Some((pid, started)) = record.process else { return };
    let Some(process) = Pid::from_raw(pid as i32) else { return };
    if process_start(pid) != Some(started) {
        return;
    }
    let _ = kill_process(process, Signal::KILL);
    let start = std::time::Instant::now();
    while process_start(pid) == Some(started) && start.elapsed() < PATIENCE {
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn write_json(path: &Path, value: &impl Serialize) -> Result<(), SandboxError> {
    let part = path.with_extension("part");
    let bytes = serde_json::to_vec(value).expect("records have only string keys");
    fs::write(&part, bytes)
        .and_then(|()| fs::rename(&part, path))
        .map_err(host_error("write", path))
}

/// The record in a file; absent only if there is no such file.
fn find_record(path: &Path) -> Option<Found> {
    let unread = |reason: String, layers| Some(Found::Unread { reason, layers });
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        // So it is while somebody removes the folder around it.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => return None,
        Err(error) => return unread(error.to_string(), None),
    };
    match serde_json::from_slice(&bytes) {
        Ok(record) => Some(Found::Record(Box::new(record))),
        Err(error) => {
            let needs = serde_json::from_slice(&bytes);
            unread(error.to_string(), needs.ok().map(|needs: Needs| needs.layers))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Image;

    #[test]
    fn only_what_dead_owners_left_is_reaped_and_shared_layers_stay() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path()).unwrap();
        let spec = SandboxSpec::new(Image::Default);
        let shared = "aa".to_owned();
        let lone = "bb".to_owned();
        for id in [&shared, &lone] {
            fs::create_dir(store.layer(id)).unwrap();
        }
        let live = Record::new(&spec, vec![shared.clone()]);
        let mut dead = Record::new(&spec, vec![shared.clone(), lone.clone()]);
        (dead.owner.run, dead.owner.pid) = ("another".to_owned(), u32::MAX);
        let mut expired = Record::new(&spec, Vec::new());
        expired.expires = expired.created - Duration::from_secs(1);
        for record in [&live, &dead, &expired] {
            fs::create_dir(store.sandbox(&record.id)).unwrap();
            store.write_sandbox(record).unwrap();
        }
        assert_eq!(store.list().len(), 3);
        let report = store.reap().unwrap();
        assert_eq!((report.removed.len(), report.kept), (2, 1), "{report:?}");
        assert!(report.failed.is_empty());
        assert!(store.sandbox(&live.id).exists() && store.layer(&shared).exists());
        assert!(!store.sandbox(&dead.id).exists() && !store.layer(&lone).exists());
    }

    #[test]
    fn what_another_version_wrote_is_left_alone_with_every_layer_it_stands_on() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path()).unwrap();
        let make = |id: &str, record: &str| {
            fs::create_dir(store.sandbox(id)).unwrap();
            fs::write(store.sandbox(id).join("record.json"), record).unwrap();
        };
        // Two that name their layers, one of them long over by its own words, and a snapshot.
        make("a1", r#"{"layers": ["aa"], "pace": 7}"#);
        make("a2", r#"{"layers": [], "owner": 3, "expires": 0}"#);
        fs::write(store.snapshot("a3"), r#"{"layers": ["bb"]}"#).unwrap();
        // One whose maker ended before it wrote anything.
        fs::create_dir(store.sandbox("a4")).unwrap();
        for id in ["aa", "bb", "cc"] {
            fs::create_dir(store.layer(id)).unwrap();
        }
        let report = store.reap().unwrap();
        assert_eq!(report.removed, ["folder a4", "layer cc"], "{report:?}");
        assert_eq!(report.unread.len(), 3, "{report:?}");
        assert!(report.unread[0].contains("cannot be read"), "{report:?}");
        for place in [store.sandbox("a1"), store.sandbox("a2"), store.snapshot("a3")] {
            assert!(place.exists(), "{place:?}");
        }
        // One that says nothing at all: nobody knows what it stands on.
        make("a5", "");
        fs::create_dir(store.layer("cc")).unwrap();
        store.remove_unused_layers(&["cc".to_owned()]).unwrap();
        let report = store.reap().unwrap();
        assert_eq!((report.removed.len(), report.unread.len()), (0, 4), "{report:?}");
        assert!(["aa", "bb", "cc"].iter().all(|id| store.layer(id).exists()));
        let snapshot = Snapshot {
            backend: BACKEND.to_owned(),
            id: "a3".to_owned(),
            spec: SandboxSpec::new(Image::Default),
        };
        let error = store.read_snapshot(&snapshot).unwrap_err();
        assert!(error.to_string().contains("cannot be read"), "{error}");
    }

    #[test]
    fn an_owner_who_cannot_be_seen_keeps_what_is_its_until_its_time_is_over() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path()).unwrap();
        let spec = SandboxSpec::new(Image::Default);
        let mut elsewhere = Record::new(&spec, Vec::new());
        elsewhere.owner.boot = "of another machine".to_owned();
        elsewhere.owner.machine = "another".to_owned();
        let mut hidden = Record::new(&spec, Vec::new());
        hidden.owner.namespace = "another".to_owned();
        let mut late = elsewhere.clone();
        late.id = "1a7e".to_owned();
        late.expires = late.created - Duration::from_secs(1);
        for record in [&elsewhere, &hidden, &late] {
            fs::create_dir(store.sandbox(&record.id)).unwrap();
            store.write_sandbox(record).unwrap();
        }
        let report = store.reap().unwrap();
        assert_eq!(report.removed, ["sandbox 1a7e"], "{report:?}");
        assert_eq!(report.kept, 2);
    }

    #[test]
    fn versions_that_write_other_records_do_not_look_into_each_others_folders() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path()).unwrap();
        let name = store.root().file_name().unwrap().to_string_lossy().into_owned();
        assert!(name.starts_with(&format!("spar-local-v{FORMAT}-")), "{name}");
        // That of versions before folders had one.
        let user = rustix::process::geteuid().as_raw();
        let earlier = folder.path().join(format!("spar-local-{user}/sandboxes/0123"));
        fs::create_dir_all(&earlier).unwrap();
        assert_eq!(store.reap().unwrap(), ReapReport::default());
        assert!(earlier.exists());
    }

    #[test]
    fn a_folder_of_somebody_else_is_not_used() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path()).unwrap();
        fs::set_permissions(store.root(), fs::Permissions::from_mode(0o777)).unwrap();
        let error = Store::open(folder.path()).unwrap_err();
        assert!(matches!(error, SandboxError::Unavailable { .. }), "{error}");
    }
}
