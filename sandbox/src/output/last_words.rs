//! What a program wrote last.

use std::collections::VecDeque;
use std::fmt;

/// Bytes kept of each stream.
const KEPT: usize = 2048;
/// Lines told of each stream.
const TOLD_LINES: usize = 12;

/// What a program wrote last, on standard error and standard output; bounded, and printable.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LastWords {
    /// Of standard error.
    pub stderr: String,
    /// Of standard output.
    pub stdout: String,
}

impl fmt::Display for LastWords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, text) in [("standard error", &self.stderr), ("standard output", &self.stdout)] {
            if !text.is_empty() {
                write!(f, "; its last words on {name}: {text}")?;
            }
        }
        Ok(())
    }
}

/// The end of a stream.
#[derive(Debug, Default)]
pub struct Tail {
    bytes: VecDeque<u8>,
}

impl Tail {
    /// Takes in what was written.
    pub fn push(&mut self, bytes: &[u8]) {
        let bytes = &bytes[bytes.len().saturating_sub(KEPT)..];
        let surplus = (self.bytes.len() + bytes.len()).saturating_sub(KEPT);
        self.bytes.drain(..surplus);
        self.bytes.extend(bytes);
    }

    /// Its last lines, one behind the other.
    pub fn told(&self) -> String {
        let (front, back) = self.bytes.as_slices();
        printable(&[front, back].concat())
    }
}

/// The last lines of what a program wrote, in one line: bytes that are no text and what moves cursors are replaced.
pub fn printable(bytes: &[u8]) -> String {
    let bytes = &bytes[bytes.len().saturating_sub(KEPT)..];
    let text = String::from_utf8_lossy(bytes);
    let lines: Vec<&str> =
        text.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
    let last = &lines[lines.len().saturating_sub(TOLD_LINES)..];
    let clean = |c: char| {
        if c == '\t' {
            ' '
        } else if c.is_control() {
            '\u{fffd}'
        } else {
            c
        }
    };
    last.join(" | ").chars().map(clean).collect()
}

/// The beginning of a text, for messages.
pub fn shortened(text: &str, most_chars: usize) -> String {
    let mut short = printable_start(text, most_chars);
    if text.chars().nth(most_chars).is_some() {
        short.push_str("...");
    }
    short
}

fn printable_start(text: &str, most_chars: usize) -> String {
    let clean = |c: char| if c.is_control() { ' ' } else { c };
    text.chars().take(most_chars).map(clean).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_end_is_kept_and_it_is_printable() {
        let mut tail = Tail::default();
        for number in 0..10_000 {
            tail.push(format!("line {number}\n").as_bytes());
        }
        tail.push(b"\x1b[2Jbad \xff\xfe\tend\n");
        let told = tail.told();
        assert!(told.ends_with("line 9999 | \u{fffd}[2Jbad \u{fffd}\u{fffd} end"), "{told}");
        assert_eq!(told.split(" | ").count(), TOLD_LINES);
        tail.push(&[b'x'; 10 * KEPT]);
        assert_eq!(tail.told().len(), KEPT);
        assert_eq!(shortened("a\nbcd", 3), "a b...");
    }
}
