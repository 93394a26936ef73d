//! SWE-agent's: a bash that remembers, an editor of files, searches, and a submission that is looked over once.

mod calls;
mod editor;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use minijinja::{Value, context};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};
use spar_core::registry::{NamedOptions, OptionSet, RowError};
use spar_core::{Action, ToolCall, ToolResult, ToolSpec};
use spar_sandbox::{ExecEnd, ExecRequest};
use tokio::time::Instant;

use self::calls::{Mistake, is_blocked, only_call, text};
use self::editor::Editor;
use super::files::{first_chars, quoted};
use super::pty_shell::{PtyShell, Typed, backslash_replaced, stripped};
use super::templates::Templates;
use super::{Acted, Briefing, Halt, Submission, ToolSession, Toolset, ToolsetRow, Workplace};

pub(super) const ROW: ToolsetRow = ToolsetRow {
    name: "aci",
    about: "A bash that remembers, an editor of files with undo, searches; a submission is looked over once.",
    source: "SWE-agent 1.1 (github.com/SWE-agent/SWE-agent, 3ea751c0), `config/default.yaml`, its tools and SWE-ReX 1.4.0",
    formula: "",
    options: OptionSet::of::<AciOptions>(),
    open: |given| Ok(Arc::new(Aci::new(given.read()?)?)),
};

/// Characters of an observation, beyond which the rest is left out.
const MAX_OBSERVATION_CHARS: usize = 100_000;
const NO_OUTPUT: &str = "Your command ran successfully and did not produce any output.";
/// Bytes of a patch that are looked over.
const PATCH_LIMIT_BYTES: usize = 16 << 20;
/// What becomes the patch, as the original makes it.
const DIFF: &str = "git add -A && git diff --cached";

/// Options of SWE-agent's toolset.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct AciOptions {
    /// Whether there are `find_file`, `search_dir` and `search_file`, which the original has in a bundle of its own. Default
    /// true.
    search: bool,
    /// Whether the first submission shows the changes and asks for a second one. Default true.
    review: bool,
    /// Seconds that a command may take, 1 to 86400. Default 30.
    command_secs: u64,
    /// Seconds that all commands may take, after which the next answer submits; at least 1. Default 1800.
    all_commands_secs: u64,
    /// Commands in a row that may run out of time; the last of them submits. At least 1. Default 3.
    max_timeouts: usize,
}

impl Default for AciOptions {
    fn default() -> Self {
        Self {
            search: true,
            review: true,
            command_secs: 30,
            all_commands_secs: 1800,
            max_timeouts: 3,
        }
    }
}

impl NamedOptions for AciOptions {
    fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        if !(1..=86_400).contains(&self.command_secs) {
            problems.push(format!("command_secs is {}, must be 1 to 86400", self.command_secs));
        }
        if self.all_commands_secs == 0 {
            problems.push("all_commands_secs is 0, must be at least 1".to_owned());
        }
        if self.max_timeouts == 0 {
            problems.push("max_timeouts is 0, must be at least 1".to_owned());
        }
        problems
    }
}

/// The toolset with its options.
#[derive(Debug)]
struct Aci(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    options: AciOptions,
    templates: Templates,
    tools: Arc<[ToolSpec]>,
}

const INSTANCE: &str = "instance";
const FORMAT_ERROR: &str = "format_error";
/// Words of our own for tasks without a repository, which the original does not have.
const GENERAL: &str = "{{ problem_statement }}\n\nYou work in {{ working_dir }}. When the task is done, run the `submit` command.";

