//! `lein test`: namespaces.

use crate::TestStatus::{Error, Failed, Passed};
use crate::log::reading::Reader;
use crate::log::statuses::Statuses;
use crate::python_text::{pattern, strip, words};

pub(in crate::log) fn swe_rebench() -> Reader {
    let mut current: Option<String> = None;
    Reader::python_lines(move |line: &str, tests: &mut Statuses| {
        let line = strip(line);
        if let Some(groups) = pattern!(r"^lein test (.+)$").captures(line) {
            let mut tokens = words(&groups[1]);
            if words(&groups[1]).next() == Some(":only") {
                let target = tokens.skip(1).collect::<Vec<_>>().join(" ");
                let base = strip(target.split('/').next().unwrap_or_default());
                current = (!base.is_empty()).then(|| base.to_owned());
                if let Some(name) = &current {
                    tests.set_default(name.as_str(), Passed);
                }
            } else {
                tokens.by_ref().for_each(|name| {
                    tests.set_default(name, Passed);
                    current = Some(name.to_owned());
                });
            }
            return;
        }
        let Some(name) = &current else { return };
        if line.starts_with("FAIL in") {
            tests.set(name.as_str(), Failed);
        } else if line.starts_with("ERROR in") {
            tests.set(name.as_str(), Error);
        }
    })
}
