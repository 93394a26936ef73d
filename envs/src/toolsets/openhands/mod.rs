//! OpenHands' CodeAct agent: a bash that remembers and may go on while others wait, an editor of files, thoughts, and an end.

mod editor;

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};
use spar_core::registry::{NamedOptions, OptionSet, RowError};
use spar_core::{Action, ToolCall, ToolResult, ToolSpec};
use tokio::time::Instant;

use self::editor::Editor;
use super::files::first_chars;
use super::pty_shell::{PtyShell, Typed, backslash_replaced, stripped};
use super::{Acted, Briefing, Halt, Submission, ToolSession, Toolset, ToolsetRow, Workplace};

pub(super) const ROW: ToolsetRow = ToolsetRow {
    name: "openhands",
    about: "A bash that remembers and may go on while others wait, an editor of files with undo, thoughts, and an end.",
    source: "OpenHands 0.62.0 (github.com/All-Hands-AI/OpenHands), its CodeActAgent, with openhands-aci 0.3.3",
    formula: "",
    options: OptionSet::of::<OpenHandsOptions>(),
    open: |given| Ok(Arc::new(OpenHands::new(given.read()?)?)),
};

/// The message of the system, as the original writes it for agents in sandboxes.
pub const SYSTEM: &str = include_str!("texts/system.txt");
/// What is said to an answer that calls no tool, in words of our own.
pub const NO_CALL: &str = "Go on with the task as you see fit. When it is done, call the tool `finish`. Nobody is there to help or to answer questions.";

/// Characters of an observation, the middle left out.
const MAX_OUTPUT_CHARS: usize = 30_000;
const LEFT_OUT: &str = "\n[... Observation truncated due to length ...]\n";
/// How long is waited before what runs is looked at again.
const LOOK: Duration = Duration::from_millis(500);
const WAIT_WORDS: &str = "You may wait longer to see additional output by sending empty command '', send other commands to interact \
     with the current process, send keys (\"C-c\", \"C-z\", \"C-d\") to interrupt/kill the previous command before sending your new \
     command, or use the timeout parameter in execute_bash for future commands.";

/// Options of OpenHands' toolset.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct OpenHandsOptions {
    /// Seconds that a command may show nothing new before the agent is asked what to do, 1 to 86400. Default 30.
    no_change_secs: u64,
    /// Seconds that a command may take before the agent is asked what to do, where the call does not say, 1 to 86400. Default
    /// 120.
    command_secs: u64,
}

impl Default for OpenHandsOptions {
    fn default() -> Self {
        Self { no_change_secs: 30, command_secs: 120 }
    }
}

impl NamedOptions for OpenHandsOptions {
    fn problems(&self) -> Vec<String> {
        let all = [("no_change_secs", self.no_change_secs), ("command_secs", self.command_secs)];
        let wrong = all.into_iter().filter(|(_, value)| !(1..=86_400).contains(value));
        wrong.map(|(name, value)| format!("{name} is {value}, must be 1 to 86400")).collect()
    }
}

/// The toolset with its options.
#[derive(Debug)]
struct OpenHands(OpenHandsOptions);

impl OpenHands {
    fn new(options: OpenHandsOptions) -> Result<Self, RowError> {
        RowError::refuse("toolset", "openhands", options.problems())?;
        Ok(Self(options))
    }
}

/// Bash, thoughts, the end and the editor, in this order.
fn tools() -> Arc<[ToolSpec]> {
    static ALL: OnceLock<Arc<[ToolSpec]>> = OnceLock::new();
    let all = ALL.get_or_init(|| {
        let all: Vec<ToolSpec> =
            serde_json::from_str(include_str!("texts/tools.json")).expect("it was recorded");
        all.into()
    });
    Arc::clone(all)
}

impl Toolset for OpenHands {
    fn tools(&self) -> Arc<[ToolSpec]> {
        tools()
    }

    fn command_limit(&self) -> Option<Duration> {
        Some(Duration::from_secs(self.0.command_secs))
    }

