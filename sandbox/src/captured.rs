//! Output of a command with the middle left out.

use std::borrow::Cow;
use std::collections::VecDeque;

use spar_core::redaction;

/// What a command wrote to one stream: everything, or its beginning and its end.
///
/// At most the given number of bytes is held in memory, however much is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Captured {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    limit: usize,
    total: u64,
}

impl Captured {
    /// Nothing yet; holds `limit_bytes` at the most, half of them from the beginning.
    pub fn new(limit_bytes: usize) -> Self {
        Self { head: Vec::new(), tail: VecDeque::new(), limit: limit_bytes, total: 0 }
    }

    /// Takes in what was written next.
    pub fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let room = (self.limit - self.limit / 2).saturating_sub(self.head.len());
        let (head, rest) = bytes.split_at(room.min(bytes.len()));
        self.head.extend_from_slice(head);
        let keep = self.limit / 2;
        let rest = &rest[rest.len().saturating_sub(keep)..];
        let surplus = (self.tail.len() + rest.len()).saturating_sub(keep);
        self.tail.drain(..surplus.min(self.tail.len()));
        self.tail.extend(rest);
    }

    /// Bytes that the command wrote.
    pub fn total_bytes(&self) -> u64 {
        self.total
    }

    /// Bytes that were left out between beginning and end.
    pub fn elided_bytes(&self) -> u64 {
        self.total - (self.head.len() + self.tail.len()) as u64
    }

    /// The bytes, with a line that tells how many were left out in their place, parts of secrets at the cut among them.
    pub fn bytes(&self) -> Cow<'_, [u8]> {
        if self.tail.is_empty() && self.elided_bytes() == 0 {
            return Cow::Borrowed(&self.head);
        }
        let (mut head, mut tail) = (self.head.clone(), Vec::from(self.tail.clone()));
        if self.elided_bytes() > 0 {
            // Parts of a secret are not told apart from other text once it is cut in two.
            if let Some(redactor) = redaction::current() {
                head.truncate(redactor.cut_at_end(&head));
                tail.drain(..redactor.cut_at_start(&tail));
            }
            let left_out = self.total - (head.len() + tail.len()) as u64;
            head.extend(format!("\n[... {left_out} bytes left out ...]\n").bytes());
        }
        head.append(&mut tail);
        Cow::Owned(head)
    }

    /// As text; bytes that are no UTF-8 become U+FFFD.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes()).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_middle_is_left_out_and_counted() {
        let mut captured = Captured::new(6);
        captured.push(b"abcd");
        captured.push(b"efghij");
        assert_eq!(captured.text(), "abc\n[... 4 bytes left out ...]\nhij");
        assert_eq!((captured.total_bytes(), captured.elided_bytes()), (10, 4));
    }

    #[test]
    fn a_secret_that_the_cut_goes_through_leaves_no_part() {
        redaction::keep("CUT", "split-in-the-middle").unwrap();
        let mut captured = Captured::new(20);
        captured.push(b"01234split-in-the-middle56789");
        assert_eq!(captured.text(), "01234\n[... 19 bytes left out ...]\n56789");
    }

    proptest! {
        #[test]
        fn pieces_do_not_matter(
            bytes in proptest::collection::vec(any::<u8>(), 0..200),
            cuts in proptest::collection::vec(1usize..40, 0..20),
            limit in 0usize..64,
        ) {
            let mut whole = Captured::new(limit);
            whole.push(&bytes);
            let mut pieces = Captured::new(limit);
            let mut rest = bytes.as_slice();
            for cut in cuts {
                let (piece, others) = rest.split_at(cut.min(rest.len()));
                pieces.push(piece);
                rest = others;
            }
            pieces.push(rest);
            prop_assert_eq!(&whole, &pieces);
            prop_assert!(whole.head.len() + whole.tail.len() <= limit);
            if bytes.len() <= limit {
                prop_assert_eq!(&*whole.bytes(), bytes.as_slice());
            }
        }
    }
}
