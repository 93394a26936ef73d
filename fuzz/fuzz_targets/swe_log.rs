//! Foreign logs of test runners: the first byte chooses the parser, the second how long the pieces are in which the rest comes.

#![no_main]

use spar_swe::grade::{Edition, EvalLog, EvalType, Expected};
use spar_swe::log::{LOG_PARSERS, LogContext, MAX_TESTS};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let [choice, step, log @ ..] = bytes else { return };
    let row = &LOG_PARSERS[usize::from(*choice) % LOG_PARSERS.len()];
    let context = LogContext { instance_id: "jekyll__jekyll-9141", version: "1.27" };
    let Ok(mut reading) = row.open(&context) else { return };
    let text = String::from_utf8_lossy(log);
    let letters: Vec<char> = text.chars().collect();
    for piece in letters.chunks(usize::from(*step) + 1) {
        reading.push(&piece.iter().collect::<String>());
    }
    // Pieces do not matter, and maps are bounded.
    let whole = row.parse(&text, &context);
    assert_eq!(reading.finish(), whole);
    if let Ok(tests) = &whole {
        assert!(tests.len() <= MAX_TESTS);
        let names: Vec<String> = tests.keys().take(64).cloned().collect();
        let expected = Expected { fail_to_pass: names.clone(), pass_to_pass: names };
        let report = expected.report(tests, EvalType::PassAndFail, Edition::Five);
        assert!(report.fail_to_pass.success.len() <= report.pass_to_pass.success.len());
    }
    let mut eval = EvalLog::new(row, &context, Edition::Five).expect("the same context was known");
    eval.push(b">>>>> Start Test Output\n");
    log.chunks(usize::from(*step) + 1).for_each(|piece| eval.push(piece));
    eval.push(b"\n>>>>> End Test Output\n");
    let report = eval.finish(None);
    assert!(report.num_starts > 0 && report.num_ends > 0);
});
