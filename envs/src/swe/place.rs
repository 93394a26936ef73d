//! The sandboxes of an episode: the agent's, and those that grade.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use spar_sandbox::pool::PooledSandbox;
use spar_sandbox::{
    CapabilitySet, ExecRequest, Image, Lifetimes, Limits, NetworkPolicy, Sandbox, SandboxError,
    SandboxSpec, ShellOptions,
};
use spar_swe::{
    Content, HiddenFile, HiddenFiles, Instance, SandboxSource, Verification, host_variable,
};
use spar_tasks::SweTask;
use tokio::time::timeout;

use super::disk::told_by_room;
use super::evidence::gathering;
use super::health::longest;
use super::repository::{For, Repository, expect_success, plain_request, run};
use super::runner::expect_runner;
use super::servers::problems as server_problems;
use crate::SandboxPhase::{Create, SetUp, Verify};
use crate::terminal::Deadlines;
use crate::terminal::machine::{Machine, at, in_time};
use crate::{EnvironmentError, Sandboxes, ToolsetChoice};

/// Processes and threads of a sandbox: runners start workers.
const PIDS: u32 = 1024;
/// The longest that taking out a patch may take, and that applying one may.
pub(super) const PATCHING: Duration = Duration::from_secs(300);
/// The largest file of the host that a sandbox is given.
const MAX_FILE_BYTES: u64 = 256 << 20;
/// Where verifiers leave rewards.
const REWARDS: &str = "/logs/verifier";
/// Where images of verifiers have their tests.
const TESTS: &str = "/tests";

/// A task, with all that follows from it for its sandboxes.
pub(super) struct Plan {
    pub(super) task: SweTask,
    pub(super) image: Image,
    network: NetworkPolicy,
    verifier_network: NetworkPolicy,
    env: BTreeMap<String, String>,
    pub(super) verifier_env: BTreeMap<String, String>,
    limits: Limits,
    /// The sandbox of a verification that has one of its own.
    judge: Option<Judge>,
    pub(super) deadlines: Deadlines,
}

/// What a verification's own sandbox is made from.
struct Judge {
    image: Image,
    env: BTreeMap<String, String>,
    limits: Limits,
    workdir: Option<String>,
}

/// What the agent has: its machine, and where the task has a repository, that.
pub(super) struct Begun {
    pub(super) machine: Machine,
    pub(super) repository: Option<Repository>,
}

impl Plan {
    /// What follows from a task; all that is wrong with it at once.
    pub(super) fn of(task: SweTask, sandboxes: &Sandboxes) -> Result<Self, Vec<String>> {
        let mut problems = task.problems();
        let instance = &task.instance;
        if !instance.is_gradable() {
            let why = instance.unsupported.join("; ");
            problems.push(format!("nothing here can judge its result: {why}"));
        }
        for (is_there, what) in [
            (
                instance.verifier_sandbox.is_some() && judges_patch(instance),
                "a verifier with a sandbox of its own is for tasks without a repository",
            ),
            (instance.issue.problem.is_empty(), "nothing tells what is to be done"),
        ] {
            if is_there {
                problems.push(what.to_owned());
            }
        }
        problems.extend(server_problems(&task));
        problems.extend(artifact_problems(instance));
        if let Some(folder) = task.repository.as_ref().filter(|folder| !folder.is_dir()) {
            problems.push(format!(
                "its repository is to lie at `{}`, which is no folder",
                folder.display()
            ));
        }
        let image = image_of(&task, sandboxes).unwrap_or_else(|problem| {
            problems.push(problem);
            Image::Default
        });
        let (network, verifier_network) = (
            network_of(&instance.network, &mut problems),
            network_of(
                instance.verifier_network.as_ref().unwrap_or(&instance.network),
                &mut problems,
            ),
        );
        let composed =
            || instance.source.compose.as_ref().map(|it| it.env.clone()).unwrap_or_default();
        let mut env = composed();
        env.extend(instance.env.clone());
        let env = without_host(env, &mut problems);
        let judge = instance.verifier_sandbox.as_ref().map(|own| {
            let mut env = if own.source.is_none() { composed() } else { BTreeMap::new() };
            env.extend(own.env.clone());
            Judge {
                image: match &own.source {
                    None => image.clone(),
                    Some(source) => source_image(source).unwrap_or_else(|problem| {
                        problems.push(format!("its verifier: {problem}"));
                        Image::Default
                    }),
                },
                env: without_host(env, &mut problems),
                limits: limits_of(&own.limits),
                workdir: own.workdir.clone(),
            }
        });
        let verifier_env = without_host(instance.verifier_env.clone(), &mut problems);
        if !problems.is_empty() {
            return Err(problems);
        }
        let limits = limits_of(&instance.limits);
        let deadlines = deadlines(&task, sandboxes);
        Ok(Self {
            task,
            image,
            network,
            verifier_network,
            env,
            verifier_env,
            limits,
            judge,
            deadlines,
        })
    }

