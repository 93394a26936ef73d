//! Calls as SWE-agent's parser of function calls takes them.

use std::sync::{Arc, OnceLock};

use serde_json::{Map, Value};
use spar_core::{ToolCall, ToolSpec};

/// The tools of bash, editor, search and submission, in this order.
pub(super) fn tools(has_search: bool) -> Arc<[ToolSpec]> {
    static ALL: OnceLock<Vec<ToolSpec>> = OnceLock::new();
    let all = ALL.get_or_init(|| {
        serde_json::from_str(include_str!("texts/tools.json")).expect("it was recorded")
    });
    let is_search = |tool: &ToolSpec| SEARCH.contains(&&*tool.name);
    all.iter().filter(|tool| has_search || !is_search(tool)).cloned().collect()
}

const SEARCH: [&str; 3] = ["find_file", "search_dir", "search_file"];

/// Why calls are none, and what kind of mistake that is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mistake {
    pub(super) code: &'static str,
    pub(super) message: String,
}

/// The only call of an answer, checked against `tools`.
pub(super) fn only_call<'c>(
    calls: &'c [ToolCall],
    said: &str,
    tools: &[ToolSpec],
) -> Result<&'c ToolCall, Mistake> {
    let [call] = calls else {
        let count = calls.len();
        let message = format!(
            "Expected exactly one tool call in model response - received {count} tool calls with message: {said}"
        );
        return Err(Mistake { code: if count == 0 { "missing" } else { "multiple" }, message });
    };
    let Some(tool) = tools.iter().find(|tool| tool.name == call.name) else {
        let message = format!("Command '{}' not found in list of available commands.", call.name);
        return Err(Mistake { code: "invalid_command", message });
    };
    let required = tool.parameters.get("required").and_then(Value::as_array);
    let required = required.into_iter().flatten().filter_map(Value::as_str);
    let missing: Vec<&str> = required.filter(|name| !call.arguments.contains_key(*name)).collect();
    if !missing.is_empty() {
        let message = format!("Required argument(s) missing: {}", missing.join(", "));
        return Err(Mistake { code: "missing_arg", message });
    }
    let extra: Vec<&str> = call
        .arguments
        .keys()
        .filter(|name| tool.parameter(name).is_none())
        .map(String::as_str)
        .collect();
    if !extra.is_empty() {
        let message = format!("Unexpected argument(s): {}", extra.join(", "));
        return Err(Mistake { code: "unexpected_arg", message });
    }
    Ok(call)
}

/// A text among arguments; numbers as they are written, nothing for what is absent.
pub(super) fn text(arguments: &Map<String, Value>, name: &str) -> Option<String> {
    match arguments.get(name)? {
        Value::String(text) => Some(text.clone()),
        Value::Null => None,
        other => Some(other.to_string()),
    }
}

const BLOCKED: [&str; 10] =
    ["vim", "vi", "emacs", "nano", "nohup", "gdb", "less", "tail -f", "python -m venv", "make"];
const BLOCKED_ALONE: [&str; 13] = [
    "python",
    "python3",
    "ipython",
    "bash",
    "sh",
    "/bin/bash",
    "/bin/sh",
    "nohup",
    "vi",
    "vim",
    "emacs",
    "nano",
    "su",
];

/// Whether a command needs somebody at the keys.
pub(super) fn is_blocked(command: &str) -> bool {
    let command = command.trim();
    let Some(name) = command.split_whitespace().next() else { return false };
    if BLOCKED.iter().any(|blocked| command.starts_with(blocked))
        || BLOCKED_ALONE.contains(&command)
    {
        return true;
    }
    // radare2 may be asked for single commands: `\b(?:radare2)\b.*\s+-c\s+.*`, which is searched for in one line.
    ["radare2", "r2"].contains(&name)
        && !command.lines().any(|line| {
            line.match_indices("radare2").any(|(at, word)| {
                let is_word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
                let behind = &line[at + word.len()..];
                let is_apart =
                    !is_word(line[..at].chars().next_back()) && !is_word(behind.chars().next());
                is_apart
                    && behind.match_indices("-c").any(|(at, _)| {
                        behind[..at].ends_with(char::is_whitespace)
                            && behind[at + 2..].starts_with(char::is_whitespace)
                    })
            })
        })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_answer_has_one_call_of_a_tool_with_its_arguments() {
        let tools = tools(true);
        assert_eq!(tools.len(), 6);
        tools.iter().for_each(|tool| tool.validate().unwrap());
        let call = |name: &str, arguments: Value| {
            ToolCall::new(name, arguments.as_object().unwrap().clone())
        };
        let told = |calls: &[ToolCall]| only_call(calls, "So.", &tools).unwrap_err();
        let none = told(&[]);
        assert_eq!(none.code, "missing");
        assert!(none.message.ends_with("received 0 tool calls with message: So."));
        assert_eq!(told(&vec![call("submit", json!({})); 2]).code, "multiple");
        let unknown = told(&[call("edit", json!({}))]);
        assert_eq!(unknown.message, "Command 'edit' not found in list of available commands.");
        let missing = told(&[call("str_replace_editor", json!({}))]);
        assert_eq!(missing.message, "Required argument(s) missing: command, path");
        assert_eq!(told(&[call("submit", json!({ "x": 1 }))]).code, "unexpected_arg");
        assert!(only_call(&[call("bash", json!({ "command": "ls" }))], "", &tools).is_ok());
        let without = super::tools(false);
        assert!(
            only_call(&[call("find_file", json!({ "file_name": "a" }))], "", &without).is_err()
        );
    }

    #[test]
    fn programs_for_people_are_blocked() {
        for blocked in [
            "vim a",
            " vi",
            "python",
            "python3 ",
            "tail -f x",
            "r2 a",
            "radare2 -cx",
            "make all",
            "visit",
        ] {
            assert!(is_blocked(blocked), "{blocked}");
        }
        for free in ["", "python3 a.py", "cat vim", "radare2 -A -c pdf a", "bash -c ls"] {
            assert!(!is_blocked(free), "{free}");
        }
    }
}
