//! SQL of a policy: any text is cut into its tokens, and is answered or refused by a database, within its limits.
#![no_main]

use std::sync::LazyLock;
use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use spar_sql::{Database, QueryLimits, Rule, first_statement, judge, ngram_similarity, tokens};

static BOOKS: LazyLock<Database> = LazyLock::new(|| {
    let script = "CREATE TABLE books(id INTEGER PRIMARY KEY, title TEXT, pages INTEGER);
                  INSERT INTO books VALUES (1, 'Ash', 90), (2, 'Bay', 300);";
    Database::from_script(script).expect("the script is right")
});

fuzz_target!(|input: &[u8]| {
    let text = String::from_utf8_lossy(input);
    let joined: String = tokens(&text).iter().map(|token| token.text).collect();
    assert_eq!(joined, text);
    assert!(text.starts_with(first_statement(&text).0));
    let gold = "SELECT title FROM books";
    assert!((0.0..=1.0).contains(&ngram_similarity(&text, gold)));
    let limits = QueryLimits { steps: 100_000, time: Duration::from_secs(5), ..QueryLimits::default() };
    match BOOKS.query(&text, &limits) {
        Ok(table) => assert!(table.to_text(20, 4_000).len() < 20_000),
        Err(error) => assert!(!error.to_string().is_empty(), "a refusal says why"),
    }
    judge(Rule::default(), std::slice::from_ref(&*BOOKS), &text, gold, &limits).expect("the right query runs");
    let count = BOOKS.query("SELECT count(*) FROM books", &limits).expect("it is as it was");
    assert_eq!(count.rows[0], [spar_sql::Cell::Integer(2)]);
});
