use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Limits, SandboxSource, check_absolute, check_env};

/// The sandbox of a verification that has one of its own.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct VerifierSandbox {
    /// What it is made of. Absent: what the agent's is made of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<SandboxSource>,
    /// What may be used up; times say nothing here.
    pub limits: Limits,
    /// Environment variables of all commands.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Where commands start. Absent: where the image says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workdir: Option<String>,
}

impl VerifierSandbox {
    pub(crate) fn check(&self, problems: &mut Vec<String>) {
        if let Some(source) = &self.source {
            source.check("verifier_sandbox", problems);
        }
        if let Some(workdir) = &self.workdir {
            check_absolute("verifier_sandbox: workdir", workdir, problems);
        }
        self.limits.check(problems);
        check_env(&self.env, problems);
    }
}