impl Aci {
    fn new(options: AciOptions) -> Result<Self, RowError> {
        let (mut templates, mut problems) = (Templates::new(), Vec::new());
        let given = context! { problem_statement => "task", working_dir => "/testbed" };
        let instance = include_str!("texts/instance.jinja").to_owned();
        templates.add(INSTANCE, instance, given.clone(), &mut problems);
        templates.add("general", GENERAL.to_owned(), given, &mut problems);
        let format_error = include_str!("texts/format_error.jinja").to_owned();
        templates.add(FORMAT_ERROR, format_error, mistaken("", ""), &mut problems);
        RowError::refuse("toolset", "aci", problems)?;
        let tools = calls::tools(options.search);
        Ok(Self(Arc::new(Shared { options, templates, tools })))
    }
}

fn mistaken(error_code: &str, exception_message: &str) -> Value {
    context! { error_code, exception_message }
}

impl Toolset for Aci {
    fn tools(&self) -> Arc<[ToolSpec]> {
        Arc::clone(&self.0.tools)
    }

    fn command_limit(&self) -> Option<Duration> {
        Some(Duration::from_secs(self.0.options.command_secs))
    }

    fn opening(&self, briefing: &Briefing<'_>) -> String {
        let name = if briefing.is_repository { INSTANCE } else { "general" };
        let Briefing { task, workdir, .. } = *briefing;
        let given = context! { problem_statement => task, working_dir => workdir };
        self.0.templates.written(name, given)
    }

    fn command(&self, command: &str) -> Action {
        let arguments = Map::from_iter([("command".to_owned(), command.into())]);
        Action::calls(vec![ToolCall::new("bash", arguments)])
    }

    fn submit(&self) -> Action {
        Action::calls(vec![ToolCall::new("submit", Map::new())])
    }

    fn begin(&self) -> Box<dyn ToolSession> {
        Box::new(Session {
            shared: Arc::clone(&self.0),
            shell: None,
            editor: Editor::default(),
            was_reviewed: false,
            timeouts: 0,
            spent: Duration::ZERO,
        })
    }
}

/// What an agent has done so far.
struct Session {
    shared: Arc<Shared>,
    /// Absent until a command has to run in it.
    shell: Option<PtyShell>,
    editor: Editor,
    /// Whether the changes were shown before they are handed in.
    was_reviewed: bool,
    /// Commands in a row that ran out of time.
    timeouts: usize,
    /// What all commands have taken.
    spent: Duration,
}

/// What a command comes to.
enum Observed {
    /// This is shown.
    Output(String),
    /// The same, and there was no action.
    Refused(String),
    /// The task is handed in.
    Submitted(Submission),
}

#[async_trait]
impl ToolSession for Session {
    async fn act(&mut self, action: &Action, place: &mut Workplace<'_>) -> Result<Acted, Halt> {
        let calls = action.tool_calls();
        if self.spent > Duration::from_secs(self.shared.options.all_commands_secs) {
            return Ok(
                Acted::refused(calls, "Exited (autosubmitted)").submitted(Submission::default())
            );
        }
        let call = match only_call(calls, action.said(), &self.shared.tools) {
            Ok(call) => call,
            Err(Mistake { code, message }) => {
                let told = self.shared.templates.written(FORMAT_ERROR, mistaken(code, &message));
                return Ok(Acted::refused(calls, &told));
            }
        };
        let started = Instant::now();
        let observed = self.carry_out(call, place).await;
        self.spent += started.elapsed();
        let result = |text: String| Acted::of(vec![ToolResult::new(call, text)]);
        Ok(match observed? {
            Observed::Output(output) => result(shown(&output)),
            Observed::Refused(told) => Acted::refused(calls, &told),
            Observed::Submitted(submission) => {
                let patch = submission.patch.clone().unwrap_or_default();
                result(patch).submitted(submission)
            }
        })
    }

    fn fork(&self) -> Option<Box<dyn ToolSession>> {
        // What runs in a shell cannot be copied; one that has not begun can.
        self.shell.is_none().then(|| {
            Box::new(Self {
                shared: Arc::clone(&self.shared),
                shell: None,
                editor: self.editor.clone(),
                was_reviewed: self.was_reviewed,
                timeouts: self.timeouts,
                spent: self.spent,
            }) as Box<dyn ToolSession>
        })
    }
}

