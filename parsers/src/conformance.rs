//! What holds for every parser of the registry.

use std::time::{Duration, Instant};

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use spar_core::{Action, ToolCall, ToolSpec};

use crate::{ActionParser, FormatErrorKind, MAX_CALLS, parser_registry};

fn tools() -> Vec<ToolSpec> {
    let schema = json!({ "type": "object", "properties": {
        "command": { "type": "string" }, "n": { "type": "integer" }, "list": { "type": "array" } } });
    let code = json!({ "type": "object", "properties": { "code": { "type": "string" } } });
    vec![
        ToolSpec::new("bash", "", schema.clone()),
        ToolSpec::new("f", "", schema),
        ToolSpec::new("python", "", code),
    ]
}

/// Everything that may be asked of a parser about a text, with what has to hold.
fn check(parser: &dyn ActionParser, text: &str, tools: &[ToolSpec]) {
    let parsed = match parser.parse(text, tools) {
        Ok(parsed) => parsed,
        Err(error) => {
            assert!(text.get(error.span.clone()).is_some(), "{}: {error:?}", parser.name());
            assert!(!error.message.is_empty());
            return;
        }
    };
    for span in &parsed.spans {
        assert!(text.get(span.clone()).is_some_and(|text| !text.is_empty()), "{}", parser.name());
    }
    assert!(parsed.spans.is_sorted_by_key(|span| span.start));
    match &parsed.action {
        Action::Text { text } => {
            assert_eq!(parsed.spans.len(), 1);
            assert!(!text.is_empty() && text.trim() == text, "{}: {text:?}", parser.name());
        }
        Action::Calls { text, calls } => {
            assert_eq!(parsed.spans.len(), calls.len());
            assert!(!calls.is_empty() && calls.len() <= MAX_CALLS && text.trim() == text);
            assert!(calls.iter().all(|call| !call.name.trim().is_empty()));
        }
    }
    // What is written is read, whatever it is.
    if let Ok(written) = parser.write(&parsed.action, tools) {
        let again = parser.parse(&written, tools).unwrap();
        assert_eq!(without_ids(again.action), without_ids(parsed.action), "{}", parser.name());
    }
}

fn without_ids(mut action: Action) -> Action {
    if let Action::Calls { calls, .. } = &mut action {
        calls.iter_mut().for_each(|call| call.id.clear());
    }
    action
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_filter("JSON has no others", |n| n.is_finite()).prop_map(Value::from),
        "[a-zäß \n\"'\\\\{}<>`\\[\\]]{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::vec(("[a-zä \"']{0,4}", inner), 0..3)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

fn call() -> impl Strategy<Value = ToolCall> {
    let arguments = prop::collection::vec(("[a-z_][a-z0-9_]{0,5}", value()), 0..4);
    ("[a-z_][a-z0-9_]{0,8}", arguments)
        .prop_map(|(name, arguments)| ToolCall::new(name, arguments.into_iter().collect()))
}

/// Fragments of all marks, so that they meet in every order.
fn fragments() -> impl Strategy<Value = String> {
    let fragment = prop::sample::select(vec![
        "<action>",
        "</action>",
        "<search>",
        "</search>",
        "<answer>",
        "</answer>",
        "[",
        "]",
        "{",
        "}",
        "(",
        ")",
        "\"",
        "'",
        "\\",
        "`",
        "```",
        "```bash\n",
        "\n```",
        "```json\n",
        "````",
        "<code>",
        "</code>",
        "```python\n",
        "<tool_call>",
        "</tool_call>",
        "<function=",
        "</function>",
        "<parameter=",
        "</parameter>",
        ">",
        "<function=f>",
        "<parameter=n>",
        "<|python_tag|>",
        ";",
        "[TOOL_CALLS]",
        "[ARGS]",
        "[CALL_ID]",
        "<｜tool▁calls▁begin｜>",
        "<｜tool▁call▁begin｜>",
        "<｜tool▁sep｜>",
        "<｜tool▁call▁end｜>",
        "<｜tool▁calls▁end｜>",
        "Thought:",
        "Action:",
        "Action Input:",
        "Final Answer:",
        "Observation:",
        "{\"name\": \"f\", \"arguments\": {}}",
        "{\"name\":",
        "\"f\"",
        ",",
        ":",
        "=",
        "f",
        "f(",
        "a=1",
        "[f(a=",
        "0x",
        "1e",
        "-",
        "5",
        "null",
        "True",
        "\\u00",
        "ä",
        "\u{2028}",
        " ",
        "\n",
        "\r\n",
        "{}",
        "\"action\"",
        "\"thought\"",
        "go",
    ]);
    prop::collection::vec(fragment, 0..24).prop_map(|fragments| fragments.concat())
}

