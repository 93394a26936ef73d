//! R2E-Gym's: an editor of files, searches and a bash, each a program in the sandbox.
//!
//! The package is nowhere published, so that its prompts and programs are read from a checkout of the user's. What is here is
//! how its agent reads calls, runs programs, and shows what they print.

mod call;
mod checkout;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::registry::{NamedOptions, OptionSet, RowError};
use spar_core::{Action, ToolSpec};
use spar_sandbox::{ExecEnd, ExecRequest, ExecResult};

use self::call::Call;
pub use self::checkout::Checkout;
use self::checkout::{BASH, FINISH, filled};
use super::files::quoted;
use super::{Acted, Briefing, Halt, Submission, ToolSession, Toolset, ToolsetRow, Workplace};

pub(super) const ROW: ToolsetRow = ToolsetRow {
    name: "r2e",
    about: "Programs of a checkout of R2E-Gym: an editor of files, searches, a bash, and an end.",
    source: "R2E-Gym (github.com/R2E-Gym/R2E-Gym, arXiv 2504.07164), its agent for models whose calls are text",
    formula: "",
    options: OptionSet::of::<R2eOptions>(),
    open: |given| Ok(Arc::new(R2e::new(given.read()?)?)),
};

/// Where programs lie in sandboxes, as in the original's.
const PROGRAMS: &str = "/usr/local/bin";
/// Bytes kept of what a program prints.
const MAX_OUTPUT_BYTES: usize = 4 << 20;
/// Lines at the beginning and at the end that are shown of what a command prints.
const SHOWN_LINES: usize = 40;

/// Options of R2E-Gym's toolset.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct R2eOptions {
    /// The checkout of R2E-Gym, a folder of this machine. Default empty, which is refused: none ships.
    folder: PathBuf,
    /// The interpreter in the sandbox that runs its programs, which needs `chardet` for the editor. Default absent: the one
    /// that they name, or else `python3`.
    #[serde(skip_serializing_if = "Option::is_none")]
    python: Option<String>,
    /// Seconds that a call may take, 1 to 86400. Default 90.
    command_secs: u64,
    /// Steps that are told to remain at the beginning, 1 to 100000. Default 40.
    max_steps: u32,
}

impl Default for R2eOptions {
    fn default() -> Self {
        Self { folder: PathBuf::new(), python: None, command_secs: 90, max_steps: 40 }
    }
}

impl NamedOptions for R2eOptions {
    fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        if self.python.as_ref().is_some_and(|it| !it.starts_with('/') || it.contains(['\n', '\0']))
        {
            problems.push("python must be an absolute path".to_owned());
        }
        if !(1..=86_400).contains(&self.command_secs) {
            problems.push(format!("command_secs is {}, must be 1 to 86400", self.command_secs));
        }
        if !(1..=100_000).contains(&self.max_steps) {
            problems.push(format!("max_steps is {}, must be 1 to 100000", self.max_steps));
        }
        problems
    }
}

/// The toolset with its options.
#[derive(Debug)]
struct R2e(Arc<Setting>);

#[derive(Debug)]
struct Setting {
    options: R2eOptions,
    checkout: Checkout,
}

impl R2e {
    fn new(options: R2eOptions) -> Result<Self, RowError> {
        let mut problems = options.problems();
        if options.folder.as_os_str().is_empty() {
            problems.push("folder is empty, must be a checkout of R2E-Gym".to_owned());
        }
        RowError::refuse("toolset", "r2e", problems)?;
        let checkout = Checkout::read(&options.folder).map_err(|problem| RowError::Options {
            what: "toolset",
            name: "r2e".to_owned(),
            problems: vec![problem],
        })?;
        Ok(Self(Arc::new(Setting { options, checkout })))
    }
}

impl Setting {
    /// A message with the number of steps behind it that remain after so many.
    fn counted(&self, text: &str, done: u32) -> String {
        match self.options.max_steps.saturating_sub(done) {
            0 => format!("{text}\nSteps Remaining: 0. Submit what you have now."),
            left => format!("{text}\nSteps Remaining: {left}"),
        }
    }
}

impl Toolset for R2e {
    fn tools(&self) -> Arc<[ToolSpec]> {
        Arc::default()
    }

    fn command_limit(&self) -> Option<Duration> {
        Some(Duration::from_secs(self.0.options.command_secs))
    }

    fn opening(&self, briefing: &Briefing<'_>) -> String {
        let text = filled(&self.0.checkout.instance, briefing.task);
        self.0.counted(&text.expect("it was filled when it was read"), 0)
    }

    fn command(&self, command: &str) -> Action {
        let name = self.0.checkout.command_name();
        Action::text(Call::new(BASH, &[(name, command)]).to_string())
    }

    fn submit(&self) -> Action {
        Action::text(Call::new(FINISH, &[("command", "submit")]).to_string())
    }

    fn begin(&self) -> Box<dyn ToolSession> {
        Box::new(Session { setting: Arc::clone(&self.0), is_installed: false, steps: 0 })
    }
}

/// What an agent has done so far.
#[derive(Clone)]
struct Session {
    setting: Arc<Setting>,
    is_installed: bool,
    steps: u32,
}

