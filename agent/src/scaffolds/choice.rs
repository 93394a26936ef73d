//! Which scaffold is used.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use minijinja::{Environment, UndefinedBehavior, Value, context};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::json;
use spar_core::registry::RowError;
use spar_core::{StopCause, ToolCall, ToolResult, ToolSpec};
use spar_envs::ToolsetChoice;

use super::mini_config::{self, Configured};
use super::{Scaffold, r2e_checkout, scaffold_registry};
use crate::{ContextPolicyChoice, ParserChoice};

/// Which scaffold is used; in recipes its name, such as `"tools"`.
#[derive(Clone)]
pub struct ScaffoldChoice(Arc<Opened>);

struct Opened {
    name: String,
    /// Of a scaffold that was read from a file: what of that stands in records.
    content: Option<String>,
    scaffold: &'static Scaffold,
    toolset: Option<ToolsetChoice>,
    parser: ParserChoice,
    context_policy: ContextPolicyChoice,
    templates: Environment<'static>,
}

/// What templates are named by.
const SYSTEM: &str = "system";
const INSTANCE: &str = "instance";
const OBSERVATION: &str = "observation";
const FORMAT_ERROR: &str = "format_error";

impl ScaffoldChoice {
    /// The scaffold of this name, of `mini:FILE` as a file of mini-swe-agent's configuration has it, or of `r2e:FOLDER` as a
    /// checkout of R2E-Gym has it.
    ///
    /// # Errors
    ///
    /// [`RowError`] lists the names that there are, or tells all that is wrong with the row or the file: a template that is
    /// none or uses what it is not given, a parser that there is not or that cannot read the stop action.
    pub fn named(name: &str) -> Result<Self, RowError> {
        let configured = match name.split_once(':') {
            Some(("mini", file)) => Some(mini_config::read(Path::new(file))),
            Some(("r2e", folder)) => Some(r2e_checkout::read(Path::new(folder))),
            _ => None,
        };
        if let Some(configured) = configured {
            let Configured { scaffold, hash } =
                configured.map_err(|problem| RowError::Options {
                    what: "scaffold",
                    name: name.to_owned(),
                    problems: vec![problem],
                })?;
            return Self::of(name, scaffold, Some(hash));
        }
        let row = scaffold_registry().find(name)?;
        Self::of(row.name, row.open, None)
    }

    fn of(
        name: &str,
        scaffold: &'static Scaffold,
        content: Option<String>,
    ) -> Result<Self, RowError> {
        let mut problems = Vec::new();
        let toolset = toolset(scaffold).unwrap_or_else(|problem| {
            problems.push(problem);
            None
        });
        let templates = templates(scaffold, &mut problems);
        let parser = match ParserChoice::named(scaffold.parser) {
            Ok(parser) => parser,
            Err(error) => {
                problems.push(error.to_string());
                ParserChoice::default()
            }
        };
        let context_policy = context_policy(scaffold).unwrap_or_else(|problem| {
            problems.push(problem);
            ContextPolicyChoice::default()
        });
        problems.extend(scaffold.problems(&parser));
        if !problems.is_empty() {
            return Err(RowError::Options { what: "scaffold", name: name.to_owned(), problems });
        }
        let name = name.to_owned();
        let opened = Opened { name, content, scaffold, toolset, parser, context_policy, templates };
        Ok(Self(Arc::new(opened)))
    }

