//! Against what the original's parser and texts have said of the same answers.

use serde_json::Value;

use super::*;
use crate::toolsets::recorded;

#[test]
fn answers_are_read_as_by_the_original() {
    let recording = recorded::read(include_str!("recorded.json"));
    let cases = recording["answers"].as_array().unwrap();
    assert!(cases.len() >= 40, "{}", cases.len());
    for case in cases {
        let text = case["text"].as_str().unwrap();
        let read = answer::read(text);
        let told = |name: &str| case[name].as_str().unwrap().to_owned();
        assert_eq!(read.error, told("error"), "{text}");
        assert_eq!(read.warning, told("warning"), "{text}");
        assert_eq!(Value::Bool(read.is_complete), case["is_complete"], "{text}");
        let commands: Vec<_> =
            read.commands.iter().map(|keys| json!([keys.keystrokes, keys.seconds])).collect();
        assert_eq!(Value::from(commands), case["commands"], "{text}");
    }
}

#[test]
fn a_task_and_its_terminal_are_put_as_by_the_original() {
    let recording = recorded::read(include_str!("recorded.json"));
    let first = &recording["first"];
    let told = |name: &str| first[name].as_str().unwrap().to_owned();
    assert_eq!(prompt(&told("task"), &told("screen")), told("prompt"));
}

#[test]
fn output_is_limited_and_what_is_new_found_as_by_the_original() {
    let recording = recorded::read(include_str!("recorded.json"));
    for case in recording["limited"].as_array().unwrap() {
        let text = case["text"].as_str().unwrap();
        assert_eq!(limited(text, 10_000), case["limited"].as_str().unwrap());
    }
    for case in recording["new"].as_array().unwrap() {
        let (before, now) = (case["before"].as_str().unwrap(), case["now"].as_str().unwrap());
        assert_eq!(new_content(strip(before), now), case["new"].as_str(), "{case}");
    }
}

#[test]
fn demonstrators_answer_in_its_form() {
    let toolset = Terminus(Arc::default());
    let read = answer::read(toolset.command("echo \"a\"\n").said());
    assert_eq!(read.error, "");
    assert_eq!(read.commands, [Keys { keystrokes: "echo \"a\"\n".to_owned(), seconds: 2.0 }]);
    let done = answer::read(toolset.submit().said());
    assert!(done.is_complete && done.warning.is_empty(), "{done:?}");
}
