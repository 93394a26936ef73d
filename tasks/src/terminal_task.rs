//! What is to be done at a shell, and how it is judged.

use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_sandbox::{CapabilitySet, Limits, NetworkPolicy};

/// Where the files of a verifier lie inside the sandbox while it runs.
pub const VERIFIER_FOLDER: &str = "/tests";

/// The host by which a verifier reaches the services of the agent's sandbox, by its proxy alone.
pub const SERVICE_HOST: &str = "service.internal";

/// Services of one task.
const MAX_SERVICES: usize = 16;

/// A task at a shell: what it starts from, what is to be done, and how that is judged. These are the
/// parameters of the environment `terminal`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TerminalTask {
    /// What is to be done, in words.
    pub instruction: String,
    /// The sandbox's image, as `--image` takes it. Default absent: the run's, or else the smallest
    /// of the backend.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// Where commands start, and what relative paths of `files` start from. Default `/task`.
    #[serde(default = "default_workdir")]
    pub workdir: String,
    /// Environment variables.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Those of `env` whose values are secret, each of at least 8 bytes: commands have them, and neither the policy nor
    /// any record sees them. Default none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secret_env: Vec<String>,
    /// What can be reached. Default nothing.
    #[serde(default)]
    pub network: NetworkPolicy,
    /// What may be used up.
    #[serde(default)]
    pub limits: Limits,
    /// What the agent may do as `root` beyond what files' permissions say: `packages` where it has to install
    /// packages, add users or become one of them. It holds for set-up and verifier as well. Default none.
    #[serde(default, skip_serializing_if = "is_none")]
    pub capabilities: CapabilitySet,
    /// Files that are there from the beginning, by path.
    #[serde(default)]
    pub files: BTreeMap<String, TaskFile>,
    /// Commands that run in turn before the agent begins, in `workdir`, with the files in place; one
    /// that does not exit with 0 breaks the task.
    #[serde(default)]
    pub setup: Vec<String>,
    /// How the result is judged.
    pub verifier: TerminalVerifier,
    /// Commands that solve it, for demonstrations and to check the task. Default none.
    #[serde(default)]
    pub solution: Vec<String>,
    /// Seconds until the sandbox exists, getting its image left out. Default 120.
    #[serde(default = "default_create_secs")]
    pub create_secs: u64,
    /// Seconds for the files and all of `setup`. Default 600.
    #[serde(default = "default_setup_secs")]
    pub setup_secs: u64,
    /// Seconds of wall-clock time that the task's own rules give the agent for all of its turns, the
    /// policy's share included; after them the episode is truncated and judged. Default absent: the
    /// rules give none, and the run bounds what the commands take (`episode.command_time_secs`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_secs: Option<u64>,
    /// Seconds that one command of the agent may take. Default 30.
    #[serde(default = "default_command_secs")]
    pub command_secs: u64,
    /// Bytes of each stream that a command's observation shows, the middle left out. Default 8000.
    #[serde(default = "default_output_limit_bytes")]
    pub output_limit_bytes: usize,
}

/// How a task at a shell is judged: after the agent's processes have been ended, or, where they are what is judged, in
/// another sandbox than theirs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TerminalVerifier {
    /// Runs in the task's `workdir`; exit code 0 means solved. Default `sh /tests/test.sh`.
    #[serde(default = "default_verifier_command")]
    pub command: String,
    /// Files that are put into [`VERIFIER_FOLDER`] only now, by path below it.
    #[serde(default)]
    pub files: BTreeMap<String, TaskFile>,
    /// A file into which the command writes the reward, a number from 0 to 1; it counts where the
    /// exit code is 0. Default absent: the reward is 1 then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reward_file: Option<String>,
    /// Seconds that the command may take. Default 300.
    #[serde(default = "default_verify_secs")]
    pub verify_secs: u64,
    /// Where the command runs. Default in the agent's sandbox.
    #[serde(default)]
    pub sandbox: VerifierSandbox,
    /// Files and folders that a fresh sandbox gets as the agent left them, by path; relative ones
    /// start from `workdir`. What is absent is absent there, too. Default none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub carry: Vec<String>,
    /// Bytes that `carry` may take in all, as archives; a result that is larger is not solved.
    /// Default 64 MiB.
    #[serde(default = "default_carry_limit_bytes")]
    pub carry_limit_bytes: u64,
    /// Ports of services that the agent leaves running, which are what is judged. The command runs in a
    /// fresh sandbox, in which nothing of the agent is, and finds each at the address `HOST:PORT` that the variable
    /// `SERVICE_<port>` names, through the proxy that `HTTP_PROXY` names; the agent's sandbox goes on
    /// meanwhile. Default none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub service_ports: Vec<u16>,
    /// Seconds that are waited until something listens on each of `service_ports`; where nothing does, nothing is
    /// solved. Default 30.
    #[serde(default = "default_service_secs", skip_serializing_if = "is_default_service_secs")]
    pub service_secs: u64,
    /// Whether a process that the agent leaves running is what is judged; it has to be named by
    /// `service_ports`. Default false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub processes: bool,
}

