//! TensorBoard event files.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::RunFolderError;

/// Writes scalars to a TensorBoard event file.
///
/// The file is a sequence of TFRecord frames, each holding an `Event` message of
/// `tensorflow/core/util/event.proto`:
///
/// ```text
/// length: u64 | masked CRC-32C of length: u32 | message | masked CRC-32C of message: u32
/// ```
#[derive(Debug)]
pub struct EventWriter {
    path: PathBuf,
    writer: BufWriter<File>,
}

impl EventWriter {
    /// Starts a new event file in `folder`, which is created where it is missing.
    ///
    /// `resumed_at` is the iteration a resumed run goes on with: TensorBoard then drops what
    /// earlier files in the folder say about it and later ones.
    ///
    /// # Errors
    ///
    /// [`RunFolderError::Write`].
    pub fn create(folder: &Path, resumed_at: Option<u64>) -> Result<Self, RunFolderError> {
        fs::create_dir_all(folder).map_err(RunFolderError::write(folder))?;
        // TensorBoard reads the files of a folder in the order of their names.
        let stamp = now().max(0.0) as u64;
        let (path, file) = (0..)
            .map(|n| folder.join(format!("events.out.tfevents.{stamp:010}.spar.{n:04}")))
            .find_map(|path| match File::create_new(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => None,
                result => Some((path, result)),
            })
            .expect("the numbers do not end");
        let writer = BufWriter::new(file.map_err(RunFolderError::write(&path))?);
        let mut events = Self { path, writer };
        events.write(&event(now(), 0, &string_field(3, "brain.Event:2")))?;
        if let Some(iteration) = resumed_at {
            // session_log { status: START }
            events.write(&event(now(), iteration, &bytes_field(7, &[0x08, 0x01])))?;
        }
        events.flush()?;
        Ok(events)
    }

    /// Appends scalars of an iteration; they reach the file with [`EventWriter::flush`].
    ///
    /// # Errors
    ///
    /// [`RunFolderError::Write`].
    pub fn scalars<'a>(
        &mut self,
        iteration: u64,
        values: impl IntoIterator<Item = (&'a str, f64)>,
    ) -> Result<(), RunFolderError> {
        let mut summary = Vec::new();
        for (tag, value) in values {
            let mut scalar = string_field(1, tag);
            scalar.push(2 << 3 | 5);
            scalar.extend((value as f32).to_le_bytes());
            summary.extend(bytes_field(1, &scalar));
        }
        self.write(&event(now(), iteration, &bytes_field(5, &summary)))
    }

    /// Hands everything to the system, so that TensorBoard sees it.
    ///
    /// # Errors
    ///
    /// [`RunFolderError::Write`].
    pub fn flush(&mut self) -> Result<(), RunFolderError> {
        self.writer.flush().map_err(RunFolderError::write(&self.path))
    }

    fn write(&mut self, message: &[u8]) -> Result<(), RunFolderError> {
        let length = (message.len() as u64).to_le_bytes();
        let mut frame = length.to_vec();
        frame.extend(masked_crc32c(&length).to_le_bytes());
        frame.extend(message);
        frame.extend(masked_crc32c(message).to_le_bytes());
        self.writer.write_all(&frame).map_err(RunFolderError::write(&self.path))
    }
}

fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
}

/// `Event { wall_time: double = 1, step: int64 = 2, what }`.
fn event(wall_time: f64, step: u64, what: &[u8]) -> Vec<u8> {
    let mut message = vec![1 << 3 | 1];
    message.extend(wall_time.to_le_bytes());
    message.push(2 << 3);
    push_varint(&mut message, step);
    message.extend(what);
    message
}

fn string_field(number: u8, text: &str) -> Vec<u8> {
    bytes_field(number, text.as_bytes())
}

fn bytes_field(number: u8, bytes: &[u8]) -> Vec<u8> {
    let mut field = vec![number << 3 | 2];
    push_varint(&mut field, bytes.len() as u64);
    field.extend(bytes);
    field
}

