//! What is asked of the environment, in words or by calls of tools.

use std::sync::{Arc, OnceLock};

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use spar_core::{ToolCall, ToolSpec};

use crate::calls::clipped;
use crate::tools::{read_arguments, spec_of};

/// The tools, by name.
pub(super) const SCHEMA: &str = "sql_schema";
pub(super) const QUERY: &str = "sql_query";
pub(super) const SUBMIT: &str = "sql_submit";

/// Something to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Command {
    /// Shows the tables, or one of them whole.
    Schema(Option<String>),
    /// Tries a query.
    Query(String),
    /// Ends the task with its answer.
    Submit(String),
}

/// Shows the tables of the database, or one of them whole.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct SchemaCall {
    /// A table to show whole.
    pub(super) table: Option<String>,
}

/// Tries a query and shows its first rows.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct QueryCall {
    /// One SELECT of SQLite.
    pub(super) sql: String,
}

/// Ends the task with the query that answers the question.
#[derive(Debug, Deserialize, JsonSchema)]
struct SubmitCall {
    /// One SELECT of SQLite.
    sql: String,
}

impl Command {
    /// What words ask for: `schema`, `schema TABLE`, `query SQL`, `submit SQL`, or a query in the one ```` ```sql ```` block, which is
    /// submitted. An error is for the policy.
    pub(super) fn in_words(text: &str) -> Result<Self, String> {
        let blocks = blocks(text);
        match &blocks[..] {
            [block] => return Ok(Self::Submit((*block).to_owned())),
            [] => {}
            several => {
                return Err(format!("Give one ```sql block, not {}.", several.len()));
            }
        }
        let text = text.trim();
        let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let rest = rest.trim();
        match &*word.to_ascii_lowercase() {
            "schema" if rest.is_empty() => Ok(Self::Schema(None)),
            "schema" => Ok(Self::Schema(Some(rest.to_owned()))),
            "query" if !rest.is_empty() => Ok(Self::Query(rest.to_owned())),
            "submit" if !rest.is_empty() => Ok(Self::Submit(rest.to_owned())),
            _ => Err("Nothing happens: say `schema`, `query SELECT ...`, or give the query that answers the question in a \
                      ```sql block."
                .to_owned()),
        }
    }

    /// What a call asks for. An error is for the policy.
    pub(super) fn of_call(call: &ToolCall) -> Result<Self, String> {
        let tools = tools();
        let Some(spec) = tools.iter().find(|spec| spec.name == call.name) else {
            let other = clipped(&call.name);
            return Err(format!(
                "There is no tool `{other}`, only {SCHEMA}, {QUERY} and {SUBMIT}."
            ));
        };
        Ok(match &*spec.name {
            SCHEMA => Self::Schema(read_arguments::<SchemaCall>(spec, call)?.table),
            QUERY => Self::Query(read_arguments::<QueryCall>(spec, call)?.sql),
            _ => Self::Submit(read_arguments::<SubmitCall>(spec, call)?.sql),
        })
    }

    /// The call that asks for it.
    pub(super) fn to_call(&self) -> ToolCall {
        let (name, arguments) = match self {
            Self::Schema(None) => (SCHEMA, json!({})),
            Self::Schema(Some(table)) => (SCHEMA, json!({ "table": table })),
            Self::Query(sql) => (QUERY, json!({ "sql": sql })),
            Self::Submit(sql) => (SUBMIT, json!({ "sql": sql })),
        };
        ToolCall::new(name, arguments.as_object().cloned().unwrap_or_default())
    }

    /// The words that ask for it.
    pub(super) fn to_words(&self) -> String {
        match self {
            Self::Schema(None) => "schema".to_owned(),
            Self::Schema(Some(table)) => format!("schema {table}"),
            Self::Query(sql) => format!("query {sql}"),
            // On one line where it is one, so that whoever reads actions by lines reads it whole.
            Self::Submit(sql) if !sql.contains('\n') => format!("submit {sql}"),
            Self::Submit(sql) => format!("```sql\n{sql}\n```"),
        }
    }
}

/// What stands in the blocks of SQL of an answer; one that is never closed ends with the answer.
fn blocks(text: &str) -> Vec<&str> {
    const OPEN: &str = "```sql";
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find(OPEN) {
        let inner = &rest[start + OPEN.len()..];
        let end = inner.find("```").unwrap_or(inner.len());
        found.push(inner[..end].trim());
        rest = &inner[(end + 3).min(inner.len())..];
    }
    found
}

/// The tools that are offered.
pub(super) fn tools() -> Arc<[ToolSpec]> {
    static TOOLS: OnceLock<Arc<[ToolSpec]>> = OnceLock::new();
    Arc::clone(TOOLS.get_or_init(|| {
        let (schema, query) = (spec_of::<SchemaCall>(SCHEMA), spec_of::<QueryCall>(QUERY));
        [schema, query, spec_of::<SubmitCall>(SUBMIT)].into()
    }))
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn words_ask_for_what_calls_ask_for() {
        for command in [
            Command::Schema(None),
            Command::Schema(Some("books".to_owned())),
            Command::Query("SELECT 1".to_owned()),
            Command::Submit("SELECT 1\nFROM books".to_owned()),
        ] {
            assert_eq!(Command::in_words(&command.to_words()).unwrap(), command);
            assert_eq!(Command::of_call(&command.to_call()).unwrap(), command);
        }
        let submitted = Command::in_words("So it is:\n```sql\nSELECT 2;\n``` Done.").unwrap();
        assert_eq!(submitted, Command::Submit("SELECT 2;".to_owned()));
        assert_eq!(
            Command::in_words("```sql SELECT 3").unwrap(),
            Command::Submit("SELECT 3".to_owned())
        );
        let two = Command::in_words("```sql\nSELECT 1\n``` or ```sql\nSELECT 2\n```").unwrap_err();
        assert_eq!(two, "Give one ```sql block, not 2.");
        for text in ["", "do nothing at all", "query", "submit  ", "```\nSELECT 1\n```"] {
            assert!(Command::in_words(text).unwrap_err().starts_with("Nothing happens"), "{text}");
        }
    }

    #[test]
    fn arguments_that_do_not_fit_are_told() {
        let told = |name: &str, arguments: Value| {
            let arguments = arguments.as_object().cloned().unwrap();
            Command::of_call(&ToolCall::new(name, arguments)).unwrap_err()
        };
        assert!(told("drop", json!({})).contains("only sql_schema, sql_query and sql_submit"));
        assert!(told(QUERY, json!({})).contains("`sql`"));
        assert!(told(QUERY, json!({ "sql": 7 })).contains("expected a string"));
        assert!(told(SUBMIT, json!({ "sql": "x".repeat(9), "and": 1 })).contains("`and`"));
        assert!(told(&"t".repeat(10_000), json!({})).len() < 200);
        let long = told(QUERY, json!({ "sql": [ "x".repeat(10_000_000) ] }));
        assert!(long.len() < 3_000);
        tools().iter().for_each(|tool| tool.validate().unwrap());
    }
}
