//! `spar completions`.

use std::process::ExitCode;

use clap::CommandFactory;

use super::print;
use crate::cli::{Cli, CompletionsArguments};

/// Prints a completion script.
pub(crate) fn completions(arguments: &CompletionsArguments) -> anyhow::Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Cli::command(), "spar", &mut script);
    print(&String::from_utf8_lossy(&script))?;
    Ok(ExitCode::SUCCESS)
}
