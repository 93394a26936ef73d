//! Patches as git writes them, from edits whose places are known.

use std::fmt::Write;
use std::ops::Range;

use crate::mutation::Edits;

/// Lines around a change.
const CONTEXT: usize = 3;

/// The patch of edits of one file.
pub(crate) fn patch(path: &str, old: &str, edits: &Edits) -> String {
    let new = edits.apply(old);
    let inverse = edits.inverse(old);
    let (old_lines, new_lines) = (lines(old), lines(&new));
    // Ranges of lines that differ, in both texts.
    let mut changes: Vec<(Range<usize>, Range<usize>)> = Vec::new();
    for (edit, back) in edits.as_slice().iter().zip(inverse.as_slice()) {
        let (one, other) = (touched(old, &edit.span), touched(&new, &back.span));
        match changes.last_mut() {
            Some((last_old, last_new))
                if one.start <= last_old.end || other.start <= last_new.end =>
            {
                last_old.end = last_old.end.max(one.end);
                last_new.end = last_new.end.max(other.end);
            }
            _ => changes.push((one, other)),
        }
    }
    for (one, other) in &mut changes {
        while one.start < one.end
            && other.start < other.end
            && old_lines[one.start] == new_lines[other.start]
        {
            one.start += 1;
            other.start += 1;
        }
        while one.start < one.end
            && other.start < other.end
            && old_lines[one.end - 1] == new_lines[other.end - 1]
        {
            one.end -= 1;
            other.end -= 1;
        }
    }
    changes.retain(|(one, other)| !(one.is_empty() && other.is_empty()));
    let mut patch = format!("diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n");
    let mut rest = &changes[..];
    while let Some((first, _)) = rest.first() {
        let mut count = 1;
        while rest
            .get(count)
            .is_some_and(|(next, _)| next.start <= rest[count - 1].0.end + 2 * CONTEXT)
        {
            count += 1;
        }
        let (hunk, after) = rest.split_at(count);
        rest = after;
        let last = &hunk[count - 1];
        let before = first.start.min(CONTEXT);
        let behind = (old_lines.len() - last.0.end).min(CONTEXT);
        let old_range = first.start - before..last.0.end + behind;
        let new_range = hunk[0].1.start - before..last.1.end + behind;
        let _ = writeln!(patch, "@@ -{} +{} @@", place(&old_range), place(&new_range));
        let mut at = old_range.start;
        for (one, other) in hunk {
            old_lines[at..one.start].iter().for_each(|line| push(&mut patch, ' ', line));
            old_lines[one.clone()].iter().for_each(|line| push(&mut patch, '-', line));
            new_lines[other.clone()].iter().for_each(|line| push(&mut patch, '+', line));
            at = one.end;
        }
        old_lines[at..old_range.end].iter().for_each(|line| push(&mut patch, ' ', line));
    }
    patch
}

/// The patch that adds a file.
pub(crate) fn added(path: &str, text: &str, is_executable: bool) -> String {
    let mode = if is_executable { "100755" } else { "100644" };
    let mut patch = format!("diff --git a/{path} b/{path}\nnew file mode {mode}\n");
    let lines = lines(text);
    if lines.is_empty() {
        // git tells an empty file by the hash of nothing.
        patch.push_str("index 0000000..e69de29\n");
        return patch;
    }
    let _ =
        writeln!(patch, "--- /dev/null\n+++ b/{path}\n@@ -0,0 +{} @@", place(&(0..lines.len())));
    lines.iter().for_each(|line| push(&mut patch, '+', line));
    patch
}

/// Lines with their ends; the last one may have none.
fn lines(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

/// The lines that a span lies in, those that it ends in included.
fn touched(text: &str, span: &Range<usize>) -> Range<usize> {
    let line_of = |at: usize| text[..at].bytes().filter(|byte| *byte == b'\n').count();
    let count = lines(text).len();
    line_of(span.start).min(count)..(line_of(span.end) + 1).min(count)
}

fn place(range: &Range<usize>) -> String {
    match range.len() {
        0 => format!("{},0", range.start),
        1 => (range.start + 1).to_string(),
        len => format!("{},{len}", range.start + 1),
    }
}

fn push(patch: &mut String, sign: char, line: &str) {
    patch.push(sign);
    patch.push_str(line);
    if !line.ends_with('\n') {
        patch.push_str("\n\\ No newline at end of file\n");
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use spar_swe::{Body, Patch, PatchLimits};

    use super::*;
    use crate::mutation::Edit;

    /// Applies the hunks of a patch of one file, strictly.
    fn applied(text: &str, patch: &str) -> String {
        let mut old = lines(text).into_iter();
        let (mut new, mut at) = (String::new(), 0);
        let mut rows =
            patch.split_inclusive('\n').skip_while(|row| !row.starts_with("@@")).peekable();
        while let Some(row) = rows.next() {
            if let Some(places) = row.strip_prefix("@@ -") {
                let old_place = places.split(' ').next().unwrap();
                let (start, len) = old_place.split_once(',').unwrap_or((old_place, "1"));
                let start = start.parse::<usize>().unwrap() - usize::from(len != "0");
                while at < start {
                    new.push_str(old.next().unwrap());
                    at += 1;
                }
                continue;
            }
            let (sign, line) = row.split_at(1);
            let line = match rows.next_if(|next| next.starts_with('\\')) {
                Some(_) => line.trim_end_matches('\n'),
                None => line,
            };
            if sign != "+" {
                assert_eq!(old.next().unwrap(), line);
                at += 1;
            }
            if sign != "-" {
                new.push_str(line);
            }
        }
        old.for_each(|line| new.push_str(line));
        new
    }

    #[test]
    fn hunks_have_three_lines_around_them() {
        let old = "1\n2\n3\n4\n5\n6\n7\n8\n";
        let edits = Edits::new(vec![Edit { span: 8..9, replacement: "x".into() }]).unwrap();
        assert_eq!(
            patch("a", old, &edits),
            "diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+x\n 6\n 7\n 8\n"
        );
        assert_eq!(
            added("t/a.py", "x\ny", false),
            "diff --git a/t/a.py b/t/a.py\nnew file mode 100644\n--- /dev/null\n+++ b/t/a.py\n@@ -0,0 +1,2 @@\n+x\n+y\n\\ No newline at end of file\n"
        );
    }

    proptest! {
        #[test]
        fn patches_make_the_text_behind_the_edits(
            text in "([a-c]{0,2}\r?\n){0,30}[a-c]{0,2}",
            cuts in prop::collection::vec((0usize..90, 0usize..9, "([x-z]{0,2}\n?){0,3}"), 1..6),
        ) {
            let edits = cuts.into_iter().map(|(start, len, replacement)| {
                let start = start.min(text.len());
                Edit { span: start..(start + len).min(text.len()), replacement }
            });
            if let Some(edits) = Edits::new(edits.collect()) {
                let new = edits.apply(&text);
                prop_assume!(new != text);
                let patch = patch("a/b.py", &text, &edits);
                prop_assert_eq!(applied(&text, &patch), new);
                let read = Patch::parse(patch.as_bytes(), &PatchLimits::default()).unwrap();
                prop_assert!(matches!(read.files[0].body, Body::Text(_)));
            }
        }
    }
}
