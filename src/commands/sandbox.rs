//! `spar sandbox`.

use std::io::{IsTerminal, Read, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use anyhow::{Context, bail, ensure};
use serde_json::json;
use spar::agent::Cancellation;
use spar::sandbox::pool::{PoolConfig, SandboxPool};
use spar::sandbox::registry::{self, BackendRow};
use spar::sandbox::{
    Change, ChangeKind, Changes, Determinism, ExecEnd, ExecRequest, ExecResult, FileKind, Image,
    Limits, NetworkPolicy, OutputSink, Sandbox, SandboxBackend, SandboxRecord, SandboxSpec, Stream,
};
use tokio::sync::mpsc;

use super::{
    cancel_on_ctrl_c, print, print_json, sandbox_forward, sandbox_shell, sandbox_terminal, stopped,
};
use crate::cli::{
    SandboxArguments, SandboxCommand, SandboxListArguments, SandboxRunArguments, SpecArguments,
};

/// What standard input may hold.
const MAX_STDIN_BYTES: u64 = 64 << 20;
/// What asking all backends for a list, or to reap, may take.
const ASK: Duration = Duration::from_secs(60);

/// Runs commands in a sandbox, works in one, or lists them.
pub(crate) async fn sandbox(arguments: &SandboxArguments) -> anyhow::Result<ExitCode> {
    match &arguments.command {
        SandboxCommand::Run(arguments) => run(arguments).await,
        SandboxCommand::Shell(arguments) => sandbox_shell::shell(arguments).await,
        SandboxCommand::Ls(arguments) => ls(arguments).await,
    }
}

/// A backend with a pool for the sandboxes of one command, everything of which is closed in the
/// end.
pub(super) struct Session {
    pub(super) pool: Arc<SandboxPool>,
    pub(super) spec: SandboxSpec,
    pub(super) cancellation: Cancellation,
}

impl Session {
    /// Opens the backend, and listens for Ctrl-C. The pool removes what dead runs left there.
    pub(super) fn open(arguments: &SpecArguments, max_live: usize) -> anyhow::Result<Self> {
        let spec = spec(arguments)?;
        let backend = registry::open(&arguments.backend)?;
        let config = PoolConfig { max_live, ..PoolConfig::default() };
        let pool = Arc::new(SandboxPool::new(backend, config)?);
        Ok(Self { pool, spec, cancellation: cancel_on_ctrl_c() })
    }

    /// Does `work`, unless Ctrl-C ends it (then the result is absent), and closes everything either
    /// way.
    pub(super) async fn finish<T>(
        self,
        work: impl Future<Output = anyhow::Result<T>>,
    ) -> anyhow::Result<Option<T>> {
        let found = tokio::select! {
            biased;
            () = self.cancellation.cancelled() => Ok(None),
            found = work => found.map(Some),
        };
        self.pool.shutdown().await;
        let failures = self.pool.metrics().close_failures;
        if failures > 0 {
            eprintln!("warning: could not remove a sandbox; `spar reap` tries again");
        }
        found
    }
}

/// The spec that was typed.
fn spec(arguments: &SpecArguments) -> anyhow::Result<SandboxSpec> {
    let Ok(image) = arguments.image.parse::<Image>();
    let default = Limits::default();
    let mut spec = SandboxSpec::new(image);
    spec.limits = Limits {
        cpus: arguments.cpus.or(default.cpus),
        memory_bytes: arguments.memory.or(default.memory_bytes),
        pids: arguments.pids.or(default.pids),
        disk_bytes: arguments.disk,
        shm_bytes: arguments.shm,
        open_files: arguments.open_files,
        fuel: arguments.fuel,
    };
    spec.network = arguments.network.clone();
    if let Some(bytes) = arguments.network_bytes {
        match &mut spec.network {
            NetworkPolicy::Allow { max_bytes, .. } => *max_bytes = Some(bytes),
            NetworkPolicy::None | NetworkPolicy::Bridge => {
                bail!("count bytes of a network without a list: give --network allow:HOST")
            }
        }
    }
    spec.user = arguments.user.clone();
    spec.capabilities = arguments.capabilities;
    spec.env = arguments.env.iter().cloned().collect();
    spec.workdir = arguments.workdir.clone();
    spec.mounts = arguments.mount.clone();
    spec.read_only_root = arguments.read_only;
    spec.determinism = arguments.seed.map(|seed| Determinism { seed, start_secs: 0 });
    ensure!(arguments.timeout > 0, "run a command in 0 s: give a --timeout of 1 at least");
    spec.lifetimes.exec_secs = arguments.timeout;
    // It lives at least as long as its command.
    spec.lifetimes.agent_secs = spec.lifetimes.agent_secs.max(arguments.timeout);
    spec.validate()?;
    Ok(spec)
}

async fn run(arguments: &SandboxRunArguments) -> anyhow::Result<ExitCode> {
    let session = Session::open(&arguments.spec, 1)?;
    let pool = Arc::clone(&session.pool);
    let spec = session.spec.clone();
    let is_posix = pool.backend().capabilities().posix;
    let found = session
        .finish(async {
            ensure!(
                !is_posix || !arguments.command.is_empty(),
                "run nothing: give a command, as in `spar sandbox run -- echo hello`"
            );
            let timeout = Duration::from_secs(arguments.spec.timeout);
            let mut request = ExecRequest::new(arguments.command.iter().cloned());
            if arguments.tty {
                sandbox_terminal::check()?;
            } else {
                request.stdin = stdin(timeout).await?;
            }
            request.timeout = Some(timeout);
            let listeners = sandbox_forward::listen(&arguments.forward).await?;
            let sandbox = pool.acquire(&spec).await?;
            let work = async {
                if arguments.tty {
                    sandbox_terminal::operate(&sandbox, &request).await
                } else if arguments.json {
                    Ok(sandbox.exec(&request).await?)
                } else {
                    relay(&sandbox, &request).await
                }
            };
            let result = tokio::select! {
                result = work => result?,
                never = sandbox_forward::forward(&sandbox, listeners) => match never {},
            };
            // Only where there is a list is there something to tell.
            let network = match &spec.network {
                NetworkPolicy::Allow { .. } => sandbox.stats().await.map(|stats| stats.network),
                NetworkPolicy::None | NetworkPolicy::Bridge => Ok(None),
            };
            // The command has had its way, whatever became of the sandbox.
            let network = network.unwrap_or_else(|error| {
                eprintln!("warning: could not {error}");
                None
            });
            let changes = match arguments.changes {
                Some(limit) => Some(sandbox.changes(limit).await.context("tell what has changed")?),
                None => None,
            };
            Ok((sandbox.id().to_owned(), result, network, changes))
        })
        .await?;
    let Some((id, result, network, changes)) = found else { return Ok(stopped()) };
    if arguments.json {
        let mut told = as_json(pool.backend().name(), &id, &spec, &result);
        told["network"] = json!(network);
        if let Some(changes) = &changes {
            told["changes"] = json!(changes);
        }
        print_json(&told)?;
    }
    if let Some(changes) = changes.filter(|_| !arguments.json) {
        eprint!("{}", describe(&changes));
    }
    if let Some(network) = network.filter(|network| network.refused > 0) {
        eprintln!("note: --network refused {} connection(s)", network.refused);
    }
    if let Some(note) = note(result.end) {
        eprintln!("note: the command {note}");
    }
    Ok(exit_code(result.end))
}

/// Changed files, a line each: `A`, `M` or `D`, what is there now, its permissions and size, and the path.
pub(super) fn describe(changes: &Changes) -> String {
    let mut text = String::new();
    for Change { path, kind, now, .. } in &changes.changes {
        let letter = match kind {
            ChangeKind::Added => 'A',
            ChangeKind::Modified => 'M',
            ChangeKind::Deleted => 'D',
        };
        let (what, mode, size, link) = match now {
            None => (' ', String::new(), String::new(), String::new()),
            Some(now) => {
                let what = match now.kind {
                    FileKind::File => '-',
                    FileKind::Folder => 'd',
                    FileKind::Link => 'l',
                    FileKind::Other => '?',
                };
                let link = now.link.as_ref().map(|link| format!(" -> {}", plain(link)));
                let size = if now.kind == FileKind::File {
                    now.size_bytes.to_string()
                } else {
                    String::new()
                };
                (what, format!("{:04o}", now.mode), size, link.unwrap_or_default())
            }
        };
        text += &format!("{letter} {what} {mode:4} {size:>10} {}{link}\n", plain(path));
    }
    if changes.is_cut {
        text += &format!("... and more; these are the first {}\n", changes.changes.len());
    }
    text
}

/// A name on one line, without anything that a terminal would obey.
fn plain(name: &str) -> String {
    let mut text = String::new();
    for c in name.chars() {
        if c.is_control() { text.extend(c.escape_default()) } else { text.push(c) }
    }
    text
}

/// What is piped in, to its end; nothing from a terminal.
async fn stdin(within: Duration) -> anyhow::Result<Vec<u8>> {
    if std::io::stdin().is_terminal() {
        return Ok(Vec::new());
    }
    let (sender, mut receiver) = mpsc::channel(1);
    // A read cannot be given up, so nothing waits for this thread.
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let mut limited = std::io::stdin().lock().take(MAX_STDIN_BYTES + 1);
        let _ = sender.blocking_send(limited.read_to_end(&mut bytes).map(|_| bytes));
    });
    let bytes = tokio::time::timeout(within, receiver.recv())
        .await
        .with_context(|| {
            format!(
                "read standard input: it did not end within {} s; \
                 give `< /dev/null` where there is none",
                within.as_secs()
            )
        })?
        .expect("the thread sends what it read")
        .context("read standard input")?;
    ensure!(
        bytes.len() as u64 <= MAX_STDIN_BYTES,
        "take standard input: it is larger than {MAX_STDIN_BYTES} bytes"
    );
    Ok(bytes)
}