/// Where a verifier runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VerifierSandbox {
    /// In the agent's sandbox, once everything in it was ended. What the agent did to its programs
    /// and their configuration is there.
    #[default]
    Same,
    /// In a new one, as the agent found its own, with [`TerminalVerifier::carry`] brought over and
    /// nothing else.
    Fresh,
}

/// A file of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum TaskFile {
    /// Its text.
    Text(String),
    /// Its text, or where it lies on the host, and how it may be used.
    Detailed(DetailedFile),
}

/// A file with more than its text.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DetailedFile {
    /// Its text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Where its content lies on the host; only task folders name their files so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<PathBuf>,
    /// Whether it can be run as a program. Default false.
    #[serde(default)]
    pub executable: bool,
}

impl TaskFile {
    /// Where its content lies on the host, if it lies there.
    pub fn host(&self) -> Option<&PathBuf> {
        match self {
            Self::Text(_) => None,
            Self::Detailed(file) => file.host.as_ref(),
        }
    }

    /// Its text, if that is given.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Detailed(file) => file.text.as_deref(),
        }
    }

    /// Permissions: `0o755` for programs, else `0o644`.
    pub fn mode(&self) -> u32 {
        match self {
            Self::Detailed(DetailedFile { executable: true, .. }) => 0o755,
            _ => 0o644,
        }
    }
}

impl From<&str> for TaskFile {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl TerminalTask {
    /// A task without files, with the defaults.
    pub fn new(instruction: impl Into<String>, verifier_command: impl Into<String>) -> Self {
        Self {
            instruction: instruction.into(),
            image: None,
            workdir: default_workdir(),
            env: BTreeMap::new(),
            secret_env: Vec::new(),
            network: NetworkPolicy::default(),
            limits: Limits::default(),
            capabilities: CapabilitySet::None,
            files: BTreeMap::new(),
            setup: Vec::new(),
            verifier: TerminalVerifier {
                command: verifier_command.into(),
                ..TerminalVerifier::default()
            },
            solution: Vec::new(),
            create_secs: default_create_secs(),
            setup_secs: default_setup_secs(),
            agent_secs: None,
            command_secs: default_command_secs(),
            output_limit_bytes: default_output_limit_bytes(),
        }
    }

    /// What is wrong with it; empty where nothing is.
    pub fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        if self.instruction.trim().is_empty() {
            problems.push("`instruction` is empty".to_owned());
        }
        if !self.workdir.starts_with('/') || self.workdir.split('/').any(|part| part == "..") {
            let workdir = &self.workdir;
            problems.push(format!("`workdir` is `{workdir}`, must be absolute and without `..`"));
        }
        let seconds = [
            ("create_secs", self.create_secs),
            ("setup_secs", self.setup_secs),
            ("agent_secs", self.agent_secs.unwrap_or(1)),
            ("command_secs", self.command_secs),
        ];
        for (name, value) in seconds {
            if value == 0 {
                problems.push(format!("`{name}` is 0, must be at least 1"));
            }
        }
        for name in &self.secret_env {
            let least = spar_core::redaction::MIN_SECRET_BYTES;
            match self.env.get(name) {
                None => problems.push(format!("`secret_env` names `{name}`, which `env` has not")),
                Some(value) if value.trim().len() < least => problems.push(format!(
                    "`secret_env` names `{name}`, whose value is too short to be told from other text: it needs {least} bytes"
                )),
                Some(_) => {}
            }
        }
        for (path, file) in &self.files {
            check_file(path, file, &mut problems);
        }
        problems.extend(self.verifier.problems());
        if !self.verifier.service_ports.is_empty() && self.network == NetworkPolicy::Bridge {
            problems.push(
                "`network` is `bridge`, from which services cannot be told apart: name the hosts that are \
                 needed (`allow`)"
                    .to_owned(),
            );
        }
        if !self.verifier.service_ports.is_empty() {
            let is_in_the_way =
                |(name, value): &(&String, &String)| keeps_from_services(name, value);
            problems.extend(self.env.iter().filter(is_in_the_way).map(|(name, _)| {
                format!(
                    "`env` sets `{name}`, which would keep the verifier from the proxy that leads to `{SERVICE_HOST}`"
                )
            }));
        }
        self.check_carried(&self.verifier, &mut problems);
        problems
    }

