//! Scripts that judge what is left behind in a sandbox.

use std::collections::BTreeMap;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::registry::{NamedOptions, RowError};
use spar_core::{RewardPart, Verdict};

use super::registry::AXIS;
use super::{GradedEpisode, Grader, GradingPlace};
use crate::{GraderError, TaskFile, TerminalVerifier, VerifierSandbox};

/// Options of the grader `script`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ScriptOptions {
    /// Runs in the task's working directory; exit code 0 means solved. Default `sh /tests/test.sh`.
    pub command: String,
    /// Files that are put into `/tests` only when the agent has ended, by path below it. Default none.
    pub files: BTreeMap<String, TaskFile>,
    /// A file into which the command writes the reward, a number from 0 to 1; it counts where the exit code is 0.
    /// Default absent: the reward is 1 then.
    pub reward_file: Option<String>,
    /// Seconds that the command may take; at least 1. Default 300.
    pub verify_secs: u64,
}

impl Default for ScriptOptions {
    fn default() -> Self {
        let TerminalVerifier { command, files, reward_file, verify_secs, .. } =
            TerminalVerifier::default();
        Self { command, files, reward_file, verify_secs }
    }
}

/// Options of the grader `fresh_sandbox`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct FreshSandboxOptions {
    /// As of `script`.
    pub command: String,
    /// As of `script`.
    pub files: BTreeMap<String, TaskFile>,
    /// As of `script`.
    pub reward_file: Option<String>,
    /// As of `script`.
    pub verify_secs: u64,
    /// Files and folders that the fresh sandbox gets as the agent left them, by path; relative ones start from the
    /// task's working directory. At least one has to be named.
    pub carry: Vec<String>,
    /// Bytes that `carry` may take in all; a result that is larger is not solved. At least 1. Default 64 MiB.
    pub carry_limit_bytes: u64,
}

impl Default for FreshSandboxOptions {
    fn default() -> Self {
        let TerminalVerifier { command, files, reward_file, verify_secs, .. } =
            TerminalVerifier::default();
        let TerminalVerifier { carry, carry_limit_bytes, .. } = TerminalVerifier::default();
        Self { command, files, reward_file, verify_secs, carry, carry_limit_bytes }
    }
}

impl NamedOptions for ScriptOptions {
    fn problems(&self) -> Vec<String> {
        verifier_problems(&Script::from(self.clone()).script)
    }
}

impl NamedOptions for FreshSandboxOptions {
    fn problems(&self) -> Vec<String> {
        // What it carries is asked for when it is opened: there is no default.
        let carry = match &self.carry[..] {
            [] => vec!["out".to_owned()],
            named => named.to_vec(),
        };
        verifier_problems(&Script::from(Self { carry, ..self.clone() }).script)
    }
}

/// All that is wrong with a script whatever the task is.
fn verifier_problems(script: &TerminalVerifier) -> Vec<String> {
    let mut problems = script.problems();
    if script.files.values().any(|file| file.host().is_some()) {
        problems.push("`verifier.files` names a file of the host; give its text".to_owned());
    }
    problems.into_iter().map(|problem| problem.replace("verifier.", "")).collect()
}

/// What a script found.
#[derive(Debug, Clone, PartialEq)]
pub struct ScriptFinding {
    /// From 0 to 1.
    pub reward: f64,
    /// Why it is not what it might have been.
    pub reason: Option<String>,
}

/// A script runs on what the agent left behind, once everything of the agent has ended: in its own sandbox (`script`), or in a
/// new one to which the agreed files alone are carried over (`fresh_sandbox`).
///
/// The reward part is `verified`, 1 or the number from 0 to 1 that the script wrote; the task is solved at 1. What the
/// agent itself has made impossible to judge is not solved.
///
/// Source: tests that run behind the agent, as in SWE-bench (arXiv 2310.06770).
#[derive(Debug, Clone, PartialEq)]
pub struct Script {
    script: TerminalVerifier,
}