impl Session {
    async fn carry_out(
        &mut self,
        call: &ToolCall,
        place: &mut Workplace<'_>,
    ) -> Result<Observed, Halt> {
        let arguments = &call.arguments;
        Ok(match &*call.name {
            "bash" => {
                let command = text(arguments, "command").unwrap_or_default();
                self.bash(&command, place).await?
            }
            "submit" => self.submit(place).await?,
            "str_replace_editor" => {
                let workdir = self.workdir(place);
                let printed = self.editor.call(arguments, &workdir, place).await?;
                Observed::Output(through_terminal(&printed))
            }
            search => self.search(search, arguments, place).await?,
        })
    }

    async fn bash(&mut self, command: &str, place: &mut Workplace<'_>) -> Result<Observed, Halt> {
        let command = command.trim();
        if is_blocked(command) {
            let told = format!("Operation '{command}' is not supported by this environment.");
            return Ok(Observed::Refused(told));
        }
        if command == "exit" {
            return Ok(Observed::Submitted(Submission::default()));
        }
        if let Some(told) = syntax_error(command, place).await? {
            return Ok(Observed::Refused(told));
        }
        let limit = place.command_limit();
        let shell = match self.shell.take() {
            Some(shell) => shell,
            None => {
                let env = environment(place.workdir());
                PtyShell::open(place, &env, &["/root/.bashrc"]).await?
            }
        };
        let shell = self.shell.insert(shell);
        let typed = shell.run(command, limit).await?;
        Ok(match typed {
            Typed::Ended { output, .. } => {
                self.timeouts = 0;
                Observed::Output(stripped(&backslash_replaced(&output)))
            }
            Typed::Late { .. } => {
                self.timeouts += 1;
                let is_last = self.timeouts >= self.shared.options.max_timeouts;
                if is_last || !shell.interrupt().await? {
                    return Ok(Observed::Submitted(Submission::default()));
                }
                Observed::Output(cancelled(command, self.shared.options.command_secs))
            }
            // The original gives up as well, and submits what there is.
            Typed::Gone { .. } => Observed::Submitted(Submission::default()),
        })
    }

    /// Where the shell stands.
    fn workdir(&self, place: &Workplace<'_>) -> String {
        self.shell
            .as_ref()
            .map_or_else(|| place.workdir().to_owned(), |shell| shell.workdir.clone())
    }

    async fn submit(&mut self, place: &mut Workplace<'_>) -> Result<Observed, Halt> {
        let mut request = ExecRequest::sh(DIFF);
        request.output_limit_bytes = PATCH_LIMIT_BYTES;
        let diff = place.exec(request).await?;
        let patch = backslash_replaced(&diff.stdout.bytes());
        if self.shared.options.review && !self.was_reviewed {
            self.was_reviewed = true;
            let review = include_str!("texts/review.txt").replace("{{diff}}", &patch);
            return Ok(Observed::Output(through_terminal(&format!("{review}\n"))));
        }
        let is_whole = diff.end.is_success() && diff.stdout.elided_bytes() == 0;
        // What is no UTF-8 is better taken from the repository than from what was printed.
        let is_text = std::str::from_utf8(&diff.stdout.bytes()).is_ok();
        let patch = (is_whole && is_text && !patch.trim().is_empty()).then_some(patch);
        Ok(Observed::Submitted(Submission { patch }))
    }

