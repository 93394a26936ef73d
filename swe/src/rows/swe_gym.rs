//! SWE-Gym's rows: SWE-bench's first ones for other repositories, tested by its own fork.

use super::eval_script::ScriptParts;
use super::format::Companions;
use super::spec_table::{self, Known};
use super::swe_bench::{self, Judged, PROVENANCE};
use crate::columns::Columns;
use crate::error::{LoadError, shortened};
use crate::grade::{EvalType, Expected};
use crate::instance::Instance;
use crate::log::Origin;

pub(super) fn read(mut row: Columns, companions: &Companions<'_>) -> Result<Instance, LoadError> {
    let repo = row.text("repo")?;
    let version = row.optional_word("version")?.unwrap_or_default();
    let known = match spec_table::spec("swe-gym", &repo.to_lowercase(), &version) {
        // Validation rows of SWE-bench itself have the same columns.
        Known::NoRepo => spec_table::spec("swe-bench", &repo, &version),
        known => known,
    };
    let is_own =
        !matches!(spec_table::spec("swe-gym", &repo.to_lowercase(), &version), Known::NoRepo);
    row.put("repo", repo);
    row.put("version", version.clone());
    if !is_own && matches!(known, Known::Spec(..)) {
        let mut instance = swe_bench::read(row, companions)?;
        "swe-bench".clone_into(&mut instance.format);
        return Ok(instance);
    }
    let mut instance = swe_bench::start(&mut row)?;
    row.harmless(&PROVENANCE);
    row.harmless(&["version", "FAIL_TO_FAIL", "PASS_TO_FAIL"]);
    instance.source.image = Some(swe_bench::eval_image("xingyaoww", &instance.id, "_s_"));
    instance.language = Some("python".to_owned());
    let expected = Expected {
        fail_to_pass: row.list("FAIL_TO_PASS")?,
        pass_to_pass: row.optional_list("PASS_TO_PASS")?.unwrap_or_default(),
    };
    match known {
        Known::Spec(spec) => {
            instance.source.build = Some(spec.clone());
            let repo = instance.repo.as_deref().unwrap_or_default().to_lowercase();
            let script = ScriptParts {
                repo: &repo,
                version: &version,
                base_commit: instance.base_commit.as_deref().unwrap_or_default(),
                test_patch: instance.test_patch.as_deref().unwrap_or_default(),
                test_images: &[],
                spec,
            }
            .swe_gym();
            // Its fork reads pydantic's logs in a way of its own.
            let parser = match repo.as_str() {
                "pydantic/pydantic" => "parse_log_pytest_pydantic",
                _ => "parse_log_pytest",
            };
            let judged = Judged {
                parser: None,
                expected,
                eval_type: EvalType::PassAndFail,
                has_tests: true,
            };
            judged.put_into(&mut instance, Origin::SweBench4, parser, script);
        }
        Known::NoRepo | Known::NoVersion(_) => instance.unsupported.push(format!(
            "`repo` and `version`: nothing is known of how `{}` is tested in version `{}`",
            shortened(instance.repo.as_deref().unwrap_or_default()),
            shortened(&version)
        )),
    }
    row.finish(&mut instance);
    Ok(instance)
}
