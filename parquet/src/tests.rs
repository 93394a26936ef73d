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
    assert_eq!(count, 5);
}

#[test]
fn what_is_not_read_is_named() {
    for (name, part) in [("gzip", "packed by gzip"), ("delta", "encoding 7")] {
        let told = rows(&fixtures().join(format!("{name}.parquet"))).unwrap_err();
        assert!(told.contains("column `text`") && told.contains(part), "{told}");
    }
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
