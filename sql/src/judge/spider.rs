//! Spider's rules.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::result_match::spider_result_match;
use super::values::with_values_of;
use super::{AsWritten, Trial, fetched};
use crate::reader::{Token, TokenKind, first_statement, tokens};
use crate::{Database, QueryError, QueryLimits, ResultTable};

/// Options of Spider's evaluation, with its defaults.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SpiderOptions {
    /// Whether a query matches also where it does with values of the right query in place of its own. Default false.
    pub plug_value: bool,
    /// Whether `DISTINCT` counts; by default it is taken out of both queries. Default false.
    pub keep_distinct: bool,
}

/// Whether two queries match as the execution match of Spider's evaluation has it: on each of the databases, whose contents differ,
/// their results are [the same](spider_result_match). The order of rows matters where `order by` stands anywhere in the right query.
///
/// In front, as there: the word `value` in the query is read as `1`; `> =`, `< =` and `! =` are joined; `DISTINCT` is taken out of the first
/// statement of each, unless it is kept, and what stands behind that statement is not run; `YEAR(CURDATE())` is 2020.
/// With `plug_value`, values of the right query are put in place of the query's own in all ways, of which at most a
/// thousand are tried; the official evaluation tries all.
///
/// Source: Zhong et al., arXiv 2010.02840, its evaluation for Spider (Yu et al., arXiv 1809.08887); recorded pairs in `tests/fixtures`. Ours
/// are the limits of steps and time, of which the latter is for all that is run of the query together, and that nothing is written.
///
/// # Errors
///
/// [`QueryError`] when the right query has no result on one of the databases.
pub fn spider_match(
    databases: &[Database],
    predicted: &str,
    gold: &str,
    options: SpiderOptions,
    limits: &QueryLimits,
) -> Result<bool, QueryError> {
    is_match(databases, predicted, gold, options, &mut Trial::new(limits), None)
}

/// [`spider_match`] within what is left of a trial, where it may be known what the queries find as they are written.
pub(super) fn is_match(
    databases: &[Database],
    predicted: &str,
    gold: &str,
    options: SpiderOptions,
    trial: &mut Trial<'_>,
    known: Option<&AsWritten<'_>>,
) -> Result<bool, QueryError> {
    if predicted.len() > QueryLimits::SQL_BYTES {
        return Ok(false);
    }
    let prepared = |sql: &str| -> Option<String> {
        let joined = sql.replace("> =", ">=").replace("< =", "<=").replace("! =", "!=");
        if options.keep_distinct { Some(joined) } else { without_distinct(&joined) }
    };
    let gold = prepared(gold).ok_or(QueryError::Empty)?;
    let Some(predicted) = prepared(&predicted.replace("value", "1")) else {
        return Ok(false);
    };
    let order_matters = gold.to_lowercase().contains("order by");
    let gold_sql = with_fixed_year(&gold);
    let known = known.filter(|known| known.gold == gold_sql);
    let mut right: Vec<Cow<'_, ResultTable>> = Vec::with_capacity(databases.len());
    for (place, database) in databases.iter().enumerate() {
        right.push(match known {
            Some(known) if place == 0 => Cow::Borrowed(known.right),
            _ => Cow::Owned(fetched(database, &gold_sql, trial.limits)?),
        });
    }
    let mut passes = |sql: &str| {
        let sql = with_fixed_year(sql);
        let known = known.filter(|known| known.predicted == sql);
        databases.iter().zip(&right).enumerate().all(|(place, (database, right))| {
            let found = match known {
                Some(known) if place == 0 => Cow::Borrowed(known.found),
                _ => Cow::Owned(trial.fetched(database, &sql, right)),
            };
            found
                .as_ref()
                .as_ref()
                .is_ok_and(|found| spider_result_match(right, found, order_matters))
        })
    };
    if passes(&predicted) {
        return Ok(true);
    }
    Ok(options.plug_value && with_values_of(&gold, &predicted).any(|sql| passes(&sql)))
}

/// The first statement without the word `DISTINCT`; `None` where there is none, not even of comments.
fn without_distinct(sql: &str) -> Option<String> {
    let (statement, _) = first_statement(sql);
    if statement.trim().is_empty() {
        return None;
    }
    let is_kept = |token: &Token<'_>| {
        token.kind != TokenKind::Word || !token.text.eq_ignore_ascii_case("distinct")
    };
    Some(tokens(statement).iter().filter(|token| is_kept(token)).map(|token| token.text).collect())
}

