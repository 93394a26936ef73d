//! Predictions and reports of a run in SWE-bench's own shape.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use spar_core::Trajectory;
use spar_swe::grade::{Edition, InfraFailure, Outcome};
use spar_swe::report::{Ended, InstanceReport, Prediction, RunReport, write_predictions};
use spar_tasks::{Suite, SuiteError};

use super::Swe;
use super::SweVerdict;

/// What became of instances in a run, episode by episode; of several attempts at one instance the first counts.
#[derive(Debug, Default)]
pub struct Predictions {
    found: Mutex<BTreeMap<String, Attempt>>,
    rates: Mutex<AttemptRates>,
}

/// How attempts at instances with a repository ended, whatever their tests say (G-RA, arXiv 2508.10548).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct AttemptRates {
    /// All of them.
    pub attempts: usize,
    /// Those whose agent handed in before a limit ended the episode.
    pub completed: usize,
    /// Those in which the repository was changed.
    pub modified: usize,
}

impl AttemptRates {
    /// Completed attempts per attempt, 0 to 1.
    pub fn completion_rate(&self) -> f64 {
        self.completed as f64 / self.attempts.max(1) as f64
    }

    /// Attempts with a change per attempt, 0 to 1.
    pub fn modification_rate(&self) -> f64 {
        self.modified as f64 / self.attempts.max(1) as f64
    }
}

#[derive(Debug)]
struct Attempt {
    episode: u64,
    policy: String,
    verdict: SweVerdict,
}

impl Predictions {
    /// Takes note of an episode, if it is one of the environment `swe` that was judged.
    pub fn note(&self, trajectory: &Trajectory) {
        if trajectory.environment != Swe::NAME || trajectory.is_failed() {
            return;
        }
        let Some(verdict) = trajectory.verdict.as_ref().and_then(SweVerdict::of) else { return };
        if let Some(modified) = verdict.modified() {
            let mut rates = self.rates.lock().unwrap_or_else(PoisonError::into_inner);
            rates.attempts += 1;
            rates.completed += usize::from(verdict.submitted);
            rates.modified += usize::from(modified);
        }
        let (episode, policy) = (trajectory.episode, trajectory.policy.clone());
        let id = verdict.instance_id.clone();
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        let is_first = found.get(&id).is_none_or(|other| other.episode > episode);
        if is_first {
            found.insert(id, Attempt { episode, policy, verdict });
        }
    }

    /// Takes note of what became of somebody's attempt that no episode was played for.
    pub fn note_verdict(&self, policy: &str, verdict: SweVerdict) {
        let (id, policy) = (verdict.instance_id.clone(), policy.to_owned());
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        found.entry(id).or_insert(Attempt { episode: 0, policy, verdict });
    }

    /// How all attempts ended that had a patch to leave; absent where there are none.
    pub fn rates(&self) -> Option<AttemptRates> {
        let rates = *self.rates.lock().unwrap_or_else(PoisonError::into_inner);
        (rates.attempts > 0).then_some(rates)
    }

    /// The files that SWE-bench's tools read, by the ends of their names: `predictions.jsonl`, `report.json` (of the run) and
    /// `instances.json` (of each instance). None where no attempt is a patch.
    ///
    /// # Errors
    ///
    /// [`SuiteError`] when a task of these splits cannot be read: the report names those that nobody attempted.
    pub fn files(
        &self,
        suite: &dyn Suite,
        splits: &[String],
    ) -> Result<Vec<(&'static str, String)>, SuiteError> {
        let found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        if found.values().all(|attempt| attempt.verdict.patch.is_none()) {
            return Ok(Vec::new());
        }
        let instances = instances(suite, splits)?;
        let is_five = found.values().all(|attempt| attempt.verdict.edition == 5);
        let edition = if is_five { Edition::Five } else { Edition::Four };
        let predictions: Vec<Prediction> = found.values().map(Attempt::prediction).collect();
        let ended: BTreeMap<String, Ended> =
            found.iter().map(|(id, attempt)| (id.clone(), attempt.ended(edition))).collect();
        let report = RunReport::new(&instances, &predictions, &ended, edition);
        let reports: BTreeMap<&str, &InstanceReport> = ended
            .iter()
            .filter_map(|(id, ended)| Some((id.as_str(), ended.report.as_ref()?)))
            .collect();
        let reports = serde_json::to_string_pretty(&reports).expect("it has only string keys");
        Ok(vec![
            ("predictions.jsonl", write_predictions(&predictions)),
            ("report.json", report.to_json()),
            ("instances.json", reports + "\n"),
        ])
    }
}

