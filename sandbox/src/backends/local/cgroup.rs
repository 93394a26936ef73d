//! Control groups of both versions: limits of a sandbox and what it has used up.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{Access, access};
use rustix::process::{Pid, Signal, kill_process};

use crate::owner::{Process, process};
use crate::{Limits, Owner, ReapReport, SandboxStats};

/// Files of a group by which its processes are stopped, and what lets them go on: of version 1 and
/// of version 2.
const FREEZERS: [(&str, &str); 2] = [("freezer.state", "THAWED"), ("cgroup.freeze", "0")];

/// Beside the limit: the two processes of the sandbox itself, and the supervisor of an exec.
const OWN_PROCESSES: u32 = 3;

/// Name of a group that is made to see whether processes can be moved, before what tells the process.
const TRIAL: &str = "spar-local-trial-";

/// Microseconds over which processor time is shared out.
const PERIOD_US: u64 = 100_000;

/// Where groups can be made on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Hierarchy {
    /// Folder in which the unified hierarchy lets us make groups, and its controllers.
    unified: Option<(PathBuf, Vec<String>)>,
    /// Controllers of version 1, each with the folder for our groups.
    separate: Vec<(String, PathBuf)>,
}

impl Hierarchy {
    /// That of this process; looked for once.
    pub(crate) fn this_process() -> &'static Self {
        static HIERARCHY: OnceLock<Hierarchy> = OnceLock::new();
        HIERARCHY.get_or_init(Self::find)
    }

    fn find() -> Self {
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
        let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let mut separate = Vec::new();
        let mut unified = None;
        for line in mounts.lines() {
            let fields: Vec<&str> = line.split(' ').collect();
            let [_, place, kind, options, ..] = fields[..] else { continue };
            match kind {
                "cgroup" => {
                    for controller in ["memory", "pids", "cpu", "cpuacct", "freezer"] {
                        let folder = own_folder(Path::new(place), &own, controller);
                        if options.split(',').any(|option| option == controller)
                            && separate.iter().all(|(name, _)| name != controller)
                            && can_make_group(&folder)
                        {
                            separate.push((controller.to_owned(), folder));
                        }
                    }
                }
                "cgroup2" if unified.is_none() => {
                    unified =
                        find_unified(Path::new(place), &own_folder(Path::new(place), &own, ""));
                }
                _ => {}
            }
        }
        Self { unified, separate }
    }

    /// Whether limits that need `controller` are kept.
    pub(crate) fn has(&self, controller: &str) -> bool {
        self.folder(controller).is_some()
    }

    fn folder(&self, controller: &str) -> Option<&Path> {
        let separate = self.separate.iter().find(|(name, _)| name == controller);
        separate.map(|(_, folder)| folder.as_path()).or_else(|| {
            let (folder, controllers) = self.unified.as_ref()?;
            // Groups of version 2 can be frozen without a controller.
            let is_there = controller == "freezer" || controllers.iter().any(|c| c == controller);
            is_there.then_some(folder.as_path())
        })
    }

    /// Removes groups in which processes tried what they may and ended before they were done.
    pub(crate) fn reap_trials(&self, report: &mut ReapReport) {
        let Some((folder, _)) = &self.unified else { return };
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let pid = name.strip_prefix(&trial_of_namespace()).and_then(|pid| pid.parse().ok());
            if pid.is_some_and(|pid| process(pid) == Process::Gone) {
                match remove_groups(&[entry.path()], Duration::from_secs(1)) {
                    Ok(()) => report.removed.push(format!("group {name}")),
                    Err(error) => report.failed.push(format!("group {name}: {error}")),
                }
            }
        }
    }

    /// In words, for people.
    pub(crate) fn describe(&self) -> String {
        let kept: Vec<&str> =
            ["memory", "pids", "cpu"].into_iter().filter(|name| self.has(name)).collect();
        if kept.is_empty() {
            return "no control groups".to_owned();
        }
        let version = if self.unified.is_some() && self.separate.is_empty() { 2 } else { 1 };
        format!("control groups v{version} ({})", kept.join(", "))
    }
}

/// The group of this process in a hierarchy; its mount point where the group lies outside of what
/// is mounted.
fn own_folder(place: &Path, own: &str, controller: &str) -> PathBuf {
    let path = own.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next()?, parts.next()?);
        controllers.split(',').any(|name| name == controller).then_some(path)
    });
    let folder = place.join(path.unwrap_or("/").trim_start_matches('/'));
    if folder.is_dir() { folder } else { place.to_owned() }
}

/// The nearest group above that hands controllers on and lets us make groups.
fn find_unified(place: &Path, own: &Path) -> Option<(PathBuf, Vec<String>)> {
    for folder in own.ancestors().take_while(|folder| folder.starts_with(place)) {
        let control = fs::read_to_string(folder.join("cgroup.subtree_control")).unwrap_or_default();
        let controllers: Vec<String> = control.split_whitespace().map(str::to_owned).collect();
        if controllers.iter().any(|name| name == "memory" || name == "pids")
            && can_make_group(folder)
            && can_move_into_group(folder)
        {
            return Some((folder.to_owned(), controllers));
        }
    }
    None
}