#[async_trait]
impl ToolSession for Session {
    async fn act(&mut self, action: &Action, place: &mut Workplace<'_>) -> Result<Acted, Halt> {
        self.steps = self.steps.saturating_add(1);
        let setting = Arc::clone(&self.setting);
        let told = |text: &str| Acted::said(setting.counted(text, self.steps));
        let Some(call) = Call::read(action.said()) else {
            return Ok(Acted { is_valid: false, ..told(&setting.checkout.reminder) });
        };
        // As there, whatever has the word in its name ends it.
        if call.function == FINISH {
            return Ok(told("<<< Finished >>>").submitted(Submission::default()));
        }
        let tools = &setting.checkout.tools;
        if !tools.iter().any(|(name, _)| *name == call.function) {
            let known: Vec<&str> = tools.iter().map(|(name, _)| name.as_str()).collect();
            let text = format!(
                "There is no function `{}`: call one of {}.",
                call.function,
                known.join(", ")
            );
            return Ok(Acted { is_valid: false, ..told(&text) });
        }
        if !self.is_installed {
            install(&setting, place).await?;
            self.is_installed = true;
        }
        let mut request = ExecRequest::new(["sh", "-c", &format!("{} 2>&1", call.command())]);
        request.output_limit_bytes = MAX_OUTPUT_BYTES;
        let done = place.exec(request).await?;
        Ok(Acted::said(
            setting
                .counted(&shown(&call.function, &done, setting.options.command_secs), self.steps),
        ))
    }

    fn fork(&self) -> Option<Box<dyn ToolSession>> {
        Some(Box::new(self.clone()))
    }
}

/// Puts the programs into the sandbox.
async fn install(setting: &Setting, place: &mut Workplace<'_>) -> Result<(), Halt> {
    // What an image has there under these names is the original's own, or in the way.
    const PUT: &str = r#"mkdir -p "$2" && cat >"$2/$1" && chmod 755 "$2/$1""#;
    const CHOOSE: &str = r#"for python in "$@" python3; do if command -v "$python" >/dev/null 2>&1; then command -v "$python"; exit; fi; done; exit 1"#;
    for (name, program) in &setting.checkout.tools {
        let (first, rest) = program.split_once('\n').unwrap_or(("", program));
        let named = first.strip_prefix("#!").map(str::trim).filter(|it| it.starts_with('/'));
        let wanted = setting.options.python.as_deref().or(named).unwrap_or("python3");
        let found = place.exec(ExecRequest::new(["sh", "-c", CHOOSE, "sh", wanted])).await?;
        if !found.end.is_success() {
            return Err(Halt::Refused(
                "find a Python for R2E-Gym's programs in the image".to_owned(),
            ));
        }
        let line = format!("#!{}\n", found.stdout.text().trim());
        let body = if named.is_some() { rest } else { program };
        let request = ExecRequest::new(["sh", "-c", PUT, "sh", name, PROGRAMS]);
        let mut request = request.with_stdin((line + body).into_bytes());
        // Where agents are no root, they are still given their programs.
        request.user = Some("root".to_owned());
        let put = place.exec(request).await?;
        if !put.end.is_success() {
            let why = put.stderr.text();
            return Err(Halt::Refused(format!("put `{name}` into {PROGRAMS}: {}", why.trim())));
        }
    }
    Ok(())
}

/// What is shown of a call.
fn shown(function: &str, done: &ExecResult, limit: u64) -> String {
    let (output, code) = match done.end {
        ExecEnd::Exited { code: 0 } => (plain(&done.stdout.text()), "0".to_owned()),
        ExecEnd::Exited { code } if code != 124 => {
            (done.stdout.text(), format!("Error: Exit code {code}"))
        }
        ExecEnd::TimedOut | ExecEnd::Exited { .. } => {
            (format!("It was ended after {limit} s."), "-1".to_owned())
        }
        end => (format!("{}\n[{end}]", done.stdout.text()), "-1".to_owned()),
    };
    if function != BASH {
        return format!("Execution output of [{function}]:\n{output}");
    }
    let lines: Vec<&str> = output.lines().collect();
    let output = match lines.len() > 2 * SHOWN_LINES {
        false => output,
        true => {
            let left_out = lines.len() - 2 * SHOWN_LINES;
            let (first, last) = (&lines[..SHOWN_LINES], &lines[lines.len() - SHOWN_LINES..]);
            format!("{}\n[{left_out} lines left out]\n{}", first.join("\n"), last.join("\n"))
        }
    };
    format!("Exit code: {code}\nExecution output of [{function}]:\n{output}")
}

/// A text without colours and carriage returns.
fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['\u{1b}', '\r']) {
        plain += &rest[..at];
        rest = &rest[at..];
        let codes = rest
            .strip_prefix("\u{1b}[")
            .map(|codes| codes.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';'));
        match codes.and_then(|codes| codes.strip_prefix('m')) {
            Some(behind) => rest = behind,
            None => {
                if rest.starts_with('\u{1b}') {
                    plain.push('\u{1b}');
                }
                rest = &rest[1..];
            }
        }
    }
    plain + rest
}
