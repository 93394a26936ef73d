//! What every task has: the time, and the end.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::tool::{AppTool, NoArguments, tool};

/// The tool that ends a task.
pub(crate) const FINISH: &str = "finish";

/// Arguments of `finish`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Finish {
    /// The answer to the question of the task and nothing else: a name, a date as 2031-03-14, a time as 09:30, an amount as 12.50, a number, or several of these with commas between. Left out where nothing was asked.
    pub(crate) answer: Option<String>,
}

pub(crate) const TOOLS: &[AppTool] = &[
    tool!(
        "now",
        Phone,
        "Tells the date, the time and whose applications these are.",
        NoArguments,
        |world, _| {
            Ok(format!("It is {}. You act for {} ({}).", world.now, world.owner, world.address))
        }
    ),
    // What was answered is looked at by whoever holds the task.
    tool!(
        "finish",
        Phone,
        "Ends the task, with the answer where a question was asked.",
        Finish,
        |_, _| { Ok("Done.".to_owned()) }
    ),
];
