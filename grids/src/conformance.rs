//! Replays what packages have shown.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;

/// How many mismatches are described.
const DESCRIBED: usize = 12;

/// What a replay comes to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Report {
    /// Files that were read.
    pub files: usize,
    /// Episodes in them.
    pub traces: usize,
    /// States in them that were compared, the first ones included.
    pub records: usize,
    /// Episodes that differ.
    pub mismatches: usize,
    /// The first differences.
    pub described: Vec<String>,
}

/// An episode as a package has shown it.
pub(crate) trait Recorded: DeserializeOwned {
    /// How many states were recorded.
    fn num_records(&self) -> usize;

    /// Which episode it is.
    fn name(&self) -> String;

    /// The first difference between it and what is played here.
    fn difference(&self) -> Option<String>;
}

/// Replays a file of recorded episodes, or all such files of a folder, whose names end in `.jsonl`.
pub(crate) fn replay_files<R: Recorded>(path: &Path) -> io::Result<Report> {
    let mut files: Vec<PathBuf> = Vec::new();
    if path.is_dir() {
        for entry in std::fs::read_dir(path)? {
            files.push(entry?.path());
        }
        files.retain(|file| file.extension().is_some_and(|it| it == "jsonl"));
        files.sort();
    } else {
        files.push(path.to_owned());
    }
    let mut report = Report::default();
    for file in files {
        report.files += 1;
        for line in BufReader::new(File::open(&file)?).lines() {
            replay_line::<R>(&line?, &mut report)
                .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        }
    }
    Ok(report)
}

/// Replays one recorded episode.
pub(crate) fn replay_line<R: Recorded>(
    line: &str,
    report: &mut Report,
) -> Result<(), serde_json::Error> {
    let trace: R = serde_json::from_str(line)?;
    report.traces += 1;
    report.records += trace.num_records();
    if let Some(difference) = trace.difference() {
        report.mismatches += 1;
        if report.described.len() < DESCRIBED {
            report.described.push(format!("{}: {difference}", trace.name()));
        }
    }
    Ok(())
}

/// The cyclic redundancy check of zlib.
pub(crate) fn crc32(bytes: &[u8]) -> u32 {
    const OF_BYTE: [u32; 256] = {
        let mut table = [0; 256];
        let mut byte = 0;
        while byte < 256 {
            let (mut sum, mut bit) = (byte as u32, 0);
            while bit < 8 {
                sum = sum >> 1 ^ if sum & 1 == 1 { 0xedb8_8320 } else { 0 };
                bit += 1;
            }
            table[byte] = sum;
            byte += 1;
        }
        table
    };
    !bytes.iter().fold(u32::MAX, |sum, byte| sum >> 8 ^ OF_BYTE[usize::from(sum as u8 ^ byte)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_those_of_zlib() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
        assert_eq!(crc32(b""), 0);
    }
}
