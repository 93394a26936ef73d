//! Finding marks, and what stands between them.

use std::ops::Range;

use crate::{FormatError, FormatErrorKind, Parsed};

/// The first place at or behind `from` where one of `marks` stands, with that mark.
///
/// All marks begin with `first`. One pass, however many marks are absent.
pub(crate) fn find_first<'a>(
    text: &str,
    from: usize,
    first: char,
    marks: &[&'a str],
) -> Option<(usize, &'a str)> {
    text[from..].match_indices(first).find_map(|(at, _)| {
        let rest = &text[from + at..];
        let mark = marks.iter().find(|mark| rest.starts_with(**mark))?;
        Some((from + at, *mark))
    })
}

/// Where `mark` first stands at or behind `from`.
pub(crate) fn find(text: &str, from: usize, mark: &str) -> Option<usize> {
    text[from..].find(mark).map(|at| from + at)
}

/// The place of the first character at or behind `from` that is no white space.
pub(crate) fn skip_space(text: &str, from: usize) -> usize {
    text.len() - text[from..].trim_start().len()
}

/// `range` without the white space at its ends.
pub(crate) fn trimmed(text: &str, range: Range<usize>) -> Range<usize> {
    let inside = &text[range.clone()];
    let start = range.start + (inside.len() - inside.trim_start().len());
    start..start + inside.trim().len()
}

/// An answer in plain words.
pub(crate) fn said(text: &str) -> Result<Parsed, FormatError> {
    let span = trimmed(text, 0..text.len());
    match &text[span.clone()] {
        "" => Err(empty(text)),
        words => Ok(Parsed::text(words, span)),
    }
}

/// There is nothing but white space.
pub(crate) fn empty(text: &str) -> FormatError {
    FormatError::new(FormatErrorKind::Empty, 0..text.len(), "the answer is empty")
}

/// What stands in the last well-formed pair of `open` and `close`, without white space at its ends.
pub(crate) fn last_between(
    text: &str,
    open: &str,
    close: &str,
) -> Result<Range<usize>, FormatError> {
    let missing = || {
        let message = format!("the answer has no {open}...{close}");
        Err(FormatError::new(FormatErrorKind::Missing, 0..text.len(), message))
    };
    let Some(end) = text.rfind(close) else {
        let Some(at) = text.rfind(open) else { return missing() };
        let message = format!("the {open} is not closed");
        return Err(FormatError::new(FormatErrorKind::Unclosed, at..text.len(), message));
    };
    let Some(at) = text[..end].rfind(open) else { return missing() };
    let start = at + open.len();
    // A closing mark may stand between them when the last one is stray.
    let end = find(text, start, close).unwrap_or(end);
    let inside = trimmed(text, start..end);
    if inside.is_empty() {
        let span = at..end + close.len();
        let message = format!("the {open} is empty");
        return Err(FormatError::new(FormatErrorKind::Empty, span, message));
    }
    Ok(inside)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_several_marks_is_found() {
        let marks = ["<b>", "<a>"];
        assert_eq!(find_first("ä < <a> <b>", 0, '<', &marks), Some((5, "<a>")));
        assert_eq!(find_first("ä < <a> <b>", 6, '<', &marks), Some((9, "<b>")));
        assert_eq!(find_first("< <", 0, '<', &marks), None);
    }

    #[test]
    fn space_at_the_ends_is_left_out() {
        assert_eq!(trimmed("  ä \n", 0..5), 2..4);
        assert_eq!(trimmed("a   b", 1..4), 4..4);
        assert_eq!(skip_space("a \n b", 1), 4);
    }
}