/// Runs a command and writes its output as it comes. When nobody reads any more, the command ends.
pub(super) async fn relay(
    sandbox: &dyn Sandbox,
    request: &ExecRequest,
) -> anyhow::Result<ExecResult> {
    let (broken, mut breaks) = mpsc::channel(1);
    let mut terminal = Terminal { broken };
    tokio::select! {
        result = sandbox.exec_streaming(request, &mut terminal) => Ok(result?),
        Some(error) = breaks.recv() => Err(error).context("write the output"),
    }
}

/// Passes output on to the streams of this process.
struct Terminal {
    broken: mpsc::Sender<std::io::Error>,
}

impl OutputSink for Terminal {
    fn output(&mut self, stream: Stream, bytes: &[u8]) {
        let written = match stream {
            Stream::Stdout => {
                let mut out = std::io::stdout().lock();
                out.write_all(bytes).and_then(|()| out.flush())
            }
            Stream::Stderr => std::io::stderr().lock().write_all(bytes),
        };
        if let Err(error) = written {
            // The first one ends the command.
            let _ = self.broken.try_send(error);
        }
    }
}

fn as_json(
    backend: &str,
    sandbox: &str,
    spec: &SandboxSpec,
    result: &ExecResult,
) -> serde_json::Value {
    json!({
        "backend": backend,
        "sandbox": sandbox,
        "image": spec.image.to_string(),
        "end": result.end,
        "exit_code": result.end.shell_code(),
        "stdout": result.stdout.text(),
        "stdout_bytes": result.stdout.total_bytes(),
        "stderr": result.stderr.text(),
        "stderr_bytes": result.stderr.total_bytes(),
        "wall_ms": result.wall.as_secs_f64() * 1e3,
    })
}

