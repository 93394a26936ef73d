//! The sandbox of one episode, with the shell in it.

use std::sync::Arc;
use std::time::Duration;

use spar_core::Action;
use spar_sandbox::pool::{PooledSandbox, SandboxPool};
use spar_sandbox::{
    Carried, Evidence, ExecEnd, Fault, Image, Sandbox, SandboxError, SandboxSpec, Shell,
    ShellOptions, ShellResult,
};
use spar_tasks::graders::ScriptFinding as Finding;
use spar_tasks::{TaskFile, TerminalTask, TerminalVerifier, VERIFIER_FOLDER, VerifierSandbox};
use tokio::time::{Instant, timeout};

use super::Deadlines;
use super::deadlines::whole_script;
use crate::SandboxPhase::{Create, Fork, SetUp, Step, Verify};
use crate::toolsets::{Briefing, Hands, Worked};
use crate::{EnvironmentError, SandboxPhase, Sandboxes};

/// Bytes kept of each stream of commands that the agent does not see.
const ASIDE_LIMIT_BYTES: usize = 4096;
/// The longest a small command beside the agent's may take.
const ASIDE: Duration = Duration::from_secs(30);
/// The longest that is waited for what a fresh sandbox can do.
const CONTROL: Duration = Duration::from_secs(60);
/// The longest reward file.
const REWARD_LIMIT_BYTES: u64 = 4096;

/// The sandbox of one episode, with the shell in it.
pub(crate) struct Machine {
    pub(crate) sandbox: Arc<PooledSandbox>,
    shell: Box<dyn Shell>,
    /// Shells that were gone on from.
    left: Vec<Box<dyn Shell>>,
    /// Where fresh sandboxes come from.
    pub(crate) pool: Arc<SandboxPool>,
    /// Whether it took the place of the agent's to judge services from.
    pub(super) is_judges: bool,
    /// What the agent works with in the place of the shell.
    hands: Option<Hands>,
}

/// What came of a command of the agent.
pub(crate) enum Ran {
    /// It ended somehow.
    Ended(ShellResult),
    /// It could not even be started, for what it is.
    Refused(String),
    /// By what the agent did, nothing can be started any more.
    Lost(String),
}

impl Machine {
    /// Takes a sandbox from the pool and sets up the task in it.
    pub(super) async fn begin(
        sandboxes: &Sandboxes,
        task: &TerminalTask,
        deadlines: &Deadlines,
    ) -> Result<Self, EnvironmentError> {
        let spec = spec_of(sandboxes, task, deadlines);
        sandboxes.warm_up(&spec);
        Self::begin_of(sandboxes, &spec, task, deadlines).await
    }

    /// The same in a sandbox of this spec.
    pub(super) async fn begin_of(
        sandboxes: &Sandboxes,
        spec: &SandboxSpec,
        task: &TerminalTask,
        deadlines: &Deadlines,
    ) -> Result<Self, EnvironmentError> {
        let sandbox = Arc::new(sandboxes.pool.acquire(spec).await.map_err(at(Create))?);
        let set_up = timeout(deadlines.whole_set_up(), set_up(&sandbox, task, deadlines));
        let shell = in_time(SetUp, deadlines.whole_set_up(), set_up.await).map_err(at(SetUp))?;
        let pool = Arc::clone(&sandboxes.pool);
        Ok(Self { sandbox, shell, left: Vec::new(), pool, is_judges: false, hands: None })
    }

    /// A sandbox that is set up, and the agent's shell in it.
    pub(crate) fn of(
        sandbox: Arc<PooledSandbox>,
        shell: Box<dyn Shell>,
        pool: Arc<SandboxPool>,
    ) -> Self {
        Self { sandbox, shell, left: Vec::new(), pool, is_judges: false, hands: None }
    }

    /// The same, worked at with a toolset where there is one.
    pub(crate) fn with_hands(mut self, hands: Option<Hands>) -> Self {
        self.hands = hands;
        self
    }

    /// Has the agent work with these from now on, in the place of those before.
    pub(crate) fn take_up(&mut self, hands: Option<Hands>) {
        self.hands = hands;
    }