    /// Words of our own: those of the original's evaluations are not in its package.
    fn opening(&self, briefing: &Briefing<'_>) -> String {
        let Briefing { task, workdir, is_repository, .. } = *briefing;
        match is_repository {
            true => format!(
                "A repository has been put into `{workdir}`. This issue is to be resolved there:\n\n<issue>\n{task}\n</issue>\n\n\
                 Change files that are no tests so that what the issue asks for holds. Tests that you do not see will judge that. \
                 All that is needed to run the code is installed.\n\nLook for the code that is concerned, reproduce the problem, \
                 change the sources, and check the result, edge cases included. When you are done, call the tool `finish`."
            ),
            false => format!(
                "{task}\n\nYou work in `{workdir}`. When the task is done, call the tool `finish`."
            ),
        }
    }

    fn command(&self, command: &str) -> Action {
        let arguments = [("command", command), ("security_risk", "LOW")];
        let arguments = arguments.map(|(name, text)| (name.to_owned(), text.into()));
        Action::calls(vec![ToolCall::new("execute_bash", Map::from_iter(arguments))])
    }

    fn submit(&self) -> Action {
        let arguments = Map::from_iter([("message".to_owned(), "Done.".into())]);
        Action::calls(vec![ToolCall::new("finish", arguments)])
    }

    fn begin(&self) -> Box<dyn ToolSession> {
        Box::new(Session {
            options: self.0.clone(),
            shell: None,
            is_running: false,
            editor: Editor::default(),
        })
    }
}

/// What an agent has done so far.
struct Session {
    options: OpenHandsOptions,
    /// Absent until a command has to run in it.
    shell: Option<PtyShell>,
    /// Whether the command before has not ended yet.
    is_running: bool,
    editor: Editor,
}

/// How long a command is waited for.
#[derive(Clone, Copy)]
struct Patience {
    /// Until this much has passed.
    whole: Duration,
    /// Until nothing new has come for so long; absent where the call itself says how long.
    no_change: Option<Duration>,
}

/// What waiting for a command came to.
enum Waited {
    Ended {
        output: Vec<u8>,
        code: i32,
    },
    /// Nothing new has come.
    NoChange {
        output: Vec<u8>,
    },
    /// All of its time is over.
    Late {
        output: Vec<u8>,
    },
    Gone {
        output: Vec<u8>,
    },
}

#[async_trait]
impl ToolSession for Session {
    async fn act(&mut self, action: &Action, place: &mut Workplace<'_>) -> Result<Acted, Halt> {
        let calls = action.tool_calls();
        let mut results = Vec::with_capacity(calls.len());
        // All calls are read before the first is carried out; one that is none keeps all others from that.
        if let Some(told) = calls.iter().find_map(mistake) {
            return Ok(Acted::refused(
                calls,
                &format!("{told}\n[Error occurred in processing last action]"),
            ));
        }
        for (number, call) in calls.iter().enumerate() {
            let text = match &*call.name {
                "finish" => {
                    results.push(ToolResult::new(call, ""));
                    // What stands behind the end is not carried out.
                    let left = calls[number + 1..].iter().map(|call| ToolResult::new(call, ""));
                    results.extend(left);
                    return Ok(Acted::of(results).submitted(Submission::default()));
                }
                "think" => "Your thought has been logged.".to_owned(),
                "str_replace_editor" => {
                    let workdir = place.workdir().to_owned();
                    shortened(&self.editor.call(&call.arguments, &workdir, place).await?)
                }
                _ => self.bash(&call.arguments, place).await?,
            };
            results.push(ToolResult::new(call, text));
        }
        if results.is_empty() {
            return Ok(Acted::refused(calls, NO_CALL));
        }
        Ok(Acted::of(results))
    }

    fn fork(&self) -> Option<Box<dyn ToolSession>> {
        // What runs in a shell cannot be copied; one that has not begun can.
        self.shell.is_none().then(|| {
            Box::new(Self {
                options: self.options.clone(),
                shell: None,
                is_running: false,
                editor: self.editor.clone(),
            }) as Box<dyn ToolSession>
        })
    }
}

