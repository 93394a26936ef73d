//! An engine of a test's own, that it may kill.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use super::super::DockerHost;

/// A program that answers like Docker, with all that it keeps in a folder of its own. Dropping it ends
/// what runs in it and removes everything.
pub(super) struct PrivateEngine {
    folder: tempfile::TempDir,
    command: Vec<String>,
    bridge: Option<String>,
    process: Option<Child>,
    host: DockerHost,
}

impl PrivateEngine {
    /// A `dockerd` in a network namespace of its own, so that it touches no bridge and no rule of the
    /// engine that others use; it has `spar-busybox`.
    pub(super) async fn docker() -> Self {
        let folder = quick_folder();
        let mut command: Vec<String> = vec!["unshare".into(), "--net".into()];
        command.extend(dockerd(folder.path()));
        command.push("--bridge=none".into());
        let host = format!("unix://{}/socket", folder.path().display()).parse().unwrap();
        Self::start(folder, command, None, host).await
    }

    /// A `dockerd` on a TCP port that asks for certificates, which the host has. It also answers on
    /// its socket.
    pub(super) async fn docker_with_tls() -> Self {
        let folder = quick_folder();
        make_certificates(folder.path());
        let number = number();
        let bridge = format!("spar{number}");
        // Without one of its own it would remove that of the other engine.
        must("ip", &["link", "add", "name", &bridge, "type", "bridge"]);
        let address = format!("10.213.{}.1/24", number % 256);
        must("ip", &["address", "add", &address, "dev", &bridge]);
        let port = free_port();
        let mut command = dockerd(folder.path());
        command.push(format!("--bridge={bridge}"));
        command.push(format!("--host=tcp://127.0.0.1:{port}"));
        command.push("--tlsverify".into());
        for (option, file) in
            [("tlscacert", "ca.pem"), ("tlscert", "server.pem"), ("tlskey", "server-key.pem")]
        {
            command.push(format!("--{option}={}", folder.path().join(file).display()));
        }
        let host: DockerHost = format!("https://127.0.0.1:{port}").parse().unwrap();
        let host = host.with_certificates(folder.path());
        Self::start(folder, command, Some(bridge), host).await
    }

    /// The service of Podman, with storage of its own.
    pub(super) async fn podman() -> Self {
        let folder = quick_folder();
        let place = |name: &str| folder.path().join(name).display().to_string();
        let socket = format!("unix://{}", place("socket"));
        let command = [
            "podman",
            "--root",
            &place("data"),
            "--runroot",
            &place("run"),
            "--cgroup-manager",
            "cgroupfs",
            "--events-backend",
            "file",
            "--runtime",
            "runc",
            "--tmpdir",
            &place("tmp"),
            "system",
            "service",
            "--time",
            "0",
            &socket,
        ];
        let command = command.map(str::to_owned).to_vec();
        let host = socket.parse().unwrap();
        Self::start(folder, command, None, host).await
    }

    async fn start(
        folder: tempfile::TempDir,
        command: Vec<String>,
        bridge: Option<String>,
        host: DockerHost,
    ) -> Self {
        let mut engine = Self { folder, command, bridge, process: None, host };
        engine.again().await;
        let archive = image_archive();
        let import = ["import", "--change", "CMD [\"sh\"]", archive.to_str().unwrap()];
        let told = engine.docker_cli(&[&import[..], &["spar-busybox:latest"]].concat());
        assert!(told.starts_with("sha256:"), "{told}");
        engine
    }

    pub(super) fn host(&self) -> DockerHost {
        self.host.clone()
    }

