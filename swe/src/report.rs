//! Predictions and reports in the files of SWE-bench: what its tools write can be read, and what is written they read.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use serde::ser::Error as _;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::grade::{Edition, InfraFailure, InfraTier, Resolution, TestsReport};

/// An attempt at an instance.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Prediction {
    /// Which instance.
    pub instance_id: String,
    /// Whose attempt; files of reports have it in their names.
    #[serde(default)]
    pub model_name_or_path: String,
    /// The patch; `None` and an empty one are both no attempt.
    #[serde(default)]
    pub model_patch: Option<String>,
    /// Whatever else was written beside it.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// Predictions that cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PredictionError {
    /// A line, or the file, is no JSON, or no prediction.
    #[error(
        "read prediction {number}: it needs `instance_id`, `model_name_or_path` and `model_patch`"
    )]
    Malformed {
        /// The line, or the place in the list, from 1.
        number: usize,
        /// What is wrong with it.
        #[source]
        source: serde_json::Error,
    },
    /// The file has the same instance twice.
    #[error("read predictions: `{instance_id}` is there twice")]
    Twice {
        /// The instance.
        instance_id: String,
    },
}

/// Reads predictions: a JSON object on each line, a JSON list of them, or an object that has them by their instances.
///
/// # Errors
///
/// [`PredictionError`] for what is none, and for an instance that is there twice.
pub fn read_predictions(text: &str) -> Result<Vec<Prediction>, PredictionError> {
    let malformed = |number| move |source| PredictionError::Malformed { number, source };
    let mut predictions = Vec::new();
    match serde_json::from_str(text) {
        Ok(Value::Array(list)) => {
            for (index, value) in list.into_iter().enumerate() {
                predictions.push(serde_json::from_value(value).map_err(malformed(index + 1))?);
            }
        }
        Ok(Value::Object(by_id)) if !by_id.get("instance_id").is_some_and(Value::is_string) => {
            for (index, value) in by_id.into_values().enumerate() {
                predictions.push(serde_json::from_value(value).map_err(malformed(index + 1))?);
            }
        }
        _ => {
            let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
            for (index, line) in lines {
                predictions.push(serde_json::from_str(line).map_err(malformed(index + 1))?);
            }
        }
    }
    let mut seen = BTreeSet::new();
    let twice =
        predictions.iter().find(|prediction: &&Prediction| !seen.insert(&prediction.instance_id));
    match twice {
        Some(prediction) => {
            Err(PredictionError::Twice { instance_id: prediction.instance_id.clone() })
        }
        None => Ok(predictions),
    }
}

/// Writes predictions, a JSON object on each line.
pub fn write_predictions(predictions: &[Prediction]) -> String {
    let mut text = String::new();
    for prediction in predictions {
        text += &serde_json::to_string(prediction).expect("texts and JSON can be written");
        text.push('\n');
    }
    text
}

/// What became of one attempt, in the shape of SWE-bench's `report.json`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct InstanceReport {
    /// There is no patch.
    #[serde(rename = "patch_is_None")]
    pub patch_is_none: bool,
    /// There is one.
    pub patch_exists: bool,
    /// The log could be graded, which the reference takes for the patch having been applied.
    pub patch_successfully_applied: bool,
    /// The issue is resolved.
    pub resolved: bool,
    /// The log has a sign that the machinery was at fault; versions up to 4 do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub infra_failure: Option<bool>,
    /// The sign.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub infra_failure_reason: Option<String>,
    /// What became of the tests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tests_status: Option<TestsReport>,
}

impl InstanceReport {
    /// The report of an attempt: without a patch, with a log that cannot be graded (`tests` is `None`, `sign` what the log
    /// shows), or with one that can.
    pub fn new(
        has_patch: bool,
        tests: Option<TestsReport>,
        sign: Option<InfraFailure>,
        edition: Edition,
    ) -> Self {
        let is_five = edition == Edition::Five;
        let mut report = Self {
            patch_is_none: !has_patch,
            patch_exists: has_patch,
            infra_failure: is_five.then_some(false),
            ..Self::default()
        };
        if !has_patch {
            return report;
        }
        match tests {
            Some(tests) => {
                report.patch_successfully_applied = true;
                report.resolved = tests.resolution() == Resolution::Full;
                report.tests_status = Some(tests);
            }
            None => {
                if let Some(sign) = sign.filter(|_| is_five) {
                    report.infra_failure = Some(sign.tier == InfraTier::Environment);
                    report.infra_failure_reason = Some(sign.reason.to_owned());
                }
            }
        }
        report
    }

