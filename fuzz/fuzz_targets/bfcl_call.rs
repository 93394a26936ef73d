//! Calls and answers in words: whatever is written ends in text or an exception.
#![no_main]

use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use spar_bfcl::{Class, Instances, Process, decode_raw, decode_text, executable};

fuzz_target!(|text: &str| {
    static BEGIN: OnceLock<Instances> = OnceLock::new();
    let mut process = Process::new(None);
    let begin = BEGIN.get_or_init(|| {
        let scenario = serde_json::json!({});
        Instances::load(&Class::ALL, &scenario, "m_0", &Process::new(None), false)
            .expect("the defaults load")
    });
    let mut instances = begin.clone();
    instances.execute(text, &mut process);
    let _ = decode_raw(text);
    for call in decode_text(text).and_then(|calls| executable(&calls)).unwrap_or_default() {
        instances.execute(&call, &mut process);
    }
    let _ = instances.state(&process);
});
