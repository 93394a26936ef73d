//! An engine of a test's own, as a process that it may end.
//!
//! The workspace's integration tests compile this file as well (`tests/it/main.rs`).

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A program that answers like Docker at the `socket` of its folder, in which it keeps all it has.
/// Dropping it ends what runs in it and removes everything.
pub(super) struct EngineProcess {
    pub(super) folder: tempfile::TempDir,
    pub(super) process: Option<Child>,
    command: Vec<String>,
}

impl EngineProcess {
    /// A `dockerd` in a network namespace of its own, so that it touches no bridge and no rule of the
    /// engine that others use; it has `spar-busybox`.
    pub(super) fn docker() -> Self {
        let folder = quick_folder();
        let mut command: Vec<String> = vec!["unshare".into(), "--net".into()];
        command.extend(dockerd(folder.path()));
        command.push("--bridge=none".into());
        Self::start(folder, command)
    }

    /// Starts a program that answers in this folder, and gives it the `spar-busybox` of the usual engine.
    pub(super) fn start(folder: tempfile::TempDir, command: Vec<String>) -> Self {
        let mut engine = Self { folder, process: None, command };
        engine.again();
        let archive = engine.folder.path().join("busybox.tar");
        let archive = archive.to_str().unwrap();
        must("docker", &["save", "--output", archive, "spar-busybox:latest"]);
        engine.docker_cli(&["load", "--input", archive]);
        engine
    }

    /// Where it answers.
    pub(super) fn address(&self) -> String {
        format!("unix://{}", self.folder.path().join("socket").display())
    }

    /// What the Docker command line says against it.
    pub(super) fn docker_cli(&self, arguments: &[&str]) -> String {
        let address = self.address();
        must("docker", &[&["--host", &address], arguments].concat())
    }

    /// Ends it at once, as running out of memory would.
    pub(super) fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().unwrap();
            process.wait().unwrap();
        }
    }

    /// Starts it, also after it was ended, and waits until it answers.
    pub(super) fn again(&mut self) {
        let until = Instant::now() + Duration::from_secs(120);
        loop {
            let running = self.process.as_mut().is_some_and(|p| p.try_wait().unwrap().is_none());
            if !running {
                // It gives up by itself where its own containerd does not answer for want of time.
                self.process = Some(self.spawn());
            }
            if self.answers() {
                return;
            }
            if Instant::now() > until {
                let log = fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
                let last: Vec<_> = log.lines().rev().take(5).collect();
                panic!("it does not answer: {last:#?}");
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    fn spawn(&self) -> Child {
        let _ = fs::remove_file(self.folder.path().join("pid"));
        let log = self.folder.path().join("log");
        let log = fs::File::options().create(true).append(true).open(log).unwrap();
        Command::new(&self.command[0])
            .args(&self.command[1..])
            // The directory of a test must not be kept busy, nor its input shared.
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap()
    }

    fn answers(&self) -> bool {
        let asked = Command::new("docker")
            .args(["--host", &self.address(), "version", "--format", "{{.Server.Version}}"])
            .output();
        asked.is_ok_and(|output| output.status.success())
    }

    /// Processes that were started with the folder in their arguments, and all below them.
    fn processes(&self) -> Vec<u32> {
        let folder = self.folder.path().as_os_str().as_encoded_bytes();
        let (mut found, mut parents) = (Vec::new(), Vec::new());
        for entry in fs::read_dir("/proc").unwrap().flatten() {
            let Ok(pid) = entry.file_name().to_string_lossy().parse::<u32>() else { continue };
            let arguments = fs::read(entry.path().join("cmdline")).unwrap_or_default();
            if arguments.windows(folder.len()).any(|part| part == folder) {
                found.push(pid);
            }
            let status = fs::read_to_string(entry.path().join("status")).unwrap_or_default();
            let parent = status.lines().find_map(|line| line.strip_prefix("PPid:"));
            parents.push((pid, parent.and_then(|text| text.trim().parse().ok()).unwrap_or(0)));
        }
        let mut next = 0;
        while next < found.len() {
            let below = parents.iter().filter(|(pid, parent)| {
                *parent == found[next] && !found.contains(pid) && *pid != std::process::id()
            });
            let below: Vec<u32> = below.map(|(pid, _)| *pid).collect();
            found.extend(below);
            next += 1;
        }
        found
    }
}

impl Drop for EngineProcess {
    fn drop(&mut self) {
        self.kill();
        for _ in 0..50 {
            let processes = self.processes();
            if processes.is_empty() {
                break;
            }
            for pid in processes {
                let _ = Command::new("kill").args(["-9", &pid.to_string()]).output();
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
        let places = mounts.lines().filter_map(|line| line.split(' ').nth(1));
        for place in places.filter(|place| Path::new(place).starts_with(self.folder.path())) {
            let _ = Command::new("umount").args(["--lazy", place]).output();
        }
    }
}

/// In memory where there is room for it: engines write a lot to the disk, and wait for that.
pub(super) fn quick_folder() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

/// The command of a `dockerd` that keeps everything in a folder, but for the network it is to have.
pub(super) fn dockerd(folder: &Path) -> Vec<String> {
    let place = |name: &str| folder.join(name).display().to_string();
    vec![
        "dockerd".into(),
        format!("--data-root={}", place("data")),
        format!("--exec-root={}", place("run")),
        format!("--pidfile={}", place("pid")),
        format!("--host=unix://{}", place("socket")),
        "--iptables=false".into(),
        "--ip-forward=false".into(),
        "--ip-masq=false".into(),
    ]
}

/// What a program says that has to succeed.
pub(super) fn must(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().unwrap();
    assert!(output.status.success(), "{program} {arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}