    /// What is wrong with what a script of a grader carries over from this task's sandbox; empty where nothing is.
    pub fn carry_problems(&self, script: &TerminalVerifier) -> Vec<String> {
        let mut problems = Vec::new();
        self.check_carried(script, &mut problems);
        problems
    }

    /// A path inside, where relative ones start from `workdir`.
    pub fn absolute(&self, path: &str) -> String {
        if path.starts_with('/') { path.to_owned() } else { format!("{}/{path}", self.workdir) }
    }

    /// What is carried must be somebody's result: apart from what else is carried, from what the
    /// verifier brings, and from what every system has.
    fn check_carried(&self, script: &TerminalVerifier, problems: &mut Vec<String>) {
        let mut seen: Vec<Vec<String>> = Vec::new();
        for path in &script.carry {
            let absolute = self.absolute(path);
            let parts = absolute.split('/').filter(|part| !matches!(*part, "" | "."));
            let parts: Vec<String> = parts.map(str::to_owned).collect();
            let is_path = !parts.is_empty() && parts.iter().all(|part| part != "..");
            if !is_path || path.contains('\0') {
                problems
                    .push(format!("`verifier.carry` names `{path}`, which is no path below `/`"));
                continue;
            }
            if ["proc", "sys", "dev"].contains(&parts[0].as_str())
                || parts[0] == VERIFIER_FOLDER.trim_start_matches('/')
            {
                problems.push(format!("`verifier.carry` names `{path}`, which is not the agent's"));
            }
            if seen.iter().any(|other| parts.starts_with(other) || other.starts_with(&parts)) {
                let text = format!("`verifier.carry` names `{path}` and what it lies in, or twice");
                problems.push(text);
            }
            seen.push(parts);
        }
    }
}

impl Default for TerminalVerifier {
    fn default() -> Self {
        Self {
            command: default_verifier_command(),
            files: BTreeMap::new(),
            reward_file: None,
            verify_secs: default_verify_secs(),
            sandbox: VerifierSandbox::default(),
            carry: Vec::new(),
            carry_limit_bytes: default_carry_limit_bytes(),
            service_ports: Vec::new(),
            service_secs: default_service_secs(),
            processes: false,
        }
    }
}

impl TerminalVerifier {
    /// What is wrong with it whatever the task is; empty where nothing is.
    pub(crate) fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        if self.command.trim().is_empty() {
            problems.push("`verifier.command` is empty".to_owned());
        }
        if self.verify_secs == 0 {
            problems.push("`verifier.verify_secs` is 0, must be at least 1".to_owned());
        }
        for (path, file) in &self.files {
            if path.starts_with('/') {
                problems.push(format!("verifier file `{path}` must be relative"));
            }
            check_file(path, file, &mut problems);
        }
        problems.extend(self.sandbox_problems());
        problems
    }

    /// Settings that do not go together.
    fn sandbox_problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        self.check_services(&mut problems);
        match self.sandbox {
            VerifierSandbox::Fresh if self.carry.is_empty() && self.service_ports.is_empty() => {
                problems.push(
                    "`verifier.sandbox` is `fresh` and `verifier.carry` names nothing to judge"
                        .to_owned(),
                )
            }
            VerifierSandbox::Same if !self.carry.is_empty() => problems.push(
                "`verifier.carry` has no effect unless `verifier.sandbox` is `fresh`".to_owned(),
            ),
            _ => {}
        }
        if self.carry_limit_bytes == 0 {
            problems.push("`verifier.carry_limit_bytes` is 0, must be at least 1".to_owned());
        }
        problems
    }
}

