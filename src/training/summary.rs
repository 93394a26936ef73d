//! What a run reached.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use spar_trainer::{Checkpoints, MetricRecord, RunFolder, RunFolderError};

use super::records::{is_iteration, stage_of};

/// Success on one split.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SplitResult {
    /// Episodes that solved their task.
    pub successes: usize,
    /// Episodes.
    pub episodes: usize,
    /// Episodes that were wanted and did not come about, for reasons that are not the policy's; they
    /// are not among `episodes`.
    #[serde(default)]
    pub missing: usize,
    /// Successes per episode, 0 to 1.
    pub success_rate: f64,
    /// Where that lies with 95 % confidence (Wilson).
    pub interval: (f64, f64),
    /// Turns per episode.
    pub turns: f64,
    /// The mean return between that of random actions, 0, and that of the expert, 100, of a dataset that was learned from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub normalized_score: Option<f64>,
    /// Tries that broke for reasons that are not the policy's, so that it got another one.
    #[serde(default)]
    pub refills: usize,
    /// Successes and episodes by suite, where several are mixed.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub by_suite: BTreeMap<String, (usize, usize)>,
    /// Successes and episodes by tag.
    pub by_tag: BTreeMap<String, (usize, usize)>,
}

/// What a split came to at some point of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Evaluated {
    /// Iterations before it.
    pub iteration: u64,
    /// The stage that evaluated it, or `re_evaluation`.
    pub stage: String,
    /// The suite.
    pub suite: String,
    /// The split.
    pub split: String,
    /// What came of it.
    pub result: SplitResult,
}

/// What a run reached.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The run's folder.
    pub folder: PathBuf,
    /// Whether all iterations are done.
    pub is_finished: bool,
    /// Iterations done.
    pub iterations: u64,
    /// By stage that was begun: iterations done and updates made.
    pub updates: BTreeMap<String, (u64, u64)>,
    /// Those of these stages that are reinforcement learning.
    #[serde(default)]
    pub reinforced: BTreeSet<String>,
    /// By split: before reinforcement learning and after it; of runs whose stages are not listed.
    pub splits: BTreeMap<String, (Option<SplitResult>, Option<SplitResult>)>,
    /// What stages of their own evaluated, and what was evaluated again behind later ones, in their order.
    #[serde(default)]
    pub evaluations: Vec<Evaluated>,
    /// The checkpoint that the results after reinforcement learning belong to.
    pub checkpoint: Option<PathBuf>,
    /// Largest difference between sampled and recomputed log-probabilities under the same weights.
    pub max_drift: Option<f64>,
}

impl Summary {
    /// What a run on disk reached so far; reads only.
    ///
    /// # Errors
    ///
    /// When its metrics or checkpoints cannot be read.
    pub fn open(run: &RunFolder) -> Result<Self, RunFolderError> {
        let metrics = run.metrics()?;
        let iterations = metrics.iter().filter(|record| is_iteration(record));
        let iterations = iterations.map(|record| record.iteration).max();
        let is_finished = metrics.iter().any(|record| record.kind == "finished");
        let checkpoints = Checkpoints::view(&run.checkpoints_path());
        let checkpoint = match checkpoints.best()? {
            Some(best) => Some(best),
            None => checkpoints.latest()?,
        };
        let (path, checkpoint) = (run.path().to_owned(), checkpoint.map(|found| found.path));
        Ok(Self::of(path, &metrics, iterations.unwrap_or_default(), is_finished, checkpoint))
    }

    /// Collects the summary from the run's metrics.
    pub(super) fn of(
        folder: PathBuf,
        metrics: &[MetricRecord],
        iterations: u64,
        is_finished: bool,
        checkpoint: Option<PathBuf>,
    ) -> Self {
        let mut splits: BTreeMap<String, (Option<SplitResult>, Option<SplitResult>)> =
            BTreeMap::new();
        let mut evaluations = Vec::new();
        for record in metrics {
            let Some(split) = record.values.get("split").and_then(|split| split.as_str()) else {
                continue;
            };
            let entry = || SplitResult::of(record);
            match record.kind.as_str() {
                "test_before" => splits.entry(split.to_owned()).or_default().0 = entry(),
                "test_after" => splits.entry(split.to_owned()).or_default().1 = entry(),
                // On the way, for the learning curve.
                "evaluation" => {}
                stage => {
                    let suite = record.values.get("suite").and_then(|suite| suite.as_str());
                    evaluations.extend(entry().map(|result| Evaluated {
                        iteration: record.iteration,
                        stage: stage.to_owned(),
                        suite: suite.unwrap_or_default().to_owned(),
                        split: split.to_owned(),
                        result,
                    }));
                }
            }
        }
        let mut updates: BTreeMap<String, (u64, u64)> = BTreeMap::new();
        for record in metrics.iter().filter(|record| is_iteration(record)) {
            let of_stage = updates.entry(stage_of(record).to_owned()).or_default();
            of_stage.0 += 1;
            of_stage.1 += record.number("updates").unwrap_or_default() as u64;
        }
        let reinforced = metrics.iter().filter(|record| record.kind == "reinforce");
        let reinforced = reinforced.map(|record| stage_of(record).to_owned()).collect();
        let max_drift = metrics
            .iter()
            .filter_map(|record| record.number("drift_current_max"))
            .fold(None, |max: Option<f64>, drift| Some(max.map_or(drift, |max| max.max(drift))));
        Self {
            folder,
            is_finished,
            iterations,
            updates,
            reinforced,
            splits,
            evaluations,
            checkpoint,
            max_drift,
        }
    }

