//! plenary.nvim.

use crate::TestStatus::{Failed, Passed, Skipped};
use crate::log::reading::Reader;
use crate::log::statuses::Statuses;
use crate::python_text::{pattern, strip, strip_end};

pub(in crate::log) fn swe_rebench() -> Reader {
    Reader::python_lines(|line: &str, tests: &mut Statuses| {
        let line = pattern!(r"\x1b\[[0-9;]*m").replace_all(line, "");
        let line = strip_end(&line);
        // Counts at the end have a colon and no bars.
        if line.split('\t').next().is_some_and(|first| first.contains(':')) && !line.contains("||")
        {
            return;
        }
        for (pattern, status) in [
            (pattern!(r"^(?:Fail|Failed)\s*\|\|\s*(.+?)\s*$"), Failed),
            (pattern!(r"(?i)^(?:Skip|Skipped)\s*\|\|\s*(.+?)\s*$"), Skipped),
            (pattern!(r"^Success\s*\|\|\s*(.+?)\s*$"), Passed),
        ] {
            if let Some(groups) = pattern.captures(line) {
                let name = strip(&groups[1]);
                return match status {
                    Failed => tests.set(name, status),
                    _ => tests.set_default(name, status),
                };
            }
        }
    })
}
