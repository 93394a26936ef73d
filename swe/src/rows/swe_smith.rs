//! SWE-smith's rows: the patch makes the bug, and the solution is the way back.

use std::collections::BTreeSet;

use super::format::Companions;
use super::spec_table;
use super::swe_bench::{Judged, PROVENANCE, WORKDIR};
use crate::columns::Columns;
use crate::error::LoadError;
use crate::grade::{EvalType, Expected};
use crate::instance::{Gold, Instance, Issue, Limits};
use crate::log::{Origin, log_parser_of_smith_repository};

/// Seconds that its harness gives the tests.
const TEST_SECS: u64 = 900;
/// MiB that its harness gives a container.
const MEMORY_MB: u64 = 10 * 1024;

pub(super) fn read(mut row: Columns, _: &Companions<'_>) -> Result<Instance, LoadError> {
    let id = row.text("instance_id")?;
    // `owner__repo.commit.kind__hash`: what stands before the last part names the repository.
    let (repository, bug) = id.rsplit_once('.').ok_or_else(|| {
        row.wrong(
            "instance_id",
            "expected `OWNER__REPO.COMMIT.KIND__HASH`, by which the tests are known",
        )
    })?;
    let (repository, bug) = (repository.to_owned(), bug.to_owned());
    made_from(&mut row, &repository)?;
    let patch = row.text("patch")?;
    let image = row.text("image_name")?;
    let expected = Expected {
        fail_to_pass: row.list("FAIL_TO_PASS")?,
        pass_to_pass: row.list("PASS_TO_PASS")?,
    };
    let mut instance = Instance {
        id,
        repo: Some(row.text("repo")?),
        issue: Issue {
            problem: row.optional_text("problem_statement")?.unwrap_or_default(),
            hints: row.optional_text("hints_text")?,
            ..Issue::default()
        },
        workdir: Some(WORKDIR.to_owned()),
        bug_patch: Some(patch.clone()),
        gold: Some(Gold::ReversePatch(patch)),
        limits: Limits {
            test_secs: Some(TEST_SECS),
            memory_mb: Some(MEMORY_MB),
            ..Limits::default()
        },
        tags: vec![bug.rsplit_once("__").map_or(bug.as_str(), |(kind, _)| kind).to_owned()],
        ..Instance::default()
    };
    instance.source.image = Some(full_image(&image));
    row.harmless(&PROVENANCE);
    row.harmless(&["strategy", "bug_type", "traj_id", "model", "cost", "generation_id"]);
    if instance.issue.problem.trim().is_empty() {
        return Err(
            row.wrong("problem_statement", "expected the text of an issue, and there is none")
        );
    }
    // Rows that are made elsewhere in this shape bring what the table does not know.
    let own = (row.optional_text("eval_script")?, row.optional_text("log_parser")?);
    instance.language = row.optional_text("language")?;
    judge(&mut instance, &repository, expected, own);
    row.finish(&mut instance);
    Ok(instance)
}

/// Some rows have a base commit: the one on a branch of the mirror in which the bug is, and which the image does not have.
///
/// Elsewhere a patch beside a base commit solves the issue, and nothing may take that for what makes the bug: the id has to
/// name the commit that the image is of.
fn made_from(row: &mut Columns, repository: &str) -> Result<(), LoadError> {
    let is_present = row.optional_text("base_commit")?.is_some();
    let is_named =
        repository.rsplit_once('.').is_some_and(|(_, commit)| crate::instance::is_commit(commit));
    match is_present && !is_named {
        true => Err(row.wrong(
            "instance_id",
            "expected `OWNER__REPO.COMMIT.KIND__HASH`, as rows have it whose patch makes the bug",
        )),
        false => Ok(()),
    }
}

fn judge(
    instance: &mut Instance,
    repository: &str,
    expected: Expected,
    own: (Option<String>, Option<String>),
) {
    if let (Some(script), Some(parser)) = own {
        withhold(instance, &expected);
        let judged =
            Judged { parser: None, expected, eval_type: EvalType::PassAndFail, has_tests: true };
        judged.put_into(instance, Origin::SweBench, &parser, script);
        return;
    }
    let Some(spec) = spec_table::smith_spec(repository) else {
        let why = format!(
            "`instance_id`: the row has no command of tests, and none is known for `{repository}`"
        );
        instance.unsupported.push(why);
        return;
    };
    if spec.by_key {
        let why = format!(
            "`instance_id`: `{repository}` is given its tests by keys that the row does not have"
        );
        instance.unsupported.push(why);
        return;
    }
    instance.language = Some("python".to_owned());
    let (failing, passing) = withhold(instance, &expected);
    let mut command = spec.command.to_owned();
    if spec.names_tests {
        for file in failing.iter().chain(&passing) {
            command.push(' ');
            command.push_str(file);
        }
    }
    let script = format!(
        "#!/bin/bash\nset -uxo pipefail\ncd {WORKDIR}\n: '>>>>> Start Test Output'\n{command}\n: '>>>>> End Test Output'\n"
    );
    let judged =
        Judged { parser: None, expected, eval_type: EvalType::PassAndFail, has_tests: true };
    match log_parser_of_smith_repository(&format!("swesmith/{repository}")) {
        Some(parser) => judged.put_into(instance, Origin::SweSmith, parser, script),
        None => instance
            .unsupported
            .push(format!("`instance_id`: the logs of `{repository}` have no parser")),
    }
}

/// Takes the files of failing tests out of the agent's sandbox, and has the others put back; the files of both.
fn withhold(instance: &mut Instance, expected: &Expected) -> (BTreeSet<String>, BTreeSet<String>) {
    let files = |tests: &[String]| -> BTreeSet<String> {
        tests.iter().filter_map(|test| test.split("::").next()).map(str::to_owned).collect()
    };
    let (failing, passing) = (files(&expected.fail_to_pass), files(&expected.pass_to_pass));
    // What a log names may be no path; such a name cannot be restored, and a command cannot be given it safely.
    let is_path = |name: &&String| {
        let mut problems = Vec::new();
        crate::instance::check_relative("", name, &mut problems);
        problems.is_empty() && !name.contains(char::is_whitespace)
    };
    instance.withheld = failing.iter().filter(is_path).cloned().collect();
    instance.restored = passing.difference(&failing).filter(is_path).cloned().collect();
    (failing, passing)
}

/// Where the image can be had: rows name it with or without the account that it is published by.
fn full_image(name: &str) -> String {
    match name.contains('/') {
        true => name.to_owned(),
        false => format!("jyangballin/{}", name.replace("__", "_1776_")),
    }
}