    pub(super) fn instance(&self) -> &Instance {
        &self.task.instance
    }

    /// Whether the result is the agent's patch, which is judged elsewhere; else all of its sandbox is, and is judged there.
    pub(super) fn judges_patch(&self) -> bool {
        judges_patch(self.instance())
    }

    /// Whether the result is carried into a sandbox that the verification has to itself.
    pub(super) fn has_own_verifier(&self) -> bool {
        self.judge.is_some()
    }

    /// What the agent's sandbox can reach.
    pub(super) fn network(&self) -> &NetworkPolicy {
        &self.network
    }

    /// What the verification can reach, where that is not what the agent's sandbox can.
    pub(super) fn other_network(&self) -> Option<&NetworkPolicy> {
        (self.verifier_network != self.network).then_some(&self.verifier_network)
    }

    /// Where the verification starts.
    pub(super) fn verifier_workdir(&self) -> Option<String> {
        match &self.judge {
            Some(judge) => judge.workdir.clone(),
            None => self.instance().workdir.clone(),
        }
    }

    /// How long each part may take where the agent works with this toolset.
    pub(super) fn deadlines_with(&self, toolset: Option<&ToolsetChoice>) -> Deadlines {
        let own = toolset.and_then(|toolset| toolset.toolset().command_limit());
        Deadlines { command: own.unwrap_or(self.deadlines.command), ..self.deadlines }
    }

    /// How the result is judged.
    pub(super) fn verification(&self) -> &Verification {
        self.instance().verification.as_ref().expect("what cannot be judged was refused")
    }

    /// How long one part of a set-up may take.
    pub(super) fn set_up_limit(&self) -> Duration {
        Duration::from_secs(self.task.setup_secs)
    }

    /// How long the tests may take.
    pub(super) fn tests(&self) -> Duration {
        test_limit(&self.task)
    }

    pub(super) fn shell_options(&self) -> ShellOptions {
        ShellOptions {
            output_limit_bytes: self.task.output_limit_bytes,
            workdir: self.instance().workdir.clone(),
            user: self.instance().agent_user.clone(),
        }
    }

    fn spec(&self, network: &NetworkPolicy, lifetimes: Lifetimes) -> SandboxSpec {
        SandboxSpec {
            limits: self.limits.clone(),
            network: network.clone(),
            // Tasks without a repository install packages and add users.
            capabilities: match self.judges_patch() {
                true => CapabilitySet::None,
                false => CapabilitySet::Packages,
            },
            env: self.env.clone(),
            workdir: self.instance().workdir.clone(),
            lifetimes,
            ..SandboxSpec::new(self.image.clone())
        }
    }

    /// The agent's sandbox: the repository squashed, what it must not see taken out, and a shell.
    pub(super) async fn begin(
        &self,
        sandboxes: &Sandboxes,
        deadlines: &Deadlines,
    ) -> Result<Begun, EnvironmentError> {
        let spec = self.spec(&self.network, deadlines.lifetimes());
        sandboxes.warm_up(&spec);
        if let Some(judge) = &self.judge {
            sandboxes.warm_up(&self.judging_spec(judge));
        }
        let sandbox = Arc::new(sandboxes.pool.acquire(&spec).await.map_err(at(Create))?);
        let whole = self.deadlines.whole_set_up();
        let set_up = timeout(whole, async {
            let repository = self.set_up(&sandbox).await?;
            if repository.is_some() {
                // Tests run in another sandbox of the same kind, and much later.
                expect_runner(self, sandboxes, &*sandbox).await?;
            }
            Ok(repository)
        })
        .await;
        let repository = match in_time(SetUp, whole, set_up) {
            Ok(repository) => repository,
            Err(error) => return Err(at(SetUp)(told_by_room(&*sandbox, error).await)),
        };
        let shell = sandbox.open_shell(&self.shell_options()).await.map_err(at(SetUp))?;
        let machine = Machine::of(sandbox, shell, Arc::clone(&sandboxes.pool));
        Ok(Begun { machine, repository })
    }

