//! Texts as Python sees them: what is blank, where lines end, what a pattern's classes hold.

use regex::Regex;

/// A pattern of Python's `re`, compiled once; classes are those of Python.
macro_rules! pattern {
    ($text:expr) => {{
        static PATTERN: std::sync::LazyLock<regex::Regex> =
            std::sync::LazyLock::new(|| $crate::python_text::compile($text));
        &*PATTERN
    }};
}
pub(crate) use pattern;

/// Compiles a pattern written for Python's `re`, whose `\s`, `\w` and `\d` differ a little from this crate's.
///
/// # Panics
///
/// When the pattern is none; all are constants.
pub(crate) fn compile(pattern: &str) -> Regex {
    const SPACE: &str = r"\s\x1C-\x1F";
    const WORD: &str = r"\p{L}\p{N}_";
    let mut translated = String::with_capacity(pattern.len() * 2);
    let mut in_class = false;
    let mut letters = pattern.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => match letters.next() {
                Some('s') if in_class => translated.push_str(SPACE),
                Some('s') => translated.push_str(&format!("[{SPACE}]")),
                Some('S') => translated.push_str(&format!("[^{SPACE}]")),
                Some('w') if in_class => translated.push_str(WORD),
                Some('w') => translated.push_str(&format!("[{WORD}]")),
                Some('W') => translated.push_str(&format!("[^{WORD}]")),
                Some(other) => {
                    translated.push('\\');
                    translated.push(other);
                }
                None => translated.push('\\'),
            },
            '[' if !in_class => {
                in_class = true;
                translated.push('[');
            }
            ']' if in_class => {
                in_class = false;
                translated.push(']');
            }
            other => translated.push(other),
        }
    }
    Regex::new(&translated).expect("a pattern that was written here")
}

/// `str.isspace` of one character.
pub fn is_space(letter: char) -> bool {
    letter.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&letter)
}

/// `str.strip()`.
pub fn strip(text: &str) -> &str {
    text.trim_matches(is_space)
}

/// `str.lstrip()`.
pub fn strip_start(text: &str) -> &str {
    text.trim_start_matches(is_space)
}

/// `str.rstrip()`.
pub fn strip_end(text: &str) -> &str {
    text.trim_end_matches(is_space)
}

/// `str.split()`.
pub(crate) fn words(text: &str) -> impl DoubleEndedIterator<Item = &str> {
    text.split(is_space).filter(|word| !word.is_empty())
}

/// What stands before the first `separator`, or all: `text.split(separator)[0]`.
pub(crate) fn before<'t>(text: &'t str, separator: &str) -> &'t str {
    text.split_once(separator).map_or(text, |(first, _)| first)
}

/// Characters by which a line is indented: `len(line) - len(line.lstrip())`.
pub(crate) fn indent(line: &str) -> usize {
    line.chars().take_while(|letter| is_space(*letter)).count()
}

/// Whether `str.splitlines` ends a line at this character; `"\r\n"` is one end.
pub(crate) fn ends_line(letter: char) -> bool {
    matches!(
        letter,
        '\n' | '\r'
            | '\u{b}'
            | '\u{c}'
            | '\u{1c}'
            | '\u{1d}'
            | '\u{1e}'
            | '\u{85}'
            | '\u{2028}'
            | '\u{2029}'
    )
}

/// The first line of a text as `str.splitlines` has it, and what follows its end; `None` where no end is seen.
/// A carriage return at the very end waits for what follows, as it may be half an end.
pub fn split_line(text: &str) -> Option<(&str, &str)> {
    let at = text.find(ends_line)?;
    let mut rest = text[at..].chars();
    if rest.next() == Some('\r') {
        match rest.clone().next() {
            None => return None,
            Some('\n') => {
                rest.next();
            }
            Some(_) => {}
        }
    }
    Some((&text[..at], rest.as_str()))
}

/// `str.splitlines()`.
pub fn lines(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (line, after) =
            split_line(rest).unwrap_or_else(|| (rest.strip_suffix('\r').unwrap_or(rest), ""));
        rest = after;
        Some(line)
    })
}

/// Without the escape sequences of terminals, as the originals' `ansi_escape` has it.
pub(crate) fn without_escapes(text: &str) -> std::borrow::Cow<'_, str> {
    pattern!(r"\x1B(?:[@-Z\\-_]|\[[0-?]*[ -/]*[@-~])").replace_all(text, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_where_python_ends_them() {
        let text = "a\r\nb\rc\u{2028}d\u{1c}\n\ne\r";
        assert_eq!(lines(text).collect::<Vec<_>>(), ["a", "b", "c", "d", "", "", "e"]);
        assert_eq!(lines("").count(), 0);
        assert_eq!(split_line("a\r"), None);
    }

    #[test]
    fn classes_are_pythons() {
        assert!(compile(r"^\s$").is_match("\u{1c}"));
        assert!(!compile(r"^\S$").is_match("\u{1f}"));
        assert!(compile(r"^[\w-]+$").is_match("é²-_"));
        assert!(!compile(r"^\w$").is_match("\u{301}"));
        assert_eq!(words(" a\u{1c}b\u{a0}c ").collect::<Vec<_>>(), ["a", "b", "c"]);
    }

    #[test]
    fn escapes_are_taken_out() {
        assert_eq!(without_escapes("\u{1b}[31;1mred\u{1b}[0m \u{1b}Mup"), "red up");
    }
}
