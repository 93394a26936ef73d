//! Reports of instances and runs against those that SWE-bench's own programs wrote, to the character.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Edition, EvalLog, EvalType, Expected, InfraScan, Outcome};
use crate::log::{LogContext, Origin, find_log_parser, log_parser_of_repository};
use crate::report::{Ended, InstanceReport, Prediction, RunReport};

fn names(value: &Value) -> Vec<String> {
    serde_json::from_value(value.clone()).unwrap()
}

fn instance(case: &Value, edition: Edition) -> (String, Option<Outcome>) {
    let row = &case["instance"];
    let text = |key: &str| row[key].as_str().unwrap();
    let (parser, eval_type) = match edition {
        Edition::Five => (
            find_log_parser(Origin::SweBench, text("log_parser")),
            serde_json::from_value(row["eval_type"].clone()).unwrap(),
        ),
        _ => (
            find_log_parser(Origin::SweBench4, log_parser_of_repository(text("repo")).unwrap()),
            EvalType::of_repository(text("repo"), edition),
        ),
    };
    let id = text("instance_id");
    if case["prediction"]["model_patch"].is_null() {
        return (InstanceReport::new(false, None, None, edition).to_json(id), None);
    }
    let context = LogContext { instance_id: id, version: text("version") };
    let mut log = EvalLog::new(parser.unwrap(), &context, edition).unwrap();
    log.push(case["log"].as_str().unwrap().as_bytes());
    let log = log.finish(None);
    let expected = Expected {
        fail_to_pass: names(&row["FAIL_TO_PASS"]),
        pass_to_pass: names(&row["PASS_TO_PASS"]),
    };
    let tests = log.verdict.as_ref().ok().map(|tests| expected.report(tests, eval_type, edition));
    let outcome = Outcome::new(&log, tests.as_ref());
    (InstanceReport::new(true, tests, log.infra_failure, edition).to_json(id), Some(outcome))
}

fn run(case: &Value, edition: Edition) -> String {
    let predictions: Vec<Prediction> = case["predictions"]
        .as_object()
        .unwrap()
        .values()
        .map(|prediction| serde_json::from_value(prediction.clone()).unwrap())
        .collect();
    let ended: BTreeMap<String, Ended> = case["files"]
        .as_object()
        .unwrap()
        .iter()
        .map(|(id, files)| {
            let report = files["report.json"].as_str().map(|text| {
                let mut all: BTreeMap<String, InstanceReport> = serde_json::from_str(text).unwrap();
                all.remove(id).unwrap()
            });
            let mut scan = InfraScan::default();
            for name in ["test_output.txt", "run_instance.log"] {
                scan.text(files[name].as_str().unwrap_or_default());
            }
            (id.clone(), Ended { report, sign: scan.found() })
        })
        .collect();
    RunReport::new(&names(&case["instances"]), &predictions, &ended, edition).to_json()
}

#[test]
fn reports_are_those_of_the_reference() {
    let mut outcomes = BTreeMap::new();
    let (mut instances, mut runs) = (0, 0);
    for line in include_str!("../../tests/fixtures/grades.jsonl").lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let edition = match case["edition"].as_str() {
            Some("5") => Edition::Five,
            Some("4") => Edition::Four,
            Some("3") => Edition::Three,
            _ => Edition::Two,
        };
        let expected = case["expected"]["report"].as_str().unwrap();
        if case["instance"].is_object() {
            instances += 1;
            let (report, outcome) = instance(&case, edition);
            assert_eq!(report, expected, "{line}");
            if let Some(outcome) = outcome {
                let is_resolved = expected.contains("\"resolved\": true");
                assert_eq!(outcome == Outcome::Resolved, is_resolved, "{line}");
                *outcomes.entry(format!("{outcome:?}")).or_insert(0) += 1;
            }
        } else {
            runs += 1;
            assert_eq!(run(&case, edition), expected, "{line}");
            let name = RunReport::file_name("org/model", "run");
            assert_eq!(case["expected"]["name"], name);
        }
    }
    assert_eq!((instances, runs), (85, 8));
    // All outcomes occur.
    assert_eq!(outcomes.len(), 5, "{outcomes:?}");
}
