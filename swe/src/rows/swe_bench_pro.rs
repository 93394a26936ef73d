//! SWE-bench-Pro's rows, and NVIDIA's rows of its shape that have the scripts in them.

use super::format::Companions;
use super::swe_bench::{self, PROVENANCE};
use crate::columns::Columns;
use crate::error::{LoadError, shortened};
use crate::grade::Expected;
use crate::instance::{HiddenFile, HiddenFiles, Instance, Verification, check_relative};

/// Where its images have the repository.
const WORKDIR: &str = "/app";
/// Where scripts and their reports lie.
const WORKSPACE: &str = "/workspace";
/// Seconds that its harness gives a run.
const TEST_SECS: u64 = 3600;
/// Bytes of a script.
const MAX_SCRIPT_BYTES: u64 = 4 << 20;

pub(super) fn read(mut row: Columns, companions: &Companions<'_>) -> Result<Instance, LoadError> {
    let mut instance = swe_bench::start(&mut row)?;
    instance.workdir = Some(WORKDIR.to_owned());
    instance.limits.test_secs = Some(TEST_SECS);
    instance.issue.requirements = row.optional_text("requirements")?;
    instance.issue.interface = row.optional_text("interface")?;
    instance.language = row.optional_text("repo_language")?.map(|name| name.to_lowercase());
    instance.tags = row.optional_list("issue_categories")?.unwrap_or_default();
    row.harmless(&PROVENANCE);
    row.harmless(&[
        "issue_specificity",
        "environment_setup_commit",
        "version",
        "repo_name",
        "container_mem",
    ]);
    let tag = match row.optional_text("dockerhub_tag")? {
        Some(tag) => tag,
        None => tag_of(&instance.id, instance.repo.as_deref().unwrap_or_default()),
    };
    instance.source.image = Some(match row.optional_text("image_name")? {
        Some(image) => image,
        None => format!("jefzda/sweap-images:{tag}"),
    });
    // The image has been built from them.
    row.harmless(&["base_dockerfile", "instance_dockerfile"]);
    let expected = Expected {
        fail_to_pass: tests(&mut row, ["fail_to_pass_select", "fail_to_pass", "FAIL_TO_PASS"])?,
        pass_to_pass: tests(&mut row, ["pass_to_pass_select", "pass_to_pass", "PASS_TO_PASS"])?,
    };
    let files = row.list("selected_test_files_to_run")?;
    let before = row.optional_text("before_repo_set_cmd")?.unwrap_or_default();
    let before = before.trim().lines().next_back().unwrap_or_default().to_owned();
    match scripts(&mut row, companions, &instance.id)? {
        Some((run, parser)) => {
            let script = format!(
                "#!/bin/bash\ncd {WORKDIR}\n{before}\n\
                 bash {WORKSPACE}/run_script.sh {} > {WORKSPACE}/stdout.log 2> {WORKSPACE}/stderr.log\n\
                 python {WORKSPACE}/parser.py {WORKSPACE}/stdout.log {WORKSPACE}/stderr.log {WORKSPACE}/output.json\n",
                files.join(",")
            );
            let files = [("run_script.sh", run), ("parser.py", parser)];
            let files = files.map(|(name, text)| (name.to_owned(), HiddenFile::text(text))).into();
            instance.hidden = vec![HiddenFiles { into: WORKSPACE.to_owned(), files }];
            let report = format!("{WORKSPACE}/output.json");
            instance.verification = Some(Verification::TestReport { script, report, expected });
        }
        None => instance.unsupported.push(
            "`run_script.sh` and `parser.py`: the row does not have them; lay the published folder `run_scripts` \
             beside the file"
                .to_owned(),
        ),
    }
    row.finish(&mut instance);
    Ok(instance)
}

fn tests(row: &mut Columns, names: [&str; 3]) -> Result<Vec<String>, LoadError> {
    let mut found = None;
    for name in names {
        // All are taken, so that none of them is told as unknown.
        let list = row.optional_list(name)?;
        found = found.or(list);
    }
    found.ok_or_else(|| row.wrong(names[1], "expected a list of texts, and there is none"))
}

/// The two scripts of an instance: the row's own, or those of the folder beside it.
fn scripts(
    row: &mut Columns,
    companions: &Companions<'_>,
    id: &str,
) -> Result<Option<(String, String)>, LoadError> {
    let run = row.optional_text("run_script.sh")?;
    let parser = row.optional_text("parsing_script.py")?.or(row.optional_text("parser.py")?);
    if let (Some(run), Some(parser)) = (run, parser) {
        return Ok(Some((run, parser)));
    }
    let Some(folder) = companions.scripts else {
        return Ok(None);
    };
    let mut problems = Vec::new();
    check_relative("instance_id", id, &mut problems);
    if id.contains('/') || !problems.is_empty() {
        return Err(row.wrong(
            "instance_id",
            format!("`{}` is no name of a folder of scripts", shortened(id)),
        ));
    }
    let folder = folder.join(id);
    if !folder.is_dir() {
        return Ok(None);
    }
    let read = |name: &str| crate::folders::read_text(&folder.join(name), MAX_SCRIPT_BYTES);
    Ok(Some((read("run_script.sh")?, read("parser.py")?)))
}

/// The tag of an instance's image, for rows that do not have it.
fn tag_of(id: &str, repo: &str) -> String {
    const KEPT: &str =
        "instance_element-hq__element-web-ec0f940ef0e8e3b61078f145f34dc40d1938e6c5-vnan";
    let repo = repo.to_lowercase();
    let (owner, mut name) = repo.split_once('/').unwrap_or((&repo, &repo));
    let mut hash = id.replace("instance_", "");
    if id != KEPT {
        if owner == "element-hq" && name == "element-web" {
            name = "element";
        }
        if let Some(rest) = hash.strip_suffix("-vnan") {
            hash = rest.to_owned();
        }
    }
    // Tags have 128 bytes at most.
    format!("{owner}.{name}-{hash}").chars().take(128).collect()
}