    /// Has the agent go on in a new shell of these options; what it left running in the one before runs on.
    pub(crate) async fn reopen(&mut self, options: &ShellOptions) -> Result<(), SandboxError> {
        let new = self.sandbox.open_shell(options).await?;
        self.left.push(std::mem::replace(&mut self.shell, new));
        Ok(())
    }

    /// The first message of a toolset that looks at the machine first; why there is none.
    pub(crate) async fn open(
        &mut self,
        briefing: &Briefing<'_>,
        deadlines: &Deadlines,
    ) -> Result<Result<String, String>, EnvironmentError> {
        let misused = EnvironmentError::Misused { call: "reset", when: "without a toolset" };
        let mut hands = self.hands.take().ok_or(misused)?;
        let opened = hands.open(briefing, self, deadlines).await;
        self.hands = Some(hands);
        opened
    }

    /// Carries out an action of the agent with its toolset.
    pub(crate) async fn work(
        &mut self,
        action: &Action,
        deadlines: &Deadlines,
    ) -> Result<Worked, EnvironmentError> {
        let misused = EnvironmentError::Misused { call: "step", when: "without a toolset" };
        let mut hands = self.hands.take().ok_or(misused)?;
        let worked = hands.act(action, self, deadlines).await;
        self.hands = Some(hands);
        worked
    }

    /// Runs a command of the agent.
    pub(crate) async fn run(
        &mut self,
        command: &str,
        deadlines: &Deadlines,
    ) -> Result<Ran, EnvironmentError> {
        let whole = deadlines.whole_command();
        let run = timeout(whole, self.shell.run(command, deadlines.command)).await;
        let error = match in_time(Step, whole, run) {
            Ok(result) => return Ok(Ran::Ended(result)),
            Err(error) => error,
        };
        let reason = own_fault(&self.sandbox, &self.pool, Step, error).await?;
        Ok(match reason.is_of_request {
            true => Ran::Refused(reason.text),
            false => Ran::Lost(reason.text),
        })
    }

    /// A second machine with the same files. Its shell has the same working directory and exported
    /// variables; where snapshots hold memory, everything of it. Absent where the toolset cannot be copied.
    pub(super) async fn fork(
        &mut self,
        task: &TerminalTask,
    ) -> Result<Option<Self>, EnvironmentError> {
        self.fork_with(options(task)).await
    }

    /// The same, with a shell of these options.
    pub(crate) async fn fork_with(
        &mut self,
        options: ShellOptions,
    ) -> Result<Option<Self>, EnvironmentError> {
        let hands = match &self.hands {
            None => None,
            Some(hands) => match hands.fork() {
                Some(hands) => Some(hands),
                None => return Ok(None),
            },
        };
        let forked = self.forked(options).await.map_err(at(Fork))?;
        Ok(Some(forked.with_hands(hands)))
    }

    async fn forked(&mut self, mut options: ShellOptions) -> Result<Self, SandboxError> {
        let capabilities = self.sandbox.capabilities();
        let mut exported = None;
        if !capabilities.memory_in_snapshot {
            let workdir = self.shell.run("pwd", ASIDE).await?.stdout.text();
            options.workdir = Some(workdir.trim_end_matches('\n').to_owned());
            if capabilities.posix {
                // Complete, however little the agent is shown.
                let listing = format!("export -p > {EXPORTED}");
                expect_success(self.shell.run(&listing, ASIDE).await?, &listing)?;
                exported = Some(EXPORTED);
            }
        }
        let sandbox = Arc::new(self.sandbox.fork_pooled().await?);
        let mut shell = sandbox.open_shell(&options).await?;
        if let Some(path) = exported {
            let script = format!(". {path}; rm -f {path}");
            // Variables that cannot be set, such as those of the shell itself, are no failure.
            shell.run(&script, ASIDE).await?;
            self.shell.run(&format!("rm -f {path}"), ASIDE).await?;
        }
        let pool = Arc::clone(&self.pool);
        Ok(Self { sandbox, shell, left: Vec::new(), pool, is_judges: false, hands: None })
    }

