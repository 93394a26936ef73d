//! `spar sandbox shell`.

use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use spar::sandbox::pool::{PooledSandbox, SandboxPool};
use spar::sandbox::{ExecEnd, Sandbox, Shell, ShellOptions, Snapshot};
use tokio::sync::mpsc;

use super::play::read_lines;
use super::sandbox::{Session, describe, exit_code, note};
use super::{print, stopped};
use crate::cli::SandboxShellArguments;

/// Sandboxes at one time: the first and its forks.
const MAX_FORKS: usize = 16;
/// Changed files that are listed.
const MAX_CHANGES: usize = 1000;
/// What asking for the working directory may take.
const ASK_FOLDER: Duration = Duration::from_secs(10);

const HELP: &str = "\
  a line is run as it is; variables and the working directory are kept
  :fork       goes on in a fork
  :back       closes the fork and goes back to where it was made
  :snapshot   keeps the present state
  :restore N  goes on in a new sandbox from state N, as :fork does
  :stats      shows what the sandbox has used up
  :changes    lists the files that are not as they were when the sandbox began
  :quit       removes everything and leaves
";

/// A person works in a sandbox line by line.
pub(crate) async fn shell(arguments: &SandboxShellArguments) -> anyhow::Result<ExitCode> {
    let session = Session::open(&arguments.spec, MAX_FORKS)?;
    let (pool, spec) = (Arc::clone(&session.pool), session.spec.clone());
    let timeout = Duration::from_secs(arguments.spec.timeout);
    let found = session
        .finish(async move {
            let first = Level::open(pool.acquire(&spec).await?).await?;
            let is_terminal = std::io::stdin().is_terminal();
            let mut work =
                Work { pool, timeout, is_terminal, levels: vec![first], snapshots: Vec::new() };
            let end = work.go(read_lines()).await;
            work.forget().await;
            end
        })
        .await?;
    Ok(found.map_or_else(stopped, exit_code))
}

/// A sandbox and the shell in it.
struct Level {
    sandbox: PooledSandbox,
    shell: Box<dyn Shell>,
}

impl Level {
    async fn open(sandbox: PooledSandbox) -> anyhow::Result<Self> {
        let shell = sandbox.open_shell(&ShellOptions::default()).await?;
        Ok(Self { sandbox, shell })
    }
}

/// A session in progress.
struct Work {
    pool: Arc<SandboxPool>,
    timeout: Duration,
    is_terminal: bool,
    /// The sandbox that is worked in is the last one; never empty.
    levels: Vec<Level>,
    snapshots: Vec<Snapshot>,
}

impl Work {
    fn level(&mut self) -> &mut Level {
        self.levels.last_mut().expect("the first level stays")
    }

    /// Runs lines until there are no more; the end of the last command.
    async fn go(&mut self, mut lines: mpsc::Receiver<String>) -> anyhow::Result<ExecEnd> {
        let mut end = ExecEnd::Exited { code: 0 };
        loop {
            if self.is_terminal {
                let folder = self.folder().await?;
                let depth = ">".repeat(self.levels.len());
                print(&format!("{} {folder} {depth} ", self.pool.backend().name()))?;
            }
            let Some(line) = lines.recv().await else {
                if self.is_terminal {
                    print("\n")?;
                }
                return Ok(end);
            };
            let words: Vec<&str> = line.split_whitespace().collect();
            match *words {
                [] => {}
                [":quit" | ":q"] => return Ok(end),
                [word, ..] if word.starts_with(':') && word.len() > 1 => {
                    if let Err(error) = self.meta(&words).await {
                        eprintln!("error: could not {error:#}");
                    }
                }
                _ => end = self.run(&line).await?,
            }
        }
    }

    async fn run(&mut self, line: &str) -> anyhow::Result<ExecEnd> {
        let timeout = self.timeout;
        let result = self.level().shell.run(line, timeout).await?;
        std::io::stderr().write_all(&result.stderr.bytes()).context("write the output")?;
        let mut out = std::io::stdout().lock();
        out.write_all(&result.stdout.bytes())
            .and_then(|()| out.flush())
            .context("write the output")?;
        if let Some(note) = note(result.end) {
            eprintln!("note: the command {note}");
        }
        if result.restarted {
            eprintln!("note: the shell was started anew; variables are lost");
        }
        Ok(result.end)
    }

    /// Where the shell is, for the prompt.
    async fn folder(&mut self) -> anyhow::Result<String> {
        let result = self.level().shell.run("pwd", ASK_FOLDER).await?;
        Ok(if result.end.is_success() {
            result.stdout.text().trim().to_owned()
        } else {
            "?".into()
        })
    }

    async fn meta(&mut self, words: &[&str]) -> anyhow::Result<()> {
        match words {
            [":help"] => print(HELP),
            [":fork"] => {
                let fork = self.level().sandbox.fork_pooled().await?;
                self.levels.push(Level::open(fork).await?);
                Ok(())
            }
            [":changes"] => {
                let changes = self.level().sandbox.changes(MAX_CHANGES).await?;
                print(&describe(&changes))
            }
            [":back"] => {
                anyhow::ensure!(self.levels.len() > 1, "go back: this is the first sandbox");
                let Some(mut level) = self.levels.pop() else { return Ok(()) };
                level.shell.close().await?;
                Ok(level.sandbox.close().await?)
            }
            [":snapshot"] => {
                let snapshot = self.level().sandbox.snapshot().await?;
                self.snapshots.push(snapshot);
                let number = self.snapshots.len();
                print(&format!("  kept; `:restore {number}` goes on from here\n"))
            }
            [":restore", number] => {
                let index = number.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
                let snapshot = index.and_then(|index| self.snapshots.get(index));
                let snapshot = snapshot.with_context(|| {
                    format!("find state `{number}`: there are {}", self.snapshots.len())
                })?;
                let restored = self.pool.restore(snapshot).await?;
                self.levels.push(Level::open(restored).await?);
                Ok(())
            }
            [":stats"] => {
                let stats = self.level().sandbox.stats().await?;
                print(&(serde_json::to_string_pretty(&stats)? + "\n"))
            }
            _ => anyhow::bail!("do `{}`: `:help` lists what there is", words.join(" ")),
        }
    }

    /// Removes the states that were kept.
    async fn forget(&mut self) {
        for snapshot in self.snapshots.drain(..) {
            if let Err(error) = self.pool.backend().remove_snapshot(&snapshot).await {
                eprintln!("warning: could not {error}; `spar reap` tries again");
            }
        }
    }
}
