//! Methods of texts.

use crate::characters::{is_line_end, is_space};

/// `text.splitlines()`.
pub fn split_lines(text: &str) -> Vec<&str> {
    let mut lines = Vec::new();
    let mut start = 0;
    let mut characters = text.char_indices().peekable();
    while let Some((at, character)) = characters.next() {
        if !is_line_end(character) {
            continue;
        }
        lines.push(&text[start..at]);
        start = at + character.len_utf8();
        if character == '\r' && matches!(characters.peek(), Some((_, '\n'))) {
            characters.next();
            start += 1;
        }
    }
    if start < text.len() {
        lines.push(&text[start..]);
    }
    lines
}

/// `text.split()`: the words between white space.
pub fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(is_space).filter(|word| !word.is_empty())
}

/// `text.strip()`.
pub fn strip(text: &str) -> &str {
    text.trim_matches(is_space)
}

/// `text.lower()`.
pub fn lower(text: &str) -> String {
    text.to_lowercase()
}

/// `text.zfill(width)`: zeros in front, after a sign.
pub fn zero_fill(text: &str, width: usize) -> String {
    let zeros = "0".repeat(width.saturating_sub(text.chars().count()));
    match text.strip_prefix(['+', '-']) {
        Some(rest) => format!("{}{zeros}{rest}", &text[..1]),
        None => format!("{zeros}{text}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_where_python_ends_them() {
        assert_eq!(split_lines("a\r\nb\rc\n\nd"), ["a", "b", "c", "", "d"]);
        assert_eq!(
            split_lines("a\u{b}b\u{c}c\u{1c}d\u{85}e\u{2028}f\n"),
            ["a", "b", "c", "d", "e", "f"]
        );
        assert!(split_lines("").is_empty());
    }

    #[test]
    fn words_stand_between_white_space() {
        assert_eq!(words(" a\u{1f}b\u{a0}c ").collect::<Vec<_>>(), ["a", "b", "c"]);
        assert_eq!(strip("\u{1c} x\t"), "x");
        assert_eq!((zero_fill("5", 3), zero_fill("-5", 4)), ("005".into(), "-005".into()));
    }
}
