//! A writer that lets no secret through.

use std::io::{self, Write};

use super::{StreamRedactor, current};

/// Writes what it is given without the secrets that this process has when it is made. What may be the beginning of one is
/// held back, so that one that comes in several writes is found; dropping it writes the rest. For subscribers of `tracing`, which write each event at once:
/// `fmt().with_writer(|| RedactingWriter::new(std::io::stderr()))`.
#[derive(Debug)]
pub struct RedactingWriter<W: Write> {
    inner: W,
    stream: Option<StreamRedactor>,
}

impl<W: Write> RedactingWriter<W> {
    /// In front of another writer.
    pub fn new(inner: W) -> Self {
        Self { inner, stream: current().map(|redactor| redactor.stream()) }
    }

    /// Writes what was held back because a secret may have begun there.
    ///
    /// # Errors
    ///
    /// What the other writer says.
    pub fn finish(mut self) -> io::Result<()> {
        self.write_rest()
    }

    fn write_rest(&mut self) -> io::Result<()> {
        if let Some(stream) = self.stream.take() {
            self.inner.write_all(&stream.finish())?;
        }
        self.inner.flush()
    }
}

impl<W: Write> Write for RedactingWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.stream {
            Some(stream) => self.inner.write_all(&stream.push(bytes))?,
            None => self.inner.write_all(bytes)?,
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl<W: Write> Drop for RedactingWriter<W> {
    fn drop(&mut self) {
        // Nobody is there to be told; who wants to know calls `finish`.
        drop(self.write_rest());
    }
}

#[cfg(test)]
mod tests {
    use super::super::keep;
    use super::*;

    #[test]
    fn a_secret_in_two_writes_is_found() {
        keep("WRITTEN", "what the writer must not tell").unwrap();
        let mut written = Vec::new();
        let mut writer = RedactingWriter::new(&mut written);
        writer.write_all(b"it is what the writer").unwrap();
        writer.write_all(b" must not tell, is it? what the w").unwrap();
        writer.finish().unwrap();
        assert_eq!(
            String::from_utf8(written).unwrap(),
            "it is [redacted WRITTEN], is it? what the w"
        );
    }
}
