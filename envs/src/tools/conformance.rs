//! What holds of every tool of the table.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};
use spar_core::registry::{AnyTable, Options};
use spar_core::{Seed, ToolCall, ToolSpec};
use spar_tasks::{SuiteOptions, open_suite};

use super::{Tool, ToolChoice, ToolError, ToolLimits, ToolPlace, Toolbox, tool_registry};
use crate::{Resources, open_environment};

const LIMIT: Duration = Duration::from_secs(5);

/// The tools that offer something without a sandbox, a server or a file.
fn choices() -> Vec<ToolChoice> {
    let rows = tool_registry().iter();
    let plain = rows.filter(|row| !row.needs_sandbox && !(row.specs)().is_empty());
    plain.map(|row| ToolChoice::named(row.name)).collect()
}

async fn opened(choice: &ToolChoice) -> Box<dyn Tool> {
    let resources = Resources::default();
    let place = ToolPlace { task: "test", seed: Seed::from_u64(1), resources: &resources };
    let mut tool = choice.open(&place).unwrap();
    tool.prepare().await.unwrap();
    tool
}

/// Arguments that a hostile policy may write: of every type in every field, absent, unknown, long, deep.
fn hostile(spec: &ToolSpec) -> Vec<Map<String, Value>> {
    let mut deep = json!("end");
    for _ in 0..90 {
        deep = json!([deep]);
    }
    let values = [
        json!(null),
        json!(true),
        json!(-1),
        json!(u64::MAX),
        json!(i64::MIN),
        json!(1.7e308),
        json!(""),
        json!("é\u{0}\u{202e}'; DROP TABLE t; -- $(reboot) \\ \" \n"),
        json!("x".repeat(100_000)),
        json!("((((1"),
        json!([1, "a", null]),
        json!({ "a": { "b": [] } }),
        deep,
    ];
    let properties = spec.parameters["properties"].as_object().cloned().unwrap_or_default();
    let mut all = vec![Map::new(), Map::from_iter([("no such field".to_owned(), json!(1))])];
    for value in &values {
        all.push(properties.keys().map(|name| (name.clone(), value.clone())).collect());
        for name in properties.keys() {
            // The other fields as they may be, so that this one is what counts.
            let other = |schema: &Value| match schema["enum"].get(0) {
                Some(first) => first.clone(),
                None if schema["type"] == "integer" || schema["type"] == "number" => json!(1),
                None if schema["type"] == "boolean" => json!(true),
                None => json!("a"),
            };
            let mut arguments: Map<_, _> =
                properties.iter().map(|(name, schema)| (name.clone(), other(schema))).collect();
            arguments.insert(name.clone(), value.clone());
            all.push(arguments);
        }
    }
    all
}

#[tokio::test]
async fn every_tool_offers_specs_that_tell_what_they_are() {
    assert!(choices().len() >= 2);
    for choice in choices() {
        let tool = opened(&choice).await;
        let row = tool_registry().find(&choice.tool).unwrap();
        assert_eq!(*tool.specs(), *(row.specs)(), "{}", row.name);
        assert!(Arc::ptr_eq(&tool.specs(), &tool.specs()), "{}", row.name);
        for spec in tool.specs().iter() {
            spec.validate().unwrap();
            assert!(spec.description.ends_with('.'), "{}: {}", row.name, spec.description);
            assert_eq!(spec.parameters["additionalProperties"], false, "{}", spec.name);
            let properties = spec.parameters["properties"].as_object().unwrap();
            for (name, schema) in properties {
                let told = schema["description"].as_str().unwrap_or_default();
                assert!(!told.is_empty(), "{}: `{name}` has no doc comment", spec.name);
            }
        }
    }
}

#[tokio::test]
async fn hostile_arguments_are_told_and_leave_every_tool_in_order() {
    for choice in choices() {
        let mut tool = opened(&choice).await;
        for spec in tool.specs().iter() {
            let mut told = 0;
            for arguments in hostile(spec) {
                let call = ToolCall::new(&spec.name, arguments);
                match tool.call(&call, LIMIT).await {
                    Ok(output) => assert!(output.text.len() <= 4 << 20),
                    Err(ToolError::Told(text)) => {
                        told += 1;
                        let is_sentence = text.ends_with('.') && !text.contains("panicked");
                        assert!(is_sentence && text.len() < 3000, "{}: {text}", spec.name);
                    }
                    Err(ToolError::Failed(error)) => panic!("{}: {error}", spec.name),
                }
            }
            assert!(told >= 2, "{}: what is wrong is told", spec.name);
            let unknown = Map::from_iter([("no such field".to_owned(), json!(1))]);
            let error = tool.call(&ToolCall::new(&spec.name, unknown), LIMIT).await.unwrap_err();
            assert!(error.to_string().contains("`no such field`"), "{}: {error}", spec.name);
        }
    }
}

#[tokio::test]
async fn equal_calls_give_equal_results_and_forks_go_on_alike() {
    for choice in choices() {
        let (mut one, mut other) = (opened(&choice).await, opened(&choice).await);
        let calls: Vec<ToolCall> = one
            .specs()
            .iter()
            .flat_map(|spec| hostile(spec).into_iter().map(|it| ToolCall::new(&spec.name, it)))
            .collect();
        let (first, second) = calls.split_at(calls.len() / 2);
        let told =
            |result: Result<super::ToolOutput, ToolError>| result.map_err(|it| it.to_string());
        for call in first {
            assert_eq!(told(one.call(call, LIMIT).await), told(other.call(call, LIMIT).await));
        }
        let Some(mut fork) = one.fork().await.unwrap() else { continue };
        assert_eq!(one.specs(), fork.specs());
        for call in second {
            let expected = told(other.call(call, LIMIT).await);
            assert_eq!(told(fork.call(call, LIMIT).await), expected, "{}", choice.tool);
        }
        // What the fork has done is nothing to its origin.
        let mut third = opened(&choice).await;
        for call in first {
            let _ = third.call(call, LIMIT).await;
        }
        for call in second {
            assert_eq!(told(one.call(call, LIMIT).await), told(third.call(call, LIMIT).await));
        }
        one.close().await.unwrap();
    }
}

