//! What can be set, by default as the original's configuration for SWE-bench has it.

use std::collections::BTreeMap;

use minijinja::{Value, context};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::registry::NamedOptions;

use super::output::{Output, submission_of};
use super::texts;
use super::{OLD_SENTINEL, SENTINEL};
use crate::toolsets::{Briefing, Submission};

/// Options of mini-swe-agent's toolset. Texts are templates; absent ones are those of the form.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct MiniOptions {
    /// How commands are said: `calls` of a tool `bash`, `backticks`, `xml`, or `v1` for version 1. Default `calls`.
    pub(super) form: Form,
    /// The first message, of `task`, `cwd`, `timeout`, `env` and what `uname` tells (`system`, `release`, `version`,
    /// `machine`). Default absent: the form's, for repositories and for other tasks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) instance: Option<String>,
    /// What is shown of an output, of `output` with `output`, `returncode` and `exception_info`. Default absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) observation: Option<String>,
    /// What is shown where a call is none, of `error`. Default absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) format_error: Option<String>,
    /// What `v1` shows where a command took too long, of `action` with `action`, and `output`. Default absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) timeout: Option<String>,
    /// Seconds that a command may take, 1 to 86400. Default 60.
    pub(super) command_secs: u64,
    /// What a command is the last argument of. Default absent: `bash -c`, and `bash -lc` in `v1`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) interpreter: Option<Vec<String>>,
    /// Variables beside those of the task. Default absent: what keeps pagers and progress bars quiet, and in `calls` the
    /// file that bash reads first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) env: Option<BTreeMap<String, String>>,
}

impl Default for MiniOptions {
    fn default() -> Self {
        Self {
            form: Form::default(),
            instance: None,
            observation: None,
            format_error: None,
            timeout: None,
            command_secs: 60,
            interpreter: None,
            env: None,
        }
    }
}

impl NamedOptions for MiniOptions {
    fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        if !(1..=86_400).contains(&self.command_secs) {
            problems.push(format!("command_secs is {}, must be 1 to 86400", self.command_secs));
        }
        if self.interpreter.as_ref().is_some_and(Vec::is_empty) {
            problems.push("interpreter is empty, must name a program".to_owned());
        }
        if self.timeout.is_some() && self.form != Form::V1 {
            problems.push("timeout is given, and only form `v1` has such a text".to_owned());
        }
        problems
    }
}

impl MiniOptions {
    /// The program that reads commands.
    pub(super) fn interpreter(&self) -> Vec<String> {
        let flags = if self.form == Form::V1 { "-lc" } else { "-c" };
        self.interpreter.clone().unwrap_or_else(|| vec!["bash".to_owned(), flags.to_owned()])
    }

    /// Variables of commands.
    pub(super) fn environment(&self) -> BTreeMap<String, String> {
        if let Some(own) = &self.env {
            return own.clone();
        }
        let quiet = [
            ("PAGER", "cat"),
            ("MANPAGER", "cat"),
            ("LESS", "-R"),
            ("PIP_PROGRESS_BAR", "off"),
            ("TQDM_DISABLE", "1"),
        ];
        let of_bash = [("BASH_ENV", "/root/.bashrc")];
        let of_bash = of_bash.iter().filter(|_| self.form == Form::Calls);
        let all = quiet.iter().chain(of_bash);
        all.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    /// What the first message is given.
    pub(super) fn briefed(&self, briefing: &Briefing<'_>) -> Value {
        let Briefing { task, workdir, command_secs, .. } = *briefing;
        context! {
            task, cwd => workdir, timeout => command_secs, env => self.environment(),
            system => "Linux", release => "", version => "", machine => std::env::consts::ARCH,
        }
    }

    /// What the template of observations is given.
    pub(super) fn observed(&self, output: &Output) -> Value {
        let (text, exception) = (output.text.as_str(), output.exception.as_str());
        let returncode = output.returncode;
        let output = context! { output => text, returncode, exception_info => exception };
        context! { output, timeout => self.command_secs, env => self.environment() }
    }
}

/// How commands are said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Form {
    /// By calls of a tool.
    #[default]
    Calls,
    /// In a block ` ```mswea_bash_command `.
    Backticks,
    /// In a tag `<mswea_bash_command>`.
    Xml,
    /// In a block ` ```bash `, as version 1 has it.
    V1,
}

impl Form {
    /// The first message where there is a repository.
    pub(super) fn repository(self) -> &'static str {
        match self {
            Self::Calls => texts::CALLS_REPOSITORY,
            Self::Backticks => texts::BACKTICKS_REPOSITORY,
            Self::Xml => texts::XML_REPOSITORY,
            Self::V1 => texts::V1_REPOSITORY,
        }
    }

    /// The first message where there is none; two forms have no such text of their own.
    pub(super) fn general(self) -> &'static str {
        match self {
            Self::Calls => texts::CALLS_GENERAL,
            Self::Backticks => texts::BACKTICKS_GENERAL,
            Self::Xml | Self::V1 => self.repository(),
        }
    }

    pub(super) fn observation(self) -> &'static str {
        if self == Self::V1 { texts::V1_OBSERVATION } else { texts::OBSERVATION }
    }

    pub(super) fn format_error(self) -> &'static str {
        match self {
            Self::Calls => texts::CALLS_FORMAT_ERROR,
            Self::Backticks => texts::BACKTICKS_FORMAT_ERROR,
            Self::Xml => texts::XML_FORMAT_ERROR,
            Self::V1 => texts::V1_FORMAT_ERROR,
        }
    }

    /// What an output hands in, where it submits.
    pub(super) fn submits(self, output: &Output) -> Option<Submission> {
        let sentinels: &[&str] = match self {
            Self::V1 => &[SENTINEL, OLD_SENTINEL],
            _ => &[SENTINEL],
        };
        submission_of(output, sentinels)
    }
}
