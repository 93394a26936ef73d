//! Task folders of SWE-bench 5: its rows, with the long columns in files of their own.

use std::path::Path;

use serde_json::Value;

use super::files;
use crate::error::{LoadError, shortened};
use crate::instance::{Dockerfile, Instance};
use crate::rows;

/// Columns that are files.
const FILES: [(&str, &str); 4] = [
    ("patch", "gold.patch"),
    ("test_patch", "test.patch"),
    ("eval_script", "eval.sh"),
    ("problem_statement", "problem_statement.md"),
];

pub(super) fn matches(folder: &Path) -> bool {
    folder.join("task.yaml").is_file() && folder.join("tests.json").is_file()
}

pub(super) fn read(folder: &Path) -> Result<Instance, LoadError> {
    let mut fields = files::read_yaml(&folder.join("task.yaml"))?;
    for (column, name) in FILES {
        fields.put(column, files::read_text(&folder.join(name), files::MAX_TEXT_BYTES)?);
    }
    if let Some(hints) = files::optional_text(&folder.join("hints.md"))? {
        fields.put("hints_text", hints);
    }
    let mut tests = files::read_json(&folder.join("tests.json"))?;
    for column in ["FAIL_TO_PASS", "PASS_TO_PASS"] {
        let names: Vec<Value> = tests.list(column)?.into_iter().map(Value::String).collect();
        fields.put(column, names);
    }
    let name = files::folder_name(folder);
    if let Some(id) = fields.optional_text("instance_id")?
        && id != name
    {
        let detail =
            format!("expected the name of its folder, `{name}`, found `{}`", shortened(&id));
        return Err(fields.wrong("instance_id", detail));
    }
    fields.put("instance_id", name);
    let split = fields.optional_text("split")?;
    let mut instance = rows::read_swe_bench(fields)?;
    // Splits that are not published stay in the tree; whoever wants the published ones alone tells them by this.
    instance.tags.extend(split);
    tests.finish(&mut instance);
    let dockerfile = folder.join("Dockerfile");
    if let Some(text) = files::optional_text(&dockerfile)? {
        instance.source.dockerfile =
            Some(Dockerfile { text, context: Some(files::absolute(folder)?) });
    }
    let workdir = instance.workdir.clone().unwrap_or_else(|| "/testbed".to_owned());
    instance.hidden.extend(files::collect(folder, &folder.join("test_assets"), &workdir)?);
    // The files that a list of addresses stands for are here.
    if !instance.hidden.is_empty() {
        instance.unsupported.retain(|text| !text.starts_with("`image_assets.test_patch`"));
    }
    Ok(instance)
}
