//! A value head, in a file of its own beside a model's or an adapter's.

use std::path::Path;

use super::tensor_file::TensorFile;
use super::{SaveOptions, weights_file};
use crate::{CheckpointError, Parameters};

/// As LLaMA-Factory calls it, with TRL's names of tensors; other tools leave the file alone.
const FILE: &str = "value_head.safetensors";

/// Writes the weights of a value head into `folder`, beside the model that it belongs to, in single precision.
///
/// # Errors
///
/// When the file cannot be written, or a weight is not finite.
pub fn save_value_head(folder: &Path, parameters: &Parameters) -> Result<(), CheckpointError> {
    weights_file::save_alone(&folder.join(FILE), parameters, &SaveOptions::default())
}

/// Reads the weights of a value head in the layout of `shape` from `folder`; `None` where it has none.
///
/// # Errors
///
/// When the file cannot be read, or the head is of another shape.
pub fn load_value_head(
    folder: &Path,
    shape: &Parameters,
) -> Result<Option<Parameters>, CheckpointError> {
    let path = folder.join(FILE);
    if !path.is_file() {
        return Ok(None);
    }
    let mut file = TensorFile::open(path.clone())?;
    if let Some(name) = file.names().into_iter().find(|name| shape.spec(name).is_none()) {
        return Err(CheckpointError::ExtraTensor { path, name });
    }
    let mut parameters = shape.clone();
    for spec in shape.specs.iter() {
        let found = file.info(&spec.name)?.shape.clone();
        if found != spec.shape {
            let (name, expected) = (spec.name.clone(), spec.shape.clone());
            return Err(CheckpointError::Shape { path, name, found, expected });
        }
        let to = parameters.view_mut(spec);
        file.read(&spec.name, |first, values| {
            to[first..first + values.len()].copy_from_slice(values);
            Ok(())
        })?;
    }
    Ok(Some(parameters))
}

#[cfg(test)]
mod tests {
    use spar_core::Seed;

    use super::*;
    use crate::state_heads::{HeadWeights, StateHeadConfig, state_head_registry};

    #[test]
    fn every_head_comes_back_and_another_shape_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        for entry in state_head_registry() {
            let config = StateHeadConfig { kind: entry.name.to_owned(), ..Default::default() };
            let fresh = |width| HeadWeights::fresh(&config, width, Seed::from_u64(1)).unwrap();
            let mut parameters = fresh(6).parameters().clone();
            parameters.data.iter_mut().zip(1..).for_each(|(value, n)| *value = n as f32 / 7.0);
            save_value_head(folder.path(), &parameters).unwrap();
            let loaded = load_value_head(folder.path(), fresh(6).parameters()).unwrap();
            assert_eq!(loaded, Some(parameters.clone()));
            let error = load_value_head(folder.path(), fresh(5).parameters()).unwrap_err();
            assert!(matches!(error, CheckpointError::Shape { .. }), "{error}");
            parameters.data[0] = f32::NAN;
            assert!(save_value_head(folder.path(), &parameters).is_err());
        }
        let fresh = |kind: &str| {
            let config = StateHeadConfig { kind: kind.to_owned(), ..Default::default() };
            HeadWeights::fresh(&config, 6, Seed::from_u64(1)).unwrap()
        };
        let first = fresh("linear");
        // The last row has many numbers where the first one has one.
        let error = load_value_head(folder.path(), first.parameters()).unwrap_err();
        assert!(matches!(error, CheckpointError::Shape { .. }), "{error}");
        save_value_head(folder.path(), fresh("hidden_layer").parameters()).unwrap();
        let error = load_value_head(folder.path(), first.parameters()).unwrap_err();
        assert!(matches!(error, CheckpointError::ExtraTensor { .. }), "{error}");
        let none = tempfile::tempdir().unwrap();
        assert_eq!(load_value_head(none.path(), first.parameters()).unwrap(), None);
    }
}
