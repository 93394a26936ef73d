//! Compares pairs: a JSON object with `reference` and `answer` on every line in, one with `equal` and `detail` out.

use std::io::{BufRead, Write};

use spar_answers::{Equivalence, math_equal};

#[derive(serde::Deserialize)]
struct Pair {
    reference: String,
    answer: String,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let Pair { reference, answer } = serde_json::from_str(&line?)?;
        let found = math_equal(&reference, &answer);
        let detail = match &found {
            Equivalence::Equal => "equal".to_owned(),
            Equivalence::Different => "different".to_owned(),
            Equivalence::CannotTell(unclear) => unclear.to_string(),
        };
        writeln!(out, "{}", serde_json::json!({ "equal": found.is_equal(), "detail": detail }))?;
    }
    Ok(())
}
