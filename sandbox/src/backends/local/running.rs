//! A running sandbox without its interface: processes, mounts, groups and folders.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File, Permissions};
use std::io;
use std::net::TcpListener;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use rustix::fs::{fstatvfs, statfs};
use tokio::runtime::Handle;

use super::cgroup::{Groups, Hierarchy, remove_groups, thaw_groups};
use super::changes::Part;
use super::files::{FileOwner, RootFiles};
use super::image::{self, Base};
use super::init::{Init, Payload};
use super::store::{Record, Store};
use super::users::User;
use super::{backend_error, host_error, seccomp, tree};
use crate::allow_list::{self, Proxy, Server};
use crate::changes::is_apart;
use crate::owner::process_start;
use crate::{
    Changes, Death, ExecRequest, NetworkPolicy, PtySize, SandboxError, SandboxSpec, SandboxStats,
};

/// Layers that a chain of forks may have: all their names have to fit into one page.
const MAX_LAYERS: usize = 100;

/// How long the kernel may take to let a control group go.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long the processes of a sandbox may take to stand still.
const FREEZING: Duration = Duration::from_secs(10);

/// Times that a sandbox without a control group is copied anew because something ran meanwhile.
const STOP_TRIES: usize = 5;

/// File systems that an overlay cannot write to: overlays, and those of other machines.
const NOT_WRITABLE_BELOW: [i64; 3] = [0x794c_7630, 0x6969, 0x6573_5546];

/// Largest file read for looking up users.
const MAX_USERS_BYTES: u64 = 1 << 20;

const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Resources that `setrlimit` knows by number.
const LIMIT_DATA: u64 = 2;
const LIMIT_CORE: u64 = 4;
const LIMIT_PROCESSES: u64 = 6;
const LIMIT_FILES: u64 = 7;

/// Bytes of `/dev/shm` where nothing is asked for.
const SHM_BYTES: u64 = 64 << 20;

/// A running sandbox.
#[derive(Debug)]
pub(crate) struct RunningSandbox {
    pub(crate) record: Record,
    pub(crate) init: Init,
    pub(crate) files: RootFiles,
    pub(crate) groups: Groups,
    /// Held for reading while something begins to write, for writing while a state is kept.
    pub(crate) gate: tokio::sync::RwLock<()>,
    pub(super) store: Store,
    base: Base,
    parts: Vec<String>,
    user: User,
    /// What it reaches now.
    reach: Mutex<Reach>,
    /// Held by whoever changes that.
    pub(super) changing_network: tokio::sync::Mutex<()>,
    closed: Mutex<bool>,
    /// Whether nothing is left of it; held by whoever removes it.
    removed: Mutex<bool>,
    /// Held while its layer is copied.
    copying: Mutex<()>,
}

/// What a sandbox reaches.
#[derive(Debug)]
struct Reach {
    network: NetworkPolicy,
    /// The way out of a network of a few hosts.
    server: Option<Server>,
}

impl RunningSandbox {
    /// Starts one whose own layer lies on top of `layers` and the image.
    pub(crate) fn make(
        store: &Store,
        cache: &Path,
        spec: &SandboxSpec,
        layers: Vec<String>,
    ) -> Result<Self, SandboxError> {
        if layers.len() > MAX_LAYERS {
            return Err(SandboxError::Saturated {
                reason: format!("it is the end of a chain of more than {MAX_LAYERS} forks"),
            });
        }
        let base = image::base(&spec.image, cache)?;
        let mut record = Record::new(spec, layers);
        let groups = Groups::plan(Hierarchy::this_process(), &record.id);
        record.groups = groups.folders();
        let parts: Vec<String> = base.overlays.iter().map(|(target, _)| part(target)).collect();
        let mut remains = Remains { store, record: &record, is_wanted: false };
        let making = store.share()?;
        make_folders(store, &record, &parts)?;
        // Whoever finds the folder finds the groups, too, from before there are any.
        store.write_sandbox(&record)?;
        drop(making);
        groups.make(&spec.limits).map_err(backend_error("make control groups"))?;
        let payload = describe(store, &record, &base)?;
        let mut process = None;
        let init = Init::start(payload, &groups, |pid| {
            process = process_start(pid).map(|started| (pid, started));
            let record = Record { process, ..record.clone() };
            store.write_sandbox(&record).map_err(io::Error::other)
        })
        .map_err(backend_error("start the sandbox"))?;
        let root = init.root.try_clone().map_err(backend_error("start the sandbox"))?;
        remains.is_wanted = true;
        drop(remains);
        record.process = process;
        let mut sandbox = Self {
            files: RootFiles::new(root),
            user: User {
                uid: 0,
                gid: 0,
                groups: Vec::new(),
                name: "root".to_owned(),
                home: "/root".to_owned(),
            },
            gate: tokio::sync::RwLock::new(()),
            reach: Mutex::new(Reach { network: record.spec.network.clone(), server: None }),
            changing_network: tokio::sync::Mutex::default(),
            closed: Mutex::new(false),
            removed: Mutex::new(false),
            copying: Mutex::new(()),
            store: store.clone(),
            base,
            record,
            groups,
            parts,
            init,
        };
        if let Err(error) = sandbox.furnish() {
            let _ = sandbox.close();
            return Err(error);
        }
        Ok(sandbox)
    }

