//! What is to be played in a program, and how that program is run.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use spar_sandbox::{Limits, NetworkPolicy};

/// The longest of all times, in seconds: a day.
const MOST_SECONDS: u64 = 86_400;
/// The most programs of an environment at one time, and the most sessions of one.
const MOST_PROGRAMS: usize = 4096;
/// The longest line that may be allowed.
const MOST_BYTES: usize = 1 << 30;

/// The parameters of the environment `process`: a program, and what it is told of the task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProcessTask {
    /// The program that plays it.
    pub program: Arc<ProgramSpec>,
    /// What the program is told of the task when a session is reset; generated tasks have a `seed` in it.
    pub task: Map<String, Value>,
}

/// How the program of an environment is run. Tasks of equal specs share programs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProgramSpec {
    /// What it is called in messages.
    pub name: String,
    /// The folder of its files; absent for a program that is all in its command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<PathBuf>,
    /// The program and its arguments; no shell reads them. A first part with a `/` in it is relative to the folder, one
    /// without is looked up in `PATH`.
    pub command: Vec<String>,
    /// Where it works, relative to the folder. Default the folder itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workdir: Option<String>,
    /// Environment variables that are set. Default none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Names of variables of spar's own that are handed on, where they are set; `PATH`, `HOME`, `LANG` and `TMPDIR` always
    /// are where no sandbox is named. Default none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pass_env: Vec<String>,
    /// In what it is played. Default words.
    #[serde(default)]
    pub actions: ProgramActions,
    /// Whether it finds what counts in answers of several lines by itself, so that it is given all of them where nobody says how
    /// actions are read. Default false: it is given the first line.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub whole_answers: bool,
    /// How long it may take.
    #[serde(default)]
    pub timeouts: ProgramTimeouts,
    /// How much of it there may be.
    #[serde(default)]
    pub limits: ProgramLimits,
    /// The sandbox of each of its programs; absent: they run as programs of the user who runs spar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<ProgramSandbox>,
}

/// In what a program is played.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProgramActions {
    /// In words alone.
    #[default]
    Words,
    /// By calls of tools alone.
    Calls,
    /// In either.
    Both,
}

/// How long a program may take; then it is ended, and the episodes that it played are played anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ProgramTimeouts {
    /// Seconds from its start to its answer to `hello`. Default 60.
    pub start_secs: u64,
    /// Seconds of a `reset`. Default 60.
    pub reset_secs: u64,
    /// Seconds of a `step`, and of everything else that it is asked. Default 60.
    pub step_secs: u64,
}

impl Default for ProgramTimeouts {
    fn default() -> Self {
        Self { start_secs: 60, reset_secs: 60, step_secs: 60 }
    }
}

/// How much of a program there may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ProgramLimits {
    /// Programs at one time. Default 16.
    pub programs: usize,
    /// Sessions in one program at one time, where it can have several. Default 64.
    pub sessions_per_program: usize,
    /// Seconds that an episode waits for a place in a program. Default 600.
    pub wait_secs: u64,
    /// Bytes of a line that it writes. Default 4 MiB.
    pub line_bytes: usize,
    /// Bytes of all media in one of its answers, decoded. Default 2 MiB.
    pub media_bytes: usize,
}

impl Default for ProgramLimits {
    fn default() -> Self {
        Self {
            programs: 16,
            sessions_per_program: 64,
            wait_secs: 600,
            line_bytes: 4 << 20,
            media_bytes: 2 << 20,
        }
    }
}

/// The sandbox that each program of an environment runs in. The program's folder is mounted at
/// [`ProgramSandbox::FOLDER`] and can only be read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ProgramSandbox {
    /// `docker` or `local`. Default `local`.
    pub backend: String,
    /// The image, as `spar sandbox run --image` takes it; one that lies in the program's folder is taken from there. Default
    /// `default`: the backend's smallest.
    pub image: String,
    /// `none`, `bridge` or `allow:HOST[:PORT],...`. Default `none`.
    pub network: String,
    /// What may be used up.
    pub limits: Limits,
}

impl ProgramSandbox {
    /// Where the folder of the program is found inside.
    pub const FOLDER: &str = "/environment";
}

impl Default for ProgramSandbox {
    fn default() -> Self {
        Self {
            backend: "local".to_owned(),
            image: "default".to_owned(),
            network: "none".to_owned(),
            limits: Limits::default(),
        }
    }
}

