//! What can go wrong while learning and in a run folder.

use std::io;
use std::path::{Path, PathBuf};

use spar_core::SampleError;
use spar_core::registry::RowError;
use spar_policy::CheckpointError;

/// An update could not be made; the weights are as they were before it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrainerError {
    /// A config names what no table holds, or options that it does not have.
    #[error(transparent)]
    Row(#[from] RowError),
    /// A config has values that cannot be meant.
    #[error("use the configuration: {}", problems.join("; "))]
    Config {
        /// All that is wrong.
        problems: Vec<String>,
    },
    /// A sample's streams contradict each other.
    #[error("train on sample {sample}")]
    Sample {
        /// Index of the sample among those given.
        sample: usize,
        /// The contradiction.
        #[source]
        source: SampleError,
    },
    /// The model gave another number of log-probabilities than the sample has tokens.
    #[error("read the log-probabilities of sample {sample}: {found} for {tokens} tokens")]
    LogprobCount {
        /// Index of the sample among those given.
        sample: usize,
        /// Tokens of the sample.
        tokens: usize,
        /// Log-probabilities that came.
        found: usize,
    },
    /// The model never asked for a sample's loss, so the sample is missing from the gradient.
    #[error("train on sample {sample}: the model left it out")]
    SampleLeftOut {
        /// Index of the sample among those given.
        sample: usize,
    },
    /// The objective needs log-probabilities under a reference model, and the sample has none.
    #[error("train on sample {sample}: it has no log-probabilities of a reference model")]
    NoReference {
        /// Index of the sample among those given.
        sample: usize,
    },
    /// The objective compares the answers of pairs, and an update has only a part of one.
    #[error("train on sample {sample}: the other samples of its pair are not in the same update")]
    PartedPair {
        /// Index of the sample among those given.
        sample: usize,
    },
    /// The objective needs what is measured on tokens, or returns, and the sample has none.
    #[error("train on sample {sample}: it has no {stream}, which the objective needs")]
    NoStream {
        /// Index of the sample among those given.
        sample: usize,
        /// What is missing.
        stream: &'static str,
    },
    /// The objective needs values or returns, which are not measured on samples that are held out.
    #[error(
        "measure `{objective}` on samples that are held out: it needs a value head, leave out its `value_loss`"
    )]
    HeldOutValues {
        /// Name of the objective.
        objective: &'static str,
    },
    /// The objective trains a value head, and the trainer has none.
    #[error("train a value head: the trainer has none")]
    NoHead,
    /// No token of the samples carries weight and has a gradient, so there is nothing to learn from.
    #[error("train on {samples} samples: no token carries weight and has a gradient")]
    NoWeight {
        /// Rows given.
        samples: usize,
    },
    /// A number became infinite or undefined.
    #[error("make update {update}: the {what} is not finite")]
    NonFinite {
        /// Which number.
        what: &'static str,
        /// Number of the update.
        update: u64,
    },
    /// The model could not be run.
    #[error("run the model")]
    Model {
        /// What it said.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The trainer's weights are on a device, and the model does not compute there.
    #[error("run the model on the device that has the trainer's weights")]
    NotOnDevice,
    /// The file that holds the optimiser's state could not be made, read or written; an update that was
    /// under way is made in part, and the trainer goes on from a saved state alone.
    #[error("use the optimiser's state in {}", path.display())]
    StateFile {
        /// The folder of the file, which has no name.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// A saved state cannot be read.
    #[error("load the trainer state")]
    StateUnreadable {
        /// What is wrong with it.
        #[source]
        source: CheckpointError,
    },
    /// A saved state does not fit this trainer.
    #[error("load the trainer state: {detail}")]
    State {
        /// What does not fit.
        detail: String,
    },
}

impl TrainerError {
    /// All that is wrong, each a sentence of its own.
    pub fn problems(&self) -> Vec<String> {
        match self {
            Self::Config { problems } => problems.clone(),
            Self::Row(error) => error.problems(),
            other => vec![other.to_string()],
        }
    }

    /// What the user can do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::StateFile { source, .. } if source.kind() == io::ErrorKind::StorageFull => {
                Some("free disk space, then resume".to_owned())
            }
            Self::StateFile { .. } => Some("resume from the last checkpoint".to_owned()),
            _ => None,
        }
    }
}

/// A run folder could not be made, read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunFolderError {
    /// A new run has the name of one that exists.
    #[error("create run `{name}`: {} exists already", path.display())]
    Exists {
        /// The name.
        name: String,
        /// Where it is.
        path: PathBuf,
    },
    /// There is no such run.
    #[error("open run {}: there is no `manifest.json` in it", path.display())]
    Missing {
        /// Where it was looked for.
        path: PathBuf,
    },
    /// A name would leave the folder of runs, or is empty.
    #[error("name a run `{name}`: use letters, digits, `-`, `_` and `.`, not starting with `.`")]
    Name {
        /// The name.
        name: String,
    },
    /// A secret stands in the config of a new run, which is kept as it is to go on by.
    #[error(
        "create run `{name}`: a secret stands in its recipe, which is kept in plain text: name the environment \
         variable that has it (`api_key_env`), and take passwords out of addresses"
    )]
    Secret {
        /// The name.
        name: String,
    },
    /// Another process writes the run.
    #[error("write run {}: process {owner} is writing it", path.display())]
    Locked {
        /// The run.
        path: PathBuf,
        /// Process id of the owner, or `unknown`.
        owner: String,
    },
    /// A file or folder could not be written; nothing half-written was left.
    #[error("write {}", path.display())]
    Write {
        /// Which.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// A file or folder could not be read.
    #[error("read {}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// A file does not hold what it should.
    #[error("understand {} line {line}: {detail}", path.display())]
    Malformed {
        /// Which file.
        path: PathBuf,
        /// Line, counted from 1.
        line: usize,
        /// What is wrong.
        detail: String,
    },
}

impl RunFolderError {
    pub(crate) fn write(path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Write { path: path.to_owned(), source }
    }

    pub(crate) fn read(path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Read { path: path.to_owned(), source }
    }

    /// What the user can do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Exists { name, .. } => {
                Some(format!("resume `{name}`, or give the new run another name"))
            }
            Self::Locked { .. } => {
                Some("wait for that process to end, or give the new run another name".to_owned())
            }
            Self::Write { source, .. } => match source.kind() {
                io::ErrorKind::StorageFull => Some("free disk space, then resume".to_owned()),
                io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                    Some("choose a folder that can be written".to_owned())
                }
                _ => None,
            },
            _ => None,
        }
    }
}
