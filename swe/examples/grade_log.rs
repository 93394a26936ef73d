//! Reads the log of an evaluation from the standard input, of any length, and tells what it comes to.
//!
//! ```sh
//! cargo run --release -p spar-swe --example grade_log -- parse_log_pytest < test_output.txt
//! ```

use std::io::Read;

use spar_swe::grade::{Edition, EvalLog};
use spar_swe::log::{LogContext, Origin, find_log_parser};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let name = std::env::args().nth(1).ok_or("the name of a parser is missing")?;
    let parser = find_log_parser(Origin::SweBench, &name)?;
    let mut log = EvalLog::new(parser, &LogContext::default(), Edition::Five)?;
    let mut input = std::io::stdin().lock();
    let mut buffer = vec![0; 1 << 16];
    loop {
        match input.read(&mut buffer)? {
            0 => break,
            length => log.push(&buffer[..length]),
        }
    }
    let report = log.finish(None);
    match &report.verdict {
        Ok(tests) => {
            let passed = tests.values().filter(|status| status.has_passed()).count();
            println!("{} tests, {passed} of them passed", tests.len());
        }
        Err(error) => println!("not graded: {error}"),
    }
    println!(
        "marks: {} and {}; sign of a fault: {:?}",
        report.num_starts, report.num_ends, report.infra_failure
    );
    Ok(())
}