/// What is wrong with a call, in the original's words.
fn mistake(call: &ToolCall) -> Option<String> {
    let ToolCall { name, arguments, .. } = call;
    let missing = |argument: &str| {
        let is_missing = !arguments.contains_key(argument);
        is_missing.then(|| format!("Missing required argument \"{argument}\" in tool call {name}"))
    };
    match &**name {
        "execute_bash" => missing("command").or_else(|| {
            let timeout = arguments.get("timeout")?;
            seconds(timeout).is_none().then(|| {
                let timeout = timeout.as_str().map_or_else(|| timeout.to_string(), str::to_owned);
                format!("Invalid float passed to 'timeout' argument: {timeout}")
            })
        }),
        "str_replace_editor" => missing("command").or_else(|| missing("path")).or_else(|| {
            let all = tools();
            let tool = all.iter().find(|tool| tool.name == *name)?;
            let is_view = arguments.get("command").and_then(Json::as_str) == Some("view");
            let unknown = arguments.keys().find(|argument| tool.parameter(argument).is_none());
            unknown.filter(|_| !is_view).map(|argument| {
                let known = tool.parameters.get("properties").and_then(Json::as_object);
                let known = known.into_iter().flat_map(Map::keys).map(|name| format!("'{name}'"));
                let known: Vec<String> = known.collect();
                format!(
                    "Unexpected argument {argument} in tool call {name}. Allowed arguments are: {{{}}}",
                    known.join(", ")
                )
            })
        }),
        "think" | "finish" => None,
        _ => Some(format!(
            "Tool {name} is not registered. (arguments: {}). Please check the tool name and retry with an existing tool.",
            Json::Object(arguments.clone())
        )),
    }
}

/// A number of seconds, which may stand in a text.
fn seconds(value: &Json) -> Option<f64> {
    let number = match value {
        Json::Number(number) => number.as_f64(),
        Json::String(text) => text.trim().parse().ok(),
        _ => None,
    };
    number.filter(|number| number.is_finite() && *number >= 0.0)
}

impl Session {
    async fn bash(
        &mut self,
        arguments: &Map<String, Json>,
        place: &mut Workplace<'_>,
    ) -> Result<String, Halt> {
        let text = |name: &str| arguments.get(name).and_then(Json::as_str);
        let command = text("command").unwrap_or_default().trim().to_owned();
        let is_input = text("is_input") == Some("true");
        let asked = arguments.get("timeout").and_then(seconds);
        // What a call asks for is kept to what a command may take here.
        let limit = place.command_limit();
        let whole = asked
            .map_or(limit, |asked| Duration::try_from_secs_f64(asked).unwrap_or(limit).min(limit));
        let in_words = match asked {
            Some(asked) if Duration::try_from_secs_f64(asked).is_ok_and(|it| it <= limit) => {
                format!("{asked:?}")
            }
            _ => whole.as_secs().to_string(),
        };
        let no_change = asked.is_none().then(|| Duration::from_secs(self.options.no_change_secs));
        let patience = Patience { whole, no_change };
        let mut before = Vec::new();
        let mut is_continued = false;
        if self.is_running {
            is_continued = true;
            if !is_input && !command.is_empty() {
                let shell = self.shell.as_mut().expect("what runs has a shell");
                match wait(shell, Duration::ZERO, None).await? {
                    // It has ended meanwhile, and the new command can run.
                    Waited::Ended { output, .. } => {
                        (before, self.is_running, is_continued) = (output, false, false);
                    }
                    Waited::Gone { output } => return Ok(self.gone(&output)),
                    Waited::NoChange { output } | Waited::Late { output } => {
                        let suffix = format!(
                            "\n[Your command \"{command}\" is NOT executed. The previous command is still running - You CANNOT send new commands until \
                             the previous command is completed. By setting `is_input` to `true`, you can interact with the current process: {WAIT_WORDS}]"
                        );
                        return Ok(observed(&output, true, &suffix));
                    }
                }
            }
        } else if command.is_empty() {
            return Ok("ERROR: No previous running command to retrieve logs from.".to_owned());
        } else if is_input {
            return Ok("ERROR: No previous running command to interact with.".to_owned());
        }
        let shell = match self.shell.take() {
            Some(shell) => shell,
            None => PtyShell::open(place, &environment(), &["/root/.bashrc"]).await?,
        };
        let shell = self.shell.insert(shell);
        let key = special_key(&command);
        let waited = match (is_continued, key) {
            (false, _) => {
                let began = shell.run(&command, patience.whole.min(LOOK)).await?;
                wait_on(shell, began, patience, before).await?
            }
            (true, _) if command.is_empty() => wait(shell, patience.whole, no_change).await?,
            (true, Some(key)) => {
                shell.keys(&[key as u8 & 0x1f]).await?;
                wait(shell, patience.whole, no_change).await?
            }
            (true, None) => {
                shell.keys(format!("{command}\n").as_bytes()).await?;
                wait(shell, patience.whole, no_change).await?
            }
        };
        self.is_running = matches!(waited, Waited::NoChange { .. } | Waited::Late { .. });
        Ok(match waited {
            Waited::Ended { output, code } => {
                let sent = key.filter(|_| is_continued);
                let sent = sent.map(|key| format!(" CTRL+{} was sent.", key.to_ascii_uppercase()));
                let suffix = format!(
                    "\n[The command completed with exit code {code}.{}]",
                    sent.unwrap_or_default()
                );
                let interpreter = interpreter(shell, code).await?;
                let mut told = observed(&output, is_continued, &suffix);
                told += &format!("\n[Current working directory: {}]", shell.workdir);
                if !interpreter.is_empty() {
                    told += &format!("\n[Python interpreter: {interpreter}]");
                }
                shortened(&format!("{told}\n[Command finished with exit code {code}]"))
            }
            Waited::NoChange { output } => {
                let seconds = self.options.no_change_secs;
                let suffix = format!(
                    "\n[The command has no new output after {seconds} seconds. {WAIT_WORDS}]"
                );
                observed(&output, is_continued, &suffix)
            }
            Waited::Late { output } => {
                let suffix =
                    format!("\n[The command timed out after {in_words} seconds. {WAIT_WORDS}]");
                observed(&output, is_continued, &suffix)
            }
            Waited::Gone { output } => self.gone(&output),
        })
    }

