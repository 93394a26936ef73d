//! Tasks of several stages: a column beside those of whatever format names its tests.

use super::format::Companions;
use crate::columns::Columns;
use crate::error::LoadError;
use crate::instance::{Gold, Instance, Stage, Verification};

/// The column. Its objects have `problem_statement`, `FAIL_TO_PASS`, `PASS_TO_PASS`, and where they say it `name`, `patch` (what
/// solves the stage behind those before it, as a diff) and `min_reward`.
pub(super) const COLUMN: &str = "stages";

/// Reads a row with what stands in its column of stages.
pub(super) fn read(
    mut row: Columns,
    companions: &Companions<'_>,
    format: fn(Columns, &Companions<'_>) -> Result<Instance, LoadError>,
) -> Result<Instance, LoadError> {
    let place = row.empty();
    let stages = row.objects(COLUMN, None)?;
    let mut instance = format(row, companions)?;
    if stages.is_empty() {
        return Ok(instance);
    }
    // What cannot be judged says so already; that of its stages cannot be either.
    let whole = instance.verification.take();
    let names_tests = whole.as_ref().is_none_or(|it| it.expected().is_some());
    if !names_tests {
        let detail =
            "expected a format whose rows name the tests that judge, by which each stage is judged";
        return Err(place.wrong(COLUMN, detail));
    }
    for (number, stage) in stages.into_iter().enumerate() {
        let stage = one(stage, number, whole.as_ref(), &mut instance)?;
        instance.stages.push(stage);
    }
    Ok(instance)
}

fn one(
    mut fields: Columns,
    number: usize,
    whole: Option<&Verification>,
    instance: &mut Instance,
) -> Result<Stage, LoadError> {
    let mut verification = whole.cloned();
    let (fail_to_pass, pass_to_pass) = (fields.list("FAIL_TO_PASS")?, fields.list("PASS_TO_PASS")?);
    if let Some(own) = verification.as_mut().and_then(Verification::expected_mut) {
        (own.fail_to_pass, own.pass_to_pass) = (fail_to_pass, pass_to_pass);
    }
    let name = fields.optional_text("name")?.unwrap_or_else(|| (number + 1).to_string());
    if instance.stages.iter().any(|other| other.name == name) {
        let detail = format!("expected names that differ, found `{name}` twice");
        return Err(fields.wrong("name", detail));
    }
    let mut stage = Stage {
        name,
        instruction: fields.text("problem_statement")?,
        verification,
        gold: fields.optional_text("patch")?.map(Gold::Patch),
        ..Stage::default()
    };
    if let Some(least) = fields.number("min_reward")? {
        stage.min_reward.insert("reward".to_owned(), least);
    }
    fields.finish(instance);
    Ok(stage)
}
