//! States as safetensors files.

use std::collections::HashMap;

use safetensors::{Dtype, SafeTensors, tensor::TensorView};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::StateError;

/// The newest version of states, which is the one that is written.
const VERSION: u32 = 1;

/// The entry of the file's metadata that has the header: one alone, since those of a map have no order.
const HEADER: &str = "spar_predictor";

/// A tensor of a state.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct StateTensor {
    /// Name, unique within the state.
    pub(crate) name: String,
    /// Shape.
    pub(crate) shape: Vec<usize>,
    /// Elements by rows.
    pub(crate) values: Vec<f32>,
}

/// What a state begins with.
#[derive(Serialize, Deserialize)]
struct Header<T> {
    version: u32,
    predictor: String,
    /// What else the predictor keeps.
    #[serde(default = "Option::default")]
    own: Option<T>,
}

/// The bytes of a predictor's state: a safetensors file, with `own` as JSON in its header.
pub(crate) fn write(predictor: &str, own: &impl Serialize, tensors: &[StateTensor]) -> Vec<u8> {
    let header = Header { version: VERSION, predictor: predictor.to_owned(), own: Some(own) };
    let header = serde_json::to_string(&header).expect("a header is plain data");
    let bytes: Vec<Vec<u8>> = tensors
        .iter()
        .map(|tensor| tensor.values.iter().flat_map(|value| value.to_le_bytes()).collect())
        .collect();
    let views = tensors.iter().zip(&bytes).map(|(tensor, bytes)| {
        let view = TensorView::new(Dtype::F32, tensor.shape.clone(), bytes);
        (&tensor.name, view.expect("a tensor has as many elements as its shape says"))
    });
    let metadata = HashMap::from([(HEADER.to_owned(), header)]);
    safetensors::serialize(views, Some(metadata)).expect("tensors follow each other")
}

/// A state that is being read.
pub(crate) struct StateReader<'a> {
    file: SafeTensors<'a>,
}

impl<'a> StateReader<'a> {
    /// The state of `predictor` in `bytes`, and what else that kept.
    pub(crate) fn open<T: DeserializeOwned>(
        predictor: &str,
        bytes: &'a [u8],
    ) -> Result<(Self, T), StateError> {
        let unreadable = |error| StateError::Unreadable(Box::new(error));
        let (_, metadata) = SafeTensors::read_metadata(bytes).map_err(unreadable)?;
        let header = metadata.metadata().as_ref().and_then(|metadata| metadata.get(HEADER));
        let header = header.ok_or(StateError::NoHeader { header: HEADER })?;
        let bad_header = |error| StateError::Unreadable(Box::new(error));
        let Header { version, predictor: found, own } =
            serde_json::from_str::<Header<serde_json::Value>>(header).map_err(bad_header)?;
        if version > VERSION {
            return Err(StateError::Version { found: version, known: VERSION });
        }
        if found != predictor {
            return Err(StateError::Predictor { found });
        }
        let own = serde_json::from_value(own.unwrap_or_default()).map_err(bad_header)?;
        let file = SafeTensors::deserialize(bytes).map_err(unreadable)?;
        Ok((Self { file }, own))
    }

    /// The elements of a tensor, all finite; `shape` is the one that it has to have.
    pub(crate) fn numbers(&self, name: &str, shape: &[usize]) -> Result<Vec<f32>, StateError> {
        let view =
            self.file.tensor(name).map_err(|_| StateError::Absent { name: name.to_owned() })?;
        if view.shape() != shape {
            let (found, expected) = (view.shape().to_vec(), shape.to_vec());
            return Err(StateError::Shape { name: name.to_owned(), found, expected });
        }
        let numbers = || StateError::Numbers { name: name.to_owned() };
        if view.dtype() != Dtype::F32 {
            return Err(numbers());
        }
        let read = |bytes: &[u8]| f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        let values: Vec<f32> = view.data().chunks_exact(4).map(read).collect();
        match values.iter().all(|value| value.is_finite()) {
            true => Ok(values),
            false => Err(numbers()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tensor() -> StateTensor {
        StateTensor { name: "a".to_owned(), shape: vec![2, 1], values: vec![0.5, -1.5] }
    }

    #[test]
    fn a_state_comes_back() {
        let bytes = write("one", &7_u32, &[tensor()]);
        assert_eq!(bytes, write("one", &7_u32, &[tensor()]));
        let (reader, own) = StateReader::open::<u32>("one", &bytes).unwrap();
        assert_eq!((reader.numbers("a", &[2, 1]).unwrap(), own), (vec![0.5, -1.5], 7));
        let error = reader.numbers("a", &[1, 2]).unwrap_err();
        assert!(matches!(error, StateError::Shape { found, .. } if found == [2, 1]));
        assert!(matches!(reader.numbers("b", &[1]).unwrap_err(), StateError::Absent { .. }));
    }

    #[test]
    fn what_is_no_state_is_told_apart() {
        let error = |bytes: &[u8]| StateReader::open::<u32>("one", bytes).err().unwrap();
        let other = write("two", &7_u32, &[tensor()]);
        assert!(matches!(error(&other), StateError::Predictor { found } if found == "two"));
        let newer = br#"{"version":2,"predictor":"one","own":7}"#;
        let metadata =
            HashMap::from([(HEADER.to_owned(), String::from_utf8(newer.to_vec()).unwrap())]);
        let none: [(&str, TensorView<'_>); 0] = [];
        let newer = safetensors::serialize(none.clone(), Some(metadata)).unwrap();
        assert!(matches!(error(&newer), StateError::Version { found: 2, known: 1 }));
        let blank = safetensors::serialize(none, None).unwrap();
        assert!(matches!(error(&blank), StateError::NoHeader { .. }));
        let whole = write("one", &7_u32, &[tensor()]);
        for end in 0..whole.len() {
            assert!(matches!(error(&whole[..end]), StateError::Unreadable(_)), "{end}");
        }
        assert!(matches!(error(&write("one", &"x", &[])), StateError::Unreadable(_)));
        let infinite = StateTensor { values: vec![0.5, f32::INFINITY], ..tensor() };
        let infinite = write("one", &7_u32, &[infinite]);
        let (reader, _) = StateReader::open::<u32>("one", &infinite).unwrap();
        assert!(matches!(reader.numbers("a", &[2, 1]), Err(StateError::Numbers { .. })));
    }
}
