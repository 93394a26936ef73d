//! What can go wrong outside an episode.

use std::path::PathBuf;

use crate::DomainName;

/// Why a domain or a task could not be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Tau2Error {
    /// A file could not be read.
    #[error("read `{}`", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A file is larger than what is read.
    #[error("`{}` has {bytes} bytes, where {most} is the most", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Its size.
        bytes: u64,
        /// The most.
        most: u64,
    },
    /// Data have another form than those of a release.
    #[error("`{}` is no data of the release: {detail}", path.display())]
    Data {
        /// The file or folder.
        path: PathBuf,
        /// What is wrong.
        detail: String,
    },
    /// There is no such domain.
    #[error("there is no domain `{name}`, only {known}")]
    UnknownDomain {
        /// The name.
        name: String,
        /// Those there are.
        known: String,
    },
    /// The domain cannot be worked on by an agent alone.
    #[error("the domain `{domain}` has no solo mode; `mock` and `telecom` have")]
    NoSolo {
        /// The domain.
        domain: DomainName,
    },
    /// There is no release at a path.
    #[error(
        "there is no release of tau2-bench at `{}`: looked for folders `mock`, `airline`, `retail` and `telecom` with a database and `tasks.json`, there or below `data/tau2/domains`",
        path.display()
    )]
    NoRelease {
        /// The path.
        path: PathBuf,
    },
    /// There are no recordings at a path.
    #[error("there are no recordings at `{}`: looked for `DOMAIN/*.jsonl`", path.display())]
    NoRecordings {
        /// The path.
        path: PathBuf,
    },
    /// A policy file is missing.
    #[error("the folder of the domain `{domain}` has no `{file}`")]
    NoPolicy {
        /// The domain.
        domain: DomainName,
        /// The file.
        file: &'static str,
    },
    /// The initial state of a task cannot be set up.
    #[error("the initial state of task `{task}` cannot be set up: {detail}")]
    Initial {
        /// The task.
        task: String,
        /// What failed.
        detail: String,
    },
}