    /// What a reader must not overlook: stages that changed no weight.
    pub fn warnings(&self) -> Vec<String> {
        let idle = self.updates.iter().filter(|(_, (_, updates))| *updates == 0);
        idle.map(|(stage, (iterations, _))| {
            let why = match self.reinforced.contains(stage) {
                true => "no episode was better than others of its group",
                false => "what was shown gave nothing to learn",
            };
            let stage = stage.replace('_', " ");
            format!("{stage} made no update in {iterations} iterations, nothing was learnt: {why}")
        })
        .collect()
    }
}

impl SplitResult {
    fn of(record: &MetricRecord) -> Option<Self> {
        let number = |name: &str| record.number(name);
        let by_tag = record
            .values
            .get("by_tag")
            .and_then(|by_tag| serde_json::from_value(by_tag.clone()).ok())
            .unwrap_or_default();
        let of_suite = |name: &String| {
            let suite = name.strip_prefix("episodes/")?;
            let successes = number(&format!("successes/{suite}"))? as usize;
            Some((suite.to_owned(), (successes, number(name)? as usize)))
        };
        Some(Self {
            by_suite: record.values.keys().filter_map(of_suite).collect(),
            successes: number("successes")? as usize,
            // None at all have no rate, whatever stands there.
            episodes: number("episodes").filter(|episodes| *episodes > 0.0)? as usize,
            missing: number("missing").unwrap_or(0.0) as usize,
            success_rate: number("success_rate")?,
            interval: (number("low")?, number("high")?),
            turns: number("turns")?,
            normalized_score: number("normalized_score"),
            refills: number("refills").unwrap_or(0.0) as usize,
            by_tag,
        })
    }
}

impl fmt::Display for SplitResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:5.1} % ({:.1} to {:.1})",
            100.0 * self.success_rate,
            100.0 * self.interval.0,
            100.0 * self.interval.1
        )?;
        if let Some(score) = self.normalized_score {
            write!(f, ", normalised {score:.1}")?;
        }
        if self.refills > 0 {
            write!(f, ", {} refills", self.refills)?;
        }
        match self.missing {
            0 => Ok(()),
            missing => write!(f, ", {missing} missing"),
        }
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let title = if self.is_finished { "finished" } else { "stopped" };
        writeln!(f, "\n{title} after {} iterations: {}", self.iterations, self.folder.display())?;
        for warning in self.warnings() {
            writeln!(f, "\nWARNING: {warning}")?;
        }
        if !self.splits.is_empty() {
            writeln!(f, "\n{:<16} {:<26} after it", "success", "before reinforcement")?;
        }
        let text = |result: &Option<SplitResult>| match result {
            Some(result) => result.to_string(),
            None => "-".to_owned(),
        };
        for (split, (before, after)) in &self.splits {
            writeln!(f, "{split:<16} {:<26} {}", text(before), text(after))?;
            let of = |side: &Option<SplitResult>| {
                side.as_ref().map(|result| result.by_suite.clone()).unwrap_or_default()
            };
            let (before, after) = (of(before), of(after));
            let suites: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
            for suite in suites {
                let (before, after) = (share(before.get(suite)), share(after.get(suite)));
                writeln!(f, "  {suite:<14} {before:<26} {after}")?;
            }
        }
        let is_measured = self.splits.values().any(|(_, after)| after.is_some());
        if let Some(name) =
            self.checkpoint.as_ref().filter(|_| is_measured).and_then(|it| it.file_name())
        {
            writeln!(f, "after it: checkpoint {}", name.to_string_lossy())?;
        }
        if !self.evaluations.is_empty() {
            writeln!(f, "\n{:<16} {:>9}  {:<32} success", "evaluated by", "iteration", "split")?;
        }
        for Evaluated { iteration, stage, suite, split, result } in &self.evaluations {
            writeln!(f, "{stage:<16} {iteration:>9}  {:<32} {result}", format!("{suite}/{split}"))?;
            for (suite, tally) in &result.by_suite {
                writeln!(f, "{:<16} {:>9}    {suite:<30} {}", "", "", share(Some(tally)))?;
            }
        }
        if let Some(drift) = self.max_drift {
            writeln!(
                f,
                "\nsampled and recomputed log-probabilities differ by at most {drift:.1e}"
            )?;
        }
        let folder = self.folder.display();
        writeln!(f, "\nnext:")?;
        if !self.is_finished {
            writeln!(f, "  spar resume {folder}")?;
        }
        writeln!(f, "  spar show {folder}")?;
        if let Some(checkpoint) = &self.checkpoint {
            writeln!(f, "  spar eval --checkpoint {}", checkpoint.display())?;
        }
        Ok(())
    }
}

/// Successes among episodes as a share.
pub fn share(tally: Option<&(usize, usize)>) -> String {
    match tally {
        Some((successes, episodes)) if *episodes > 0 => {
            format!("{:5.1} % of {episodes}", 100.0 * *successes as f64 / *episodes as f64)
        }
        _ => "-".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stage_that_updates_nothing_is_told_of() {
        let record = |iteration, kind: &str, updates: f64| {
            MetricRecord::new(iteration, kind).with([("updates", updates)])
        };
        let told = |metrics: &[MetricRecord]| {
            let summary = Summary::of(PathBuf::from("run"), metrics, 3, true, None);
            (summary.warnings().len(), summary.to_string())
        };
        let warm = record(1, "warm_start", 4.0);
        let idle = [warm.clone(), record(2, "reinforce", 0.0), record(3, "reinforce", 0.0)];
        let (warnings, text) = told(&idle);
        assert_eq!(warnings, 1);
        assert!(text.contains("WARNING: reinforce made no update in 2 iterations"), "{text}");
        let moved = [warm.clone(), record(2, "reinforce", 0.0), record(3, "reinforce", 1.0)];
        assert_eq!(told(&moved).0, 0);
        // A stage that has not begun has not failed.
        assert_eq!(told(&[warm]).0, 0);
    }
}
