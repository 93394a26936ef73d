//! What can be typed about tasks.

use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser, RangedU64ValueParser};
use clap::{Args, Subcommand};
use spar::instance_image::DEFAULT_BASE;
use spar::swe::{FOLDER_FORMATS, ROW_FORMATS};

use super::EnvironmentArguments;

/// Arguments of `spar tasks`.
#[derive(Debug, Args)]
pub(crate) struct TasksArguments {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: TasksCommand,
}

/// What can be done with tasks.
#[derive(Debug, Subcommand)]
pub(crate) enum TasksCommand {
    /// List the tasks of a suite.
    Ls(TasksListArguments),
    /// Show one task: what is asked, how it is judged, and what of it is not honoured.
    Show(TasksShowArguments),
    /// Make a suite of published rows or task folders: every one is checked, and those that cannot be taken are told with the reason.
    ///
    /// The folder that is written is a suite, for `spar eval --suite FOLDER`. It is written whole or not at all, has a copy of all
    /// that its tasks need, and importing the same file or folder into it again does nothing.
    Import(ImportArguments),
    /// Grade patches that others have written: a file of predictions, as SWE-bench's tools write and read them.
    ///
    /// Each is applied and tested in a fresh sandbox, as those of agents are.
    Grade(GradeArguments),
    /// Score the tasks that a run has played by how their success went along with that of all, and choose the best of them.
    ///
    /// The score is LIMR's, 1 - sum (r - mean)^2 / sum (1 - mean)^2 over the iterations in which a task was played. Train with
    /// keep.trajectories_every = 1, so that all of them are stored.
    Impact(TasksImpactArguments),
    /// Tell the tasks that no attempt of a run or rollout has solved.
    ///
    /// Those of a model before training are what it cannot do, in so many attempts; `--then` tells how many of them another run, such
    /// as one after training, has solved.
    Unsolved(TasksUnsolvedArguments),
    /// Make tasks.
    Make {
        /// What of.
        #[command(subcommand)]
        command: MakeCommand,
    },
    /// Build images for instances of SWE-bench and its like, where the published ones cannot be had.
    ///
    /// An image has the repository at the instance's base commit and nothing of its history, an interpreter of this machine, and
    /// the packages that the instance pins, from the index of packages that pip uses here. It is called as the instance calls
    /// its own, so that `spar eval` and `spar validate` find it. An image that was built from the same is left alone. Needs
    /// Docker's command line.
    BuildImage(BuildImageArguments),
}

/// What tasks can be made of.
#[derive(Debug, Subcommand)]
pub(crate) enum MakeCommand {
    /// Tasks of repair: source packages with tests, in whose sources mutations make bugs.
    ///
    /// What was made stays where a run is ended, and the same command goes on with it. Tests of a package are its own code:
    /// they run in sandboxes, unless `--backend host` lets them run with the rights of the user.
    Repair(MakeRepairArguments),
}

