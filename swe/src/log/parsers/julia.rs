//! The table at the end of Julia's `Pkg.test`.

use crate::TestStatus::{Error, Failed, Passed};
use crate::log::reading::Reader;
use crate::log::statuses::Statuses;
use crate::python_text::{indent, pattern, strip, words};

pub(in crate::log) fn swe_rebench() -> Reader {
    let (mut is_in_summary, mut has_fail, mut has_error) = (false, false, false);
    Reader::python_lines(move |line: &str, tests: &mut Statuses| {
        if line.contains("Test Summary:") {
            is_in_summary = true;
            if line.contains("| Pass") {
                let header = line.split('|').nth(1).unwrap_or_default();
                has_fail = header.contains("Fail");
                has_error = header.contains("Error");
            }
            return;
        }
        if !is_in_summary {
            return;
        }
        let Some(groups) = pattern!(r"^(\s*)(.+?)\s+\|(.+)$").captures(line) else { return };
        let columns = &groups[3];
        let is_number = |word: &&str| word.chars().all(char::is_numeric);
        let numbers: Vec<&str> = words(columns).filter(is_number).take(6).collect();
        let total = words(columns).rfind(is_number);
        let is_some = |number: &str| number.chars().any(|digit| digit != '0');
        let same = |number: &str| {
            total.is_some_and(|total| {
                total.trim_start_matches('0') == number.trim_start_matches('0')
            })
        };
        let status = match numbers[..] {
            [] | [_] => return,
            // An empty column of passes leaves blanks.
            [_, _] if indent(columns) >= 10 => Error,
            [first, _] if !same(first) => Error,
            [_, _] => Passed,
            [_, middle, _] if !is_some(middle) => Passed,
            [_, _, _] if has_fail && !has_error => Failed,
            [_, _, _] => Error,
            [_, _, errors, ..] if is_some(errors) => Error,
            [_, failures, ..] if is_some(failures) => Failed,
            _ => Passed,
        };
        tests.set(strip(&groups[2]), status);
    })
}
