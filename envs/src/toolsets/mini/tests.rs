//! Against what the originals have shown for the same answers.

use serde_json::{Value, json};
use spar_sandbox::ExecEnd;

use super::*;
use crate::ToolsetChoice;
use crate::toolsets::recorded;

fn recording() -> Value {
    recorded::read(include_str!("recorded.json"))
}

fn mini(form: &str) -> Mini {
    let options = serde_json::from_value(json!({ "form": form })).unwrap();
    Mini::new(options).unwrap()
}

fn cases() -> Vec<Value> {
    let recording = recording();
    ["v2", "v1"].iter().flat_map(|it| recording[it]["cases"].as_array().unwrap().clone()).collect()
}

/// What was recorded of one output.
fn output(raw: &Value) -> Output {
    let text = |name: &str| raw[name].as_str().unwrap().to_owned();
    let returncode = i32::try_from(raw["returncode"].as_i64().unwrap()).unwrap();
    let end = ExecEnd::Exited { code: returncode };
    Output::recorded(text("raw_output"), returncode, text("exception_info"), end)
}

#[test]
fn outputs_are_shown_as_by_the_original() {
    let mut count = 0;
    for case in cases() {
        let mini = mini(case["form"].as_str().unwrap());
        for shown in case["shown"].as_array().unwrap() {
            let raw = &shown["raw"];
            // What was never carried out is not shown here.
            if raw.is_null() || raw["exception_info"] == "action was not executed" {
                continue;
            }
            assert_eq!(mini.shared.told("", &output(raw)), shown["text"].as_str().unwrap());
            count += 1;
        }
    }
    assert!(count > 80, "{count}");
}

#[test]
fn a_task_is_put_as_by_the_original() {
    let task = recording()["v2"]["task"].as_str().unwrap().to_owned();
    let briefing =
        Briefing { task: &task, workdir: "/testbed", is_repository: true, command_secs: 60 };
    for case in cases() {
        let form = case["form"].as_str().unwrap();
        assert_eq!(mini(form).opening(&briefing), case["first"][1].as_str().unwrap(), "{form}");
    }
    // Elsewhere the folder is another.
    let elsewhere = Briefing { workdir: "/app", ..briefing };
    let text = mini("calls").opening(&elsewhere);
    assert!(text.contains("/app") && !text.contains("/testbed"));
    // What is no repository is put in the words for other tasks.
    let other = Briefing { is_repository: false, ..briefing };
    assert!(mini("calls").opening(&other).starts_with("Please solve this issue: `calc.add`"));
}

#[test]
fn commands_that_take_too_long_are_told_as_by_the_original() {
    let late = &recording()["v2"]["late"];
    let exception = late["exception_info"].as_str().unwrap();
    let command = late["command"].as_str().unwrap();
    assert_eq!(Output::late(command, 1, "before\n").exception, exception);
    let shown = mini("calls").shared.told(command, &Output::late(command, 1, "before\n"));
    assert_eq!(
        shown,
        format!(
            "<exception>{exception}</exception>\n<returncode>-1</returncode>\n<output>\nbefore\n</output>"
        )
    );
    let first = mini("v1").shared.told("sleep 9", &Output::late("sleep 9", 1, "so\n"));
    assert!(first.starts_with("The last command <command>sleep 9</command> timed out"), "{first}");
    assert!(first.contains("<output>\nso\n\n</output>"), "{first}");
}

#[test]
fn calls_that_are_none_are_told_in_the_words_of_the_original() {
    let call =
        |name: &str, arguments: Value| ToolCall::new(name, arguments.as_object().unwrap().clone());
    let told = |calls: &[ToolCall]| commands_of(calls).unwrap_err();
    assert_eq!(
        told(&[call("bash", json!({ "cmd": "ls" }))]),
        "Missing 'command' argument in bash tool call."
    );
    assert_eq!(
        told(&[call("bash", json!({ "command": "ls" })), call("submit", json!({}))]),
        "Unknown tool 'submit'.Missing 'command' argument in bash tool call."
    );
    assert_eq!(told(&[call("sh", json!({ "command": "ls" }))]), "Unknown tool 'sh'.");
    assert_eq!(told(&[]), texts::NO_CALL);
    assert!(told(&vec![call("bash", json!({ "command": "ls" })); 129]).contains("129"));
}

#[test]
fn options_that_cannot_be_kept_to_are_refused() {
    let refused = |options: Value| {
        ToolsetChoice::new("mini", options.as_object().unwrap().clone()).unwrap_err().to_string()
    };
    assert!(
        refused(json!({ "instance": "{{ nobody }}" })).contains("`instance` cannot be written")
    );
    assert!(refused(json!({ "observation": "{% if %}" })).contains("`observation` is no template"));
    assert!(refused(json!({ "observation": "{% for a in range(9999) %}{% for b in range(9999) %}.{% endfor %}{% endfor %}" })).contains("fuel"));
    assert!(refused(json!({ "command_secs": 0 })).contains("command_secs is 0"));
    assert!(refused(json!({ "timeout": "x" })).contains("only form `v1`"));
    assert!(refused(json!({ "form": "json" })).contains("json"));
    let error = ToolsetChoice::new("maxi", Map::new()).unwrap_err().to_string();
    assert!(error.contains("`mini`"), "{error}");
}
