//! `dart test` and `flutter test`.

use std::collections::HashMap;

use indexmap::IndexMap;
use serde_json::Value;

use crate::TestStatus::{Error, Failed, Passed, Skipped};
use crate::log::reading::{LineParser, Reader};
use crate::log::statuses::Statuses;
use crate::python_text::{pattern, strip};

/// The JSON reporter.
pub(in crate::log) fn v1() -> Reader {
    let mut names: HashMap<String, String> = HashMap::new();
    Reader::python_lines(move |line: &str, tests: &mut Statuses| {
        match serde_json::from_str(strip(line)) {
            Ok(Value::Array(events)) => {
                events.iter().for_each(|event| read_event(event, &mut names, tests));
            }
            Ok(event) => read_event(&event, &mut names, tests),
            Err(_) => {}
        }
    })
}

fn read_event(event: &Value, names: &mut HashMap<String, String>, tests: &mut Statuses) {
    match event["type"].as_str() {
        Some("testStart") => {
            let (id, name) = (&event["test"]["id"], event["test"]["name"].as_str().unwrap_or(""));
            let is_test = !id.is_null() && !name.is_empty() && !name.starts_with("loading ");
            if is_test && tests.has_room(name.len()) {
                names.insert(id.to_string(), name.to_owned());
            }
        }
        Some("testDone") => {
            let is_hidden = event["hidden"].as_bool().unwrap_or(false);
            let name = names.get(&event["testID"].to_string()).filter(|_| !is_hidden);
            let status = match event["result"].as_str() {
                Some("success") => Passed,
                Some("failure") => Failed,
                Some("error") => Error,
                _ if event["skipped"].as_bool().unwrap_or(false) => Skipped,
                _ => return,
            };
            if let Some(name) = name {
                tests.set(name.as_str(), status);
            }
        }
        _ => {}
    }
}

/// The compact reporter of several packages: a test that is printed twice has passed.
pub(in crate::log) fn v2() -> Reader {
    Reader::python_lines(Compact::default())
}

/// How often a file's test was printed.
#[derive(Default)]
struct Compact(IndexMap<(String, String), u32>);

impl LineParser for Compact {
    fn line(&mut self, line: &str, tests: &mut Statuses) {
        let line = strip(line);
        if line.to_lowercase().contains("loading") {
            return;
        }
        let test = pattern!(r"^\[[\w_]+\]:\s+\d{2}:\d{2}\s+\+(\d+):\s+(/[^:]+\.dart):\s+(.+)$");
        if let Some(groups) = test.captures(line)
            && tests.has_room(line.len())
        {
            let times = self.0.entry((groups[2].to_owned(), groups[3].to_owned())).or_insert(0);
            *times = times.saturating_add(1);
        }
    }

    fn end(&mut self, tests: &mut Statuses) {
        for ((file, test), times) in self.0.drain(..) {
            tests.set(format!("{file}: {test}"), if times > 1 { Passed } else { Error });
        }
    }
}

/// The compact and the expanded reporter, whose failures end in `[E]`.
pub(in crate::log) fn v3() -> Reader {
    Reader::python_lines(|line: &str, tests: &mut Statuses| {
        let line = strip(line);
        let loading = pattern!(r"^\d+:\d+\s+\+\d+\s+-\d+:\s+loading\s+(/[^:]+\.dart)\s+\[E\]$");
        let test =
            pattern!(r"^\d+:\d+\s+\+\d+(?:\s+-\d+)?:\s+(/[^:]+\.dart):\s+(.+?)(?:\s+\[E\])?$");
        if let Some(groups) = loading.captures(line) {
            tests.set(&groups[1], Error);
        } else if let Some(groups) = test.captures(line) {
            let name = format!("{}: {}", &groups[1], strip(&groups[2]));
            match line.contains("[E]") {
                true => tests.set(name, Failed),
                // The original looks for a count of failures before the first colon, where the minutes stand.
                false => tests.set_default(name, Passed),
            }
        }
    })
}