    /// The shell has ended; the next command begins in a new one.
    fn gone(&mut self, output: &[u8]) -> String {
        (self.shell, self.is_running) = (None, false);
        observed(output, false, "\n[The shell has ended; the next command begins in a new one.]")
    }
}

/// Waits for what runs.
async fn wait(
    shell: &mut PtyShell,
    whole: Duration,
    no_change: Option<Duration>,
) -> Result<Waited, Halt> {
    let patience = Patience { whole, no_change };
    let began = shell.wait(whole.min(LOOK)).await?;
    wait_on(shell, began, patience, Vec::new()).await
}

/// Goes on waiting behind a first look.
async fn wait_on(
    shell: &mut PtyShell,
    mut looked: Typed,
    patience: Patience,
    mut output: Vec<u8>,
) -> Result<Waited, Halt> {
    let began = Instant::now();
    let mut changed = began;
    loop {
        match looked {
            Typed::Ended { output: new, code } => {
                output.extend(new);
                return Ok(Waited::Ended { output, code });
            }
            Typed::Gone { output: new } => {
                output.extend(new);
                return Ok(Waited::Gone { output });
            }
            Typed::Late { output: new } => {
                if !new.is_empty() {
                    changed = Instant::now();
                }
                output.extend(new);
            }
        }
        if patience.no_change.is_some_and(|most| changed.elapsed() >= most) {
            return Ok(Waited::NoChange { output });
        }
        let Some(left) = patience.whole.checked_sub(began.elapsed()).filter(|left| !left.is_zero())
        else {
            return Ok(Waited::Late { output });
        };
        looked = shell.wait(left.min(LOOK)).await?;
    }
}

/// The interpreter that the shell would take; the status of the command before is put back.
async fn interpreter(shell: &mut PtyShell, code: i32) -> Result<String, Halt> {
    let asked = format!("command -v python 2>/dev/null; (exit {code})");
    Ok(match shell.run(&asked, Duration::from_secs(5)).await? {
        Typed::Ended { output, .. } => stripped(&backslash_replaced(&output)).trim().to_owned(),
        Typed::Late { .. } | Typed::Gone { .. } => String::new(),
    })
}

/// The letter of a key such as `C-c`.
fn special_key(command: &str) -> Option<char> {
    let mut letters = command.strip_prefix("C-")?.chars();
    letters.next().filter(|key| key.is_ascii_alphabetic() && letters.next().is_none())
}