impl TerminalVerifier {
    fn check_services(&self, problems: &mut Vec<String>) {
        let ports = &self.service_ports;
        if self.processes && ports.is_empty() {
            problems.push(
                "`verifier.processes` is true and `verifier.service_ports` names no port: a process is \
                 judged by what it answers there"
                    .to_owned(),
            );
        }
        if !ports.is_empty() && self.sandbox != VerifierSandbox::Fresh {
            problems.push(
                "`verifier.service_ports` needs `verifier.sandbox` to be `fresh`: what runs on is not \
                 judged beside itself"
                    .to_owned(),
            );
        }
        let is_twice = |at: usize| ports[..at].contains(&ports[at]);
        if ports.contains(&0) || ports.len() > MAX_SERVICES || (0..ports.len()).any(is_twice) {
            problems.push(format!(
                "`verifier.service_ports` must name at most {MAX_SERVICES} ports, each once and none of them 0"
            ));
        }
        if !(1..=3600).contains(&self.service_secs) {
            let seconds = self.service_secs;
            problems.push(format!("`verifier.service_secs` is {seconds}, must lie in 1..=3600"));
        }
        if ports.is_empty() && self.service_secs != default_service_secs() {
            problems.push(
                "`verifier.service_secs` has no effect without `verifier.service_ports`".to_owned(),
            );
        }
    }
}

/// Whether a variable leads programs past the proxy that reaches services.
fn keeps_from_services(name: &str, value: &str) -> bool {
    match name.to_ascii_lowercase().as_str() {
        "http_proxy" | "https_proxy" | "all_proxy" => true,
        "no_proxy" => value.split([',', ' ']).any(|entry| {
            let entry = entry.split(':').next().unwrap_or_default();
            let entry = entry.trim_start_matches('*').trim_start_matches('.').to_ascii_lowercase();
            // A bare `*` is all there is.
            value.contains('*') && entry.is_empty()
                || entry == SERVICE_HOST
                || !entry.is_empty() && SERVICE_HOST.ends_with(&format!(".{entry}"))
        }),
        _ => false,
    }
}

fn check_file(path: &str, file: &TaskFile, problems: &mut Vec<String>) {
    let is_path = !path.is_empty() && !path.ends_with('/') && !path.contains('\0');
    if !is_path || path.split('/').any(|part| part == "..") {
        problems.push(format!("`{path}` is no path of a file"));
    }
    if file.text().is_some() == file.host().is_some() {
        problems.push(format!("file `{path}` needs either a text or a place on the host"));
    }
}

fn is_none(set: &CapabilitySet) -> bool {
    *set == CapabilitySet::None
}

fn default_workdir() -> String {
    "/task".to_owned()
}

fn default_verifier_command() -> String {
    format!("sh {VERIFIER_FOLDER}/test.sh")
}

fn default_create_secs() -> u64 {
    120
}

fn default_setup_secs() -> u64 {
    600
}

fn default_command_secs() -> u64 {
    30
}

fn default_output_limit_bytes() -> usize {
    8000
}

fn default_verify_secs() -> u64 {
    300
}

fn default_service_secs() -> u64 {
    30
}

fn is_default_service_secs(seconds: &u64) -> bool {
    *seconds == default_service_secs()
}