    async fn set_up(&self, sandbox: &PooledSandbox) -> Result<Option<Repository>, SandboxError> {
        let (instance, limit) = (self.instance(), self.set_up_limit());
        let has_repository = self.judges_patch();
        if has_repository && !instance.withheld.is_empty() {
            const REMOVE: &str = "set -eu\ncd \"$1\"\nshift\nrm -rf -- \"$@\"\n";
            let mut arguments = vec![instance.workdir.as_deref().unwrap_or("/")];
            arguments.extend(instance.withheld.iter().map(String::as_str));
            let done = run(sandbox, REMOVE, &arguments, limit).await?;
            expect_success(&done, "take out what the agent must not see")?;
        }
        let repository = match has_repository {
            true => Some(Repository::ready(sandbox, &self.task, For::Agent, limit).await?),
            false => None,
        };
        self.run_setup(sandbox).await?;
        self.start_service(sandbox).await?;
        Ok(repository)
    }

    /// Starts what the service of a file of Docker Compose runs: beside the agent, until everything is ended.
    async fn start_service(&self, sandbox: &PooledSandbox) -> Result<(), SandboxError> {
        const START: &str = "\"$@\" >/dev/null 2>&1 </dev/null &";
        let Some(compose) = &self.instance().source.compose else { return Ok(()) };
        if compose.command.is_empty() {
            return Ok(());
        }
        let words: Vec<&str> = compose.command.iter().map(String::as_str).collect();
        let mut request = plain_request(START, &words, self.set_up_limit());
        request.workdir.clone_from(&self.instance().workdir);
        let done = sandbox.exec(&request).await?;
        expect_success(&done, &compose.command.join(" ")).map(drop)
    }

    async fn run_setup(&self, sandbox: &PooledSandbox) -> Result<(), SandboxError> {
        for command in &self.instance().setup {
            let mut request = ExecRequest::sh(command).with_timeout(self.set_up_limit());
            request.workdir = self.instance().workdir.clone();
            let done = sandbox.exec(&request).await?;
            expect_success(&done, command)?;
        }
        Ok(())
    }

    /// A sandbox that grades a patch, with the repository as the tests need it.
    pub(super) async fn fresh(
        &self,
        sandboxes: &Sandboxes,
    ) -> Result<(PooledSandbox, Repository), EnvironmentError> {
        let spec = self.spec(&self.verifier_network, self.judging_lifetimes());
        let sandbox = sandboxes.pool.acquire(&spec).await.map_err(at(Verify))?;
        let whole = self.deadlines.whole_set_up();
        let made = timeout(whole, async {
            let limit = self.set_up_limit();
            let repository = Repository::ready(&sandbox, &self.task, For::Tests, limit).await?;
            self.run_setup(&sandbox).await?;
            expect_runner(self, sandboxes, &sandbox).await?;
            Ok(repository)
        });
        match in_time(Verify, whole, made.await) {
            Ok(repository) => Ok((sandbox, repository)),
            Err(error) => Err(at(Verify)(told_by_room(&sandbox, error).await)),
        }
    }

    /// The sandbox that the verification has to itself, in which nothing of the agent is yet.
    pub(super) async fn judging(
        &self,
        sandboxes: &Sandboxes,
    ) -> Result<PooledSandbox, EnvironmentError> {
        let judge = self.judge.as_ref().expect("it was asked for");
        let spec = self.judging_spec(judge);
        sandboxes.pool.acquire(&spec).await.map_err(at(Verify))
    }

    fn judging_spec(&self, judge: &Judge) -> SandboxSpec {
        SandboxSpec {
            limits: judge.limits.clone(),
            network: self.verifier_network.clone(),
            capabilities: CapabilitySet::Packages,
            env: judge.env.clone(),
            workdir: judge.workdir.clone(),
            lifetimes: self.judging_lifetimes(),
            ..SandboxSpec::new(judge.image.clone())
        }
    }

