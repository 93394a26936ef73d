//! Methods of Python's strings that go by white space and ends of lines.

/// What Python calls white space: what Unicode does, and the four separators of ASCII.
fn is_space(character: char) -> bool {
    character.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&character)
}

/// A side of a text, or both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Both,
    Start,
    End,
}

/// `text.strip(chars)`, `lstrip` and `rstrip`; white space where `chars` are absent.
pub(super) fn strip<'a>(text: &'a str, chars: Option<&str>, side: Side) -> &'a str {
    let goes = |character: char| match chars {
        Some(chars) => chars.contains(character),
        None => is_space(character),
    };
    let text = if side == Side::End { text } else { text.trim_start_matches(goes) };
    if side == Side::Start { text } else { text.trim_end_matches(goes) }
}

/// `text.split(None, most)`: what is between white space, at the most so often; absent is always.
pub(super) fn split_spaces(text: &str, most: Option<usize>) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = strip(text, None, Side::Start);
    while !rest.is_empty() {
        let end = match most {
            Some(most) if parts.len() >= most => rest.len(),
            _ => rest.find(is_space).unwrap_or(rest.len()),
        };
        parts.push(&rest[..end]);
        rest = strip(&rest[end..], None, Side::Start);
    }
    parts
}

/// `text.splitlines(keeps_ends)`.
pub(super) fn lines(text: &str, keeps_ends: bool) -> Vec<&str> {
    let ends = |character| matches!(character, '\n'..='\r' | '\u{1c}'..='\u{1e}' | '\u{85}' | '\u{2028}' | '\u{2029}');
    let mut lines = Vec::new();
    let mut rest = text;
    while let Some(end) = rest.find(ends) {
        let character = rest[end..].chars().next().map_or(0, char::len_utf8);
        let len = if rest[end..].starts_with("\r\n") { 2 } else { character };
        lines.push(&rest[..if keeps_ends { end + len } else { end }]);
        rest = &rest[end + len..];
    }
    if !rest.is_empty() {
        lines.push(rest);
    }
    lines
}

/// `text.isspace()`.
pub(super) fn is_blank(text: &str) -> bool {
    !text.is_empty() && text.chars().all(is_space)
}

#[cfg(test)]
mod tests {
    use super::*;

    // What Python 3 answers.

    #[test]
    fn white_space_is_what_python_calls_so() {
        let text = "\u{1c}\u{1f}\u{85}\u{a0}\u{3000} a\u{200b} \u{1d}\t";
        assert_eq!(strip(text, None, Side::Both), "a\u{200b}");
        assert_eq!(strip(text, None, Side::Start), "a\u{200b} \u{1d}\t");
        assert_eq!(strip(" a \u{1e}", None, Side::End), " a");
        assert_eq!(strip("xyaxy", Some("yx"), Side::Both), "a");
        assert_eq!(strip(" a ", Some(""), Side::Both), " a ");
        assert!(is_blank(" \u{1c}\n") && !is_blank("") && !is_blank("\u{feff}"));
    }

    #[test]
    fn texts_are_split_at_white_space() {
        assert_eq!(split_spaces(" a\u{1c}b\n c ", None), ["a", "b", "c"]);
        assert_eq!(split_spaces(" a  b  c ", Some(1)), ["a", "b  c "]);
        assert_eq!(split_spaces(" a  b ", Some(0)), ["a  b "]);
        assert_eq!(split_spaces("a b ", Some(2)), ["a", "b"]);
        assert!(split_spaces(" \t", None).is_empty() && split_spaces("", Some(1)).is_empty());
    }

    #[test]
    fn texts_are_split_into_lines() {
        assert_eq!(lines("a\r\nb\rc\x0bd\u{1e}e\u{2028}f\u{1f}\n", false), {
            ["a", "b", "c", "d", "e", "f\u{1f}"]
        });
        assert_eq!(lines("a\r\n\nb", true), ["a\r\n", "\n", "b"]);
        assert!(lines("", false).is_empty());
    }
}