fn default_carry_limit_bytes() -> u64 {
    64 << 20
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_round_trips_and_the_shortest_one_has_the_defaults() {
        let task: TerminalTask =
            serde_json::from_str(r#"{"instruction": "a", "verifier": {"command": "true"}}"#)
                .unwrap();
        assert_eq!(task, TerminalTask::new("a", "true"));
        assert_eq!(task.problems(), Vec::<String>::new());
        let text = serde_json::to_string(&task).unwrap();
        assert_eq!(serde_json::from_str::<TerminalTask>(&text).unwrap(), task);
        let typo = r#"{"instruction": "a", "verifier": {"command": "true"}, "setpu": []}"#;
        assert!(serde_json::from_str::<TerminalTask>(typo).is_err());
    }

    #[test]
    fn capabilities_are_named_and_written_only_where_there_are_any() {
        let text = r#"{"instruction": "a", "capabilities": "packages", "verifier": {}}"#;
        let task: TerminalTask = serde_json::from_str(text).unwrap();
        assert_eq!(task.capabilities, CapabilitySet::Packages);
        assert!(serde_json::to_string(&task).unwrap().contains("packages"));
        let plain = serde_json::to_string(&TerminalTask::new("a", "true")).unwrap();
        assert!(!plain.contains("capabilities"), "{plain}");
        let error = serde_json::from_str::<TerminalTask>(&text.replace("packages", "all"));
        assert!(error.unwrap_err().to_string().contains("packages"));
    }

    #[test]
    fn all_problems_are_told_at_once() {
        let mut task = TerminalTask::new(" ", "");
        task.workdir = "task".into();
        (task.command_secs, task.agent_secs) = (0, Some(0));
        task.files.insert("../etc/passwd".into(), "x".into());
        task.files.insert("empty".into(), TaskFile::Detailed(DetailedFile::default()));
        task.verifier.files.insert("/etc/x".into(), "x".into());
        let problems = task.problems().join("; ");
        for part in
            ["instruction", "verifier.command", "workdir", "command_secs", "agent_secs", "../etc"]
        {
            assert!(problems.contains(part), "{problems}");
        }
        assert_eq!(task.problems().len(), 8, "{problems}");
    }

    #[test]
    fn what_is_carried_is_checked() {
        let mut task = TerminalTask::new("a", "true");
        task.verifier.carry = vec!["out.txt".into()];
        assert!(task.problems()[0].contains("no effect"), "{:?}", task.problems());
        task.verifier.sandbox = VerifierSandbox::Fresh;
        assert_eq!(task.problems(), Vec::<String>::new());
        let bad = ["/", "..", "/tests/x", "/proc/1", "out.txt/sub", "/task/./out.txt", "a\0b"];
        for path in bad {
            task.verifier.carry = vec!["out.txt".into(), path.into()];
            assert_eq!(task.problems().len(), 1, "{path}: {:?}", task.problems());
        }
        task.verifier.carry.clear();
        task.verifier.carry_limit_bytes = 0;
        task.verifier.processes = true;
        let problems = task.problems().join("; ");
        for part in ["names nothing to judge", "carry_limit_bytes", "names no port"] {
            assert!(problems.contains(part), "{problems}");
        }
        let text = r#"{"instruction": "a", "verifier": {"sandbox": "frsh"}}"#;
        assert!(serde_json::from_str::<TerminalTask>(text).is_err());
    }

    #[test]
    fn services_are_judged_from_elsewhere_by_ports_that_are_named() {
        let text =
            r#"{"instruction": "a", "verifier": {"sandbox": "fresh", "service_ports": [8080]}}"#;
        let task: TerminalTask = serde_json::from_str(text).unwrap();
        assert_eq!((task.problems(), task.verifier.service_secs), (vec![], 30));
        let mut bad = task.clone();
        bad.verifier.service_ports = vec![80, 0, 80];
        bad.verifier.service_secs = 0;
        bad.verifier.sandbox = VerifierSandbox::Same;
        bad.network = NetworkPolicy::Bridge;
        let problems = bad.problems().join("; ");
        for part in ["each once", "service_secs", "to be `fresh`", "`bridge`"] {
            assert!(problems.contains(part), "{problems}");
        }
        for (name, value, is_refused) in [
            ("HTTP_PROXY", "http://1.1.1.1:80", true),
            ("all_proxy", "", true),
            ("NO_PROXY", "*", true),
            ("NO_PROXY", "localhost, .internal", true),
            ("no_proxy", "service.internal:8080", true),
            ("NO_PROXY", "127.0.0.1,localhost,eternal", false),
            ("PROXY", "x", false),
        ] {
            let mut task = task.clone();
            task.env = [(name.to_owned(), value.to_owned())].into();
            assert_eq!(!task.problems().is_empty(), is_refused, "{name}={value}");
        }
        let mut idle = TerminalTask::new("a", "true");
        idle.verifier.service_secs = 5;
        assert!(idle.problems()[0].contains("no effect"), "{:?}", idle.problems());
    }

    #[test]
    fn programs_can_be_run() {
        let file: TaskFile =
            serde_json::from_str(r##"{"text": "#!/bin/sh", "executable": true}"##).unwrap();
        assert_eq!((file.mode(), file.text()), (0o755, Some("#!/bin/sh")));
        assert_eq!(TaskFile::from("x").mode(), 0o644);
    }
}
