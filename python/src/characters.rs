//! What CPython says of characters.

use crate::unicode_tables::{DIGITS, UNPRINTABLE, ZEROS};

/// `str.isprintable` of one character.
pub fn is_printable(character: char) -> bool {
    match character {
        ' '..='~' => true,
        _ => !stands_in(UNPRINTABLE, character),
    }
}

/// `str.isdigit` of one character.
pub fn is_digit(character: char) -> bool {
    match character {
        '0'..='9' => true,
        '\0'..='\u{7f}' => false,
        _ => stands_in(DIGITS, character),
    }
}

/// The value of a decimal digit of any script, which `int` reads; others, such as superscripts, it does not.
pub fn decimal_value(character: char) -> Option<u32> {
    if character.is_ascii() {
        return character.to_digit(10);
    }
    let code = u32::from(character);
    let place = ZEROS.partition_point(|&zero| zero <= code).checked_sub(1)?;
    (code - ZEROS[place] < 10).then(|| code - ZEROS[place])
}

/// `str.isspace` of one character: more than Unicode's white space, the separators of ASCII too.
pub fn is_space(character: char) -> bool {
    matches!(character, '\u{1c}'..='\u{1f}') || character.is_whitespace()
}

/// Whether `str.splitlines` ends a line here.
pub fn is_line_end(character: char) -> bool {
    matches!(
        character,
        '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{1c}'..='\u{1e}' | '\u{85}' | '\u{2028}' | '\u{2029}'
    )
}

fn stands_in(table: &[(u32, u32)], character: char) -> bool {
    let code = u32::from(character);
    let place = table.partition_point(|&(first, _)| first <= code);
    place > 0 && code <= table[place - 1].1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_are_told_as_by_cpython() {
        assert!(is_printable('é') && is_printable('😀') && !is_printable('\u{a0}'));
        assert!(!is_printable('\u{ad}') && !is_printable('\u{200b}') && !is_printable('\u{378}'));
        assert!(is_digit('²') && decimal_value('²').is_none());
        assert_eq!(decimal_value('٣'), Some(3));
        assert_eq!((decimal_value('a'), is_digit('½')), (None, false));
        assert!(is_space('\u{1f}') && is_space('\u{3000}') && !is_space('\u{200b}'));
    }
}