    /// Runs the Docker command line against it.
    pub(super) fn docker_cli(&self, arguments: &[&str]) -> String {
        let output = Command::new("docker")
            .arg("--host")
            .arg(format!("unix://{}", self.socket().display()))
            .args(arguments)
            .output()
            .unwrap();
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Ends it at once, as running out of memory would.
    pub(super) fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().unwrap();
            process.wait().unwrap();
        }
    }

    /// Asks it to end, as an upgrade would, and waits for that.
    pub(super) fn stop(&mut self) {
        if let Some(mut process) = self.process.take() {
            // One that has ended by itself is as good.
            let _ = Command::new("kill").args(["-TERM", &process.id().to_string()]).output();
            let until = Instant::now() + Duration::from_secs(60);
            while process.try_wait().unwrap().is_none() && Instant::now() < until {
                std::thread::sleep(Duration::from_millis(50));
            }
            let _ = process.kill();
            process.wait().unwrap();
        }
    }

    /// Stops or continues it without ending it.
    pub(super) fn freeze(&self, frozen: bool) {
        let signal = if frozen { "-STOP" } else { "-CONT" };
        must("kill", &[signal, &self.process.as_ref().unwrap().id().to_string()]);
    }

    /// Starts it, also after it was ended, and waits until it answers.
    pub(super) async fn again(&mut self) {
        self.process = Some(self.spawn());
        let until = Instant::now() + Duration::from_secs(120);
        while !self.answers() {
            let ended = self.process.as_mut().unwrap().try_wait().unwrap();
            if ended.is_some() || Instant::now() > until {
                let log = fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
                let last: Vec<_> = log.lines().rev().take(5).collect();
                assert!(Instant::now() < until, "{ended:?}: {last:#?}");
                // It gives up by itself where its own containerd does not answer for want of time.
                self.process = Some(self.spawn());
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    fn spawn(&self) -> Child {
        let _ = fs::remove_file(self.folder.path().join("pid"));
        let log = fs::File::options()
            .create(true)
            .append(true)
            .open(self.folder.path().join("log"))
            .unwrap();
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
            .arg("--host")
            .arg(format!("unix://{}", self.socket().display()))
            .args(["version", "--format", "{{.Server.Version}}"])
            .output();
        asked.is_ok_and(|output| output.status.success())
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("socket")
    }

    /// Processes that were started with the folder in their arguments, and all below them.
    fn processes(&self) -> Vec<u32> {
        let folder = self.folder.path().as_os_str().as_encoded_bytes();
        let mut found = Vec::new();
        let mut parents = Vec::new();
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
            let below = parents.iter().filter(|(_, parent)| *parent == found[next]);
            let below: Vec<u32> = below.map(|(pid, _)| *pid).collect();
            found.extend(below.into_iter().filter(|pid| *pid != std::process::id()));
            next += 1;
        }
        found
    }
}

impl Drop for PrivateEngine {
    fn drop(&mut self) {
        // It ends its containers; what it does not is ended below.
        self.stop();
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
        let own = self.folder.path().to_string_lossy().into_owned();
        let places = mounts.lines().filter_map(|line| line.split(' ').nth(1));
        for place in places.filter(|place| place.starts_with(&own)) {
            let _ = Command::new("umount").args(["--lazy", place]).output();
        }
        if let Some(bridge) = &self.bridge {
            let _ = Command::new("ip").args(["link", "delete", bridge]).output();
        }
    }
}

/// In memory where there is room for it: engines write a lot to the disk, and wait for that.
fn quick_folder() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

fn dockerd(folder: &Path) -> Vec<String> {
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

/// A certificate authority, and certificates of a server at 127.0.0.1 and of a client.
pub(super) fn make_certificates(folder: &Path) {
    let script = "
        set -e
        exec 2>&1
        openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=spar-test-authority \
            -keyout ca-key.pem -out ca.pem
        make() {
            openssl req -newkey rsa:2048 -nodes -subj \"/CN=$1\" -keyout \"$2\" -out request.pem
            printf '%s\\n' \"$4\" >extensions
            openssl x509 -req -days 2 -in request.pem -CA ca.pem -CAkey ca-key.pem \
                -CAcreateserial -extfile extensions -out \"$3\"
        }
        make 127.0.0.1 server-key.pem server.pem 'subjectAltName=IP:127.0.0.1
extendedKeyUsage=serverAuth'
        make client key.pem cert.pem 'extendedKeyUsage=clientAuth'
    ";
    let made = Command::new("sh").args(["-c", script]).current_dir(folder).output().unwrap();
    assert!(made.status.success(), "{made:?}");
}

/// The archive that `docker/build-images.sh` keeps.
fn image_archive() -> PathBuf {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    let cache = variable("SPAR_CACHE_DIR").map(PathBuf::from).unwrap_or_else(|| {
        let home = || PathBuf::from(variable("HOME").expect("tests have a home")).join(".cache");
        variable("XDG_CACHE_HOME").map_or_else(home, PathBuf::from).join("spar")
    });
    let archive = cache.join("images/busybox.tar");
    assert!(archive.is_file(), "{} is absent: docker/build-images.sh", archive.display());
    archive
}

fn number() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    // Unlike those of other processes that run the same tests.
    std::process::id().wrapping_mul(16).wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed))
}

fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

fn must(program: &str, arguments: &[&str]) {
    let output = Command::new(program).args(arguments).output().unwrap();
    assert!(output.status.success(), "{program} {arguments:?}: {output:?}");
}
