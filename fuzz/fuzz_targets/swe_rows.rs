//! Foreign files of rows: instances or an error, of whatever format the first byte names by adding its columns.

#![no_main]

use std::cell::LazyCell;
use std::fs;

use spar_swe::{Instance, ROW_FORMATS, RowFile, RowOptions};
use tempfile::TempDir;

/// Rows that are read of a file.
const MAX_ROWS: usize = 64;

thread_local! {
    static FOLDER: LazyCell<TempDir> = LazyCell::new(|| tempfile::tempdir().expect("a folder can be made"));
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let [choice, rows @ ..] = bytes else { return };
    // Most rows would belong to no format: those that are missing are put in front, where any that follow take their place.
    let mut text = Vec::new();
    if let Some(format) = ROW_FORMATS.get(usize::from(*choice))
        && let Some(rest) = rows.strip_prefix(b"{")
    {
        text.push(b'{');
        for column in format.columns {
            text.extend_from_slice(
                format!("{column:?}: \"owner__tool.1234567.a__b\", ").as_bytes(),
            );
        }
        text.extend_from_slice(rest);
    } else {
        text.extend_from_slice(rows);
    }
    FOLDER.with(|folder| {
        let path = folder.path().join("rows.jsonl");
        fs::write(&path, &text).expect("a file can be written");
        let _ = RowFile::matches(&path);
        let options = RowOptions { mixed: true, ..RowOptions::default() };
        let file = match RowFile::open(&path, options) {
            Ok(file) => file,
            Err(error) => return assert!(!error.to_string().is_empty()),
        };
        for instance in file.take(MAX_ROWS) {
            match instance {
                Ok(instance) => {
                    // What is written is read back, and an instance that cannot be judged says why.
                    let text = serde_json::to_string(&instance).expect("instances can be written");
                    let back: Instance = serde_json::from_str(&text).expect("and read");
                    assert_eq!(back, instance);
                    assert!(instance.is_gradable() || !instance.unsupported.is_empty());
                    assert!(!instance.id.contains(['/', '\\']) && !instance.id.starts_with('.'));
                }
                Err(error) => assert!(!error.to_string().is_empty()),
            }
        }
    });
});
