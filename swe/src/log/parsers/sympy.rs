//! sympy's own runner.

use crate::TestStatus::{Error, Failed, Passed};
use crate::log::reading::{LineParser, Reader};
use crate::log::statuses::Statuses;
use crate::python_text::{pattern, strip, words};

pub(in crate::log) fn swe_bench() -> Reader {
    Reader::lines(Sympy::default())
}

/// SWE-rebench takes off what the runner says of the file at the end of a test's line.
pub(in crate::log) fn swe_rebench() -> Reader {
    Reader::lines(Sympy { takes_off_files: true, ..Sympy::default() })
}

#[derive(Default)]
struct Sympy {
    takes_off_files: bool,
    /// Lines of tests, which hold against headings of failures wherever they stand.
    progress: Statuses,
}

impl LineParser for Sympy {
    fn line(&mut self, line: &str, tests: &mut Statuses) {
        for groups in pattern!(r"(_*) (.*)\.py:(.*) (_*)").captures_iter(line) {
            tests.set(format!("{}.py:{}", &groups[2], &groups[3]), Failed);
        }
        let mut line = strip(line);
        if !line.starts_with("test_") {
            return;
        }
        if self.takes_off_files && (line.ends_with("[FAIL]") || line.ends_with("[OK]")) {
            line = strip(&line[..line.rfind('[').unwrap_or(0)]);
        }
        for (end, status) in [(" E", Error), (" F", Failed), (" ok", Passed)] {
            if line.ends_with(end) {
                self.progress.set(words(line).next().unwrap_or_default(), status);
            }
        }
    }

    fn end(&mut self, tests: &mut Statuses) {
        tests.extend(std::mem::take(&mut self.progress));
    }
}
