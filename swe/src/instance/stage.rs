use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{
    Artifact, CollectHook, Gold, HealthCheck, HiddenFiles, Instance, Issue, Limits, NetworkPolicy,
    Verification, VerifierSandbox, check_env, check_id,
};

/// One of several tasks that follow each other in one sandbox.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Stage {
    /// Its name.
    pub name: String,
    /// What is to be done.
    pub instruction: String,
    /// Files that are put into the sandbox before it begins.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<HiddenFiles>,
    /// Commands that run in turn before it begins.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub setup: Vec<String>,
    /// What has to hold before it begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub health: Option<HealthCheck>,
    /// Files that are put into the sandbox when it is judged.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hidden: Vec<HiddenFiles>,
    /// How it is judged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verification: Option<Verification>,
    /// Environment variables of the verification alone.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub verifier_env: BTreeMap<String, String>,
    /// What is known to solve it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gold: Option<Gold>,
    /// The rewards, by name, below which the stages after it are left out.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub min_reward: BTreeMap<String, f64>,
    /// Seconds of the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_secs: Option<u64>,
    /// Seconds of the verification.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub test_secs: Option<u64>,
    /// What the agent can reach, where it differs from the instance's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<NetworkPolicy>,
    /// The user that the agent's commands run as, where it differs from the instance's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_user: Option<String>,
    /// The sandbox of the verification, where it is another than the agent's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verifier_sandbox: Option<VerifierSandbox>,
    /// What the verification can reach, where it differs from the instance's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verifier_network: Option<NetworkPolicy>,
    /// The user that the verification runs as, where it differs from the instance's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verifier_user: Option<String>,
    /// What is carried out of the agent's sandbox, beside what the instance says.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<Artifact>,
    /// Commands that run after the agent, behind those of the instance.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub collect: Vec<CollectHook>,
}

/// How rewards of stages become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RewardStrategy {
    /// Their mean, by name; a name that a stage does not have counts 0 for it.
    #[default]
    Mean,
    /// The last stage's.
    Final,
}

impl Stage {
    /// The stage as an instance of its own: all that holds for `whole`, put and judged as the stage is.
    pub fn within(&self, whole: &Instance) -> Instance {
        let mut instance = Instance { stages: Vec::new(), stage_reward: None, ..whole.clone() };
        instance.issue = Issue { problem: self.instruction.clone(), ..Issue::default() };
        instance.hidden.extend(self.hidden.iter().cloned());
        instance.verification.clone_from(&self.verification);
        instance.verifier_env.extend(self.verifier_env.clone());
        if self.gold.is_some() {
            instance.gold.clone_from(&self.gold);
        }
        if let Some(network) = &self.network {
            instance.network = network.clone();
        }
        for (own, all) in [
            (&self.agent_user, &mut instance.agent_user),
            (&self.verifier_user, &mut instance.verifier_user),
        ] {
            if own.is_some() {
                all.clone_from(own);
            }
        }
        if self.verifier_network.is_some() {
            instance.verifier_network.clone_from(&self.verifier_network);
        }
        instance.verifier_sandbox.clone_from(&self.verifier_sandbox);
        instance.artifacts.extend(self.artifacts.iter().cloned());
        instance.collect.extend(self.collect.iter().cloned());
        instance.limits = Limits {
            agent_secs: self.agent_secs.or(whole.limits.agent_secs),
            test_secs: self.test_secs.or(whole.limits.test_secs),
            ..whole.limits
        };
        instance
    }

    pub(crate) fn check(&self, problems: &mut Vec<String>) {
        let mut own = Vec::new();
        check_id(&self.name.replace(' ', "_"), &mut own);
        if self.instruction.trim().is_empty() {
            own.push("its instruction is empty".to_owned());
        }
        for files in self.files.iter().chain(&self.hidden) {
            files.check(&mut own);
        }
        if let Some(verification) = &self.verification {
            verification.check(&mut own);
        }
        if let Some(health) = &self.health {
            health.check("health", &mut own);
        }
        if let Some(gold) = &self.gold {
            gold.check(&mut own);
        }
        check_env(&self.verifier_env, &mut own);
        if self.min_reward.values().any(|reward| reward.is_nan()) {
            own.push("a least reward is no number".to_owned());
        }
        if let Some(network) = &self.network {
            network.check("network", &mut own);
        }
        if let Some(network) = &self.verifier_network {
            network.check("verifier_network", &mut own);
        }
        if let Some(sandbox) = &self.verifier_sandbox {
            sandbox.check(&mut own);
        }
        for artifact in &self.artifacts {
            artifact.check(&mut own);
        }
        let name = crate::error::shortened(&self.name);
        problems.extend(own.into_iter().map(|problem| format!("stage `{name}`: {problem}")));
    }
}
