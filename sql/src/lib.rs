//! Questions over databases: SQLite behind a guard, how queries are judged, and questions from seeds.
//!
//! ```text
//!  Database ──query(SQL, QueryLimits)──▶ ResultTable | QueryError        read-only, bounded, repeatable
//!     │                                      │
//!     ├──▶ Schema                            ▼
//!     └──reads(SQL)──▶ Reads ─────▶ judge(Rule, databases, predicted, gold) ──▶ Judgement, PartialScores
//!
//!  generate(seed, level, domains) ──▶ GeneratedQuestion { database, question, gold }
//! ```
//!
//! Nothing here knows an episode: SQL goes in, tables and verdicts come out. Whatever a policy writes ends in a
//! [`QueryError`] whose text is SQLite's own where SQLite has one.
//!
//! ```
//! use spar_sql::{Database, QueryLimits};
//!
//! let books = Database::from_script("CREATE TABLE books(title TEXT, pages INTEGER); INSERT INTO books VALUES ('Ash', 90);")?;
//! let found = books.query("SELECT title FROM books WHERE pages < 100", &QueryLimits::default())?;
//! assert_eq!(found.to_text(20, 1_000), "title\n-----\nAsh\n(1 row)");
//! let told = books.query("DELETE FROM books", &QueryLimits::default()).unwrap_err();
//! assert_eq!(told.to_string(), "not authorized");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod cell;
mod clock;
mod database;
mod descriptions;
mod error;
mod generator;
mod guard;
mod judge;
mod limits;
mod partial;
mod reader;
mod result_table;
mod schema;

pub use cell::Cell;
pub use database::Database;
pub use descriptions::{ColumnDescription, read_descriptions};
pub use error::{DatabaseError, QueryError};
pub use generator::{
    DomainSet, GeneratedDatabase, GeneratedQuestion, Level, generate, generate_database,
};
pub use guard::Reads;
pub use judge::{
    Judgement, Rule, SpiderOptions, bird_match, judge, soft_f1, spider_match, spider_result_match,
};
pub use limits::QueryLimits;
pub use partial::{PartialScores, PartialWeights, ngram_similarity, partial_scores};
pub use reader::{Token, TokenKind, first_statement, tokens};
pub use result_table::ResultTable;
pub use schema::{Column, Descriptions, ForeignKey, Schema, SchemaTable};
