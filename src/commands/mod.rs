//! One file per sub-command.

mod train;

use std::process::ExitCode;

use anyhow::Context;
use spar::agent::Cancellation;

use crate::cli::{Cli, Command};

/// Exit code of a command that Ctrl-C ended.
pub(crate) const STOPPED: u8 = 130;

/// Carries out a command.
pub(crate) fn run(cli: Cli) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("start the runtime")?;
    runtime.block_on(async {
        match cli.command {
            Command::Train(arguments) => train::train(&arguments).await,
            Command::Resume(arguments) => train::resume(&arguments).await,
        }
    })
}

/// What the user can do about an error.
pub(crate) fn hint(error: &anyhow::Error) -> Option<String> {
    error.chain().find_map(|cause| cause.downcast_ref::<spar::trainer::RunFolderError>()?.hint())
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

/// Sets the flag on the first Ctrl-C; the second one ends the process at once.
pub(crate) fn cancel_on_ctrl_c() -> Cancellation {
    let cancellation = Cancellation::new();
    let flag = cancellation.clone();
    tokio::spawn(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            eprintln!("\nstopping cleanly; Ctrl-C again ends at once");
            flag.cancel();
        }
        if tokio::signal::ctrl_c().await.is_ok() {
            std::process::exit(i32::from(STOPPED));
        }
    });
    cancellation
}
