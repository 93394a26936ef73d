//! One file per sub-command.

mod against;
mod audit;
mod bench;
mod collect;
mod compare;
mod completions;
pub(crate) mod conformance;
mod credit;
mod doctor;
mod drawing;
mod env;
mod environments;
mod eval;
mod export;
mod generate;
mod hints;
mod hub_model;
mod judge;
mod list;
mod merge;
pub(crate) mod methods;
mod play;
mod play_judging;
mod play_lines;
mod play_record;
mod play_seats;
mod player;
mod readable;
mod reap;
mod redact;
mod replay;
mod rollout;
mod sandbox;
mod sandbox_forward;
mod sandbox_shell;
mod sandbox_terminal;
mod serve;
mod show;
mod show_row;
mod show_run;
mod suites;
mod sweep;
mod tasks;
mod train;
mod trend;
mod validate;
mod whole_file;

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use anyhow::{Context, ensure};
use spar::agent::Cancellation;
use spar::policy::checkpoint::KeepAs;
use spar::policy::{Tokenizer, Weights, checkpoint};

use crate::cli::{Cli, Command, DecoderArguments};

pub(crate) use generate::{parse_family, parse_scenes, parse_size};
pub(crate) use hints::hint;

/// Number of the signal that ended the command; Ctrl-C's own where there was none.
static STOPPED_BY: AtomicU8 = AtomicU8::new(INTERRUPT);
const INTERRUPT: u8 = 2;

/// Exit code of a command that a signal ended, as a shell would give it: 130 for Ctrl-C, 143 for
/// SIGTERM, 129 for SIGHUP.
pub(crate) fn stopped() -> ExitCode {
    ExitCode::from(stopped_code())
}

fn stopped_code() -> u8 {
    128 + STOPPED_BY.load(Ordering::Relaxed)
}

/// Whether it was Ctrl-C that ended the command, which every process at the terminal is told.
pub(crate) fn was_interrupted() -> bool {
    STOPPED_BY.load(Ordering::Relaxed) == INTERRUPT
}

/// Exit code of a command that a limit of spending ended.
pub(crate) fn stopped_at_limit() -> ExitCode {
    ExitCode::from(3)
}

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
            Command::Eval(mut arguments) => {
                arguments.wrap_semi_online();
                eval::eval(&arguments).await
            }
            Command::Rollout(arguments) => rollout::rollout(&arguments).await,
            Command::Collect(arguments) => collect::collect(&arguments).await,
            Command::Play(arguments) => play::play(&arguments).await,
            Command::Replay(arguments) => replay::replay(&arguments).await,
            Command::Show(arguments) => show::show(&arguments),
            Command::Compare(arguments) => compare::compare(&arguments),
            Command::Sweep(arguments) => sweep::sweep(&arguments).await,
            Command::Credit(arguments) => credit::credit(&arguments),
            Command::Methods(arguments) => methods::methods(&arguments),
            Command::Validate(arguments) => validate::validate(&arguments).await,
            Command::Tasks(arguments) => tasks::tasks(&arguments).await,
            Command::Env(arguments) => env::env(&arguments),
            Command::List(arguments) => list::list(&arguments),
            Command::Conformance(arguments) => conformance::conformance(&arguments),
            Command::Bench(arguments) => bench::bench(&arguments),
            Command::Generate(arguments) => generate::generate(&arguments),
            Command::Serve(arguments) => serve::serve(&arguments).await,
            Command::Merge(arguments) => merge::merge(&arguments).await,
            Command::Audit(arguments) => audit::audit(&arguments).await,
            Command::Sandbox(arguments) => sandbox::sandbox(&arguments).await,
            Command::Reap(arguments) => reap::reap(&arguments).await,
            Command::Redact(arguments) => redact::redact(&arguments),
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
    write_out(&spar::core::redaction::told(text))
}

fn write_out(text: &str) -> anyhow::Result<()> {
    let mut output = std::io::stdout().lock();
    output.write_all(text.as_bytes()).and_then(|()| output.flush()).context("write the output")
}

