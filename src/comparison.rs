//! Recipes compared over several runs each, which differ in their seed.
//!
//! Intervals come from a bootstrap over seeds and tasks, differences from the tasks that both sides
//! played; see [`spar_agent::statistics`].

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::ensure;
use serde::Serialize;
use spar_agent::spend::{SpendReport, read_ledger};
use spar_agent::statistics::{
    Difference, Interval, Outcomes, PermutationTest, SignTest, Tally, TaskTallies,
    matched_permutation_test, permutation_test, rate, sign_test,
};
use spar_core::Seed;
use spar_trainer::{CurveRun, MetricRecord, RunFolder};

use crate::picture::dev_points;
use crate::recipe::{Recipe, StageConfig};
use crate::training::{LEDGER, Summary};

/// Draws of every bootstrap.
const DRAWS: usize = 10_000;

/// What several series of runs reached, and how they differ.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// The series, as they were given.
    pub series: Vec<SeriesResult>,
    /// Every two of them that share tasks, the later one first.
    pub pairs: Vec<PairResult>,
    /// Draws of every bootstrap.
    pub draws: usize,
    /// What a reader has to know of these runs.
    pub notes: Vec<String>,
}

/// What the runs of one recipe reached on the test splits together.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SeriesResult {
    /// Its name.
    pub name: String,
    /// Its runs, by seed.
    pub runs: Vec<RunResult>,
    /// Before reinforcement learning.
    pub before: Option<Pooled>,
    /// At the end: after reinforcement learning, or before it in runs that have none.
    pub after: Option<Pooled>,
    /// What reinforcement learning added, over the runs with both.
    pub gain: Option<Difference>,
    /// Name of the run that was worst at the end.
    pub worst: Option<String>,
    /// The same of each test split by itself; empty where there is one alone.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub splits: BTreeMap<String, Reached>,
    /// What its runs have spent together; absent where none has told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spend: Option<SpendReport>,
}

/// What the runs of one recipe reached on a test split.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Reached {
    /// Before reinforcement learning.
    pub before: Option<Pooled>,
    /// At the end: after reinforcement learning, or before it in runs that have none.
    pub after: Option<Pooled>,
    /// What reinforcement learning added, over the runs with both.
    pub gain: Option<Difference>,
    /// Name of the run that was worst at the end.
    pub worst: Option<String>,
    /// Successes and attempts of that run.
    pub worst_tally: Option<Tally>,
}

/// What one run reached on the test splits together.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunResult {
    /// The run's name.
    pub name: String,
    /// Its folder.
    pub folder: PathBuf,
    /// Its seed.
    pub seed: u64,
    /// Before reinforcement learning.
    pub before: Option<Tally>,
    /// At the end.
    pub after: Option<Tally>,
    /// Success on the dev split by episodes of reinforcement learning.
    pub curve: CurveRun,
    /// What it has spent, evaluations included; absent in older runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spend: Option<SpendReport>,
    /// Whether it has reinforcement learning.
    #[serde(skip)]
    is_reinforced: bool,
    /// By moment.
    #[serde(skip)]
    tasks: [Option<TaskTallies>; 2],
    /// The same by split.
    #[serde(skip)]
    splits: BTreeMap<String, [Option<TaskTallies>; 2]>,
    /// What its recipe says, by the name of the setting.
    #[serde(skip)]
    settings: BTreeMap<String, String>,
}

/// All runs of a series together.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Pooled {
    /// Runs that were evaluated.
    pub runs: usize,
    /// Tasks that any of them played.
    pub tasks: usize,
    /// Successes and attempts.
    #[serde(flatten)]
    pub tally: Tally,
    /// Successes per attempt, 0 to 1.
    pub success_rate: f64,
    /// Where that lies with 95 % confidence, over seeds and tasks; with one run over tasks alone.
    pub interval: Interval,
}

/// How two series differ at the end, on the tasks that both played.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PairResult {
    /// The series that the other one is taken from.
    pub one: String,
    /// The other one.
    pub two: String,
    /// The difference, from a paired bootstrap.
    pub difference: Difference,
    /// Whether other seeds would tell the same.
    pub over_seeds: PermutationTest,
    /// Whether these runs would tell the same on other tasks.
    pub over_tasks: SignTest,
}