    /// Ends everything that the agent left running, brings in the verifier's files, and runs it: here,
    /// or in a new sandbox with what the script carries over. Where the agent
    /// itself has made that impossible, nothing is solved.
    pub(super) async fn verify(
        &mut self,
        sandboxes: &Sandboxes,
        task: &TerminalTask,
        script: &TerminalVerifier,
        deadlines: &Deadlines,
    ) -> Result<Finding, EnvironmentError> {
        if !script.service_ports.is_empty() {
            return self.verify_services(sandboxes, task, script, deadlines).await;
        }
        let whole = whole_script(script);
        // 1. Nothing of the agent runs from here on, its shell included, or nothing is judged.
        let ended = timeout(whole, self.sandbox.end_all()).await;
        if let Err(error) = in_time(Verify, whole, ended) {
            return unjudged(&self.sandbox, &self.pool, error).await;
        }
        if script.sandbox == VerifierSandbox::Fresh {
            let carried = timeout(whole, self.take_out(task, script)).await;
            let carried = match in_time(Verify, whole, carried) {
                Ok(Ok(carried)) => carried,
                Ok(Err(finding)) => return Ok(finding),
                Err(error) => return unjudged(&self.sandbox, &self.pool, error).await,
            };
            // Given back first: episodes that each hold a sandbox must not wait for each other.
            self.sandbox.close().await.map_err(at(Verify))?;
            *self = Self::begin(sandboxes, task, deadlines).await.map_err(in_verifying)?;
            let brought = timeout(whole, self.bring_in(task, script, &carried)).await;
            if let Err(error) = in_time(Verify, whole, brought) {
                return unjudged(&self.sandbox, &self.pool, error).await;
            }
        }
        let judged = timeout(whole, self.judged(task, script)).await;
        match in_time(Verify, whole, judged) {
            Ok(finding) => Ok(finding),
            Err(error) => unjudged(&self.sandbox, &self.pool, error).await,
        }
    }

    /// What the script carries over; a finding where it is unfit.
    pub(super) async fn take_out(
        &mut self,
        task: &TerminalTask,
        script: &TerminalVerifier,
    ) -> Result<Result<Carried, Finding>, SandboxError> {
        let paths: Vec<_> = script.carry.iter().map(|path| task.absolute(path)).collect();
        let taken = Carried::take(&*self.sandbox, &paths, script.carry_limit_bytes).await;
        match taken {
            Ok(carried) => Ok(Ok(carried)),
            // Only the agent can have made it so.
            Err(error @ (SandboxError::PathRefused { .. } | SandboxError::TooLarge { .. })) => {
                Ok(Err(nothing(format!("could not {error}"))))
            }
            Err(error) => Err(error),
        }
    }

    /// Puts what was carried over in the place of what a new sandbox has there.
    pub(super) async fn bring_in(
        &mut self,
        task: &TerminalTask,
        script: &TerminalVerifier,
        carried: &Carried,
    ) -> Result<(), SandboxError> {
        for path in &script.carry {
            let clear = format!("rm -rf {}", word(&task.absolute(path)));
            expect_success(self.shell.run(&clear, ASIDE).await?, &clear)?;
        }
        carried.bring(&*self.sandbox).await
    }

    pub(super) async fn judged(
        &mut self,
        task: &TerminalTask,
        script: &TerminalVerifier,
    ) -> Result<Finding, SandboxError> {
        let limit = Duration::from_secs(script.verify_secs);
        // 2. Nothing that the agent left takes the place of what comes.
        let options = ShellOptions {
            output_limit_bytes: ASIDE_LIMIT_BYTES,
            workdir: Some("/".to_owned()),
            ..ShellOptions::default()
        };
        let mut shell = self.sandbox.open_shell(&options).await?;
        let reward_file = script.reward_file.as_deref().map(|file| task.absolute(file));
        let cleared = [Some(VERIFIER_FOLDER.to_owned()), reward_file.clone()];
        for path in cleared.into_iter().flatten() {
            shell.run(&format!("rm -rf {}", word(&path)), ASIDE).await?;
        }
        // 3. The verifier comes in.
        for (path, file) in &script.files {
            match write(&*self.sandbox, &format!("{VERIFIER_FOLDER}/{path}"), file).await {
                // Only the agent can have made a path unfit, so it is no failure of the sandbox.
                Err(SandboxError::PathRefused { path, .. }) => {
                    return Ok(nothing(format!("`{path}` cannot be written")));
                }
                // Nor is a disk that it has filled.
                Err(SandboxError::NoSpace { path }) => {
                    return Ok(nothing(format!("there is no room left for `{path}`")));
                }
                written => written?,
            }
        }
        // 4. It judges.
        if !shell.run(&format!("cd {}", word(&task.workdir)), ASIDE).await?.end.is_success() {
            return Ok(nothing(format!("`{}` is gone", task.workdir)));
        }
        let result = shell.run(&script.command, limit).await?;
        tracing::debug!(
            end = %result.end, stdout = result.stdout.text(), stderr = result.stderr.text(),
            "a verifier ended"
        );
        match (result.end, reward_file) {
            (ExecEnd::Exited { code: 0 }, None) => Ok(Finding { reward: 1.0, reason: None }),
            (ExecEnd::Exited { code: 0 }, Some(path)) => self.read_reward(&path).await,
            (end, _) => Ok(nothing(format!("the verifier {end}"))),
        }
    }

