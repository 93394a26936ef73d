//! What can be typed.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

/// The gym in which language-model agents train.
///
/// Without a sub-command's options everything has a sensible default: `spar train` trains a small
/// model from nothing on household chores and shows that it gets better.
#[derive(Debug, Parser)]
#[command(name = "spar", version, arg_required_else_help = true, after_help = EXIT_CODES)]
pub(crate) struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

const EXIT_CODES: &str = "Exit codes: 0 done; 1 failed, or a check found something; 2 wrong \
                          usage; 130 stopped by Ctrl-C, to be resumed where that applies.";

/// A sub-command.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Train a policy: warm start on demonstrations, then reinforcement learning.
    Train(TrainArguments),
    /// Go on with a run that was stopped or killed.
    Resume(ResumeArguments),
}

/// Arguments of `spar train`.
#[derive(Debug, Args)]
pub(crate) struct TrainArguments {
    /// A recipe that ships (see `spar list`), or the path of a .toml file.
    #[arg(default_value = "household")]
    pub(crate) recipe: String,
    /// Train on this suite; `alfworld` chooses the recipe of that name as well.
    #[arg(long)]
    pub(crate) suite: Option<String>,
    /// Folder of third-party data, for suites that need it.
    #[arg(long, env = "ALFWORLD_DATA")]
    pub(crate) data: Option<PathBuf>,
    /// Seed of all random choices.
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// Override a setting of the recipe; may be given several times.
    #[arg(long = "set", value_name = "NAME=VALUE")]
    pub(crate) set: Vec<String>,
    /// Name of the run.
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// Folder that holds the runs.
    #[arg(long, default_value = "runs")]
    pub(crate) runs: PathBuf,
    /// Print the resolved recipe and what would happen, and stop.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print the summary as JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// Threads; results do not depend on it.
    #[arg(long, env = "SPAR_THREADS")]
    pub(crate) threads: Option<usize>,
}

/// Arguments of `spar resume`.
#[derive(Debug, Args)]
pub(crate) struct ResumeArguments {
    /// The run's folder; left out, the one that was written last.
    pub(crate) run: Option<PathBuf>,
    /// Folder that holds the runs.
    #[arg(long, default_value = "runs")]
    pub(crate) runs: PathBuf,
    /// Print the summary as JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// Threads; results do not depend on it.
    #[arg(long, env = "SPAR_THREADS")]
    pub(crate) threads: Option<usize>,
}
