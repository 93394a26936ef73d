//! Reads logs with the parsers of the table, for `scripts/record_swe_logs.py compare`: every line of the input is
//! `{"origin": "SWE-bench 5", "parser": "parse_log_jest", "log": "...", "instance_id": "...", "version": "..."}`, and the line of
//! the output has the statuses, or the error. With the argument `list` it names the parsers.

use std::io::{BufRead, Write};

use serde_json::{Value, json};
use spar_swe::log::{LOG_PARSERS, LogContext, find_log_parser};

fn main() -> std::io::Result<()> {
    let mut output = std::io::stdout().lock();
    if std::env::args().nth(1).is_some_and(|argument| argument == "list") {
        let names = LOG_PARSERS.iter().map(|row| format!("{}/{}", row.origin, row.name));
        return writeln!(output, "{}", Value::from(names.collect::<Vec<_>>()));
    }
    for line in std::io::stdin().lock().lines() {
        let asked: Value = serde_json::from_str(&line?)?;
        let text = |key: &str| asked[key].as_str().unwrap_or_default();
        let context = LogContext { instance_id: text("instance_id"), version: text("version") };
        let origin = LOG_PARSERS
            .iter()
            .map(|row| row.origin)
            .find(|origin| origin.to_string() == text("origin"))
            .ok_or_else(|| std::io::Error::other("no such origin"))?;
        // A name that the origin took from another one is found there.
        let answer = match find_log_parser(origin, text("parser")) {
            Ok(row) => match row.parse(text("log"), &context) {
                Ok(tests) => json!({ "tests": tests }),
                Err(error) => json!({ "error": error.to_string() }),
            },
            Err(error) => json!({ "unknown": error.to_string() }),
        };
        writeln!(output, "{answer}")?;
    }
    Ok(())
}
