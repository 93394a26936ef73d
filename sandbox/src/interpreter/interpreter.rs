//! An interpreter whose state lives on between cells.

use std::sync::Arc;
use std::time::Duration;

use super::cell::{Cell, CellEnd};
use super::language::Language;
use crate::{Captured, Sandbox, SandboxError, Shell, ShellOptions, ShellResult};

/// The longest a cell may take beyond its deadline before its sandbox counts as one that hangs.
const GRACE: Duration = Duration::from_secs(120);

/// What cells may use up; memory and files are limited by the sandbox ([`Limits`](crate::Limits)).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InterpreterOptions {
    /// How long a cell may take. Default 10 s.
    pub cell: Duration,
    /// Bytes of a cell's text; what is longer has its middle left out. Default 8,192.
    pub output_limit_bytes: usize,
    /// Bytes of a cell's code. Default 64 KiB.
    pub code_limit_bytes: usize,
    /// Where it starts. Default the sandbox's working directory.
    pub workdir: Option<String>,
}

impl Default for InterpreterOptions {
    fn default() -> Self {
        Self {
            cell: Duration::from_secs(10),
            output_limit_bytes: 8192,
            code_limit_bytes: 64 << 10,
            workdir: None,
        }
    }
}

/// An interpreter in a sandbox, whose state lives on between cells.
///
/// A cell's standard input is empty. The value of an expression at its end is part of its output, as at a prompt. Where the
/// sandbox's snapshots hold memory, an interpreter that is opened in a fork goes on where the first one of the original was.
pub struct Interpreter {
    shell: Box<dyn Shell>,
    options: InterpreterOptions,
    num_cells: usize,
}

impl Interpreter {
    /// Starts one: the guest itself where the sandbox's image is an interpreter, else a process with the language's
    /// program (`python3`, `node`).
    ///
    /// # Errors
    ///
    /// [`SandboxError::Unsupported`] where the sandbox has neither, and those of the backend.
    pub async fn open(
        sandbox: &Arc<dyn Sandbox>,
        language: Language,
        options: &InterpreterOptions,
    ) -> Result<Self, SandboxError> {
        let shell_options = ShellOptions {
            // Each stream may fill the text alone.
            output_limit_bytes: options.output_limit_bytes,
            workdir: options.workdir.clone(),
            user: None,
        };
        let shell = open_session(sandbox, language, &shell_options).await?;
        Ok(Self { shell, options: options.clone(), num_cells: 0 })
    }

    /// Cells that were asked for, those among them that were refused or failed.
    pub fn num_cells(&self) -> usize {
        self.num_cells
    }

    /// Runs a piece of code to its end or its deadline.
    ///
    /// # Errors
    ///
    /// [`SandboxError`] where the sandbox could not do its part; what the code does is none.
    pub async fn run(&mut self, code: &str) -> Result<Cell, SandboxError> {
        self.run_within(code, self.options.cell).await
    }

    /// The same with a deadline of its own, where that comes before that of all cells.
    ///
    /// # Errors
    ///
    /// As [`Interpreter::run`].
    pub async fn run_within(
        &mut self,
        code: &str,
        deadline: Duration,
    ) -> Result<Cell, SandboxError> {
        let time = self.options.cell.min(deadline);
        self.num_cells += 1;
        let limit = self.options.code_limit_bytes;
        if code.len() > limit {
            return Ok(Cell {
                text: format!(
                    "[the code was not run: it has {} bytes, at most {limit} are allowed]",
                    code.len()
                ),
                end: CellEnd::Refused,
                restarted: false,
                wall: Duration::ZERO,
            });
        }
        let patience = time.saturating_add(GRACE);
        let ran = tokio::time::timeout(patience, self.shell.run(code, time)).await;
        let ran = ran.map_err(|_| SandboxError::Backend {
            doing: "end a cell at its deadline".into(),
            source: "the interpreter does not come back".into(),
        })?;
        Ok(self.cell(&ran?, time))
    }

    /// Ends it.
    ///
    /// # Errors
    ///
    /// Those of the backend.
    pub async fn close(&mut self) -> Result<(), SandboxError> {
        self.shell.close().await
    }

    fn cell(&self, ran: &ShellResult, time: Duration) -> Cell {
        let end = CellEnd::of(ran.end);
        let mut written = Captured::new(self.options.output_limit_bytes);
        let (stdout, stderr) = (ran.stdout.bytes(), ran.stderr.bytes());
        written.push(&stdout);
        if !stdout.is_empty() && !stdout.ends_with(b"\n") && !stderr.is_empty() {
            written.push(b"\n");
        }
        written.push(&stderr);
        let mut lines = vec![written.text().trim_end().to_owned()];
        match end {
            CellEnd::TimedOut => {
                lines.push(format!("[stopped after {} s]", time.as_secs_f64()));
            }
            CellEnd::OutOfMemory => lines.push("[stopped: out of memory]".to_owned()),
            CellEnd::Crashed => lines.push("[the interpreter crashed]".to_owned()),
            CellEnd::Done | CellEnd::Failed | CellEnd::Refused => {}
        }
        if ran.restarted {
            lines.push("[the interpreter was restarted, its variables are gone]".to_owned());
        }
        lines.retain(|line| !line.is_empty());
        if lines.is_empty() {
            lines.push("[no output]".to_owned());
        }
        Cell { text: lines.join("\n"), end, restarted: ran.restarted, wall: ran.wall }
    }
}

/// A session of the guest, or of a process where the sandbox has them.
async fn open_session(
    sandbox: &Arc<dyn Sandbox>,
    language: Language,
    options: &ShellOptions,
) -> Result<Box<dyn Shell>, SandboxError> {
    if !sandbox.capabilities().spawn {
        return sandbox.open_shell(options).await;
    }
    #[cfg(any(feature = "docker", feature = "local", test))]
    {
        let session = super::process_session::ProcessSession::open(sandbox, language, options);
        Ok(Box::new(session.await?))
    }
    #[cfg(not(any(feature = "docker", feature = "local", test)))]
    {
        let _ = language;
        sandbox.open_shell(options).await
    }
}
