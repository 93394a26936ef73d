//! SWE-bench's rows: with a script of their own since version 5, before by a table of repositories.

use serde_json::Value;

use super::eval_script::ScriptParts;
use super::format::Companions;
use super::spec_table::{self, Known};
use crate::columns::{Columns, described};
use crate::error::{LoadError, list, shortened};
use crate::grade::{Edition, EvalType, Expected};
use crate::instance::{Gold, ImageAsset, Instance, Issue, ParserName, Verification};
use crate::log::{Origin, log_parser_of_repository};

/// Seconds that SWE-bench's harness gives the tests.
pub(super) const TEST_SECS: u64 = 1800;
/// Where its images have the repository.
pub(super) const WORKDIR: &str = "/testbed";

/// Columns that tell of where a row comes from and change nothing of the task.
pub(super) const PROVENANCE: [&str; 10] = [
    "created_at",
    "split",
    "datasets",
    "dataset",
    "pull_number",
    "issue_numbers",
    "commit_url",
    "license_name",
    "source_sha256",
    "__index_level_0__",
];

pub(super) fn read(mut row: Columns, _: &Companions<'_>) -> Result<Instance, LoadError> {
    let mut instance = start(&mut row)?;
    let version = row.optional_word("version")?;
    let images = images(&mut row)?;
    instance.issue.images = images.problem;
    row.harmless(&PROVENANCE);
    if images.is_in_patch {
        instance
            .unsupported
            .push("`image_assets.patch`: binary files of the solution are not fetched".to_owned());
    }
    let expected = expected(&mut row)?;
    let eval_script = row.optional_text("eval_script")?;
    let edition = if eval_script.is_some() { Edition::Five } else { Edition::Four };
    let eval_type = eval_type(&mut row, &instance, edition)?;
    let parser = row.optional_text("log_parser")?;
    let image = row.optional_text("image")?;
    instance.source.image =
        Some(image.unwrap_or_else(|| eval_image("swebench", &instance.id, "_1776_")));
    let setup_commit = row.optional_text("environment_setup_commit")?;
    // Held-out splits have neither tests nor a solution.
    let has_tests = !(expected.fail_to_pass.is_empty() && expected.pass_to_pass.is_empty());
    let mut judged = Judged { parser, expected, eval_type, has_tests };
    if let Some(script) = eval_script {
        let parser = judged.parser.take().ok_or_else(|| {
            row.wrong("log_parser", "expected the name of a parser beside `eval_script`")
        })?;
        if !images.test.is_empty() {
            // Version 5 lists the files that its task folders carry; rows alone have their addresses at most.
            let why = "`image_assets.test_patch`: binary files of the tests are not fetched";
            instance.unsupported.push(why.to_owned());
        }
        judged.put_into(&mut instance, Origin::SweBench, &parser, script);
    } else {
        by_table(&row, &mut instance, version.as_deref(), &images.test, judged)?;
    }
    if let Some(build) = &mut instance.source.build {
        build.environment_commit = setup_commit;
    } else if let Some((repo, version)) = instance.repo.as_deref().zip(version.as_deref())
        && let Known::Spec(spec) = spec_table::spec("swe-bench", repo, version)
    {
        let mut spec = spec.clone();
        spec.environment_commit = setup_commit;
        instance.source.build = Some(spec);
    }
    if !has_tests {
        instance.unsupported.push(
            "`FAIL_TO_PASS` and `PASS_TO_PASS`: they are empty, so that nothing tells what solves it".to_owned(),
        );
    }
    instance.language =
        instance.source.build.as_ref().map(|build| language(&build.language).to_owned());
    row.finish(&mut instance);
    Ok(instance)
}

/// What a row says of how its result is judged.
pub(super) struct Judged {
    pub(super) parser: Option<String>,
    pub(super) expected: Expected,
    pub(super) eval_type: EvalType,
    pub(super) has_tests: bool,
}

impl Judged {
    /// Puts it into an instance, or the reason why its result cannot be judged.
    pub(super) fn put_into(
        self,
        instance: &mut Instance,
        origin: Origin,
        parser: &str,
        script: String,
    ) {
        if !self.has_tests {
            return;
        }
        match ParserName::find(origin, parser) {
            Ok(parser) => {
                let (expected, eval_type) = (self.expected, self.eval_type);
                instance.verification =
                    Some(Verification::TestLog { script, parser, expected, eval_type });
            }
            Err(why) => instance.unsupported.push(format!("`log_parser`: {why}")),
        }
    }
}

