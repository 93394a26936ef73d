//! Files that pyarrow has written, and what becomes of broken ones.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::ParquetFile;

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
}

fn rows(path: &Path) -> Result<Vec<Map<String, Value>>, String> {
    let mut file = ParquetFile::open(File::open(path).unwrap())?;
    let mut rows = Vec::new();
    while let Some(row) = file.next_row()? {
        rows.push(row);
    }
    Ok(rows)
}

#[test]
fn rows_are_those_that_were_written() {
    let mut count = 0;
    for entry in fs::read_dir(fixtures()).unwrap() {
        let path = entry.unwrap().path();
        let expected = path.with_extension("json");
        if path.extension().is_none_or(|end| end != "parquet") || !expected.exists() {
            continue;
        }
        let expected: Vec<Map<String, Value>> =
            serde_json::from_slice(&fs::read(expected).unwrap()).unwrap();
        let found = rows(&path).unwrap();
        assert_eq!(found.len(), expected.len(), "{}", path.display());
        for (found, expected) in found.iter().zip(&expected) {
            assert_eq!(found, expected, "{}", path.display());
        }
        count += 1;
    }
    assert_eq!(count, 6);
}

#[test]
fn what_is_not_read_is_named() {
    for (name, part) in [
        ("gzip", "packed by gzip"),
        ("delta", "encoding 7"),
        ("decimal", "decimal numbers"),
        ("time", "times of the day"),
    ] {
        let told = rows(&fixtures().join(format!("{name}.parquet"))).unwrap_err();
        assert!(told.contains("column `text`") && told.contains(part), "{told}");
    }
}

/// A file of one column whose description is made by hand: the fields of its element behind the name, and its pages.
fn made(description: &[u8]) -> Vec<u8> {
    let mut file = b"PAR1".to_vec();
    file.extend(description);
    file.extend(u32::try_from(description.len()).unwrap().to_le_bytes());
    file.extend(b"PAR1");
    file
}

#[test]
fn descriptions_that_are_deep_or_long_are_refused_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("made.parquet");
    let told = |description: &[u8]| {
        fs::write(&path, made(description)).unwrap();
        rows(&path).unwrap_err()
    };
    // Field 2, a list of one list of one list...
    let mut deep = vec![0x29];
    deep.extend([0x19].repeat(4_000_000));
    deep.push(0);
    assert!(told(&deep).contains("too deeply"));
    // A list of so many truths as there are bytes.
    let mut long = vec![0x29, 0xf1];
    let count = 16_u32 << 20;
    long.extend([0x80 | (count & 0x7f) as u8, 0x80 | (count >> 7 & 0x7f) as u8]);
    long.extend([0x80 | (count >> 14 & 0x7f) as u8, (count >> 21) as u8]);
    long.extend([1].repeat(count as usize));
    long.push(0);
    assert!(told(&long).contains("too long"));
    // The number of a field, and the one behind it.
    let mut number = vec![0x05];
    number.extend([0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01]);
    number.extend([0, 0x15, 0, 0]);
    assert!(told(&number).contains("no number"));
    // A column whose name alone, in every row, would fill the memory.
    let mut named = vec![0x29, 0x2c, 0x48, 0x01, b'r', 0x15, 0x02, 0];
    named.extend([0x15, 0x0c, 0x25, 0x02, 0x18, 0xc0, 0x9a, 0x0c]);
    named.extend([b'n'].repeat(200_000));
    named.extend([0, 0]);
    assert!(told(&named).contains("a name of 200000 bytes"), "{}", told(&named));
    // A group whose name stands in the paths of its seventy thousand columns.
    let varint = |number: u32| {
        let sevens = [number, number >> 7, number >> 14].map(|it| (it & 0x7f) as u8);
        [sevens[0] | 0x80, sevens[1] | 0x80, sevens[2]]
    };
    let count = 70_000;
    let mut paths = vec![0x29, 0xfc];
    paths.extend(varint(count + 2));
    paths.extend([0x48, 0x01, b'r', 0x15, 0x02, 0]);
    paths.extend([0x35, 0, 0x18]);
    paths.extend(varint(1000));
    paths.extend([b'n'].repeat(1000));
    paths.push(0x15);
    paths.extend(varint(2 * count));
    paths.push(0);
    paths.extend([0x15, 0x0c, 0x25, 0x02, 0x18, 0x01, b'a', 0].repeat(count as usize));
    paths.push(0);
    assert!(told(&paths).contains("names of its columns are too long"), "{}", told(&paths));
}

#[test]
fn broken_files_are_errors() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("broken.parquet");
    let mut refused = 0;
    for name in ["nested_snappy", "nested_plain", "nested_zstd_second", "flat_pages"] {
        let whole = fs::read(fixtures().join(format!("{name}.parquet"))).unwrap();
        // A generator of its own: the same bytes in every run.
        let mut state = 0x9e37_79b9_7f4a_7c15u64;
        let mut next = move |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as usize % below
        };
        for round in 0..300 {
            let mut bytes = whole.clone();
            match round % 3 {
                0 => bytes.truncate(next(whole.len())),
                _ => {
                    for _ in 0..=round % 4 {
                        // Most of what can be wrong stands at the end.
                        let near = if round % 2 == 0 { whole.len() } else { 600.min(whole.len()) };
                        let at = whole.len() - 1 - next(near);
                        bytes[at] = next(256) as u8;
                    }
                }
            }
            fs::write(&path, &bytes).unwrap();
            refused += usize::from(rows(&path).is_err());
        }
    }
    assert!(refused > 400, "{refused}");
    for bytes in
        [&b"PAR1"[..], b"PAR1PAR1PAR1", b"PAR1\xff\xff\xff\xffPAR1", b"PAR1........\x08\0\0\0PARE"]
    {
        fs::write(&path, bytes).unwrap();
        assert!(rows(&path).is_err());
    }
    assert!(ParquetFile::is_at(&path) && !ParquetFile::is_at(folder.path()));
    fs::write(&path, "PAR").unwrap();
    assert!(!ParquetFile::is_at(&path) && !ParquetFile::is_at(&folder.path().join("none")));
}
