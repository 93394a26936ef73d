//! Numbers of an optimiser's state, one per weight, in memory or in a file.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::TrainerError;

/// Where an optimiser keeps its state, such as AdamW's two moments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum StatePlace {
    /// In memory.
    #[default]
    Memory,
    /// In a file of the run folder, read and written piece by piece in every update.
    File,
}

/// Numbers that are in memory at a time where they are in a file.
pub(crate) const PIECE: usize = 1 << 18;

/// One number per weight.
#[derive(Debug)]
pub(crate) enum StateNumbers {
    Memory(Vec<f32>),
    File(NumberFile),
}

impl StateNumbers {
    /// Zeros; in a file within `folder` where there is one.
    pub(crate) fn zeros(len: usize, folder: Option<&Path>) -> Result<Self, TrainerError> {
        match folder {
            None => Ok(Self::Memory(vec![0.0; len])),
            Some(folder) => Ok(Self::File(NumberFile::zeros(folder, len)?)),
        }
    }

    /// Those of a state without a folder.
    ///
    /// # Panics
    ///
    /// When they are in a file.
    pub(crate) fn in_memory(&self) -> &[f32] {
        match self {
            Self::Memory(numbers) => numbers,
            Self::File(_) => panic!("a state without a folder is in memory"),
        }
    }

    /// Whether they take memory.
    pub(crate) fn is_in_memory(&self) -> bool {
        matches!(self, Self::Memory(_))
    }

    /// Calls `change` with the numbers in `range` of both, as large a piece at a time as is in memory,
    /// and keeps what it makes of them.
    pub(crate) fn change_both(
        first: &mut Self,
        second: &mut Self,
        range: Range<usize>,
        mut change: impl FnMut(Range<usize>, &mut [f32], &mut [f32]),
    ) -> Result<(), TrainerError> {
        match (first, second) {
            (Self::Memory(first), Self::Memory(second)) => {
                change(range.clone(), &mut first[range.clone()], &mut second[range]);
            }
            (first, second) => {
                let (mut a, mut b) = (Vec::new(), Vec::new());
                for start in range.clone().step_by(PIECE) {
                    let piece = start..range.end.min(start + PIECE);
                    first.read(piece.clone(), &mut a)?;
                    second.read(piece.clone(), &mut b)?;
                    change(piece, &mut a, &mut b);
                    first.write(start, &a)?;
                    second.write(start, &b)?;
                }
            }
        }
        Ok(())
    }

    /// Reads a range into `values`, which gets its length.
    pub(crate) fn read(
        &self,
        range: Range<usize>,
        values: &mut Vec<f32>,
    ) -> Result<(), TrainerError> {
        values.clear();
        match self {
            Self::Memory(numbers) => values.extend_from_slice(&numbers[range]),
            Self::File(file) => file.read(range, values)?,
        }
        Ok(())
    }

    /// Replaces the numbers from `start` on.
    pub(crate) fn write(&mut self, start: usize, values: &[f32]) -> Result<(), TrainerError> {
        match self {
            Self::Memory(numbers) => numbers[start..start + values.len()].copy_from_slice(values),
            Self::File(file) => file.write(start, values)?,
        }
        Ok(())
    }
}

/// Numbers in a file that has no name any more, so that nothing of it stays behind when the process
/// ends, however that is.
#[derive(Debug)]
pub(crate) struct NumberFile {
    /// The folder it was made in, for errors.
    path: PathBuf,
    /// One at a time moves it to a place.
    file: Mutex<File>,
}

impl NumberFile {
    /// A file of zeros in `folder`, which is made where it is absent. All of it is written, so that a
    /// disk that is too small is found here.
    fn zeros(folder: &Path, len: usize) -> Result<Self, TrainerError> {
        let made = || {
            std::fs::create_dir_all(folder)?;
            tempfile::tempfile_in(folder)
        };
        let path = folder.to_owned();
        let file = match made() {
            Ok(file) => Mutex::new(file),
            Err(source) => return Err(TrainerError::StateFile { path, source }),
        };
        let numbers = Self { path, file };
        let zeros = vec![0.0; PIECE.min(len)];
        for start in (0..len).step_by(PIECE) {
            numbers.write(start, &zeros[..PIECE.min(len - start)])?;
        }
        Ok(numbers)
    }

    fn read(&self, range: Range<usize>, values: &mut Vec<f32>) -> Result<(), TrainerError> {
        let mut bytes = vec![0; range.len() * size_of::<f32>()];
        let mut file = self.lock();
        let read = file
            .seek(SeekFrom::Start((range.start * size_of::<f32>()) as u64))
            .and_then(|_| file.read_exact(&mut bytes));
        read.map_err(|source| self.failed(source))?;
        values.extend(bytes.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)));
        Ok(())
    }

    fn write(&self, start: usize, values: &[f32]) -> Result<(), TrainerError> {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        let mut file = self.lock();
        let written = file
            .seek(SeekFrom::Start((start * size_of::<f32>()) as u64))
            .and_then(|_| file.write_all(&bytes));
        written.map_err(|source| self.failed(source))
    }

    fn lock(&self) -> MutexGuard<'_, File> {
        self.file.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn failed(&self, source: io::Error) -> TrainerError {
        TrainerError::StateFile { path: self.path.clone(), source }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_holds_what_memory_does() {
        let folder = tempfile::tempdir().unwrap();
        let len = 2 * PIECE + 7;
        let both = [None, Some(folder.path())].map(|place| {
            let mut first = StateNumbers::zeros(len, place).unwrap();
            let mut second = StateNumbers::zeros(len, place).unwrap();
            second.write(3, &[1.5, -2.5]).unwrap();
            for range in [1..9, 5..len] {
                StateNumbers::change_both(&mut first, &mut second, range, |piece, a, b| {
                    for ((a, b), place) in a.iter_mut().zip(b).zip(piece) {
                        *a += place as f32 + *b;
                        *b = *a * 0.5;
                    }
                })
                .unwrap();
            }
            [first, second].map(|numbers| {
                let mut values = Vec::new();
                numbers.read(0..len, &mut values).unwrap();
                values
            })
        });
        assert!(both[0] == both[1]);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "it has no name");
    }

    #[test]
    fn what_is_cut_off_is_an_error_that_names_the_folder() {
        let folder = tempfile::tempdir().unwrap();
        let file = NumberFile::zeros(folder.path(), 100).unwrap();
        file.lock().set_len(399).unwrap();
        let error = file.read(98..100, &mut Vec::new()).unwrap_err();
        assert!(error.to_string().contains(&*folder.path().to_string_lossy()), "{error}");
        file.read(0..99, &mut Vec::new()).unwrap();
    }
}