#[test]
fn every_parser_says_what_its_entry_promises() {
    for entry in parser_registry() {
        // A syntax for an interpreter calls nothing else.
        let (tool, parameter) = match entry.name {
            "code_tags" => ("python", "code"),
            _ => ("bash", "command"),
        };
        let arguments = Map::from_iter([(parameter.to_owned(), json!("ls"))]);
        let calls = Action::calls(vec![ToolCall::new(tool, arguments)]);
        let parser = (entry.open.open)();
        assert_eq!(parser.name(), entry.name);
        assert_eq!(parser.write(&Action::text("ls"), &[]).is_ok(), entry.has_text);
        assert_eq!(parser.write(&calls, &tools()).is_ok(), entry.has_calls, "{}", entry.name);
        for empty in ["", " \n\t"] {
            let kind = parser.parse(empty, &[]).unwrap_err().kind;
            assert!(matches!(kind, FormatErrorKind::Empty | FormatErrorKind::Missing));
        }
    }
}

#[test]
fn hostile_text_is_read_in_linear_time() {
    let len = 200_000;
    let pieces = [
        "<code>",
        "</code>",
        "<tool_call>",
        "</tool_call>",
        "<action>",
        "</action>",
        "[",
        "]",
        "{",
        "}",
        "[[",
        "(",
        "\"",
        "\\",
        "`",
        "```bash\n",
        "```\n",
        "````\n",
        "<tool_call><function=f>",
        "<parameter=a>",
        "<parameter=",
        "</parameter>",
        "<function=f>",
        "<|python_tag|>",
        "{\"name\":",
        "{\"a\":",
        "[TOOL_CALLS]",
        "[TOOL_CALLS]f",
        "[TOOL_CALLS]f[ARGS]{}",
        "[CALL_ID]",
        "[ARGS]",
        "<｜tool▁calls▁begin｜>",
        "<｜tool▁call▁begin｜>",
        "<｜tool▁sep｜>",
        "<｜tool▁calls▁begin",
        "Thought:",
        "Action:\n",
        "Action Input:\n",
        "Action: a\nAction Input: b\n",
        "Final Answer:\n",
        "Observation:\n",
        "[f(",
        "[f(a=",
        "f(a=1),",
        "[f(a='",
        "'a' ",
        "\\N",
        "9",
        "1_",
        "-",
        "0x",
        "1e",
        " ",
        "\n",
        "ä",
        ".",
        "a.",
        "{\"name\": \"f\"};",
        "<tool_call>{\"name\": \"f\"}</tool_call>",
    ];
    let heads =
        ["", "[f(a='", "<tool_call><function=f><parameter=list>", "[TOOL_CALLS]f", "```bash\n"];
    let tools = tools();
    for piece in pieces {
        for head in heads {
            let text = format!("{head}{}", piece.repeat(len / piece.len()));
            for entry in parser_registry() {
                let begun = Instant::now();
                check(&*(entry.open.open)(), &text, &tools);
                let took = begun.elapsed();
                // Quadratic time would be many seconds, linear time is a tenth of one.
                let limit = Duration::from_secs(2);
                assert!(took < limit, "`{}`: {head:?} with {piece:?} took {took:?}", entry.name);
            }
        }
    }
}

#[test]
fn calls_are_bounded() {
    let many = vec![ToolCall::new("f", Map::new()); MAX_CALLS];
    let more = vec![ToolCall::new("f", Map::new()); MAX_CALLS + 1];
    for entry in parser_registry() {
        let parser = (entry.open.open)();
        let Ok(text) = parser.write(&Action::calls(many.clone()), &tools()) else { continue };
        assert_eq!(parser.parse(&text, &tools()).unwrap().spans.len(), MAX_CALLS);
        assert!(parser.write(&Action::calls(more.clone()), &tools()).is_err(), "{}", entry.name);
    }
}

proptest! {
    #[test]
    fn fragments_of_all_syntaxes_break_nothing(text in fragments()) {
        for entry in parser_registry() {
            check(&*(entry.open.open)(), &text, &tools());
            check(&*(entry.open.open)(), &text, &[]);
        }
    }

    #[test]
    fn any_text_breaks_nothing(text in any::<String>()) {
        for entry in parser_registry() {
            check(&*(entry.open.open)(), &text, &tools());
        }
    }

    #[test]
    fn words_that_are_written_are_read(text in "[a-zäß0-9 .,!]{0,20}[a-z]") {
        for entry in parser_registry().iter().filter(|entry| entry.has_text) {
            let parser = (entry.open.open)();
            let action = Action::text(text.trim());
            let written = parser.write(&action, &[]).unwrap();
            prop_assert_eq!(&parser.parse(&written, &[]).unwrap().action, &action);
        }
    }

    #[test]
    fn calls_that_are_written_are_read(call in call(), other in call()) {
        for entry in parser_registry().iter().filter(|entry| entry.has_calls) {
            let parser = (entry.open.open)();
            // These have no types, no place for a second call, or no tool but one.
            let takes_all = !["qwen3_coder", "fenced_bash", "react", "json_object", "code_tags"].contains(&entry.name);
            for calls in [vec![call.clone()], vec![call.clone(), other.clone()]] {
                let is_single = calls.len() == 1;
                let action = Action::calls(calls);
                match parser.write(&action, &[]) {
                    Ok(text) => {
                        prop_assert_eq!(&parser.parse(&text, &[]).unwrap().action, &action);
                    }
                    Err(error) => {
                        let has_to = takes_all || (is_single && entry.name == "json_object");
                        prop_assert!(!has_to, "{}", error);
                    }
                }
            }
        }
    }
}
