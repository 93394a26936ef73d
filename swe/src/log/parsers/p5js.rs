//! p5.js: numbered failures among blocks of JSON and of markup, which are taken out first.

use std::collections::HashMap;

use crate::TestStatus::Failed;
use crate::log::statuses::Statuses;
use crate::python_text::{indent, pattern, strip, strip_end, without_escapes};

pub(in crate::log) fn swe_bench(log: &str, tests: &mut Statuses) {
    let log = without_markup(&without_json(&without_escapes(log)));
    for groups in pattern!(r"(?ms)^\s*(\d+)\)(.{0,1000}?):").captures_iter(&log) {
        let mut last_indent = 0;
        // Each line of a failure is indented further than the one before.
        let is_failure = groups[2].split('\n').all(|line| {
            let is_further = indent(line) > last_indent;
            last_indent = indent(line);
            is_further
        });
        if is_failure {
            tests.set(groups[2].split('\n').map(strip).collect::<Vec<_>>().join(":"), Failed);
        }
    }
}

fn without_json(log: &str) -> String {
    let (mut is_in_object, mut is_in_list) = (false, false);
    let mut kept = Vec::new();
    for line in log.split('\n') {
        let stripped = strip_end(line);
        if stripped.ends_with('{') {
            is_in_object = true;
        } else if stripped.ends_with('[') {
            is_in_list = true;
        } else if stripped == "}" && is_in_object {
            is_in_object = false;
        } else if stripped == "]" && is_in_list {
            is_in_list = false;
        } else if !(is_in_object
            || is_in_list
            || stripped.starts_with('{') && stripped.ends_with('}')
            || stripped.starts_with('[') && stripped.ends_with(']'))
        {
            kept.push(line);
        }
    }
    kept.join("\n")
}

/// Takes out `<name>...</name>`, where an opening tag needs as many closing ones as there are opening ones between; what has
/// too few of them leaves its opening tags. One pass, where the original begins anew after every block.
fn without_markup(log: &str) -> String {
    let mut closings: HashMap<&str, Vec<usize>> = HashMap::new();
    for groups in pattern!(r"</(\w+)>").captures_iter(log) {
        if let (Some(whole), Some(name)) = (groups.get(0), groups.get(1)) {
            closings.entry(name.as_str()).or_default().push(whole.start());
        }
    }
    let mut kept = String::with_capacity(log.len());
    let mut at = 0;
    let mut from = 0;
    while let Some(opening) = pattern!(r"<(\w+)>").captures_at(log, from) {
        let (Some(whole), Some(name)) = (opening.get(0), opening.get(1)) else { break };
        let ends = closings.get(name.as_str()).map_or(&[][..], Vec::as_slice);
        let mut ends = ends[ends.partition_point(|end| *end < whole.end())..].iter();
        let (tag, closing_bytes) = (whole.as_str(), whole.len() + 1);
        let (mut depth, mut inside) = (1usize, whole.end());
        let mut has_closed = false;
        while depth > 0
            && let Some(end) = ends.next()
        {
            depth = depth + log[inside..*end].matches(tag).count() - 1;
            inside = end + closing_bytes;
            has_closed = true;
        }
        if !has_closed {
            from = whole.end();
            continue;
        }
        kept.push_str(&log[at..whole.start()]);
        for _ in 0..depth {
            kept.push_str(tag);
        }
        at = inside;
        from = inside;
    }
    kept.push_str(&log[at..]);
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_is_taken_out_with_what_it_holds() {
        for (text, left) in [
            ("a<p>b</p>c", "ac"),
            ("a<p>b<p>c</p>d</p>e", "ae"),
            ("a<p>b<p>c</p>d", "a<p>d"),
            ("a<p>b<q>c</p>d</q>", "ad</q>"),
            ("<p>a<q>b</q>", "<p>a"),
        ] {
            assert_eq!(without_markup(text), left, "{text}");
        }
    }
}
