//! Questions about databases in files.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use spar_sql::Rule;

/// A question about a database in files: the parameters of the environment `sql`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SqlTask {
    /// What is asked.
    pub question: String,
    /// A query whose result is the answer.
    pub gold: String,
    /// Files of the database; the first is the one that is asked, and a query has to be right on all.
    pub databases: Vec<PathBuf>,
    /// How queries are compared. Default as Spider does.
    #[serde(default)]
    pub rule: Rule,
    /// What has to be known beside the question. Default absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<String>,
    /// A folder of descriptions of columns, as BIRD has them. Default absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub descriptions: Option<PathBuf>,
    /// Whether the tables are shown with the question. Default true.
    #[serde(default = "yes")]
    pub shows_schema: bool,
}

fn yes() -> bool {
    true
}

impl SqlTask {
    /// The environment of its tasks.
    pub const ENVIRONMENT: &str = "sql";
}
