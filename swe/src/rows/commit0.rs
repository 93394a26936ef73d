//! Commit0's rows: a library whose functions are empty, and the part of its tests that pass.

use super::format::Companions;
use super::swe_bench::WORKDIR;
use crate::columns::Columns;
use crate::error::LoadError;
use crate::instance::{Gold, Instance, Issue, Limits, RepoSpec, Verification};

/// Seconds that its harness gives the tests.
const TEST_SECS: u64 = 1800;

pub(super) fn read(mut row: Columns, _: &Companions<'_>) -> Result<Instance, LoadError> {
    let repo = row.text("repo")?;
    let base_commit = row.text("base_commit")?;
    let reference = row.text("reference_commit")?;
    let source = row.text("src_dir")?;
    let name = repo.rsplit('/').next().unwrap_or_default().to_owned();
    let id = row.optional_text("instance_id")?.unwrap_or_else(|| repo.clone()).replace('/', "__");
    let mut test = row.object("test")?;
    let (command, folder) = (test.text("test_cmd")?, test.text("test_dir")?);
    let mut setup = row.object("setup")?;
    let mut instance = Instance {
        id,
        issue: Issue {
            problem: row
                .optional_text("problem_statement")?
                .unwrap_or_else(|| task(&source, &folder)),
            ..Issue::default()
        },
        workdir: Some(WORKDIR.to_owned()),
        gold: Some(Gold::Commit(reference.clone())),
        language: Some("python".to_owned()),
        limits: Limits { test_secs: Some(TEST_SECS), ..Limits::default() },
        restored: vec![folder.trim_end_matches('/').to_owned()],
        ..Instance::default()
    };
    instance.source.image = Some(format!("wentingzhao/{name}:v0").to_lowercase());
    instance.source.build = Some(RepoSpec {
        language: "py".to_owned(),
        python: setup.optional_word("python")?,
        requirement_files: setup.commands("packages")?,
        pip_packages: setup.commands("pip_packages")?,
        pre_install: setup.commands("pre_install")?,
        install: setup.commands("install")?,
        test_commands: vec![command.clone()],
        environment_commit: Some(reference),
        ..RepoSpec::default()
    });
    setup.harmless(&["specification"]);
    let script = format!(
        "#!/bin/bash\nset -uxo pipefail\ncd {WORKDIR}\nsource .venv/bin/activate\ngit status\n\
         {command} --json-report --json-report-file=report.json --continue-on-collection-errors {folder} > test_output.txt 2>&1\n\
         echo $? > pytest_exit_code.txt\n"
    );
    instance.verification =
        Some(Verification::PassedFraction { script, report: format!("{WORKDIR}/report.json") });
    // The ids of tests are data of its package; a module that cannot be collected hides its tests from the report.
    instance.unsupported.push(
        "`test_ids`: the row does not name its tests, so those of modules that cannot be imported are not counted".to_owned(),
    );
    row.harmless(&super::swe_bench::PROVENANCE);
    row.harmless(&[
        "original_repo",
        "patch",
        "test_patch",
        "hints_text",
        "FAIL_TO_PASS",
        "PASS_TO_PASS",
    ]);
    test.finish(&mut instance);
    setup.finish(&mut instance);
    (instance.repo, instance.base_commit) = (Some(repo), Some(base_commit));
    row.finish(&mut instance);
    Ok(instance)
}

/// What its own prompt says in short, for rows without a text.
fn task(source: &str, tests: &str) -> String {
    format!(
        "Functions and classes below `{source}` have signatures and documentation, and `pass` in place of their bodies. \
         Implement them so that the tests below `{tests}` pass. Change neither names nor signatures, nor the tests."
    )
}