/// The instances of splits.
fn instances(suite: &dyn Suite, splits: &[String]) -> Result<Vec<String>, SuiteError> {
    let mut found = Vec::new();
    for split in splits {
        for index in 0..suite.len(split)? {
            let task = suite.task(split, index)?;
            if task.environment == Swe::NAME {
                found.extend(task.parameters["instance"]["id"].as_str().map(str::to_owned));
            }
        }
    }
    Ok(found)
}

impl Attempt {
    fn prediction(&self) -> Prediction {
        Prediction {
            instance_id: self.verdict.instance_id.clone(),
            model_name_or_path: self.policy.clone(),
            model_patch: self.verdict.patch.clone(),
            other: serde_json::Map::new(),
        }
    }

    fn ended(&self, edition: Edition) -> Ended {
        let SweVerdict { patch, run, outcome, .. } = &self.verdict;
        let run = run.as_ref();
        let sign = run.and_then(|run| InfraFailure::named(run.infra_failure.as_deref()?));
        let has_patch = patch.as_ref().is_some_and(|patch| !patch.is_empty());
        let tests = run.and_then(|run| run.tests.clone());
        // In the reference the evaluation breaks off there.
        let broke_off = *outcome == Outcome::Infrastructure && tests.is_none();
        let mut report = InstanceReport::new(has_patch, tests, sign, edition);
        // More is asked here than that all tests pass.
        report.resolved = has_patch && *outcome == Outcome::Resolved;
        Ended { report: (!broke_off).then_some(report), sign }
    }
}

#[cfg(test)]
mod tests {
    use spar_swe::grade::TestsReport;

    use super::*;
    use crate::swe::TestsRun;

    fn attempt(id: &str, outcome: Outcome, patch: &str) -> Attempt {
        let mut verdict = SweVerdict::without_run(id, outcome, "");
        verdict.patch = Some(patch.to_owned());
        verdict.run = Some(TestsRun {
            tests: (outcome != Outcome::Infrastructure).then(TestsReport::default),
            infra_failure: None,
            infra_is_sure: false,
            log_bytes: 0,
            log: String::new(),
            wall: std::time::Duration::ZERO,
        });
        Attempt { episode: 0, policy: "m".to_owned(), verdict }
    }

    #[test]
    fn reports_say_what_became_of_every_instance() {
        let predictions = Predictions::default();
        for (id, outcome, patch) in [
            ("a", Outcome::Resolved, "p"),
            ("b", Outcome::Failed, "p"),
            ("c", Outcome::Resolved, ""),
            ("d", Outcome::Infrastructure, "p"),
        ] {
            let mut found = predictions.found.lock().unwrap();
            found.insert(id.to_owned(), attempt(id, outcome, patch));
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rows.jsonl");
        let row = |id: &str| {
            serde_json::json!({
                "repo": "a/b", "instance_id": id, "base_commit": "0123456789abcdef", "patch": "", "test_patch": "",
                "problem_statement": "p", "version": "1", "FAIL_TO_PASS": ["t"], "PASS_TO_PASS": [],
                "environment_setup_commit": "0123456789abcdef", "eval_script": "true\n",
                "log_parser": "parse_log_pytest", "image": "x/y:z",
            })
            .to_string()
        };
        std::fs::write(&path, ["a", "b", "c", "d", "e"].map(row).join("\n")).unwrap();
        let suite = spar_tasks::SweSuite::open(&path).unwrap();
        let files = predictions.files(&suite, &["test".to_owned()]).unwrap();
        let lines = files[0].1.lines().count();
        let report: RunReport = serde_json::from_str(&files[1].1).unwrap();
        assert_eq!((lines, report.total_instances, report.submitted_instances), (4, 5, 4));
        assert_eq!(
            (report.resolved_ids, report.unresolved_ids),
            (vec!["a".to_owned()], vec!["b".to_owned()])
        );
        assert_eq!(
            (report.empty_patch_ids, report.error_ids),
            (vec!["c".to_owned()], vec!["d".to_owned()])
        );
        assert_eq!(report.incomplete_ids, ["e"]);
        assert!(Predictions::default().files(&suite, &["test".to_owned()]).unwrap().is_empty());
    }
}