impl ProgramSpec {
    /// All that is wrong with it.
    pub fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        if self.command.first().is_none_or(String::is_empty) {
            problems.push("`command` is empty: name a program and its arguments".to_owned());
        }
        if self.command.iter().any(|part| part.contains('\0')) {
            problems.push("`command` has a zero byte".to_owned());
        }
        if let Some(workdir) = self.workdir.as_ref().filter(|workdir| !is_below(workdir)) {
            problems.push(format!("`workdir` is `{workdir}`, must be a path below the folder"));
        }
        for name in self.env.keys().chain(&self.pass_env) {
            if !is_variable_name(name) {
                problems.push(format!("`{}` is no name of a variable", name.escape_debug()));
            }
        }
        if self.env.values().any(|value| value.contains('\0')) {
            problems.push("a variable of `env` has a zero byte".to_owned());
        }
        for name in self.pass_env.iter().filter(|name| self.env.contains_key(*name)) {
            problems.push(format!("variable `{name}` is set by `env` and handed on by `pass_env`"));
        }
        let ProgramTimeouts { start_secs, reset_secs, step_secs } = self.timeouts;
        let ProgramLimits { programs, sessions_per_program, wait_secs, line_bytes, media_bytes } =
            self.limits;
        let numbers = [
            ("timeouts.start_secs", start_secs, 1, MOST_SECONDS),
            ("timeouts.reset_secs", reset_secs, 1, MOST_SECONDS),
            ("timeouts.step_secs", step_secs, 1, MOST_SECONDS),
            ("limits.programs", programs as u64, 1, MOST_PROGRAMS as u64),
            ("limits.sessions_per_program", sessions_per_program as u64, 1, MOST_PROGRAMS as u64),
            ("limits.wait_secs", wait_secs, 1, MOST_SECONDS),
            ("limits.line_bytes", line_bytes as u64, 1024, MOST_BYTES as u64),
            ("limits.media_bytes", media_bytes as u64, 0, MOST_BYTES as u64),
        ];
        for (name, value, least, most) in numbers {
            if !(least..=most).contains(&value) {
                problems.push(format!("{name} is {value}, must lie in {least}..={most}"));
            }
        }
        if let Some(sandbox) = &self.sandbox
            && let Err(detail) = sandbox.network.parse::<NetworkPolicy>()
        {
            problems.push(format!("sandbox.network is `{}`: {detail}", sandbox.network));
        }
        if let Some(ProgramSandbox { image, .. }) = &self.sandbox
            && !is_below(image)
        {
            let detail = "must be an image's name, or a path below the folder";
            problems.push(format!("sandbox.image is `{image}`, {detail}"));
        }
        problems
    }

    /// Equal for equal specs: tasks of equal keys share programs.
    pub fn key(&self) -> String {
        let bytes = serde_json::to_vec(self).expect("a spec has only string keys");
        blake3::hash(&bytes).to_hex().to_string()
    }
}

/// Whether a path leads to nothing outside of the folder that it is relative to.
pub(crate) fn is_below(path: &str) -> bool {
    !path.starts_with('/') && path.split('/').all(|part| part != "..")
}

fn is_variable_name(name: &str) -> bool {
    !name.is_empty() && !name.contains(['=', '\0'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_problems_of_a_program_are_told_at_once() {
        let right = ProgramSpec {
            name: "p".to_owned(),
            folder: None,
            command: vec!["true".to_owned()],
            workdir: Some("sub".to_owned()),
            env: BTreeMap::new(),
            pass_env: vec!["HOME".to_owned()],
            actions: ProgramActions::Both,
            whole_answers: false,
            timeouts: ProgramTimeouts::default(),
            limits: ProgramLimits::default(),
            sandbox: Some(ProgramSandbox::default()),
        };
        assert_eq!(right.problems(), Vec::<String>::new());
        let wrong = ProgramSpec {
            command: Vec::new(),
            workdir: Some("../x".to_owned()),
            env: [("A=B".to_owned(), String::new()), ("HOME".to_owned(), String::new())].into(),
            timeouts: ProgramTimeouts { step_secs: 0, ..ProgramTimeouts::default() },
            limits: ProgramLimits { line_bytes: 1, programs: 0, ..ProgramLimits::default() },
            sandbox: Some(ProgramSandbox {
                network: "all".to_owned(),
                image: "/".to_owned(),
                ..ProgramSandbox::default()
            }),
            ..right.clone()
        };
        assert_eq!(wrong.problems().len(), 9, "{:#?}", wrong.problems());
        assert_ne!(wrong.key(), right.key());
        let text = serde_json::to_string(&right).unwrap();
        assert_eq!(serde_json::from_str::<ProgramSpec>(&text).unwrap(), right);
    }
}