    async fn read_reward(&mut self, path: &str) -> Result<Finding, SandboxError> {
        match self.sandbox.read_file(path, REWARD_LIMIT_BYTES).await {
            Ok(bytes) => Ok(parse_reward(path, &bytes)),
            Err(
                SandboxError::NotFound { .. }
                | SandboxError::PathRefused { .. }
                | SandboxError::TooLarge { .. },
            ) => Ok(nothing(format!("the verifier left no `{path}`"))),
            Err(error) => Err(error),
        }
    }

    /// Removes the sandbox.
    pub(crate) async fn close(&mut self) -> Result<(), EnvironmentError> {
        self.sandbox.close().await.map_err(at(SandboxPhase::Close))
    }

    /// Its id, as the backend knows it.
    pub(super) fn id(&self) -> &str {
        self.sandbox.id()
    }
}

/// Why an agent is to answer for what went wrong in its sandbox.
pub(crate) struct OwnFault {
    pub(crate) text: String,
    /// The command itself could not be: the sandbox goes on.
    pub(crate) is_of_request: bool,
}

/// Why the agent itself is to answer for an error, which is handed back where it is not.
pub(crate) async fn own_fault(
    sandbox: &PooledSandbox,
    pool: &SandboxPool,
    phase: SandboxPhase,
    error: SandboxError,
) -> Result<OwnFault, EnvironmentError> {
    // What is judged may have to run on.
    let may_end = phase != Verify;
    weighed(sandbox, pool, phase, error, may_end).await
}

/// The same; where the host's disk is full, all that runs in the sandbox may be ended to see whether it has taken the room.
async fn weighed(
    sandbox: &PooledSandbox,
    pool: &SandboxPool,
    phase: SandboxPhase,
    error: SandboxError,
    may_end: bool,
) -> Result<OwnFault, EnvironmentError> {
    let mut evidence = Evidence::of(sandbox).await;
    if error.needs_control(&evidence) {
        evidence.control = control(sandbox.spec(), pool).await;
    }
    let mut fault = error.fault(&evidence);
    let is_of_room =
        evidence.is_host_disk_full && (error.is_host_disk_full() || may_be_of_room(&error));
    if fault == Fault::Infrastructure && is_of_room && may_end && held_room(sandbox).await {
        fault = Fault::Agent;
    }
    tracing::warn!(
        sandbox = sandbox.id(), %error, ?evidence, ?fault, "a sandbox could not do its part"
    );
    match fault {
        // Whatever it broke off, what has to be done about it is told.
        Fault::Infrastructure if evidence.is_host_disk_full && may_be_of_room(&error) => {
            Err(at(phase)(SandboxError::DiskFull { doing: with_sources(&error) }))
        }
        Fault::Infrastructure => Err(at(phase)(error)),
        Fault::Agent => {
            let is_of_request = matches!(
                error,
                SandboxError::NotFound { .. }
                    | SandboxError::PathRefused { .. }
                    | SandboxError::TooLarge { .. }
            );
            Ok(OwnFault { text: with_sources(&error), is_of_request })
        }
    }
}