/// The two moments at which test splits are played.
const BEFORE: usize = 0;
const AFTER: usize = 1;

impl Comparison {
    /// Compares series of runs, given by name and folders; reads only.
    ///
    /// # Errors
    ///
    /// When a run cannot be read, when one stands in a series twice, which would count it as two seeds, when runs of
    /// a series have recipes that differ in more than the seed, or when two series have the same name.
    pub fn of(series: &[(String, Vec<PathBuf>)]) -> anyhow::Result<Self> {
        let mut notes = Vec::new();
        let mut results: Vec<SeriesResult> = Vec::new();
        for (name, folders) in series {
            let is_taken = results.iter().any(|other| other.name == *name);
            ensure!(!is_taken, "tell two series named `{name}` apart");
            let mut runs = Vec::new();
            let mut seen = HashSet::new();
            for folder in folders {
                let is_new = seen.insert(folder.canonicalize().unwrap_or_else(|_| folder.clone()));
                ensure!(is_new, "count {} twice in series `{name}`", folder.display());
                runs.push(RunResult::read(folder, &mut notes)?);
            }
            runs.sort_by_key(|run| run.seed);
            refuse_other_recipes(name, &runs, &mut notes)?;
            results.push(SeriesResult::new(name, runs));
        }
        let mut pairs = Vec::new();
        for (index, one) in results.iter().enumerate() {
            pairs.extend(results[..index].iter().filter_map(|two| PairResult::of(one, two)));
        }
        if results.iter().any(|series| series.after.as_ref().is_some_and(|after| after.runs == 1)) {
            notes
                .push("one run tells nothing about other seeds: its interval is over tasks".into());
        }
        Ok(Self { series: results, pairs, draws: DRAWS, notes })
    }
}

impl SeriesResult {
    fn new(name: &str, runs: Vec<RunResult>) -> Self {
        let seed = Seed::from_u64(0).derive("compare", name);
        let Reached { before, after, gain, worst, .. } = Reached::of(&runs, seed);
        let names: BTreeSet<&String> = runs.iter().flat_map(|run| run.splits.keys()).collect();
        let of_split = |split: &String| {
            let runs: Vec<RunResult> = runs.iter().map(|run| run.on_split(split)).collect();
            (split.clone(), Reached::of(&runs, seed.derive("split", split)))
        };
        let splits = match names.len() {
            0 | 1 => BTreeMap::new(),
            _ => names.into_iter().map(of_split).collect(),
        };
        Self {
            name: name.to_owned(),
            before,
            after,
            gain,
            worst,
            splits,
            spend: runs
                .iter()
                .filter_map(|run| run.spend.clone())
                .reduce(|sum, spend| sum.plus(&spend)),
            runs,
        }
    }
}

impl Reached {
    fn of(runs: &[RunResult], seed: Seed) -> Self {
        let pooled = |moment: usize| {
            let outcomes = played(runs, moment).1;
            Some(Pooled {
                runs: outcomes.num_runs(),
                tasks: outcomes.num_tasks(),
                tally: outcomes.total(),
                success_rate: outcomes.rate()?,
                interval: outcomes.interval(DRAWS, seed.derive("moment", moment)),
            })
        };
        let has_both =
            |run: &&RunResult| run.is_reinforced && run.tasks.iter().all(Option::is_some);
        let both: Vec<RunResult> = runs.iter().filter(has_both).cloned().collect();
        let [before, after] = [BEFORE, AFTER].map(|moment| played(&both, moment).1);
        let gain = after.difference(&before, true, DRAWS, seed.derive("gain", ""));
        let worst = runs
            .iter()
            .filter_map(|run| Some((run.after?, &run.name)))
            .filter_map(|(tally, name)| Some((rate(tally)?, tally, name)))
            .min_by(|one, two| one.0.total_cmp(&two.0));
        Self {
            before: pooled(BEFORE),
            after: pooled(AFTER),
            gain,
            worst: worst.map(|(_, _, name)| name.clone()),
            worst_tally: worst.map(|(_, tally, _)| tally),
        }
    }
}

