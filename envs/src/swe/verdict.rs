//! What an attempt at an instance came to.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use spar_core::{RewardPart, Verdict};
use spar_swe::grade::{Outcome, TestsReport};

use super::guard::Flag;

/// The name of the reward's one part, and of the artifact that a [`Verdict`] has this under.
const PART: &str = "resolved";

/// What an attempt at an instance came to, with all that a report of SWE-bench tells. It stands among the artifacts of the
/// episode's [`Verdict`], under [`SweVerdict::ARTIFACT`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SweVerdict {
    /// The instance.
    pub instance_id: String,
    /// The outcome.
    pub outcome: Outcome,
    /// The reward, from 0 to 1: 1 for what is resolved; a fraction where the format grades by one.
    pub reward: f64,
    /// Why it is not resolved, or what else is to be known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// What the agent did, as a diff; empty where it did nothing, absent for tasks that have no repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patch: Option<String>,
    /// By which command the patch could be applied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub applied_by: Option<String>,
    /// Files of the patch that were left out, since they configure how tests run and the solution leaves them alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
    /// What in the patch asked for a second look, if anything.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub suspicions: Vec<String>,
    /// What of the agent's commands whoever reads the episode should look at, each with the number of the first command that
    /// did so, from 1.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub flags: BTreeMap<Flag, usize>,
    /// The run of the tests, where there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<TestsRun>,
    /// Which rules of SWE-bench held: 5, or 4 for all before.
    #[serde(default = "newest")]
    pub edition: u8,
}

/// A run of hidden tests.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TestsRun {
    /// What became of the tests that are expected to pass, where they have names and the log could be graded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tests: Option<TestsReport>,
    /// A sign in the log that the machinery was at fault, in SWE-bench's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub infra_failure: Option<String>,
    /// Whether that sign is one that no patch causes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub infra_is_sure: bool,
    /// Bytes that the tests printed.
    pub log_bytes: u64,
    /// The beginning and the end of what they printed.
    pub log: String,
    /// How long they took.
    pub wall: Duration,
}

fn newest() -> u8 {
    5
}

impl SweVerdict {
    /// The name under which a verdict has it among its artifacts.
    pub const ARTIFACT: &str = "swe";

    /// An attempt that did not come to a run of the tests.
    pub(super) fn without_run(
        instance_id: &str,
        outcome: Outcome,
        reason: impl Into<String>,
    ) -> Self {
        Self {
            instance_id: instance_id.to_owned(),
            outcome,
            reward: 0.0,
            reason: reason.into(),
            patch: None,
            applied_by: None,
            left_out: Vec::new(),
            suspicions: Vec::new(),
            flags: BTreeMap::new(),
            run: None,
            edition: newest(),
        }
    }

    /// That of an episode, where it was judged by the environment `swe`.
    pub fn of(verdict: &Verdict) -> Option<Self> {
        Self::deserialize(verdict.artifacts.get(Self::ARTIFACT)?).ok()
    }

    /// The verdict of an episode. Where the machinery kept tests from telling, it is [masked](Verdict::masked).
    pub fn into_verdict(self) -> Verdict {
        let success = self.reward >= 1.0;
        let part = RewardPart { name: PART.to_owned(), value: self.reward };
        let outcome = serde_json::to_value(self.outcome).unwrap_or_default();
        let mut details =
            format!("{PART}: {} ({})", self.reward, outcome.as_str().unwrap_or_default());
        if !self.reason.is_empty() {
            details += &format!(": {}", self.reason);
        }
        let mut verdict = Verdict {
            parts: if self.reward > 0.0 { vec![part] } else { Vec::new() },
            success,
            details,
            masked: self.outcome == Outcome::Infrastructure,
            ..Verdict::default()
        };
        let artifact = serde_json::to_value(self).expect("it has only string keys");
        verdict.artifacts.insert(Self::ARTIFACT.to_owned(), artifact);
        verdict
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_carries_it_and_masks_what_the_machinery_did() {
        let mut attempt = SweVerdict::without_run("a", Outcome::Resolved, "");
        attempt.reward = 1.0;
        let verdict = attempt.clone().into_verdict();
        assert_eq!((verdict.success, verdict.reward(), verdict.masked), (true, 1.0, false));
        assert_eq!(SweVerdict::of(&verdict), Some(attempt));
        let late = SweVerdict::without_run("a", Outcome::Infrastructure, "late").into_verdict();
        assert_eq!((late.success, late.parts.len(), late.masked), (false, 0, true));
        assert_eq!(late.details, "resolved: 0 (infrastructure): late");
    }
}