/// Ends all that runs in a sandbox where the host's disk is full: whether there is room behind that, so that what ran there had
/// taken it. Files that were removed and are still open are counted nowhere, and go with who holds them.
pub(crate) async fn held_room(sandbox: &PooledSandbox) -> bool {
    if let Err(error) = sandbox.end_all().await {
        tracing::warn!(sandbox = sandbox.id(), %error, "could not end what fills a disk");
        return false;
    }
    match timeout(ASIDE, sandbox.stats()).await {
        Ok(Ok(stats)) => {
            stats.free_disk_bytes.is_some() && !stats.is_host_disk_full(&sandbox.spec().limits)
        }
        Ok(Err(_)) | Err(_) => false,
    }
}

/// Whether a full disk may be all that is behind an error that does not say so.
fn may_be_of_room(error: &SandboxError) -> bool {
    !error.is_host_disk_full()
        && matches!(
            error,
            SandboxError::Backend { .. }
                | SandboxError::Host { .. }
                | SandboxError::ConnectRefused { .. }
                | SandboxError::ConnectTimedOut { .. }
        )
}

/// What is found where an error kept the verifier from judging: nothing is solved, if the agent is to
/// answer for that.
pub(super) async fn unjudged(
    sandbox: &PooledSandbox,
    pool: &SandboxPool,
    error: SandboxError,
) -> Result<Finding, EnvironmentError> {
    let OwnFault { text, .. } = weighed(sandbox, pool, Verify, error, true).await?;
    Ok(nothing(format!("the agent left nothing that can be judged: could not {text}")))
}

/// Whether a fresh sandbox of the same spec can run a command in a shell just now; absent where none
/// is to be had for want of room, or for what it is made from.
async fn control(spec: &SandboxSpec, pool: &SandboxPool) -> Option<bool> {
    let fresh = match timeout(CONTROL, pool.acquire(spec)).await {
        Ok(Ok(fresh)) => fresh,
        // Sooner than room is waited for: the backend fails, or has kept failing.
        Ok(Err(error)) => return error.is_backend_failure().then_some(false),
        Err(_) => return None,
    };
    let works = timeout(CONTROL, async {
        let mut shell = fresh.open_shell(&ShellOptions::default()).await?;
        let result = shell.run("true", ASIDE).await?;
        shell.close().await?;
        // An interpreter knows no `true`; that it answers is all there is to know.
        Ok::<bool, SandboxError>(matches!(result.end, ExecEnd::Exited { .. }))
    });
    let works = works.await.is_ok_and(|ran| ran.unwrap_or(false));
    if let Err(error) = fresh.close().await {
        tracing::warn!(%error, "could not close a sandbox");
    }
    Some(works)
}

pub(super) fn nothing(reason: String) -> Finding {
    Finding { reward: 0.0, reason: Some(reason) }
}

/// Where exported variables wait for a fork.
const EXPORTED: &str = "/tmp/.spar-exported";

/// What the sandbox of a task is made from.
pub(super) fn spec_of(
    sandboxes: &Sandboxes,
    task: &TerminalTask,
    deadlines: &Deadlines,
) -> SandboxSpec {
    let image = match &task.image {
        Some(image) => {
            let Ok(image) = image.parse::<Image>();
            image
        }
        None => sandboxes.image.clone(),
    };
    for name in &task.secret_env {
        if let Some(value) = task.env.get(name)
            && let Err(error) = spar_core::redaction::keep(name, value)
        {
            tracing::warn!(%error, "a secret of a task is not looked for");
        }
    }
    SandboxSpec {
        limits: task.limits.clone(),
        network: task.network.clone(),
        capabilities: task.capabilities,
        env: task.env.clone(),
        workdir: Some(task.workdir.clone()),
        lifetimes: deadlines.lifetimes(),
        ..SandboxSpec::new(image)
    }
}

fn options(task: &TerminalTask) -> ShellOptions {
    ShellOptions {
        output_limit_bytes: task.output_limit_bytes,
        workdir: Some(task.workdir.clone()),
        ..ShellOptions::default()
    }
}

