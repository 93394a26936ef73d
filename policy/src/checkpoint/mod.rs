//! Models on disk, in the layout of Hugging Face.
//!
//! A folder holds `config.json`, `model.safetensors` (or several files and an index),
//! `tokenizer.json`, `tokenizer_config.json` and `generation_config.json`. Models of the families
//! that the decoder computes are read and written: `LlamaForCausalLM` (SmolLM too),
//! `MistralForCausalLM`, `Qwen2ForCausalLM` and `Qwen3ForCausalLM`, with weights in f32, bf16 or
//! f16. A model with extensions, not [plain](ModelConfig::is_plain), is written as
//! `SparForCausalLM`, which other tools refuse rather than misread. What a `config.json` asks for
//! and the decoder does not compute is refused by name.
//!
//! In place of such a folder a `.gguf` file is read too, or a folder that holds one: Llama, Qwen2 and Qwen3 models with
//! tokenizer and templates, their quantised numbers widened to what they stand for. What is written is a folder.

mod config_file;
mod generation;
mod ggml_type;
mod gguf_file;
mod keep_as;
mod lora;
mod number_type;
mod tensor_file;
mod value_head;
mod weights_file;

use std::path::{Path, PathBuf};

use serde_json::Value;

pub use self::generation::GenerationDefaults;
pub use self::keep_as::KeepAs;
pub use self::lora::{LoraAdapter, LowRank};
pub use self::number_type::NumberType;
pub(crate) use self::number_type::{to_bf16, to_half};
pub use self::tensor_file::TensorFile;
pub use self::value_head::{load_value_head, save_value_head};
use self::weights_file::Loaded;
use crate::{
    CheckpointError, HalfParameters, ModelConfig, ParameterKind, Parameters, Tokenizer, Weights,
};
use spar_text::gguf::Gguf;
use spar_text::write_atomically;

const CONFIG_FILE: &str = "config.json";

/// How a model is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SaveOptions {
    /// Type of the stored weights. Default single precision, which loses nothing.
    pub number_type: NumberType,
    /// Bytes of weights beyond which a further file is begun. Default 5 GB.
    pub max_shard_bytes: u64,
}

impl Default for SaveOptions {
    fn default() -> Self {
        Self { number_type: NumberType::F32, max_shard_bytes: 5_000_000_000 }
    }
}

/// Writes a model and its tokenizer into `folder`, which is made where it is absent, in single
/// precision.
///
/// Each file is replaced as a whole. Equal models give equal bytes.
///
/// # Errors
///
/// When a file cannot be written, a weight is not finite, or the family's architecture has not what
/// the model has.
pub fn save_model(
    folder: &Path,
    config: &ModelConfig,
    parameters: &Parameters,
    tokenizer: &Tokenizer,
) -> Result<(), CheckpointError> {
    save_model_with(folder, config, parameters, tokenizer, &SaveOptions::default())
}

/// As [`save_model`], with options.
///
/// # Errors
///
/// As [`save_model`], and when a weight is too large for the type it is stored as.
pub fn save_model_with(
    folder: &Path,
    config: &ModelConfig,
    parameters: &Parameters,
    tokenizer: &Tokenizer,
    options: &SaveOptions,
) -> Result<(), CheckpointError> {
    let (path, ends) = (folder.join(CONFIG_FILE), tokenizer.end_tokens());
    let file = config_file::to_json(config, ends, options.number_type, &path)?;
    let failed = |source| CheckpointError::Io { path: folder.to_owned(), source };
    std::fs::create_dir_all(folder).map_err(failed)?;
    weights_file::save(folder, parameters, options)?;
    tokenizer.save(folder)?;
    write_json(&path, &file)?;
    generation::save(folder, ends)
}

