//! What a query has in common with the right one, in parts.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use crate::reader::{Token, TokenKind, tokens};
use crate::{Database, Judgement, QueryLimits, Reads};

/// How good a query is in parts, each from 0 to 1.
///
/// Source: the rewards of Reasoning-SQL (Pourreza et al., arXiv 2503.23157), but for its model as a judge, which the grader `judge` is.
/// Ours: what a query reads is what SQLite resolves its names to, and only where that fails the names that stand behind its `SELECT`;
/// a query that reads no table where the right one does, such as a constant, does not match; and one that reads no table
/// of the right one scores in no other part, unless it matches.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PartialScores {
    /// 1 where the query matches the right one.
    pub execution: f64,
    /// 1 where it runs.
    pub syntax: f64,
    /// Jaccard similarity of the tables and columns that the two read.
    pub schema_linking: f64,
    /// Jaccard similarity of the pairs of neighbouring tokens of the two, [`ngram_similarity`].
    pub ngram: f64,
    /// 1 where the query was given in the form that was asked for; judged by who took it.
    pub format: f64,
}

/// What the parts count; at least 0 each.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PartialWeights {
    /// Of the match. Default 3.
    pub execution: f64,
    /// Of queries that run. Default 1.
    pub syntax: f64,
    /// Of the tables and columns. Default 1.
    pub schema_linking: f64,
    /// Of the pairs of tokens. Default 1.
    pub ngram: f64,
    /// Of the form. Default 0.5.
    pub format: f64,
}

impl Default for PartialWeights {
    fn default() -> Self {
        Self { execution: 3.0, syntax: 1.0, schema_linking: 1.0, ngram: 1.0, format: 0.5 }
    }
}

impl PartialScores {
    /// The parts by name, each with what it adds to the reward: its score times its share of the weights. A query that matches has
    /// them all in full: whoever answers right earns 1 in all, however the query is written.
    pub fn weighted(&self, weights: &PartialWeights) -> Vec<(&'static str, f64)> {
        let PartialWeights { execution, syntax, schema_linking, ngram, format } = *weights;
        let sum = execution + syntax + schema_linking + ngram + format;
        let is_right = self.execution >= 1.0;
        let score = |score: f64| if is_right { 1.0 } else { score };
        let parts = [
            ("execution", score(self.execution) * execution),
            ("syntax", score(self.syntax) * syntax),
            ("schema_linking", score(self.schema_linking) * schema_linking),
            ("ngram", score(self.ngram) * ngram),
            ("format", score(self.format) * format),
        ];
        parts
            .into_iter()
            .filter(|(_, part)| *part > 0.0)
            .map(|(name, part)| (name, part / sum))
            .collect()
    }
}

/// Scores a query that was [judged](crate::judge) against the right one; `format` is left at 0.
pub fn partial_scores(
    database: &Database,
    predicted: &str,
    gold: &str,
    judgement: &Judgement,
) -> PartialScores {
    let right = database.reads(gold).unwrap_or_else(|_| named(database, gold));
    let found = database.reads(predicted).unwrap_or_else(|_| named(database, predicted));
    let reads_as_much = right.tables.is_empty() || !found.tables.is_empty();
    let is_match = judgement.is_match && reads_as_much && has_words(predicted);
    let is_of_none = right.tables.is_empty() && found.tables.is_empty() && has_words(predicted);
    if !is_match && !is_of_none && !found.shares_a_table_with(&right) {
        return PartialScores::default();
    }
    let flag = |is_true: bool| if is_true { 1.0 } else { 0.0 };
    PartialScores {
        execution: flag(is_match),
        syntax: flag(judgement.error.is_none()),
        schema_linking: if right.tables.is_empty() { 1.0 } else { found.similarity(&right) },
        ngram: ngram_similarity(predicted, gold),
        format: 0.0,
    }
}

fn has_words(sql: &str) -> bool {
    tokens(sql).iter().any(Token::is_significant)
}

/// Tables, and columns of these, whose names stand in a query that SQLite does not understand, where it selects from something.
fn named(database: &Database, sql: &str) -> Reads {
    let mut reads = Reads::default();
    let Ok(schema) = database.schema() else { return reads };
    if sql.len() > QueryLimits::SQL_BYTES {
        return reads;
    }
    let all = tokens(sql);
    let first = all.iter().find(|token| token.is_significant());
    let begins =
        first.is_some_and(|first| ["select", "with"].contains(&&*first.text.to_lowercase()));
    let names: HashSet<String> =
        all.iter().filter_map(Token::name).map(|name| name.to_ascii_lowercase()).collect();
    if !begins || !names.contains("from") {
        return reads;
    }
    for table in schema.tables.iter().filter(|it| names.contains(&it.name.to_ascii_lowercase())) {
        reads.add(&table.name, "");
        for column in &table.columns {
            if names.contains(&column.name.to_ascii_lowercase()) {
                reads.add(&table.name, &column.name);
            }
        }
    }
    reads
}

