//! What iterations leave in the metrics.

use std::collections::BTreeMap;

use anyhow::ensure;
use spar_agent::spend::SpendReport;
use spar_agent::{Collection, Evaluation, LimitCounts};
use spar_core::{Limit, Trajectory};
use spar_tasks::Suite;
use spar_trainer::{Drift, MetricRecord, UpdateMetrics};

/// Whether a record is that of an iteration; `warm_start` is what older runs call imitation.
pub(super) fn is_iteration(record: &MetricRecord) -> bool {
    ["imitate", "warm_start", "reinforce", "prefer", "offline"].contains(&&*record.kind)
}

/// The stage that an iteration's record is of; older runs have one of each kind.
pub(super) fn stage_of(record: &MetricRecord) -> &str {
    record.values.get("stage").and_then(|stage| stage.as_str()).unwrap_or(&record.kind)
}

/// Adds the mean over an iteration's updates, drift being the largest.
pub(super) fn with_updates(record: MetricRecord, updates: &[UpdateMetrics]) -> MetricRecord {
    let count = updates.len().max(1) as f64;
    let mean =
        |value: &dyn Fn(&UpdateMetrics) -> f64| updates.iter().map(value).sum::<f64>() / count;
    let mut record = record.with([
        ("updates", updates.len() as f64),
        ("tokens", updates.iter().map(|update| update.tokens as f64).sum()),
        ("computed_tokens", updates.iter().map(|update| update.computed_tokens as f64).sum()),
        ("loss", mean(&|update| update.loss)),
        ("gradient_norm", mean(&|update| update.gradient_norm)),
        ("learning_rate_scale", mean(&|update| f64::from(update.learning_rate_scale))),
    ]);
    let mut drift = Drift::default();
    updates.iter().for_each(|update| drift.merge(&update.drift));
    for (name, distances) in [("current", drift.current), ("all", drift.all)] {
        if distances.tokens > 0 {
            record = record.with([
                (format!("drift_{name}_tokens"), distances.tokens as f64),
                (format!("drift_{name}_mean"), distances.mean()),
                (format!("drift_{name}_max"), distances.max),
            ]);
        }
    }
    let names: std::collections::BTreeSet<&String> =
        updates.iter().flat_map(|update| update.objective.keys()).collect();
    record.with(
        names.into_iter().map(|name| {
            (name.clone(), mean(&|update| *update.objective.get(name).unwrap_or(&0.0)))
        }),
    )
}

/// Adds what came of a collection: of all that was played, whether something is learned from it or not.
pub(super) fn with_collection(record: MetricRecord, collection: &Collection) -> MetricRecord {
    let counts = &collection.counts;
    let episodes = counts.finished.max(1) as f64;
    let branches = counts.branches as f64;
    let of_trees = [("branches", branches), ("replayed_turns", counts.replayed_turns as f64)];
    let record = record.with(of_trees.into_iter().filter(|_| counts.branches > 0));
    let record = with_limits(record, &counts.limits);
    let graders = Some(("grader_failures", counts.grader_failures as f64));
    let record = record.with(graders.filter(|(_, failures)| *failures > 0.0));
    let summaries = Some(("summaries", counts.summaries as f64 / episodes));
    let record = record.with(summaries.filter(|(_, summaries)| *summaries > 0.0));
    let trained = collection.groups.iter().flat_map(|group| &group.trajectories);
    let (calls, of_trained) = trained.fold((0, 0), |(calls, count), trajectory| {
        let actions = trajectory.acting().filter_map(|turn| turn.parsed.action());
        (calls + actions.map(|action| action.tool_calls().len()).sum::<usize>(), count + 1)
    });
    let calls = Some(("tool_calls", calls as f64 / f64::from(of_trained.max(1))));
    let record = record.with(calls.filter(|(_, calls)| *calls > 0.0));
    record.with([
        ("episodes", counts.finished as f64),
        ("success_rate", counts.successes as f64 / episodes),
        ("turns", counts.turns as f64 / episodes),
        ("drawn_tokens", counts.drawn_tokens as f64),
        ("cut_off_turns", counts.cut_off_turns as f64),
        ("truncated", counts.truncated as f64),
        ("refills", counts.refills as f64),
        ("policy_failures", counts.policy_failures as f64),
        ("environment_failures", counts.environment_failures as f64),
        ("sandbox_failures", counts.sandbox_failures as f64),
        ("missing", counts.missing() as f64),
    ])
}

