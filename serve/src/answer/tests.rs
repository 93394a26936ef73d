//! Answers taken apart, whole and in pieces.

use proptest::prelude::*;

use super::*;

/// The pieces put together: thoughts, content, calls.
fn whole(deltas: Vec<Delta>) -> (String, String, Vec<(String, String)>) {
    let (mut thoughts, mut said, mut calls) = (String::new(), String::new(), Vec::new());
    for delta in deltas {
        match delta {
            Delta::Reasoning(text) => thoughts += &text,
            Delta::Content(text) => said += &text,
            Delta::CallStart { index, name } => {
                assert_eq!(index, calls.len());
                calls.push((name, String::new()));
            }
            Delta::CallArguments { index, text } => calls[index].1 += &text,
        }
    }
    (thoughts, said, calls)
}

fn parse(format: Option<ToolFormat>, pieces: &[&str]) -> (String, String, Vec<(String, String)>) {
    let mut parser = AnswerParser::new(format, false);
    let mut deltas: Vec<Delta> = pieces.iter().flat_map(|piece| parser.push(piece)).collect();
    deltas.extend(parser.finish());
    let calls = deltas.iter().any(|delta| matches!(delta, Delta::CallStart { .. }));
    assert_eq!(parser.has_calls(), calls);
    whole(deltas)
}

fn hermes(text: &str) -> (String, String, Vec<(String, String)>) {
    parse(Some(ToolFormat::Hermes), &[text])
}

fn call(name: &str, arguments: &str) -> (String, String) {
    (name.to_owned(), arguments.to_owned())
}

#[test]
fn thoughts_are_apart() {
    let text = "<think>\na\n\nb\n</think>\n\nyes\n";
    assert_eq!(parse(None, &[text]), ("a\n\nb".to_owned(), "yes\n".to_owned(), vec![]));
    assert_eq!(parse(None, &["no <think>"]).1, "no <think>");
    assert_eq!(parse(None, &["<think>never ends"]).0, "never ends");
    assert_eq!(parse(None, &["<thi"]).1, "<thi");
    let mut parser = AnswerParser::new(None, true);
    let mut deltas = parser.push("a</think>b");
    deltas.extend(parser.finish());
    assert_eq!(whole(deltas), ("a".to_owned(), "b".to_owned(), vec![]));
}

#[test]
fn hermes_calls_are_found() {
    let text = "Let me look.\n<tool_call>\n{\"name\": \"get\", \"arguments\": {\"a\": \"}\\\"\", \
                \"b\": [1, {}]}}\n</tool_call>\n<tool_call>\n{\"name\": \"stop\", \"arguments\": \
                {}}\n</tool_call>\n";
    let calls = vec![call("get", "{\"a\": \"}\\\"\", \"b\": [1, {}]}"), call("stop", "{}")];
    assert_eq!(hermes(text), (String::new(), "Let me look.".to_owned(), calls));
    // Fields in another order, arguments as text, none.
    let text = "<tool_call>{\"arguments\": {\"a\": 1}, \"name\": \"x\"}</tool_call>\
                <tool_call>{\"name\": \"y\", \"arguments\": \"{}\"}</tool_call>\
                <tool_call>{\"name\": \"z\"}</tool_call>";
    let calls = vec![call("x", "{\"a\":1}"), call("y", "{}"), call("z", "{}")];
    assert_eq!(hermes(text), (String::new(), String::new(), calls));
}

#[test]
fn what_only_looks_like_a_call_is_content() {
    for text in [
        "<tool_call>hello</tool_call>",
        "<tool_call>{\"name\": 5}</tool_call> and more",
        "<tool_call>{\"name\": \"x\"",
        "a <tool_cal",
        "a < b",
        "  spaces  ",
    ] {
        assert_eq!(hermes(text), (String::new(), text.to_owned(), vec![]), "{text}");
    }
}

#[test]
fn llama_calls_are_found() {
    let llama = |text: &str| parse(Some(ToolFormat::Llama3), &[text]);
    let text = "{\"name\": \"get\", \"parameters\": {\"a\": 1}}; {\"name\": \"b\", \
                \"arguments\": {}}";
    let calls = vec![call("get", "{\"a\": 1}"), call("b", "{}")];
    assert_eq!(llama(text), (String::new(), String::new(), calls));
    for text in ["hello {\"name\": 1}", "{\"a\": 1}", "{\"name\"", "", " "] {
        assert_eq!(llama(text), (String::new(), text.to_owned(), vec![]), "{text}");
    }
}

proptest! {
    #[test]
    fn where_text_is_cut_changes_nothing(
        parts in prop::collection::vec(prop::sample::select(vec![
            "<think>", "</think>", "\n", " ", "hm", "é", "<", "<tool_call>", "</tool_call>", "{",
            "{\"name\": \"f\", \"arguments\": {\"a\": \"é\\\"}\"}}", "\"name\"", "}", ";",
            "{\"name\": \"g\", \"parameters\": {\"a\": [1]}}", "{\"arguments\": {}, \"name\": \"h\"}",
        ]), 0..10),
        cuts in prop::collection::vec(0_usize..200, 0..12),
        format in prop::sample::select(vec![
            None, Some(ToolFormat::Hermes), Some(ToolFormat::Llama3),
        ]),
    ) {
        let text = parts.concat();
        let mut places: Vec<usize> =
            cuts.into_iter().filter(|cut| text.is_char_boundary(*cut)).collect();
        places.extend([0, text.len()]);
        places.sort_unstable();
        let pieces: Vec<&str> = places.windows(2).map(|pair| &text[pair[0]..pair[1]]).collect();
        prop_assert_eq!(parse(format, &pieces), parse(format, &[&text]));
    }
}