    /// What can only be done when the root is there.
    fn furnish(&mut self) -> Result<(), SandboxError> {
        let spec = self.record.spec.clone();
        if matches!(spec.network, NetworkPolicy::Allow { .. }) {
            let listener = self.init.listener.take();
            let failed = backend_error("start the proxy of the sandbox");
            let listener = listener.ok_or_else(|| failed(io::ErrorKind::NotConnected.into()))?;
            self.reach_list(&spec.network, listener.into())?;
        }
        if let Some(name) = &spec.user {
            self.user = self.find_user(name)?;
        }
        if let Some(workdir) = &spec.workdir
            && self.files.open(workdir, rustix::fs::OFlags::PATH).is_err()
        {
            if spec.read_only_root {
                return Err(SandboxError::InvalidSpec {
                    problems: vec![format!("the working directory `{workdir}` is not there")],
                });
            }
            self.files.make_folders(workdir, self.file_owner())?;
        }
        if spec.network == NetworkPolicy::Bridge && !spec.read_only_root {
            let servers = fs::read("/etc/resolv.conf").unwrap_or_default();
            self.files.write("/etc/resolv.conf", &servers, 0o644, None)?;
        }
        Ok(())
    }

    fn reach(&self) -> MutexGuard<'_, Reach> {
        self.reach.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The network that it has now.
    pub(crate) fn network(&self) -> NetworkPolicy {
        self.reach().network.clone()
    }

    /// Ends all connections to what is outside, and has it reach nothing from now on. May block. Whether all have ended.
    pub(crate) fn reach_nothing(&self) -> bool {
        let server = {
            let mut reach = self.reach();
            reach.network = NetworkPolicy::None;
            reach.server.take()
        };
        server.is_none_or(|server| server.end())
    }

    /// Has it reach the hosts of a list, where it reaches nothing so far: through a proxy behind `listener`, which
    /// listens inside.
    pub(crate) fn reach_list(
        &self,
        network: &NetworkPolicy,
        listener: TcpListener,
    ) -> Result<(), SandboxError> {
        let NetworkPolicy::Allow { hosts, max_bytes } = network else { return Ok(()) };
        let served = &self.record.spec.served;
        let proxy = Proxy::new(&self.record.id, hosts, *max_bytes).with_served(served);
        let server = Server::start(proxy, listener, &Handle::current());
        let server = server.map_err(backend_error("start the proxy of the sandbox"))?;
        *self.reach() = Reach { network: network.clone(), server: Some(server) };
        Ok(())
    }

    pub(crate) fn workdir(&self) -> &str {
        self.record.spec.workdir.as_deref().unwrap_or("/")
    }

    /// Who new files belong to.
    pub(crate) fn file_owner(&self) -> FileOwner {
        rustix::process::geteuid().is_root().then_some((self.user.uid, self.user.gid))
    }

    fn find_user(&self, text: &str) -> Result<User, SandboxError> {
        let read = |path| {
            let bytes = self.files.read(path, MAX_USERS_BYTES).unwrap_or_default();
            String::from_utf8_lossy(&bytes).into_owned()
        };
        let user = User::find(text, &read("/etc/passwd"), &read("/etc/group"))?;
        if (user.uid, user.gid) != (0, 0) && !rustix::process::geteuid().is_root() {
            return Err(SandboxError::Unsupported {
                backend: super::BACKEND,
                what: format!("run as the user `{text}` without being root"),
            });
        }
        Ok(user)
    }

