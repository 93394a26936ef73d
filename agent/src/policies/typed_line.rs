//! Lines that a person types, and the actions that they mean.

use serde_json::{Deserializer, Map, Value};
use spar_core::{Action, ParsedAction, ToolCall, ToolSpec};

use crate::ParserChoice;

/// What stands before words where tools are offered, so that a slip of the keyboard says nothing.
const QUOTE: char = '"';
/// What stands before words in any case.
const SAY: &str = ":say";
/// Reads calls that are written as Python has them.
const PYTHON_CALLS: &str = "python_calls";

/// How calls and words are typed where tools are offered, in one line.
pub const HOW_TO_CALL: &str = "Call a tool by its name and its arguments, `NAME {\"ARGUMENT\": 1}` or `NAME(ARGUMENT=1)`; \
                               words that you say begin with a `\"`.";

/// The action that a line means where these tools are offered.
///
/// Without tools a line is what is said. With tools it is a call, or several one behind the other, `NAME {"ARGUMENT": 1}`
/// or `NAME(ARGUMENT=1)`, arguments left out where there are none; behind a `"` or `:say` it is what is said.
///
/// ```
/// use spar_agent::policies::typed_action;
/// use spar_core::ToolSpec;
///
/// let tools = [ToolSpec::new("pay", "Pays.", serde_json::json!({ "type": "object" }))];
/// assert_eq!(typed_action(r#"pay {"amount": 3}"#, &tools)?.tool_calls()[0].arguments["amount"], 3);
/// assert_eq!(typed_action(r#""It is paid.""#, &tools)?.said(), "It is paid.");
/// assert!(typed_action("help", &tools).is_err());
/// # Ok::<(), String>(())
/// ```
///
/// # Errors
///
/// Why it is neither, as a sentence for whoever typed it.
pub fn typed_action(line: &str, tools: &[ToolSpec]) -> Result<Action, String> {
    if let Some(said) = said(line, !tools.is_empty()) {
        return Ok(Action::text(said));
    }
    if tools.is_empty() {
        return Ok(Action::text(line));
    }
    let is_called = |name: &str| line.strip_prefix(name).is_some_and(|rest| rest.starts_with('('));
    let calls = match line.starts_with('[') {
        true => calls_of_python(line, line, tools)?,
        false if tools.iter().any(|tool| is_called(&tool.name)) => {
            calls_of_python(&format!("[{line}]"), line, tools)?
        }
        false => calls_of_json(line, tools)?,
    };
    Ok(Action::calls(calls))
}

/// The line, or where that takes several the lines, by which a person does this where these tools are offered.
pub fn as_typed(action: &Action, tools: &[ToolSpec]) -> String {
    let key = action.key();
    match action {
        // A line break within arguments is escaped.
        Action::Calls { .. } => key.replace('\n', " "),
        Action::Text { .. } if key.contains('\n') => format!("{SAY}\n{key}\n."),
        Action::Text { .. } if tools.is_empty() => key.into_owned(),
        Action::Text { .. } => format!("{QUOTE}{key}"),
    }
}

/// The tools with this word in their names, a line for each; a line that says so where none has it.
pub fn list_tools(tools: &[ToolSpec], word: &str) -> String {
    let mut offered = tools.iter().filter(|tool| tool.name.contains(word)).peekable();
    if offered.peek().is_none() {
        return format!("  no tool has `{word}` in its name\n");
    }
    let line =
        |tool: &ToolSpec| format!("  {} {}  {}\n", tool.name, tool.parameters, tool.description);
    offered.map(line).collect()
}

/// What a line says in words, where it is marked as words.
fn said(line: &str, has_tools: bool) -> Option<&str> {
    if let Some(rest) = line.strip_prefix(SAY)
        && rest.chars().next().is_none_or(char::is_whitespace)
    {
        return Some(rest.trim());
    }
    let words = line.strip_prefix(QUOTE).filter(|_| has_tools)?;
    Some(words.strip_suffix(QUOTE).unwrap_or(words))
}

/// Calls in Python's syntax; `line` is what was typed.
fn calls_of_python(text: &str, line: &str, tools: &[ToolSpec]) -> Result<Vec<ToolCall>, String> {
    let parser = ParserChoice::named(PYTHON_CALLS).expect("it is in the table");
    let calls = match parser.parse(text, tools) {
        ParsedAction::Action { action: Action::Calls { text, calls }, .. }
            if text.trim().is_empty() =>
        {
            calls
        }
        ParsedAction::Action { .. } => return Err(no_call(line)),
        ParsedAction::Invalid { reason } => return Err(format!("no call can be read: {reason}")),
    };
    match calls.iter().find(|call| !tools.iter().any(|tool| tool.name == call.name)) {
        Some(unknown) => Err(no_call(&unknown.name)),
        None => Ok(calls),
    }
}

