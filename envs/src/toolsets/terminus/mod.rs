//! Terminus 2's: keys on a terminal, and what it shows.
//!
//! As there, the terminal is that of a tmux in the sandbox, which the image has to have: it keeps what has scrolled away, and
//! knows keys by their names.

mod answer;
mod python_json;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use spar_core::registry::{NamedOptions, OptionSet};
use spar_core::{Action, ToolSpec};
use spar_sandbox::{ExecRequest, ExecResult};
use spar_swe::python_text::strip;
use tokio::time::{Instant, sleep};

use self::answer::{Answer, Keys};
use super::{Acted, Briefing, Halt, Submission, ToolSession, Toolset, ToolsetRow, Workplace};

pub(super) const ROW: ToolsetRow = ToolsetRow {
    name: "terminus",
    about: "Keys on a terminal, as JSON with what is thought; the task is complete when that is said twice.",
    source: "Terminus 2 of harbor 0.26.0, its JSON form without summaries",
    formula: "",
    options: OptionSet::of::<TerminusOptions>(),
    open: |given| Ok(Arc::new(Terminus(Arc::new(given.read()?)))),
};

/// The tmux session.
const SESSION: &str = "terminus-2";
/// Lines of a scrolled terminal are so many bytes at the most.
const CAPTURE_LIMIT_BYTES: usize = 16 << 20;
/// Bytes of a command line of tmux.
const MAX_COMMAND_BYTES: usize = 16_000;
/// What one look at the terminal, or one handful of keys, may take.
const TMUX: Duration = Duration::from_secs(30);
/// How long the first prompt is waited for.
const FIRST_PROMPT: Duration = Duration::from_secs(3);

/// Options of Terminus 2's toolset.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct TerminusOptions {
    /// Characters of a line of the terminal, 20 to 1000. Default 160.
    columns: u16,
    /// Lines of the terminal, 5 to 1000. Default 40.
    rows: u16,
    /// Bytes that are shown of what the terminal shows; at least 100. Default 10000.
    max_output_bytes: usize,
}

impl Default for TerminusOptions {
    fn default() -> Self {
        Self { columns: 160, rows: 40, max_output_bytes: 10_000 }
    }
}

impl NamedOptions for TerminusOptions {
    fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        if !(20..=1000).contains(&self.columns) {
            problems.push(format!("columns is {}, must be 20 to 1000", self.columns));
        }
        if !(5..=1000).contains(&self.rows) {
            problems.push(format!("rows is {}, must be 5 to 1000", self.rows));
        }
        if self.max_output_bytes < 100 {
            problems.push(format!(
                "max_output_bytes is {}, must be at least 100",
                self.max_output_bytes
            ));
        }
        problems
    }
}

/// The toolset with its options.
#[derive(Debug)]
struct Terminus(Arc<TerminusOptions>);

impl Toolset for Terminus {
    fn tools(&self) -> Arc<[ToolSpec]> {
        Arc::default()
    }

    fn command_limit(&self) -> Option<Duration> {
        Some(Duration::from_secs(60))
    }

    fn looks_first(&self) -> bool {
        true
    }

    fn opening(&self, briefing: &Briefing<'_>) -> String {
        prompt(briefing.task, "")
    }

    fn command(&self, command: &str) -> Action {
        let keys = json!({ "keystrokes": format!("{}\n", command.trim_end()), "duration": 2.0 });
        said(&json!([keys]), false)
    }

    fn submit(&self) -> Action {
        said(&json!([]), true)
    }

    fn begin(&self) -> Box<dyn ToolSession> {
        let options = Arc::clone(&self.0);
        Box::new(Session { options, before: None, is_pending: false })
    }
}

/// An answer in its form.
fn said(commands: &serde_json::Value, is_complete: bool) -> Action {
    let mut text = format!("{{\"analysis\": \"\", \"plan\": \"\", \"commands\": {commands}");
    if is_complete {
        text += ", \"task_complete\": true";
    }
    Action::text(text + "}")
}