/// The query with 2020 for `YEAR(CURDATE())`, which MySQL has.
fn with_fixed_year(sql: &str) -> String {
    if !sql.to_ascii_lowercase().contains("curdate") {
        return sql.to_owned();
    }
    let all = tokens(sql);
    let mut fixed = String::with_capacity(sql.len());
    let mut place = 0;
    while place < all.len() {
        match year_ends(&all[place..]) {
            Some(length) => {
                fixed.push_str("2020");
                place += length;
            }
            None => {
                fixed.push_str(all[place].text);
                place += 1;
            }
        }
    }
    fixed
}

/// How many tokens `YEAR(CURDATE())` takes at the beginning, with the space behind it.
fn year_ends(all: &[Token<'_>]) -> Option<usize> {
    let mut place = 0;
    for wanted in ["year", "(", "curdate", "(", ")", ")"] {
        if !all.get(place)?.text.eq_ignore_ascii_case(wanted) {
            return None;
        }
        place += 1;
        while all.get(place).is_some_and(|token| token.kind == TokenKind::Space) {
            place += 1;
        }
    }
    Some(place)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shop() -> Database {
        Database::from_script(
            "CREATE TABLE items(name TEXT, price INTEGER, kind TEXT);
             INSERT INTO items VALUES ('tea', 3, 'drink'), ('rum', 9, 'drink'), ('bun', 3, 'food');",
        )
        .unwrap()
    }

    fn is_match(predicted: &str, gold: &str, options: SpiderOptions) -> bool {
        let limits = QueryLimits::default();
        spider_match(&[shop()], predicted, gold, options, &limits).unwrap()
    }

    #[test]
    fn queries_match_by_what_they_find() {
        let plain = SpiderOptions::default();
        let gold = "SELECT name, price FROM items WHERE price < 5";
        assert!(is_match("SELECT price, name FROM items WHERE price <= 3", gold, plain));
        assert!(is_match(
            "select T1.name, T1.price from items as T1 where T1.price < = 4",
            gold,
            plain
        ));
        assert!(!is_match("SELECT name FROM items WHERE price < 5", gold, plain));
        assert!(!is_match("SELECT nme, price FROM items", gold, plain));
        assert!(!is_match("", gold, plain) && !is_match("-- SELECT", gold, plain));
        // What is behind the first statement is not run.
        assert!(is_match(&format!("{gold}; DROP TABLE items"), gold, plain));
        let keep = SpiderOptions { keep_distinct: true, ..plain };
        assert!(!is_match(&format!("{gold}; SELECT 1"), gold, keep));
        let kinds = "SELECT DISTINCT kind FROM items";
        assert!(is_match("SELECT kind FROM items", kinds, plain));
        assert!(!is_match("SELECT kind FROM items", kinds, keep));
        let ordered = "SELECT name FROM items ORDER BY name";
        assert!(!is_match("SELECT name FROM items ORDER BY name DESC", ordered, plain));
    }

    #[test]
    fn values_are_plugged_in_where_that_is_asked_for() {
        let plug = SpiderOptions { plug_value: true, ..SpiderOptions::default() };
        let gold = "SELECT name FROM items WHERE kind = 'drink' AND price > 5";
        let wrong = "SELECT name FROM items WHERE kind = 'water' AND price > 1";
        assert!(is_match(wrong, gold, plug));
        assert!(!is_match(wrong, gold, SpiderOptions::default()));
        assert!(!is_match("SELECT kind FROM items WHERE kind = 'water'", gold, plug));
    }

    #[test]
    fn years_and_words_are_read_as_the_evaluation_reads_them() {
        assert_eq!(with_fixed_year("SELECT year ( CURDATE( ) ) - 1"), "SELECT 2020- 1");
        assert_eq!(with_fixed_year("SELECT curdate"), "SELECT curdate");
        assert_eq!(
            without_distinct("SELECT count(DISTINCT a), 'distinct' ; x").unwrap(),
            "SELECT count( a), 'distinct' ;"
        );
        assert_eq!(without_distinct(" "), None);
    }
}
