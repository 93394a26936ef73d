//! What is asked of the environment, by calls of tools.

use std::sync::{Arc, OnceLock};

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use spar_core::{ToolCall, ToolSpec};

use super::fix::{Edit, indented};
use crate::tools::{read_arguments, spec_of};

/// The tools, by name.
const VIEW: &str = "view";
const REPLACE: &str = "replace_line";
const INSERT: &str = "insert_line";
const DELETE: &str = "delete_line";
const TEST: &str = "run_tests";
const SUBMIT: &str = "submit";

/// The longest line that is written, in bytes.
const LONGEST_LINE: usize = 200;

/// Something to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Command {
    /// Shows the program.
    View,
    /// Changes a line; the text need not have its indentation.
    Edit(Edit),
    /// Runs the tests that are shown.
    Test,
    /// Ends the task.
    Submit,
}

/// Shows the program.
#[derive(Debug, Deserialize, JsonSchema)]
struct ViewCall {}

/// Writes another text in place of a line.
#[derive(Debug, Deserialize, JsonSchema)]
struct ReplaceCall {
    /// Its number.
    line: u32,
    /// One line; without white space in front it is indented as the old one.
    text: String,
}

/// Writes a new line behind a line.
#[derive(Debug, Deserialize, JsonSchema)]
struct InsertCall {
    /// The number of the line in front of it, or 0.
    line: u32,
    /// One line; without white space in front it is indented as what stands there.
    text: String,
}

/// Removes a line.
#[derive(Debug, Deserialize, JsonSchema)]
struct DeleteCall {
    /// Its number.
    line: u32,
}

/// Runs the tests.
#[derive(Debug, Deserialize, JsonSchema)]
struct TestCall {}

/// Hands the program in.
#[derive(Debug, Deserialize, JsonSchema)]
struct SubmitCall {}

impl Command {
    /// What a call asks for. An error is for the policy.
    pub(super) fn of_call(call: &ToolCall) -> Result<Self, String> {
        let tools = tools();
        let Some(spec) = tools.iter().find(|spec| spec.name == call.name) else {
            let names: Vec<&str> = tools.iter().map(|spec| &*spec.name).collect();
            let other: String = call.name.chars().take(64).collect();
            return Err(format!("There is no tool `{other}`, only {}.", names.join(", ")));
        };
        let edit = match &*spec.name {
            VIEW => {
                let ViewCall {} = read_arguments(spec, call)?;
                return Ok(Self::View);
            }
            TEST => {
                let TestCall {} = read_arguments(spec, call)?;
                return Ok(Self::Test);
            }
            SUBMIT => {
                let SubmitCall {} = read_arguments(spec, call)?;
                return Ok(Self::Submit);
            }
            REPLACE => {
                let ReplaceCall { line, text } = read_arguments(spec, call)?;
                Edit::Replace(line as usize, checked(text)?)
            }
            INSERT => {
                let InsertCall { line, text } = read_arguments(spec, call)?;
                Edit::Insert(line as usize, checked(text)?)
            }
            _ => {
                let DeleteCall { line } = read_arguments(spec, call)?;
                Edit::Delete(line as usize)
            }
        };
        Ok(Self::Edit(edit))
    }

    /// The call that asks for it; texts are without white space in front where the lines' own comes about by itself.
    pub(super) fn to_call(&self, lines: &[String]) -> ToolCall {
        let (name, arguments) = match self {
            Self::View => (VIEW, json!({})),
            Self::Test => (TEST, json!({})),
            Self::Submit => (SUBMIT, json!({})),
            Self::Edit(edit) => match edit {
                Edit::Replace(line, text) => {
                    let short = shortened(text, edit, lines);
                    (REPLACE, json!({ "line": line, "text": short }))
                }
                Edit::Insert(line, text) => {
                    let short = shortened(text, edit, lines);
                    (INSERT, json!({ "line": line, "text": short }))
                }
                Edit::Delete(line) => (DELETE, json!({ "line": line })),
            },
        };
        ToolCall::new(name, arguments.as_object().cloned().unwrap_or_default())
    }
}

/// An edit with the text as it will stand.
pub(super) fn placed(edit: Edit, lines: &[String]) -> Edit {
    let like = |line: usize| line.checked_sub(1).and_then(|it| lines.get(it));
    match edit {
        Edit::Replace(line, text) => {
            let text = like(line).map_or(text.clone(), |like| indented(&text, like, false));
            Edit::Replace(line, text)
        }
        Edit::Insert(line, text) => {
            let text = like(line).map_or(text.clone(), |like| indented(&text, like, true));
            Edit::Insert(line, text)
        }
        Edit::Delete(line) => Edit::Delete(line),
    }
}

