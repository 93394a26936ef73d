//! Databases as tools for any environment that offers tools.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::registry::{NamedOptions, OptionSet, Row};
use spar_sql::{Database, Descriptions, DomainSet, generate_database};

use super::command::{QUERY, QueryCall, SCHEMA, SchemaCall};
use super::environment::{MOST_BYTES, MOST_ROWS, shown_limits, told};
use super::problem::shown_schema;
use crate::EnvironmentError;
use crate::tools::{FunctionTool, NamedTool, ToolOutput, ToolPlace, ToolRow, spec_of};

/// The tool that tries queries.
pub(crate) const QUERY_ROW: ToolRow = Row {
    name: QUERY,
    about: "Runs a query on a database that is only read, and shows its first rows.",
    source: "own",
    formula: "",
    options: OptionSet::of::<DatabaseOptions>(),
    open: NamedTool {
        needs_sandbox: false,
        specs: || vec![spec_of::<QueryCall>(QUERY)],
        open: |given, place| {
            let database = given.read::<DatabaseOptions>()?.open(place)?;
            Ok(Box::new(FunctionTool::blocking(QUERY, database, |database, QueryCall { sql }| {
                let found = database.query(&sql, &shown_limits()).map_err(|error| told(&error))?;
                Ok(ToolOutput::from(found.to_text(MOST_ROWS, MOST_BYTES)))
            })))
        },
    },
};

/// The tool that shows the tables.
pub(crate) const SCHEMA_ROW: ToolRow = Row {
    name: SCHEMA,
    about: "Shows the tables of a database.",
    source: "own",
    formula: "",
    options: OptionSet::of::<DatabaseOptions>(),
    open: NamedTool {
        needs_sandbox: false,
        specs: || vec![spec_of::<SchemaCall>(SCHEMA)],
        open: |given, place| {
            let database = given.read::<DatabaseOptions>()?.open(place)?;
            Ok(Box::new(FunctionTool::new(SCHEMA, database, |database, SchemaCall { table }| {
                let text = shown_schema(database, &Descriptions::new(), table.as_deref())?;
                Ok(ToolOutput::from(text))
            })))
        },
    },
};

/// Options of the tools `sql_query` and `sql_schema`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct DatabaseOptions {
    /// The file of the database. Default absent: a generated one.
    database: Option<PathBuf>,
    /// Which generated one, where no file is named: a number that tells it apart from others. Default 0.
    number: u64,
}

impl NamedOptions for DatabaseOptions {
    fn problems(&self) -> Vec<String> {
        let is_ignored = self.database.is_some() && self.number != 0;
        let problem =
            "number is set, which tells generated databases apart, and database is a file";
        is_ignored.then(|| problem.to_owned()).into_iter().collect()
    }
}

impl DatabaseOptions {
    fn open(&self, place: &ToolPlace<'_>) -> Result<Database, EnvironmentError> {
        let opened = match &self.database {
            Some(path) => Database::open_shared(path),
            None => generate_database(self.number, DomainSet::default())
                .map(|made| made.database.clone()),
        };
        opened.map_err(|error| EnvironmentError::Parameters {
            task: place.task.to_owned(),
            environment: "toolbox",
            detail: error.to_string(),
        })
    }
}