/// A value as JSON for people, without secrets.
pub(crate) fn json(value: &impl serde::Serialize) -> anyhow::Result<String> {
    let plain = spar::core::redaction::to_json(value).context("write the results as JSON")?;
    let value: serde_json::Value =
        serde_json::from_slice(&plain).context("read what was written")?;
    Ok(serde_json::to_string_pretty(&value).context("write the results as JSON")? + "\n")
}

/// Writes a value to standard output as JSON.
pub(crate) fn print_json(value: &impl serde::Serialize) -> anyhow::Result<()> {
    write_out(&json(value)?)
}

/// Whether the reader of standard output went away, as `head` does; no failure of ours.
pub(crate) fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        let error = cause.downcast_ref::<std::io::Error>();
        error.is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
    })
}

/// The model in `folder`, its decoder where it was asked for, its weights in the form they were asked
/// for.
pub(crate) fn open_model(
    folder: &Path,
    arguments: &DecoderArguments,
) -> anyhow::Result<(Arc<Weights>, Tokenizer)> {
    let keep = arguments.weights;
    let (weights, tokenizer) = checkpoint::open_model(folder, keep)
        .with_context(|| format!("load checkpoint `{}`", folder.display()))?;
    let weights = arguments.device.place(weights).context("place the decoder")?;
    ensure!(
        weights.device().is_none() || keep == KeepAs::Stored,
        "use `--weights {keep}` on a GPU: it keeps weights in bf16; `--device cpu` goes with it"
    );
    Ok((Arc::new(weights), tokenizer))
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

/// Seconds that a second signal leaves to sandboxes that are still open.
const LAST_SECS: u64 = 10;

/// Sets the flag on the first Ctrl-C, SIGTERM or SIGHUP. The second one closes the sandboxes that are
/// still open and ends the process; the third ends it at once.
pub(crate) fn cancel_on_ctrl_c() -> Cancellation {
    let cancellation = Cancellation::new();
    let flag = cancellation.clone();
    let mut signals = Signals::new();
    tokio::spawn(async move {
        if let Some(signal) = signals.next().await {
            STOPPED_BY.store(signal, Ordering::Relaxed);
            // Nobody may be there to read it: the terminal is gone after SIGHUP.
            let _ = writeln!(std::io::stderr(), "\nstopping cleanly; again ends at once");
            flag.cancel();
        }
        if signals.next().await.is_some() {
            let last = std::time::Duration::from_secs(LAST_SECS);
            tokio::select! {
                _ = spar::sandbox::pool::shut_down_all(last) => {}
                _ = signals.next() => {}
            }
            std::process::exit(i32::from(stopped_code()));
        }
    });
    cancellation
}

/// The signals that ask a process to end, from now on; a handler that is installed later would miss an
/// early one.
#[cfg(unix)]
struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
    /// Absent under `nohup`.
    hang_up: Option<tokio::signal::unix::Signal>,
}

#[cfg(unix)]
impl Signals {
    fn new() -> Self {
        use tokio::signal::unix::{SignalKind, signal};
        let listen = |kind| signal(kind).expect("the runtime handles signals");
        Self {
            interrupt: listen(SignalKind::interrupt()),
            terminate: listen(SignalKind::terminate()),
            hang_up: (!ignores_hang_up()).then(|| listen(SignalKind::hangup())),
        }
    }

    /// The next one's number.
    async fn next(&mut self) -> Option<u8> {
        let hang_up = async {
            match &mut self.hang_up {
                Some(signal) => signal.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            got = self.interrupt.recv() => got.map(|()| INTERRUPT),
            got = self.terminate.recv() => got.map(|()| 15),
            got = hang_up => got.map(|()| 1),
        }
    }
}

/// Whether the process was started to outlive its terminal.
#[cfg(unix)]
fn ignores_hang_up() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .is_some_and(|mask| mask & 1 != 0)
}

/// Ctrl-C from now on; a handler that is installed later would miss an early one.
#[cfg(windows)]
struct Signals(tokio::signal::windows::CtrlC);

#[cfg(windows)]
impl Signals {
    fn new() -> Self {
        Self(tokio::signal::windows::ctrl_c().expect("the runtime handles signals"))
    }

    async fn next(&mut self) -> Option<u8> {
        self.0.recv().await.map(|()| INTERRUPT)
    }
}
