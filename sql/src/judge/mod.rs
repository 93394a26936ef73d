//! Whether a query answers as the right one does, by the rules of the benchmarks.

mod bird;
mod result_match;
mod spider;
mod values;

use serde::{Deserialize, Serialize};

pub use bird::{bird_match, soft_f1};
pub use result_match::spider_result_match;
pub use spider::{SpiderOptions, spider_match};

use crate::{Database, QueryError, QueryLimits, ResultTable};

/// By which rule two queries are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Rule {
    /// As Spider's evaluation does, [`spider_match`].
    Spider(SpiderOptions),
    /// As BIRD's evaluation does, [`bird_match`].
    Bird,
}

impl Default for Rule {
    fn default() -> Self {
        Self::Spider(SpiderOptions::default())
    }
}

/// What came of comparing two queries.
#[derive(Debug, Clone, PartialEq)]
pub struct Judgement {
    /// Whether they match by the rule, as its official evaluation says.
    pub is_match: bool,
    /// How much of the right result there is, 0 to 1, by BIRD's [`soft_f1`] on the first database.
    pub soft_f1: f64,
    /// Why the query has no result on the first database; absent where it has one.
    pub error: Option<QueryError>,
}

/// Compares a query with the right one on databases of one schema, of which there is at least one; Spider's rule has it match on
/// each, BIRD's on the first.
///
/// # Errors
///
/// [`QueryError`] when the right query has no result, which says nothing about the other.
///
/// # Panics
///
/// Where there is no database.
pub fn judge(
    rule: Rule,
    databases: &[Database],
    predicted: &str,
    gold: &str,
    limits: &QueryLimits,
) -> Result<Judgement, QueryError> {
    let first = &databases[0];
    let right = fetched(first, gold, limits)?;
    let found = fetched(first, predicted, limits);
    let is_match = match rule {
        Rule::Bird => bird::is_equal(&found, &right),
        Rule::Spider(options) => spider_match(databases, predicted, gold, options, limits)?,
    };
    let (soft_f1, error) = match found {
        Ok(found) => (soft_f1(&found, &right), None),
        Err(error) => (0.0, Some(error)),
    };
    Ok(Judgement { is_match, soft_f1, error })
}

/// All rows of a query, as Python's `fetchall` has them: a statement that is empty has none.
fn fetched(
    database: &Database,
    sql: &str,
    limits: &QueryLimits,
) -> Result<ResultTable, QueryError> {
    match database.query(sql, limits) {
        Ok(table) if table.is_cut => Err(QueryError::TooLarge { rows: table.rows.len() }),
        Err(QueryError::Empty) => Ok(ResultTable::default()),
        other => other,
    }
}
