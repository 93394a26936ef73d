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
/// each, BIRD's on the first. The query may take a hundred times the steps of the right one, or 20,000,000 if that is more, within
/// the limits.
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
    let found = fetched(first, predicted, &limits.relative_to(right.steps));
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

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    /// What `scripts/record_sql_verdicts.py` recorded.
    #[derive(Deserialize)]
    struct Recorded {
        databases: Vec<String>,
        pairs: Vec<Pair>,
    }

    #[derive(Deserialize)]
    struct Pair {
        predicted: String,
        gold: String,
        /// Absent where the evaluation itself failed.
        spider: Option<bool>,
        spider_keep_distinct: Option<bool>,
        spider_plug_value: Option<bool>,
        bird: bool,
        soft_f1: f64,
    }

    #[test]
    fn verdicts_are_those_of_the_official_evaluations() {
        let recorded: Recorded =
            serde_json::from_str(include_str!("../../tests/fixtures/verdicts.json")).unwrap();
        assert!(recorded.pairs.len() > 500);
        let databases: Vec<Database> = recorded
            .databases
            .iter()
            .map(|script| Database::from_script(script).unwrap())
            .collect();
        let limits = QueryLimits::default();
        let mut wrong = Vec::new();
        for pair in &recorded.pairs {
            let Pair { predicted, gold, .. } = pair;
            let mut compare = |rule: &str, ours: bool, theirs: Option<bool>| {
                if ours != theirs.unwrap_or(false) {
                    wrong.push(format!("{rule}: {ours} for `{predicted}` against `{gold}`"));
                }
            };
            let spider = |plug_value, keep_distinct| {
                let options = SpiderOptions { plug_value, keep_distinct };
                // A right query that cannot be run ends the evaluation.
                spider_match(&databases, predicted, gold, options, &limits).unwrap_or(false)
            };
            compare("spider", spider(false, false), pair.spider);
            compare("keep distinct", spider(false, true), pair.spider_keep_distinct);
            compare("plug value", spider(true, false), pair.spider_plug_value);
            let bird = bird_match(&databases[0], predicted, gold, &limits).unwrap_or(false);
            compare("bird", bird, Some(pair.bird));
            if let Ok(judged) = judge(Rule::Bird, &databases, predicted, gold, &limits) {
                let is_same = (judged.soft_f1 - pair.soft_f1).abs() < 1e-12;
                compare("soft f1", is_same, Some(true));
            }
        }
        assert!(wrong.is_empty(), "{} of {}: {wrong:#?}", wrong.len(), recorded.pairs.len());
    }
}
