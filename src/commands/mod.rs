//! One file per sub-command.

mod bench;
mod compare;
mod completions;
mod conformance;
mod doctor;
mod eval;
mod generate;
mod hints;
mod list;
mod play;
mod player;
mod reap;
mod replay;
mod rollout;
mod sandbox;
mod sandbox_shell;
mod show;
mod show_run;
mod suites;
mod train;
mod validate;

use std::io::Write;
use std::process::ExitCode;

use anyhow::Context;
use spar::agent::Cancellation;

use crate::cli::{Cli, Command};

pub(crate) use generate::{parse_family, parse_scenes, parse_size};
pub(crate) use hints::hint;

/// Exit code of a command that Ctrl-C ended.
pub(crate) const STOPPED: u8 = 130;

/// Carries out a command.
pub(crate) fn run(cli: Cli) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("start the runtime")?;
    let result = runtime.block_on(async {
        match cli.command {
            Command::Train(arguments) => train::train(&arguments).await,
            Command::Resume(arguments) => train::resume(&arguments).await,
            Command::Eval(arguments) => eval::eval(&arguments).await,
            Command::Rollout(arguments) => rollout::rollout(&arguments).await,
            Command::Play(arguments) => play::play(&arguments).await,
            Command::Replay(arguments) => replay::replay(&arguments).await,
            Command::Show(arguments) => show::show(&arguments),
            Command::Compare(arguments) => compare::compare(&arguments),
            Command::Validate(arguments) => validate::validate(&arguments).await,
            Command::List(arguments) => list::list(&arguments),
            Command::Conformance(arguments) => conformance::conformance(&arguments),
            Command::Bench(arguments) => bench::bench(&arguments),
            Command::Generate(arguments) => generate::generate(&arguments),
            Command::Sandbox(arguments) => sandbox::sandbox(&arguments).await,
            Command::Reap(arguments) => reap::reap(&arguments).await,
            Command::Doctor(arguments) => doctor::doctor(&arguments).await,
            Command::Completions(arguments) => completions::completions(&arguments),
        }
    });
    // A person at the terminal is waited for on a thread that only a key would end.
    runtime.shutdown_background();
    result
}

/// Writes to standard output.
///
/// # Errors
///
/// What the system says; [`is_closed_pipe`] tells when nobody reads any more.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    let mut output = std::io::stdout().lock();
    output.write_all(text.as_bytes()).and_then(|()| output.flush()).context("write the output")
}

/// Writes a value to standard output as JSON.
pub(crate) fn print_json(value: &impl serde::Serialize) -> anyhow::Result<()> {
    let text = serde_json::to_string_pretty(value).context("write the results as JSON")?;
    print(&(text + "\n"))
}

/// Whether the reader of standard output went away, as `head` does; no failure of ours.
pub(crate) fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        let error = cause.downcast_ref::<std::io::Error>();
        error.is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
    })
}

/// Number of threads: as asked for, or as the machine has.
pub(crate) fn threads(asked: Option<usize>) -> usize {
    let threads = asked.unwrap_or_else(|| {
        std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get)
    });
    let threads = threads.max(1);
    // Fails where the pool was made before, which then stays as it is.
    let _ = rayon::ThreadPoolBuilder::new().num_threads(threads).build_global();
    threads
}

/// Seconds that a second Ctrl-C leaves to sandboxes that are still open.
const LAST_SECS: u64 = 10;

/// Sets the flag on the first Ctrl-C. The second one closes the sandboxes that are still open and
/// ends the process; the third ends it at once.
pub(crate) fn cancel_on_ctrl_c() -> Cancellation {
    let cancellation = Cancellation::new();
    let flag = cancellation.clone();
    let mut interrupts = interrupts();
    tokio::spawn(async move {
        if interrupts.recv().await.is_some() {
            eprintln!("\nstopping cleanly; Ctrl-C again ends at once");
            flag.cancel();
        }
        if interrupts.recv().await.is_some() {
            let last = std::time::Duration::from_secs(LAST_SECS);
            tokio::select! {
                _ = spar::sandbox::pool::shut_down_all(last) => {}
                _ = interrupts.recv() => {}
            }
            std::process::exit(i32::from(STOPPED));
        }
    });
    cancellation
}

/// Ctrl-C from now on; a handler that is installed later would miss an early one.
#[cfg(unix)]
fn interrupts() -> tokio::signal::unix::Signal {
    tokio::signal::unix::signal(tokio::signal::unix::SignalKind::interrupt())
        .expect("the runtime handles signals")
}

/// Ctrl-C from now on; a handler that is installed later would miss an early one.
#[cfg(windows)]
fn interrupts() -> tokio::signal::windows::CtrlC {
    tokio::signal::windows::ctrl_c().expect("the runtime handles signals")
}
