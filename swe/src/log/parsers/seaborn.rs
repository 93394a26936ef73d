//! seaborn's runs of pytest: failures from the summary, passes from the lines of progress.

use crate::TestStatus::{Failed, Passed};
use crate::log::reading::Reader;
use crate::log::statuses::Statuses;
use crate::python_text::words;

pub(in crate::log) fn swe_bench() -> Reader {
    Reader::lines(|line: &str, tests: &mut Statuses| read(line, tests, false))
}

/// Up to version 4 a word that stands alone raises.
pub(in crate::log) fn swe_bench_4() -> Reader {
    Reader::lines(|line: &str, tests: &mut Statuses| read(line, tests, true))
}

fn read(line: &str, tests: &mut Statuses, raises: bool) {
    let is_of_interest =
        line.starts_with("FAILED") || line.contains(" PASSED ") || line.starts_with("PASSED");
    if !is_of_interest {
        return;
    }
    let mut words = words(line);
    let (Some(first), Some(second)) = (words.next(), words.next()) else {
        if raises {
            tests.raise("a status without a name: list index out of range");
        }
        return;
    };
    if line.starts_with("FAILED") {
        tests.set(second, Failed);
    } else if line.contains(" PASSED ") {
        if second == "PASSED" {
            tests.set(first, Passed);
        }
    } else {
        tests.set(second, Passed);
    }
}
