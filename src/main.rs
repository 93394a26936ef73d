//! The command line of spar.

mod bar;
mod cli;
mod commands;
mod progress;

use std::process::ExitCode;

use clap::Parser;

/// Updates take and give back large buffers all the time, which the C library's allocator returns to the
/// system each time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let arguments = cli::Cli::parse();
    match commands::run(arguments) {
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