/// What is to be said about an end that is not the command's own.
pub(super) fn note(end: ExecEnd) -> Option<String> {
    match end {
        ExecEnd::Exited { .. } => None,
        ExecEnd::Signalled { signal } => Some(format!("was ended by signal {signal}")),
        ExecEnd::TimedOut => Some("was ended at its deadline (--timeout)".to_owned()),
        ExecEnd::OutOfMemory => Some("ran out of memory (--memory)".to_owned()),
        ExecEnd::OutOfFuel => Some("ran out of fuel (--fuel)".to_owned()),
        ExecEnd::Trapped => Some("trapped".to_owned()),
    }
}

/// The exit code of a command inside, as a shell would give it.
pub(super) fn exit_code(end: ExecEnd) -> ExitCode {
    // A process has eight bits of it, wherever it runs.
    ExitCode::from((end.shell_code() & 0xff) as u8)
}

/// The entries of the backends that were named, or of all that are not for tests alone.
pub(super) fn chosen(names: &[String]) -> anyhow::Result<Vec<&'static BackendRow>> {
    let all = registry::backend_registry();
    if names.is_empty() {
        return Ok(all.iter().filter(|entry| !entry.is_for_tests).collect());
    }
    for name in names {
        if !all.iter().any(|entry| entry.name == name) {
            // It knows what to say.
            registry::open(name)?;
        }
    }
    Ok(all.iter().filter(|entry| names.iter().any(|name| entry.name == name)).collect())
}

/// Asks a backend, and gives up after a while.
pub(super) async fn ask<T>(
    what: &str,
    answer: impl Future<Output = Result<T, spar::sandbox::SandboxError>>,
) -> anyhow::Result<T> {
    let answer = tokio::time::timeout(ASK, answer).await;
    let answer = answer.with_context(|| format!("{what} within {} s", ASK.as_secs()))?;
    Ok(answer?)
}

