//! Lines that a person types, completed on the way.

use std::io::IsTerminal;
use std::sync::mpsc as blocking;

use rustyline::completion::{Completer, Pair};
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::MemHistory;
use rustyline::validate::Validator;
use rustyline::{CompletionType, Config, Context, Editor, Helper};
use serde_json::Value;
use spar::core::{Observation, ToolSpec};
use tokio::sync::mpsc;

use super::play::read_lines;
use super::print;

const PROMPT: &str = "> ";
/// Lines that can be taken up again.
const HISTORY: usize = 1000;

/// What can be typed now.
#[derive(Debug, Clone, Default)]
pub(super) struct Offered {
    tools: Vec<ToolSpec>,
    actions: Vec<String>,
}

impl Offered {
    pub(super) fn new(tools: Vec<ToolSpec>, observation: &Observation) -> Self {
        let actions = observation.admissible.as_deref().unwrap_or_default();
        Self { tools, actions: actions.iter().map(ToString::to_string).collect() }
    }

    /// What may stand where a line ends: from which byte on, and the texts in place of what is there.
    ///
    /// A line of a task with tools is the name of one and its arguments as JSON; any other is a command.
    pub(super) fn completions(&self, line: &str) -> (usize, Vec<String>) {
        if self.tools.is_empty() {
            let begun = self.actions.iter().filter(|action| action.starts_with(line));
            return (0, begun.cloned().collect());
        }
        let Some((name, rest)) = line.split_once(' ') else {
            let begun = self.tools.iter().filter(|tool| tool.name.starts_with(line));
            let written = begun.map(|tool| match properties(tool).is_empty() {
                true => tool.name.clone(),
                false => format!("{} {{", tool.name),
            });
            return (0, written.collect());
        };
        let Some(tool) = self.tools.iter().find(|tool| tool.name == name) else {
            return (line.len(), Vec::new());
        };
        let (start, found) = arguments(tool, rest);
        (name.len() + 1 + start, found)
    }

    /// What may stand in place of a question mark at the end of a line; none where it asks something else.
    pub(super) fn asked(&self, line: &str) -> Option<Vec<String>> {
        let begun = line.strip_suffix('?')?;
        let (name, rest) = begun.split_once(' ').unwrap_or((begun, ""));
        let is_call = rest.trim().is_empty() || rest.trim_start().starts_with('{');
        let is_tool = self.tools.iter().any(|tool| match begun.contains(' ') {
            true => tool.name == name,
            false => tool.name.starts_with(name),
        });
        (is_call && is_tool && !name.is_empty()).then(|| self.completions(begun).1)
    }
}

/// Parameters of a tool with their schemas.
fn properties(tool: &ToolSpec) -> Vec<(&String, &Value)> {
    tool.parameters["properties"].as_object().into_iter().flatten().collect()
}

/// What may stand where arguments end that are written so far.
fn arguments(tool: &ToolSpec, written: &str) -> (usize, Vec<String>) {
    if written.trim().is_empty() {
        let open = if properties(tool).is_empty() { Vec::new() } else { vec!["{".to_owned()] };
        return (written.len(), open);
    }
    let place = Place::at_end(written);
    let begun = &written[place.start..];
    let found: Vec<String> = match (&place.expects, place.depth) {
        (Expects::Name, 1) => {
            let word = begun.trim_start_matches('"');
            let left = properties(tool).into_iter().filter(|(name, _)| {
                name.starts_with(word) && !place.given.iter().any(|given| given == *name)
            });
            left.map(|(name, _)| format!("\"{name}\": ")).collect()
        }
        (Expects::ValueOf(name), 1) => {
            let known = properties(tool).into_iter().find(|(known, _)| *known == name);
            let values = known.map(|(_, schema)| values(schema)).unwrap_or_default();
            values.into_iter().filter(|value| value.starts_with(begun)).collect()
        }
        _ => Vec::new(),
    };
    (place.start, found)
}

/// How values of a parameter can be written, as far as its schema tells.
fn values(schema: &Value) -> Vec<String> {
    if let Some(values) = schema["enum"].as_array() {
        return values.iter().map(Value::to_string).collect();
    }
    match schema["type"].as_str() {
        Some("boolean") => vec!["true".to_owned(), "false".to_owned()],
        Some("string") => vec!["\"".to_owned()],
        Some("array") => vec!["[".to_owned()],
        Some("object") => vec!["{".to_owned()],
        _ => Vec::new(),
    }
}

/// What comes next in an object that is not closed yet.
enum Expects {
    Name,
    ValueOf(String),
}

/// The end of a JSON object that is being written.
struct Place {
    depth: usize,
    expects: Expects,
    /// Where the word begins that is being written.
    start: usize,
    /// Names that have their value.
    given: Vec<String>,
}

impl Place {
    fn at_end(written: &str) -> Self {
        let mut place = Self { depth: 0, expects: Expects::Name, start: 0, given: Vec::new() };
        // Where a text that is open began, and the last one that is closed.
        let (mut open, mut last, mut is_escaped) = (None, "", false);
        for (at, character) in written.char_indices() {
            if let Some(from) = open {
                match character {
                    _ if is_escaped => is_escaped = false,
                    '\\' => is_escaped = true,
                    '"' => (open, last) = (None, &written[from..at]),
                    _ => {}
                }
                continue;
            }
            let next = at + character.len_utf8();
            match character {
                '"' => open = Some(next),
                '{' | '[' => {
                    place.depth += 1;
                    place.start = next;
                }
                '}' | ']' => place.depth = place.depth.saturating_sub(1),
                ':' if place.depth == 1 => {
                    place.given.push(last.to_owned());
                    place.expects = Expects::ValueOf(last.to_owned());
                    place.start = next;
                }
                ',' if place.depth == 1 => {
                    place.expects = Expects::Name;
                    place.start = next;
                }
                ' ' if place.start == at => place.start = next,
                _ => {}
            }
        }
        place
    }
}

