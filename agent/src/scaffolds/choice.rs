//! Which scaffold is used.

use std::fmt;
use std::sync::Arc;

use minijinja::{Environment, UndefinedBehavior, Value, context};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::json;
use spar_core::registry::RowError;
use spar_core::{ToolCall, ToolResult, ToolSpec};

use super::{Scaffold, scaffold_registry};
use crate::{ContextPolicyChoice, ParserChoice};

/// Which scaffold is used; in recipes its name, such as `"tools"`.
#[derive(Clone)]
pub struct ScaffoldChoice(Arc<Opened>);

struct Opened {
    name: String,
    scaffold: &'static Scaffold,
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
    /// The scaffold of this name.
    ///
    /// # Errors
    ///
    /// [`RowError`] lists the names that there are, or tells all that is wrong with the row: a template that is none
    /// or uses what it is not given, a parser that there is not or that cannot read the stop action.
    pub fn named(name: &str) -> Result<Self, RowError> {
        let row = scaffold_registry().find(name)?;
        let refuse = |problems: Vec<String>| RowError::refuse("scaffold", row.name, problems);
        let scaffold = row.open;
        let mut problems = Vec::new();
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
        refuse(problems)?;
        let name = row.name.to_owned();
        Ok(Self(Arc::new(Opened { name, scaffold, parser, context_policy, templates })))
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

    /// Its name and version, for records.
    pub fn version(&self) -> String {
        format!("{} {}", self.0.name, self.0.scaffold.version)
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
    pub(crate) fn format_error(&self, reason: &str) -> Option<String> {
        self.render(FORMAT_ERROR, self.0.scaffold.format_error, || context! { reason })
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
    let result = || told(&[ToolResult::new(&call, "done")]);
    let (text, none) = ("text", || Value::from(Vec::<Value>::new()));
    let tried = [
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
        (FORMAT_ERROR, scaffold.format_error, vec![context! { reason => text }]),
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
        assert!(react.format_error("too short").unwrap().contains("read: too short."));
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
