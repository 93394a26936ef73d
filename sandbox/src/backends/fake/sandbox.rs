//! One sandbox in memory, and its shell.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use tokio::time::{Instant, sleep, timeout};

use super::programs::Surroundings;
use super::script::run_script;
use super::{CAPABILITIES, FakeReply, FakeTrouble, NAME, Shared, State, died, service};
use crate::archive::{PartFile, check_tar, normalise};
use crate::byte_stream::connect_by;
use crate::nonce::nonce;
use crate::set_up::set_up;
use crate::{
    ByteStream, Capabilities, Captured, Changes, Death, ExecEnd, ExecRequest, ExecResult,
    FileEntry, NetworkPolicy, OutputSink, Process, PtyProcess, PtySize, Sandbox, SandboxError,
    SandboxSpec, SandboxStats, Shell, ShellOptions, ShellResult, Snapshot, Stream,
};

/// A sandbox in memory.
pub(super) struct FakeSandbox {
    id: String,
    spec: SandboxSpec,
    shared: Arc<Shared>,
    is_closed: Arc<AtomicBool>,
    /// The handle whose end is the sandbox's; a shell holds another kind.
    is_owner: bool,
}

impl FakeSandbox {
    pub(super) fn new(id: String, spec: SandboxSpec, shared: Arc<Shared>) -> Self {
        Self { id, spec, shared, is_closed: Arc::default(), is_owner: true }
    }

    pub(super) async fn set_up(&self) -> Result<(), SandboxError> {
        set_up(&self.spec, |request| async move { self.exec(&request).await }).await
    }

    fn workdir(&self) -> &str {
        self.spec.workdir.as_deref().unwrap_or("/")
    }

    fn absolute(&self, path: &str) -> Result<String, SandboxError> {
        normalise(path, self.workdir())
    }

    fn with<T>(&self, act: impl FnOnce(&mut State) -> T) -> Result<T, SandboxError> {
        if self.is_closed.load(Ordering::SeqCst) {
            return Err(died(&self.id, Death::Closed));
        }
        let mut world = self.shared.world();
        world.sandboxes.get_mut(&self.id).map(act).ok_or_else(|| died(&self.id, Death::Killed))
    }

    fn check_writable(&self, path: &str) -> Result<(), SandboxError> {
        if self.spec.read_only_root && path != "/tmp" && !path.starts_with("/tmp/") {
            let reason = "the root is read-only".to_owned();
            return Err(SandboxError::PathRefused { path: path.to_owned(), reason });
        }
        Ok(())
    }

    /// The command's answer; it also dies here, if it was told to.
    fn reply(&self, request: &ExecRequest) -> Result<FakeReply, SandboxError> {
        let reply = self.with(|state| {
            state.num_execs += 1;
            if self.shared.faults().dies_now(state.num_execs) {
                return None;
            }
            let scripted = (self.shared.script)(request, &mut state.files);
            Some(scripted.unwrap_or_else(|| self.builtin(request, state)))
        })?;
        reply.ok_or_else(|| {
            self.shared.world().sandboxes.remove(&self.id);
            died(&self.id, Death::Killed)
        })
    }

    /// What befalls the command that was just counted.
    async fn trouble(&self) -> Result<(), SandboxError> {
        let num_execs = self.with(|state| state.num_execs)?;
        let trouble = self.shared.faults().trouble_at_exec;
        match trouble.filter(|(at, _)| *at == num_execs).map(|(_, trouble)| trouble) {
            None => Ok(()),
            Some(FakeTrouble::Refused) => Err(SandboxError::Backend {
                doing: "start a command".into(),
                source: "the test wants it to fail".into(),
            }),
            Some(FakeTrouble::UsedUp) => Err(SandboxError::UsedUp { what: "processes" }),
            Some(FakeTrouble::Hangs) => std::future::pending().await,
        }
    }

    fn builtin(&self, request: &ExecRequest, state: &mut State) -> FakeReply {
        if let [listen, port] = request.command.as_slice()
            && listen == "listen"
        {
            return match port.parse() {
                Ok(port) if state.listening.insert(port) => FakeReply::exited(0, ""),
                _ => FakeReply::failed(1, format!("listen: {port}: cannot be had\n")),
            };
        }
        let mut env = self.spec.env.clone();
        env.extend(request.env.clone());
        let mut at = Surroundings {
            files: &mut state.files,
            workdir: request.workdir.as_deref().unwrap_or(self.workdir()),
            env,
            is_writable: &|path| self.check_writable(path).is_ok(),
        };
        match request.command.as_slice() {
            [sh, flag, script] if sh == "sh" && flag == "-c" => {
                run_script(script, request.stdin.clone(), &mut at)
            }
            words => {
                let words: Vec<&str> = words.iter().map(String::as_str).collect();
                at.run(&words, request.stdin.clone())
            }
        }
    }
}

