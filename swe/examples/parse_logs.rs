//! Reads logs with the parsers of the table, for `scripts/record_swe_logs.py compare`: every line of the input is
//! `{"origin": "SWE-bench 5", "parser": "parse_log_jest", "log": "...", "instance_id": "...", "version": "..."}`, and the line of
//! the output has the statuses, or the error. With the argument `list` it names the parsers.

use std::io::{BufRead, Write};

use serde_json::{Value, json};
use spar_swe::log::{LOG_PARSERS, LogContext};

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
        let row = LOG_PARSERS
            .iter()
            .find(|row| row.origin.to_string() == text("origin") && row.name == text("parser"));
        let answer = match row.map(|row| row.parse(text("log"), &context)) {
            Some(Ok(tests)) => json!({ "tests": tests }),
            Some(Err(error)) => json!({ "error": error.to_string() }),
            None => json!({ "error": "no such parser" }),
        };
        writeln!(output, "{answer}")?;
    }
    Ok(())
}