/// Settings in which the runs of a series may differ: they have no part in what is learnt.
const FREE_SETTINGS: [&str; 3] = ["seed", "name", "about"];

/// Tables of such settings.
const FREE_TABLES: [&str; 2] = ["spend.", "secrets."];

/// Settings that name what is a run's own, with what is noted where the runs of a series differ in them: where third-party
/// data lies, whose tasks are told apart by their suite's hash, and the checkpoint that a run begins with, since
/// methods are compared from warm starts of which each seed has one.
const OWN_PATHS: [(&str, &str); 2] = [
    ("data.folder", "have data of their own each"),
    ("start_from", "start from checkpoints of their own each"),
];

/// Refuses runs of one series that differ in more than their seed and paths of their own: what they reached together
/// would be that of no recipe.
fn refuse_other_recipes(
    series: &str,
    runs: &[RunResult],
    notes: &mut Vec<String>,
) -> anyhow::Result<()> {
    let Some((first, others)) = runs.split_first() else { return Ok(()) };
    for run in others {
        let names: BTreeSet<&String> = first.settings.keys().chain(run.settings.keys()).collect();
        let differ = |name: &&&String| first.settings.get(**name) != run.settings.get(**name);
        let mut different: Vec<&str> =
            names.iter().filter(differ).map(|name| name.as_str()).collect();
        different.retain(|name| !FREE_SETTINGS.contains(name));
        different.retain(|name| !FREE_TABLES.iter().any(|table| name.starts_with(table)));
        for (path, told) in OWN_PATHS {
            let Some(index) = different.iter().position(|name| *name == path) else { continue };
            different.remove(index);
            let note = format!("the runs of `{series}` {told}");
            if !notes.contains(&note) {
                notes.push(note);
            }
        }
        let listed: Vec<String> =
            different.iter().take(5).map(|name| format!("`{name}`")).collect();
        let more = different.len() - listed.len();
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        ensure!(
            different.is_empty(),
            "pool runs `{}` and `{}` in series `{series}`: their recipes differ in {}{more}; give each recipe a series",
            first.name,
            run.name,
            listed.join(", ")
        );
    }
    Ok(())
}

/// The seeds of the runs that were evaluated at a moment, and what they reached by task.
fn played(runs: &[RunResult], moment: usize) -> (Vec<u64>, Outcomes) {
    let evaluated = || runs.iter().filter(|run| run.tasks[moment].is_some());
    let tasks: Vec<TaskTallies> = evaluated().filter_map(|run| run.tasks[moment].clone()).collect();
    (evaluated().map(|run| run.seed).collect(), Outcomes::new(&tasks))
}

impl PairResult {
    fn of(one: &SeriesResult, two: &SeriesResult) -> Option<Self> {
        let [(seeds, of_one), (other_seeds, of_two)] =
            [one, two].map(|series| played(&series.runs, AFTER));
        // Sorted, so that neighbours tell whether one is there twice.
        let is_matched = seeds == other_seeds && seeds.windows(2).all(|pair| pair[0] != pair[1]);
        let seed = Seed::from_u64(0).derive("pair", &one.name).derive("and", &two.name);
        let difference = of_one.difference(&of_two, is_matched, DRAWS, seed)?;
        let (of_one, of_two) = of_one.on_shared_tasks(&of_two);
        let rates = |outcomes: &Outcomes| -> Vec<f64> {
            outcomes.by_run().into_iter().filter_map(rate).collect()
        };
        let (rates_one, rates_two) = (rates(&of_one), rates(&of_two));
        let test = if is_matched { matched_permutation_test } else { permutation_test };
        Some(Self {
            one: one.name.clone(),
            two: two.name.clone(),
            difference,
            over_seeds: test(&rates_one, &rates_two, seed.derive("permutation", "")),
            over_tasks: sign_test(&of_one.by_task(), &of_two.by_task()),
        })
    }
}