impl Helper for Offered {}
impl Hinter for Offered {
    type Hint = String;
}
impl Highlighter for Offered {}
impl Validator for Offered {}

impl Completer for Offered {
    type Candidate = Pair;

    fn complete(
        &self,
        line: &str,
        position: usize,
        _context: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<Pair>)> {
        let (start, found) = self.completions(&line[..position]);
        let pair = |text: String| Pair { display: text.clone(), replacement: text };
        Ok((start, found.into_iter().map(pair).collect()))
    }
}

/// Lines of standard input: edited, completed and remembered in a terminal, as they come otherwise.
pub(super) struct Lines {
    lines: mpsc::Receiver<String>,
    /// Has the next line read, where it is edited.
    editor: Option<blocking::Sender<Offered>>,
}

impl Lines {
    pub(super) fn open() -> anyhow::Result<Self> {
        if !std::io::stdin().is_terminal() || !std::io::stdout().is_terminal() {
            return Ok(Self { lines: read_lines(), editor: None });
        }
        let config = Config::builder()
            .completion_type(CompletionType::List)
            .max_history_size(HISTORY)?
            .auto_add_history(true)
            .build();
        let history = MemHistory::with_config(&config);
        let mut editor = Editor::<Offered, _>::with_history(config, history)?;
        let (asks, asked) = blocking::channel::<Offered>();
        let (sender, lines) = mpsc::channel(1);
        // It ends with the terminal, with an interrupt, or when nobody asks any more.
        std::thread::spawn(move || {
            while let Ok(offered) = asked.recv() {
                editor.set_helper(Some(offered));
                let Ok(line) = editor.readline(PROMPT) else { return };
                if sender.blocking_send(line).is_err() {
                    return;
                }
            }
        });
        Ok(Self { lines, editor: Some(asks) })
    }

    /// The next line; none at the end.
    pub(super) async fn next(&mut self, offered: &Offered) -> Option<String> {
        match &self.editor {
            Some(editor) => editor.send(offered.clone()).ok()?,
            None => print(PROMPT).ok()?,
        }
        let line = self.lines.recv().await?;
        if self.editor.is_none() && !std::io::stdin().is_terminal() {
            // What is piped in does not show by itself.
            print(&format!("{line}\n")).ok()?;
        }
        Some(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn offered() -> Offered {
        let parameters = json!({"type": "object", "properties": {
            "to": {"type": "string"},
            "amount": {"type": "number"},
            "currency": {"type": "string", "enum": ["EUR", "USD"]},
            "at_once": {"type": "boolean"},
        }});
        let nothing = json!({"type": "object", "properties": {}});
        let tools =
            vec![ToolSpec::new("pay", "", parameters), ToolSpec::new("payments", "", nothing)];
        Offered { tools, actions: Vec::new() }
    }

    /// The lines that a line can become.
    fn completed(line: &str) -> Vec<String> {
        let (start, found) = offered().completions(line);
        found.into_iter().map(|text| format!("{}{text}", &line[..start])).collect()
    }

    #[test]
    fn tools_and_their_arguments_are_completed() {
        for (line, expected) in [
            ("pa", &["pay {", "payments"][..]),
            ("paym", &["payments"]),
            ("x", &[]),
            ("pay ", &["pay {"]),
            ("payments ", &[]),
            ("pay {\"a", &["pay {\"amount\": ", "pay {\"at_once\": "]),
            ("pay {am", &["pay {\"amount\": "]),
            ("pay {\"amount\": 3, \"a", &["pay {\"amount\": 3, \"at_once\": "]),
            ("pay {\"currency\": \"U", &["pay {\"currency\": \"USD\""]),
            ("pay {\"at_once\": t", &["pay {\"at_once\": true"]),
            (
                "pay {\"to\": \"a, \\\"b: {\", \"cu",
                &["pay {\"to\": \"a, \\\"b: {\", \"currency\": "],
            ),
            ("pay {\"to\": [", &[]),
            ("pay {\"to\": \"ü", &[]),
            ("pay {}", &[]),
        ] {
            assert_eq!(completed(line), expected, "{line}");
        }
    }

    #[test]
    fn commands_are_completed_where_there_are_no_tools() {
        let actions = vec!["go to bed 1".to_owned(), "go to desk 1".to_owned(), "look".to_owned()];
        let offered = Offered { tools: Vec::new(), actions };
        assert_eq!(offered.completions("go to d"), (0, vec!["go to desk 1".to_owned()]));
        assert_eq!(offered.asked("go?"), None);
    }

    #[test]
    fn a_question_mark_asks_what_may_stand_in_its_place() {
        let offered = offered();
        assert_eq!(offered.asked("pay {\"am?"), Some(vec!["\"amount\": ".to_owned()]));
        assert_eq!(offered.asked("pa?").map(|found| found.len()), Some(2));
        for words in ["?", "pay whom?", "how much?", "pay {}"] {
            assert_eq!(offered.asked(words), None, "{words}");
        }
    }
}