impl From<ScriptOptions> for Script {
    fn from(options: ScriptOptions) -> Self {
        let ScriptOptions { command, files, reward_file, verify_secs } = options;
        let default = TerminalVerifier::default();
        Self { script: TerminalVerifier { command, files, reward_file, verify_secs, ..default } }
    }
}

impl From<FreshSandboxOptions> for Script {
    fn from(options: FreshSandboxOptions) -> Self {
        let FreshSandboxOptions { command, files, reward_file, verify_secs, .. } = options;
        let FreshSandboxOptions { carry, carry_limit_bytes, .. } = options;
        let sandbox = VerifierSandbox::Fresh;
        Self {
            script: TerminalVerifier {
                command,
                files,
                reward_file,
                verify_secs,
                sandbox,
                carry,
                carry_limit_bytes,
                ..TerminalVerifier::default()
            },
        }
    }
}

impl Script {
    /// A script in the episode's own sandbox.
    ///
    /// # Errors
    ///
    /// [`GraderError::Row`] when an option is outside its range.
    pub fn in_same_sandbox(options: ScriptOptions) -> Result<Self, GraderError> {
        Self::from(options).checked()
    }

    /// A script in a fresh sandbox.
    ///
    /// # Errors
    ///
    /// [`GraderError::Row`] when an option is outside its range.
    pub fn in_fresh_sandbox(options: FreshSandboxOptions) -> Result<Self, GraderError> {
        Self::from(options).checked()
    }

    /// The verifier of a task at a shell.
    pub fn of_task(verifier: &TerminalVerifier) -> Self {
        Self { script: verifier.clone() }
    }

    fn checked(self) -> Result<Self, GraderError> {
        RowError::refuse(AXIS.what, self.name(), verifier_problems(&self.script))?;
        Ok(self)
    }

    /// Runs the script.
    ///
    /// # Errors
    ///
    /// [`GraderError::Place`] when that could not be done, by no doing of the agent.
    pub async fn judge(&self, place: &mut dyn GradingPlace) -> Result<Verdict, GraderError> {
        let ScriptFinding { reward, reason } = place.run_script(&self.script).await?;
        let reason = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
        let part = RewardPart { name: "verified".to_owned(), value: reward };
        Ok(Verdict {
            parts: if reward > 0.0 { vec![part] } else { Vec::new() },
            success: reward >= 1.0,
            details: format!("verified: {reward}{reason}"),
            ..Verdict::default()
        })
    }
}

#[async_trait]
impl Grader for Script {
    fn name(&self) -> &'static str {
        match self.script.sandbox {
            VerifierSandbox::Same => "script",
            VerifierSandbox::Fresh => "fresh_sandbox",
        }
    }

    fn script(&self) -> Option<&TerminalVerifier> {
        Some(&self.script)
    }

    async fn grade(
        &self,
        _: &GradedEpisode<'_>,
        place: &mut dyn GradingPlace,
    ) -> Result<Verdict, GraderError> {
        self.judge(place).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_that_cannot_be_are_refused() {
        let told = |error: GraderError| error.to_string();
        let options =
            ScriptOptions { verify_secs: 0, command: " ".to_owned(), ..Default::default() };
        let text = told(Script::in_same_sandbox(options).unwrap_err());
        assert!(text.contains("`command` is empty") && text.contains("verify_secs"), "{text}");
        let nothing = told(Script::in_fresh_sandbox(Default::default()).unwrap_err());
        assert!(nothing.contains("`carry` names nothing to judge"), "{nothing}");
        let options = FreshSandboxOptions { carry: vec!["out".to_owned()], ..Default::default() };
        let fresh = Script::in_fresh_sandbox(options).unwrap();
        let sandbox = fresh.script().map(|script| script.sandbox);
        assert_eq!((fresh.name(), sandbox), ("fresh_sandbox", Some(VerifierSandbox::Fresh)));
    }
}
