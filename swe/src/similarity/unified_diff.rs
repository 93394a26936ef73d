use super::sequence_matcher::{IndexedSequence, SequenceMatcher};
use super::{SimilarityError, check_size};
use crate::python_text;

/// Lines of context.
const CONTEXT: usize = 3;

/// A stretch of both sides that is equal, or that was replaced.
#[derive(Clone, Copy)]
struct Stretch {
    is_equal: bool,
    a: (usize, usize),
    b: (usize, usize),
}

/// Python's `difflib.unified_diff` of two texts' `splitlines()`, without its two lines of headings and without line ends; empty
/// for texts that do not differ in lines.
///
/// # Errors
///
/// [`SimilarityError`] for texts that cannot be compared in bounded time and space.
pub fn unified_diff(old: &str, new: &str) -> Result<String, SimilarityError> {
    check_size(old)?;
    check_size(new)?;
    let a: Vec<&str> = python_text::lines(old).collect();
    let b: Vec<&str> = python_text::lines(new).collect();
    if a == b {
        return Ok(String::new());
    }
    let mut stretches = Vec::new();
    let (mut i, mut j) = (0, 0);
    let indexed = IndexedSequence::new(b.clone(), true);
    for found in SequenceMatcher::new(&a, &indexed).matching_blocks()? {
        if i < found.i || j < found.j {
            stretches.push(Stretch { is_equal: false, a: (i, found.i), b: (j, found.j) });
        }
        (i, j) = (found.i + found.size, found.j + found.size);
        if found.size > 0 {
            stretches.push(Stretch { is_equal: true, a: (found.i, i), b: (found.j, j) });
        }
    }
    let mut lines: Vec<String> = Vec::new();
    for group in grouped(stretches) {
        let (Some(first), Some(last)) = (group.first(), group.last()) else { continue };
        lines.push(format!(
            "@@ -{} +{} @@",
            range(first.a.0, last.a.1),
            range(first.b.0, last.b.1)
        ));
        for stretch in group {
            let (old, new) = (&a[stretch.a.0..stretch.a.1], &b[stretch.b.0..stretch.b.1]);
            if stretch.is_equal {
                lines.extend(old.iter().map(|line| format!(" {line}")));
            } else {
                lines.extend(old.iter().map(|line| format!("-{line}")));
                lines.extend(new.iter().map(|line| format!("+{line}")));
            }
        }
    }
    Ok(lines.join("\n"))
}

/// Changes that are near each other, with their context.
fn grouped(mut stretches: Vec<Stretch>) -> Vec<Vec<Stretch>> {
    if let Some(first) = stretches.first_mut().filter(|stretch| stretch.is_equal) {
        first.a.0 = first.a.0.max(first.a.1.saturating_sub(CONTEXT));
        first.b.0 = first.b.0.max(first.b.1.saturating_sub(CONTEXT));
    }
    if let Some(last) = stretches.last_mut().filter(|stretch| stretch.is_equal) {
        last.a.1 = last.a.1.min(last.a.0 + CONTEXT);
        last.b.1 = last.b.1.min(last.b.0 + CONTEXT);
    }
    let mut groups = Vec::new();
    let mut group: Vec<Stretch> = Vec::new();
    for mut stretch in stretches {
        let Stretch { is_equal, a, b } = stretch;
        if is_equal && a.1 - a.0 > 2 * CONTEXT {
            group.push(Stretch {
                is_equal,
                a: (a.0, a.1.min(a.0 + CONTEXT)),
                b: (b.0, b.1.min(b.0 + CONTEXT)),
            });
            groups.push(std::mem::take(&mut group));
            stretch.a.0 = a.0.max(a.1.saturating_sub(CONTEXT));
            stretch.b.0 = b.0.max(b.1.saturating_sub(CONTEXT));
        }
        group.push(stretch);
    }
    if !matches!(group[..], [] | [Stretch { is_equal: true, .. }]) {
        groups.push(group);
    }
    groups
}

/// A range of lines as headings of hunks have it.
fn range(start: usize, end: usize) -> String {
    match end - start {
        1 => (start + 1).to_string(),
        // An empty range begins at the line before it.
        0 => format!("{start},0"),
        length => format!("{},{length}", start + 1),
    }
}
