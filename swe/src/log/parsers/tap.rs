//! The Test Anything Protocol.

use super::jest::without_duration;
use super::rules::by_word;
use crate::TestStatus::{Failed, Passed, Skipped};
use crate::log::reading::Reader;
use crate::log::statuses::Statuses;
use crate::python_text::{pattern, strip, strip_end};

pub(in crate::log) fn swe_bench() -> Reader {
    by_word(pattern!(r"^(ok|not ok) (\d+) (.+)$"), 1, 3, &[("ok", Passed), ("not ok", Failed)])
}

/// Nested, with the names of the suites around a test.
pub(in crate::log) fn nested() -> Reader {
    let mut suites: Vec<String> = Vec::new();
    Reader::python_lines(move |line: &str, tests: &mut Statuses| {
        let mut line = strip(line);
        if line.is_empty() {
            return;
        }
        if line.chars().all(|letter| letter == '}') {
            suites.truncate(suites.len().saturating_sub(line.len()));
            return;
        }
        let opens = line.ends_with('{');
        if opens {
            line = strip_end(&line[..line.len() - 1]);
        }
        let result = pattern!(r"^(?P<status>not ok|ok)\s+\d+\s+-\s+(?P<name>.*?)(?:\s+#.*)?$");
        let Some(groups) = result.captures(line) else { return };
        let raw = &groups["name"];
        let end = pattern!(r"\s+#").find(raw).map_or(raw.len(), |found| found.start());
        let name = without_duration(strip(&raw[..end]));
        if name.is_empty() {
            return;
        }
        let mut full = suites.join(" :: ");
        if !suites.is_empty() {
            full.push_str(" :: ");
        }
        full.push_str(&name);
        let lower = raw.to_lowercase();
        let is_skipped = ["# skip", "# skipped", "# todo"].iter().any(|mark| lower.contains(mark));
        match &groups["status"] {
            _ if is_skipped => tests.set(full, Skipped),
            "ok" => tests.set_default(full, Passed),
            _ => tests.set(full, Failed),
        }
        if opens && tests.has_room(name.len()) {
            suites.push(name);
        }
    })
}
