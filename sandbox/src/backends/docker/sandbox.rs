//! A container as a sandbox.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use async_trait::async_trait;
use bollard::errors::Error;
use bollard::models::{ContainerConfig, ContainerInspectResponse};
use bollard::query_parameters::{
    CommitContainerOptionsBuilder, InspectContainerOptionsBuilder, KillContainerOptionsBuilder,
};
use tokio::runtime::Handle;
use tokio::time::timeout;

use super::container::{self, Hold, Started};
use super::conversation::{Conversation, Input, Said, Status, Surroundings};
use super::dial::Dialer;
use super::engine::{Engine, SIGN_OF_LIFE, SLOW_REQUEST, is_unreachable, message, status, within};
use super::labels::{SNAPSHOT, Tag};
use super::process::Loss;
use super::reach::Reach;
use super::{NAME, image, process, reap, shell};
use crate::byte_stream::connect_by;
use crate::sandbox::MUCH_BYTES;
use crate::set_up::set_up;
use crate::{
    ByteStream, Capabilities, CapabilitySet, Captured, Changes, Death, ExecEnd, ExecRequest,
    ExecResult, FileEntry, NetworkPolicy, OutputSink, Process, PtyProcess, PtySize, Sandbox,
    SandboxError, SandboxSpec, SandboxStats, Shell, ShellOptions, Snapshot, Stream,
};

/// How long after a deadline the helper may take to say that it kept it. Ending what resists takes
/// it ten seconds at most, and a loaded machine its time.
const GRACE: Duration = Duration::from_secs(30);
/// Milliseconds that are waited, over and over, for what is swept away to make room. The first process
/// may take its time on a loaded machine.
pub(super) const ROOM_MS: [u64; 6] = [0, 250, 500, 1000, 2000, 4000];

/// Who carries connections where root inside has capabilities; no image gives this number to anybody.
const CARRIER: &str = "65533:65533";

/// How long the engine may take to add up the sizes of a container's files, and how long counting them may take where that says too
/// little: together less than [`Evidence::of`](crate::Evidence::of) waits.
const LOOK_AT_SIZE: Duration = Duration::from_secs(8);
const COUNT: Duration = Duration::from_secs(6);

/// A sandbox of the docker backend.
pub(super) struct DockerSandbox {
    pub(super) shared: Arc<Shared>,
}

/// What a sandbox and its shells have in common.
pub(super) struct Shared {
    pub(super) engine: Arc<Engine>,
    pub(super) name: String,
    pub(super) workdir: String,
    pub(super) spec: SandboxSpec,
    expires: SystemTime,
    /// When it had just been made.
    began: Instant,
    /// Folders that it can write to and that are of no image that is made of it.
    beside: Vec<String>,
    /// Users that commands named, whose processes the first process may not be able to end.
    users: Mutex<BTreeSet<String>>,
    closed: AtomicBool,
    /// Whether the engine's mark for a kill for memory is from an earlier command.
    memory_kill_known: AtomicBool,
    /// How often the first process has ended everything else; held while it does.
    pub(super) num_ended: tokio::sync::Mutex<u32>,
    /// The image of the fork that this is, removed with it.
    own_image: Option<String>,
    /// What it reaches now.
    pub(super) reach: Reach,
    /// The way in.
    pub(super) dialer: Dialer,
    /// Until somebody has tried to remove it.
    hold: Mutex<Option<Hold>>,
    runtime: Handle,
}

impl DockerSandbox {
    /// Takes over a container that runs.
    pub(super) fn new(
        engine: Arc<Engine>,
        started: Started,
        spec: SandboxSpec,
        own_image: Option<String>,
    ) -> Self {
        engine.live.fetch_add(1, Ordering::Relaxed);
        let expires = Tag::new(&spec).expires;
        let Started { name, hold, workdir, beside } = started;
        let reach = Reach::new(&name, &spec);
        Self {
            shared: Arc::new(Shared {
                reach,
                dialer: Dialer::default(),
                engine,
                name,
                workdir,
                spec,
                expires,
                began: Instant::now(),
                beside,
                users: Mutex::default(),
                closed: AtomicBool::new(false),
                memory_kill_known: AtomicBool::new(false),
                num_ended: tokio::sync::Mutex::default(),
                own_image,
                hold: Mutex::new(Some(hold)),
                runtime: Handle::current(),
            }),
        }
    }

