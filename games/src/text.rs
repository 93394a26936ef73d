//! Texts that are put together piece by piece.
//!
//! Games tell something in every step, and that takes longer than their rules do: what is told in every step is added in
//! pieces, which costs a fraction of formatting it.

/// What can be a piece of a text.
pub(crate) trait Piece {
    /// Adds it to the end of a text.
    fn add_to(self, text: &mut String);
}

impl Piece for &str {
    fn add_to(self, text: &mut String) {
        text.push_str(self);
    }
}

impl Piece for char {
    fn add_to(self, text: &mut String) {
        text.push(self);
    }
}

/// Characters of ASCII, such as a row of a board.
impl Piece for &[u8] {
    fn add_to(self, text: &mut String) {
        text.push_str(std::str::from_utf8(self).expect("boards are drawn in ASCII"));
    }
}

impl Piece for u64 {
    fn add_to(self, text: &mut String) {
        if self >= 10 {
            (self / 10).add_to(text);
        }
        text.push(char::from(b'0' + (self % 10) as u8));
    }
}

impl Piece for u32 {
    fn add_to(self, text: &mut String) {
        u64::from(self).add_to(text);
    }
}

impl Piece for usize {
    fn add_to(self, text: &mut String) {
        (self as u64).add_to(text);
    }
}

impl Piece for i64 {
    fn add_to(self, text: &mut String) {
        if self < 0 {
            text.push('-');
        }
        self.unsigned_abs().add_to(text);
    }
}

/// Adding pieces to a text.
pub(crate) trait AddPiece {
    /// Adds a piece to the end.
    fn add(&mut self, piece: impl Piece) -> &mut Self;
}

impl AddPiece for String {
    fn add(&mut self, piece: impl Piece) -> &mut Self {
        piece.add_to(self);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_written_as_formatting_writes_them() {
        let mut text = String::new();
        for number in [0, 9, 10, 407, i64::MAX, -1, -60, i64::MIN] {
            text.clear();
            text.add("<").add(number).add('>');
            assert_eq!(text, format!("<{number}>"));
        }
        text.clear();
        text.add(u64::MAX).add(7_u32).add(12_usize).add(&b" ."[..]);
        assert_eq!(text, format!("{}712 .", u64::MAX));
    }
}
