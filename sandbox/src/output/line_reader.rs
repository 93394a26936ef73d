//! Lines of a program's output, in bounded memory.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt};

/// Bytes that are asked for at a time.
const CHUNK: usize = 16 << 10;
/// A buffer that grew beyond this is given back when it is empty.
const KEPT_CAPACITY: usize = 256 << 10;

/// Reads lines of at most so many bytes.
#[derive(Debug)]
pub struct LineReader<R> {
    inner: R,
    buffer: Vec<u8>,
    /// Where the next line begins, and up to where there is no end of it.
    start: usize,
    scanned: usize,
    limit: usize,
}

/// What comes next.
#[derive(Debug, PartialEq, Eq)]
pub enum NextLine<'a> {
    /// A line, without its end.
    Line(&'a [u8]),
    /// A line beyond the limit: how it begins.
    TooLong(&'a [u8]),
    /// Nothing comes any more: what is left has no end.
    End(&'a [u8]),
}

impl<R: AsyncRead + Unpin> LineReader<R> {
    /// Reads lines of at most `limit` bytes.
    pub fn new(inner: R, limit: usize) -> Self {
        Self { inner, buffer: Vec::new(), start: 0, scanned: 0, limit }
    }

    /// Bytes of a line at the most.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// The next line. May be dropped while it waits, and called again.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub async fn next(&mut self) -> io::Result<NextLine<'_>> {
        if self.start == self.buffer.len() {
            self.buffer.clear();
            (self.start, self.scanned) = (0, 0);
            if self.buffer.capacity() > KEPT_CAPACITY {
                self.buffer = Vec::new();
            }
        }
        loop {
            if let Some(place) = memchr(&self.buffer[self.scanned..]) {
                let (start, end) = (self.start, self.scanned + place);
                (self.start, self.scanned) = (end + 1, end + 1);
                let line = &self.buffer[start..end];
                let is_long = line.len() > self.limit;
                return Ok(if is_long { NextLine::TooLong(line) } else { NextLine::Line(line) });
            }
            self.scanned = self.buffer.len();
            if self.scanned - self.start > self.limit {
                return Ok(NextLine::TooLong(&self.buffer[self.start..]));
            }
            // The rest of a line goes to the front, so that the buffer holds little more than one.
            if self.start > 0 {
                self.buffer.drain(..self.start);
                (self.start, self.scanned) = (0, self.buffer.len());
            }
            self.buffer.reserve(CHUNK);
            if self.inner.read_buf(&mut self.buffer).await? == 0 {
                return Ok(NextLine::End(&self.buffer[self.start..]));
            }
        }
    }
}

fn memchr(bytes: &[u8]) -> Option<usize> {
    bytes.iter().position(|byte| *byte == b'\n')
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn lines(bytes: &'static [u8], limit: usize) -> Vec<String> {
        let mut reader = LineReader::new(bytes, limit);
        let mut found = Vec::new();
        loop {
            let next = reader.next().await.unwrap();
            let is_last = !matches!(next, NextLine::Line(_));
            found.push(match next {
                NextLine::Line(line) => String::from_utf8_lossy(line).into_owned(),
                other => format!("{other:?}").chars().take(4).collect(),
            });
            if is_last {
                return found;
            }
        }
    }

    #[tokio::test]
    async fn lines_end_at_their_ends_and_at_the_limit() {
        assert_eq!(lines(b"ab\n\nc\n", 4).await, ["ab", "", "c", "End("]);
        assert_eq!(lines(b"abcd\nabcde\nx\n", 4).await, ["abcd", "TooL"]);
        assert_eq!(lines(b"half", 4).await, ["End("]);
        assert_eq!(lines(&[b'x'; 1 << 20], 100).await, ["TooL"]);
    }

    #[tokio::test]
    async fn what_has_no_end_takes_no_more_than_the_limit() {
        let mut reader = LineReader::new(tokio::io::repeat(b'x'), 100_000);
        let NextLine::TooLong(bytes) = reader.next().await.unwrap() else { panic!() };
        assert!(bytes.len() <= 100_000 + 2 * CHUNK, "{}", bytes.len());
        assert!(reader.buffer.capacity() <= 4 * 100_000);
    }
}