fn push_varint(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

/// CRC-32C, rotated and offset as TFRecord wants it.
fn masked_crc32c(bytes: &[u8]) -> u32 {
    crc32c(bytes).rotate_right(15).wrapping_add(0xa282_ead8)
}

/// CRC with Castagnoli's polynomial, bits reversed.
fn crc32c(bytes: &[u8]) -> u32 {
    const TABLE: [u32; 256] = {
        let mut table = [0; 256];
        let mut index = 0;
        while index < 256 {
            let mut value = index as u32;
            let mut bit = 0;
            while bit < 8 {
                value = if value & 1 == 1 { value >> 1 ^ 0x82f6_3b78 } else { value >> 1 };
                bit += 1;
            }
            table[index] = value;
            index += 1;
        }
        table
    };
    !bytes.iter().fold(!0, |crc: u32, byte| crc >> 8 ^ TABLE[(crc as u8 ^ byte) as usize])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fields of a message: number, and the value as bytes (numbers little-endian).
    fn fields(mut bytes: &[u8]) -> Vec<(u64, Vec<u8>)> {
        let mut fields = Vec::new();
        while !bytes.is_empty() {
            let key = take_varint(&mut bytes);
            let len = match key & 7 {
                0 => {
                    let value = take_varint(&mut bytes);
                    fields.push((key >> 3, value.to_le_bytes().to_vec()));
                    continue;
                }
                1 => 8,
                2 => take_varint(&mut bytes) as usize,
                5 => 4,
                other => panic!("wire type {other}"),
            };
            fields.push((key >> 3, bytes[..len].to_vec()));
            bytes = &bytes[len..];
        }
        fields
    }

    fn take_varint(bytes: &mut &[u8]) -> u64 {
        let mut value = 0;
        for shift in (0..).step_by(7) {
            let byte = bytes[0];
            *bytes = &bytes[1..];
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                break;
            }
        }
        value
    }

    fn read_events(path: &Path) -> Vec<Vec<(u64, Vec<u8>)>> {
        let file = fs::read(path).unwrap();
        let (mut bytes, mut events) = (file.as_slice(), Vec::new());
        let word = |bytes: &[u8]| u32::from_le_bytes(bytes[..4].try_into().unwrap());
        while !bytes.is_empty() {
            let len = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
            assert_eq!(word(&bytes[8..]), masked_crc32c(&bytes[..8]));
            let message = &bytes[12..12 + len];
            assert_eq!(word(&bytes[12 + len..]), masked_crc32c(message));
            events.push(fields(message));
            bytes = &bytes[16 + len..];
        }
        events
    }

    #[test]
    fn checksums_equal_the_published_ones() {
        // RFC 3720, appendix B.4.
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa);
        assert_eq!(crc32c(&[0xff; 32]), 0x62a8_ab43);
    }

    #[test]
    fn scalars_come_back() {
        let folder = tempfile::tempdir().unwrap();
        let mut events = EventWriter::create(folder.path(), Some(300)).unwrap();
        events.scalars(300, [("update/loss", 0.25), ("reward", -3.0)]).unwrap();
        events.flush().unwrap();
        let read = read_events(&events.path);
        assert_eq!(read[0][2], (3, b"brain.Event:2".to_vec()));
        assert_eq!(read[1][1..], [(2, 300u64.to_le_bytes().to_vec()), (7, vec![8, 1])]);
        let values = fields(&read[2][2].1);
        assert_eq!((read[2][2].0, values.len()), (5, 2));
        let wanted = [(1, b"update/loss".to_vec()), (2, 0.25f32.to_le_bytes().to_vec())];
        assert_eq!(fields(&values[0].1), wanted);
        // A second writer in the same second gets a file of its own.
        let other = EventWriter::create(folder.path(), None).unwrap();
        assert!(other.path > events.path);
    }
}
