//! What policies answer with an interpreter at hand: code between tags, answers in `\boxed{}`, programs in fences.

#![no_main]

use spar_envs::code::{Boxed, boxed};
use spar_parsers::open_parser;
use spar_tasks::graders::{has_program, program_in};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let parser = open_parser("code_tags").expect("it is in the table");
    if let Ok(parsed) = parser.parse(text, &[]) {
        assert!(parsed.spans.iter().all(|span| text.get(span.clone()).is_some()));
        // What is written was read back.
        let _ = parser.write(&parsed.action, &[]);
    }
    if let Boxed::One(answer) = boxed(text) {
        assert!(!answer.is_empty() && text.contains(&answer));
    }
    assert!(!has_program(text) || program_in(text).is_some());
});
