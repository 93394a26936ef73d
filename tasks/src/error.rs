//! What can go wrong with suites, reward shapers, task samplers and graders.

use std::error::Error;
use std::path::PathBuf;

use spar_core::PolicyError;
use spar_core::registry::RowError;

/// A suite or a task of it cannot be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SuiteError {
    /// No suite has this name.
    #[error("find suite `{name}`: known are {known}, or the path of {formats}")]
    Unknown {
        /// The name asked for.
        name: String,
        /// The names there are.
        known: String,
        /// What paths of suites look like.
        formats: String,
    },
    /// A release of tau2-bench cannot be read.
    #[error("read the tasks of tau2-bench")]
    Tau2(#[source] Box<spar_tau2::Tau2Error>),
    /// WebShop's files cannot be read.
    #[error("read WebShop's products and instructions")]
    Shop(#[source] Box<spar_shop::ShopError>),
    /// Wrappers that there are not, or that have other options.
    #[error("put wrappers around the tasks")]
    Wrappers(#[source] RowError),
    /// Instances of software engineering cannot be read.
    #[error("read instances of software engineering")]
    Instances(#[source] Box<spar_swe::LoadError>),
    /// A path is of no format of suites.
    #[error("find a suite at `{}`: looked for {looked_for}", path.display())]
    NoFormat {
        /// The path.
        path: PathBuf,
        /// What every format looks for.
        looked_for: String,
    },
    /// A path is of several formats of suites.
    #[error(
        "tell what suite lies at `{}`: it is {found}; move what is not meant elsewhere",
        path.display()
    )]
    Ambiguous {
        /// The path.
        path: PathBuf,
        /// What was found there.
        found: String,
    },
    /// The suite has no such split.
    #[error("find split `{split}` of suite `{suite}`: it has {known}")]
    UnknownSplit {
        /// The suite.
        suite: String,
        /// The split asked for.
        split: String,
        /// The splits there are.
        known: String,
    },
    /// The split ends before this index.
    #[error("find task {index} of `{suite}/{split}`: it has {len}")]
    OutOfRange {
        /// The suite.
        suite: String,
        /// The split.
        split: String,
        /// The index asked for.
        index: usize,
        /// How many tasks it has.
        len: usize,
    },
    /// The split has no tasks, and some were to be taken.
    #[error("take tasks of `{suite}/{split}`: it has none")]
    EmptySplit {
        /// The suite.
        suite: String,
        /// The split.
        split: String,
    },
    /// Suites cannot be mixed.
    #[error("mix suites: {detail}")]
    Mixture {
        /// Why not.
        detail: String,
    },
    /// A mixture has no such split.
    #[error(
        "find split `{split}` of a mixture: it has {known}, and `{lacking}` has none of that name; name another of its \
         splits (`splits = {{ {split} = \"...\" }}`), or leave the suite out there (`without = [\"{split}\"]`)"
    )]
    NotMixed {
        /// The split asked for.
        split: String,
        /// The suites that have none of that name.
        lacking: String,
        /// The splits there are.
        known: String,
    },
    /// The suite has no task of this id.
    #[error("find task `{id}` in suite `{suite}`")]
    UnknownTask {
        /// The suite.
        suite: String,
        /// The id asked for.
        id: String,
    },
    /// A file cannot be read.
    #[error("read `{path}`")]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// A suite file is not understood.
    #[error("understand `{path}`")]
    Manifest {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        #[source]
        source: Box<toml::de::Error>,
    },
    /// The suite's data lie in a folder that was not named.
    #[error(
        "open suite `{suite}`: its games are not part of spar; name their folder with --data or {variable}"
    )]
    NoData {
        /// The suite.
        suite: String,
        /// The environment variable that names it.
        variable: &'static str,
    },
    /// A suite of recorded episodes was asked for, and no folder was named.
    #[error(
        "open suite `offline`: name the folder of its dataset with --data, or in its place (`--suite FOLDER`)"
    )]
    NoFolder,
    /// A folder holds no dataset of recorded episodes.
    #[error(
        "read a dataset in `{}`: there is no dataset.json; `spar collect --suite NAME --out {}` makes one",
        path.display(),
        path.display()
    )]
    NoDataset {
        /// The folder.
        path: PathBuf,
    },
    /// A data folder holds nothing that the suite can use.
    #[error("find {what} below `{path}`")]
    EmptyData {
        /// The folder.
        path: PathBuf,
        /// What was looked for.
        what: &'static str,
    },
    /// A task in a file is wrong.
    #[error("understand `{}`, {place}: {detail}", path.display())]
    Task {
        /// The file.
        path: PathBuf,
        /// Where in it.
        place: String,
        /// What is wrong.
        detail: String,
    },
}

/// A reward shaper cannot be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ShaperError {
    /// No shaper has the name, or it does not have the options.
    #[error(transparent)]
    Row(#[from] RowError),
    /// What was kept of it is nothing that it wrote.
    #[error("go on with reward shaper `{name}`: its state is not one of it")]
    State {
        /// The shaper.
        name: &'static str,
    },
}

/// A task sampler cannot be had, or not go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SamplerError {
    /// No sampler has the name, or it does not have the options.
    #[error(transparent)]
    Row(#[from] RowError),
    /// What was kept of it is nothing that it wrote.
    #[error("go on with task sampler `{name}`: its state is not one of it")]
    State {
        /// The sampler.
        name: &'static str,
    },
}

/// A grader cannot be had, or could not judge; that says nothing about the episode.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GraderError {
    /// No grader has this name, or it does not have these options.
    #[error(transparent)]
    Row(#[from] RowError),
    /// Graders cannot be used as they are named.
    #[error("use graders: {}", problems.join("; "))]
    Problems {
        /// All that is wrong.
        problems: Vec<String>,
    },
    /// The model that judges could not be reached, or cannot do what is asked of it.
    #[error("judge by model `{model}`")]
    Model {
        /// The model's name.
        model: String,
        /// What it said.
        #[source]
        source: PolicyError,
    },
    /// The model that judges did not answer in time.
    #[error("get an answer of model `{model}`, which judges, within {seconds} s")]
    Late {
        /// The model's name.
        model: String,
        /// The time it had.
        seconds: u64,
    },
    /// No answer of the judge could be read, however often it was asked.
    #[error(
        "read a verdict of judge `{model}`, asked {asks} times: {detail}; it ended with {answer:?}"
    )]
    Unreadable {
        /// The judge's name.
        model: String,
        /// How often it was asked.
        asks: u32,
        /// What was wrong with its last answer.
        detail: String,
        /// How that ended.
        answer: String,
    },
    /// Where the episode was played could not do its part.
    #[error(transparent)]
    Place(Box<dyn Error + Send + Sync>),
}

impl GraderError {
    /// The model that the episode itself kept from judging it: by filling its context, by what it refuses to answer, or by
    /// words after which it gave no verdict however often it was asked. Absent where the episode has no part in the error.
    pub(crate) fn model_kept_from_judging(&self) -> Option<&str> {
        match self {
            Self::Model {
                model,
                source: PolicyError::ContextFull { .. } | PolicyError::Refused { .. },
            }
            | Self::Unreadable { model, .. } => Some(model),
            _ => None,
        }
    }
}