#[tokio::test]
async fn options_that_a_tool_does_not_have_are_refused() {
    for row in tool_registry() {
        let options = Options::from_iter([("no such option".to_owned(), json!(1))]);
        let choice = ToolChoice { options, ..ToolChoice::named(row.name) };
        assert!(choice.problems()[0].contains("no such option"), "{}", row.name);
    }
    let [told] = &ToolChoice::named("calculater").problems()[..] else { panic!() };
    assert!(told.contains("known are `calculator`"), "{told}");
}

#[tokio::test]
async fn all_tools_fit_into_one_toolbox() {
    let resources = Resources::default();
    let place = ToolPlace { task: "test", seed: Seed::from_u64(1), resources: &resources };
    let mut twice = choices();
    twice.extend(choices());
    let toolbox = Toolbox::open(&twice, ToolLimits::default(), &place).unwrap();
    let names: std::collections::BTreeSet<_> =
        toolbox.specs().iter().map(|spec| spec.name.clone()).collect();
    assert_eq!(names.len(), toolbox.specs().len());
    assert!(names.contains("calculator_calculator") && names.contains("calculator_calculator_2"));
    toolbox.specs().iter().for_each(|spec| spec.validate().unwrap());
}

/// What docs/tools.md says of the table's rows.
fn document() -> String {
    let mut text = String::new();
    for row in AnyTable::describe(tool_registry()) {
        text.push_str(&format!("### {}\n\n{} Source: {}.\n", row.name, row.about, row.source));
        if !row.options.is_empty() {
            text.push_str("\n| option | values | default | |\n| --- | --- | --- | --- |\n");
        }
        for option in &row.options {
            let [name, kind, doc] =
                [&option.name, &option.kind, &option.doc].map(|text| text.replace('|', "\\|"));
            text.push_str(&format!(
                "| `{name}` | {kind} | `{}` | {doc} |\n",
                option.default_text()
            ));
        }
        for spec in (tool_registry().find(&row.name).unwrap().specs)() {
            text.push_str(&format!("\nIt offers `{}`: {}\n\n", spec.name, spec.description));
            text.push_str("| argument | values | |\n| --- | --- | --- |\n");
            let required = spec.parameters["required"].as_array().cloned().unwrap_or_default();
            for (name, schema) in spec.parameters["properties"].as_object().unwrap() {
                let values = match schema["enum"].as_array() {
                    Some(values) => {
                        let each: Vec<_> = values.iter().map(|it| format!("`{it}`")).collect();
                        each.join(", ")
                    }
                    None => schema["type"].as_str().unwrap_or("any").to_owned(),
                };
                let optional =
                    if required.contains(&json!(name)) { "" } else { " May be left out." };
                let told = schema["description"].as_str().unwrap_or_default();
                text.push_str(&format!("| `{name}` | {values} | {told}{optional} |\n"));
            }
        }
        text.push('\n');
    }
    text
}

#[test]
fn the_documentation_tells_of_every_tool_what_the_table_does() {
    let (page, wanted) = (page("tools.md"), document());
    if std::env::var_os("SPAR_UPDATE_DOCS").is_some() {
        let (before, _) = page.split_once(TABLE).expect("it has a section for the table");
        std::fs::write(page_path("tools.md"), format!("{before}{TABLE}\n{}\n", wanted.trim_end()))
            .unwrap();
        return;
    }
    let told = "docs/tools.md is older than the table: run this test with SPAR_UPDATE_DOCS=1";
    assert!(page.contains(wanted.trim_end()), "{told}\n{wanted}");
}

#[tokio::test]
async fn the_episodes_of_the_documentation_are_played_so() {
    let mut missing = Vec::new();
    let pages = [("toolbox", "bills", "tools.md"), ("mcp", "test", "mcp.md")];
    for (suite, split, name) in pages {
        let suite = open_suite(suite, &SuiteOptions::default()).unwrap();
        let task = suite.task(split, 0).unwrap();
        let mut env = open_environment(&task, &Resources::default()).unwrap();
        let mut told = format!("{}\n", env.reset(Seed::from_u64(0)).await.unwrap().text);
        while let Some(action) = env.oracle_action() {
            let step = env.step(&action).await.unwrap();
            for (call, result) in action.tool_calls().iter().zip(&step.observation.results) {
                let arguments = Value::Object(call.arguments.clone());
                told.push_str(&format!("→ {} {arguments}\n← {}\n", call.name, result.text));
            }
        }
        let verdict = env.verify().await.unwrap().unwrap();
        told.push_str(&format!("reward {}\n", verdict.reward()));
        env.close().await.unwrap();
        if !page(name).contains(&told) {
            missing.push(format!("docs/{name} has to have this:\n{told}"));
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

/// Where docs/tools.md has what the table says.
const TABLE: &str = "## The table\n";

/// A page of the documentation.
fn page(name: &str) -> String {
    std::fs::read_to_string(page_path(name)).unwrap()
}

fn page_path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs").join(name)
}