/// Reads a model and its tokenizer from `folder`.
///
/// # Errors
///
/// As [`load_weights`], and when the tokenizer cannot be used or has more tokens than the model.
pub fn load_model(folder: &Path) -> Result<(ModelConfig, Parameters, Tokenizer), CheckpointError> {
    let tokenizer = load_tokenizer(folder)?;
    let (config, parameters) = load_weights(folder)?;
    check_vocabulary(folder, &config, &tokenizer)?;
    Ok((config, parameters, tokenizer))
}

/// Opens a model and its tokenizer to compute with it on the CPU, the weights being kept in the form
/// that `keep` says.
///
/// # Errors
///
/// As [`load_model`], and when a weight is too large for the type it is to be kept as.
pub fn open_model(folder: &Path, keep: KeepAs) -> Result<(Weights, Tokenizer), CheckpointError> {
    let tokenizer = load_tokenizer(folder)?;
    let weights = open_weights(folder, keep)?;
    check_vocabulary(folder, weights.config(), &tokenizer)?;
    Ok((weights, tokenizer))
}

fn load_tokenizer(folder: &Path) -> Result<Tokenizer, CheckpointError> {
    // An adapter made elsewhere may come without one.
    if is_adapter(folder) && !Tokenizer::is_in(folder) {
        Ok(Tokenizer::load(&base_of(folder)?)?)
    } else {
        Ok(Tokenizer::load(folder)?)
    }
}

fn check_vocabulary(
    folder: &Path,
    config: &ModelConfig,
    tokenizer: &Tokenizer,
) -> Result<(), CheckpointError> {
    if tokenizer.vocab_size() > config.vocab_size {
        return Err(CheckpointError::Vocabulary {
            folder: folder.to_owned(),
            tokenizer: tokenizer.vocab_size(),
            model: config.vocab_size,
        });
    }
    Ok(())
}

/// Reads a model without its tokenizer from `folder`.
///
/// A folder with an adapter (`adapter_config.json`) and no model gives the model that the adapter
/// was made for, merged with it; that is looked for where `base_model_name_or_path` says: a folder,
/// also one beside the adapter, or a name in the cache of the hub.
///
/// Weights of half precision are widened to single precision. Besides the parameters, memory for
/// little more than a mebibyte is taken.
///
/// # Errors
///
/// When a file cannot be read, `config.json` describes a model that the decoder does not compute
/// to the letter, or the weights do not fit it; a tensor that is missing, surplus, of the wrong
/// shape or type, or not finite is named.
pub fn load_weights(folder: &Path) -> Result<(ModelConfig, Parameters), CheckpointError> {
    if !is_adapter(folder) {
        return load_plain(folder);
    }
    let (config, mut parameters) = load_plain(&base_of(folder)?)?;
    LoraAdapter::load(folder, &parameters)?.merge_into(&mut parameters);
    Ok((config, parameters))
}

/// Opens a model without its tokenizer, as [`open_model`].
///
/// What an adapter is merged into is in single precision; it stays so where `keep` is
/// [`KeepAs::Stored`], since the sum is not what is stored.
///
/// # Errors
///
/// As [`load_weights`], and when a weight is too large for the type it is to be kept as.
pub fn open_weights(folder: &Path, keep: KeepAs) -> Result<Weights, CheckpointError> {
    if is_adapter(folder) {
        let (config, merged) = load_weights(folder)?;
        let Some(half) = keep.half_of([]) else { return Ok(Weights::new(&config, merged)) };
        for spec in merged.specs.iter().filter(|spec| spec.kind != ParameterKind::Vector) {
            let values = merged.view(spec);
            if let Some(element) = values.iter().position(|value| half.overflows(*value)) {
                return Err(CheckpointError::TooLarge {
                    path: folder.to_owned(),
                    name: spec.name.clone(),
                    element,
                    value: values[element],
                    number_type: NumberType::from(half).name(),
                });
            }
        }
        let halves = HalfParameters::rounded(&merged, half);
        return Ok(Weights::of_halves(&config, halves));
    }
    let (config, loaded) = load_as(folder, keep)?;
    Ok(match loaded {
        Loaded::Single(parameters) => Weights::new(&config, parameters),
        Loaded::Half(halves) => Weights::of_halves(&config, halves),
    })
}

