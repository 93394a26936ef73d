//! `spar env`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

/// Arguments of `spar env`.
#[derive(Debug, Args)]
pub(crate) struct EnvArguments {
    /// What is done.
    #[command(subcommand)]
    pub(crate) command: EnvCommand,
}

/// What can be done with environments of one's own.
#[derive(Debug, Subcommand)]
pub(crate) enum EnvCommand {
    /// Write a folder with a small environment that works, to be changed into one's own.
    Init(EnvInitArguments),
}

/// Arguments of `spar env init`.
#[derive(Debug, Args)]
pub(crate) struct EnvInitArguments {
    /// The folder to make; the environment is called like it.
    #[arg(value_name = "NAME")]
    pub(crate) folder: PathBuf,
    /// What it is written in.
    #[arg(long, value_enum, default_value_t = EnvKind::Python)]
    pub(crate) kind: EnvKind,
    /// For `rust`: the folder of spar's sources, which the crate depends on; left out, the one that holds the present
    /// folder.
    #[arg(long, value_name = "FOLDER")]
    pub(crate) spar: Option<PathBuf>,
}

/// What an environment is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum EnvKind {
    /// A program in Python, without dependencies, and a recipe that trains on it.
    Python,
    /// A crate that adds the environment to spar's whole command line.
    Rust,
    /// Tasks at a shell, as files.
    Tasks,
}
