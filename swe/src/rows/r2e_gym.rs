//! R2E-Gym's rows: a commit, its image, and the status of every test.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::format::Companions;
use super::swe_bench::WORKDIR;
use crate::columns::{Columns, described};
use crate::error::LoadError;
use crate::instance::{Gold, HiddenFile, Instance, Issue, Limits, ParserName, Verification};
use crate::log::Origin;

/// Seconds that its harness gives the tests.
const TEST_SECS: u64 = 300;

/// What is read of the commit that solves it.
#[derive(Deserialize)]
struct ParsedCommit {
    file_diffs: Vec<FileDiff>,
    #[serde(default)]
    old_commit_hash: Option<String>,
}

#[derive(Deserialize)]
struct FileDiff {
    header: Header,
    #[serde(default)]
    new_file_content: Option<String>,
    #[serde(default)]
    is_binary_file: bool,
    #[serde(default)]
    plus_file: Option<Named>,
}

#[derive(Deserialize)]
struct Header {
    file: Named,
}

#[derive(Deserialize)]
struct Named {
    path: String,
}

pub(super) fn read(mut row: Columns, _: &Companions<'_>) -> Result<Instance, LoadError> {
    let repo = row.text("repo_name")?;
    let commit = row.text("commit_hash")?;
    let short: String = commit.chars().take(12).collect();
    let mut instance = Instance {
        id: row.optional_text("instance_id")?.unwrap_or_else(|| format!("{repo}__{short}")),
        issue: Issue { problem: problem(&mut row)?, ..Issue::default() },
        workdir: Some(WORKDIR.to_owned()),
        language: Some("python".to_owned()),
        limits: Limits { test_secs: Some(TEST_SECS), ..Limits::default() },
        repo: Some(repo),
        ..Instance::default()
    };
    instance.source.image = Some(row.text("docker_image")?);
    let expected = statuses(&mut row)?;
    // Its images have the tests at the root and their script in the repository; its harness puts both into the root's folder.
    let hidden =
        ["/r2e_tests", "/root/r2e_tests", "/root/run_tests.sh", "r2e_tests", "run_tests.sh"];
    instance.withheld = hidden.map(str::to_owned).into();
    instance.verification = Some(Verification::ExactStatuses {
        script: "#!/bin/bash\n[ -e /root/run_tests.sh ] || mv run_tests.sh /root/run_tests.sh\n\
                 [ -e /root/r2e_tests ] || mv /r2e_tests /root/r2e_tests\nln -sfn /root/r2e_tests r2e_tests\n\
                 bash /root/run_tests.sh 2>&1\n"
            .to_owned(),
        parser: ParserName { origin: Origin::R2eGym, name: "parse_log_pytest".to_owned() },
        expected,
    });
    if let Some(parsed) = row.take("parsed_commit_content").or_else(|| row.take("parsed_commit")) {
        solution(&row, parsed, &mut instance)?;
    }
    row.harmless(&super::swe_bench::PROVENANCE);
    // Numbers and texts about how the row came about.
    row.harmless(&[
        "prompt",
        "modified_files",
        "relevant_files",
        "modified_entity_summaries",
        "num_non_test_files",
        "num_non_test_func_methods",
        "num_non_test_lines",
        "execution_result_content",
        "issue_type",
    ]);
    row.finish(&mut instance);
    Ok(instance)
}

/// The issue, which may stand between marks.
fn problem(row: &mut Columns) -> Result<String, LoadError> {
    let text = row.text("problem_statement")?;
    let inside = text.split_once("[ISSUE]").and_then(|(_, rest)| rest.rsplit_once("[/ISSUE]"));
    Ok(inside.map_or(text.as_str(), |(inside, _)| inside).trim().to_owned())
}

fn statuses(row: &mut Columns) -> Result<BTreeMap<String, String>, LoadError> {
    let expected = row.object("expected_output_json")?;
    let mut found = BTreeMap::new();
    for (test, status) in expected.into_row() {
        match status {
            Value::String(status) => {
                // As the original compares them: without colours, and without what follows a dash.
                let test = without_colours(&test);
                let test = test.split(" - ").next().unwrap_or_default();
                found.insert(test.to_owned(), status);
            }
            other => {
                let detail = format!("expected a status as a text, found {}", described(&other));
                return Err(row.wrong("expected_output_json", detail));
            }
        }
    }
    Ok(found)
}

/// A name without the marks that terminals colour by.
fn without_colours(name: &str) -> String {
    let mut parts = name.split("\u{1b}[");
    let mut found = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let digits = part.bytes().take_while(u8::is_ascii_digit).count();
        match part[digits..].strip_prefix('m') {
            Some(rest) if digits > 0 => found.push_str(rest),
            _ => {
                found.push_str("\u{1b}[");
                found.push_str(part);
            }
        }
    }
    found
}

/// The files of the commit that are no tests, as it leaves them.
fn solution(row: &Columns, parsed: Value, instance: &mut Instance) -> Result<(), LoadError> {
    let column = "parsed_commit_content";
    let parsed: Result<ParsedCommit, _> = match &parsed {
        Value::String(text) => serde_json::from_str(text),
        other => serde_json::from_value(other.clone()),
    };
    let parsed = parsed.map_err(|error| {
        row.wrong(column, format!("expected a commit with `file_diffs`: {error}"))
    })?;
    instance.base_commit = parsed.old_commit_hash.filter(|hash| crate::instance::is_commit(hash));
    let mut files = BTreeMap::new();
    for diff in parsed.file_diffs {
        let path = diff.header.file.path;
        if is_test(&path) {
            continue;
        }
        let is_gone = diff.plus_file.is_some_and(|file| file.path == "/dev/null");
        match diff.new_file_content {
            _ if is_gone => files.insert(path, None),
            Some(text) if !diff.is_binary_file => files.insert(path, Some(HiddenFile::text(text))),
            _ => {
                instance.unsupported.push(format!(
                    "`{column}`: the content of `{path}` after the commit is not there"
                ));
                return Ok(());
            }
        };
    }
    if !files.is_empty() {
        instance.gold = Some(Gold::Files(files));
    }
    Ok(())
}

/// What the original takes for a test.
fn is_test(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    path.ends_with("_test.py")
        || path.starts_with("test_")
        || name.starts_with("test_")
        || path.split('/').any(|part| matches!(part, "tests" | "Tests" | "test" | "Test"))
}
