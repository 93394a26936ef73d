//! Bytes written as printable characters, as in GPT-2's vocabulary.

use std::collections::HashMap;
use std::sync::LazyLock;

/// The character that stands for each byte: printable Latin-1 for itself, the others from U+0100 on.
static CHARACTERS: LazyLock<[char; 256]> = LazyLock::new(|| {
    let mut spare = (0x100_u32..).filter_map(char::from_u32);
    std::array::from_fn(|byte| match byte as u8 {
        b'!'..=b'~' | 0xa1..=0xac | 0xae..=0xff => char::from(byte as u8),
        _ => spare.next().expect("there are more than 256 characters"),
    })
});

static BYTES: LazyLock<HashMap<char, u8>> =
    LazyLock::new(|| CHARACTERS.iter().copied().zip(0..=255).collect());

/// The character that stands for `byte`.
pub(super) fn character(byte: u8) -> char {
    CHARACTERS[usize::from(byte)]
}

/// `text` with a character per byte.
pub(super) fn to_characters(text: &str) -> String {
    text.bytes().map(character).collect()
}

/// The bytes that `characters` stand for; `None` when one of them stands for none.
pub(super) fn from_characters(characters: &str) -> Option<Vec<u8>> {
    characters.chars().map(|c| BYTES.get(&c).copied()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_has_a_character_of_its_own() {
        assert_eq!(BYTES.len(), 256);
        assert_eq!(to_characters(" a\n"), "ĠaĊ");
        assert_eq!(from_characters("ĠaĊ").unwrap(), b" a\n");
        assert_eq!(from_characters(" "), None);
    }
}