/// Arguments of `spar tasks impact`.
#[derive(Debug, Args)]
pub(crate) struct TasksImpactArguments {
    /// A run, by name or path, or a store of trajectories.
    pub(crate) path: PathBuf,
    /// The folder that runs are looked for in by name.
    #[arg(long, default_value = "runs")]
    pub(crate) runs: PathBuf,
    /// The share of the scored tasks that is chosen, above 0 and at most 1.
    #[arg(long, default_value = "0.2", value_parser = share)]
    pub(crate) keep: f64,
    /// The file that the ids of the chosen tasks are written to, one a line.
    #[arg(long)]
    pub(crate) out: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `spar tasks unsolved`.
#[derive(Debug, Args)]
pub(crate) struct TasksUnsolvedArguments {
    /// A run, by name or path, or a store of trajectories.
    pub(crate) path: PathBuf,
    /// The folder that runs are looked for in by name.
    #[arg(long, default_value = "runs")]
    pub(crate) runs: PathBuf,
    /// Attempts that a task needs to count.
    #[arg(long, default_value_t = 8, value_parser = RangedU64ValueParser::<usize>::new().range(1..))]
    pub(crate) attempts: usize,
    /// A run or store of later: how many of the unsolved tasks it has solved.
    #[arg(long, value_name = "PATH")]
    pub(crate) then: Option<PathBuf>,
    /// The file that the ids of the unsolved tasks are written to, one a line.
    #[arg(long)]
    pub(crate) out: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

fn share(text: &str) -> Result<f64, String> {
    let share: f64 = text.parse().map_err(|_| format!("`{text}` is no number"))?;
    let is_within = share > 0.0 && share <= 1.0;
    is_within.then_some(share).ok_or_else(|| format!("{share} must be above 0 and at most 1"))
}

/// Arguments of `spar tasks ls`.
#[derive(Debug, Args)]
pub(crate) struct TasksListArguments {
    /// A suite, or the path of one: a file of rows, a folder of tasks, a folder with a suite.toml or the like.
    pub(crate) suite: String,
    /// A split; may be given several times. Left out, all of them.
    #[arg(long)]
    pub(crate) split: Vec<String>,
    /// Tasks of each split, from its first.
    #[arg(long, default_value_t = 50, value_parser = RangedU64ValueParser::<usize>::new().range(1..))]
    pub(crate) limit: usize,
    /// Folder of third-party data, for suites that need it.
    #[arg(long, env = "ALFWORLD_DATA")]
    pub(crate) data: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `spar tasks show`.
#[derive(Debug, Args)]
pub(crate) struct TasksShowArguments {
    /// A suite, or the path of one.
    pub(crate) suite: String,
    /// The task: its id, the last part of it, or its number in the split, from 0; left out, the first.
    #[arg(value_name = "ID|INDEX")]
    pub(crate) task: Option<String>,
    /// The split that a number counts in; left out, the suite's first.
    #[arg(long)]
    pub(crate) split: Option<String>,
    /// Folder of third-party data, for suites that need it.
    #[arg(long, env = "ALFWORLD_DATA")]
    pub(crate) data: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `spar tasks import`.
#[derive(Debug, Args)]
pub(crate) struct ImportArguments {
    /// The format of the rows or task folders; `auto` takes that of the first one that has any.
    #[arg(value_parser = format_names())]
    pub(crate) format: String,
    /// A file of rows (JSON lines, an array of JSON, or Parquet), a task folder, or a folder of task folders.
    pub(crate) path: PathBuf,
    /// The folder of the suite that is made.
    #[arg(long, value_name = "FOLDER")]
    pub(crate) out: PathBuf,
    /// Its name; left out, that of the folder.
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// Take the place of what was imported into the folder from elsewhere.
    #[arg(long)]
    pub(crate) force: bool,
    /// Print the report as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `spar tasks grade`.
#[derive(Debug, Args)]
pub(crate) struct GradeArguments {
    /// A suite of software-engineering instances: a file of rows, a folder.
    pub(crate) suite: String,
    /// JSON lines, or an array or object of JSON, with `instance_id`, `model_name_or_path` and `model_patch`.
    pub(crate) predictions: PathBuf,
    /// A split; may be given several times. Left out, all of them.
    #[arg(long)]
    pub(crate) split: Vec<String>,
    /// Folder of third-party data, for suites that need it.
    #[arg(long, env = "ALFWORLD_DATA")]
    pub(crate) data: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) environment: EnvironmentArguments,
    /// Instances under way at one time, each with a sandbox of its own.
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = RangedU64ValueParser::<usize>::new().range(1..=1024))]
    pub(crate) concurrency: usize,
    /// Write BASE.report.json of the run, BASE.instances.json of each instance and BASE.predictions.jsonl, in SWE-bench's shape.
    #[arg(long, value_name = "BASE")]
    pub(crate) out: Option<PathBuf>,
    /// Print what was found as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// The names of formats of rows.
fn format_names() -> PossibleValuesParser {
    let auto = PossibleValue::new("auto").help("told by the columns, or by the files of a task");
    let rows = ROW_FORMATS.iter().map(|format| (format.name, format.about));
    let named = rows.chain(FOLDER_FORMATS.iter().map(|format| (format.name, format.about)));
    let named = named.map(|(name, about)| PossibleValue::new(name).help(about));
    std::iter::once(auto).chain(named).collect::<Vec<_>>().into()
}

/// Arguments of `spar tasks make repair`.
#[derive(Debug, Args)]
pub(crate) struct MakeRepairArguments {
    /// Source packages of Python or Rust: folders, archives (.tar.gz, .tgz, .tar, .crate), names that `pip download` fetches where
    /// it reaches an index, such as `inflection` or `toolz==1.0.0`, or with `crate:` before them those that `cargo` fetches, such
    /// as `crate:strsim`.
    #[arg(required = true)]
    pub(crate) package: Vec<String>,
    /// The folder that the suites are made in, one for each package.
    #[arg(long, value_name = "FOLDER")]
    pub(crate) out: PathBuf,
    /// Tasks of a package, after which it is done; left out, as many as there are.
    #[arg(long, value_parser = RangedU64ValueParser::<usize>::new().range(1..))]
    pub(crate) count: Option<usize>,
    /// Seed of all random choices.
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
    /// Where tests run: `local` or `docker` (`spar doctor` tells which work here), or `host` for this machine itself, with the
    /// rights of the user.
    #[arg(long, default_value = "local", value_name = "NAME")]
    pub(crate) backend: String,
    /// The interpreter, which has pytest and what the packages need.
    #[arg(long, default_value = "python3", value_name = "PROGRAM")]
    pub(crate) python: PathBuf,
    /// What builds and tests crates: `cargo`, whose toolchain is the one that it takes here.
    #[arg(long, default_value = "cargo", value_name = "PROGRAM")]
    pub(crate) cargo: PathBuf,
    /// Suites of tests that run at one time; results do not depend on it.
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub(crate) workers: usize,
    /// Part of the tasks that have several bugs, 0 to 0.9 [default: 0.2].
    #[arg(long, value_name = "SHARE")]
    pub(crate) stacked: Option<f64>,
    /// Have these tasks be of so many stages, 2 to 8: a bug each, with its own issue and tests, mended one after the other.
    #[arg(long, value_name = "N")]
    pub(crate) stages: Option<usize>,
    /// Part of the tasks that is held out, above 0 and below 1: half of them is the split `dev`, half `test`, and the rest
    /// `train`. Left out, all tasks are of the split `test`.
    #[arg(long, value_name = "SHARE", value_parser = held_out_share)]
    pub(crate) held_out: Option<f64>,
    /// An operator that makes bugs; may be given several times. Left out, all of them.
    #[arg(long = "operator", value_name = "NAME")]
    pub(crate) operators: Vec<String>,
    /// An argument of pytest beside those that are always there, such as `--pytest-arg=--ignore=tests/slow`; may be given
    /// several times.
    #[arg(long = "pytest-arg", value_name = "ARGUMENT", allow_hyphen_values = true)]
    pub(crate) pytest_args: Vec<String>,
    /// Print the reports as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// A share above 0 and below 1.
fn held_out_share(text: &str) -> Result<f64, String> {
    let share: f64 = text.parse().map_err(|_| "it is no number".to_owned())?;
    match share > 0.0 && share < 1.0 {
        true => Ok(share),
        false => Err("it has to be above 0 and below 1".to_owned()),
    }
}

/// Arguments of `spar tasks build-image`.
#[derive(Debug, Args)]
pub(crate) struct BuildImageArguments {
    /// A file of rows, or another suite of software engineering.
    #[arg(value_name = "ROW")]
    pub(crate) suite: String,
    /// The repository: a bare one or a working copy, with the base commit and the tags before it. `{owner}`, `{name}` and `{id}`
    /// stand for the instance's.
    #[arg(long, value_name = "FOLDER")]
    pub(crate) repo: String,
    /// The folder of an interpreter of the version that is needed, with `bin/python3` in it; left out, the newest of that
    /// version below ~/.pyenv/versions.
    #[arg(long, value_name = "FOLDER")]
    pub(crate) python: Option<PathBuf>,
    /// Only the instance of this id; may be given several times. Left out, all of them.
    #[arg(long)]
    pub(crate) id: Vec<String>,
    /// The image to build on: one of Debian, of no older release than this machine's, with git.
    #[arg(long, default_value = DEFAULT_BASE)]
    pub(crate) base: String,
    /// A package of pip for instances of which nothing is known, such as those of `spar tasks make repair`; may be given
    /// several times.
    #[arg(long, value_name = "PACKAGE")]
    pub(crate) pip: Vec<String>,
    /// For the backend `local`: write a suite into this folder, with a root file system for each instance.
    #[arg(long, value_name = "FOLDER", conflicts_with = "id")]
    pub(crate) out: Option<PathBuf>,
    /// Take the place of images of the same names that were built from something else.
    #[arg(long)]
    pub(crate) force: bool,
    /// Print what the builds say, on standard error.
    #[arg(long)]
    pub(crate) verbose: bool,
    /// Print the report as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}