impl RunResult {
    fn read(path: &Path, notes: &mut Vec<String>) -> anyhow::Result<Self> {
        let folder = RunFolder::open(path)?;
        let manifest = folder.manifest()?;
        let recipe = Recipe::of_run(&path.display().to_string(), &folder.config()?)?;
        let (metrics, evaluations) = (folder.metrics()?, folder.evaluations()?);
        let summary = Summary::open(&folder)?;
        let mut is_by_task = true;
        let mut tasks = [None, None];
        let mut splits: BTreeMap<String, [Option<TaskTallies>; 2]> = BTreeMap::new();
        let stages = recipe.stage_configs();
        for (moment, kind) in measured_by(&stages).into_iter().enumerate() {
            let Some(kind) = kind else { continue };
            let mut of_moment = TaskTallies::new();
            let own = evaluations.iter().filter(|record| record.kind == kind).filter_map(split_of);
            let names: BTreeSet<&str> =
                summary.splits.keys().map(String::as_str).chain(own).collect();
            for split in names {
                let results = summary.splits.get(split).and_then(|(before, after)| {
                    if moment == BEFORE { before.as_ref() } else { after.as_ref() }
                });
                // Tasks are the same where their suite is the same to the bit.
                let suites: Vec<&str> = manifest.suites.values().map(String::as_str).collect();
                let key = |task: &str| format!("{}/{split}/{task}", suites.join("+"));
                let of_split: TaskTallies = match (by_task(&evaluations, kind, split), results) {
                    (Some(found), _) => {
                        found.into_iter().map(|(task, tally)| (key(&task), tally)).collect()
                    }
                    // Which tasks they were is not known: they are no other run's.
                    (None, Some(result)) => {
                        is_by_task = false;
                        let one = |index| {
                            let successes = usize::from(index < result.successes);
                            let task = format!("{}/{split}/{index}", path.display());
                            (task, Tally { successes, attempts: 1 })
                        };
                        (0..result.episodes).map(one).collect()
                    }
                    (None, None) => continue,
                };
                of_moment.extend(of_split.clone());
                splits.entry(split.to_owned()).or_default()[moment] = Some(of_split);
            }
            tasks[moment] = (!of_moment.is_empty()).then_some(of_moment);
        }
        let is_reinforced = stages.iter().any(is_reinforcement);
        if tasks[AFTER].is_none() && !is_reinforced {
            tasks[AFTER] = tasks[BEFORE].clone();
            splits.values_mut().for_each(|split| split[AFTER] = split[BEFORE].clone());
        }
        let name = manifest.name;
        if !is_by_task {
            notes.push(format!(
                "run `{name}` did not keep its results by task: it is in no pair, and its tasks count \
                 as its own"
            ));
        }
        if tasks[AFTER].is_none() {
            notes.push(format!("run `{name}` has not played the test splits at its end"));
        }
        let missing: f64 = metrics
            .iter()
            .filter(|record| record.kind.starts_with("test_"))
            .filter_map(|record| record.number("missing"))
            .sum();
        if missing > 0.0 {
            notes.push(format!("run `{name}` lacks {missing} episodes of its test splits"));
        }
        let [before, after] = totals(&tasks);
        Ok(Self {
            folder: path.to_owned(),
            seed: manifest.seed,
            before,
            after,
            curve: dev_points(&metrics),
            spend: read_ledger(&folder.path().join(LEDGER), &recipe.spend)?,
            is_reinforced,
            settings: recipe.settings(),
            name,
            tasks,
            splits,
        })
    }

    /// The same run, as if it had played no other test split.
    fn on_split(&self, split: &str) -> Self {
        let tasks = self.splits.get(split).cloned().unwrap_or_default();
        let [before, after] = totals(&tasks);
        Self { before, after, tasks, splits: BTreeMap::new(), ..self.clone() }
    }
}

/// What was reached at each moment, all tasks together.
fn totals(tasks: &[Option<TaskTallies>; 2]) -> [Option<Tally>; 2] {
    let total = |all: &TaskTallies| Outcomes::new(std::slice::from_ref(all)).total();
    [BEFORE, AFTER].map(|moment| tasks[moment].as_ref().map(total))
}