/// Calls whose arguments are JSON objects, one behind the other.
fn calls_of_json(line: &str, tools: &[ToolSpec]) -> Result<Vec<ToolCall>, String> {
    let (mut calls, mut rest) = (Vec::<ToolCall>::new(), line.trim());
    while !rest.is_empty() {
        let end = rest.find(|c: char| c.is_whitespace() || c == '{').unwrap_or(rest.len());
        let (name, behind) = rest.split_at(end);
        if !tools.iter().any(|tool| tool.name == name) {
            return Err(match calls.last() {
                None => no_call(line),
                Some(before) => format!(
                    "`{rest}` is nothing that may stand behind `{}`: arguments are a JSON object, `{} {{\"ARGUMENT\": 1}}`",
                    before.name, before.name
                ),
            });
        }
        rest = behind.trim_start();
        let mut arguments = Map::new();
        if rest.starts_with('{') {
            let mut objects = Deserializer::from_str(rest).into_iter::<Map<String, Value>>();
            arguments = match objects.next() {
                Some(Ok(read)) => read,
                Some(Err(error)) => {
                    return Err(format!("the arguments of `{name}` cannot be read: {error}"));
                }
                None => Map::new(),
            };
            rest = rest[objects.byte_offset()..].trim_start();
        }
        calls.push(ToolCall::new(name, arguments));
    }
    Ok(calls)
}

fn no_call(line: &str) -> String {
    format!("`{line}` is no call of a tool: `?` lists the tools; to say it, type `{QUOTE}{line}`")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tools() -> [ToolSpec; 2] {
        let amount = json!({ "type": "object", "properties": { "amount": { "type": "integer" } } });
        [ToolSpec::new("pay", "Pays.", amount), ToolSpec::new("look-up", "", json!({}))]
    }

    #[test]
    fn calls_are_typed_with_their_arguments_in_json_or_as_in_python() {
        for (line, expected) in [
            ("pay", "pay {}"),
            (r#"pay {"amount": 3}"#, r#"pay {"amount":3}"#),
            (r#"pay{"amount": {"of": "}"}} "#, r#"pay {"amount":{"of":"}"}}"#),
            (r#"pay {"amount": 1} look-up pay {}"#, "pay {\"amount\":1}\nlook-up {}\npay {}"),
            ("pay(amount=3)", r#"pay {"amount":3}"#),
            ("pay()", "pay {}"),
            ("[pay(amount=3), pay()]", "pay {\"amount\":3}\npay {}"),
        ] {
            let action = typed_action(line, &tools()).unwrap();
            assert!(!action.tool_calls().is_empty());
            assert_eq!(action.key(), expected, "{line}");
            let again = as_typed(&action, &tools());
            assert_eq!(typed_action(&again, &tools()), Ok(action), "{again}");
        }
    }

    #[test]
    fn what_is_no_call_is_told_and_not_said() {
        for (line, told) in [
            ("help", "`help` is no call of a tool"),
            ("pl?", "`?` lists the tools"),
            ("pays {}", "to say it, type `\"pays {}`"),
            ("pay three", "`three` is nothing that may stand behind `pay`"),
            (r#"pay {"amount": }"#, "the arguments of `pay` cannot be read"),
            (r#"pay {"amount": 1"#, "the arguments of `pay` cannot be read"),
            ("pay(three)", "no call can be read"),
            ("pays(amount=1)", "is no call of a tool"),
            ("[pays(amount=1)]", "`pays` is no call of a tool"),
            ("[1, 2]", "`[1, 2]` is no call of a tool"),
        ] {
            let refused = typed_action(line, &tools()).unwrap_err();
            assert!(refused.contains(told), "{line}: {refused}");
        }
    }

    #[test]
    fn words_are_marked_where_tools_are_offered() {
        for (line, expected) in [
            ("\"pay", "pay"),
            ("\"It is \\boxed{3}\"", "It is \\boxed{3}"),
            (":say \"quoted\"", "\"quoted\""),
            (":say", ""),
        ] {
            let action = typed_action(line, &tools()).unwrap();
            assert_eq!((action.said(), action.tool_calls().len()), (expected, 0), "{line}");
        }
        for words in ["pay", "\"pay\"", ":sayings"] {
            assert_eq!(typed_action(words, &[]), Ok(words.into()));
        }
        assert_eq!(typed_action(":say ?", &[]), Ok("?".into()));
        assert_eq!(as_typed(&"look".into(), &[]), "look");
        assert_eq!(as_typed(&"Done.".into(), &tools()), "\"Done.");
        assert_eq!(as_typed(&"a\nb".into(), &tools()), ":say\na\nb\n.");
    }

    #[test]
    fn tools_are_listed_by_a_word() {
        assert_eq!(list_tools(&tools(), "look"), "  look-up {}  \n");
        assert_eq!(list_tools(&tools(), "").lines().count(), 2);
        assert_eq!(list_tools(&tools(), "sell"), "  no tool has `sell` in its name\n");
    }
}
