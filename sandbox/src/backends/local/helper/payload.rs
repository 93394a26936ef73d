//! What the library sends along: fields of a length and as many bytes each.

use std::io;

/// Fields in the order in which they were written.
pub struct Payload {
    bytes: Vec<u8>,
    position: usize,
}

impl Payload {
    pub fn new(bytes: Vec<u8>) -> Self {
        Self { bytes, position: 0 }
    }

    pub fn bytes(&mut self) -> io::Result<&[u8]> {
        let start = self.position + 4;
        let length = self
            .bytes
            .get(self.position..start)
            .and_then(|bytes| bytes.try_into().ok())
            .map(|bytes| u32::from_le_bytes(bytes) as usize)
            .ok_or(io::ErrorKind::UnexpectedEof)?;
        let field = self.bytes.get(start..start + length).ok_or(io::ErrorKind::UnexpectedEof)?;
        self.position = start + length;
        Ok(field)
    }

    pub fn text(&mut self) -> io::Result<String> {
        String::from_utf8(self.bytes()?.to_vec()).map_err(|_| io::ErrorKind::InvalidData.into())
    }

    pub fn number(&mut self) -> io::Result<u64> {
        let field = self.bytes()?.try_into().map_err(|_| io::ErrorKind::InvalidData)?;
        Ok(u64::from_le_bytes(field))
    }

    /// A count and then as many items.
    pub fn list<T>(
        &mut self,
        mut item: impl FnMut(&mut Self) -> io::Result<T>,
    ) -> io::Result<Vec<T>> {
        let count = self.number()?;
        (0..count).map(|_| item(self)).collect()
    }
}
