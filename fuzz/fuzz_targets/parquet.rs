//! Foreign files of Parquet: rows or an error, and what lies between the marks is anything.

#![no_main]

use spar_parquet::ParquetFile;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let mut file = tempfile::tempfile().expect("a file can be made");
    std::io::Write::write_all(&mut file, input).expect("a file can be written");
    let Ok(mut rows) = ParquetFile::open(file) else { return };
    for _ in 0..1_000 {
        let Ok(Some(_)) = rows.next_row() else { return };
    }
});