/// What is shown of a command.
fn observed(output: &[u8], is_continued: bool, suffix: &str) -> String {
    let output = stripped(&backslash_replaced(output));
    let output = spar_swe::python_text::strip(&output);
    let prefix = if is_continued { "[Below is the output of the previous command.]\n" } else { "" };
    format!("{prefix}{}{suffix}", shortened(output))
}

/// A text with its middle left out where it is long.
fn shortened(text: &str) -> String {
    let count = text.chars().count();
    if count <= MAX_OUTPUT_CHARS {
        return text.to_owned();
    }
    let half = MAX_OUTPUT_CHARS / 2;
    let first = first_chars(text, half);
    let last = &text[first_chars(text, count - half).len()..];
    format!("{first}{LEFT_OUT}{last}")
}

/// Variables of the shell.
fn environment() -> BTreeMap<String, String> {
    let all = [("PAGER", "cat"), ("GIT_PAGER", "cat"), ("LANG", "C.UTF-8")];
    all.into_iter().map(|(name, text)| (name.to_owned(), text.to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::ToolsetChoice;

    fn call(name: &str, arguments: Json) -> ToolCall {
        ToolCall::new(name, arguments.as_object().unwrap().clone())
    }

    #[test]
    fn calls_that_are_none_are_told_as_by_the_original() {
        for (name, arguments, told) in [
            (
                "execute_bash",
                json!({}),
                "Missing required argument \"command\" in tool call execute_bash",
            ),
            (
                "execute_bash",
                json!({ "command": "ls", "timeout": "soon" }),
                "Invalid float passed to 'timeout' argument: soon",
            ),
            (
                "str_replace_editor",
                json!({ "command": "view" }),
                "Missing required argument \"path\" in tool call str_replace_editor",
            ),
            (
                "edit",
                json!({ "a": 1 }),
                "Tool edit is not registered. (arguments: {\"a\":1}). Please check the tool name and retry with an existing tool.",
            ),
        ] {
            assert_eq!(mistake(&call(name, arguments)).as_deref(), Some(told));
        }
        let odd = json!({ "command": "create", "path": "/a", "text": "b" });
        let told = mistake(&call("str_replace_editor", odd)).unwrap();
        assert!(
            told.starts_with("Unexpected argument text in tool call str_replace_editor."),
            "{told}"
        );
        let fine = json!({ "command": "ls", "timeout": 5, "security_risk": "LOW" });
        assert_eq!(mistake(&call("execute_bash", fine)), None);
        assert_eq!(mistake(&call("think", json!({}))), None);
    }

    #[test]
    fn observations_are_worded_as_by_the_original() {
        assert_eq!(observed(b"\r\n hello\r\n\r\n", false, "\n[x]"), "hello\n[x]");
        assert_eq!(
            observed(b"more\n", true, ""),
            "[Below is the output of the previous command.]\nmore"
        );
        let long = "\u{e4}".repeat(30_001);
        let told = shortened(&long);
        assert_eq!(told.chars().count(), 30_000 + LEFT_OUT.len());
        assert!(told.contains(LEFT_OUT));
        assert_eq!(
            ["C-c", "C-D", "C-", "C-cc", "c"].map(special_key),
            [Some('c'), Some('D'), None, None, None]
        );
    }

    #[test]
    fn its_tools_are_those_of_the_original() {
        let choice = ToolsetChoice::new("openhands", Map::new()).unwrap();
        let tools = choice.toolset().tools();
        let names: Vec<&str> = tools.iter().map(|tool| &*tool.name).collect();
        assert_eq!(names, ["execute_bash", "think", "finish", "str_replace_editor"]);
        tools.iter().for_each(|tool| tool.validate().unwrap());
        let wrong = json!({ "command_secs": 0 });
        let error =
            ToolsetChoice::new("openhands", wrong.as_object().unwrap().clone()).unwrap_err();
        assert!(error.to_string().contains("command_secs is 0"), "{error}");
        assert!(
            SYSTEM.starts_with("You are OpenHands agent") && SYSTEM.contains("Container-scoped")
        );
    }
}
