//! Calls of tools in the applications: every line is one, the first byte of it chooses the tool, the rest is JSON or else an
//! answer.

#![no_main]

use std::sync::{Arc, OnceLock};

use serde_json::{Map, Value};
use spar_apps::{AppTask, Session, specs};
use spar_core::Seed;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    static TASK: OnceLock<Arc<AppTask>> = OnceLock::new();
    let task = TASK.get_or_init(|| {
        let task = AppTask::of("reply-date", Seed::from_u64(1));
        Arc::new(task.expect("a family that is there"))
    });
    let mut session = Session::new(Arc::clone(task));
    for line in bytes.split(|byte| *byte == b'\n').take(16) {
        let Some((first, rest)) = line.split_first() else { continue };
        let Ok(text) = std::str::from_utf8(rest) else { continue };
        let spec = &specs()[usize::from(*first) % specs().len()];
        let arguments = match serde_json::from_str(text) {
            Ok(Value::Object(arguments)) => arguments,
            _ => Map::from_iter([("answer".to_owned(), text.into()), ("query".to_owned(), text.into())]),
        };
        let before = session.knowledge();
        if session.call(&spec.name, &arguments).is_err() {
            assert_eq!(session.knowledge(), before);
        }
    }
    if session.judgement().is_none() {
        let answer = String::from_utf8_lossy(bytes).into_owned();
        let _ = session.call("finish", &Map::from_iter([("answer".to_owned(), answer.into())]));
    }
});
