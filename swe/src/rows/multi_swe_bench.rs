//! Rows of Multi-SWE-bench and Multi-SWE-RL: pull requests with their tests in three states.

use serde_json::Value;

use super::format::Companions;
use crate::columns::{Columns, described};
use crate::error::LoadError;
use crate::grade::Expected;
use crate::instance::{Gold, Instance, Issue, Limits, Verification};

/// Seconds that its harness gives a run.
const TEST_SECS: u64 = 1800;

pub(super) fn read(mut row: Columns, _: &Companions<'_>) -> Result<Instance, LoadError> {
    let (org, repo) = (row.text("org")?, row.text("repo")?);
    let number = match row.take("number") {
        Some(Value::Number(number)) if number.is_u64() => number.to_string(),
        Some(other) => {
            return Err(row.wrong(
                "number",
                format!("expected a number of a pull request, found {}", described(&other)),
            ));
        }
        None => {
            return Err(
                row.wrong("number", "expected a number of a pull request, and there is none")
            );
        }
    };
    let mut base = row.object("base")?;
    let base_commit = base.text("sha")?;
    base.harmless(&["label", "ref"]);
    let own_id = row.optional_text("instance_id")?;
    let mut instance = Instance {
        id: own_id.unwrap_or_else(|| format!("{org}__{repo}-{number}")),
        repo: Some(format!("{org}/{repo}")),
        base_commit: Some(base_commit),
        issue: issue(&mut row)?,
        workdir: Some(format!("/home/{repo}")),
        gold: row.optional_text("fix_patch")?.map(Gold::Patch),
        test_patch: row.optional_text("test_patch")?,
        language: row.optional_text("lang")?.map(|name| name.to_lowercase()),
        limits: Limits { test_secs: Some(TEST_SECS), ..Limits::default() },
        ..Instance::default()
    };
    base.finish(&mut instance);
    let image = format!("mswebench/{org}_m_{repo}").to_lowercase();
    instance.source.image = Some(format!("{image}:pr-{number}"));
    // Its images have the patches and the scripts that apply them.
    let hidden = ["/home/test.patch", "/home/fix.patch", "/home/test-run.sh", "/home/fix-run.sh"];
    instance.withheld = hidden.map(str::to_owned).into();
    let mut fail_to_pass = Vec::new();
    for name in ["f2p_tests", "s2p_tests", "n2p_tests"] {
        fail_to_pass.extend(tests(&mut row, name)?);
    }
    let pass_to_pass = tests(&mut row, "p2p_tests")?;
    // The state before is what the script finds: with the agent's patch in place it applies the tests and runs them.
    instance.verification = Some(Verification::UnreadLog {
        script: "#!/bin/bash\nbash /home/test-run.sh\n".to_owned(),
        expected: Expected { fail_to_pass, pass_to_pass },
    });
    let why =
        "`repo`: the log of each repository is read by code of that project, which is not here";
    instance.unsupported.push(why.to_owned());
    row.harmless(&super::swe_bench::PROVENANCE);
    // What follows from the lists of tests, and where the row comes from.
    row.harmless(&[
        "state",
        "title",
        "body",
        "tag",
        "fixed_tests",
        "run_result",
        "test_patch_result",
        "fix_patch_result",
        "number_interval",
        "hints",
    ]);
    row.finish(&mut instance);
    Ok(instance)
}

/// The issues that the pull request resolves, or else its own text.
fn issue(row: &mut Columns) -> Result<Issue, LoadError> {
    let mut texts = Vec::new();
    let column = "resolved_issues";
    match row.take(column) {
        Some(Value::Array(issues)) => {
            for issue in issues {
                let part =
                    |name: &str| issue.get(name).and_then(Value::as_str).unwrap_or_default().trim();
                texts.push(format!("{}\n{}", part("title"), part("body")).trim().to_owned());
            }
        }
        // A table's way of having them: columns of lists.
        Some(Value::Object(issues)) => {
            let list = |name: &str| {
                issues.get(name).and_then(Value::as_array).cloned().unwrap_or_default()
            };
            for (title, body) in list("title").iter().zip(list("body")) {
                let (title, body) =
                    (title.as_str().unwrap_or_default(), body.as_str().unwrap_or_default());
                texts.push(format!("{}\n{}", title.trim(), body.trim()).trim().to_owned());
            }
        }
        None => {}
        Some(other) => {
            return Err(row
                .wrong(column, format!("expected a list of issues, found {}", described(&other))));
        }
    }
    texts.retain(|text| !text.is_empty());
    if texts.is_empty() {
        let title = row.optional_text("title")?.unwrap_or_default();
        let body = row.optional_text("body")?.unwrap_or_default();
        texts.push(format!("{title}\n{body}").trim().to_owned());
    }
    Ok(Issue {
        problem: texts.join("\n\n"),
        hints: row.optional_text("hints")?,
        ..Issue::default()
    })
}

/// The names of tests: the keys of an object, or, as tables have them, its list `name`.
fn tests(row: &mut Columns, column: &str) -> Result<Vec<String>, LoadError> {
    let Some(found) = row.optional_object(column)? else {
        return Ok(Vec::new());
    };
    let object = found.into_row();
    match object.get("name") {
        Some(Value::Array(names)) => names
            .iter()
            .map(|name| match name {
                Value::String(name) => Ok(name.clone()),
                other => Err(row
                    .wrong(column, format!("expected names of tests, found {}", described(other)))),
            })
            .collect(),
        _ => Ok(object.into_iter().map(|(name, _)| name).collect()),
    }
}
