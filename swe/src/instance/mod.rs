//! One task of software engineering or of work at a terminal, whatever format it comes from.

mod hidden_files;
mod issue;
mod limits;
mod network;
mod sandbox_source;
mod services;
mod spec;
mod stage;
mod verification;
mod verifier_sandbox;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use hidden_files::{Content, HiddenFile, HiddenFiles};
pub use issue::{ImageAsset, Issue};
pub use limits::Limits;
pub(crate) use limits::whole_secs;
pub use network::NetworkPolicy;
pub use sandbox_source::{Compose, Dockerfile, SandboxSource};
pub use services::{Artifact, CollectHook, HealthCheck, McpServer, McpTransport};
pub use spec::{DockerSpecs, RepoSpec};
pub use stage::{RewardStrategy, Stage};
pub use verification::{Gold, ParserName, Verification};
pub use verifier_sandbox::VerifierSandbox;

/// Bytes of an id.
const MAX_ID_BYTES: usize = 255;
/// Bytes of any one text.
pub(crate) const MAX_TEXT_BYTES: usize = 64 << 20;
/// Entries of any one list.
pub(crate) const MAX_ENTRIES: usize = 500_000;
/// Stages of one instance.
const MAX_STAGES: usize = 100;

/// A task: what is to be done in which repository, and how the result is judged.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Instance {
    /// Its name: a word that can be part of a file's name.
    pub id: String,
    /// The format it was read from, as [`crate::RowFormat::name`] or [`crate::FolderFormat::name`] tells.
    pub format: String,
    /// The repository, as `owner/name`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repo: Option<String>,
    /// The commit that the work starts from, in hexadecimal digits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_commit: Option<String>,
    /// What is to be done.
    pub issue: Issue,
    /// What the sandbox is made of.
    pub source: SandboxSource,
    /// Where commands start. Absent: where the image says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workdir: Option<String>,
    /// Environment variables of all commands. A value `${NAME}` or `${NAME:-DEFAULT}` stands for a variable of the host.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Commands that run in turn before the agent begins.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub setup: Vec<String>,
    /// A diff that makes the bug, applied before the agent begins, for formats that describe a bug by it. It is only
    /// needed where the image does not have the bug yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bug_patch: Option<String>,
    /// What has to hold before the agent begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub health: Option<HealthCheck>,
    /// The tests as a diff, to be looked at: the script of the verification brings them itself. The agent must not see it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub test_patch: Option<String>,
    /// Files that are put into the sandbox when the result is judged, not before.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hidden: Vec<HiddenFiles>,
    /// Files of the repository, below `workdir`, that are put back to their state before the agent when the result is
    /// judged. Those of a script that does so itself are not here.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub restored: Vec<String>,
    /// Files and folders that the image has and the agent must not see: they are taken out of its sandbox, and are there
    /// when the result is judged. Relative paths start from `workdir`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub withheld: Vec<String>,
    /// How the result is judged; absent where the format does not tell, which `unsupported` explains, and for tasks of
    /// several [`Instance::stages`], which are judged each.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verification: Option<Verification>,
    /// Environment variables of the verification alone.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub verifier_env: BTreeMap<String, String>,
    /// The sandbox of the verification, where it is another than the agent's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verifier_sandbox: Option<VerifierSandbox>,
    /// What is carried out of the agent's sandbox: into the verification's where it has one of its own, and beside the
    /// record of the episode.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<Artifact>,
    /// Commands that run after the agent and before artifacts are carried out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub collect: Vec<CollectHook>,
    /// What is known to solve it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gold: Option<Gold>,
    /// Environment variables of the solution alone.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub gold_env: BTreeMap<String, String>,
    /// Stages in turn over one sandbox, for tasks that have them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stages: Vec<Stage>,
    /// How the rewards of stages become one. Default their mean.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stage_reward: Option<RewardStrategy>,
    /// What may be used up.
    pub limits: Limits,
    /// What the agent can reach.
    pub network: NetworkPolicy,
    /// What the verification can reach, where that differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verifier_network: Option<NetworkPolicy>,
    /// The user that the agent's commands run as. Absent: the image's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_user: Option<String>,
    /// The user that the verification runs as. Absent: the image's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verifier_user: Option<String>,
    /// Servers of tools that the agent is offered.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub mcp_servers: Vec<McpServer>,
    /// The programming language, in lower case.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
    /// How hard it is, in the format's words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub difficulty: Option<String>,
    /// What helps after a failed attempt, in turn.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub guidance: Vec<String>,
    /// Words by which tasks are sorted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// What the row or folder says that is not honoured, each as the name of a field and why. Where it is not empty, the
    /// task is not quite the one that was published.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unsupported: Vec<String>,
}

