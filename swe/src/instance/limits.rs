use serde::{Deserialize, Serialize};

/// Longest that anything may take: thirty days.
const MAX_SECS: u64 = 30 * 24 * 3600;
/// Most processors.
const MAX_CPUS: f64 = 1024.0;
/// Most mebibytes, a tebibyte of them.
const MAX_MB: u64 = 1 << 20;

/// What may be used up. What is absent, the run decides.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Seconds of wall-clock time for all of the agent's turns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_secs: Option<u64>,
    /// Seconds of the verification.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub test_secs: Option<u64>,
    /// Seconds until the image is built.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub build_secs: Option<u64>,
    /// Processors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpus: Option<f64>,
    /// Memory in MiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_mb: Option<u64>,
    /// Disk in MiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage_mb: Option<u64>,
}

impl Limits {
    pub(crate) fn check(&self, problems: &mut Vec<String>) {
        let numbers = [
            ("agent_secs", self.agent_secs, MAX_SECS),
            ("test_secs", self.test_secs, MAX_SECS),
            ("build_secs", self.build_secs, MAX_SECS),
            ("memory_mb", self.memory_mb, MAX_MB),
            ("storage_mb", self.storage_mb, 64 * MAX_MB),
        ];
        for (name, value, most) in numbers {
            if value.is_some_and(|value| !(1..=most).contains(&value)) {
                let value = value.unwrap_or_default();
                problems.push(format!("limits: `{name}` is {value}, must lie in 1..={most}"));
            }
        }
        if let Some(cpus) = self.cpus
            && !(cpus > 0.0 && cpus <= MAX_CPUS)
        {
            problems.push(format!(
                "limits: `cpus` is {cpus}, must lie above 0 and at most at {MAX_CPUS}"
            ));
        }
    }
}

/// Whole seconds that are at least as long; absent for what is no time.
pub(crate) fn whole_secs(secs: f64) -> Option<u64> {
    (secs.is_finite() && secs > 0.0 && secs <= MAX_SECS as f64).then(|| secs.ceil() as u64)
}