    /// An exec as the first process is told it, on a terminal of a size or with streams of its own. `id` is
    /// that of the exec, or of the one it joins.
    pub(crate) fn describe_exec(
        &self,
        id: u64,
        request: &ExecRequest,
        terminal: Option<PtySize>,
    ) -> Result<Payload, SandboxError> {
        let spec = &self.record.spec;
        let found;
        let user = match &request.user {
            Some(name) => {
                found = self.find_user(name)?;
                &found
            }
            None => &self.user,
        };
        let mut env = std::collections::BTreeMap::from([
            ("PATH".to_owned(), PATH.to_owned()),
            ("HOME".to_owned(), user.home.clone()),
        ]);
        if let NetworkPolicy::Allow { hosts, .. } = &self.reach().network {
            env.extend(allow_list::variables(hosts));
        }
        env.extend(spec.env.clone());
        env.extend(request.env.clone());
        let mut limits = vec![(LIMIT_CORE, 0)];
        let groups = Hierarchy::this_process();
        if let (Some(bytes), false) = (spec.limits.memory_bytes, groups.has("memory")) {
            limits.push((LIMIT_DATA, bytes));
        }
        if let (Some(pids), false) = (spec.limits.pids, groups.has("pids")) {
            // The two processes of the sandbox and the supervisors count, too.
            limits.push((LIMIT_PROCESSES, u64::from(pids) + 3));
        }
        if let Some(files) = spec.limits.open_files {
            limits.push((LIMIT_FILES, files));
        }
        let workdir = match &request.workdir {
            Some(path) => crate::archive::normalise(path, self.workdir())?,
            None => self.workdir().to_owned(),
        };
        let size = terminal.unwrap_or_default();
        let mut payload = Payload::default();
        payload
            .number(id)
            .number(u64::from(terminal.is_some()))
            .number(u64::from(size.rows))
            .number(u64::from(size.columns))
            .list(&request.command, |payload, argument| {
                payload.bytes(argument.as_bytes());
            })
            .list(&env, |payload, (name, value)| {
                payload.bytes(format!("{name}={value}").as_bytes());
            })
            .bytes(workdir.as_bytes())
            .number(u64::from(user.uid))
            .number(u64::from(user.gid))
            .list(&user.groups, |payload, group| {
                payload.number(u64::from(*group));
            })
            .list(limits, |payload, (resource, value)| {
                payload.number(resource).number(value);
            })
            .number(if user.uid == 0 { spec.capabilities.mask() } else { 0 })
            .number(spec.capabilities.mask());
        Ok(payload)
    }

    /// What it died of.
    pub(crate) fn died(&self) -> SandboxError {
        let death = if *self.closed.lock().expect("nobody panics while holding it") {
            Death::Closed
        } else if SystemTime::now() > self.record.expires {
            Death::Expired
        } else if self.groups.out_of_memory_kills().is_some_and(|kills| kills > 0) {
            match self.groups.met_memory_limit() {
                Some(false) => Death::HostOutOfMemory,
                _ => Death::OutOfMemory,
            }
        } else {
            Death::Killed
        };
        SandboxError::Died { sandbox: self.record.id.clone(), death }
    }

    /// Whether something may still be started in it.
    pub(crate) fn check_alive(&self) -> Result<(), SandboxError> {
        let is_closed = *self.closed.lock().expect("nobody panics while holding it");
        if is_closed || SystemTime::now() > self.record.expires || self.init.is_gone() {
            return Err(self.died());
        }
        Ok(())
    }

    /// Ends everything that runs in it. Nobody may start anything meanwhile.
    pub(crate) fn end_all(&self) -> Result<(), SandboxError> {
        self.check_alive()?;
        self.init.end_others().map_err(|error| {
            if self.init.is_gone() {
                self.died()
            } else {
                backend_error("end all processes of the sandbox")(error)
            }
        })
    }

    /// Copies its own layer into a new snapshot. Nobody may start anything meanwhile.
    pub(crate) fn keep(&self) -> Result<Record, SandboxError> {
        self.check_alive()?;
        let layer = crate::nonce::nonce()[..16].to_owned();
        let mut layers = vec![layer.clone()];
        layers.extend(self.record.layers.iter().cloned());
        let spec = SandboxSpec { network: self.network(), ..self.record.spec.clone() };
        let record = Record::new(&spec, layers);
        // Written first, so that the layer is known to be needed.
        self.store.write_snapshot(&record)?;
        let copied = self.copy_still(&self.store.layer(&layer));
        let copied = copied.map_err(backend_error("copy the files of the sandbox"));
        // One that was closed meanwhile went on while it was copied.
        if let Err(error) = copied.and_then(|()| self.check_alive()) {
            let _ = self.store.remove_snapshot(&record.as_snapshot());
            return Err(self.check_alive().err().unwrap_or(error));
        }
        Ok(record)
    }

