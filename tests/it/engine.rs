//! A Docker engine of a test's own, that it may kill.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use spar::sandbox::backends::docker::DockerHost;

/// A `dockerd` with a network namespace and folders of its own, and `spar-busybox` in it. Dropping it
/// ends what runs in it.
pub(crate) struct PrivateEngine {
    folder: tempfile::TempDir,
    process: Option<Child>,
}

impl PrivateEngine {
    /// Starts it and brings in the image, which `docker/build-images.sh` keeps an archive of.
    pub(crate) fn start() -> Self {
        // In memory where there is room: engines wait for the disk otherwise.
        let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        let mut engine = Self { folder, process: None };
        engine.again();
        let archive = engine.folder.path().join("busybox.tar");
        let shared = ["save", "--output", archive.to_str().unwrap(), "spar-busybox:latest"];
        assert!(Command::new("docker").args(shared).status().unwrap().success());
        assert!(engine.docker(&["load", "--input", archive.to_str().unwrap()]));
        engine
    }

    /// Where it answers.
    pub(crate) fn host(&self) -> DockerHost {
        self.address().parse().unwrap()
    }

    /// Starts it, also after it was killed, and waits until it answers.
    pub(crate) fn again(&mut self) {
        let until = Instant::now() + Duration::from_secs(120);
        loop {
            let running = self.process.as_mut().is_some_and(|p| p.try_wait().unwrap().is_none());
            if !running {
                // It gives up by itself where its own containerd does not answer for want of time.
                self.process = Some(self.spawn());
            }
            if self.docker(&["version"]) {
                return;
            }
            let log = || fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
            assert!(Instant::now() < until, "{}", log());
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Ends it at once, as running out of memory would.
    pub(crate) fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().unwrap();
            process.wait().unwrap();
        }
    }

    fn address(&self) -> String {
        format!("unix://{}", self.place("socket"))
    }

    fn place(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    fn spawn(&self) -> Child {
        let _ = fs::remove_file(self.folder.path().join("pid"));
        let log = self.folder.path().join("log");
        let log = fs::File::options().create(true).append(true).open(log).unwrap();
        Command::new("unshare")
            .args(["--net", "dockerd", "--bridge=none", "--iptables=false"])
            .args(["--ip-forward=false", "--ip-masq=false"])
            .arg(format!("--data-root={}", self.place("data")))
            .arg(format!("--exec-root={}", self.place("run")))
            .arg(format!("--pidfile={}", self.place("pid")))
            .arg(format!("--host={}", self.address()))
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap()
    }

    /// Whether a Docker command against it works.
    fn docker(&self, arguments: &[&str]) -> bool {
        let output =
            Command::new("docker").arg("--host").arg(self.address()).args(arguments).output();
        output.is_ok_and(|output| output.status.success())
    }

    /// Processes that have the folder in their arguments, and all below them.
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

impl Drop for PrivateEngine {
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
        let own = self.folder.path().to_string_lossy().into_owned();
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
        let places = mounts.lines().filter_map(|line| line.split(' ').nth(1).map(PathBuf::from));
        for place in places.filter(|place| place.starts_with(&own)) {
            let _ = Command::new("umount").arg("--lazy").arg(place).output();
        }
    }
}
