//! Values of results.

use std::fmt::Write as _;

/// A value of a result, as SQLite stores it.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    /// No value.
    Null,
    /// A whole number.
    Integer(i64),
    /// A floating-point number; never NaN, which SQLite turns into NULL.
    Real(f64),
    /// Text; bytes of it that are no UTF-8 are left out.
    Text(String),
    /// Bytes.
    Blob(Vec<u8>),
}

/// What equal cells share where Python compares them: `1` is `1.0`, and text is never a blob.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Key<'a> {
    Null,
    Integer(i64),
    Real(u64),
    Text(&'a str),
    Blob(&'a [u8]),
}

impl Cell {
    /// What it shares with the cells that equal it.
    pub(crate) fn key(&self) -> Key<'_> {
        match self {
            Self::Null => Key::Null,
            Self::Integer(number) => Key::Integer(*number),
            Self::Real(number) => match whole(*number) {
                Some(whole) => Key::Integer(whole),
                None => Key::Real(number.to_bits()),
            },
            Self::Text(text) => Key::Text(text),
            Self::Blob(bytes) => Key::Blob(bytes),
        }
    }

    /// Bytes it takes, at the least.
    pub(crate) fn num_bytes(&self) -> usize {
        size_of::<Self>()
            + match self {
                Self::Text(text) => text.len(),
                Self::Blob(bytes) => bytes.len(),
                _ => 0,
            }
    }

    /// Python's `str(value) + str(type(value))`, by which a row's values are sorted where their order does not matter.
    pub(crate) fn python_sort_key(&self) -> String {
        match self {
            Self::Null => "None<class 'NoneType'>".to_owned(),
            Self::Integer(number) => format!("{number}<class 'int'>"),
            Self::Real(number) => format!("{}<class 'float'>", float_text(*number)),
            Self::Text(text) => format!("{text}<class 'str'>"),
            Self::Blob(bytes) => format!("{}<class 'bytes'>", bytes_text(bytes)),
        }
    }

    /// The cell in words of at most `most` characters, on one line.
    pub(crate) fn to_words(&self, most: usize) -> String {
        match self {
            Self::Null => "NULL".to_owned(),
            Self::Integer(number) => number.to_string(),
            Self::Real(number) => float_text(*number),
            Self::Text(text) => {
                let mut words = String::new();
                for (count, c) in text.chars().enumerate() {
                    if count == most {
                        words.push_str("...");
                        break;
                    }
                    match c {
                        c if c.is_control() => words.extend(c.escape_default()),
                        c => words.push(c),
                    }
                }
                words
            }
            Self::Blob(bytes) => {
                let mut words = "x'".to_owned();
                for byte in bytes.iter().take(most / 2) {
                    let _ = write!(words, "{byte:02x}");
                }
                words.push_str(if bytes.len() > most / 2 { "...'" } else { "'" });
                words
            }
        }
    }
}

/// The whole number that a floating-point one is, exactly.
fn whole(number: f64) -> Option<i64> {
    // 2^63 itself is out of range, and below it the cast is exact for whole numbers.
    let limit = 9_223_372_036_854_775_808.0;
    let is_whole = number.fract() == 0.0 && number >= -limit && number < limit;
    is_whole.then_some(number as i64)
}

/// A floating-point number as Python's `repr` writes it: the shortest digits that read back, with an exponent below
/// `1e-4` and from `1e16` on.
fn float_text(number: f64) -> String {
    if number.is_infinite() {
        return if number > 0.0 { "inf" } else { "-inf" }.to_owned();
    }
    let scientific = format!("{number:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if number != 0.0 && !(-4..16).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{digits}e{sign}{:02}", exponent.abs());
    }
    let plain = format!("{number}");
    if plain.contains('.') { plain } else { plain + ".0" }
}

/// Bytes as Python's `repr` writes them.
fn bytes_text(bytes: &[u8]) -> String {
    let quote = if bytes.contains(&b'\'') && !bytes.contains(&b'"') { '"' } else { '\'' };
    let mut text = format!("b{quote}");
    for byte in bytes {
        match *byte {
            b'\\' => text.push_str("\\\\"),
            b'\t' => text.push_str("\\t"),
            b'\n' => text.push_str("\\n"),
            b'\r' => text.push_str("\\r"),
            byte if char::from(byte) == quote => {
                text.push('\\');
                text.push(quote);
            }
            byte @ 0x20..0x7f => text.push(char::from(byte)),
            byte => {
                let _ = write!(text, "\\x{byte:02x}");
            }
        }
    }
    text.push(quote);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_equal_by_value_and_exactly() {
        let same = |a: Cell, b: Cell| a.key() == b.key();
        assert!(
            same(Cell::Integer(1), Cell::Real(1.0)) && same(Cell::Real(-0.0), Cell::Integer(0))
        );
        assert!(!same(Cell::Integer(1), Cell::Text("1".to_owned())));
        assert!(!same(Cell::Text("a".to_owned()), Cell::Blob(b"a".to_vec())));
        // 2^53 + 1 is no floating-point number.
        assert!(!same(Cell::Integer((1 << 53) + 1), Cell::Real(9_007_199_254_740_992.0)));
        assert!(!same(Cell::Integer(i64::MAX), Cell::Real(9_223_372_036_854_775_808.0)));
        assert!(same(Cell::Integer(i64::MIN), Cell::Real(-9_223_372_036_854_775_808.0)));
        assert!(same(Cell::Real(0.5), Cell::Real(0.5)) && !same(Cell::Null, Cell::Integer(0)));
    }

    #[test]
    fn floating_point_numbers_are_written_as_python_writes_them() {
        for (number, text) in [
            (1.0, "1.0"),
            (-0.0, "-0.0"),
            (0.1, "0.1"),
            (1e15, "1000000000000000.0"),
            (1e16, "1e+16"),
            (1.5e-5, "1.5e-05"),
            (0.0001, "0.0001"),
            (1e100, "1e+100"),
            (f64::NEG_INFINITY, "-inf"),
            (123_456.789, "123456.789"),
        ] {
            assert_eq!(float_text(number), text);
        }
        assert_eq!(bytes_text(b"a'\\\x00"), "b\"a'\\\\\\x00\"");
    }
}