    /// Makes sure that there is a way to the hosts of an allow-list.
    pub(super) async fn open_network(&self) -> Result<(), SandboxError> {
        self.shared.open_network().await
    }

    /// Closes the sandbox where making it did not come to its end.
    pub(super) async fn or_closed(
        &self,
        made: Result<(), SandboxError>,
    ) -> Result<(), SandboxError> {
        if made.is_err()
            && let Err(left) = self.close().await
        {
            // The first error tells more than this one; dropping tries again.
            tracing::warn!(error = %left, "could not remove a sandbox");
        }
        made
    }

    /// Runs the spec's set-up commands, once there is a network for them.
    pub(super) async fn set_up(&self) -> Result<(), SandboxError> {
        self.open_network().await?;
        set_up(&self.shared.spec, |request| async move { self.exec(&request).await }).await
    }

    /// What a copy of it is made from: the spec, with the network that it has now.
    fn present_spec(&self) -> SandboxSpec {
        SandboxSpec { network: self.shared.reach.network(), ..self.shared.spec.clone() }
    }

    async fn commit(&self) -> Result<String, SandboxError> {
        let shared = &self.shared;
        shared.check_open()?;
        if !shared.beside.is_empty() {
            let folders = shared.beside.join(", ");
            let what = format!("keep what lies in {folders}, which is of no image,");
            return Err(container::unsupported(&what));
        }
        let name = container::new_name();
        let options = CommitContainerOptionsBuilder::new()
            .container(&shared.name)
            .repo(reap::SNAPSHOTS)
            .tag(&name)
            .pause(true)
            .build();
        let config = ContainerConfig {
            labels: Some(Tag::new(&shared.spec).labels(SNAPSHOT)),
            ..Default::default()
        };
        match within(SLOW_REQUEST, shared.engine.docker.commit_container(options, config)).await {
            // Podman leaves out what tells an identity from a name.
            Ok(made) if made.id.starts_with("sha256:") => Ok(made.id),
            Ok(made) => Ok(format!("sha256:{}", made.id)),
            Err(error) => Err(shared.trouble("keep the sandbox's state", error).await),
        }
    }
}

impl Shared {
    /// Where a disk is full, it matters who has filled it, and an engine adds up the sizes of files: those that are empty count for
    /// nothing, what lies on volumes is not the container's, and of very many it does not know in time.
    async fn count_what_engines_do_not(&self, stats: &mut SandboxStats) {
        let mut folders = vec!["/".to_owned()];
        folders.extend(self.beside.iter().cloned());
        let counted = self.written(&folders, self.began.elapsed(), MUCH_BYTES, COUNT).await;
        match counted {
            Ok(bytes) => stats.disk_bytes = Some(bytes.max(stats.disk_bytes.unwrap_or(0))),
            Err(error) => tracing::warn!(
                sandbox = self.name, %error, "could not count what was written on a full disk"
            ),
        }
    }

    pub(super) fn check_open(&self) -> Result<(), SandboxError> {
        if self.closed.load(Ordering::Acquire) { Err(self.died(Death::Closed)) } else { Ok(()) }
    }

    pub(super) fn died(&self, death: Death) -> SandboxError {
        SandboxError::Died { sandbox: self.name.clone(), death }
    }