    /// Those of a sandbox in which tests run and nothing else does.
    fn judging_lifetimes(&self) -> Lifetimes {
        let seconds = |time: Duration| time.as_secs();
        Lifetimes {
            agent_secs: seconds(self.deadlines.whole_set_up()),
            exec_secs: seconds(self.tests()),
            verify_secs: seconds(self.tests() + 2 * PATCHING),
            ..self.deadlines.lifetimes()
        }
    }
}

fn limits_of(own: &spar_swe::Limits) -> Limits {
    Limits {
        cpus: own.cpus.or(Limits::default().cpus),
        memory_bytes: own.memory_mb.map(|mb| mb << 20).or(Limits::default().memory_bytes),
        disk_bytes: own.storage_mb.map(|mb| mb << 20),
        pids: Some(PIDS),
        ..Limits::default()
    }
}

/// What must not be carried into a verification's own sandbox: what lies where rewards do, and where its image has the tests.
fn artifact_problems(instance: &Instance) -> Vec<String> {
    let Some(own) = &instance.verifier_sandbox else { return Vec::new() };
    let mut kept = vec![REWARDS];
    if let Some(Verification::RewardFile { files, .. }) = &instance.verification {
        kept.extend(files.iter().map(String::as_str));
    }
    if own.source.is_some() {
        kept.push(TESTS);
    }
    let mut problems = Vec::new();
    for artifact in &instance.artifacts {
        let source = &artifact.source;
        if let Some(place) = kept.iter().find(|place| overlap(source, place)) {
            problems.push(format!(
                "the artifact `{source}` would be carried over `{place}`, by which the verifier judges"
            ));
        }
    }
    problems
}

/// Whether one of two paths from the root is the other, or lies below it.
pub(super) fn overlap(one: &str, other: &str) -> bool {
    fn parts(path: &str) -> impl Iterator<Item = &str> {
        path.split('/').filter(|part| !matches!(*part, "" | "."))
    }
    parts(one).zip(parts(other)).all(|(one, other)| one == other)
}

/// Whether the result of an instance is a patch to its repository.
pub(super) fn judges_patch(instance: &Instance) -> bool {
    !matches!(
        instance.verification,
        None | Some(Verification::RewardFile { .. } | Verification::AllTestsPass { .. })
    )
}

fn test_limit(task: &SweTask) -> Duration {
    Duration::from_secs(task.instance.limits.test_secs.unwrap_or(task.test_secs))
}

fn deadlines(task: &SweTask, sandboxes: &Sandboxes) -> Deadlines {
    let own = task.instance.limits.agent_secs.map(Duration::from_secs);
    let turns = sandboxes.max_turns.unwrap_or(1000);
    let waiting = sandboxes.answer.saturating_mul(turns);
    let mut command = Duration::from_secs(task.command_secs);
    let is_patch = judges_patch(&task.instance);
    if !is_patch {
        // What builds and computes there takes as long as the task's rules give the agent in all.
        command = command.max(own.unwrap_or_default());
    }
    let checking = task.instance.health.as_ref().map(longest).unwrap_or_default();
    Deadlines {
        create: Duration::from_secs(task.create_secs),
        set_up: Duration::from_secs(task.setup_secs) + checking,
        command,
        agent: own.unwrap_or(sandboxes.commands.saturating_add(waiting)),
        verify: gathering(&task.instance)
            + if is_patch { PATCHING } else { test_limit(task) + PATCHING },
        turn: Duration::ZERO,
    }
}

/// The image of a task's sandboxes: its own, the run's, or the instance's.
fn image_of(task: &SweTask, sandboxes: &Sandboxes) -> Result<Image, String> {
    let parsed = |text: &str| {
        let Ok(image) = text.parse::<Image>();
        image
    };
    if let Some(image) = &task.image {
        return Ok(parsed(image));
    }
    if sandboxes.image != Image::Default {
        return Ok(sandboxes.image.clone());
    }
    source_image(&task.instance.source)
}

/// The image that a task names, or the folder that has its Dockerfile.
fn source_image(source: &SandboxSource) -> Result<Image, String> {
    if let Some(image) = &source.image {
        return Ok(Image::Reference(image.clone()));
    }
    let dockerfile = source.dockerfile.as_ref();
    if let Some(context) = dockerfile.and_then(|it| it.context.as_ref()) {
        return in_context(context, &dockerfile.expect("it has a context").text);
    }
    Err("it names no image: name one (`image` of a `swe.toml`, or --image)".to_owned())
}