    /// Copies its own layer into the folder `target`, which it makes, while nothing runs in it.
    fn copy_still(&self, target: &Path) -> io::Result<()> {
        // Another caller would let all go on in the middle of this one.
        let _copying = self.copying.lock().unwrap_or_else(PoisonError::into_inner);
        match self.groups.freeze(FREEZING)? {
            Some(_frozen) => self.copy_layer(target),
            None => self.copy_stopped(target),
        }
    }

    /// The same without a control group: by signals, which processes can undo, so that a copy counts
    /// only if nothing ran while it was made.
    pub(super) fn copy_stopped(&self, target: &Path) -> io::Result<()> {
        for _ in 0..STOP_TRIES {
            let stopped = self.init.stop()?;
            let copied = if stopped { self.copy_layer(target) } else { Ok(()) };
            let stood_still = self.init.go_on()?;
            if stopped && stood_still {
                return copied;
            }
            tree::remove_tree(target)?;
        }
        Err(io::Error::new(io::ErrorKind::TimedOut, "its processes do not stand still"))
    }

    fn copy_layer(&self, target: &Path) -> io::Result<()> {
        DirBuilder::new().mode(0o700).create(target)?;
        self.parts.iter().try_for_each(|part| {
            tree::copy_layer(&self.init.upper, OsStr::new(part), &target.join(part)).map(drop)
        })
    }

    /// As [`Sandbox::changes`](crate::Sandbox::changes).
    pub(crate) fn changes(&self, limit: usize) -> Result<Changes, SandboxError> {
        self.check_alive()?;
        let mut found = Vec::new();
        let mut is_cut = false;
        for ((target, image), part) in self.base.overlays.iter().zip(&self.parts) {
            let frozen = self.record.layers.iter().map(|id| self.store.layer(id).join(part));
            let below: Vec<PathBuf> = frozen.chain(image.iter().cloned()).collect();
            let is_wanted = |path: &[u8]| !is_apart(path, &self.record.spec);
            let part = Part { upper: &self.init.upper, name: part, target, below: &below };
            let some = part.changes(limit, &is_wanted);
            let some = some.map_err(backend_error("look for changed files"))?;
            is_cut |= some.is_cut;
            found.extend(some.changes);
        }
        let changes = Changes::settle(found, &self.record.spec, limit);
        Ok(Changes { is_cut: is_cut || changes.is_cut, ..changes })
    }

    pub(crate) fn stats(&self) -> Result<SandboxStats, SandboxError> {
        self.check_alive()?;
        let stat = fstatvfs(&self.init.upper)
            .map_err(|error| backend_error("look at the disk")(error.into()))?;
        let has_no_more_files = stat.f_files > 0 && stat.f_favail == 0;
        let free = if has_no_more_files { 0 } else { stat.f_bavail * stat.f_frsize };
        let in_memory = needs_memory_disk(self.store.root(), &self.record.spec);
        // What has no limit and lies in memory is shared with nobody: that it is full is not the host's doing.
        let is_told = !in_memory || self.record.spec.limits.disk_bytes.is_some();
        let disk = if in_memory {
            (stat.f_blocks - stat.f_bfree) * stat.f_frsize
        } else {
            tree::disk_usage(&self.init.upper).map_err(backend_error("look at the disk"))?
        };
        let network = self.reach().server.as_ref().map(Server::stats);
        Ok(SandboxStats {
            disk_bytes: Some(disk),
            free_disk_bytes: is_told.then_some(free),
            network,
            ..self.groups.stats()
        })
    }

    /// Ends and removes everything. Twice is no error: what the first time left, the second tries
    /// again.
    pub(crate) fn close(&self) -> Result<(), SandboxError> {
        *self.closed.lock().expect("nobody panics while holding it") = true;
        let mut removed = self.removed.lock().expect("nobody panics while holding it");
        if *removed {
            return Ok(());
        }
        thaw_groups(&self.record.groups);
        self.init.end();
        self.reach_nothing();
        remove_groups(&self.record.groups, PATIENCE)
            .map_err(backend_error("remove control groups"))?;
        self.store.remove_sandbox(&self.record.id, &self.record.layers)?;
        *removed = true;
        Ok(())
    }

    pub(crate) fn is_closed(&self) -> bool {
        *self.closed.lock().expect("nobody panics while holding it")
    }
}

/// What is removed again when starting fails.
struct Remains<'a> {
    store: &'a Store,
    record: &'a Record,
    is_wanted: bool,
}

