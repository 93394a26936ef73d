//! Calls and answers in words: whatever is written ends in text or an exception, and short texts in short ones. A letter
//! beyond ASCII stands for a part that makes a value larger, so that these meet each other soon.
#![no_main]

use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use spar_bfcl::{Class, Instances, Process, decode_raw, decode_text, executable};

/// More than a call has in arguments and results together, and what is around it.
const MAX_TOLD: usize = 65 << 20;

const GROWING: [&str; 16] = [
    "]*1000",
    ")*99999",
    "'a'*4000000",
    "['a']*1000",
    "('a',)*9999",
    "+'aaaa'*999",
    "+[[]]*999",
    "str(",
    "repr(",
    "list(",
    "sum(",
    "'a'.join(",
    ".replace('a', 'aaaa')",
    ".split('a')",
    "echo(content=",
    "pow(9**9999, 9**9999, 9**9999)",
];

/// The text with its letters beyond ASCII as parts that grow.
fn grown(text: &str) -> String {
    let mut out = String::new();
    for character in text.chars() {
        match character.is_ascii() {
            true => out.push(character),
            false => out.push_str(GROWING[u32::from(character) as usize % GROWING.len()]),
        }
    }
    out
}

fuzz_target!(|text: &str| {
    static BEGIN: OnceLock<Instances> = OnceLock::new();
    let mut process = Process::new(None);
    let begin = BEGIN.get_or_init(|| {
        let scenario = serde_json::json!({});
        Instances::load(&Class::ALL, &scenario, "m_0", &Process::new(None), false)
            .expect("the defaults load")
    });
    let mut instances = begin.clone();
    for text in [text, &grown(text)] {
        assert!(instances.execute(text, &mut process).len() <= MAX_TOLD);
        for call in decode_text(text).and_then(|calls| executable(&calls)).unwrap_or_default() {
            assert!(instances.execute(&call, &mut process).len() <= MAX_TOLD);
        }
    }
    let _ = decode_raw(text);
    let _ = instances.state(&process);
});