    /// The text of `report.json`, which has the report under its instance.
    pub fn to_json(&self, instance_id: &str) -> String {
        python_json(&BTreeMap::from([(instance_id, self)]))
    }
}

/// How the evaluation of an attempt ended.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ended {
    /// Its report; `None` where the evaluation broke off.
    pub report: Option<InstanceReport>,
    /// A sign in its logs that the machinery was at fault.
    pub sign: Option<InfraFailure>,
}

/// What became of a run, in the shape of SWE-bench's report of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[expect(
    missing_docs,
    reason = "the names are SWE-bench's, and say it: counts, then the instances counted"
)]
pub struct RunReport {
    pub total_instances: usize,
    pub submitted_instances: usize,
    pub completed_instances: usize,
    pub resolved_instances: usize,
    pub unresolved_instances: usize,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub infra_failure_instances: Option<usize>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ambiguous_failure_instances: Option<usize>,
    pub empty_patch_instances: usize,
    pub error_instances: usize,
    pub completed_ids: Vec<String>,
    pub incomplete_ids: Vec<String>,
    pub empty_patch_ids: Vec<String>,
    pub submitted_ids: Vec<String>,
    pub resolved_ids: Vec<String>,
    pub unresolved_ids: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub infra_failure_ids: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ambiguous_failure_ids: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_reasons: Option<BTreeMap<String, String>>,
    pub error_ids: Vec<String>,
    pub schema_version: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unstopped_instances: Option<usize>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unstopped_containers: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unremoved_images: Option<Vec<String>>,
}

impl RunReport {
    /// The report of a run over `instances`, without what an engine of containers has left behind. An attempt that `ended` does not
    /// have counts as an error, as one whose report is missing does in the reference.
    pub fn new(
        instances: &[String],
        predictions: &[Prediction],
        ended: &BTreeMap<String, Ended>,
        edition: Edition,
    ) -> Self {
        let by_id: BTreeMap<&str, &Prediction> =
            predictions.iter().map(|made| (made.instance_id.as_str(), made)).collect();
        let [mut completed, mut incomplete, mut empty, mut resolved, mut unresolved, mut errors] =
            [const { BTreeSet::new() }; 6];
        for id in instances {
            let Some(prediction) = by_id.get(id.as_str()) else {
                incomplete.insert(id);
                continue;
            };
            if prediction.model_patch.as_deref().is_none_or(str::is_empty) {
                empty.insert(id);
                continue;
            }
            match ended.get(id).and_then(|ended| ended.report.as_ref()) {
                Some(report) => {
                    completed.insert(id);
                    if report.resolved { &mut resolved } else { &mut unresolved }.insert(id);
                }
                None => {
                    errors.insert(id);
                }
            }
        }
        let signs: BTreeMap<&String, InfraFailure> =
            unresolved.union(&errors).filter_map(|id| Some((*id, ended.get(*id)?.sign?))).collect();
        let of_tier = |tier| -> Vec<String> {
            let signs = signs.iter().filter(|(_, sign)| sign.tier == tier);
            signs.map(|(id, _)| (*id).clone()).collect()
        };
        let is_five = edition == Edition::Five;
        let sure = of_tier(InfraTier::Environment);
        let ambiguous = of_tier(InfraTier::Ambiguous);
        let reasons = signs.iter().map(|(id, sign)| ((*id).clone(), sign.reason.to_owned()));
        let ids = |set: BTreeSet<&String>| set.into_iter().cloned().collect::<Vec<String>>();
        Self {
            total_instances: instances.len(),
            submitted_instances: by_id.len(),
            completed_instances: completed.len(),
            resolved_instances: resolved.len(),
            unresolved_instances: unresolved.len(),
            infra_failure_instances: is_five.then_some(sure.len()),
            ambiguous_failure_instances: is_five.then_some(ambiguous.len()),
            empty_patch_instances: empty.len(),
            error_instances: errors.len(),
            submitted_ids: by_id.keys().map(|id| (*id).to_owned()).collect(),
            failure_reasons: is_five.then(|| reasons.collect()),
            infra_failure_ids: is_five.then_some(sure),
            ambiguous_failure_ids: is_five.then_some(ambiguous),
            completed_ids: ids(completed),
            incomplete_ids: ids(incomplete),
            empty_patch_ids: ids(empty),
            resolved_ids: ids(resolved),
            unresolved_ids: ids(unresolved),
            error_ids: ids(errors),
            schema_version: 2,
            // Up to version 4 these are there when no engine was asked.
            unstopped_instances: (!is_five).then_some(0),
            unstopped_containers: (!is_five).then(Vec::new),
            unremoved_images: (!is_five).then(Vec::new),
        }
    }