/// Adds how many episodes each limit ended.
fn with_limits(record: MetricRecord, limits: &LimitCounts) -> MetricRecord {
    let counted = |limit: Limit| (format!("truncated_{}", limit.name()), limits.of(limit) as f64);
    record.with(Limit::ALL.map(counted))
}

/// What was spent, beside times: what servers tell may differ between equal runs.
pub(super) fn spend_values(spent: &SpendReport) -> Vec<(&'static str, f64)> {
    let total = &spent.total;
    let mut values = vec![
        ("requests", total.requests as f64),
        ("input_tokens", total.input_tokens as f64),
        ("output_tokens", total.output_tokens as f64),
    ];
    values.extend(spent.cost.map(|cost| ("cost", cost)));
    if total.unknown > 0 {
        values.push(("unknown_requests", total.unknown as f64));
    }
    if total.is_empty() { Vec::new() } else { values }
}

/// The record of an evaluation.
pub(super) fn evaluation_record(
    iteration: u64,
    kind: &str,
    evaluation: &Evaluation,
) -> MetricRecord {
    let score = &evaluation.overall;
    let mut record = MetricRecord::new(iteration, kind).with([
        ("low", score.interval.low),
        ("high", score.interval.high),
        ("episodes", score.episodes as f64),
        ("successes", score.successes as f64),
        ("turns", score.mean_turns),
        ("refills", evaluation.counts.refills as f64),
        ("missing", evaluation.missing as f64),
    ]);
    record = with_limits(record, &score.limits);
    record = record.with(score.success_rate.map(|rate| ("success_rate", rate)));
    record = record.with([("split", evaluation.split.clone())]);
    let by_tag: serde_json::Map<String, serde_json::Value> = evaluation
        .by_tag
        .iter()
        .map(|(tag, score)| (tag.clone(), serde_json::json!([score.successes, score.episodes])))
        .collect();
    // One of which too much is missing has no score.
    for (suite, score) in evaluation.by_suite.iter().filter(|(_, it)| it.success_rate.is_some()) {
        record = with_suite(record, suite, (score.successes, score.episodes), score.mean_reward);
    }
    record.with([("by_tag", serde_json::Value::Object(by_tag))])
}

/// Adds what came of each suite, where several are mixed.
pub(super) fn with_suites(
    record: MetricRecord,
    collection: &Collection,
    suite: &dyn Suite,
) -> MetricRecord {
    let mut by_suite: BTreeMap<&str, (usize, usize, f64)> = BTreeMap::new();
    let mut add = |task: &str, successes, episodes, reward| {
        if let Some(share) = suite.share_of(task) {
            let sums = by_suite.entry(share).or_default();
            *sums = (sums.0 + successes, sums.1 + episodes, sums.2 + reward);
        }
    };
    for group in &collection.groups {
        let success = group.trajectories.iter().filter(|trajectory| trajectory.success).count();
        let reward = group.trajectories.iter().map(Trajectory::total_reward).sum();
        add(&group.task, success, group.trajectories.len(), reward);
    }
    for group in &collection.left_out {
        add(&group.task, group.successes, group.episodes, group.reward);
    }
    by_suite.into_iter().fold(record, |record, (name, (successes, episodes, reward))| {
        with_suite(record, name, (successes, episodes), reward / episodes.max(1) as f64)
    })
}

/// Adds the figures of one suite among several, `name` behind a slash.
fn with_suite(
    record: MetricRecord,
    name: &str,
    (successes, episodes): (usize, usize),
    reward: f64,
) -> MetricRecord {
    let rate = successes as f64 / episodes as f64;
    let measured = [("success_rate", rate), ("reward", reward)];
    let measured = measured.into_iter().filter(|_| episodes > 0);
    let counted = [("episodes", episodes as f64), ("successes", successes as f64)];
    let values = counted.into_iter().chain(measured);
    record.with(values.map(|(value, number)| (format!("{value}/{name}"), number)))
}