    /// Starts an operation of the helper.
    pub(super) async fn converse<'a>(
        &self,
        operation: Vec<String>,
        mut surroundings: Surroundings,
        input: Input<'a>,
    ) -> Result<Conversation<'a>, SandboxError> {
        self.check_open()?;
        // The sandbox's own folder may be gone; the helper goes where it is to be by itself.
        surroundings.workdir = Some("/".into());
        match Conversation::start(&self.engine, &self.name, operation, surroundings, input).await {
            Ok(conversation) => Ok(conversation),
            Err(error) => Err(self.trouble("start a command", error).await),
        }
    }

    /// As [`DockerSandbox::open_network`]; commands start only behind it.
    pub(super) async fn open_network(&self) -> Result<(), SandboxError> {
        self.reach.ensure(self).await
    }

    /// What an error of the engine means for this sandbox.
    pub(super) async fn trouble(&self, doing: &str, error: Error) -> SandboxError {
        if is_unreachable(&error) {
            // The next sandbox is not to find it out by itself.
            self.engine.health.failed(tokio::time::Instant::now());
            return self.died(Death::DaemonGone);
        }
        match self.death().await {
            Some(death) => self.died(death),
            None => self.engine.error(doing, error),
        }
    }

    /// Who carries connections: root, whom commands of other users cannot end; but where root inside may read
    /// everything, and so look into programs of its own, a user that is nobody's.
    pub(super) fn carrier(&self) -> &'static str {
        match self.spec.capabilities {
            CapabilitySet::None => "0",
            CapabilitySet::Packages => CARRIER,
        }
    }

    /// What a conversation that broke off means for this sandbox.
    pub(super) async fn broken(&self, doing: &str, said: String) -> SandboxError {
        for wait in [0, 50, 100, 200, 400, 800] {
            // The engine notices some time after the connection does.
            tokio::time::sleep(Duration::from_millis(wait)).await;
            if let Some(death) = self.death().await {
                return self.died(death);
            }
        }
        self.engine.error(doing, Error::DockerStreamError { error: said })
    }

    async fn inspect(&self, size: bool) -> Result<ContainerInspectResponse, Error> {
        let options = InspectContainerOptionsBuilder::new().size(size).build();
        let container = self.engine.docker.inspect_container(&self.name, Some(options));
        match within(SIGN_OF_LIFE, container).await {
            // Podman has states that Docker does not know; none of them matters here.
            Err(Error::JsonDataError { contents, .. }) => {
                let mut container: serde_json::Value = serde_json::from_str(&contents)?;
                if let Some(status) = container.pointer_mut("/State/Status") {
                    *status = serde_json::Value::Null;
                }
                Ok(serde_json::from_value(container)?)
            }
            container => container,
        }
    }

    /// Why it does not run, unless it does.
    pub(super) async fn death(&self) -> Option<Death> {
        if self.closed.load(Ordering::Acquire) {
            return Some(Death::Closed);
        }
        let over = SystemTime::now() > self.expires;
        match self.inspect(false).await {
            Ok(container) if is_running(&container) => None,
            Ok(container) => Some(death_of(&container)),
            Err(error) if status(&error) == Some(404) && over => Some(Death::Expired),
            Err(error) if status(&error) == Some(404) => Some(Death::Killed),
            // One that has nothing to say about a container for so long is as good as gone.
            Err(Error::RequestTimeoutError) => Some(Death::DaemonGone),
            Err(error) if is_unreachable(&error) => Some(Death::DaemonGone),
            Err(_) => None,
        }
    }

    /// Ends everything in the container that no living helper stands above, of all users.
    pub(super) async fn sweep(&self) -> Result<(), SandboxError> {
        let options = KillContainerOptionsBuilder::new().signal("SIGUSR1").build();
        let swept =
            within(SIGN_OF_LIFE, self.engine.docker.kill_container(&self.name, Some(options)))
                .await;
        match swept {
            Ok(()) => {
                // The first process does it at once, but says nothing.
                tokio::time::sleep(Duration::from_millis(200)).await;
                self.sweep_users().await
            }
            Err(error) => Err(self.trouble("end what is left in the sandbox", error).await),
        }
    }

    /// The first process has no power over processes of other users than its own: helpers of those
    /// users do the same for theirs.
    async fn sweep_users(&self) -> Result<(), SandboxError> {
        for user in self.named_users() {
            let surroundings = Surroundings { user: Some(user), ..Default::default() };
            let swept = async {
                let operation = vec!["sweep".to_owned()];
                let mut conversation =
                    self.converse(operation, surroundings, Input::Bytes(&[])).await?;
                loop {
                    match conversation.next().await {
                        Said::Stdout(_) | Said::Stderr(_) => {}
                        Said::Status(_) | Said::Broken(_) => return Ok::<_, SandboxError>(()),
                    }
                }
            };
            match timeout(GRACE, swept).await {
                // Where there is no process left for it, the caller waits and tries again.
                Ok(Err(error)) if !wants_processes(&error.to_string_with_source()) => {
                    return Err(error);
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Users that commands named beside the container's own.
    pub(super) fn named_users(&self) -> BTreeSet<String> {
        self.users.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Remembers a user who may leave processes behind.
    pub(super) fn remember_user(&self, user: Option<&str>) {
        if let Some(user) = user.filter(|user| self.spec.user.as_deref() != Some(user)) {
            let mut users = self.users.lock().unwrap_or_else(PoisonError::into_inner);
            users.insert(user.to_owned());
        }
    }

    /// Runs a command to its end.
    pub(super) async fn exec(&self, request: &ExecRequest) -> Result<ExecResult, SandboxError> {
        self.exec_streaming(request, &mut |_: Stream, _: &[u8]| {}).await
    }

    async fn exec_streaming(
        &self,
        request: &ExecRequest,
        sink: &mut dyn OutputSink,
    ) -> Result<ExecResult, SandboxError> {
        let begun = Instant::now();
        check_request(request)?;
        let timeout = request.timeout.unwrap_or_else(|| self.spec.lifetimes.exec());
        let mut waits = ROOM_MS.iter();
        loop {
            let run = self.run(request, timeout, sink);
            let patience = timeout.saturating_add(GRACE);
            let finished = match tokio::time::timeout(patience, run).await {
                Ok(finished) => finished?,
                Err(_) => {
                    // The helper neither ended nor said anything: the first process ends what
                    // it stands above, once the dropped connection has ended the helper.
                    self.sweep().await?;
                    let none = || Captured::new(request.output_limit_bytes);
                    Some(Finished { end: ExecEnd::TimedOut, stdout: none(), stderr: none() })
                }
            };
            if let Some(Finished { end, stdout, stderr }) = finished {
                return Ok(ExecResult { end, stdout, stderr, wall: begun.elapsed() });
            }
            let Some(&wait) = waits.next() else {
                return Err(SandboxError::UsedUp { what: "processes" });
            };
            // What earlier commands left in the background uses up all processes.
            self.sweep().await?;
            tokio::time::sleep(Duration::from_millis(wait)).await;
        }
    }

    /// Runs a command once. Absent: it could not be started for want of processes.
    async fn run(
        &self,
        request: &ExecRequest,
        timeout: Duration,
        sink: &mut dyn OutputSink,
    ) -> Result<Option<Finished>, SandboxError> {
        let begun = self.begin(request, None, Some(timeout), Input::Bytes(&request.stdin)).await?;
        let Some(mut conversation) = begun else { return Ok(None) };
        let mut stdout = Captured::new(request.output_limit_bytes);
        let mut stderr = Captured::new(request.output_limit_bytes);
        let said = loop {
            match self.hear(&mut conversation).await? {
                Said::Stdout(bytes) => {
                    stdout.push(&bytes);
                    sink.output(Stream::Stdout, &bytes);
                }
                Said::Stderr(bytes) => {
                    stderr.push(&bytes);
                    sink.output(Stream::Stderr, &bytes);
                }
                last => break last,
            }
        };
        let said = match said {
            // Then what came as output are the engine's words.
            Said::Broken(said)
                if said.is_empty() && conversation.never_started(&self.engine).await =>
            {
                Said::Broken(stdout.text().trim().to_owned())
            }
            said => said,
        };
        let Some((end, words)) = self.end(said, request).await? else { return Ok(None) };
        stderr.push(words.as_bytes());
        if !words.is_empty() {
            sink.output(Stream::Stderr, words.as_bytes());
        }
        Ok(Some(Finished { end, stdout, stderr }))
    }

    /// Starts a command, on a terminal of a size or with streams; without `timeout` it may run for ever.
    /// Absent: there is no room for its process.
    pub(super) async fn begin<'i>(
        &self,
        request: &ExecRequest,
        terminal: Option<PtySize>,
        timeout: Option<Duration>,
        input: Input<'i>,
    ) -> Result<Option<Conversation<'i>>, SandboxError> {
        let workdir = request.workdir.as_deref().unwrap_or(&self.workdir);
        let milliseconds = timeout.and_then(|timeout| u64::try_from(timeout.as_millis()).ok());
        let deadline = milliseconds.unwrap_or(u64::MAX).to_string();
        let heartbeat = self.engine.heartbeat();
        let name = if terminal.is_some() { "pty" } else { "run" };
        let mut operation = vec![name.to_owned(), deadline, heartbeat];
        operation.extend(
            terminal.iter().flat_map(|size| [size.rows, size.columns]).map(|n| n.to_string()),
        );
        operation.push(workdir.into());
        operation.extend(request.command.iter().cloned());
        let mut env = BTreeMap::from_iter(self.reach.variables(&self.spec));
        env.extend(request.env.clone());
        let surroundings = Surroundings {
            user: request.user.clone(),
            env: env.iter().map(|(name, value)| format!("{name}={value}")).collect(),
            workdir: None,
        };
        self.remember_user(request.user.as_deref());
        let begun = async {
            self.open_network().await?;
            self.converse(operation, surroundings, input).await
        };
        match begun.await {
            Err(error) if wants_processes(&error.to_string_with_source()) => Ok(None),
            begun => begun.map(|begun| Some(begun.with_acknowledgements())),
        }
    }

    /// What a command's helper says next; an error where the sandbox is gone.
    pub(super) async fn hear(
        &self,
        conversation: &mut Conversation<'_>,
    ) -> Result<Said, SandboxError> {
        let mut is_gone = false;
        loop {
            if let Some(said) = conversation.listen().await {
                return Ok(said);
            }
            // Not a sign of life for a long time: a frozen or a starved sandbox may be the
            // reason, but so may an engine that is gone.
            match self.death().await {
                // One that only did not answer in time is asked twice.
                Some(Death::DaemonGone) if !is_gone => is_gone = true,
                Some(death) => return Err(self.died(death)),
                None => is_gone = false,
            }
        }
    }

    /// How a command ended by the last thing that was said, with words for its standard error. Absent: it
    /// could not be started for want of processes.
    pub(super) async fn end(
        &self,
        said: Said,
        request: &ExecRequest,
    ) -> Result<Option<(ExecEnd, String)>, SandboxError> {
        match said {
            Said::Status(Status { kind: Status::FAILED, value: 11, .. }) => Ok(None),
            Said::Status(status) => self.end_by(status, request).await.map(Some),
            Said::Broken(said) if wants_processes(&said) => Ok(None),
            Said::Broken(said) => Ok(Some((self.end_without_status(said).await?, String::new()))),
            Said::Stdout(_) | Said::Stderr(_) => unreachable!("output is not the last thing"),
        }
    }

    async fn end_by(
        &self,
        status: Status,
        request: &ExecRequest,
    ) -> Result<(ExecEnd, String), SandboxError> {
        let killed_for_memory = match status.memory_kills {
            Some(kills) => kills > 0,
            None => self.was_killed_for_memory().await,
        };
        if killed_for_memory {
            self.memory_kill_known.store(true, Ordering::Relaxed);
        }
        let reason = || std::io::Error::from_raw_os_error(status.value as i32);
        let mut words = String::new();
        let end = match status.kind {
            Status::EXITED if status.value == 137 && killed_for_memory => ExecEnd::OutOfMemory,
            Status::EXITED => ExecEnd::Exited { code: status.value as i32 },
            Status::SIGNALLED if status.value == 9 && killed_for_memory => ExecEnd::OutOfMemory,
            Status::SIGNALLED => ExecEnd::Signalled { signal: status.value as i32 },
            Status::TIMED_OUT => {
                if status.value != 0 {
                    // Something resists in the kernel; the first process goes on trying.
                    self.sweep().await?;
                }
                ExecEnd::TimedOut
            }
            Status::NO_FOLDER => {
                let path = request.workdir.clone().unwrap_or_else(|| self.workdir.clone());
                return Err(match status.value {
                    2 => SandboxError::NotFound { path },
                    _ => SandboxError::PathRefused { path, reason: reason().to_string() },
                });
            }
            Status::NO_PROGRAM => {
                let program = request.command.first().map_or("", String::as_str);
                words = format!("cannot run `{program}`: {}\n", reason());
                ExecEnd::Exited { code: if status.value == 2 { 127 } else { 126 } }
            }
            _ => {
                return Err(SandboxError::Backend {
                    doing: "run a command".into(),
                    source: Box::new(reason()),
                });
            }
        };
        Ok((end, words))
    }

    /// The helper is gone: with the container, or killed by what ran under it. Its children fell
    /// to the first process, which ends them now.
    async fn end_without_status(&self, said: String) -> Result<ExecEnd, SandboxError> {
        if !said.is_empty() {
            return Err(self.broken("run a command", said).await);
        }
        let killed_for_memory = self.was_killed_for_memory().await;
        self.sweep().await?;
        // A container that was killed may seem to run a moment longer; nothing starts in it.
        self.usage().await?;
        if killed_for_memory && !self.memory_kill_known.swap(true, Ordering::Relaxed) {
            return Ok(ExecEnd::OutOfMemory);
        }
        Ok(ExecEnd::Signalled { signal: 9 })
    }

    /// The engine's mark is gone when a container starts anew.
    pub(super) fn forget_memory_kill(&self) {
        self.memory_kill_known.store(false, Ordering::Relaxed);
    }

    async fn was_killed_for_memory(&self) -> bool {
        let container = self.inspect(false).await;
        container.ok().and_then(|container| container.state?.oom_killed).unwrap_or(false)
    }

    /// Removes the container and, for a fork, its image. What resists is left to the reaper.
    async fn remove(&self) -> Result<(), SandboxError> {
        // However this ends, or where it is given up, from then on nobody wants it.
        let _hold = self.hold.lock().unwrap_or_else(PoisonError::into_inner).take();
        self.reach.end().await;
        self.dialer.end().await;
        if let Some(image) = &self.own_image {
            reap::leave_image(&self.engine, image);
        }
        container::remove(&self.engine, &self.name).await?;
        reap::remove_left_images(&self.engine).await;
        Ok(())
    }

    /// Marks it closed; false if it was.
    fn retire(&self) -> bool {
        let first = !self.closed.swap(true, Ordering::AcqRel);
        if first {
            self.engine.live.fetch_sub(1, Ordering::Relaxed);
        }
        first
    }
}

struct Finished {
    end: ExecEnd,
    stdout: Captured,
    stderr: Captured,
}

/// Whether the engine says that the container's process limit is used up.
pub(super) fn wants_processes(said: &str) -> bool {
    let said = said.to_ascii_lowercase();
    // Of the kernel, of runc about the process that becomes the command, and of Go's runtime.
    let signs = [
        "resource temporarily unavailable",
        "procready not received",
        "read init-p",
        "fork/exec",
        "newosproc",
    ];
    signs.iter().any(|sign| said.contains(sign))
}

#[async_trait]
impl Sandbox for DockerSandbox {
    fn id(&self) -> &str {
        &self.shared.name
    }

    fn engine(&self) -> &str {
        self.shared.engine.host.address()
    }

    fn spec(&self) -> &SandboxSpec {
        &self.shared.spec
    }

    fn capabilities(&self) -> Capabilities {
        let all = self.shared.engine.capabilities();
        let is_whole = self.shared.beside.is_empty();
        Capabilities { snapshot: all.snapshot && is_whole, fork: all.fork && is_whole, ..all }
    }

    async fn exec_streaming(
        &self,
        request: &ExecRequest,
        sink: &mut dyn OutputSink,
    ) -> Result<ExecResult, SandboxError> {
        self.shared.exec_streaming(request, sink).await
    }

    async fn spawn(&self, request: &ExecRequest) -> Result<Process, SandboxError> {
        check_request(request)?;
        request.check_spawn(NAME)?;
        process::spawn(&self.shared, request, Loss::IsCleared).await
    }

    async fn spawn_pty(
        &self,
        request: &ExecRequest,
        size: PtySize,
    ) -> Result<PtyProcess, SandboxError> {
        check_request(request)?;
        request.check_spawn(NAME)?;
        process::spawn_pty(&self.shared, request, size).await
    }

    async fn connect_within(
        &self,
        port: u16,
        patience: Duration,
    ) -> Result<ByteStream, SandboxError> {
        let shared = &self.shared;
        connect_by(port, patience, || shared.dialer.connect(shared, port)).await
    }

    async fn open_shell(&self, options: &ShellOptions) -> Result<Box<dyn Shell>, SandboxError> {
        shell::open(&self.shared, options).await
    }

    async fn read_file(&self, path: &str, limit_bytes: u64) -> Result<Vec<u8>, SandboxError> {
        self.shared.read_file(path, limit_bytes).await
    }

    async fn write_file(&self, path: &str, bytes: &[u8], mode: u32) -> Result<(), SandboxError> {
        let written = self.shared.write_file(path, bytes, mode).await;
        written.map_err(|error| error.or_no_space(path, &self.shared.spec.limits))
    }

    async fn list_files(&self, path: &str) -> Result<Vec<FileEntry>, SandboxError> {
        self.shared.list_files(path).await
    }

    async fn upload_tar(&self, path: &str, archive: &Path) -> Result<(), SandboxError> {
        let unpacked = self.shared.upload_tar(path, archive).await;
        unpacked.map_err(|error| error.or_no_space(path, &self.shared.spec.limits))
    }

    async fn download_tar(
        &self,
        path: &str,
        archive: &Path,
        limit_bytes: u64,
    ) -> Result<(), SandboxError> {
        self.shared.download_tar(path, archive, limit_bytes).await
    }

    async fn end_all(&self) -> Result<(), SandboxError> {
        self.shared.end_all().await
    }

    async fn set_network(&self, network: &NetworkPolicy) -> Result<(), SandboxError> {
        self.shared.check_open()?;
        SandboxSpec { network: network.clone(), ..self.shared.spec.clone() }.validate()?;
        if !self.capabilities().can_change_network(&self.shared.reach.network(), network) {
            return Err(container::unsupported("change the network of a sandbox that runs"));
        }
        Reach::change(&self.shared, network).await
    }

    async fn changes(&self, limit: usize) -> Result<Changes, SandboxError> {
        self.shared.changes(limit).await
    }

    async fn snapshot(&self) -> Result<Snapshot, SandboxError> {
        let spec = self.present_spec();
        let id = self.commit().await?;
        Ok(Snapshot { backend: NAME.into(), id, spec })
    }

    async fn fork(&self) -> Result<Box<dyn Sandbox>, SandboxError> {
        let shared = &self.shared;
        let spec = self.present_spec();
        let kept = self.commit().await?;
        match container::start(&shared.engine, &spec, &kept).await {
            Ok(started) => {
                let engine = Arc::clone(&shared.engine);
                let fork = Self::new(engine, started, spec, Some(kept));
                fork.or_closed(fork.open_network().await).await?;
                Ok(Box::new(fork))
            }
            Err(error) => {
                if let Err(left) = reap::remove_image(&shared.engine, &kept).await {
                    tracing::warn!(image = kept, error = %left, "could not remove a snapshot");
                }
                Err(error)
            }
        }
    }

    async fn stats(&self) -> Result<SandboxStats, SandboxError> {
        let mut stats = self.shared.usage().await?;
        // The engine walks through all files for that.
        if let Ok(Ok(container)) = timeout(LOOK_AT_SIZE, self.shared.inspect(true)).await {
            stats.disk_bytes = container.size_rw.and_then(|bytes| u64::try_from(bytes).ok());
        }
        if stats.is_host_disk_full(&self.shared.spec.limits) {
            self.shared.count_what_engines_do_not(&mut stats).await;
        }
        stats.network = self.shared.reach.stats();
        // The relay is not the sandbox's, either.
        if self.shared.reach.is_relay_running().await {
            stats.pids = stats.pids.map(|pids| pids.saturating_sub(1));
        }
        if self.shared.dialer.is_running().await {
            stats.pids = stats.pids.map(|pids| pids.saturating_sub(1));
        }
        Ok(stats)
    }

    async fn check(&self) -> Result<(), SandboxError> {
        self.shared.check_open()?;
        match self.shared.inspect(false).await {
            Ok(container) if is_running(&container) => Ok(()),
            Ok(container) => Err(self.shared.died(death_of(&container))),
            Err(error) => Err(self.shared.trouble("look at the sandbox", error).await),
        }
    }

    async fn close(&self) -> Result<(), SandboxError> {
        self.shared.retire();
        self.shared.remove().await
    }
}

impl Drop for DockerSandbox {
    fn drop(&mut self) {
        if !self.shared.retire() {
            return;
        }
        let shared = Arc::clone(&self.shared);
        self.shared.runtime.spawn(async move {
            if let Err(error) = shared.remove().await {
                tracing::warn!(sandbox = shared.name, %error, "could not remove a sandbox");
            }
        });
    }
}

fn is_running(container: &ContainerInspectResponse) -> bool {
    container.state.as_ref().and_then(|state| state.running).unwrap_or(false)
}

/// What a container that does not run has died of.
fn death_of(container: &ContainerInspectResponse) -> Death {
    let state = container.state.as_ref();
    match state.and_then(|state| state.oom_killed) {
        Some(true) => Death::OutOfMemory,
        _ => Death::Killed,
    }
}

fn check_request(request: &ExecRequest) -> Result<(), SandboxError> {
    let variables = request.env.iter().flat_map(|(name, value)| [name, value]);
    let mut texts = request.command.iter().chain(variables).chain(&request.workdir);
    let odd_name = request.env.keys().any(|name| name.is_empty() || name.contains('='));
    if texts.any(|text| text.contains('\0')) || odd_name {
        return Err(SandboxError::InvalidSpec {
            problems: vec!["a command, folder or variable that no process can be given".into()],
        });
    }
    Ok(())
}

/// An error with what it came from, in which the engine's words are.
trait ToStringWithSource {
    fn to_string_with_source(&self) -> String;
}

impl ToStringWithSource for SandboxError {
    fn to_string_with_source(&self) -> String {
        match self {
            Self::Backend { doing, source } => format!("{doing}: {source}"),
            other => other.to_string(),
        }
    }
}

/// The engine's words about an image that a snapshot should have been.
pub(super) fn snapshot_missing(id: &str, error: &Error) -> SandboxError {
    image::missing(id, message(error))
}