    /// The scaffold's name.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// The scaffold.
    pub fn scaffold(&self) -> &'static Scaffold {
        self.0.scaffold
    }

    /// The parser that reads actions, unless another one is chosen.
    pub fn parser(&self) -> &ParserChoice {
        &self.0.parser
    }

    /// What becomes of the conversation as it grows, unless another context policy is chosen.
    pub fn context_policy(&self) -> &ContextPolicyChoice {
        &self.0.context_policy
    }

    /// What is worked with in the place of an environment's own tools; absent where that is these.
    pub fn toolset(&self) -> Option<&ToolsetChoice> {
        self.0.toolset.as_ref()
    }

    /// Its name and version, for records; of one that was read from a file, the hash of that too.
    pub fn version(&self) -> String {
        let Opened { name, content, scaffold, .. } = &*self.0;
        match content {
            Some(hash) => format!("{name} {} {hash}", scaffold.version),
            None => format!("{name} {}", scaffold.version),
        }
    }

    /// The system's message; absent where the scaffold has none of its own.
    pub fn system(&self, instruction: &str, tools: &[ToolSpec]) -> Option<String> {
        self.render(
            SYSTEM,
            self.0.scaffold.system,
            || context! { instruction, tools => listed(tools) },
        )
    }

    /// What is shown first; absent where that is what the environment shows.
    pub(crate) fn instance(&self, observation: &str, tools: &[ToolSpec]) -> Option<String> {
        self.render(
            INSTANCE,
            self.0.scaffold.instance,
            || context! { observation, tools => listed(tools) },
        )
    }

    /// What is shown after an action; absent where that is what the environment shows.
    pub(crate) fn observation(&self, observation: &str, results: &[ToolResult]) -> Option<String> {
        self.render(
            OBSERVATION,
            self.0.scaffold.observation,
            || context! { observation, results => told(results) },
        )
    }

    /// What is shown where no action could be read; absent where it is told as it is without a scaffold.
    pub(crate) fn format_error(&self, unread: &Unread<'_>) -> Option<String> {
        self.render(FORMAT_ERROR, self.0.scaffold.format_error, || unread.values())
    }

    fn render(
        &self,
        name: &str,
        source: Option<&str>,
        values: impl FnOnce() -> Value,
    ) -> Option<String> {
        source?;
        let template = self.0.templates.get_template(name);
        let text = template.and_then(|template| template.render(values()));
        Some(text.expect("it was rendered with values of the same types when it was opened"))
    }
}

/// An answer in which no action could be read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Unread<'a> {
    /// Why.
    pub(crate) reason: &'a str,
    /// What could be one, where there may be exactly one.
    pub(crate) actions: &'a [&'a str],
    /// How the answer ended.
    pub(crate) stop: StopCause,
    /// Whether it called tools.
    pub(crate) has_tool_calls: bool,
}

impl Unread<'_> {
    fn values(&self) -> Value {
        let Self { reason, actions, stop, has_tool_calls } = *self;
        let finish_reason = match stop {
            StopCause::EndOfTurn | StopCause::StopSequence => Value::from("stop"),
            StopCause::Length => Value::from("length"),
            StopCause::ToolCalls => Value::from("tool_calls"),
            StopCause::Filtered => Value::from("content_filter"),
            StopCause::Unknown => Value::UNDEFINED,
        };
        let error = format!("{}.", reason.trim_end_matches('.'));
        let actions: Vec<Value> = actions.iter().map(|action| Value::from(*action)).collect();
        context! { reason, error, actions, finish_reason, has_tool_calls }
    }
}

/// The toolset that a scaffold names.
fn toolset(scaffold: &Scaffold) -> Result<Option<ToolsetChoice>, String> {
    let Some(written) = scaffold.toolset else { return Ok(None) };
    serde_json::from_str(written).map(Some).map_err(|error| format!("its toolset: {error}"))
}

/// The context policy that a scaffold names.
fn context_policy(scaffold: &Scaffold) -> Result<ContextPolicyChoice, String> {
    let Some(written) = scaffold.context_policy else { return Ok(ContextPolicyChoice::default()) };
    serde_json::from_str(written).map_err(|error| format!("its context policy: {error}"))
}

fn listed(tools: &[ToolSpec]) -> Value {
    let tool = |tool: &ToolSpec| {
        let (name, description) = (tool.name.as_str(), tool.description.as_str());
        context! { name, description, parameters => tool.parameters.to_string() }
    };
    tools.iter().map(tool).collect::<Vec<_>>().into()
}

fn told(results: &[ToolResult]) -> Value {
    let result = |result: &ToolResult| {
        context! { text => result.text.as_str(), is_error => result.is_error }
    };
    results.iter().map(result).collect::<Vec<_>>().into()
}