impl Drop for Remains<'_> {
    fn drop(&mut self) {
        if !self.is_wanted {
            let _ = remove_groups(&self.record.groups, PATIENCE);
            let _ = self.store.remove_sandbox(&self.record.id, &self.record.layers);
        }
    }
}

/// The folder inside a layer that belongs to a mount point.
fn part(target: &str) -> String {
    if target == "/" { "root".to_owned() } else { target.trim_start_matches('/').to_owned() }
}

fn make_folders(store: &Store, record: &Record, parts: &[String]) -> Result<(), SandboxError> {
    let folder = store.sandbox(&record.id);
    let make = |path: PathBuf| {
        DirBuilder::new().mode(0o700).create(&path).map_err(host_error("make", &path))?;
        // The merged folders take their permissions from the upper ones.
        fs::set_permissions(&path, Permissions::from_mode(0o755)).map_err(host_error("make", &path))
    };
    for path in ["", "merged", "upper", "scratch", "disk"] {
        make(folder.join(path))?;
    }
    for part in parts {
        make(folder.join("upper").join(part))?;
        make(folder.join("scratch").join(part))?;
    }
    Ok(())
}

/// Whether its own layer lies in memory: only there can it be limited, or written at all.
fn needs_memory_disk(store: &Path, spec: &SandboxSpec) -> bool {
    spec.limits.disk_bytes.is_some()
        || statfs(store).is_ok_and(|stat| NOT_WRITABLE_BELOW.contains(&stat.f_type))
}

/// The sandbox as the first process is told it.
fn describe(store: &Store, record: &Record, base: &Base) -> Result<Payload, SandboxError> {
    let spec = &record.spec;
    let folder = format!("sandboxes/{}", record.id);
    let in_memory = needs_memory_disk(store.root(), spec);
    let home = if in_memory { format!("{folder}/disk") } else { folder.clone() };
    let mut disk_options = String::new();
    if in_memory {
        disk_options = "mode=755".to_owned();
        if let Some(bytes) = spec.limits.disk_bytes {
            // What frozen layers hold was written by the same sandbox before it was forked.
            let mut frozen = 0;
            for path in record.layers.iter().map(|id| store.layer(id)) {
                let usage = File::open(&path).and_then(|layer| tree::disk_usage(&layer.into()));
                frozen += usage.map_err(host_error("look at", &path))?;
            }
            let left = bytes.saturating_sub(frozen).max(1 << 16);
            let inodes = (left / 1024).max(1024);
            disk_options += &format!(",size={left},nr_inodes={inodes}");
        }
    }
    let overlays: Vec<(String, String)> = base
        .overlays
        .iter()
        .map(|(target, lowers)| {
            let part = part(target);
            let frozen = record.layers.iter().map(|id| format!("layers/{id}/{part}"));
            let image = lowers.iter().map(|path| path.display().to_string());
            let below = frozen.chain(image).collect::<Vec<_>>().join(":");
            let options = format!(
                "lowerdir={below},upperdir={home}/upper/{part},workdir={home}/scratch/{part},userxattr"
            );
            (target.clone(), options)
        })
        .collect();
    for mount in &spec.mounts {
        if !mount.host.exists() {
            return Err(SandboxError::InvalidSpec {
                problems: vec![format!(
                    "`{}` cannot be mounted: it is not there",
                    mount.host.display()
                )],
            });
        }
    }
    let mut payload = Payload::default();
    payload
        .number(u64::from(spec.network == NetworkPolicy::Bridge))
        .number(match spec.network {
            NetworkPolicy::Allow { .. } => u64::from(allow_list::PORT),
            NetworkPolicy::None | NetworkPolicy::Bridge => 0,
        })
        .bytes(store.root().as_os_str().as_bytes())
        .bytes(format!("{folder}/merged").as_bytes())
        .list(&overlays, |payload, (target, options)| {
            payload.bytes(target.as_bytes()).bytes(options.as_bytes());
        })
        .bytes(format!("{folder}/disk").as_bytes())
        .bytes(disk_options.as_bytes())
        .bytes(format!("{home}/upper").as_bytes())
        .number(u64::from(spec.read_only_root))
        .number(spec.limits.shm_bytes.unwrap_or(SHM_BYTES))
        .list(&spec.mounts, |payload, mount| {
            payload
                .bytes(mount.host.as_os_str().as_bytes())
                .bytes(mount.guest.as_bytes())
                .number(u64::from(mount.read_only));
        })
        .bytes(&seccomp::filter());
    Ok(payload)
}
