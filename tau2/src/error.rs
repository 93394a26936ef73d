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
    #[error("read `{}`: it has {bytes} bytes, where {most} is the most", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Its size.
        bytes: u64,
        /// The most.
        most: u64,
    },
    /// Data have another form than those of a release.
    #[error("take `{}` for data of the release: {detail}", path.display())]
    Data {
        /// The file or folder.
        path: PathBuf,
        /// What is wrong.
        detail: String,
    },
    /// There is no such domain.
    #[error("find the domain `{name}`: there are {known}")]
    UnknownDomain {
        /// The name.
        name: String,
        /// Those there are.
        known: String,
    },
    /// The domain cannot be worked on by an agent alone.
    #[error(
        "have an agent work alone in the domain `{domain}`: `mock` and `telecom` have a solo mode"
    )]
    NoSolo {
        /// The domain.
        domain: DomainName,
    },
    /// There is no release at a path.
    #[error(
        "find a release of tau2-bench at `{}`: looked for folders `mock`, `airline`, `retail` and `telecom` with a database and `tasks.json`, there or below `data/tau2/domains`",
        path.display()
    )]
    NoRelease {
        /// The path.
        path: PathBuf,
    },
    /// There are no recordings at a path.
    #[error("find recordings at `{}`: looked for `DOMAIN/*.jsonl`, or a file in a folder that is called like its domain", path.display())]
    NoRecordings {
        /// The path.
        path: PathBuf,
    },
    /// A policy file is missing.
    #[error("find `{file}` in the folder of the domain `{domain}`")]
    NoPolicy {
        /// The domain.
        domain: DomainName,
        /// The file.
        file: &'static str,
    },
    /// The initial state of a task cannot be set up.
    #[error("set up the initial state of task `{task}`: {detail}")]
    Initial {
        /// The task.
        task: String,
        /// What failed.
        detail: String,
    },
}