fn can_make_group(folder: &Path) -> bool {
    access(folder, Access::WRITE_OK).is_ok()
}

/// Before the number of a process of this namespace: another one, whose groups lie beside ours, has
/// other processes of the same numbers.
fn trial_of_namespace() -> String {
    let namespace = &Owner::this_process().namespace;
    let number: String = namespace.chars().filter(char::is_ascii_digit).collect();
    format!("{TRIAL}{number}-")
}

/// Version 2 asks for the right to write in the group that both have above them.
fn can_move_into_group(folder: &Path) -> bool {
    let trial = folder.join(format!("{}{}", trial_of_namespace(), std::process::id()));
    let Ok(mut child) = std::process::Command::new("sleep").arg("5").spawn() else { return false };
    let moved = fs::create_dir(&trial).is_ok()
        && fs::write(trial.join("cgroup.procs"), child.id().to_string()).is_ok();
    let _ = child.kill();
    let _ = child.wait();
    let _ = remove_group(&trial, Duration::from_secs(1));
    moved
}

/// The groups of one sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Groups {
    memory: Option<PathBuf>,
    pids: Option<PathBuf>,
    cpu: Option<PathBuf>,
    accounting: Option<PathBuf>,
    freezer: Option<PathBuf>,
}

impl Groups {
    /// Where those of the sandbox `id` lie; makes nothing.
    pub(crate) fn plan(hierarchy: &Hierarchy, id: &str) -> Self {
        let place = |name| hierarchy.folder(name).map(|f| f.join(format!("spar-local-{id}")));
        Self {
            memory: place("memory"),
            pids: place("pids"),
            cpu: place("cpu"),
            accounting: place("cpuacct"),
            freezer: place("freezer"),
        }
    }

    /// Each once.
    pub(crate) fn folders(&self) -> Vec<PathBuf> {
        let all = [&self.memory, &self.pids, &self.cpu, &self.accounting, &self.freezer];
        let mut folders: Vec<PathBuf> = all.into_iter().flatten().cloned().collect();
        folders.sort();
        folders.dedup();
        folders
    }

    /// Makes them with these limits.
    pub(crate) fn make(&self, limits: &Limits) -> io::Result<()> {
        for folder in self.folders() {
            fs::create_dir(&folder)?;
        }
        if let (Some(folder), Some(bytes)) = (&self.memory, limits.memory_bytes) {
            if is_unified(folder) {
                fs::write(folder.join("memory.max"), bytes.to_string())?;
                write_if_present(&folder.join("memory.swap.max"), "0")?;
            } else {
                fs::write(folder.join("memory.limit_in_bytes"), bytes.to_string())?;
                write_if_present(&folder.join("memory.memsw.limit_in_bytes"), &bytes.to_string())?;
            }
        }
        if let (Some(folder), Some(pids)) = (&self.pids, limits.pids) {
            let most = pids.saturating_add(OWN_PROCESSES).to_string();
            fs::write(folder.join("pids.max"), most)?;
        }
        if let (Some(folder), Some(cpus)) = (&self.cpu, limits.cpus) {
            let quota = (cpus * PERIOD_US as f64) as u64;
            if is_unified(folder) {
                fs::write(folder.join("cpu.max"), format!("{quota} {PERIOD_US}"))?;
            } else {
                fs::write(folder.join("cpu.cfs_period_us"), PERIOD_US.to_string())?;
                fs::write(folder.join("cpu.cfs_quota_us"), quota.to_string())?;
            }
        }
        Ok(())
    }

    /// Moves a process into all of them.
    pub(crate) fn enter(&self, pid: u32) -> io::Result<()> {
        for folder in self.folders() {
            fs::write(folder.join("cgroup.procs"), pid.to_string())?;
        }
        Ok(())
    }

    /// Stops all processes until what is returned is dropped; they can do nothing about it. `None`
    /// where there is no group that can.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::TimedOut`] if not all stand still after `patience`; they go on then.
    pub(crate) fn freeze(&self, patience: Duration) -> io::Result<Option<Frozen>> {
        let Some(folder) = self.freezer.as_ref() else { return Ok(None) };
        let is_there = |(name, _): &&(&str, &str)| folder.join(name).exists();
        // Groups of version 2 have it from Linux 5.2 on.
        let Some((name, thawed)) = FREEZERS.iter().find(is_there) else { return Ok(None) };
        let (file, is_unified) = (folder.join(name), *thawed == "0");
        let frozen = Frozen { folder: folder.clone() };
        fs::write(&file, if is_unified { "1" } else { "FROZEN" })?;
        let start = Instant::now();
        loop {
            let state = fs::read_to_string(&file)?;
            let is_done = if is_unified {
                keyed(&folder.join("cgroup.events"), "frozen") == Some(1)
            } else {
                state.trim() == "FROZEN"
            };
            if is_done {
                return Ok(Some(frozen));
            }
            if state.trim() == *thawed {
                // Whoever closes the sandbox does not wait for this.
                return Err(io::ErrorKind::Interrupted.into());
            }
            if start.elapsed() > patience {
                return Err(io::ErrorKind::TimedOut.into());
            }
            thread::sleep(Duration::from_micros(200));
        }
    }

