//! Whether a query answers as the right one does, by the rules of the benchmarks.

mod bird;
mod result_match;
mod spider;
mod values;

use std::time::Duration;

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
/// the limits; the limit of time is for all that is run of it together, on all databases and with all values that are plugged in.
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
    let mut trial = Trial::new(limits);
    let found = trial.fetched(first, predicted, &right);
    let is_match = match rule {
        Rule::Bird => bird::is_equal(&found, &right),
        Rule::Spider(options) => {
            let known = AsWritten { predicted, gold, found: &found, right: &right };
            spider::is_match(databases, predicted, gold, options, &mut trial, Some(&known))?
        }
    };
    let (soft_f1, error) = match found {
        Ok(found) => (soft_f1(&found, &right), None),
        Err(error) => (0.0, Some(error)),
    };
    Ok(Judgement { is_match, soft_f1, error })
}

/// What two queries found on the first database as they were written.
struct AsWritten<'a> {
    predicted: &'a str,
    gold: &'a str,
    found: &'a Result<ResultTable, QueryError>,
    right: &'a ResultTable,
}

/// A query on trial: whatever is run of it takes of one time.
struct Trial<'a> {
    limits: &'a QueryLimits,
    time_left: Duration,
}

impl<'a> Trial<'a> {
    fn new(limits: &'a QueryLimits) -> Self {
        Self { limits, time_left: limits.time }
    }

    /// Rows of the query on trial, or of a variant of it, where the right one found `right`.
    fn fetched(
        &mut self,
        database: &Database,
        sql: &str,
        right: &ResultTable,
    ) -> Result<ResultTable, QueryError> {
        let late = QueryError::Time { seconds: self.limits.time.as_secs() };
        if self.time_left.is_zero() {
            return Err(late);
        }
        let limits = QueryLimits { time: self.time_left, ..self.limits.relative_to(right.steps) };
        let (found, taken) = fetched_timed(database, sql, &limits);
        self.time_left = self.time_left.saturating_sub(taken);
        match found {
            Err(QueryError::Time { .. }) => Err(late),
            found => found,
        }
    }
}

/// All rows of a query, as Python's `fetchall` has them: a statement that is empty has none.
fn fetched(
    database: &Database,
    sql: &str,
    limits: &QueryLimits,
) -> Result<ResultTable, QueryError> {
    fetched_timed(database, sql, limits).0
}

/// The same, with the time that it took.
fn fetched_timed(
    database: &Database,
    sql: &str,
    limits: &QueryLimits,
) -> (Result<ResultTable, QueryError>, Duration) {
    let (found, taken) = database.query_timed(sql, limits);
    let found = match found {
        Ok(table) if table.is_cut => Err(QueryError::TooLarge { rows: table.rows.len() }),
        Err(QueryError::Empty) => Ok(ResultTable::default()),
        other => other,
    };
    (found, taken)
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

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

    const HEAVY: &str = "WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM c LIMIT 5000) SELECT \
                         sum(instr(printf('%.200000c','a')||i, printf('%.60000c','a')||'b')) FROM c WHERE 1 < 2";

    #[test]
    fn all_that_is_run_of_a_query_takes_of_one_time() {
        let script =
            "CREATE TABLE items(name TEXT, price INTEGER); INSERT INTO items VALUES ('tea', 3)";
        let databases: Vec<Database> =
            (0..3).map(|_| Database::from_script(script).unwrap()).collect();
        let gold = "SELECT name FROM items WHERE price IN (1, 2, 3, 4, 5) AND name <> 'rum'";
        let limits = QueryLimits { time: Duration::from_millis(300), ..QueryLimits::for_judging() };
        let rule = Rule::Spider(SpiderOptions { plug_value: true, ..SpiderOptions::default() });
        let start = Instant::now();
        let judged = judge(rule, &databases, HEAVY, gold, &limits).unwrap();
        assert!(!judged.is_match && judged.error == Some(QueryError::Time { seconds: 0 }));
        assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
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
            // What is known of the first database is not looked for again, and comes to the same.
            for plug_value in [false, true] {
                let options = SpiderOptions { plug_value, keep_distinct: false };
                if let Ok(judged) =
                    judge(Rule::Spider(options), &databases, predicted, gold, &limits)
                {
                    let theirs = if plug_value { pair.spider_plug_value } else { pair.spider };
                    compare("judged by spider", judged.is_match, theirs);
                }
            }
            if let Ok(judged) = judge(Rule::Bird, &databases, predicted, gold, &limits) {
                let is_same = (judged.soft_f1 - pair.soft_f1).abs() < 1e-12;
                compare("soft f1", is_same, Some(true));
            }
        }
        assert!(wrong.is_empty(), "{} of {}: {wrong:#?}", wrong.len(), recorded.pairs.len());
    }
}
