//! A safetensors file that is read piece by piece.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use safetensors::SafeTensorError;
use safetensors::tensor::{Metadata, TensorInfo};

use super::NumberType;
use crate::CheckpointError;

/// Bytes of the length before the header.
const LENGTH: usize = 8;
/// Headers above are taken for damaged, as the format's own library does.
const LARGEST_HEADER: u64 = 100_000_000;
/// Numbers that are read at once.
const CHUNK: usize = 1 << 18;

/// An open safetensors file.
pub struct TensorFile {
    pub(super) path: PathBuf,
    file: File,
    metadata: Metadata,
    /// Where the tensors begin.
    start: u64,
    buffer: Vec<u8>,
}

impl TensorFile {
    /// Opens a file and reads its header.
    pub fn open(path: PathBuf) -> Result<Self, CheckpointError> {
        let io = |source| CheckpointError::Io { path: path.clone(), source };
        let damaged = |source| CheckpointError::Damaged { path: path.clone(), source };
        let mut file = File::open(&path).map_err(io)?;
        let len = file.metadata().map_err(io)?.len();
        if len < LENGTH as u64 {
            return Err(damaged(SafeTensorError::HeaderTooSmall));
        }
        let mut length = [0; LENGTH];
        file.read_exact(&mut length).map_err(io)?;
        let header_len = u64::from_le_bytes(length);
        if header_len > LARGEST_HEADER {
            return Err(damaged(SafeTensorError::HeaderTooLarge));
        }
        let start = header_len + LENGTH as u64;
        if start > len {
            return Err(damaged(SafeTensorError::InvalidHeaderLength));
        }
        let mut header = vec![0; header_len as usize];
        file.read_exact(&mut header).map_err(io)?;
        let metadata: Metadata = serde_json::from_slice(&header)
            .map_err(|error| damaged(SafeTensorError::InvalidHeaderDeserialization(error)))?;
        if start + metadata.data_len() as u64 != len {
            return Err(damaged(SafeTensorError::MetadataIncompleteBuffer));
        }
        Ok(Self { path, file, metadata, start, buffer: Vec::new() })
    }

    /// The tensors in the order they lie in the file.
    pub(super) fn names(&self) -> Vec<String> {
        self.metadata.offset_keys()
    }

    /// What a tensor is; it has to be in the file.
    pub fn info(&self, name: &str) -> Result<&TensorInfo, CheckpointError> {
        self.metadata.info(name).ok_or_else(|| CheckpointError::MissingTensor {
            folder: self.path.parent().unwrap_or(Path::new(".")).to_owned(),
            name: name.to_owned(),
        })
    }

    /// Whether a tensor is in the file.
    pub fn has(&self, name: &str) -> bool {
        self.metadata.info(name).is_some()
    }

    /// The type of a tensor's numbers.
    pub(super) fn number_type(&self, name: &str) -> Result<NumberType, CheckpointError> {
        let dtype = self.info(name)?.dtype;
        NumberType::from_file(dtype).ok_or_else(|| CheckpointError::NumberType {
            path: self.path.clone(),
            name: name.to_owned(),
            found: format!("{dtype:?}"),
        })
    }

    /// Hands a tensor's numbers to `take` piece by piece, each with the index of its first one.
    ///
    /// All are finite.
    pub fn read(
        &mut self,
        name: &str,
        mut take: impl FnMut(usize, &[f32]) -> Result<(), CheckpointError>,
    ) -> Result<(), CheckpointError> {
        let number_type = self.number_type(name)?;
        let (start, end) = self.info(name)?.data_offsets;
        let path = self.path.clone();
        let io = |source| CheckpointError::Io { path: path.clone(), source };
        self.file.seek(SeekFrom::Start(self.start + start as u64)).map_err(io)?;
        let size = number_type.size();
        let total = (end - start) / size;
        let mut values = vec![0.0; CHUNK.min(total)];
        let mut first = 0;
        while first < total {
            let count = CHUNK.min(total - first);
            self.buffer.resize(count * size, 0);
            self.file.read_exact(&mut self.buffer).map_err(io)?;
            number_type.decode(&self.buffer, &mut values[..count]);
            if let Some(at) = values[..count].iter().position(|value| !value.is_finite()) {
                return Err(CheckpointError::NotFinite {
                    path,
                    name: name.to_owned(),
                    element: first + at,
                    value: values[at],
                });
            }
            take(first, &values[..count])?;
            first += count;
        }
        Ok(())
    }
}
