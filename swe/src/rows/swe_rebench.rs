//! SWE-rebench's rows, which say how they are built and tested: for conda in its first version, for images in its second.

use super::eval_script::{HEREDOC, ScriptParts};
use super::format::Companions;
use super::swe_bench::{self, Judged, PROVENANCE};
use crate::columns::Columns;
use crate::error::LoadError;
use crate::grade::{EvalType, Expected};
use crate::instance::{DockerSpecs, Instance, RepoSpec};
use crate::log::Origin;

pub(super) fn read(mut row: Columns, _: &Companions<'_>) -> Result<Instance, LoadError> {
    let mut instance = swe_bench::start(&mut row)?;
    instance.language = row.optional_text("language")?.map(|name| name.to_lowercase());
    instance.issue.interface = row.optional_text("interface")?;
    let is_second = instance.language.is_some() || row.has("pr_description");
    row.harmless(&PROVENANCE);
    // Failures that stay failures, and what models said of the row.
    row.harmless(&[
        "pr_description",
        "meta",
        "FAIL_TO_FAIL",
        "PASS_TO_FAIL",
        "version",
        "llm_metadata",
    ]);
    let image = row.optional_text("image_name")?;
    let image = image.or(row.optional_text("docker_image")?);
    let expected = Expected {
        fail_to_pass: row.list("FAIL_TO_PASS")?,
        pass_to_pass: row.list("PASS_TO_PASS")?,
    };
    let mut config = row.object("install_config")?;
    let parser = config.optional_text("log_parser")?;
    let env = config.take("env_vars");
    let mut spec = spec(&mut config)?;
    config.finish(&mut instance);
    spec.requirements = row.optional_text("requirements")?;
    spec.environment = row.optional_text("environment")?;
    spec.environment_commit = row.optional_text("environment_setup_commit")?;
    if let Some(env) = env {
        instance.env = serde_json::from_value(env).map_err(|error| {
            row.wrong("install_config.env_vars", format!("expected texts by name: {error}"))
        })?;
    }
    let parser = parser.ok_or_else(|| {
        row.wrong("install_config.log_parser", "expected the name of a parser, and there is none")
    })?;
    if spec.test_commands.is_empty() {
        return Err(row.wrong("install_config.test_cmd", "expected a command, and there is none"));
    }
    let script = match is_second {
        true => second_script(&mut instance, &spec),
        false => {
            spec.language = "py".to_owned();
            instance.language = Some("python".to_owned());
            first_script(&row, &instance, &spec)?
        }
    };
    instance.source.image =
        Some(image.unwrap_or_else(|| swe_bench::eval_image("swerebench", &instance.id, "_1776_")));
    instance.source.build = Some(spec);
    let judged =
        Judged { parser: None, expected, eval_type: EvalType::PassAndFail, has_tests: true };
    let origin = if is_second { Origin::SweRebench } else { Origin::SweBench4 };
    judged.put_into(&mut instance, origin, &parser, script);
    row.finish(&mut instance);
    Ok(instance)
}

fn spec(config: &mut Columns) -> Result<RepoSpec, LoadError> {
    let docker = match config.optional_object("docker_specs")? {
        Some(specs) => DockerSpecs(specs.into_row().into_iter().collect()),
        None => DockerSpecs::default(),
    };
    Ok(RepoSpec {
        python: config.optional_word("python")?,
        packages: config.optional_text("packages")?,
        no_use_env: config.flag("no_use_env")?,
        requirement_files: config.optional_list("reqs_path")?.unwrap_or_default(),
        environment_files: config.optional_list("env_yml_path")?.unwrap_or_default(),
        pip_packages: config.optional_list("pip_packages")?.unwrap_or_default(),
        pre_install: config.commands("pre_install")?,
        install: config.commands("install")?,
        eval_commands: config.commands("eval_commands")?,
        test_commands: config.commands("test_cmd")?,
        docker,
        base_image: config.optional_text("base_image_name")?,
        ..RepoSpec::default()
    })
}

/// The first version is tested as SWE-bench is, by what the row says of its repository.
fn first_script(row: &Columns, instance: &Instance, spec: &RepoSpec) -> Result<String, LoadError> {
    let parts = ScriptParts {
        repo: instance.repo.as_deref().unwrap_or_default(),
        version: "",
        base_commit: instance.base_commit.as_deref().unwrap_or_default(),
        test_patch: instance.test_patch.as_deref().unwrap_or_default(),
        test_images: &[],
        spec,
    };
    parts.swe_bench().ok_or_else(|| {
        row.wrong("test_patch", "expected a diff whose files and hunks are as long as they say")
    })
}

/// The second version has the repository in a folder of its name, applies the tests as a patch and runs commands.
fn second_script(instance: &mut Instance, spec: &RepoSpec) -> String {
    let repo = instance.repo.as_deref().unwrap_or_default();
    instance.workdir = Some(format!("/{}", repo.rsplit('/').next().unwrap_or_default()));
    let test_patch = instance.test_patch.as_deref().unwrap_or_default();
    // With `--recount` an empty line behind the last hunk is one of its lines.
    let end = if test_patch.ends_with('\n') { "" } else { "\n" };
    let apply = match test_patch.is_empty() {
        true => String::new(),
        false => format!(
            "git apply -v --3way --recount --ignore-space-change --whitespace=nowarn - <<'{HEREDOC}'\n{test_patch}{end}{HEREDOC}\n"
        ),
    };
    format!("#!/bin/bash\nset -e\n{apply}{}\n", spec.test_commands.join("\n"))
}
