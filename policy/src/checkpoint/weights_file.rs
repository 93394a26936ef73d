//! `model.safetensors`, and several such files with an index.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};

use super::{read, read_json, write};
use crate::layout::shapes;
use crate::{CheckpointError, ModelConfig, Parameters};

const FILE: &str = "model.safetensors";
const INDEX: &str = "model.safetensors.index.json";
const HEAD: &str = "lm_head.weight";
const EMBEDDING: &str = "model.embed_tokens.weight";

/// Writes all parameters as single precision into one file.
pub(super) fn save(folder: &Path, parameters: &Parameters) -> Result<(), CheckpointError> {
    let path = folder.join(FILE);
    for spec in parameters.specs.iter() {
        check_finite(parameters.view(spec), &path, &spec.name)?;
    }
    let bytes: Vec<u8> = parameters.data.iter().flat_map(|value| value.to_le_bytes()).collect();
    let damaged = |source| CheckpointError::Damaged { path: path.clone(), source };
    let views: Vec<(&str, TensorView<'_>)> = parameters
        .specs
        .iter()
        .map(|spec| {
            let range = 4 * spec.range().start..4 * spec.range().end;
            let view = TensorView::new(Dtype::F32, spec.shape.clone(), &bytes[range])?;
            Ok((&*spec.name, view))
        })
        .collect::<Result<_, _>>()
        .map_err(damaged)?;
    // Readers in Python ask whose tensors these are.
    let metadata = HashMap::from([("format".to_owned(), "pt".to_owned())]);
    let file = safetensors::serialize(views, Some(metadata)).map_err(damaged)?;
    write(&path, &file)
}

/// Reads the parameters of a model.
///
/// Memory grows with the tensors that are there, not with what `config` promises.
pub(super) fn load(folder: &Path, config: &ModelConfig) -> Result<Parameters, CheckpointError> {
    let shapes = shapes(config);
    let mut expected: HashMap<&str, &[usize]> =
        shapes.iter().map(|(name, shape, _)| (&**name, &**shape)).collect();
    // Some tools store the output matrix although it is the embedding.
    let embedding_shape = [config.vocab_size, config.hidden_size];
    expected.entry(HEAD).or_insert(&embedding_shape);

    let mut found: HashMap<String, Vec<f32>> = HashMap::new();
    for path in files(folder)? {
        let bytes = read(&path)?;
        let damaged = |source| CheckpointError::Damaged { path: path.clone(), source };
        let file = SafeTensors::deserialize(&bytes).map_err(damaged)?;
        let mut tensors = file.tensors();
        tensors.sort_by(|a, b| a.0.cmp(&b.0));
        for (name, tensor) in tensors {
            let shape = expected.get(&*name).filter(|_| !found.contains_key(&name));
            let Some(shape) = shape else {
                return Err(CheckpointError::ExtraTensor { path, name });
            };
            if tensor.shape() != *shape {
                return Err(CheckpointError::Shape {
                    path,
                    name,
                    found: tensor.shape().to_vec(),
                    expected: shape.to_vec(),
                });
            }
            let values = numbers(&tensor).ok_or_else(|| CheckpointError::NumberType {
                path: path.clone(),
                name: name.clone(),
                found: format!("{:?}", tensor.dtype()),
            })?;
            check_finite(&values, &path, &name)?;
            found.insert(name, values);
        }
    }
    if config.tie_word_embeddings
        && let Some(head) = found.remove(HEAD)
        && found.get(EMBEDDING).is_some_and(|embedding| *embedding != head)
    {
        return Err(CheckpointError::UntiedHead { path: folder.to_owned() });
    }
    let missing = shapes.iter().find(|(name, ..)| !found.contains_key(name));
    if let Some((name, ..)) = missing {
        let (folder, name) = (folder.to_owned(), name.clone());
        return Err(CheckpointError::MissingTensor { folder, name });
    }
    let mut parameters = Parameters::zeros(shapes);
    for spec in parameters.specs.clone().iter() {
        if let Some(values) = found.remove(&spec.name) {
            parameters.view_mut(spec).copy_from_slice(&values);
        }
    }
    Ok(parameters)
}

/// The files that hold the weights.
fn files(folder: &Path) -> Result<Vec<PathBuf>, CheckpointError> {
    let single = folder.join(FILE);
    if single.exists() {
        return Ok(vec![single]);
    }
    let path = folder.join(INDEX);
    if !path.exists() {
        return Err(CheckpointError::NoWeights { folder: folder.to_owned() });
    }
    let index = read_json(&path)?;
    let wrong = |detail: String| CheckpointError::Index { path: path.clone(), detail };
    let map = index["weight_map"].as_object();
    let map = map.ok_or_else(|| wrong("it has no table `weight_map`".to_owned()))?;
    let mut names = BTreeSet::new();
    for (tensor, file) in map {
        let name = file.as_str().filter(|name| Path::new(name).file_name() == Some(name.as_ref()));
        let name = name.ok_or_else(|| wrong(format!("tensor `{tensor}` is in {file}")))?;
        names.insert(folder.join(name));
    }
    Ok(names.into_iter().collect())
}

/// The elements as single precision; `None` for other types of numbers.
fn numbers(tensor: &TensorView<'_>) -> Option<Vec<f32>> {
    let data = tensor.data();
    let halves = || data.as_chunks::<2>().0.iter().map(|bytes| u16::from_le_bytes(*bytes));
    match tensor.dtype() {
        Dtype::F32 => {
            Some(data.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect())
        }
        Dtype::BF16 => Some(halves().map(|half| f32::from_bits(u32::from(half) << 16)).collect()),
        Dtype::F16 => Some(halves().map(from_half).collect()),
        _ => None,
    }
}

/// An IEEE half-precision number, exactly.
pub(super) fn from_half(half: u16) -> f32 {
    let sign = if half >> 15 == 1 { -1.0 } else { 1.0 };
    let (exponent, fraction) = (u32::from(half >> 10 & 31), u32::from(half & 1023));
    sign * match exponent {
        // 2^-24 for each unit of a subnormal number.
        0 => fraction as f32 / 16_777_216.0,
        31 if fraction == 0 => f32::INFINITY,
        31 => f32::NAN,
        _ => f32::from_bits((exponent + 127 - 15) << 23 | fraction << 13),
    }
}

fn check_finite(values: &[f32], path: &Path, name: &str) -> Result<(), CheckpointError> {
    let Some(element) = values.iter().position(|value| !value.is_finite()) else {
        return Ok(());
    };
    let (path, name, value) = (path.to_owned(), name.to_owned(), values[element]);
    Err(CheckpointError::NotFinite { path, name, element, value })
}