#[async_trait]
impl Sandbox for FakeSandbox {
    fn id(&self) -> &str {
        &self.id
    }

    fn spec(&self) -> &SandboxSpec {
        &self.spec
    }

    fn capabilities(&self) -> Capabilities {
        CAPABILITIES
    }

    async fn exec_streaming(
        &self,
        request: &ExecRequest,
        sink: &mut dyn OutputSink,
    ) -> Result<ExecResult, SandboxError> {
        let began = Instant::now();
        if request.user.is_some() {
            return Err(super::refuse("run as another user"));
        }
        let mut ends = self.with(|state| state.ends.subscribe())?;
        let mut reply = self.reply(request)?;
        self.trouble().await?;
        let limit = request.timeout.unwrap_or(self.spec.lifetimes.exec());
        if let Some(asked) = service::ask(&self.spec, request, limit).await {
            reply = asked;
        }
        let takes = reply.takes + self.shared.faults().exec_takes;
        let is_in_time = tokio::select! {
            in_time = timeout(limit, sleep(takes)) => Some(in_time.is_ok()),
            // Fails where the sandbox is gone, which is told below.
            _ = ends.changed() => None,
        };
        // It may have been closed or killed meanwhile.
        self.with(|_| ())?;
        let mut result = ExecResult {
            end: match is_in_time {
                Some(true) => reply.end,
                Some(false) => ExecEnd::TimedOut,
                None => ExecEnd::Signalled { signal: 9 },
            },
            stdout: Captured::new(request.output_limit_bytes),
            stderr: Captured::new(request.output_limit_bytes),
            wall: began.elapsed(),
        };
        if is_in_time == Some(true) {
            for (stream, bytes, captured) in [
                (Stream::Stdout, &reply.stdout, &mut result.stdout),
                (Stream::Stderr, &reply.stderr, &mut result.stderr),
            ] {
                if !bytes.is_empty() {
                    captured.push(bytes);
                    sink.output(stream, bytes);
                }
            }
        }
        Ok(result)
    }

    async fn spawn(&self, _: &ExecRequest) -> Result<Process, SandboxError> {
        Err(super::refuse("start a process to talk to"))
    }

    async fn spawn_pty(&self, _: &ExecRequest, _: PtySize) -> Result<PtyProcess, SandboxError> {
        Err(super::refuse("start a process on a terminal"))
    }

    async fn connect_within(
        &self,
        port: u16,
        patience: Duration,
    ) -> Result<ByteStream, SandboxError> {
        connect_by(port, patience, async || {
            let (listens, ends, number) = self.with(|state| {
                state.num_connects += 1;
                (state.listening.contains(&port), state.ends.subscribe(), state.num_connects)
            })?;
            if self.shared.faults().fails_at_connect == Some(number) {
                return Err(SandboxError::Backend {
                    doing: "connect to the sandbox".into(),
                    source: "the test wants it to fail".into(),
                });
            }
            let service = self.shared.services().get(&port).cloned();
            let service = service.or_else(|| listens.then(service::echo));
            let service = service.ok_or(SandboxError::NotListening { port })?;
            Ok(service::connect(&*service, ends))
        })
        .await
    }

    async fn open_shell(&self, options: &ShellOptions) -> Result<Box<dyn Shell>, SandboxError> {
        self.with(|_| ())?;
        if options.user.is_some() {
            return Err(super::refuse("run as another user"));
        }
        let workdir = self.absolute(options.workdir.as_deref().unwrap_or(self.workdir()))?;
        let sandbox = Self {
            id: self.id.clone(),
            spec: self.spec.clone(),
            shared: self.shared.clone(),
            is_closed: self.is_closed.clone(),
            is_owner: false,
        };
        let output_limit_bytes = options.output_limit_bytes;
        Ok(Box::new(FakeShell { sandbox, workdir, output_limit_bytes, is_closed: false }))
    }

    async fn read_file(&self, path: &str, limit_bytes: u64) -> Result<Vec<u8>, SandboxError> {
        let place = self.absolute(path)?;
        let bytes = self.with(|state| state.files.file(&place).map(<[u8]>::to_vec))??;
        if bytes.len() as u64 > limit_bytes {
            return Err(SandboxError::TooLarge { path: path.to_owned(), limit_bytes });
        }
        Ok(bytes)
    }

    async fn write_file(&self, path: &str, bytes: &[u8], mode: u32) -> Result<(), SandboxError> {
        let place = self.absolute(path)?;
        self.check_writable(&place)?;
        self.with(|state| state.files.put(&place, bytes.to_vec(), mode))?
    }

