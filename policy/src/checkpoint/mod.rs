//! Models on disk, in the layout of Hugging Face.
//!
//! A folder holds `config.json`, `model.safetensors` (or several files and an index),
//! `tokenizer.json`, `tokenizer_config.json` and `generation_config.json`. A model without
//! extensions ([`ModelConfig::is_plain`]) is written as `Qwen3ForCausalLM`, which other tools open;
//! one with extensions as `SparForCausalLM`, which they refuse rather than misread. Folders of
//! Qwen3 models can be loaded.

mod config_file;
mod weights_file;

use std::path::Path;

use serde_json::{Value, json};

use crate::atomic_file::write_atomically;
use crate::{CheckpointError, Family, ModelConfig, Parameters, RopeScaling, Tokenizer};

/// Writes a model and its tokenizer into `folder`, which is made where it is absent.
///
/// Each file is replaced as a whole. Equal models give equal bytes.
///
/// # Errors
///
/// When a file cannot be written, or a weight is not finite.
pub fn save_model(
    folder: &Path,
    config: &ModelConfig,
    parameters: &Parameters,
    tokenizer: &Tokenizer,
) -> Result<(), CheckpointError> {
    let written = ModelConfig {
        family: Family::Qwen3,
        rope_scaling: RopeScaling::None,
        sliding_window: None,
        ..config.clone()
    };
    if written != *config {
        return Err(CheckpointError::Unsupported {
            path: folder.join("config.json"),
            field: "family".to_owned(),
            found: format!("{:?} with {:?}", config.family, config.rope_scaling),
            supported: "Qwen3 without scaled positions or a window".to_owned(),
        });
    }
    let failed = |source| CheckpointError::Io { path: folder.to_owned(), source };
    std::fs::create_dir_all(folder).map_err(failed)?;
    weights_file::save(folder, parameters)?;
    tokenizer.save(folder)?;
    let end = tokenizer.end_of_turn();
    write_json(&folder.join("config.json"), &config_file::to_json(config, end))?;
    let generation = json!({ "do_sample": true, "temperature": 1.0, "eos_token_id": end });
    write_json(&folder.join("generation_config.json"), &generation)
}

/// Reads a model and its tokenizer from `folder`.
///
/// # Errors
///
/// As [`load_weights`], and when the tokenizer cannot be used or has more tokens than the model.
pub fn load_model(folder: &Path) -> Result<(ModelConfig, Parameters, Tokenizer), CheckpointError> {
    let tokenizer = Tokenizer::load(folder)?;
    let (config, parameters) = load_weights(folder)?;
    if tokenizer.vocab_size() > config.vocab_size {
        return Err(CheckpointError::Vocabulary {
            folder: folder.to_owned(),
            tokenizer: tokenizer.vocab_size(),
            model: config.vocab_size,
        });
    }
    Ok((config, parameters, tokenizer))
}

/// Reads a model without its tokenizer from `folder`.
///
/// Weights of half precision are widened to single precision.
///
/// # Errors
///
/// When a file cannot be read, `config.json` describes a model that the decoder does not compute
/// to the letter, or the weights do not fit it; a tensor that is missing, surplus, of the wrong
/// shape or type, or not finite is named.
pub fn load_weights(folder: &Path) -> Result<(ModelConfig, Parameters), CheckpointError> {
    let path = folder.join("config.json");
    let config = config_file::from_json(&read_json(&path)?, &path)?;
    let parameters = weights_file::load(folder, &config)?;
    Ok((config, parameters))
}

fn read(path: &Path) -> Result<Vec<u8>, CheckpointError> {
    std::fs::read(path).map_err(|source| CheckpointError::Io { path: path.to_owned(), source })
}

fn read_json(path: &Path) -> Result<Value, CheckpointError> {
    serde_json::from_slice(&read(path)?)
        .map_err(|source| CheckpointError::Json { path: path.to_owned(), source })
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), CheckpointError> {
    write_atomically(path, bytes)
        .map_err(|source| CheckpointError::Io { path: path.to_owned(), source })
}

fn write_json(path: &Path, value: &Value) -> Result<(), CheckpointError> {
    write(path, format!("{value:#}\n").as_bytes())
}

#[cfg(test)]
mod tests;
