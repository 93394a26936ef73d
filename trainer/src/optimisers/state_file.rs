//! A trainer's state as a safetensors file, written and read piece by piece.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::ops::Range;
use std::path::Path;

use safetensors::tensor::{Dtype, Metadata, TensorInfo};
use spar_policy::checkpoint::TensorFile;

use super::state_numbers::{PIECE, StateNumbers};
use crate::TrainerError;

/// A tensor of a state on its way into a file.
pub struct StateTensor<'a> {
    /// Name, unique within the state.
    pub name: String,
    /// Shape.
    pub shape: Vec<usize>,
    /// Elements by rows.
    pub(crate) data: StateData<'a>,
}

/// The elements of a tensor.
pub(crate) enum StateData<'a> {
    Owned(Vec<f32>),
    Borrowed(&'a [f32]),
    Numbers(&'a StateNumbers, Range<usize>),
}

impl<'a> StateTensor<'a> {
    /// A tensor with these elements.
    pub fn new(name: impl Into<String>, shape: &[usize], data: &'a [f32]) -> Self {
        Self { name: name.into(), shape: shape.to_vec(), data: StateData::Borrowed(data) }
    }

    /// A counter as four 16-bit digits, lowest first, which `f32` holds exactly.
    pub fn counter(name: impl Into<String>, counter: u64) -> Self {
        let digits = (0..4).map(|digit| ((counter >> (16 * digit)) & 0xffff) as f32).collect();
        Self { name: name.into(), shape: vec![4], data: StateData::Owned(digits) }
    }

    /// The same under a name with a prefix.
    #[must_use]
    pub fn under(self, prefix: &str) -> Self {
        Self { name: format!("{prefix}.{}", self.name), ..self }
    }

    fn len(&self) -> usize {
        self.shape.iter().product()
    }

    fn write(&self, out: &mut impl Write, path: &Path) -> Result<(), TrainerError> {
        let mut write = |values: &[f32]| -> Result<(), TrainerError> {
            for piece in values.chunks(PIECE) {
                let bytes: Vec<u8> = piece.iter().flat_map(|value| value.to_le_bytes()).collect();
                out.write_all(&bytes).map_err(|source| failed(path, source))?;
            }
            Ok(())
        };
        match &self.data {
            StateData::Owned(values) => write(values),
            StateData::Borrowed(values) => write(values),
            StateData::Numbers(StateNumbers::Memory(numbers), range) => {
                write(&numbers[range.clone()])
            }
            StateData::Numbers(numbers, range) => {
                let mut values = Vec::new();
                for start in range.clone().step_by(PIECE) {
                    numbers.read(start..range.end.min(start + PIECE), &mut values)?;
                    write(&values)?;
                }
                Ok(())
            }
        }
    }
}

/// Writes a state as a safetensors file.
pub(crate) fn write_state(path: &Path, tensors: &[StateTensor<'_>]) -> Result<(), TrainerError> {
    let mut end = 0;
    let infos = tensors.iter().map(|tensor| {
        let start = end;
        end += tensor.len() * size_of::<f32>();
        let shape = tensor.shape.clone();
        (tensor.name.clone(), TensorInfo { dtype: Dtype::F32, shape, data_offsets: (start, end) })
    });
    let metadata = Metadata::new(None, infos.collect()).expect("offsets follow each other");
    let mut header = serde_json::to_vec(&metadata).expect("a header can be written as JSON");
    // As the format's own library does, so that the numbers begin at a multiple of eight.
    header.resize(header.len().next_multiple_of(8), b' ');
    let io = |source| failed(path, source);
    let mut out = BufWriter::new(File::create(path).map_err(io)?);
    out.write_all(&(header.len() as u64).to_le_bytes()).map_err(io)?;
    out.write_all(&header).map_err(io)?;
    for tensor in tensors {
        tensor.write(&mut out, path)?;
    }
    out.flush().map_err(io)
}

fn failed(path: &Path, source: io::Error) -> TrainerError {
    TrainerError::StateFile { path: path.to_owned(), source }
}

/// Finds tensors of a state in its file, below a prefix.
pub struct StateReader<'a> {
    file: &'a mut TensorFile,
    prefix: String,
}

impl<'a> StateReader<'a> {
    /// The whole file.
    pub(crate) fn new(file: &'a mut TensorFile) -> Self {
        Self { file, prefix: String::new() }
    }

    /// Whether there is such a tensor.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.file.has(&format!("{}{name}", self.prefix))
    }

    /// What [`StateTensor::under`] put there.
    pub(crate) fn under(&mut self, prefix: &str) -> StateReader<'_> {
        StateReader { prefix: format!("{}{prefix}.", self.prefix), file: self.file }
    }

    /// Hands the elements of a tensor to `take` piece by piece, each with the index of its first one.
    ///
    /// # Errors
    ///
    /// [`TrainerError::State`] when it is not there or has another shape or type, and that of `take`.
    pub fn read(
        &mut self,
        name: &str,
        shape: &[usize],
        mut take: impl FnMut(usize, &[f32]) -> Result<(), TrainerError>,
    ) -> Result<(), TrainerError> {
        let full = format!("{}{name}", self.prefix);
        let refuse = |detail| TrainerError::State { detail };
        if !self.file.has(&full) {
            return Err(refuse(format!("tensor `{full}` is missing")));
        }
        let unreadable = |source| TrainerError::StateUnreadable { source };
        let info = self.file.info(&full).map_err(unreadable)?;
        if info.shape != shape || info.dtype != Dtype::F32 {
            let (found, dtype) = (&info.shape, info.dtype);
            let detail = format!("tensor `{full}` is {found:?} of {dtype:?}, not {shape:?} of F32");
            return Err(refuse(detail));
        }
        let mut taken = Ok(());
        self.file
            .read(&full, |first, values| {
                if taken.is_ok() {
                    taken = take(first, values);
                }
                Ok(())
            })
            .map_err(unreadable)?;
        taken
    }

    /// All elements of a tensor.
    ///
    /// # Errors
    ///
    /// As [`StateReader::read`].
    pub fn tensor(&mut self, name: &str, shape: &[usize]) -> Result<Vec<f32>, TrainerError> {
        let mut all = Vec::with_capacity(shape.iter().product());
        self.read(name, shape, |_, values| {
            all.extend_from_slice(values);
            Ok(())
        })?;
        Ok(all)
    }

    /// A counter that [`StateTensor::counter`] put there.
    ///
    /// # Errors
    ///
    /// As [`StateReader::read`], and when it is none.
    pub fn counter(&mut self, name: &str) -> Result<u64, TrainerError> {
        let digits = self.tensor(name, &[4])?;
        if digits.iter().any(|digit| !(0.0..65_536.0).contains(digit) || digit.fract() != 0.0) {
            let detail = format!("tensor `{}{name}` is not a counter", self.prefix);
            return Err(TrainerError::State { detail });
        }
        Ok(digits.iter().rev().fold(0, |counter, digit| (counter << 16) | *digit as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file_of(tensors: &[StateTensor<'_>]) -> (tempfile::TempDir, TensorFile) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state.safetensors");
        write_state(&path, tensors).unwrap();
        let file = TensorFile::open(path).unwrap();
        (folder, file)
    }

    #[test]
    fn a_counter_survives_as_floats() {
        for counter in [0, 1, 65_535, 65_536, 16_777_217, u64::MAX] {
            let (_folder, mut file) = file_of(&[StateTensor::counter("n", counter).under("a")]);
            let mut reader = StateReader::new(&mut file);
            assert_eq!(reader.under("a").counter("n").unwrap(), counter);
        }
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let (_folder, mut file) = file_of(&[StateTensor::new("w", &[2, 2], &[1.0; 4])]);
        let mut reader = StateReader::new(&mut file);
        let error = reader.counter("updates").unwrap_err();
        assert_eq!(error.to_string(), "load the trainer state: tensor `updates` is missing");
        assert!(reader.tensor("w", &[4]).unwrap_err().to_string().contains("[2, 2] of F32"));
        assert_eq!(reader.tensor("w", &[2, 2]).unwrap(), [1.0; 4]);
    }

    #[test]
    fn the_library_of_the_format_reads_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state.safetensors");
        let mut numbers = StateNumbers::zeros(9, Some(folder.path())).unwrap();
        numbers.write(2, &[3.0, 4.0]).unwrap();
        let data = StateData::Numbers(&numbers, 1..5);
        let tensors = [
            StateTensor::new("odd", &[3], &[1.0, 2.0, 3.0]),
            StateTensor { name: "file".to_owned(), shape: vec![4], data },
        ];
        write_state(&path, &tensors).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        let file = safetensors::SafeTensors::deserialize(&bytes).unwrap();
        let expected: Vec<u8> =
            [0.0_f32, 3.0, 4.0, 0.0].iter().flat_map(|v| v.to_le_bytes()).collect();
        assert_eq!(file.tensor("file").unwrap().data(), expected);
        std::fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
        assert!(TensorFile::open(path).is_err());
    }
}