    /// Runs a program that searches, in a shell of its own.
    async fn search(
        &mut self,
        name: &str,
        arguments: &Map<String, Json>,
        place: &mut Workplace<'_>,
    ) -> Result<Observed, Halt> {
        let (script, names) = match name {
            "find_file" => (include_str!("texts/find_file.sh"), ["file_name", "dir"]),
            "search_dir" => (include_str!("texts/search_dir.sh"), ["search_term", "dir"]),
            _ => (include_str!("texts/search_file.sh"), ["search_term", "file"]),
        };
        let mut words =
            vec!["bash".to_owned(), "-c".to_owned(), script.to_owned(), name.to_owned()];
        let given: Vec<String> =
            names.into_iter().filter_map(|name| text(arguments, name)).collect();
        words.extend(given.iter().cloned());
        let mut merged = vec!["sh".to_owned(), "-c".to_owned(), r#"exec "$@" 2>&1"#.to_owned()];
        merged.push("sh".to_owned());
        merged.extend(words);
        let mut request = ExecRequest::new(merged);
        request.workdir = Some(self.workdir(place));
        let done = place.exec(request).await?;
        if done.end != ExecEnd::TimedOut {
            self.timeouts = 0;
            return Ok(Observed::Output(through_terminal(&done.stdout.text())));
        }
        self.timeouts += 1;
        if self.timeouts >= self.shared.options.max_timeouts {
            return Ok(Observed::Submitted(Submission::default()));
        }
        let words: Vec<String> = given.iter().map(|word| quoted(word)).collect();
        let command = format!("{name} {}", words.join(" "));
        Ok(Observed::Output(cancelled(&command, self.shared.options.command_secs)))
    }
}

/// What is said of a command that took too long.
fn cancelled(command: &str, seconds: u64) -> String {
    format!(
        "The command '{command}' was cancelled because it took more than {seconds} seconds. Please try a different command that \
         completes more quickly. Note: A common source of this error is if the command is interactive or requires user input (it \
         is impossible to receive user input in the current environment, so the command will never complete)."
    )
}

/// Variables of the shell.
fn environment(root: &str) -> BTreeMap<String, String> {
    let all = [
        ("LANG", "C.UTF-8"),
        ("LC_ALL", "C.UTF-8"),
        ("PIP_PROGRESS_BAR", "off"),
        ("PAGER", "cat"),
        ("MANPAGER", "cat"),
        ("LESS", "-R"),
        ("TQDM_DISABLE", "1"),
        ("GIT_PAGER", "cat"),
        ("ROOT", root),
    ];
    all.into_iter().map(|(name, text)| (name.to_owned(), text.to_owned())).collect()
}

/// What is said of a command that bash cannot read; absent where it can.
async fn syntax_error(command: &str, place: &mut Workplace<'_>) -> Result<Option<String>, Halt> {
    let request = ExecRequest::new(["bash", "-n"]).with_stdin(format!("{command}\n"));
    let checked = place.exec(request).await?;
    if checked.end.is_success() {
        return Ok(None);
    }
    let (stdout, stderr) =
        (backslash_replaced(&checked.stdout.bytes()), backslash_replaced(&checked.stderr.bytes()));
    Ok(Some(format!(
        "Your bash command contained syntax errors and was NOT executed. Please fix the syntax errors and try again. This can \
         be the result of not adhering to the syntax for multi-line commands. Here is the output of `bash -n`:\n{stdout}\n{stderr}"
    )))
}

/// What a program prints, as it comes through the terminal of the original's shell.
fn through_terminal(printed: &str) -> String {
    stripped(&printed.replace('\n', "\r\n"))
}

/// What the policy is shown of an observation.
fn shown(observation: &str) -> String {
    if spar_swe::python_text::strip(observation).is_empty() {
        return NO_OUTPUT.to_owned();
    }
    let length = observation.chars().count();
    if length <= MAX_OBSERVATION_CHARS {
        return format!("OBSERVATION:\n{observation}");
    }
    let first = first_chars(observation, MAX_OBSERVATION_CHARS);
    let elided = length - MAX_OBSERVATION_CHARS;
    format!(
        "Observation: {first}<response clipped><NOTE>Observations should not exceeded {MAX_OBSERVATION_CHARS} characters. \
         {elided} characters were elided. Please try a different command that produces less output or use head/tail/grep/redirect \
         the output to a file. Do not use interactive pagers.</NOTE>"
    )
}
