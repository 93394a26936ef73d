//! State as named tensors.

use crate::TrainerError;

/// A tensor of an optimiser's or trainer's state.
#[derive(Debug, Clone, PartialEq)]
pub struct NamedTensor {
    /// Name, unique within the state.
    pub name: String,
    /// Shape.
    pub shape: Vec<usize>,
    /// Elements by rows.
    pub data: Vec<f32>,
}

/// A counter as a tensor of four 16-bit digits, lowest first, which `f32` holds exactly.
pub(crate) fn counter_tensor(name: &str, counter: u64) -> NamedTensor {
    let data = (0..4).map(|digit| ((counter >> (16 * digit)) & 0xffff) as f32).collect();
    NamedTensor { name: name.to_owned(), shape: vec![4], data }
}

/// Finds tensors by name, with errors that say what is missing.
#[derive(Clone, Copy)]
pub(crate) struct StateReader<'a>(pub(crate) &'a [NamedTensor]);

impl<'a> StateReader<'a> {
    pub(crate) fn find(self, name: &str) -> Option<&'a NamedTensor> {
        self.0.iter().find(|tensor| tensor.name == name)
    }

    pub(crate) fn tensor(self, name: &str, shape: &[usize]) -> Result<&'a [f32], TrainerError> {
        let refuse = |detail| TrainerError::State { detail };
        let tensor =
            self.find(name).ok_or_else(|| refuse(format!("tensor `{name}` is missing")))?;
        if tensor.shape != shape || tensor.data.len() != shape.iter().product::<usize>() {
            let found = &tensor.shape;
            return Err(refuse(format!("tensor `{name}` has shape {found:?}, not {shape:?}")));
        }
        Ok(&tensor.data)
    }

    pub(crate) fn counter(self, name: &str) -> Result<u64, TrainerError> {
        let digits = self.tensor(name, &[4])?;
        if digits.iter().any(|digit| !(0.0..65_536.0).contains(digit) || digit.fract() != 0.0) {
            let detail = format!("tensor `{name}` is not a counter");
            return Err(TrainerError::State { detail });
        }
        Ok(digits.iter().rev().fold(0, |counter, digit| (counter << 16) | *digit as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_survives_as_floats() {
        for counter in [0, 1, 65_535, 65_536, 16_777_217, u64::MAX] {
            let tensors = [counter_tensor("n", counter)];
            assert_eq!(StateReader(&tensors).counter("n").unwrap(), counter);
        }
    }

    #[test]
    fn what_is_missing_is_named() {
        let error = StateReader(&[]).counter("updates").unwrap_err();
        assert_eq!(error.to_string(), "load the trainer state: tensor `updates` is missing");
    }
}