    /// Kills for memory so far.
    pub(crate) fn out_of_memory_kills(&self) -> Option<u64> {
        let folder = self.memory.as_ref()?;
        let name = if is_unified(folder) { "memory.events" } else { "memory.oom_control" };
        keyed(&folder.join(name), "oom_kill")
    }

    /// Whether its own limit of memory was met so far: kills without that were made for the host's.
    pub(crate) fn met_memory_limit(&self) -> Option<bool> {
        let folder = self.memory.as_ref()?;
        let times = if is_unified(folder) {
            keyed(&folder.join("memory.events"), "oom")
        } else {
            number(&folder.join("memory.failcnt"))
        };
        times.map(|times| times > 0)
    }

    /// What can be read from them.
    pub(crate) fn stats(&self) -> SandboxStats {
        let of = |folder: &Option<PathBuf>, names: [&str; 2]| {
            let folder = folder.as_ref()?;
            number(&folder.join(names[usize::from(is_unified(folder))]))
        };
        let cpu = match (&self.accounting, &self.cpu) {
            (Some(folder), _) => number(&folder.join("cpuacct.usage")).map(Duration::from_nanos),
            (None, Some(folder)) => {
                keyed(&folder.join("cpu.stat"), "usage_usec").map(Duration::from_micros)
            }
            (None, None) => None,
        };
        SandboxStats {
            cpu,
            memory_bytes: of(&self.memory, ["memory.usage_in_bytes", "memory.current"]),
            peak_memory_bytes: of(&self.memory, ["memory.max_usage_in_bytes", "memory.peak"]),
            pids: of(&self.pids, ["pids.current"; 2])
                // The two that are always there are ours.
                .map(|count| count.saturating_sub(2) as u32),
            disk_bytes: None,
            free_disk_bytes: None,
            network: None,
            out_of_memory_kills: self.out_of_memory_kills(),
        }
    }
}

/// While it exists, the processes of a group stand still.
#[derive(Debug)]
pub(crate) struct Frozen {
    folder: PathBuf,
}

impl Drop for Frozen {
    fn drop(&mut self) {
        thaw_groups(std::slice::from_ref(&self.folder));
    }
}

/// Lets the processes of these groups go on, as far as they were stopped.
pub(crate) fn thaw_groups(folders: &[PathBuf]) {
    for folder in folders {
        for (name, value) in FREEZERS {
            // Fails where there is no such file, or no such group any more.
            let _ = write_if_present(&folder.join(name), value);
        }
    }
}

/// Ends every process in the groups `folders` and removes them.
///
/// # Errors
///
/// If one is still there after `patience`.
pub(crate) fn remove_groups(folders: &[PathBuf], patience: Duration) -> io::Result<()> {
    // What is frozen does not even end.
    thaw_groups(folders);
    for folder in folders {
        let processes = fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
        for pid in processes.lines().filter_map(|line| line.parse().ok()).filter_map(Pid::from_raw)
        {
            let _ = kill_process(pid, Signal::KILL);
        }
    }
    folders.iter().try_for_each(|folder| remove_group(folder, patience))
}

fn remove_group(folder: &Path, patience: Duration) -> io::Result<()> {
    let start = Instant::now();
    loop {
        match fs::remove_dir(folder) {
            // The group stays busy until its last process is gone.
            Err(error)
                if error.kind() == io::ErrorKind::ResourceBusy && start.elapsed() < patience =>
            {
                thread::sleep(Duration::from_millis(2));
            }
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => return Ok(()),
        }
    }
}

fn is_unified(folder: &Path) -> bool {
    folder.join("cgroup.controllers").exists()
}

fn write_if_present(path: &Path, value: &str) -> io::Result<()> {
    match fs::OpenOptions::new().write(true).open(path) {
        Ok(mut file) => io::Write::write_all(&mut file, value.as_bytes()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

fn number(path: &Path) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// The number behind `key` in a file of lines of a key and a number.
fn keyed(path: &Path, key: &str) -> Option<u64> {
    let text = fs::read_to_string(path).ok()?;
    text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' ')?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_group_of_this_process_is_found_in_both_versions() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path();
        fs::create_dir_all(place.join("user/me")).unwrap();
        let own = "5:cpu,cpuacct:/user/me\n4:memory:/gone\n0::/user\n";
        assert_eq!(own_folder(place, own, "cpuacct"), place.join("user/me"));
        assert_eq!(own_folder(place, own, "memory"), place);
        assert_eq!(own_folder(place, own, ""), place.join("user"));
        assert_eq!(own_folder(place, own, "pids"), place);
    }

    #[test]
    fn keys_are_whole_words() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("memory.events");
        fs::write(&path, "oom 7\noom_kill 3\noom_kill_disable 0\n").unwrap();
        assert_eq!(keyed(&path, "oom_kill"), Some(3));
        assert_eq!(keyed(&path, "low"), None);
    }
}