/// The first message. Its file is a text for Python's `str.format`.
fn prompt(task: &str, screen: &str) -> String {
    let text = include_str!("texts/json.txt").replace("{{", "{").replace("}}", "}");
    let (before, behind) = text.split_once("{instruction}").unwrap_or((&text, ""));
    let (between, end) = behind.split_once("{terminal_state}").unwrap_or((behind, ""));
    [before, task, between, screen, end].concat()
}

/// A terminal in use.
struct Session {
    options: Arc<TerminusOptions>,
    /// All that it had shown when it was looked at last; absent before the first look.
    before: Option<String>,
    /// Whether the task was said to be complete, and that was asked about.
    is_pending: bool,
}

#[async_trait]
impl ToolSession for Session {
    async fn open(
        &mut self,
        briefing: &Briefing<'_>,
        place: &mut Workplace<'_>,
    ) -> Result<String, Halt> {
        self.start(place).await?;
        let began = Instant::now();
        // The original may look before there is a prompt.
        while strip(&capture(place, false).await?).is_empty() && began.elapsed() < FIRST_PROMPT {
            sleep(Duration::from_millis(50)).await;
        }
        let screen = self.look(place).await?;
        Ok(prompt(briefing.task, &limited(&screen, self.options.max_output_bytes)))
    }

    async fn act(&mut self, action: &Action, place: &mut Workplace<'_>) -> Result<Acted, Halt> {
        if self.before.is_none() {
            // A machine that was forked before anybody looked.
            self.start(place).await?;
            self.look(place).await?;
        }
        if !tmux(place, &["has-session", "-t", SESSION]).await?.end.is_success() {
            return Ok(Acted::said("").submitted(Submission::default()));
        }
        let Answer { commands, is_complete, error, warning } = answer::read(action.said());
        let warnings =
            if warning.is_empty() { String::new() } else { format!("WARNINGS: {warning}") };
        if !error.is_empty() {
            let warnings = if warnings.is_empty() { warnings } else { format!("\n{warnings}") };
            let told = format!(
                "Previous response had parsing errors:\nERROR: {error}{warnings}\n\nPlease fix these issues and provide a proper \
                 JSON response."
            );
            return Ok(Acted { is_valid: false, ..Acted::said(told) });
        }
        for Keys { keystrokes, seconds } in &commands {
            let began = Instant::now();
            send_keys(place, keystrokes).await?;
            let wait = Duration::from_secs_f64(*seconds);
            sleep(wait.saturating_sub(began.elapsed())).await;
        }
        let most = self.options.max_output_bytes;
        let shown = limited(&self.look(place).await?, most);
        if !is_complete {
            self.is_pending = false;
            return Ok(Acted::said(match warnings.is_empty() {
                true => limited(&shown, most),
                false => format!(
                    "Previous response had warnings:\n{warnings}\n\n{}",
                    limited(&shown, most)
                ),
            }));
        }
        if self.is_pending {
            return Ok(Acted::said(shown).submitted(Submission::default()));
        }
        self.is_pending = true;
        Ok(Acted::said(format!(
            "Current terminal state:\n{shown}\n\nAre you sure you want to mark the task as complete? This will trigger your \
             solution to be graded and you won't be able to make any further corrections. If so, include \"task_complete\": true \
             in your JSON response again."
        )))
    }

    fn fork(&self) -> Option<Box<dyn ToolSession>> {
        // What stands on a terminal cannot be copied.
        None
    }
}

impl Session {
    async fn start(&self, place: &mut Workplace<'_>) -> Result<(), Halt> {
        let TerminusOptions { columns, rows, .. } = *self.options;
        let (columns, rows) = (columns.to_string(), rows.to_string());
        // That of the step before, where a task has several: each begins at a terminal of its own.
        tmux(place, &["kill-session", "-t", SESSION]).await?;
        let words =
            ["new-session", "-x", &columns, "-y", &rows, "-d", "-s", SESSION, "bash --login"];
        let started = tmux(place, &words).await?;
        if !started.end.is_success() {
            let told = started.stderr.text();
            let why = format!("start tmux, which terminus needs in the image: {}", told.trim());
            return Err(Halt::Refused(why));
        }
        // As there, behind the session: it counts for what comes after.
        tmux(place, &["set-option", "-g", "history-limit", "10000000"]).await?;
        Ok(())
    }

