//! The tools that have a name.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use spar_core::registry::{Axis, DescribedDetail, Given, Options, Row, Table};
use spar_core::{Seed, ToolSpec};

use super::{Tool, calculator, interpreter, notes, search, wasm};
use crate::{EnvironmentError, Resources, mcp, sql};

/// What opens a tool that has a name, and what is known of it before.
#[derive(Debug, Clone, Copy)]
pub struct NamedTool {
    /// Whether it works in a sandbox.
    pub needs_sandbox: bool,
    /// What it offers with its default options; empty where that depends on its options.
    pub specs: fn() -> Vec<ToolSpec>,
    /// Opens it.
    pub open: OpenTool,
}

/// Opens a tool with options, for an episode.
pub type OpenTool = fn(&Given<'_>, &ToolPlace<'_>) -> Result<Box<dyn Tool>, EnvironmentError>;

/// A tool that has a name.
pub type ToolRow = Row<NamedTool>;

/// Where a tool is opened.
#[derive(Debug, Clone, Copy)]
pub struct ToolPlace<'a> {
    /// The id of the task, for messages.
    pub task: &'a str,
    /// Where its random choices start: another for every episode, and for every tool of a task.
    pub seed: Seed,
    /// What it may need of the machine.
    pub resources: &'a Resources,
}

const AXIS: Axis =
    Axis { name: "tools", what: "tool", about: "What tasks offer to policies to call." };

const ROWS: &[ToolRow] = &[
    calculator::ROW,
    notes::ROW,
    search::ROW,
    sql::QUERY_ROW,
    sql::SCHEMA_ROW,
    wasm::ROW,
    mcp::ROW,
    interpreter::PYTHON,
    interpreter::JAVASCRIPT,
];

static TABLE: Table<NamedTool> = Table::with_details(AXIS, ROWS, |tool| {
    let specs = (tool.specs)().into_iter();
    specs
        .map(|spec| DescribedDetail::new("offers", spec.to_function()["function"].clone()))
        .collect()
});

/// All tools that have a name; a new one is one file and one row here.
pub fn tool_registry() -> &'static Table<NamedTool> {
    &TABLE
}

/// A tool as a task names it: its name, or a table of its name as `tool`, its options, and `prefix`.
///
/// ```
/// use spar_envs::tools::ToolChoice;
///
/// let written = r#"["calculator", { "tool": "notes", "prefix": "my" }]"#;
/// let [calculator, notes]: [ToolChoice; 2] = serde_json::from_str(written)?;
/// assert_eq!((calculator.tool.as_str(), calculator.prefix), ("calculator", None));
/// assert_eq!((notes.tool.as_str(), notes.prefix.as_deref()), ("notes", Some("my")));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct ToolChoice {
    /// The row.
    pub tool: String,
    /// What stands before the names of what it offers, and `_` behind it; absent: nothing, unless another tool of the task
    /// offers the same name.
    pub prefix: Option<String>,
    /// Its options.
    pub options: Options,
}

impl ToolChoice {
    /// A tool with its defaults.
    pub fn named(tool: impl Into<String>) -> Self {
        Self { tool: tool.into(), prefix: None, options: Options::new() }
    }

    /// What it is called in messages, and before names that others offer as well: its prefix, the `name` that it was given, or
    /// its row.
    pub fn label(&self) -> String {
        let name = self.options.get("name").and_then(Value::as_str);
        self.prefix.as_deref().or(name).unwrap_or(&self.tool).to_owned()
    }

    /// All that is wrong with it; empty where nothing is.
    pub fn problems(&self) -> Vec<String> {
        match tool_registry().choose(&self.tool, &self.options) {
            Ok(_) => Vec::new(),
            Err(error) => vec![error.to_string()],
        }
    }

    /// Opens it.
    ///
    /// # Errors
    ///
    /// [`EnvironmentError`] when there is no such tool, its options are wrong, or it lacks what it needs.
    pub fn open(&self, place: &ToolPlace<'_>) -> Result<Box<dyn Tool>, EnvironmentError> {
        let (row, given) = tool_registry().choose(&self.tool, &self.options)?;
        (row.open.open)(&given, place)
    }
}

impl<'de> Deserialize<'de> for ToolChoice {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut options = match Value::deserialize(deserializer)? {
            Value::String(tool) => return Ok(Self::named(tool)),
            Value::Object(options) => options,
            _ => {
                return Err(D::Error::custom(
                    "a tool is a name, or a table with the name as `tool`",
                ));
            }
        };
        let mut text = |name: &str| match options.shift_remove(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(D::Error::custom(format!("`{name}` of a tool is to be a text"))),
        };
        let tool = text("tool")?.ok_or_else(|| D::Error::missing_field("tool"))?;
        Ok(Self { tool, prefix: text("prefix")?, options })
    }
}

impl Serialize for ToolChoice {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.prefix.is_none() && self.options.is_empty() {
            return serializer.serialize_str(&self.tool);
        }
        let mut written = Options::new();
        written.insert("tool".to_owned(), self.tool.as_str().into());
        written.extend(self.prefix.as_ref().map(|it| ("prefix".to_owned(), it.as_str().into())));
        written.extend(self.options.clone());
        written.serialize(serializer)
    }
}