    /// The text of the report's file, with a line end.
    pub fn to_json(&self) -> String {
        python_json(self) + "\n"
    }

    /// The name of the report's file: whose attempts they are, and of which run.
    pub fn file_name(model_name_or_path: &str, run_id: &str) -> String {
        format!("{}.{run_id}.json", model_name_or_path.replace('/', "__"))
    }
}

/// `json.dumps(value, indent=4)`: four blanks, and nothing beyond ASCII.
fn python_json(value: &impl Serialize) -> String {
    let mut bytes = Vec::new();
    let mut writer = serde_json::Serializer::with_formatter(
        &mut bytes,
        PythonFormatter(serde_json::ser::PrettyFormatter::with_indent(b"    ")),
    );
    value
        .serialize(&mut writer)
        .and_then(|()| String::from_utf8(bytes).map_err(serde_json::Error::custom))
        .expect("reports are texts, numbers and lists of them")
}

struct PythonFormatter(serde_json::ser::PrettyFormatter<'static>);

impl serde_json::ser::Formatter for PythonFormatter {
    fn write_string_fragment<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        let mut from = 0;
        for (at, letter) in fragment.char_indices().filter(|(_, letter)| !letter.is_ascii()) {
            writer.write_all(&fragment.as_bytes()[from..at])?;
            for unit in letter.encode_utf16(&mut [0; 2]) {
                write!(writer, "\\u{unit:04x}")?;
            }
            from = at + letter.len_utf8();
        }
        writer.write_all(&fragment.as_bytes()[from..])
    }

    fn begin_array<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.begin_array(writer)
    }

    fn end_array<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_array(writer)
    }

    fn begin_array_value<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        self.0.begin_array_value(writer, first)
    }

    fn end_array_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_array_value(writer)
    }

    fn begin_object<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.begin_object(writer)
    }

    fn end_object<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_object(writer)
    }

    fn begin_object_key<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        self.0.begin_object_key(writer, first)
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.begin_object_value(writer)
    }

    fn end_object_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_object_value(writer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn predictions_are_read_in_all_forms() {
        let line =
            r#"{"instance_id":"a","model_name_or_path":"m/x","model_patch":"p\n","cost":1.5}"#;
        let bare = r#"{"instance_id":"b","model_patch":null}"#;
        let forms = [
            format!("{line}\n{bare}\n\n"),
            format!("[{line},{bare}]"),
            format!("{{\"a\":{line},\"b\":{bare}}}"),
        ];
        for form in forms {
            let predictions = read_predictions(&form).unwrap();
            assert_eq!(predictions[0].other["cost"], 1.5);
            assert_eq!(predictions[1].model_patch, None);
            assert_eq!(read_predictions(&write_predictions(&predictions)).unwrap(), predictions);
        }
        assert_eq!(read_predictions(line).unwrap().len(), 1);
        let error = read_predictions(&format!("{line}\n{{}}")).unwrap_err();
        assert!(error.to_string().starts_with("read prediction 2"), "{error}");
        assert!(read_predictions(&format!("{line}\n{line}")).is_err());
    }

    #[test]
    fn reports_are_written_as_python_writes_them() {
        let report = InstanceReport::new(true, Some(TestsReport::default()), None, Edition::Five);
        let text = report.to_json("é😀");
        assert!(
            text.starts_with(
                "{\n    \"\\u00e9\\ud83d\\ude00\": {\n        \"patch_is_None\": false,"
            )
        );
        assert!(text.contains("\"success\": [],"), "{text}");
    }
}
