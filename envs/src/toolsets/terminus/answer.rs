//! What an answer says, as harbor's parser of Terminus 2's JSON takes it.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::{Map, Value};
use spar_python::repr_str;

use super::python_json::loads;

/// Commands of one answer that are typed.
const MAX_COMMANDS: usize = 256;

/// What an answer says.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Answer {
    pub(super) commands: Vec<Keys>,
    pub(super) is_complete: bool,
    /// Why there are no commands; empty where nothing is wrong.
    pub(super) error: String,
    /// What is to be told beside; empty where nothing is.
    pub(super) warning: String,
}

/// What is typed, and how long its effect is waited for.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Keys {
    pub(super) keystrokes: String,
    /// Seconds, at most 60.
    pub(super) seconds: f64,
}

/// Reads an answer; where it cannot be read, mended as the original mends it.
pub(super) fn read(text: &str) -> Answer {
    let answer = attempt(text);
    if answer.error.is_empty() {
        return answer;
    }
    let fixes = [
        ("Fixed incomplete JSON by adding missing closing brace", closed(text, &answer.error)),
        ("Extracted JSON from mixed content", extracted(text)),
    ];
    for (name, mended) in fixes {
        let Some(mut mended) = mended.map(|mended| attempt(&mended)) else { continue };
        if mended.error.is_empty() {
            let told = format!("- AUTO-CORRECTED: {name} - please fix this in future responses");
            mended.warning = match mended.warning.is_empty() {
                true => told,
                false => format!("{told}\n{}", mended.warning),
            };
            return mended;
        }
    }
    answer
}

fn attempt(text: &str) -> Answer {
    let mut warnings = Vec::new();
    let failed = |error: String, warnings: &[String]| Answer {
        error,
        warning: listed(warnings),
        ..Answer::default()
    };
    let Some(object) = outermost(text, &mut warnings) else {
        return failed("No valid JSON found in response".to_owned(), &warnings);
    };
    let data = match loads(object) {
        Ok(data) => data,
        Err(why) => {
            let content = match object.chars().count() {
                ..200 => format!("Content: {}", repr_str(object)),
                _ => {
                    let preview: String = object.chars().take(100).collect();
                    format!("Content preview: {}...", repr_str(&preview))
                }
            };
            return failed(format!("Invalid JSON: {why} | {content}"), &warnings);
        }
    };
    // What stands between braces is an object.
    let Value::Object(data) = data else {
        return failed("Response must be a JSON object".to_owned(), &warnings);
    };
    if let Some(error) = wrong_structure(&data, object, &mut warnings) {
        return failed(error, &warnings);
    }
    let is_complete = match data.get("task_complete") {
        Some(Value::Bool(is_complete)) => *is_complete,
        Some(Value::String(text)) => ["true", "1", "yes"].contains(&&*text.to_lowercase()),
        // Whatever Python takes for true.
        Some(Value::Number(number)) => number.as_f64() != Some(0.0),
        Some(Value::Array(array)) => !array.is_empty(),
        Some(Value::Object(object)) => !object.is_empty(),
        Some(Value::Null) | None => false,
    };
    let commands = data.get("commands").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    match read_commands(commands, &mut warnings) {
        Ok(commands) => {
            Answer { commands, is_complete, error: String::new(), warning: listed(&warnings) }
        }
        Err(error) if is_complete => {
            warnings.push(error);
            Answer { is_complete, warning: listed(&warnings), ..Answer::default() }
        }
        Err(error) => failed(error, &warnings),
    }
}

fn listed(warnings: &[String]) -> String {
    if warnings.is_empty() { String::new() } else { format!("- {}", warnings.join("\n- ")) }
}

/// The first object of a text, by its braces alone.
fn outermost<'t>(text: &'t str, warnings: &mut Vec<String>) -> Option<&'t str> {
    let (mut start, mut depth) = (None, 0_i64);
    let (mut in_string, mut is_escaped) = (false, false);
    for (at, c) in text.char_indices() {
        if is_escaped {
            is_escaped = false;
            continue;
        }
        match c {
            '\\' => is_escaped = true,
            '"' => in_string = !in_string,
            '{' if !in_string => {
                if depth == 0 {
                    start = Some(at);
                }
                depth += 1;
            }
            '}' if !in_string => {
                depth -= 1;
                if let (0, Some(start)) = (depth, start) {
                    let end = at + 1;
                    let sides = [("before", &text[..start]), ("after", &text[end..])];
                    for (side, extra) in sides {
                        if !spar_swe::python_text::strip(extra).is_empty() {
                            warnings.push(format!("Extra text detected {side} JSON object"));
                        }
                    }
                    return Some(&text[start..end]);
                }
            }
            _ => {}
        }
    }
    warnings.push("No valid JSON object found".to_owned());
    None
}

