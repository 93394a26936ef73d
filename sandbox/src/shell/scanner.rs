//! Tells marks from data in a stream.

use std::ops::Range;

/// What encloses a mark (the ASCII record separator).
pub(super) const FENCE: u8 = 0x1e;

/// Bytes of a name in a mark.
const NAME_BYTES: usize = 32;

/// Bytes that may follow the name in a mark.
const MAX_TEXT_BYTES: usize = 8192;

/// A stretch of a stream.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    /// What others wrote, by its place in [`Scanner::bytes`].
    Data(Range<usize>),
    /// A mark: `FENCE kind name text FENCE`.
    Mark { kind: u8, text: String },
}

/// Splits a stream into data and the marks that carry one of the given names.
///
/// Nobody can guess a name, so whatever else is written is data, fences included. Only what may be
/// the beginning of a mark is held back.
#[derive(Debug, Default)]
pub(crate) struct Scanner {
    buffer: Vec<u8>,
    done: usize,
}

impl Scanner {
    /// Takes in what came next.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.buffer.drain(..self.done);
        self.done = 0;
        self.buffer.extend_from_slice(bytes);
    }

    /// The bytes of a piece, until the next `push`.
    pub(crate) fn bytes(&self, range: Range<usize>) -> &[u8] {
        &self.buffer[range]
    }

    /// The next piece; absent if more must come first.
    pub(crate) fn next(&mut self, names: [&str; 2]) -> Option<Piece> {
        let rest = &self.buffer[self.done..];
        let first = *rest.first()?;
        let found = if first == FENCE { mark_at(rest, names) } else { Found::Nothing };
        let (piece, length) = match found {
            Found::Incomplete => return None,
            Found::Mark { kind, text, length } => (Piece::Mark { kind, text }, length),
            Found::Nothing => {
                let length = rest[1..]
                    .iter()
                    .position(|byte| *byte == FENCE)
                    .map_or(rest.len(), |at| at + 1);
                (Piece::Data(self.done..self.done + length), length)
            }
        };
        self.done += length;
        Some(piece)
    }
}

enum Found {
    Nothing,
    Incomplete,
    Mark { kind: u8, text: String, length: usize },
}

fn mark_at(rest: &[u8], names: [&str; 2]) -> Found {
    let Some(kind) = rest.get(1) else { return Found::Incomplete };
    if !kind.is_ascii_uppercase() {
        return Found::Nothing;
    }
    let name = &rest[2..rest.len().min(2 + NAME_BYTES)];
    if !names.iter().any(|known| known.len() == NAME_BYTES && known.as_bytes().starts_with(name)) {
        return Found::Nothing;
    }
    if name.len() < NAME_BYTES {
        return Found::Incomplete;
    }
    let text = &rest[2 + NAME_BYTES..];
    match text.iter().take(MAX_TEXT_BYTES).position(|byte| *byte == FENCE) {
        Some(at) => Found::Mark {
            kind: *kind,
            text: String::from_utf8_lossy(&text[..at]).trim().to_owned(),
            length: 2 + NAME_BYTES + at + 1,
        },
        None if text.len() < MAX_TEXT_BYTES => Found::Incomplete,
        None => Found::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NAMES: [&str; 2] =
        ["0123456789abcdef0123456789abcdef", "fedcba9876543210fedcba9876543210"];

    /// Data put together, and marks as `<kind text>`.
    fn scan(pieces: &[&[u8]]) -> (Vec<u8>, Vec<String>) {
        let (mut scanner, mut data, mut marks) = (Scanner::default(), Vec::new(), Vec::new());
        for piece in pieces {
            scanner.push(piece);
            while let Some(piece) = scanner.next(NAMES) {
                match piece {
                    Piece::Data(range) => data.extend_from_slice(scanner.bytes(range)),
                    Piece::Mark { kind, text } => marks.push(format!("{}{text}", kind as char)),
                }
            }
        }
        (data, marks)
    }

    #[test]
    fn marks_of_other_names_are_data() {
        let own = format!("a\u{1e}E{} 3\u{1e}b", NAMES[1]);
        assert_eq!(scan(&[own.as_bytes()]), (b"ab".to_vec(), vec!["E3".to_owned()]));
        let other = own.replace('f', "e");
        assert_eq!(scan(&[other.as_bytes()]), (other.into_bytes(), vec![]));
    }

    proptest! {
        #[test]
        fn pieces_do_not_matter(
            parts in proptest::collection::vec(
                prop_oneof![
                    proptest::collection::vec(any::<u8>(), 0..50),
                    Just(vec![FENCE]),
                    Just(format!("\u{1e}E{} 3\u{1e}", NAMES[0]).into_bytes()),
                    Just(format!("\u{1e}S{}", NAMES[1]).into_bytes()),
                ],
                0..8,
            ),
            cut in 1usize..60,
        ) {
            // A last byte that begins no mark, so that nothing is held back.
            let bytes = [parts.concat(), vec![FENCE, b'.']].concat();
            let pieces: Vec<_> = bytes.chunks(cut).collect();
            prop_assert_eq!(scan(&[&bytes]), scan(&pieces));
        }
    }
}
