//! `spar env`.

mod init;

use std::process::ExitCode;

use crate::cli::{EnvArguments, EnvCommand};

/// Does what is asked with environments of one's own.
pub(crate) fn env(arguments: &EnvArguments) -> anyhow::Result<ExitCode> {
    match &arguments.command {
        EnvCommand::Init(arguments) => init::init(arguments),
    }
}