/// A backend that works here.
pub(super) async fn working(entry: &BackendRow) -> anyhow::Result<Arc<dyn SandboxBackend>> {
    let backend = registry::open(entry.name)?;
    ask("probe the backend", backend.probe()).await?;
    Ok(backend)
}

async fn ls(arguments: &SandboxListArguments) -> anyhow::Result<ExitCode> {
    let mut records = Vec::new();
    for entry in chosen(&arguments.backend)? {
        match working(entry).await {
            Ok(backend) => records.extend(ask("list the sandboxes", backend.list()).await?),
            Err(error) if arguments.backend.is_empty() => {
                tracing::debug!(backend = entry.name, error = format!("{error:#}"), "not listed");
            }
            Err(error) => return Err(error),
        }
    }
    if arguments.json {
        print_json(&records)?;
    } else {
        print(&table(&records, SystemTime::now()))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn table(records: &[SandboxRecord], now: SystemTime) -> String {
    if records.is_empty() {
        return "no sandboxes\n".to_owned();
    }
    let head = ["BACKEND", "ID", "IMAGE", "OWNER", "AGE", "EXPIRES"].map(str::to_owned);
    let rows = records.iter().map(|record| {
        let state = format!("{:?}", record.owner_state).to_lowercase();
        [
            record.backend.clone(),
            record.id.clone(),
            record.image.clone(),
            format!("{} ({state})", record.owner.pid),
            coarse(now.duration_since(record.created).unwrap_or_default()),
            match record.expires.duration_since(now) {
                Ok(left) => format!("in {}", coarse(left)),
                Err(_) => "is over".to_owned(),
            },
        ]
    });
    columns(&std::iter::once(head).chain(rows).collect::<Vec<_>>())
}

/// Rows with their columns one below the other.
pub(super) fn columns<const N: usize>(rows: &[[String; N]]) -> String {
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (column, cell) in row.iter().enumerate() {
            let width = rows.iter().map(|row| row[column].chars().count()).max();
            line += &format!("{cell:width$}  ", width = width.unwrap_or_default());
        }
        text += line.trim_end();
        text += "\n";
    }
    text
}

/// A duration in its largest unit.
fn coarse(duration: Duration) -> String {
    match duration.as_secs() {
        seconds @ ..120 => format!("{seconds} s"),
        seconds @ ..7200 => format!("{} min", seconds / 60),
        seconds @ ..172_800 => format!("{} h", seconds / 3600),
        seconds => format!("{} days", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use spar::sandbox::{Owner, OwnerState};

    #[test]
    fn sandboxes_are_listed_with_owner_and_age() {
        let now = SystemTime::now();
        let record = SandboxRecord {
            id: "abc".into(),
            backend: "docker".into(),
            image: "busybox".into(),
            owner: Owner { pid: 7, ..Owner::this_process().clone() },
            owner_state: OwnerState::Alive,
            created: now - Duration::from_secs(300),
            expires: now + Duration::from_secs(10_000),
        };
        let text = table(&[record], now);
        let words: Vec<_> = text.lines().nth(1).unwrap().split("  ").map(str::trim).collect();
        assert_eq!(words.join("|"), "docker|abc|busybox|7 (alive)|5 min|in 2 h");
    }

    #[test]
    fn changed_files_are_told_on_a_line_each_whatever_they_are_called() {
        let told = r#"{"changes": [
            {"path": "/a", "kind": "deleted"},
            {"path": "/b\nc\u001b[0m", "kind": "added",
             "now": {"kind": "file", "mode": 493, "size_bytes": 12}},
            {"path": "/l", "kind": "modified",
             "now": {"kind": "link", "mode": 511, "size_bytes": 0, "link": "/x"}}], "is_cut": true}"#;
        let text = describe(&serde_json::from_str(told).unwrap());
        let expected = "D                   /a\n\
                        A - 0755         12 /b\\nc\\u{1b}[0m\n\
                        M l 0777            /l -> /x\n\
                        ... and more; these are the first 3\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn the_exit_code_is_that_a_shell_would_give() {
        for (end, code) in [
            (ExecEnd::Exited { code: 3 }, 3),
            (ExecEnd::Exited { code: -1 }, 255),
            (ExecEnd::Signalled { signal: 9 }, 137),
            (ExecEnd::TimedOut, 124),
        ] {
            assert_eq!(exit_code(end), ExitCode::from(code), "{end}");
        }
    }
}
