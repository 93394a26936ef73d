//! What can be called.

use std::sync::{Arc, OnceLock};

use serde_json::{Map, Value};
use spar_core::ToolSpec;
use spar_core::registry::known_names;

use crate::arguments::{Outcome, clipped};
use crate::{App, World, calendar, contacts, files, mail, payments, phone};

/// Characters of a result.
const MOST_SHOWN: usize = 4_000;

/// A tool: a name, what it is for, the type of its arguments, and what it does to the world.
#[derive(Debug, Clone, Copy)]
pub struct AppTool {
    /// What it is called by.
    pub name: &'static str,
    /// The application it is of.
    pub app: App,
    /// What it does, for whoever may call it.
    pub about: &'static str,
    /// The JSON schema of its arguments.
    pub(crate) schema: fn() -> Value,
    /// Carries out a call. An error has changed nothing.
    pub(crate) run: fn(&mut World, &Map<String, Value>) -> Outcome,
}

/// Declares a tool: name, application, description, arguments, operation.
macro_rules! tool {
    ($name:literal, $app:ident, $about:literal, $arguments:ty, $run:expr) => {
        $crate::tool::AppTool {
            name: $name,
            app: $crate::App::$app,
            about: $about,
            schema: $crate::arguments::schema_of::<$arguments>,
            run: |world, arguments| {
                let run: fn(&mut $crate::World, $arguments) -> $crate::arguments::Outcome = $run;
                run(world, $crate::arguments::read::<$arguments>($name, arguments)?)
            },
        }
    };
}
pub(crate) use tool;

/// Arguments of a tool that takes none.
#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NoArguments {}

/// All tools, application by application.
pub fn tools() -> &'static [AppTool] {
    static ALL: OnceLock<Vec<AppTool>> = OnceLock::new();
    ALL.get_or_init(|| {
        [contacts::TOOLS, mail::TOOLS, calendar::TOOLS, files::TOOLS, payments::TOOLS, phone::TOOLS]
            .concat()
    })
}

/// All tools as they are offered, in the order of [`tools`].
pub fn specs() -> &'static [ToolSpec] {
    static ALL: OnceLock<Arc<[ToolSpec]>> = OnceLock::new();
    ALL.get_or_init(|| {
        let spec = |tool: &AppTool| ToolSpec::new(tool.name, tool.about, (tool.schema)());
        tools().iter().map(spec).collect()
    })
}

/// The place of a tool among [`tools`].
pub(crate) fn place(name: &str) -> Option<usize> {
    tools().iter().position(|tool| tool.name == name)
}

/// Calls a tool; a call that fails changes nothing.
///
/// # Errors
///
/// What the policy reads where the call could not be carried out.
pub fn call(world: &mut World, name: &str, arguments: &Map<String, Value>) -> Outcome {
    let Some(tool) = place(name).map(|place| &tools()[place]) else {
        let name = clipped(name, 64);
        let known = known_names(&name, tools().iter().map(|tool| tool.name));
        return Err(format!("There is no tool `{name}`; known are {known}."));
    };
    let mut after = world.clone();
    let text = (tool.run)(&mut after, arguments)?;
    *world = after;
    Ok(clipped(&text, MOST_SHOWN))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_tool_is_described_and_named_after_its_application() {
        let names: BTreeSet<&str> = tools().iter().map(|tool| tool.name).collect();
        assert_eq!(names.len(), tools().len(), "no name stands twice");
        assert!((55..=75).contains(&names.len()), "{}", names.len());
        for (tool, spec) in tools().iter().zip(specs()) {
            spec.validate().unwrap();
            assert!(tool.about.ends_with('.'), "{}", tool.name);
            assert!(tool.name.starts_with(tool.app.prefix()), "{}", tool.name);
            let properties = spec.parameters["properties"].as_object().unwrap();
            for (name, schema) in properties {
                let described = schema["description"].as_str().unwrap_or_default();
                assert!(described.ends_with('.'), "{}: {name}: {schema}", tool.name);
                assert!(schema["type"].is_string(), "{}: {name}: {schema}", tool.name);
            }
        }
    }
}
