//! What the parsers of others read in the same texts.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use spar_core::{Action, ToolSpec};

use crate::{open_parser, parser_registry};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Golden {
    references: BTreeMap<String, String>,
    tools: Vec<ToolSpec>,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    syntax: String,
    text: String,
    reference: Outcome,
    /// What is read here instead, with the reason.
    ours: Option<Outcome>,
    why: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
enum Outcome {
    Error { error: String },
    Calls { text: String, calls: Vec<Call> },
    Text { text: String },
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Call {
    /// Some references pass calls on that have none.
    name: Option<String>,
    arguments: Value,
}

fn golden() -> Golden {
    serde_json::from_str(include_str!("../tests/fixtures/golden.json")).unwrap()
}

fn read(case: &Case, tools: &[ToolSpec]) -> Outcome {
    let has_tools = !["plain", "tags", "bracketed", "fenced_bash"].contains(&case.syntax.as_str());
    let tools = if has_tools { tools } else { &[] };
    match open_parser(&case.syntax).unwrap().parse(&case.text, tools) {
        Err(error) => Outcome::Error { error: error.kind.as_str().to_owned() },
        Ok(parsed) => match parsed.action {
            Action::Text { text } => Outcome::Text { text },
            Action::Calls { text, calls } => {
                let calls = calls.into_iter();
                let calls = calls
                    .map(|call| Call { name: Some(call.name), arguments: call.arguments.into() });
                Outcome::Calls { text, calls: calls.collect() }
            }
        },
    }
}

#[test]
fn every_syntax_is_read_as_its_reference_reads_it_but_for_what_is_told() {
    let golden = golden();
    assert!(!golden.references.is_empty());
    let mut failed = Vec::new();
    for case in &golden.cases {
        let found = read(case, &golden.tools);
        assert_eq!(case.ours.is_some(), case.why.is_some(), "{}", case.text);
        let is_right = match (&case.ours, &case.reference, &found) {
            (Some(ours), _, found) => ours == found,
            // Errors have words of their own everywhere.
            (None, Outcome::Error { .. }, Outcome::Error { .. }) => true,
            (None, reference, found) => reference == found,
        };
        if !is_right {
            let expected = case.ours.as_ref().unwrap_or(&case.reference);
            failed.push(format!(
                "{} {:?}\n  expected {expected:?}\n  found    {found:?}",
                case.syntax, case.text
            ));
        }
    }
    assert!(failed.is_empty(), "{} cases:\n{}", failed.len(), failed.join("\n"));
}

#[test]
fn every_parser_has_a_dozen_golden_cases() {
    let golden = golden();
    // What `code_tags` reads is told by a prompt alone, and `whole` reads nothing: their unit tests say how.
    let has_own = |name: &str| ["code_tags", "whole"].contains(&name);
    for entry in parser_registry().iter().filter(|entry| !has_own(entry.name)) {
        let num_cases = golden.cases.iter().filter(|case| case.syntax == entry.name).count();
        assert!(num_cases >= 12, "`{}` has {num_cases}", entry.name);
    }
}