fn shortened(text: &str, edit: &Edit, lines: &[String]) -> String {
    let short = text.trim_start().to_owned();
    let tried = match edit {
        Edit::Replace(line, _) => Edit::Replace(*line, short.clone()),
        Edit::Insert(line, _) => Edit::Insert(*line, short.clone()),
        Edit::Delete(line) => Edit::Delete(*line),
    };
    if placed(tried, lines) == *edit { short } else { text.to_owned() }
}

fn checked(text: String) -> Result<String, String> {
    if text.len() > LONGEST_LINE {
        return Err(format!("A line has at most {LONGEST_LINE} bytes, not {}.", text.len()));
    }
    if text.contains(['\n', '\r', '\0']) {
        return Err("`text` is one line.".to_owned());
    }
    Ok(text)
}

/// The tools that are offered.
pub(super) fn tools() -> Arc<[ToolSpec]> {
    static TOOLS: OnceLock<Arc<[ToolSpec]>> = OnceLock::new();
    Arc::clone(TOOLS.get_or_init(|| {
        let lines = |mut spec: ToolSpec, least: u32| {
            // Small, so that a grammar of calls has few numbers.
            if let Some(line) =
                spec.parameters.pointer_mut("/properties/line").and_then(Value::as_object_mut)
            {
                line.insert("minimum".to_owned(), least.into());
                line.insert("maximum".to_owned(), 99.into());
            }
            spec
        };
        [
            spec_of::<ViewCall>(VIEW),
            lines(spec_of::<ReplaceCall>(REPLACE), 1),
            lines(spec_of::<InsertCall>(INSERT), 0),
            lines(spec_of::<DeleteCall>(DELETE), 1),
            spec_of::<TestCall>(TEST),
            spec_of::<SubmitCall>(SUBMIT),
        ]
        .into()
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_come_back_as_they_were_made() {
        let lines: Vec<String> = ["def f(x):", "    if x > 1:", "        return 2", "    return 1"]
            .map(str::to_owned)
            .into();
        for command in [
            Command::View,
            Command::Test,
            Command::Submit,
            Command::Edit(Edit::Replace(2, "    if x > 2:".to_owned())),
            Command::Edit(Edit::Replace(2, "if x > 2:".to_owned())),
            Command::Edit(Edit::Insert(2, "        x += 1".to_owned())),
            Command::Edit(Edit::Insert(3, "    x += 1".to_owned())),
            Command::Edit(Edit::Insert(0, "y = 1".to_owned())),
            Command::Edit(Edit::Delete(4)),
        ] {
            let read = Command::of_call(&command.to_call(&lines)).unwrap();
            let read = match read {
                Command::Edit(edit) => Command::Edit(placed(edit, &lines)),
                other => other,
            };
            let expected = match command {
                Command::Edit(edit) => Command::Edit(placed(edit, &lines)),
                other => other,
            };
            assert_eq!(read, expected);
        }
        let short = Command::Edit(Edit::Insert(2, "        x += 1".to_owned())).to_call(&lines);
        assert_eq!(short.arguments["text"], "x += 1");
    }

    #[test]
    fn arguments_that_do_not_fit_are_told() {
        let told = |name: &str, arguments: Value| {
            let arguments = arguments.as_object().cloned().unwrap();
            Command::of_call(&ToolCall::new(name, arguments)).unwrap_err()
        };
        assert!(told("rm", json!({})).contains("only view, replace_line"));
        assert!(told(&"t".repeat(10_000), json!({})).len() < 300);
        assert!(told(REPLACE, json!({ "line": 1 })).contains("`text`"));
        assert!(told(REPLACE, json!({ "line": "1", "text": "" })).contains("integer"));
        for line in [json!(-1), json!(1.5), json!(1e30), json!(100)] {
            told(DELETE, json!({ "line": line }));
        }
        assert!(told(TEST, json!({ "all": true })).contains("`all`"));
        let long = "x".repeat(LONGEST_LINE + 1);
        assert!(told(INSERT, json!({ "line": 1, "text": long })).contains("at most 200"));
        assert!(told(INSERT, json!({ "line": 1, "text": "a\nb" })).contains("one line"));
        tools().iter().for_each(|tool| tool.validate().unwrap());
    }
}
