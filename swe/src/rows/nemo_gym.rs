//! NeMo Gym's rows: a request whose metadata have the row of another format in them.

use serde_json::{Map, Value};

use super::format::{Companions, read_row};
use crate::columns::Columns;
use crate::error::LoadError;
use crate::instance::Instance;

pub(super) fn read(mut row: Columns, companions: &Companions<'_>) -> Result<Instance, LoadError> {
    let place = row.place().clone();
    let mut params = row.object("responses_create_params")?;
    let mut info = params.optional_object("metadata")?;
    if !info.as_ref().is_some_and(|info| info.has("instance_dict")) {
        info = row.optional_object("verifier_metadata")?;
    }
    let Some(mut info) = info.filter(|info| info.has("instance_dict")) else {
        let detail =
            "expected metadata with `instance_dict`, the row of a software-engineering instance";
        return Err(params.wrong("metadata", detail));
    };
    let mut inner: Map<String, Value> = info.object("instance_dict")?.into_row();
    // What the metadata say of the instance as well is its own where it does not say it.
    for name in ["instance_id", "base_commit", "problem_statement", "repo"] {
        if let Some(value) = info.take(name)
            && !inner.contains_key(name)
        {
            inner.insert(name.to_owned(), value);
        }
    }
    if inner.contains_key("responses_create_params") {
        return Err(
            info.wrong("instance_dict", "expected the row of an instance, found a request again")
        );
    }
    let (format, mut instance) = read_row(inner, &place, companions)?;
    instance.format = format!(
        "nemo-gym/{}",
        if instance.format.is_empty() { format.name } else { &instance.format }
    );
    info.harmless(&[
        "dataset_name",
        "split",
        "golden_patch",
        "hints_text",
        "created_at",
        "version",
    ]);
    info.unsupported(
        "container_formatter",
        "containers of Apptainer are not used: the image of the instance is",
        &mut instance,
    );
    info.unsupported(
        "agent_prompt_override",
        "the scaffold says how an agent is asked",
        &mut instance,
    );
    info.finish(&mut instance);
    // How a model is asked is the run's.
    params.harmless(&[
        "input",
        "model",
        "tools",
        "tool_choice",
        "parallel_tool_calls",
        "temperature",
        "top_p",
        "max_output_tokens",
        "instructions",
    ]);
    params.finish(&mut instance);
    row.harmless(&[
        "agent_ref",
        "dataset",
        "uuid",
        "license",
        "verifier_metadata",
        "pass_rate",
        "pass_rate_total",
        "pass_rate_passed",
    ]);
    row.finish(&mut instance);
    Ok(instance)
}
