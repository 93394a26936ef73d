//! What an attempt at an instance came to.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use spar_core::{RewardPart, Verdict};
use spar_swe::grade::{Outcome, TestCounts, TestsReport};

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
    /// Whether the agent has handed it in, before a limit ended the episode.
    #[serde(default)]
    pub submitted: bool,
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
    /// The rewards by their names, where a file has them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub rewards: BTreeMap<String, f64>,
    /// What became of the steps that were reached, for tasks of several: the reward is that of all, the patch the last one's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<StepVerdict>,
    /// Which rules of SWE-bench held: 5, or 4 for all before.
    #[serde(default = "newest")]
    pub edition: u8,
}

/// What became of one step of a task of several.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StepVerdict {
    /// Its name.
    pub name: String,
    /// What was found, as of a task of its own.
    pub verdict: SweVerdict,
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

    /// The name under which a verdict has its [counts](Self::counts) among its artifacts, for readers who want no more.
    pub const COUNTS: &str = "tests";

    /// The name of the reward's part that each of several steps pays when it is judged.
    pub const STEPS: &str = "steps";

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
            submitted: false,
            patch: None,
            applied_by: None,
            left_out: Vec::new(),
            suspicions: Vec::new(),
            flags: BTreeMap::new(),
            run: None,
            rewards: BTreeMap::new(),
            steps: Vec::new(),
            edition: newest(),
        }
    }

    /// How many tests did as they should; absent where they have no names, or nothing can be graded.
    pub fn counts(&self) -> Option<TestCounts> {
        Some(self.run.as_ref()?.tests.as_ref()?.counts())
    }

    /// Whether the agent has changed anything; absent for tasks that have no repository.
    pub fn modified(&self) -> Option<bool> {
        self.patch.as_ref().map(|patch| !patch.trim().is_empty())
    }

    /// That of an episode, where it was judged by the environment `swe`, perhaps beside others.
    pub fn of(verdict: &Verdict) -> Option<Self> {
        let artifacts = &verdict.artifacts;
        // Of several graders each has its own below its name.
        let nested = || artifacts.values().find_map(|found| found.get(Self::ARTIFACT));
        let found = artifacts.get(Self::ARTIFACT).filter(|found| found.get("outcome").is_some());
        Self::deserialize(found.or_else(nested)?).ok()
    }

    /// The verdict of an episode. Where the machinery kept tests from telling, it is [masked](Verdict::masked).
    pub fn into_verdict(self) -> Verdict {
        let due = self.reward;
        self.into_verdict_with(due)
    }

    /// The same, of which so much was not paid before.
    pub(super) fn into_verdict_with(self, due: f64) -> Verdict {
        let success = self.reward >= 1.0;
        let name = if self.steps.is_empty() { PART } else { Self::STEPS };
        let part = RewardPart { name: name.to_owned(), value: due };
        let outcome = serde_json::to_value(self.outcome).unwrap_or_default();
        let mut details =
            format!("{PART}: {} ({})", self.reward, outcome.as_str().unwrap_or_default());
        if !self.reason.is_empty() {
            details += &format!(": {}", self.reason);
        }
        let mut verdict = Verdict {
            parts: if due > 0.0 { vec![part] } else { Vec::new() },
            success,
            details,
            masked: self.outcome == Outcome::Infrastructure,
            ..Verdict::default()
        };
        if let Some(counts) = self.counts() {
            let counts = serde_json::to_value(counts).expect("it has only string keys");
            verdict.artifacts.insert(Self::COUNTS.to_owned(), counts);
        }
        let artifact = serde_json::to_value(self).expect("it has only string keys");
        verdict.artifacts.insert(Self::ARTIFACT.to_owned(), artifact);
        verdict
    }
}

#[cfg(test)]
mod tests {
    use spar_swe::grade::TestLists;

    use super::*;

    #[test]
    fn a_verdict_carries_it_and_masks_what_the_machinery_did() {
        let mut attempt = SweVerdict::without_run("a", Outcome::Resolved, "");
        attempt.reward = 1.0;
        let verdict = attempt.clone().into_verdict();
        assert_eq!((verdict.success, verdict.reward(), verdict.masked), (true, 1.0, false));
        assert_eq!(SweVerdict::of(&verdict), Some(attempt));
        assert_eq!(
            (verdict.artifacts.contains_key("tests"), SweVerdict::of(&verdict).unwrap().modified()),
            (false, None)
        );
        let late = SweVerdict::without_run("a", Outcome::Infrastructure, "late").into_verdict();
        assert_eq!((late.success, late.parts.len(), late.masked), (false, 0, true));
        assert_eq!(late.details, "resolved: 0 (infrastructure): late");
    }

    #[test]
    fn counts_stand_beside_it_and_it_is_found_among_those_of_several_graders() {
        let mut attempt = SweVerdict::without_run("a", Outcome::Partial, "1 of 2");
        attempt.patch = Some("diff".to_owned());
        let lists = |success: &[&str], failure: &[&str]| TestLists {
            success: success.iter().map(|&name| name.to_owned()).collect(),
            failure: failure.iter().map(|&name| name.to_owned()).collect(),
        };
        let tests = TestsReport {
            fail_to_pass: lists(&["x"], &["y"]),
            pass_to_pass: lists(&["z"], &[]),
            ..TestsReport::default()
        };
        attempt.run = Some(TestsRun {
            tests: Some(tests),
            infra_failure: None,
            infra_is_sure: false,
            log_bytes: 0,
            log: String::new(),
            wall: Duration::ZERO,
        });
        let alone = attempt.clone().into_verdict();
        assert_eq!(
            alone.artifacts["tests"],
            serde_json::json!({
                "fail_to_pass": { "passed": 1, "total": 2 },
                "pass_to_pass": { "passed": 1, "total": 1 },
            })
        );
        let own = serde_json::to_value(&alone.artifacts).unwrap();
        let artifacts = BTreeMap::from([("environment".to_owned(), own)]);
        let several = Verdict { artifacts, ..Verdict::default() };
        let found = SweVerdict::of(&several).unwrap();
        assert_eq!((found.modified(), found), (Some(true), attempt));
    }
}