    /// What is new on the terminal, or all that it shows.
    async fn look(&mut self, place: &mut Workplace<'_>) -> Result<String, Halt> {
        let now = capture(place, true).await?;
        let Some(before) = self.before.replace(now.clone()) else {
            return screen(place).await;
        };
        match new_content(strip(&before), &now) {
            Some(new) if !strip(new).is_empty() => Ok(format!("New Terminal Output:\n{new}")),
            _ => screen(place).await,
        }
    }
}

async fn screen(place: &mut Workplace<'_>) -> Result<String, Halt> {
    Ok(format!("Current Terminal Screen:\n{}", capture(place, false).await?))
}

/// What stands in `now` from the last line of `before` on, as the original finds it; absent where `before` is not in it.
fn new_content<'t>(before: &str, now: &'t str) -> Option<&'t str> {
    let found = now.find(before)?;
    // The original takes the place of a line end in the one for that in the other, in characters.
    let place = match before.rfind('\n') {
        Some(at) => before[..at].chars().count(),
        None => now[..found].chars().count(),
    };
    Some(now.char_indices().nth(place).map_or("", |(at, _)| &now[at..]))
}

/// What the terminal shows, or all that it has shown.
async fn capture(place: &mut Workplace<'_>, is_whole: bool) -> Result<String, Halt> {
    let words: &[&str] = match is_whole {
        true => &["capture-pane", "-p", "-S", "-", "-t", SESSION],
        false => &["capture-pane", "-p", "-t", SESSION],
    };
    Ok(tmux(place, words).await?.stdout.text())
}

/// Types keys; those that have a name are that key where they stand alone.
async fn send_keys(place: &mut Workplace<'_>, keys: &str) -> Result<(), Halt> {
    if keys.is_empty() {
        return Ok(());
    }
    // No argument of a program can have one.
    let keys = keys.replace('\0', "");
    if keys.len() < MAX_COMMAND_BYTES - 100 {
        let sent = tmux(place, &["send-keys", "-t", SESSION, "--", &keys]).await?;
        if sent.end.is_success() || !sent.stderr.text().contains("command too long") {
            return Ok(());
        }
    }
    let load = ExecRequest::new(["tmux", "load-buffer", "-b", "spar-keys", "-"]);
    run(place, load.with_stdin(keys.into_bytes())).await?;
    tmux(place, &["paste-buffer", "-d", "-b", "spar-keys", "-t", SESSION]).await?;
    Ok(())
}

async fn tmux(place: &mut Workplace<'_>, words: &[&str]) -> Result<ExecResult, Halt> {
    let mut all = vec!["tmux"];
    all.extend(words);
    run(place, ExecRequest::new(all)).await
}

async fn run(place: &mut Workplace<'_>, mut request: ExecRequest) -> Result<ExecResult, Halt> {
    request.env.insert("TERM".to_owned(), "xterm-256color".to_owned());
    request.env.insert("SHELL".to_owned(), "/bin/bash".to_owned());
    request.output_limit_bytes = CAPTURE_LIMIT_BYTES;
    place.exec(request.with_timeout(TMUX)).await
}

/// A text without its middle where it has more than `most` bytes.
fn limited(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let half = most / 2;
    let (mut end, mut start) = (half, text.len() - half);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    while !text.is_char_boundary(start) {
        start += 1;
    }
    let omitted = start - end;
    format!(
        "{}\n[... output limited to {most} bytes; {omitted} interior bytes omitted ...]\n{}",
        &text[..end],
        &text[start..]
    )
}