/// The templates of a scaffold, each of which was tried on values such as it will be given.
fn templates(scaffold: &'static Scaffold, problems: &mut Vec<String>) -> Environment<'static> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    let tool = ToolSpec::new("tool", "A tool.", json!({ "type": "object", "properties": {} }));
    let tools = || listed(std::slice::from_ref(&tool));
    let call = ToolCall::new("tool", serde_json::Map::new());
    let text = "text";
    let result = || told(&[ToolResult::new(&call, "done")]);
    let none = || Value::from(Vec::<Value>::new());
    let tried: [(&str, Option<&str>, Vec<Value>); 4] = [
        (
            SYSTEM,
            scaffold.system,
            vec![
                context! { instruction => text, tools => tools() },
                context! { instruction => text, tools => none() },
            ],
        ),
        (
            INSTANCE,
            scaffold.instance,
            vec![
                context! { observation => text, tools => tools() },
                context! { observation => text, tools => none() },
            ],
        ),
        (
            OBSERVATION,
            scaffold.observation,
            vec![
                context! { observation => text, results => result() },
                context! { observation => text, results => none() },
            ],
        ),
        (
            FORMAT_ERROR,
            scaffold.format_error,
            [StopCause::EndOfTurn, StopCause::Length, StopCause::ToolCalls, StopCause::Unknown]
                .map(|stop| {
                    Unread { reason: text, actions: &[], stop, has_tool_calls: false }.values()
                })
                .into(),
        ),
    ];
    for (name, source, values) in tried {
        let Some(source) = source else { continue };
        if let Err(error) = environment.add_template(name, source) {
            problems.push(format!("its `{name}` is no template: {error}"));
            continue;
        }
        let rendered = values
            .into_iter()
            .try_for_each(|values| environment.get_template(name)?.render(values).map(drop));
        if let Err(error) = rendered {
            problems.push(format!("its `{name}` cannot be written: {error}"));
        }
    }
    environment
}

impl Default for ScaffoldChoice {
    /// `plain`.
    fn default() -> Self {
        Self::named("plain").expect("it is in the table")
    }
}

impl PartialEq for ScaffoldChoice {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl fmt::Debug for ScaffoldChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Serialize for ScaffoldChoice {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for ScaffoldChoice {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        Self::named(&name).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_react_describe_the_tools_there_are() {
        let react = ScaffoldChoice::named("react").unwrap();
        let tool = ToolSpec::new("add", "Adds.", json!({ "type": "object" }));
        let with = react.system("Do it.", &[tool]).unwrap();
        assert!(
            with.starts_with("Do it.\n\nThese tools can be called:\nadd: Adds. Its input: {"),
            "{with}"
        );
        assert!(with.contains("Action Input:"));
        let without = react.system("Do it.", &[]).unwrap();
        assert!(!without.contains("Action Input:") && without.contains("Action: what you do"));
        let call = ToolCall::new("add", serde_json::Map::new());
        let result = ToolResult::new(&call, "3");
        assert_eq!(react.observation("", &[result]).unwrap(), "Observation: 3\n");
        let too_short = Unread {
            reason: "too short",
            actions: &[],
            stop: StopCause::EndOfTurn,
            has_tool_calls: false,
        };
        assert!(react.format_error(&too_short).unwrap().contains("read: too short."));
        assert_eq!(ScaffoldChoice::default().system("Do it.", &[]), None);
    }

    #[test]
    fn a_scaffold_may_name_a_context_policy() {
        let of = |written| {
            context_policy(&Scaffold { context_policy: written, ..Scaffold::PLAIN })
                .map(|policy| policy.name().to_owned())
        };
        assert_eq!(of(None).unwrap(), "keep_all");
        let elides = r#"{"kind":"elide_observations","keep_last":2}"#;
        assert_eq!(of(Some(elides)).unwrap(), "elide_observations");
        assert!(of(Some(r#"{"kind":"elide"}"#)).unwrap_err().contains("`elide_observations`"));
        assert!(of(Some(r#"{"kind":"window","keep":0}"#)).unwrap_err().contains("keep is 0"));
    }

    #[test]
    fn templates_that_use_what_they_are_not_given_are_refused() {
        let wrong: &'static Scaffold = Box::leak(Box::new(Scaffold {
            system: Some("{{ nobody }}"),
            observation: Some("{% if %}"),
            ..Scaffold::PLAIN
        }));
        let mut problems = Vec::new();
        templates(wrong, &mut problems);
        assert!(problems[0].contains("`system` cannot be written"), "{problems:?}");
        assert!(problems[1].contains("`observation` is no template"), "{problems:?}");
    }
}
