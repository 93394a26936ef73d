//! Compares pairs: a JSON object with `reference` and `answer` on every line in, one with `equal` and `detail` out, and at the
//! end the seconds that the comparisons took. Of an answer that `is_response` the final answer is compared.

use std::io::{BufRead, Write};
use std::time::{Duration, Instant};

use spar_answers::{AnswerForm, Equivalence, FinalAnswer, final_answer, math_equal};

#[derive(serde::Deserialize)]
struct Pair {
    reference: String,
    answer: String,
    #[serde(default)]
    is_response: bool,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut out = std::io::stdout().lock();
    let mut took = Duration::ZERO;
    for line in std::io::stdin().lock().lines() {
        let pair: Pair = serde_json::from_str(&line?)?;
        let start = Instant::now();
        let (equal, detail) = compare(&pair);
        took += start.elapsed();
        writeln!(out, "{}", serde_json::json!({ "equal": equal, "detail": detail }))?;
    }
    writeln!(out, "{}", serde_json::json!({ "seconds": took.as_secs_f64() }))?;
    Ok(())
}

fn compare(pair: &Pair) -> (bool, String) {
    let answer = match pair.is_response {
        false => pair.answer.clone(),
        true => match final_answer(&pair.answer, AnswerForm::Any) {
            FinalAnswer::Found(answer) => answer,
            FinalAnswer::Missing => return (false, "no answer".to_owned()),
            FinalAnswer::Conflicting => return (false, "several answers".to_owned()),
        },
    };
    match math_equal(&pair.reference, &answer) {
        Equivalence::Equal => (true, "equal".to_owned()),
        Equivalence::Different => (false, "different".to_owned()),
        Equivalence::CannotTell(unclear) => (false, unclear.to_string()),
    }
}