/// The results of an evaluation by task.
pub(super) fn task_record(iteration: u64, kind: &str, evaluation: &Evaluation) -> MetricRecord {
    let tasks: serde_json::Map<String, serde_json::Value> = evaluation
        .tasks
        .iter()
        .map(|task| {
            let tally = task.tally;
            (task.task.clone(), serde_json::json!([tally.successes, tally.attempts]))
        })
        .collect();
    MetricRecord::new(iteration, kind)
        .with([("split", evaluation.split.clone())])
        .with([("tasks", serde_json::Value::Object(tasks))])
}

/// Whether the record of an evaluation has a score: it has episodes, and of those that were wanted at
/// most the share `max_missing` did not come about.
pub(super) fn is_scored(record: &MetricRecord, max_missing: f64) -> bool {
    let count = |name: &str| record.number(name).unwrap_or(0.0);
    let (episodes, missing) = (count("episodes"), count("missing"));
    episodes > 0.0 && missing <= max_missing * (episodes + missing)
}

/// An evaluation that has a score.
pub(super) fn accept(
    evaluation: Evaluation,
    last_failure: Option<&str>,
) -> anyhow::Result<Evaluation> {
    let (missing, wanted) = (evaluation.missing, evaluation.missing + evaluation.overall.episodes);
    ensure!(
        !evaluation.is_refused,
        "evaluate on split `{}`: {missing} of {wanted} episodes could not be played, more than \
         `evaluation.max_missing` allows; `spar resume` plays it anew; the last failure: {}",
        evaluation.split,
        last_failure.unwrap_or("unknown")
    );
    Ok(evaluation)
}

#[cfg(test)]
mod tests {
    use spar_agent::statistics::Interval;
    use spar_agent::{CollectionCounts, Score};

    use super::*;

    fn evaluation(successes: usize, episodes: usize, missing: usize) -> Evaluation {
        let is_refused = missing as f64 > 0.05 * (episodes + missing) as f64;
        let rate = successes as f64 / episodes as f64;
        Evaluation {
            suite: "s".to_owned(),
            suite_hash: String::new(),
            split: "dev".to_owned(),
            player: "local".to_owned(),
            overall: Score {
                tasks: episodes,
                episodes,
                refills: 0,
                limits: LimitCounts::default(),
                missing,
                successes,
                success_rate: (!is_refused).then_some(rate),
                interval: Interval::WHOLE,
                mean_turns: 3.0,
                mean_reward: 1.0,
                invalid_rate: 0.0,
                not_executable_rate: 0.0,
                spend: None,
                semi_online: None,
            },
            counts: CollectionCounts::default(),
            missing,
            is_refused,
            is_stopped: false,
            pass_at_k: Vec::new(),
            by_suite: BTreeMap::new(),
            by_seat: BTreeMap::new(),
            by_tag: BTreeMap::new(),
            tasks: Vec::new(),
            calibration: None,
            spend: None,
        }
    }

    #[test]
    fn an_outage_has_no_score_and_ends_the_run_with_a_reason() {
        let error = accept(evaluation(3, 3, 97), Some("the engine is gone")).unwrap_err();
        let text = error.to_string();
        for part in ["split `dev`", "97 of 100", "spar resume", "the engine is gone"] {
            assert!(text.contains(part), "{text}");
        }
        assert!(accept(evaluation(0, 0, 100), None).is_err());
        assert_eq!(accept(evaluation(90, 98, 2), None).unwrap().overall.successes, 90);
        let is_scored = |successes, episodes, missing| {
            let record =
                evaluation_record(7, "evaluation", &evaluation(successes, episodes, missing));
            is_scored(&record, 0.05)
        };
        assert!(!is_scored(3, 3, 97) && !is_scored(0, 0, 0) && !is_scored(0, 0, 100));
        assert!(is_scored(90, 100, 0) && is_scored(90, 95, 5));
    }

    #[test]
    fn a_record_without_a_score_has_no_rate() {
        let record = evaluation_record(7, "evaluation", &evaluation(3, 3, 97));
        assert_eq!((record.number("success_rate"), record.number("missing")), (None, Some(97.0)));
        let record = evaluation_record(7, "evaluation", &evaluation(9, 10, 0));
        assert_eq!(record.number("success_rate"), Some(0.9));
    }
}
