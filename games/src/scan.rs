//! What TextArena's regular expressions find, read by hand: in one pass, whatever the text.

use num_bigint::BigUint;
use spar_python::characters::{decimal_value, is_space};

/// The most digits of which CPython makes a number.
const MAX_DIGITS: usize = 4300;

/// A place in a text.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cursor<'t> {
    pub(crate) rest: &'t str,
}

impl<'t> Cursor<'t> {
    fn next_is(&self, is: impl Fn(char) -> bool) -> Option<char> {
        self.rest.chars().next().filter(|next| is(*next))
    }

    fn skip(&mut self, character: char) {
        self.rest = &self.rest[character.len_utf8()..];
    }

    /// Takes this character, if it is next.
    pub(crate) fn take(&mut self, character: char) -> bool {
        let is_next = self.rest.starts_with(character);
        if is_next {
            self.skip(character);
        }
        is_next
    }

    /// Takes one character that is white space: `\s`.
    pub(crate) fn space(&mut self) -> bool {
        let found = self.next_is(|next| match next {
            ' ' => true,
            '!'..='~' => false,
            other => is_space(other),
        });
        found.into_iter().for_each(|space| self.skip(space));
        found.is_some()
    }

    /// Takes all white space that is next, `\s*`; whether there was some.
    pub(crate) fn spaces(&mut self) -> bool {
        let mut has_some = false;
        while self.space() {
            has_some = true;
        }
        has_some
    }

    /// Takes the characters that are next as long as they are such; `None` where there are none.
    pub(crate) fn run(&mut self, is: impl Fn(char) -> bool) -> Option<&'t str> {
        let end = self.rest.find(|next| !is(next)).unwrap_or(self.rest.len());
        let (taken, rest) = self.rest.split_at(end);
        self.rest = rest;
        (!taken.is_empty()).then_some(taken)
    }

    /// Takes a number: `\d+`.
    pub(crate) fn digits(&mut self) -> Option<&'t str> {
        self.run(|next| digit_value(next).is_some())
    }

    /// Takes a word in any case, as `IGNORECASE` has it.
    pub(crate) fn word(&mut self, word: &str) -> bool {
        let mut ahead = *self;
        for letter in word.chars() {
            match ahead.next_is(|next| is_like(next, letter)) {
                Some(found) => ahead.skip(found),
                None => return false,
            }
        }
        *self = ahead;
        true
    }
}

/// Whether a character is a lower-case letter of ASCII in any case: CPython takes four other characters for letters of it.
pub(crate) fn is_like(character: char, letter: char) -> bool {
    character.to_ascii_lowercase() == letter
        || matches!(
            (character, letter),
            ('\u{130}' | '\u{131}', 'i') | ('\u{17f}', 's') | ('\u{212a}', 'k')
        )
}

/// Whether `[a-zA-Z]` with `IGNORECASE` takes a character.
pub(crate) fn is_letter_of_any_case(character: char) -> bool {
    character.is_ascii_alphabetic()
        || matches!(character, '\u{130}' | '\u{131}' | '\u{17f}' | '\u{212a}')
}

/// Whether `\w` takes a character.
pub(crate) fn is_word_character(character: char) -> bool {
    if character.is_ascii() {
        return character == '_' || character.is_ascii_alphanumeric();
    }
    // `str.isalnum`: letters, and all that has a numeric value. Rust's `is_alphanumeric` has marks of the property
    // Other_Alphabetic besides, which Python has not; those are told by having no case and joining what is before them.
    (character.is_alphanumeric() && !is_mark(character))
        || spar_python::characters::is_digit(character)
}

/// Marks among Rust's alphabetic characters in the blocks of combining ones that texts have.
fn is_mark(character: char) -> bool {
    matches!(character, '\u{300}'..='\u{36f}' | '\u{5b0}'..='\u{5c7}' | '\u{610}'..='\u{61a}' | '\u{64b}'..='\u{65f}'
        | '\u{900}'..='\u{903}' | '\u{93a}'..='\u{93b}' | '\u{93e}'..='\u{94f}')
}

/// The places behind all opening brackets, in their order.
pub(crate) fn brackets(text: &str) -> impl Iterator<Item = Cursor<'_>> {
    text.match_indices('[').map(|(at, _)| Cursor { rest: &text[at + 1..] })
}

