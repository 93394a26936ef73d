//! Text cut into pieces: words, groups of digits, punctuation, space.

use std::sync::LazyLock;

use regex_syntax::hir::{Class, HirKind};
use serde::{Deserialize, Serialize};

/// Where the space before a word goes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Spaces {
    /// With the word behind it, and one is thought before every text: fewer tokens, but a word behind a quotation mark or a
    /// bracket is other tokens than behind a space.
    #[default]
    Joined,
    /// Apart from all words, so that a word is the same tokens wherever it stands, which is what makes names easy to copy.
    Apart,
}

impl Spaces {
    /// The pieces as a regular expression, in the syntax that Rust's and Python's `tokenizers` share; [`piece_end`] does the
    /// same.
    fn pattern(self) -> &'static str {
        match self {
            Self::Joined => concat!(
                r" ?[\p{L}\p{M}]+",
                r"| ?\p{N}{1,3}",
                r"| ?[^\s\p{L}\p{M}\p{N}]+",
                r"|\s*[\r\n]+|\s+(?!\S)|\s+"
            ),
            Self::Apart => r"[\p{L}\p{M}]+|\p{N}{1,3}|[^\s\p{L}\p{M}\p{N}]+|\s*[\r\n]+|\s+",
        }
    }

    /// What is thought before every text.
    pub(super) fn before_text(self) -> &'static str {
        match self {
            Self::Joined => " ",
            Self::Apart => "",
        }
    }
}

/// Digits of one piece.
const DIGITS: usize = 3;

/// Kinds of characters; a piece has one, besides the space before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Space,
    Letter,
    Digit,
    Punctuation,
}

static ASCII: LazyLock<[Kind; 128]> = LazyLock::new(|| {
    std::array::from_fn(|byte| match byte as u8 {
        b'\t'..=b'\r' | b' ' => Kind::Space,
        b'0'..=b'9' => Kind::Digit,
        b'a'..=b'z' | b'A'..=b'Z' => Kind::Letter,
        _ => Kind::Punctuation,
    })
});

/// Ranges of characters, ascending.
type Ranges = Vec<(char, char)>;

/// The characters outside ASCII by kind; all others are punctuation.
static UNICODE: LazyLock<[(Kind, Ranges); 3]> = LazyLock::new(|| {
    [(Kind::Letter, r"[\p{L}\p{M}]"), (Kind::Digit, r"\p{N}"), (Kind::Space, r"\s")].map(
        |(kind, class)| {
            let parsed = regex_syntax::parse(class).expect("the class is well-formed");
            let ranges = match parsed.kind() {
                HirKind::Class(Class::Unicode(class)) => {
                    class.ranges().iter().map(|range| (range.start(), range.end())).collect()
                }
                _ => Vec::new(),
            };
            (kind, ranges)
        },
    )
});

/// The kind of the character at `start` and its length in bytes; `None` at the end of the text.
pub(super) fn kind_at(text: &str, start: usize) -> Option<(Kind, usize)> {
    let byte = *text.as_bytes().get(start)?;
    if byte.is_ascii() {
        return Some((ASCII[usize::from(byte)], 1));
    }
    let character = text[start..].chars().next()?;
    let within = |ranges: &Ranges| {
        let after = ranges.partition_point(|(first, _)| *first <= character);
        after > 0 && character <= ranges[after - 1].1
    };
    let kind = UNICODE.iter().find(|(_, ranges)| within(ranges));
    Some((kind.map_or(Kind::Punctuation, |(kind, _)| *kind), character.len_utf8()))
}

/// Where the piece ends that starts at `start`, which lies before the end of the text.
pub(super) fn piece_end(text: &str, start: usize, spaces: Spaces) -> usize {
    let bytes = text.as_bytes();
    let mut end = start;
    if spaces == Spaces::Joined
        && bytes[start] == b' '
        && kind_at(text, start + 1).is_some_and(|(kind, _)| kind != Kind::Space)
    {
        end += 1;
    }
    let Some((kind, _)) = kind_at(text, end) else { return text.len() };
    let limit = if kind == Kind::Digit { DIGITS } else { usize::MAX };
    let mut last = end;
    let mut characters = 0;
    while let Some((next, len)) = kind_at(text, end) {
        if next != kind || characters == limit {
            break;
        }
        last = end;
        end += len;
        characters += 1;
    }
    if kind != Kind::Space {
        return end;
    }
    // Space up to a line break is a piece; otherwise its last character may go with the word behind.
    match text[start..end].rfind(['\r', '\n']) {
        Some(line_break) => start + line_break + 1,
        None if spaces == Spaces::Apart || end == text.len() || characters == 1 => end,
        None => last,
    }
}

/// The pieces of `text` in order; together they are the text.
pub(super) fn pieces(text: &str, spaces: Spaces) -> impl Iterator<Item = &str> {
    let mut start = 0;
    std::iter::from_fn(move || {
        let piece = (start < text.len()).then(|| &text[start..piece_end(text, start, spaces)])?;
        start += piece.len();
        Some(piece)
    })
}

/// A regular expression that tries `phrases`, longest first, before pieces.
pub(super) fn pattern_with(phrases: &[String], spaces: Spaces) -> String {
    let mut pattern = String::new();
    for phrase in phrases {
        for character in phrase.chars() {
            if r"\.+*?()|[]{}^$#&-~".contains(character) {
                pattern.push('\\');
            }
            pattern.push(character);
        }
        // A phrase ends where its last piece would.
        pattern.push_str(match last_kind(phrase) {
            Kind::Punctuation => r"(?![^\s\p{L}\p{M}\p{N}])|",
            _ => r"(?![\p{L}\p{M}])|",
        });
    }
    pattern + spaces.pattern()
}

/// The kind of the last character.
pub(super) fn last_kind(text: &str) -> Kind {
    let last = text.char_indices().next_back().map_or(0, |(start, _)| start);
    kind_at(text, last).map_or(Kind::Space, |(kind, _)| kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_carry_the_space_before_them() {
        let cut = |text| pieces(text, Spaces::Joined).collect::<Vec<_>>();
        assert_eq!(
            cut(" go to bed 12,  a\n\nYou 1234"),
            [" go", " to", " bed", " 12", ",", " ", " a", "\n\n", "You", " 123", "4"]
        );
        assert_eq!(cut("  \n  x "), ["  \n", " ", " x", " "]);
        assert_eq!(cut("\t\té\u{a0}。"), ["\t", "\t", "é", "\u{a0}", "。"]);
        assert_eq!(cut(""), [""; 0]);
    }

    #[test]
    fn words_stand_apart_from_spaces() {
        let cut = |text| pieces(text, Spaces::Apart).collect::<Vec<_>>();
        assert_eq!(
            cut(" go to \"bed\" 12,   a\n\nYou 1234"),
            [
                " ", "go", " ", "to", " ", "\"", "bed", "\"", " ", "12", ",", "   ", "a", "\n\n",
                "You", " ", "123", "4"
            ]
        );
        assert_eq!(cut("  \n  x "), ["  \n", "  ", "x", " "]);
        assert_eq!(cut(""), [""; 0]);
    }
}