/// The last results by task of a kind of evaluation on a split.
/// Whether a stage learns from rewards.
fn is_reinforcement(stage: &StageConfig) -> bool {
    stage.kind == "reinforce"
}

/// The stages that measured a run before it learned from rewards and at its end: the last ones of kind `evaluate` ahead of its first
/// stage of reinforcement and behind it. Where it has none, all are ahead of it.
fn measured_by(stages: &[StageConfig]) -> [Option<&str>; 2] {
    let first = stages.iter().position(is_reinforcement).unwrap_or(stages.len());
    let (ahead, behind) = stages.split_at(first);
    [ahead, behind].map(|stages| {
        let last = stages.iter().rev().find(|stage| stage.kind == "evaluate");
        last.map(|stage| stage.name.as_deref().unwrap_or(&stage.kind))
    })
}

/// The split that was evaluated.
fn split_of(record: &MetricRecord) -> Option<&str> {
    record.values.get("split").and_then(|value| value.as_str())
}

fn by_task(
    evaluations: &[MetricRecord],
    kind: &str,
    split: &str,
) -> Option<BTreeMap<String, Tally>> {
    let is_meant = |record: &&MetricRecord| record.kind == kind && split_of(record) == Some(split);
    let record = evaluations.iter().rev().find(is_meant)?;
    let tasks: BTreeMap<String, (usize, usize)> =
        serde_json::from_value(record.values.get("tasks")?.clone()).ok()?;
    let tally = |(successes, attempts)| Tally { successes, attempts };
    Some(tasks.into_iter().map(|(task, found)| (task, tally(found))).collect())
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:<16} {:>4} {:>6}  {:<24} {:<24} {:<24} lowest run",
            "success %", "runs", "tasks", "before reinforcement", "at the end", "gain"
        )?;
        for series in &self.series {
            let SeriesResult { before, after, gain, worst, .. } = series;
            let runs = series.runs.len();
            let worst = series.runs.iter().find(|run| Some(&run.name) == worst.as_ref());
            let worst = worst.and_then(|run| Some((run, run.after?)));
            write_row(f, &series.name, runs, (before, after, gain), worst)?;
            for (split, reached) in &series.splits {
                let Reached { before, after, gain, worst, worst_tally } = reached;
                let worst = series.runs.iter().find(|run| Some(&run.name) == worst.as_ref());
                let name = format!("  {split}");
                write_row(f, &name, runs, (before, after, gain), worst.zip(*worst_tally))?;
            }
        }
        for SeriesResult { name, spend, .. } in &self.series {
            if let Some(spend) = spend.as_ref().filter(|spend| !spend.total.is_empty()) {
                writeln!(f, "{name:<16} {spend}")?;
            }
        }
        if !self.pairs.is_empty() {
            writeln!(f, "\ndifferences at the end, in points, on the tasks that both played")?;
        }
        for pair in &self.pairs {
            let PairResult { difference, over_seeds, over_tasks, .. } = pair;
            let seeds = if difference.is_matched { "matched seeds" } else { "seeds apart" };
            writeln!(
                f,
                "{:<24} {:+.1} {}  {} tasks, {seeds}; over seeds p = {:.2} ({:.2} at the least), \
                 over tasks p = {:.1e} ({} better, {} worse)",
                format!("{} - {}", pair.one, pair.two),
                100.0 * difference.value,
                Percent(&difference.interval),
                difference.tasks,
                over_seeds.p,
                over_seeds.least_p,
                over_tasks.p,
                over_tasks.better,
                over_tasks.worse,
            )?;
        }
        writeln!(
            f,
            "\n95 % intervals: bootstrap over seeds and tasks, {} draws; p: permutations of runs, \
             sign test over tasks",
            self.draws
        )?;
        self.notes.iter().try_for_each(|note| writeln!(f, "note: {note}"))
    }
}