impl Instance {
    /// Whether a result can be judged.
    pub fn is_gradable(&self) -> bool {
        let is_readable = |verification: &Option<Verification>| {
            verification.as_ref().is_some_and(Verification::is_readable)
        };
        match self.stages.is_empty() {
            true => is_readable(&self.verification),
            false => self.stages.iter().all(|stage| is_readable(&stage.verification)),
        }
    }

    /// All that is wrong with it; empty where it can be worked on.
    pub fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        check_id(&self.id, &mut problems);
        self.check_texts(&mut problems);
        self.check_paths(&mut problems);
        self.limits.check(&mut problems);
        self.network.check("network", &mut problems);
        if let Some(network) = &self.verifier_network {
            network.check("verifier_network", &mut problems);
        }
        self.source.check("source", &mut problems);
        if let Some(sandbox) = &self.verifier_sandbox {
            sandbox.check(&mut problems);
        }
        for env in [&self.env, &self.verifier_env, &self.gold_env] {
            check_env(env, &mut problems);
        }
        if let Some(verification) = &self.verification {
            verification.check(&mut problems);
        }
        if let Some(health) = &self.health {
            health.check("health", &mut problems);
        }
        for server in &self.mcp_servers {
            server.check(&mut problems);
        }
        if self.stages.len() > MAX_STAGES {
            let count = self.stages.len();
            problems.push(format!("it has {count} stages, and at most {MAX_STAGES} are played"));
        }
        for stage in &self.stages {
            stage.check(&mut problems);
        }
        if self.verification.is_none() && self.stages.is_empty() && self.unsupported.is_empty() {
            problems.push("nothing tells how the result is judged".to_owned());
        }
        if self.stages.is_empty() && self.issue.problem.trim().is_empty() {
            problems.push("the problem is empty: nothing tells what is to be done".to_owned());
        }
        problems
    }

    fn check_texts(&self, problems: &mut Vec<String>) {
        let texts = [
            ("problem", Some(&self.issue.problem)),
            ("hints", self.issue.hints.as_ref()),
            ("interface", self.issue.interface.as_ref()),
            ("requirements", self.issue.requirements.as_ref()),
            ("test patch", self.test_patch.as_ref()),
            ("bug patch", self.bug_patch.as_ref()),
        ];
        for (name, text) in texts {
            if let Some(text) = text
                && text.len() > MAX_TEXT_BYTES
            {
                problems.push(format!(
                    "the {name} has {} bytes, and at most {MAX_TEXT_BYTES} are read",
                    text.len()
                ));
            }
        }
        if let Some(repo) = &self.repo {
            let is_name = |part: &str| {
                !part.is_empty()
                    && part
                        .bytes()
                        .all(|byte| byte.is_ascii_alphanumeric() || b"-_.+".contains(&byte))
                    && !matches!(part, "." | "..")
            };
            let mut parts = repo.split('/');
            if repo.len() > MAX_ID_BYTES
                || !parts.clone().all(is_name)
                || parts.by_ref().count() > 2
            {
                problems.push(format!(
                    "the repository `{}` is not `owner/name`",
                    crate::error::shortened(repo)
                ));
            }
        }
        if let Some(commit) = &self.base_commit
            && !is_commit(commit)
        {
            let commit = crate::error::shortened(commit);
            problems.push(format!("the base commit `{commit}` is not 7 to 64 hexadecimal digits"));
        }
    }

    fn check_paths(&self, problems: &mut Vec<String>) {
        if let Some(workdir) = &self.workdir {
            check_absolute("workdir", workdir, problems);
        }
        for hidden in &self.hidden {
            hidden.check(problems);
        }
        for path in &self.restored {
            check_relative("test file", path, problems);
        }
        for path in &self.withheld {
            match path.starts_with('/') {
                true => check_absolute("test file", path, problems),
                false => check_relative("test file", path, problems),
            }
        }
        for artifact in &self.artifacts {
            artifact.check(problems);
        }
        if self.hidden.iter().map(|hidden| hidden.files.len()).sum::<usize>() > MAX_ENTRIES {
            problems.push(format!("there are more than {MAX_ENTRIES} hidden files"));
        }
        if let Some(gold) = &self.gold {
            gold.check(problems);
        }
    }
}