/// Reads the shape of a model from `folder`; of the one below an adapter where it has one.
///
/// # Errors
///
/// When `config.json` cannot be read or describes a model that the decoder does not compute.
pub fn load_config(folder: &Path) -> Result<ModelConfig, CheckpointError> {
    let folder = match is_adapter(folder) {
        true => &base_of(folder)?,
        false => folder,
    };
    if let Some(file) = Gguf::find(folder) {
        return gguf_file::config(&Gguf::open(&file)?);
    }
    let path = folder.join(CONFIG_FILE);
    config_file::from_json(&read_json(&path)?, &path)
}

/// Whether a path holds a model: a folder with a `config.json`, a GGUF file, or a folder with one such file.
pub fn is_model(path: &Path) -> bool {
    path.join(CONFIG_FILE).is_file() || Gguf::find(path).is_some()
}

/// Whether a folder holds an adapter and no model of its own.
pub fn is_adapter(folder: &Path) -> bool {
    folder.join(lora::CONFIG_FILE).is_file() && !folder.join(CONFIG_FILE).is_file()
}

/// Writes an adapter in PEFT's form, and the tokenizer, into `folder`, which is made where it is
/// absent; `base` is the folder of the model it was made for, whose weights are `parameters`.
///
/// # Errors
///
/// When a file cannot be written, or a number is not finite.
pub fn save_adapter(
    folder: &Path,
    adapter: &LoraAdapter,
    base: &Path,
    parameters: &Parameters,
    tokenizer: &Tokenizer,
) -> Result<(), CheckpointError> {
    adapter.save(folder, &base.to_string_lossy(), parameters)?;
    tokenizer.save(folder)?;
    generation::save(folder, tokenizer.end_tokens())
}

fn load_plain(folder: &Path) -> Result<(ModelConfig, Parameters), CheckpointError> {
    match load_as(folder, KeepAs::F32)? {
        (config, Loaded::Single(parameters)) => Ok((config, parameters)),
        (config, Loaded::Half(halves)) => Ok((config, halves.widened())),
    }
}

/// The model in a folder or a GGUF file, no adapter, in the form that is asked for.
fn load_as(folder: &Path, keep: KeepAs) -> Result<(ModelConfig, Loaded), CheckpointError> {
    if let Some(file) = Gguf::find(folder) {
        let gguf = Gguf::open(&file)?;
        let config = gguf_file::config(&gguf)?;
        let loaded = gguf_file::load(&gguf, &config, keep)?;
        return Ok((config, loaded));
    }
    let path = folder.join(CONFIG_FILE);
    let config = config_file::from_json(&read_json(&path)?, &path)?;
    let loaded = weights_file::load(folder, &config, keep)?;
    Ok((config, loaded))
}

/// The folder of the model that the adapter in `folder` was made for.
///
/// # Errors
///
/// When the adapter cannot be read, or the model is not where it says.
pub fn base_of(folder: &Path) -> Result<PathBuf, CheckpointError> {
    let path = folder.join(lora::CONFIG_FILE);
    let config = read_json(&path)?;
    let name = config["base_model_name_or_path"].as_str().unwrap_or_default();
    // A whole path stays as it is.
    let beside = folder.join(name);
    if !name.is_empty() {
        for place in [PathBuf::from(name), beside] {
            if is_model(&place) {
                return Ok(place);
            }
        }
        if let Some(cached) = crate::hub::cached(name) {
            return Ok(cached);
        }
    }
    Err(CheckpointError::Unsupported {
        path,
        field: "base_model_name_or_path".to_owned(),
        found: config["base_model_name_or_path"].to_string(),
        supported: "a folder with a model, or a name in the cache of the hub".to_owned(),
    })
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
