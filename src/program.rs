//! The command line as a function.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser;

use crate::cli::Cli;
use crate::{Registry, commands};

/// The command line of spar with the rows of `registry`: a program of its own is this one call.
///
/// Training takes and gives back large buffers all the time; a program that trains is faster with an allocator that
/// keeps them, such as mimalloc, which `spar` itself has.
pub fn main(registry: Registry) -> ExitCode {
    run(registry, std::env::args_os())
}

/// The same with other arguments than the process's; the first one is the program's name.
///
/// Ends the process where the arguments cannot be understood or ask for help, as [`main`] does.
pub fn run<A>(registry: Registry, arguments: impl IntoIterator<Item = A>) -> ExitCode
where
    A: Into<OsString> + Clone,
{
    let result = match registry.install() {
        Ok(()) => commands::run(Cli::parse_from(arguments)),
        Err(error) => Err(error.into()),
    };
    match result {
        Ok(code) => code,
        Err(error) if commands::is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: could not {error:#}");
            if let Some(hint) = commands::hint(&error) {
                eprintln!("hint: {hint}");
            }
            ExitCode::FAILURE
        }
    }
}
