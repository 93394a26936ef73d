//! The command line as a function.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser;

use spar_core::redaction;

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
    hide_secrets_in_panics();
    let result = match registry.install() {
        Ok(()) => commands::run(Cli::parse_from(arguments)),
        Err(error) => Err(error.into()),
    };
    match result {
        Ok(code) => code,
        Err(error) if commands::is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{}", redaction::told(format!("error: could not {error:#}")));
            if let Some(hint) = commands::hint(&error) {
                eprintln!("{}", redaction::told(format!("hint: {hint}")));
            }
            ExitCode::FAILURE
        }
    }
}

/// Where a secret is in what a panic says, another message takes the place of the usual one.
fn hide_secrets_in_panics() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let payload = panic.payload();
        let text = payload.downcast_ref::<&str>().copied();
        let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
        let has_secret = |redactor: &redaction::Redactor| {
            text.is_some_and(|text| redactor.is_match(text.as_bytes()))
        };
        match redaction::current() {
            Some(redactor) if has_secret(&redactor) => {
                let place = panic.location().map(ToString::to_string).unwrap_or_default();
                let text = redactor.text(text.unwrap_or_default());
                eprintln!("a thread panicked at {place}:\n{text}");
            }
            _ => usual(panic),
        }
    }));
}