/// A Dockerfile that lies in its context.
fn in_context(context: &Path, text: &str) -> Result<Image, String> {
    let dockerfile = "Dockerfile".to_owned();
    let lies_there = std::fs::read_to_string(context.join(&dockerfile)).is_ok_and(|it| it == text);
    match lies_there {
        true => Ok(Image::Build { context: context.to_owned(), dockerfile }),
        false => Err(format!(
            "its Dockerfile does not lie in `{}`: build an image and name it",
            context.display()
        )),
    }
}

fn network_of(network: &spar_swe::NetworkPolicy, problems: &mut Vec<String>) -> NetworkPolicy {
    match network {
        spar_swe::NetworkPolicy::None => NetworkPolicy::None,
        spar_swe::NetworkPolicy::Full => NetworkPolicy::Bridge,
        spar_swe::NetworkPolicy::Allowlist(hosts) if hosts.is_empty() => NetworkPolicy::None,
        spar_swe::NetworkPolicy::Allowlist(hosts) => {
            let mut entries = Vec::new();
            for host in hosts {
                match host.parse() {
                    Ok(entry) => entries.push(entry),
                    Err(error) => problems.push(format!("`network` allows `{host}`: {error}")),
                }
            }
            NetworkPolicy::allow(entries)
        }
    }
}

/// Variables without those that stand for variables of the host: a file of tasks must not read this process's secrets.
fn without_host(
    env: BTreeMap<String, String>,
    problems: &mut Vec<String>,
) -> BTreeMap<String, String> {
    let value = |(name, value): (String, String)| match host_variable(&value) {
        None => Some((name, value)),
        Some((_, Some(default))) => Some((name, default)),
        Some((host, None)) => {
            problems.push(format!(
                "`env` sets `{name}` to the host's `{host}`, which is not handed on"
            ));
            None
        }
    };
    env.into_iter().filter_map(value).collect()
}

/// Puts hidden files into a sandbox, in the place of whatever lies there.
pub(super) async fn hide(
    sandbox: &dyn Sandbox,
    folders: &[HiddenFiles],
) -> Result<(), SandboxError> {
    for folder in folders {
        for (path, file) in &folder.files {
            let bytes = content(file).await?;
            let mode = if file.executable { 0o755 } else { 0o644 };
            sandbox.write_file(&format!("{}/{path}", folder.into), &bytes, mode).await?;
        }
    }
    Ok(())
}

async fn content(file: &HiddenFile) -> Result<Vec<u8>, SandboxError> {
    let host = match &file.content {
        Content::Text(text) => return Ok(text.as_bytes().to_vec()),
        Content::Host(host) => host.clone(),
    };
    let fail =
        |source| SandboxError::Host { doing: "read the task's file", path: host.clone(), source };
    let place = host.clone();
    let read = tokio::task::spawn_blocking(move || {
        let bytes = std::fs::metadata(&place)?.len();
        if bytes > MAX_FILE_BYTES {
            let why = format!("it has {bytes} bytes, at most {MAX_FILE_BYTES} are read");
            return Err(std::io::Error::other(why));
        }
        std::fs::read(place)
    });
    read.await.expect("reading does not panic").map_err(fail)
}

#[cfg(test)]
mod tests {
    use spar_swe::{Artifact, VerifierSandbox};

    use super::*;

    #[test]
    fn nothing_is_carried_over_what_judges() {
        let told = |source: &str, is_bundled: bool| {
            let image = is_bundled.then(SandboxSource::default);
            let own = VerifierSandbox { source: image, ..VerifierSandbox::default() };
            let artifact = Artifact { source: source.to_owned(), ..Artifact::default() };
            let instance = Instance {
                verifier_sandbox: Some(own),
                artifacts: vec![artifact],
                ..Instance::default()
            };
            !artifact_problems(&instance).is_empty()
        };
        for source in ["/logs", "logs//./verifier", "/logs/verifier/reward.txt"] {
            assert!(told(source, false), "{source}");
        }
        for source in ["/logs/artifacts", "/logs/verifier2", "/app", "/tests/data"] {
            assert!(!told(source, false), "{source}");
        }
        assert!(told("/tests/data", true) && told("tests/", true) && !told("/app/tests", true));
    }
}