const REQUIRED: [&str; 3] = ["analysis", "plan", "commands"];

fn wrong_structure(
    data: &Map<String, Value>,
    object: &str,
    warnings: &mut Vec<String>,
) -> Option<String> {
    let missing: Vec<&str> =
        REQUIRED.into_iter().filter(|name| !data.contains_key(*name)).collect();
    if !missing.is_empty() {
        return Some(format!("Missing required fields: {}", missing.join(", ")));
    }
    for name in ["analysis", "plan"] {
        if !data.get(name).is_some_and(Value::is_string) {
            warnings.push(format!("Field '{name}' should be a string"));
        }
    }
    if !data.get("commands").is_some_and(Value::is_array) {
        return Some("Field 'commands' must be an array".to_owned());
    }
    warn_of_order(object, warnings);
    let complete = data.get("task_complete").filter(|value| !value.is_null());
    if complete.is_some_and(|value| !value.is_boolean() && !value.is_string()) {
        warnings.push("Field 'task_complete' should be a boolean or string".to_owned());
    }
    None
}

/// Tells of fields that stand in another order, by where their names first stand.
fn warn_of_order(object: &str, warnings: &mut Vec<String>) {
    let place = |name: &str| {
        object.match_indices(&format!("\"{name}\"")).map(|(at, found)| (at, at + found.len())).find(
            |(_, end)| {
                object[*end..].trim_start_matches(spar_swe::python_text::is_space).starts_with(':')
            },
        )
    };
    let expected: Vec<(&str, usize)> =
        REQUIRED.into_iter().filter_map(|name| Some((name, place(name)?.0))).collect();
    let mut found = expected.clone();
    found.sort_by_key(|(_, at)| *at);
    if found != expected {
        let names = |fields: &[(&str, usize)]| {
            fields.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(" → ")
        };
        warnings.push(format!(
            "Fields appear in wrong order. Found: {}, expected: {}",
            names(&found),
            names(&expected)
        ));
    }
}

fn read_commands(commands: &[Value], warnings: &mut Vec<String>) -> Result<Vec<Keys>, String> {
    if commands.len() > MAX_COMMANDS {
        return Err(format!("{} commands, there may be {MAX_COMMANDS}", commands.len()));
    }
    let mut read = Vec::with_capacity(commands.len());
    for (at, command) in commands.iter().enumerate() {
        let number = at + 1;
        let Value::Object(command) = command else {
            return Err(format!("Command {number} must be an object"));
        };
        let keystrokes = match command.get("keystrokes") {
            None => {
                return Err(format!("Command {number} missing required 'keystrokes' field"));
            }
            Some(Value::String(keystrokes)) => keystrokes.clone(),
            Some(_) => return Err(format!("Command {number} 'keystrokes' must be a string")),
        };
        let seconds = match command.get("duration") {
            Some(Value::Number(number)) => number.as_f64().unwrap_or(1.0),
            // A truth value is a number in Python.
            Some(Value::Bool(is_one)) => f64::from(u8::from(*is_one)),
            Some(_) => {
                warnings
                    .push(format!("Command {number}: Invalid duration value, using default 1.0"));
                1.0
            }
            None => {
                warnings
                    .push(format!("Command {number}: Missing duration field, using default 1.0"));
                1.0
            }
        };
        let known = ["keystrokes", "duration"];
        let unknown: Vec<&str> =
            command.keys().map(String::as_str).filter(|name| !known.contains(name)).collect();
        if !unknown.is_empty() {
            warnings.push(format!("Command {number}: Unknown fields: {}", unknown.join(", ")));
        }
        if number < commands.len() && !keystrokes.is_empty() && !keystrokes.ends_with('\n') {
            warnings.push(format!(
                "Command {number} should end with newline when followed by another command. Otherwise the two commands will be \
                 concatenated together on the same line."
            ));
        }
        read.push(Keys { keystrokes, seconds: seconds.clamp(0.0, 60.0) });
    }
    Ok(read)
}

/// A text with the closing braces that are missing.
fn closed(text: &str, error: &str) -> Option<String> {
    let is_fit = ["Invalid JSON", "Expecting", "Unterminated", "No valid JSON found"];
    if !is_fit.iter().any(|part| error.contains(part)) {
        return None;
    }
    let missing = text.matches('{').count().checked_sub(text.matches('}').count())?;
    (missing > 0).then(|| format!("{text}{}", "}".repeat(missing)))
}

/// The first object in a text with objects inside at most one deep.
fn extracted(text: &str) -> Option<String> {
    static OBJECT: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"(?s)\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\}").expect("it was written here")
    });
    let found = OBJECT.find_iter(text).map(|found| found.as_str());
    found.filter(|found| loads(found).is_ok()).map(str::to_owned).next()
}