/// The first match of what a function reads behind an opening bracket, `search`.
pub(crate) fn first<'t, T>(
    text: &'t str,
    read: impl Fn(&mut Cursor<'t>) -> Option<T>,
) -> Option<T> {
    brackets(text).find_map(|mut cursor| read(&mut cursor))
}

/// What `.*` in front of a bracket, and behind it, finds by `search`: of the first line that has some, the last match.
pub(crate) fn last_of_first_line<'t, T>(
    text: &'t str,
    read: impl Fn(&mut Cursor<'t>) -> Option<T>,
) -> Option<T> {
    let mut found = None;
    let mut line_end = text.find('\n').unwrap_or(text.len());
    for (at, _) in text.match_indices('[') {
        if at > line_end {
            if found.is_some() {
                break;
            }
            line_end = text[at..].find('\n').map_or(text.len(), |end| at + end);
        }
        let mut cursor = Cursor { rest: &text[at + 1..] };
        if let Some(read) = read(&mut cursor) {
            found = Some(read);
        }
    }
    found
}

/// `[number]`.
pub(crate) fn bracketed_number<'t>(cursor: &mut Cursor<'t>) -> Option<&'t str> {
    let digits = cursor.digits()?;
    cursor.take(']').then_some(digits)
}

/// The value of a decimal digit of any script; most are of ASCII, and those are not looked up.
fn digit_value(character: char) -> Option<u32> {
    match character {
        '0'..='9' => Some(character as u32 - '0' as u32),
        '\0'..='\x7f' => None,
        other => decimal_value(other),
    }
}

/// The value of decimal digits of any script, up to what counts here: larger ones are the largest.
pub(crate) fn value(digits: &str) -> u64 {
    digits.chars().fold(0_u64, |value, digit| {
        value.saturating_mul(10).saturating_add(u64::from(digit_value(digit).unwrap_or_default()))
    })
}

/// Whether CPython refuses to make a number of so many digits.
pub(crate) fn is_too_long(digits: &str) -> bool {
    digits.len() > MAX_DIGITS && digits.chars().count() > MAX_DIGITS
}

/// How CPython prints the number that it reads of digits. It refuses numbers of more than 4300 digits, which here are
/// told by their length.
pub(crate) fn printed(digits: &str) -> String {
    let count = digits.chars().count();
    if count > MAX_DIGITS {
        return format!("a number of {count} digits");
    }
    let ascii: String =
        digits.chars().filter_map(|digit| char::from_digit(decimal_value(digit)?, 10)).collect();
    match ascii.trim_start_matches('0') {
        "" => "0".to_owned(),
        trimmed => trimmed.to_owned(),
    }
}

/// The number of digits in full; `None` where CPython refuses to make one.
pub(crate) fn big_value(digits: &str) -> Option<BigUint> {
    if is_too_long(digits) {
        return None;
    }
    printed(digits).parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_match_of_the_first_line_that_has_one_counts() {
        let read = |text: &'static str| last_of_first_line(text, bracketed_number);
        assert_eq!(read("a [1] b [2] c\n[3]"), Some("2"));
        assert_eq!(read("a\nb [x] [4] [\n[5]"), Some("4"));
        assert_eq!(read("[x]\n\n"), None);
    }

    #[test]
    fn numbers_of_any_script_and_length_are_read() {
        assert_eq!(first("[٣]", bracketed_number).map(value), Some(3));
        assert_eq!(printed("007"), "7");
        assert_eq!(printed("000"), "0");
        assert_eq!(value(&"9".repeat(50)), u64::MAX);
        assert_eq!(printed(&"9".repeat(5000)), "a number of 5000 digits");
        assert!(!is_too_long(&"٣".repeat(MAX_DIGITS)) && is_too_long(&"٣".repeat(MAX_DIGITS + 1)));
    }

    #[test]
    fn case_is_ignored_as_cpython_does() {
        let word = |text: &str, word| Cursor { rest: text }.word(word);
        assert!(word("CHEC\u{212a}]", "check") && word("ra\u{131}\u{17f}e", "raise"));
        assert!(!word("chek", "check"));
    }
}