/// A row of the table: what the runs of a series reached, on all splits or on one.
fn write_row(
    f: &mut fmt::Formatter<'_>,
    name: &str,
    runs: usize,
    (before, after, gain): (&Option<Pooled>, &Option<Pooled>, &Option<Difference>),
    worst: Option<(&RunResult, Tally)>,
) -> fmt::Result {
    let share = |pooled: &Option<Pooled>| match pooled {
        None => "-".to_owned(),
        Some(Pooled { success_rate, interval, .. }) => {
            format!("{:.1} {}", 100.0 * success_rate, Percent(interval))
        }
    };
    let gain = gain.as_ref().map_or("-".to_owned(), |gain| {
        format!("{:+.1} {}", 100.0 * gain.value, Percent(&gain.interval))
    });
    let worst = worst.and_then(|(run, tally)| Some((run, rate(tally)?)));
    let worst = worst.map_or("-".to_owned(), |(run, rate)| {
        format!("{:.1}: {}, seed {}", 100.0 * rate, run.name, run.seed)
    });
    let tasks = after.as_ref().or(before.as_ref()).map_or(0, |all| all.tasks);
    writeln!(
        f,
        "{name:<16} {runs:>4} {tasks:>6}  {:<24} {:<24} {gain:<24} {worst}",
        share(before),
        share(after),
    )
}

/// An interval as percentages.
struct Percent<'a>(&'a Interval);

