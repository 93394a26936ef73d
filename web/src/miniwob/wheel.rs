//! Reads a Python wheel: an archive in the format ZIP.

use std::collections::HashMap;
use std::sync::Arc;

/// The most bytes of a file in it.
const MAX_FILE_BYTES: usize = 16 << 20;
/// The most bytes of all files that are kept.
const MAX_ALL_BYTES: usize = 128 << 20;

/// The files of a wheel whose names begin with `prefix`, by the rest of their names.
///
/// # Errors
///
/// The text says what is wrong with the archive.
pub(crate) fn read_wheel(bytes: &[u8], prefix: &str) -> Result<HashMap<String, Arc<[u8]>>, String> {
    let number = |at: usize, size: usize| -> Result<usize, String> {
        let field = bytes.get(at..at + size).ok_or("it is cut off")?;
        Ok(field.iter().rev().fold(0, |number, byte| number << 8 | usize::from(*byte)))
    };
    // The directory is at the end, behind which a comment may stand.
    let end = bytes.len().checked_sub(22).ok_or("it is no ZIP archive")?;
    let lowest = end.saturating_sub(1 << 16);
    let directory_end = (lowest..=end)
        .rev()
        .find(|at| bytes[*at..].starts_with(b"PK\x05\x06"))
        .ok_or("it is no ZIP archive")?;
    let (count, mut at) = (number(directory_end + 10, 2)?, number(directory_end + 16, 4)?);
    let mut files = HashMap::new();
    let mut total = 0;
    for _ in 0..count {
        if bytes.get(at..at + 4) != Some(b"PK\x01\x02") {
            return Err("its directory is broken".to_owned());
        }
        let (method, packed, size) =
            (number(at + 10, 2)?, number(at + 20, 4)?, number(at + 24, 4)?);
        let (name_length, extra) = (number(at + 28, 2)?, number(at + 30, 2)? + number(at + 32, 2)?);
        let local = number(at + 42, 4)?;
        let name = bytes.get(at + 46..at + 46 + name_length).ok_or("it is cut off")?;
        at += 46 + name_length + extra;
        let Ok(name) = std::str::from_utf8(name) else { continue };
        let Some(rest) =
            name.strip_prefix(prefix).filter(|rest| !rest.is_empty() && !rest.ends_with('/'))
        else {
            continue;
        };
        total += size;
        if size > MAX_FILE_BYTES || total > MAX_ALL_BYTES {
            return Err(format!("`{name}` is too large"));
        }
        let begin = local + 30 + number(local + 26, 2)? + number(local + 28, 2)?;
        let content = bytes.get(begin..begin + packed).ok_or("it is cut off")?;
        let content = match method {
            0 => content.to_vec(),
            8 => miniz_oxide::inflate::decompress_to_vec_with_limit(content, size)
                .map_err(|error| format!("`{name}` cannot be unpacked: {error}"))?,
            method => {
                return Err(format!("`{name}` is packed by method {method}, known are 0 and 8"));
            }
        };
        if content.len() != size {
            return Err(format!("`{name}` is cut off"));
        }
        files.insert(rest.to_owned(), content.into());
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One file, packed.
    fn archive(name: &str, content: &[u8]) -> Vec<u8> {
        let packed = miniz_oxide::deflate::compress_to_vec(content, 6);
        let mut bytes = b"PK\x03\x04".to_vec();
        let sizes =
            [(packed.len() as u32).to_le_bytes(), (content.len() as u32).to_le_bytes()].concat();
        bytes.extend([20, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        bytes.extend(&sizes);
        bytes.extend([name.len() as u8, 0, 0, 0]);
        bytes.extend(name.as_bytes());
        bytes.extend(&packed);
        let directory = bytes.len() as u32;
        bytes.extend(b"PK\x01\x02");
        bytes.extend([20, 0, 20, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        bytes.extend(&sizes);
        bytes.extend([name.len() as u8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        bytes.extend(name.as_bytes());
        let length = bytes.len() as u32 - directory;
        bytes.extend(b"PK\x05\x06");
        bytes.extend([0, 0, 0, 0, 1, 0, 1, 0]);
        bytes.extend(length.to_le_bytes());
        bytes.extend(directory.to_le_bytes());
        bytes.extend([0, 0]);
        bytes
    }

    #[test]
    fn files_are_unpacked_and_broken_archives_told() {
        let bytes = archive("m/html/a.html", b"aaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
        let files = read_wheel(&bytes, "m/html/").unwrap();
        assert_eq!(&*files["a.html"], b"aaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
        assert!(read_wheel(&bytes, "n/").unwrap().is_empty());
        assert!(read_wheel(b"", "m/").is_err());
        for cut in 0..bytes.len() {
            assert!(read_wheel(&bytes[..cut], "m/").is_err(), "{cut}");
        }
        for at in 0..bytes.len() {
            let mut broken = bytes.clone();
            broken[at] ^= 0xff;
            // Whatever comes of it, it does not panic.
            let _ = read_wheel(&broken, "m/");
        }
    }
}
