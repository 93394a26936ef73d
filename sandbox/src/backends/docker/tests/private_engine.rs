//! Engines of a test's own, of every kind.

use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use tokio::task::block_in_place;

use super::super::DockerHost;
use super::engine_process::{EngineProcess, dockerd, must, quick_folder};

/// An engine with `spar-busybox`. Dropping it ends what runs in it and removes everything.
pub(super) struct PrivateEngine {
    host: DockerHost,
    engine: EngineProcess,
    /// Removed after its engine has ended.
    _bridge: Option<Bridge>,
}

impl PrivateEngine {
    /// A `dockerd` that touches nothing of the engine that others use.
    pub(super) async fn docker() -> Self {
        Self::on_its_socket(block_in_place(EngineProcess::docker))
    }

    /// A `dockerd` on a TCP port that asks for certificates, which the host has. It also answers on
    /// its socket.
    pub(super) async fn docker_with_tls() -> Self {
        let folder = quick_folder();
        make_certificates(folder.path());
        let number = number();
        // Without one of its own it would remove that of the other engine.
        let bridge = Bridge::new(number);
        let port = free_port();
        let mut command = dockerd(folder.path());
        command.push(format!("--bridge={}", bridge.0));
        command.push(format!("--host=tcp://127.0.0.1:{port}"));
        command.push("--tlsverify".into());
        for (option, file) in
            [("tlscacert", "ca.pem"), ("tlscert", "server.pem"), ("tlskey", "server-key.pem")]
        {
            command.push(format!("--{option}={}", folder.path().join(file).display()));
        }
        let host: DockerHost = format!("https://127.0.0.1:{port}").parse().unwrap();
        let host = host.with_certificates(folder.path());
        let engine = block_in_place(|| EngineProcess::start(folder, command));
        Self { host, engine, _bridge: Some(bridge) }
    }

    /// The service of Podman, with storage of its own.
    pub(super) async fn podman() -> Self {
        let folder = quick_folder();
        let place = |name: &str| folder.path().join(name).display().to_string();
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
            &format!("unix://{}", place("socket")),
        ];
        let command = command.map(str::to_owned).to_vec();
        Self::on_its_socket(block_in_place(|| EngineProcess::start(folder, command)))
    }

    fn on_its_socket(engine: EngineProcess) -> Self {
        Self { host: engine.address().parse().unwrap(), engine, _bridge: None }
    }

    pub(super) fn host(&self) -> DockerHost {
        self.host.clone()
    }

    /// What the Docker command line says against it.
    pub(super) fn docker_cli(&self, arguments: &[&str]) -> String {
        self.engine.docker_cli(arguments)
    }

    /// Ends it at once, as running out of memory would.
    pub(super) fn kill(&mut self) {
        self.engine.kill();
    }

    /// Asks it to end, as an upgrade would, and waits for that.
    pub(super) fn stop(&mut self) {
        if let Some(mut process) = self.engine.process.take() {
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
        must("kill", &[signal, &self.engine.process.as_ref().unwrap().id().to_string()]);
    }

    /// Starts it, also after it was ended, and waits until it answers.
    pub(super) async fn again(&mut self) {
        block_in_place(|| self.engine.again());
    }
}

impl Drop for PrivateEngine {
    fn drop(&mut self) {
        // It ends its containers by itself where it is asked.
        self.stop();
    }
}

/// A bridge for an engine that must not use that of the others.
struct Bridge(String);

impl Bridge {
    fn new(number: u32) -> Self {
        let name = format!("spar{number}");
        must("ip", &["link", "add", "name", &name, "type", "bridge"]);
        let bridge = Self(name);
        let address = format!("10.213.{}.1/24", number % 256);
        must("ip", &["address", "add", &address, "dev", &bridge.0]);
        bridge
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["link", "delete", &self.0]).output();
    }
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

fn number() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    // Unlike those of other processes that run the same tests.
    std::process::id().wrapping_mul(16).wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed))
}

fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}