/// How the result is judged, by what the table knows of the repository.
fn by_table(
    row: &Columns,
    instance: &mut Instance,
    version: Option<&str>,
    test_images: &[ImageAsset],
    mut judged: Judged,
) -> Result<(), LoadError> {
    let repo = instance.repo.clone().unwrap_or_default();
    let Some(version) = version else {
        let detail = "expected a version, by which rows without `eval_script` are tested";
        return Err(row.wrong("version", detail));
    };
    let spec = match spec_table::spec("swe-bench", &repo, version) {
        Known::Spec(spec) => spec,
        Known::NoVersion(known) => {
            let known: Vec<String> = known.into_iter().map(str::to_owned).collect();
            let (repo, version) = (shortened(&repo), shortened(version));
            let detail = format!("`{version}` is none of `{repo}`'s, which are {}", list(&known));
            return Err(row.wrong("version", detail));
        }
        Known::NoRepo => {
            let why = "nothing is known of how it is tested, and the row has no `eval_script`";
            instance.unsupported.push(format!("`repo`: {why}"));
            return Ok(());
        }
    };
    instance.source.build = Some(spec.clone());
    instance.limits.cpus = spec.nano_cpus.map(|nano| nano as f64 / 1e9);
    if !judged.has_tests {
        return Ok(());
    }
    let test_patch = instance.test_patch.as_deref().unwrap_or_default();
    let base_commit = instance.base_commit.as_deref().unwrap_or_default();
    let parts = ScriptParts { repo: &repo, version, base_commit, test_patch, test_images, spec };
    let script = parts.swe_bench().ok_or_else(|| {
        row.wrong("test_patch", "expected a diff whose files and hunks are as long as they say")
    })?;
    match judged.parser.take().or_else(|| log_parser_of_repository(&repo).map(str::to_owned)) {
        Some(parser) => judged.put_into(instance, Origin::SweBench4, &parser, script),
        None => instance.unsupported.push(format!("`repo`: the logs of `{repo}` have no parser")),
    }
    Ok(())
}

/// What all rows of this family have.
pub(super) fn start(row: &mut Columns) -> Result<Instance, LoadError> {
    let patch = row.optional_text("patch")?;
    Ok(Instance {
        id: row.text("instance_id")?,
        repo: Some(row.text("repo")?),
        base_commit: Some(row.text("base_commit")?),
        issue: Issue {
            problem: row.text("problem_statement")?,
            hints: row.optional_text("hints_text")?,
            ..Issue::default()
        },
        gold: patch.map(Gold::Patch),
        test_patch: row.optional_text("test_patch")?,
        workdir: Some(WORKDIR.to_owned()),
        difficulty: row.optional_text("difficulty")?,
        limits: crate::instance::Limits { test_secs: Some(TEST_SECS), ..Default::default() },
        ..Instance::default()
    })
}

/// The tests that have to pass.
fn expected(row: &mut Columns) -> Result<Expected, LoadError> {
    Ok(Expected {
        fail_to_pass: row.optional_list("FAIL_TO_PASS")?.unwrap_or_default(),
        pass_to_pass: row.optional_list("PASS_TO_PASS")?.unwrap_or_default(),
    })
}

/// What the log tells, by the row or by its repository.
fn eval_type(
    row: &mut Columns,
    instance: &Instance,
    edition: Edition,
) -> Result<EvalType, LoadError> {
    let repo = instance.repo.as_deref().unwrap_or_default();
    Ok(match row.choice("eval_type", &["pass_and_fail", "fail_only"])? {
        Some("fail_only") => EvalType::FailOnly,
        Some(_) => EvalType::PassAndFail,
        None => EvalType::of_repository(repo, edition),
    })
}

/// The images of a multimodal row.
#[derive(Default)]
struct Images {
    problem: Vec<ImageAsset>,
    test: Vec<ImageAsset>,
    is_in_patch: bool,
}

fn images(row: &mut Columns) -> Result<Images, LoadError> {
    let Some(mut assets) = row.optional_object("image_assets")? else {
        return Ok(Images::default());
    };
    let mut take = |name: &str| -> Result<Vec<ImageAsset>, LoadError> {
        let Some(value) = assets.take(name) else {
            return Ok(Vec::new());
        };
        let entries = match value {
            Value::Array(entries) => entries,
            other => {
                return Err(
                    assets.wrong(name, format!("expected a list, found {}", described(&other)))
                );
            }
        };
        entries
            .into_iter()
            .map(|entry| match entry {
                Value::String(url) => Ok(ImageAsset { url, path: None }),
                other => serde_json::from_value(other).map_err(|error| {
                    assets.wrong(
                        name,
                        format!("expected an address or an object of `path` and `url`: {error}"),
                    )
                }),
            })
            .collect()
    };
    let (problem, test, patch) = (take("problem_statement")?, take("test_patch")?, take("patch")?);
    Ok(Images { problem, test, is_in_patch: !patch.is_empty() })
}

/// The image of an instance, where others have published one for each.
pub(super) fn eval_image(namespace: &str, id: &str, instead_of_underscores: &str) -> String {
    let id = id.replace("__", instead_of_underscores).to_lowercase();
    format!("{namespace}/sweb.eval.x86_64.{id}:latest")
}

/// The name of a language by SWE-bench's short one.
pub(super) fn language(short: &str) -> &str {
    match short {
        "py" => "python",
        "js" => "javascript",
        "rs" => "rust",
        "rb" => "ruby",
        other => other,
    }
}
