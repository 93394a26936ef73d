//! Where the body of a request ends.

use super::request::Malformed;

/// The longest line of a chunk's size, and of all trailers together.
const MAX_LINE_BYTES: usize = 8192;

/// How the body of a request is framed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Body {
    /// So many bytes.
    Length(u64),
    /// Chunks, each behind its size.
    Chunked,
}

/// Finds the end of a body in what comes, bit by bit.
#[derive(Debug)]
pub struct BodyEnd {
    state: State,
    line_bytes: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// So many bytes and then the end.
    Rest(u64),
    /// In the digits of a size.
    Size {
        size: u64,
        digits: u32,
    },
    /// After them, up to the end of the line.
    Extension {
        size: u64,
    },
    /// At the line feed after a size.
    SizeEnd {
        size: u64,
    },
    /// In a chunk.
    Chunk {
        left: u64,
    },
    /// Behind a chunk: carriage return, line feed.
    ChunkReturn,
    ChunkEnd,
    /// In a line after the last chunk, which is empty so far.
    Trailer {
        is_empty: bool,
    },
    TrailerEnd {
        is_empty: bool,
    },
    Done,
}

impl BodyEnd {
    /// At the beginning of a body.
    pub fn new(body: Body) -> Self {
        let state = match body {
            Body::Length(0) => State::Done,
            Body::Length(length) => State::Rest(length),
            Body::Chunked => State::Size { size: 0, digits: 0 },
        };
        Self { state, line_bytes: 0 }
    }

    /// Whether nothing more belongs to it.
    pub fn is_done(&self) -> bool {
        self.state == State::Done
    }

    /// How many of the next bytes belong to it; fewer than there are only at its end.
    ///
    /// # Errors
    ///
    /// [`Malformed`] where chunks are not framed as they have to be.
    pub fn take(&mut self, bytes: &[u8]) -> Result<usize, Malformed> {
        let mut taken = 0;
        while taken < bytes.len() && !self.is_done() {
            let room = (bytes.len() - taken) as u64;
            match &mut self.state {
                State::Rest(left) | State::Chunk { left } => {
                    let part = room.min(*left);
                    *left -= part;
                    taken += part as usize;
                    self.state = match self.state {
                        State::Rest(0) => State::Done,
                        State::Chunk { left: 0 } => State::ChunkReturn,
                        other => other,
                    };
                }
                _ => {
                    self.state = self.step(bytes[taken])?;
                    taken += 1;
                }
            }
        }
        Ok(taken)
    }

    fn step(&mut self, byte: u8) -> Result<State, Malformed> {
        let wrong = Err(Malformed("its chunks are not framed as they have to be"));
        self.line_bytes += 1;
        if self.line_bytes > MAX_LINE_BYTES {
            return wrong;
        }
        Ok(match (self.state, byte) {
            (State::Size { size, digits }, byte) if byte.is_ascii_hexdigit() && digits < 15 => {
                let digit = (byte as char).to_digit(16).unwrap_or_default();
                State::Size { size: size * 16 + u64::from(digit), digits: digits + 1 }
            }
            (State::Size { size, digits: 1.. } | State::Extension { size }, b'\r') => {
                State::SizeEnd { size }
            }
            (State::Size { size, digits: 1.. }, b';' | b' ' | b'\t') => State::Extension { size },
            (State::Extension { size }, byte) if byte != b'\n' => State::Extension { size },
            (State::SizeEnd { size: 0 }, b'\n') => State::Trailer { is_empty: true },
            (State::SizeEnd { size }, b'\n') => {
                self.line_bytes = 0;
                State::Chunk { left: size }
            }
            (State::ChunkReturn, b'\r') => State::ChunkEnd,
            (State::ChunkEnd, b'\n') => State::Size { size: 0, digits: 0 },
            (State::Trailer { is_empty }, b'\r') => State::TrailerEnd { is_empty },
            (State::Trailer { .. }, byte) if byte != b'\n' => State::Trailer { is_empty: false },
            (State::TrailerEnd { is_empty: true }, b'\n') => State::Done,
            (State::TrailerEnd { is_empty: false }, b'\n') => State::Trailer { is_empty: true },
            _ => return wrong,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How much of it is body, cut into pieces of `size`.
    fn length(body: Body, bytes: &[u8], size: usize) -> Result<(usize, bool), Malformed> {
        let mut end = BodyEnd::new(body);
        let mut total = 0;
        for piece in bytes.chunks(size) {
            total += end.take(piece)?;
        }
        Ok((total, end.is_done()))
    }

    #[test]
    fn bodies_end_where_they_say_wherever_they_are_cut() {
        let chunks =
            b"4\r\nwiki\r\nA;x=\"y\"\r\n0123456789\r\n0\r\nTrailer: x\r\n\r\nGET / HTTP/1.1";
        let whole = chunks.len() - b"GET / HTTP/1.1".len();
        for size in 1..chunks.len() {
            assert_eq!(length(Body::Chunked, chunks, size), Ok((whole, true)));
            assert_eq!(length(Body::Length(9), chunks, size), Ok((9, true)));
            assert_eq!(length(Body::Length(900), chunks, size), Ok((chunks.len(), false)));
        }
        assert_eq!(length(Body::Length(0), chunks, 5), Ok((0, true)));
        assert_eq!(length(Body::Chunked, b"0\r\n\r\nx", 9), Ok((5, true)));
    }

    #[test]
    fn chunks_that_could_be_read_in_two_ways_are_refused() {
        for bytes in [
            &b"\r\n"[..],
            b"x\r\n",
            b"4\nwiki",
            b"4\r\nwikiX\r\n",
            b"4\r\nwiki\n0\r\n\r\n",
            b"-4\r\n",
            b"0x4\r\n",
            b"ffffffffffffffff\r\n",
            b"4 \r\nwiki4\r\n",
            b"0\r\n\n",
        ] {
            assert!(length(Body::Chunked, bytes, 100).is_err(), "{:?}", bytes.escape_ascii());
        }
        assert!(length(Body::Chunked, &[b'1'; 100], 1).is_err());
        let endless = [&b"1;"[..], &[b'x'; 2 * MAX_LINE_BYTES]].concat();
        assert!(length(Body::Chunked, &endless, 1000).is_err());
    }
}
