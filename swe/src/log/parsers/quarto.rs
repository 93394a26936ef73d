//! quarto-cli's runs of Deno.

use std::collections::HashMap;

use crate::TestStatus::{Failed, Passed};
use crate::log::reading::Reader;
use crate::log::statuses::Statuses;
use crate::python_text::{before, pattern, strip};

/// Files in `/tmp` are numbered as they come; a test without a status has failed.
pub(in crate::log) fn swe_bench() -> Reader {
    let mut has_ended = false;
    let mut numbers: HashMap<String, usize> = HashMap::new();
    Reader::lines(move |line: &str, tests: &mut Statuses| {
        has_ended |= line.contains("ERRORS") || line.contains("failures:");
        if has_ended || !pattern!(r"\[(smoke|unit)\]").is_match(line) {
            return;
        }
        let mut line = line.to_owned();
        for file in [pattern!(r"/tmp/(\w+)\.qmd"), pattern!(r"/tmp/(\w+)/")] {
            let Some(found) = file.find(&line) else { continue };
            let next = numbers.len();
            if !tests.has_room(found.len()) {
                return;
            }
            let number = *numbers.entry(found.as_str().to_owned()).or_insert(next);
            line = file.replace_all(&line, format!("/tmp/{number}")).into_owned();
        }
        let name = strip(before(&line, "..."));
        let is_rejected = line.starts_with("test result:")
            || line.contains("passed") && line.contains("failed") && line.contains("steps")
            || line.contains("34mINFO");
        if is_rejected {
            return;
        }
        if line.contains("32mok") {
            tests.set(name, Passed);
        } else if line.contains("31mFAILED") {
            tests.set(name, Failed);
        } else {
            tests.set_default(name, Failed);
        }
    })
}