/// The files, the commands, and the agent's shell.
async fn set_up(
    sandbox: &PooledSandbox,
    task: &TerminalTask,
    deadlines: &Deadlines,
) -> Result<Box<dyn Shell>, SandboxError> {
    for (path, file) in &task.files {
        write(sandbox, &task.absolute(path), file).await?;
    }
    if !task.setup.is_empty() {
        // In a shell of its own, which ends with it: the agent's is new.
        let options = ShellOptions { output_limit_bytes: ASIDE_LIMIT_BYTES, ..options(task) };
        let mut shell = sandbox.open_shell(&options).await?;
        let began = Instant::now();
        for command in &task.setup {
            let left = deadlines.set_up.saturating_sub(began.elapsed());
            expect_success(shell.run(command, left).await?, command)?;
        }
        shell.close().await?;
    }
    sandbox.open_shell(&options(task)).await
}

fn expect_success(result: ShellResult, command: &str) -> Result<(), SandboxError> {
    if result.end.is_success() {
        return Ok(());
    }
    let output = result.stdout.text() + &result.stderr.text();
    Err(SandboxError::Setup {
        command: command.to_owned(),
        end: result.end,
        output: output.trim().to_owned(),
    })
}

async fn write(sandbox: &dyn Sandbox, path: &str, file: &TaskFile) -> Result<(), SandboxError> {
    let bytes = match (file.text(), file.host()) {
        (Some(text), _) => text.as_bytes().to_vec(),
        (None, Some(host)) => {
            let place = host.clone();
            tokio::task::spawn_blocking(move || std::fs::read(place))
                .await
                .expect("reading does not panic")
                .map_err(|source| SandboxError::Host {
                    doing: "read the task's file",
                    path: host.clone(),
                    source,
                })?
        }
        (None, None) => Vec::new(),
    };
    sandbox.write_file(path, &bytes, file.mode()).await
}

/// `text` as one word of a shell.
fn word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+@%,:".contains(c);
    if !text.is_empty() && !text.starts_with('-') && text.chars().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}

fn parse_reward(path: &str, bytes: &[u8]) -> Finding {
    let text = String::from_utf8_lossy(bytes);
    match text.trim().parse::<f64>() {
        Ok(reward) if (0.0..=1.0).contains(&reward) => Finding { reward, reason: None },
        _ => nothing(format!("`{path}` holds no number from 0 to 1")),
    }
}

/// Bringing up the sandbox of a verifier is part of verifying.
pub(super) fn in_verifying(error: EnvironmentError) -> EnvironmentError {
    match error {
        EnvironmentError::Sandbox { source, .. } => {
            EnvironmentError::Sandbox { phase: Verify, source }
        }
        other => other,
    }
}

pub(crate) fn at(phase: SandboxPhase) -> impl Fn(SandboxError) -> EnvironmentError {
    move |source| EnvironmentError::Sandbox { phase, source }
}

/// The result of a part, if it came in time.
pub(crate) fn in_time<T>(
    phase: SandboxPhase,
    limit: Duration,
    result: Result<Result<T, SandboxError>, tokio::time::error::Elapsed>,
) -> Result<T, SandboxError> {
    result.unwrap_or_else(|_| {
        let doing = format!("{phase} within {} s", limit.as_secs());
        Err(SandboxError::Backend { doing, source: "it took longer".into() })
    })
}

pub(crate) fn with_sources(error: &SandboxError) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(error) = source {
        text += &format!(": {error}");
        source = error.source();
    }
    text
}

/// A machine that steps share with what ends them.
pub(crate) type SharedMachine = Arc<tokio::sync::Mutex<Machine>>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rewards_are_numbers_from_0_to_1() {
        let parse = |text: &str| parse_reward("/r", text.as_bytes()).reward;
        assert_eq!(parse("0.25\n"), 0.25);
        assert_eq!(
            (parse("1"), parse("2"), parse("-1"), parse("NaN"), parse("")),
            (1.0, 0.0, 0.0, 0.0, 0.0)
        );
    }

    #[test]
    fn words_are_quoted_where_they_need_to_be() {
        assert_eq!(word("/task/a-b_c.txt"), "/task/a-b_c.txt");
        assert_eq!(word("a b"), "'a b'");
        assert_eq!(word("it's"), "'it'\\''s'");
        assert_eq!(word("-rf"), "'-rf'");
    }
}