/// Whether a text can be an instance's id.
pub(crate) fn check_id(id: &str, problems: &mut Vec<String>) {
    let is_word = !id.is_empty()
        && id.len() <= MAX_ID_BYTES
        && !id.starts_with(['.', '-'])
        && id.chars().all(|c| !c.is_whitespace() && !c.is_control() && !matches!(c, '/' | '\\'));
    if !is_word {
        problems.push(format!(
            "the id `{}` is not a word of at most {MAX_ID_BYTES} bytes without `/`, `\\` and a leading `.` or `-`",
            crate::error::shortened(id)
        ));
    }
}

pub(crate) fn is_commit(text: &str) -> bool {
    (7..=64).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

pub(crate) fn check_absolute(what: &str, path: &str, problems: &mut Vec<String>) {
    let is_fine =
        path.starts_with('/') && !path.contains('\0') && path.split('/').all(|part| part != "..");
    if !is_fine {
        let path = crate::error::shortened(path);
        problems.push(format!("{what}: `{path}` must be absolute and without `..`"));
    }
}

pub(crate) fn check_relative(what: &str, path: &str, problems: &mut Vec<String>) {
    let is_fine = !path.is_empty()
        && !path.contains('\0')
        && path.split('/').all(|part| !matches!(part, "" | "." | ".."));
    if !is_fine {
        let path = crate::error::shortened(path);
        problems.push(format!(
            "{what}: `{path}` must be relative and without `.`, `..` and empty parts"
        ));
    }
}

fn check_env(env: &BTreeMap<String, String>, problems: &mut Vec<String>) {
    for (name, value) in env {
        if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
            let name = crate::error::shortened(name);
            problems.push(format!(
                "the environment variable `{name}` has `=` or a zero byte in it, or no name"
            ));
        }
    }
}

/// Variables of the host that values of a map stand for, with the value that holds where the host has none.
pub fn host_variables(env: &BTreeMap<String, String>) -> BTreeMap<String, Option<String>> {
    env.values().filter_map(|value| host_variable(value)).collect()
}

/// The variable of the host that a value stands for, with its default: `${NAME}` or `${NAME:-DEFAULT}`, and nothing else
/// beside it.
pub fn host_variable(value: &str) -> Option<(String, Option<String>)> {
    let inside = value.strip_prefix("${")?.strip_suffix('}')?;
    let (name, default) = match inside.split_once(':') {
        None => (inside, None),
        Some((name, rest)) => (name, Some(rest.strip_prefix('-')?.to_owned())),
    };
    (!name.is_empty() && !name.contains('}')).then(|| (name.to_owned(), default))
}

#[cfg(test)]
mod tests;