    async fn list_files(&self, path: &str) -> Result<Vec<FileEntry>, SandboxError> {
        let place = self.absolute(path)?;
        self.with(|state| state.files.list(&place))?
    }

    async fn upload_tar(&self, path: &str, archive: &Path) -> Result<(), SandboxError> {
        let place = self.absolute(path)?;
        self.check_writable(&place)?;
        let source = archive.to_owned();
        let reading = tokio::task::spawn_blocking(move || {
            check_tar(&source)?;
            std::fs::read(&source).map_err(|error| SandboxError::Host {
                doing: "read archive",
                path: source,
                source: error,
            })
        });
        let bytes = reading.await.expect("reading does not panic")?;
        self.with(|state| state.files.unpack(&place, &bytes))?
    }

    async fn download_tar(
        &self,
        path: &str,
        archive: &Path,
        limit_bytes: u64,
    ) -> Result<(), SandboxError> {
        let place = self.absolute(path)?;
        let bytes = self.with(|state| state.files.pack(&place))??;
        let mut part = PartFile::create(path, archive, limit_bytes).await?;
        part.write(&bytes).await?;
        part.finish().await
    }

    async fn end_all(&self) -> Result<(), SandboxError> {
        self.with(|state| {
            state.listening.clear();
            state.ends.send_modify(|number| *number += 1);
        })
    }

    async fn set_network(&self, network: &NetworkPolicy) -> Result<(), SandboxError> {
        self.with(|_| ())?;
        match *network == self.spec.network {
            true => Ok(()),
            false => Err(super::refuse("change the network of a sandbox that runs")),
        }
    }

    async fn changes(&self, limit: usize) -> Result<Changes, SandboxError> {
        let found = self.with(|state| state.files.changes(&state.base))?;
        Ok(Changes::settle(found, &self.spec, limit))
    }

    async fn snapshot(&self) -> Result<Snapshot, SandboxError> {
        let files = self.with(|state| state.files.clone())?;
        let id = format!("fake-snapshot-{}", nonce());
        self.shared.world().snapshots.insert(id.clone(), files);
        Ok(Snapshot { backend: NAME.to_owned(), id, spec: self.spec.clone() })
    }

    async fn fork(&self) -> Result<Box<dyn Sandbox>, SandboxError> {
        let files = self.with(|state| state.files.clone())?;
        Ok(Box::new(self.shared.make(&self.spec, files.clone(), files).await?))
    }

    async fn stats(&self) -> Result<SandboxStats, SandboxError> {
        let disk_bytes = Some(self.with(|state| state.files.size_bytes())?);
        Ok(SandboxStats { disk_bytes, ..SandboxStats::default() })
    }

    async fn check(&self) -> Result<(), SandboxError> {
        self.with(|_| ())
    }

    async fn close(&self) -> Result<(), SandboxError> {
        let takes = {
            let mut faults = self.shared.faults();
            if faults.failing_closes > 0 {
                faults.failing_closes -= 1;
                return Err(SandboxError::Backend {
                    doing: format!("close sandbox `{}`", self.id),
                    source: "the test wants it to fail".into(),
                });
            }
            faults.close_takes
        };
        if !self.is_closed.swap(true, Ordering::SeqCst) {
            sleep(takes).await;
        }
        self.shared.world().sandboxes.remove(&self.id);
        Ok(())
    }
}

impl Drop for FakeSandbox {
    fn drop(&mut self) {
        if self.is_owner {
            self.shared.world().sandboxes.remove(&self.id);
        }
    }
}

/// A shell that knows `cd` and runs everything else as a command.
struct FakeShell {
    sandbox: FakeSandbox,
    workdir: String,
    output_limit_bytes: usize,
    is_closed: bool,
}

#[async_trait]
impl Shell for FakeShell {
    async fn run(&mut self, command: &str, timeout: Duration) -> Result<ShellResult, SandboxError> {
        if self.is_closed {
            return Err(died(&self.sandbox.id, Death::Closed));
        }
        let mut request = ExecRequest::sh(command).with_timeout(timeout);
        if let Some(path) = command.trim().strip_prefix("cd ") {
            let place = normalise(path.trim(), &self.workdir)?;
            let is_folder = self.sandbox.with(|state| state.files.list(&place).is_ok())?;
            if is_folder {
                self.workdir = place;
            }
            request = ExecRequest::new([if is_folder { "true" } else { "false" }]);
        }
        request.workdir = Some(self.workdir.clone());
        request.output_limit_bytes = self.output_limit_bytes;
        let ExecResult { end, stdout, stderr, wall } = self.sandbox.exec(&request).await?;
        Ok(ShellResult { end, stdout, stderr, restarted: false, wall })
    }

    async fn close(&mut self) -> Result<(), SandboxError> {
        self.is_closed = true;
        Ok(())
    }
}