impl fmt::Display for Percent<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "({:.1} to {:.1})", 100.0 * self.0.low, 100.0 * self.0.high)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use spar_trainer::{Manifest, MetricsLog};

    use super::*;

    /// A finished run that solved, of twenty tasks, those below `before` and then those below `after`.
    fn run(root: &Path, name: &str, seed: u64, solved: (usize, usize), keep: bool) -> PathBuf {
        run_on(root, name, seed, &[("seen", solved)], keep)
    }

    /// The same on several test splits.
    fn run_on(
        root: &Path,
        name: &str,
        seed: u64,
        splits: &[(&str, (usize, usize))],
        keep: bool,
    ) -> PathBuf {
        let suites = BTreeMap::from([("suite".to_owned(), "hash".to_owned())]);
        let manifest = Manifest { name: name.to_owned(), seed, suites, ..Manifest::default() };
        let (folder, _lock) = RunFolder::create(root, &manifest, "").unwrap();
        let mut metrics = MetricsLog::open(&folder.metrics_path()).unwrap();
        let mut evaluations = MetricsLog::open(&folder.evaluations_path()).unwrap();
        let played = splits.iter().flat_map(|(split, (before, after))| {
            [("test_before", *before), ("test_after", *after)].map(|(kind, n)| (kind, *split, n))
        });
        for (kind, split, solved) in played {
            let record = MetricRecord::new(1, kind).with([("split", split)]);
            let tasks: serde_json::Map<_, _> = (0..20)
                .map(|task| (format!("task-{task}"), json!([usize::from(task < solved), 1])))
                .collect();
            if keep {
                let tasks = serde_json::Value::Object(tasks);
                evaluations.append(&record.clone().with([("tasks", tasks)])).unwrap();
            }
            let share = solved as f64 / 20.0;
            let numbers = [
                ("successes", solved as f64),
                ("episodes", 20.0),
                ("success_rate", share),
                ("low", share),
                ("high", share),
                ("turns", 3.0),
            ];
            metrics.append(&record.with(numbers)).unwrap();
        }
        folder.path().to_owned()
    }

    #[test]
    fn runs_of_other_recipes_are_no_series() {
        let root = tempfile::tempdir().unwrap();
        let one = run(root.path(), "one", 1, (8, 9), true);
        let two = run(root.path(), "two", 2, (8, 9), true);
        let config = |text: &str| std::fs::write(two.join("config.toml"), text).unwrap();
        let series = [("a".to_owned(), vec![one, two.clone()])];
        let own =
            "seed = 5\nname = \"two\"\nstart_from = \"warm-5\"\n[data]\nfolder = \"elsewhere\"\n";
        config(own);
        let found = Comparison::of(&series).unwrap();
        for told in ["have data of their own each", "start from checkpoints of their own each"] {
            let note = format!("the runs of `a` {told}");
            assert!(found.notes.contains(&note), "{found}");
        }
        config("[reinforce]\niterations = 7\ngroup_size = 3\n");
        let error = Comparison::of(&series).unwrap_err().to_string();
        let expected = "differ in `reinforce.group_size`, `reinforce.iterations`; give each";
        assert!(error.contains(expected), "{error}");
    }

    #[test]
    fn stages_of_ones_own_measure_before_rewards_and_at_the_end() {
        let root = tempfile::tempdir().unwrap();
        let manifest = Manifest { name: "staged".to_owned(), seed: 4, ..Manifest::default() };
        let (folder, _lock) = RunFolder::create(root.path(), &manifest, "").unwrap();
        let stages = [
            "kind = \"evaluate\"\nname = \"raw\"",
            "kind = \"imitate\"",
            "kind = \"evaluate\"\nname = \"imitated\"",
            "kind = \"reinforce\"",
            "kind = \"evaluate\"",
        ];
        let config: String = stages.iter().map(|stage| format!("[[stages]]\n{stage}\n")).collect();
        std::fs::write(folder.path().join("config.toml"), config).unwrap();
        let mut evaluations = MetricsLog::open(&folder.evaluations_path()).unwrap();
        for (kind, split, solved) in [
            ("raw", "test", 0),
            ("imitated", "test", 1),
            ("evaluation", "dev", 0),
            ("evaluate", "test", 3),
        ] {
            let tasks: serde_json::Map<_, _> = (0..4)
                .map(|task| (format!("task-{task}"), json!([usize::from(task < solved), 1])))
                .collect();
            let tasks = serde_json::Value::Object(tasks);
            let split = serde_json::Value::from(split);
            let record = MetricRecord::new(1, kind).with([("split", split), ("tasks", tasks)]);
            evaluations.append(&record).unwrap();
        }
        let found = compare(&[("a", vec![folder.path().to_owned()])]);
        let solved = |pooled: &Option<Pooled>| pooled.as_ref().unwrap().tally;
        let series = &found.series[0];
        assert_eq!(solved(&series.before), Tally { successes: 1, attempts: 4 });
        assert_eq!(solved(&series.after), Tally { successes: 3, attempts: 4 });
    }

    #[test]
    fn splits_are_told_apart_and_together() {
        let root = tempfile::tempdir().unwrap();
        let splits = |one: usize, two: usize| [("one", (8, one)), ("two", (2, two))];
        let runs = [(1, splits(10, 20)), (2, splits(16, 6))]
            .map(|(seed, splits)| run_on(root.path(), &format!("r{seed}"), seed, &splits, true));
        let found = compare(&[("both", runs.to_vec())]);
        let series = &found.series[0];
        assert_eq!(series.worst.as_deref(), Some("r2"));
        let points = |value: f64| (100.0 * value).round();
        let of = |split: &str| {
            let Reached { before, after, gain, worst, worst_tally } = &series.splits[split];
            let solved = |pooled: &Option<Pooled>| pooled.as_ref().unwrap().tally.successes;
            let worst = (worst.as_deref().unwrap(), worst_tally.unwrap().successes);
            (solved(before), solved(after), points(gain.as_ref().unwrap().value), worst)
        };
        assert_eq!(of("one"), (16, 26, 25.0, ("r1", 10)));
        assert_eq!(of("two"), (4, 26, 55.0, ("r2", 6)));
        assert_eq!(series.after.as_ref().unwrap().tally.successes, 52);
        let text = found.to_string();
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[2].starts_with("  one ") && lines[2].ends_with("50.0: r1, seed 1"), "{text}");
        assert!(lines[3].starts_with("  two ") && lines[3].ends_with("30.0: r2, seed 2"), "{text}");
        // A split by itself is what is told anyway.
        let one = run(root.path(), "alone", 3, (8, 9), true);
        assert!(compare(&[("a", vec![one])]).series[0].splits.is_empty());
    }

    fn compare(series: &[(&str, Vec<PathBuf>)]) -> Comparison {
        let series: Vec<_> =
            series.iter().map(|(name, runs)| ((*name).to_owned(), runs.clone())).collect();
        Comparison::of(&series).unwrap()
    }

    #[test]
    fn series_are_paired_on_their_tasks_and_seeds_and_the_worst_run_is_named() {
        let root = tempfile::tempdir().unwrap();
        let runs = |name: &str, reached: &[(u64, usize)]| -> Vec<PathBuf> {
            reached
                .iter()
                .map(|(seed, after)| {
                    run(root.path(), &format!("{name}-{seed}"), *seed, (8, *after), true)
                })
                .collect()
        };
        let plain = runs("plain", &[(2, 9), (0, 12), (1, 10)]);
        let better = runs("better", &[(0, 15), (1, 14), (2, 12)]);
        let found = compare(&[("plain", plain.clone()), ("better", better.clone())]);
        assert_eq!(found.series[0].worst.as_deref(), Some("plain-2"));
        let seeds: Vec<u64> = found.series[0].runs.iter().map(|run| run.seed).collect();
        assert_eq!(seeds, [0, 1, 2]);
        let after = found.series[0].after.as_ref().unwrap();
        assert_eq!((after.tally.successes, after.tally.attempts, after.tasks), (31, 60, 20));
        // Twenty tasks know less than sixty attempts would.
        let pooled = spar_agent::statistics::wilson_interval(after.tally);
        assert!(after.interval.low < pooled.low && after.interval.high > pooled.high);
        let gain = found.series[0].gain.as_ref().unwrap();
        assert!((gain.value - 7.0 / 60.0).abs() < 1e-12 && gain.is_matched);
        let [pair] = &found.pairs[..] else { panic!("one pair") };
        assert_eq!((pair.one.as_str(), pair.two.as_str()), ("better", "plain"));
        assert!((pair.difference.value - 10.0 / 60.0).abs() < 1e-12);
        assert!(pair.difference.is_matched && pair.difference.tasks == 20);
        assert_eq!((pair.over_seeds.p, pair.over_seeds.least_p), (0.25, 0.25));
        assert_eq!((pair.over_tasks.better, pair.over_tasks.worse), (6, 0));
        let text = found.to_string();
        for part in
            ["45.0: plain-2, seed 2", "better - plain", "20 tasks, matched seeds", "+16.7 ("]
        {
            assert!(text.contains(part), "{part}\n{text}");
        }
        // Repeats, to the letter and as JSON.
        let again = compare(&[("plain", plain.clone()), ("better", better)]);
        assert_eq!(serde_json::to_value(&again).unwrap(), serde_json::to_value(&found).unwrap());

        // Other seeds share the tasks only; runs without results by task share nothing.
        let others = runs("others", &[(7, 15), (8, 14)]);
        let found = compare(&[("plain", plain.clone()), ("others", others)]);
        assert!(!found.pairs[0].difference.is_matched && found.pairs[0].difference.tasks == 20);
        let old = run(root.path(), "old", 3, (8, 15), false);
        let found = compare(&[("plain", plain.clone()), ("old", vec![old])]);
        assert!(found.pairs.is_empty());

        // Nothing counts twice.
        let (first, again) = (plain[0].clone(), plain[0].join("..").join("plain-2"));
        let of = |series: &[(&str, &[PathBuf])]| {
            let series: Vec<_> =
                series.iter().map(|(name, runs)| ((*name).to_owned(), runs.to_vec())).collect();
            Comparison::of(&series).map(|_| ()).map_err(|error| error.to_string())
        };
        assert!(of(&[("a", &[first.clone(), again])]).unwrap_err().contains("twice in series `a`"));
        let named_alike = of(&[("a", std::slice::from_ref(&first)), ("a", &plain[1..])]);
        assert!(named_alike.unwrap_err().contains("two series named `a`"));
        assert_eq!(found.series[1].after.as_ref().unwrap().tally.successes, 15);
        assert!(found.notes.iter().any(|note| note.contains("`old` did not keep")), "{found}");
        assert!(found.notes.iter().any(|note| note.contains("nothing about other seeds")));
    }
}