/// How alike two queries are written, 0 to 1: of the pairs of neighbouring tokens that either has, the share that both have.
///
/// Spaces, comments, the `;` at the end and the case of words do not count; a query of fewer than two tokens has no pairs, and two
/// without pairs are not alike.
///
/// `|B(a) ∩ B(b)| / |B(a) ∪ B(b)|`, where `B` is the set of bigrams; Reasoning-SQL, arXiv 2503.23157.
pub fn ngram_similarity(a: &str, b: &str) -> f64 {
    if a.len().max(b.len()) > QueryLimits::SQL_BYTES {
        return 0.0;
    }
    let (a, b) = (pairs(a), pairs(b));
    let both = a.intersection(&b).count();
    let either = a.len() + b.len() - both;
    if either == 0 { 0.0 } else { both as f64 / either as f64 }
}

fn pairs(sql: &str) -> HashSet<(String, String)> {
    let word = |token: &Token<'_>| match token.kind {
        TokenKind::Text => token.text.to_owned(),
        _ => token.text.to_ascii_lowercase(),
    };
    let mut words: Vec<String> =
        tokens(sql).iter().filter(|token| token.is_significant()).map(word).collect();
    if words.last().is_some_and(|last| last == ";") {
        words.pop();
    }
    words.windows(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Rule, judge};

    const GOLD: &str = "SELECT title FROM books WHERE pages > 100";

    fn scores(predicted: &str) -> PartialScores {
        let database = Database::from_script(
            "CREATE TABLE books(id INTEGER, title TEXT, pages INTEGER);
             CREATE TABLE shops(name TEXT);
             INSERT INTO books VALUES (1, 'Ash', 90), (2, 'Bay', 300);",
        )
        .unwrap();
        let limits = QueryLimits::default();
        let judged =
            judge(Rule::default(), std::slice::from_ref(&database), predicted, GOLD, &limits)
                .unwrap();
        partial_scores(&database, predicted, GOLD, &judged)
    }

    #[test]
    fn parts_tell_how_far_a_query_got() {
        let right = scores("select TITLE from books where pages>100;");
        let all = PartialScores {
            execution: 1.0,
            syntax: 1.0,
            schema_linking: 1.0,
            ngram: 1.0,
            format: 0.0,
        };
        assert_eq!(right, all);
        let close = scores("SELECT title FROM books");
        assert_eq!((close.execution, close.syntax), (0.0, 1.0));
        assert!((close.schema_linking - 2.0 / 3.0).abs() < 1e-12);
        assert!(close.ngram > 0.3 && close.ngram < 0.6);
        let broken = scores("SELECT title FROM books WHERE pages >");
        assert_eq!((broken.execution, broken.syntax, broken.schema_linking), (0.0, 0.0, 1.0));
    }

    #[test]
    fn what_is_not_about_the_question_scores_nothing() {
        let guessed = "SELECT 'Bay'";
        for sql in [
            "",
            ";",
            "-- SELECT title FROM books",
            "SELECT 1",
            guessed,
            "SELECT name FROM shops",
            "title pages books",
        ] {
            assert_eq!(scores(sql), PartialScores::default(), "{sql}");
        }
        let dump = scores("SELECT * FROM books, shops");
        assert!(dump.execution == 0.0 && dump.schema_linking < 0.6, "{dump:?}");
    }

    #[test]
    fn weights_share_out_one() {
        let weights = PartialWeights::default();
        let sum = |scores: PartialScores| -> f64 {
            scores.weighted(&weights).iter().map(|(_, part)| part).sum()
        };
        assert!((sum(scores(GOLD)) - 1.0).abs() < 1e-12);
        let other = scores("SELECT b.title FROM books b WHERE b.pages BETWEEN 101 AND 1000");
        assert!((sum(other) - 1.0).abs() < 1e-12, "right, however it is written");
        assert_eq!(sum(PartialScores::default()), 0.0);
        assert!(sum(scores("SELECT title FROM books")) < 0.5);
    }
}
