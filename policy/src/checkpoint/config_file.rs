//! `config.json`.

use std::path::Path;

use serde_json::{Value, json};

use crate::{CheckpointError, Family, ModelConfig, RopeScaling};

/// Widths and lengths above are taken for a damaged file.
const LARGEST_SIZE: u64 = 1 << 24;
/// So are layers above.
const MOST_LAYERS: usize = 4096;

/// `model_type` and architecture of models without and with extensions.
const PLAIN: [&str; 2] = ["qwen3", "Qwen3ForCausalLM"];
const EXTENDED: [&str; 2] = ["spar", "SparForCausalLM"];

/// A float as the shortest decimal that reads back as the same.
fn shortest(value: f32) -> Value {
    value.to_string().parse::<f64>().map_or(Value::Null, Value::from)
}

/// `config.json` of a model whose turns end with the token `end`.
pub(super) fn to_json(config: &ModelConfig, end: u32) -> Value {
    let [model_type, architecture] = if config.is_plain() { PLAIN } else { EXTENDED };
    let theta = shortest(config.rope_theta);
    let mut file = json!({
        "architectures": [architecture],
        "model_type": model_type,
        "vocab_size": config.vocab_size,
        "hidden_size": config.hidden_size,
        "intermediate_size": config.intermediate_size,
        "num_hidden_layers": config.num_hidden_layers,
        "num_attention_heads": config.num_attention_heads,
        "num_key_value_heads": config.num_key_value_heads,
        "head_dim": config.head_dim,
        "max_position_embeddings": config.max_position_embeddings,
        // Tools before transformers 5 read the first, those after it the second.
        "rope_theta": theta,
        "rope_parameters": { "rope_type": "default", "rope_theta": theta },
        "rms_norm_eps": shortest(config.rms_norm_eps),
        "tie_word_embeddings": config.tie_word_embeddings,
        "hidden_act": "silu",
        "attention_bias": false,
        "attention_dropout": 0.0,
        "use_sliding_window": false,
        "use_cache": true,
        "torch_dtype": "float32",
        "bos_token_id": null,
        "eos_token_id": end,
    });
    if !config.is_plain() {
        file["partial_rotary_factor"] = shortest(config.partial_rotary_factor);
        file["smear_tokens"] = json!(config.smear_tokens);
        file["token_match_bias"] = json!(config.token_match_bias);
    }
    file
}

/// The model that a `config.json` describes; what the decoder would not compute is refused.
pub(super) fn from_json(file: &Value, path: &Path) -> Result<ModelConfig, CheckpointError> {
    let reader = Reader { file, path };
    let found = [&file["model_type"], &file["architectures"][0]];
    let is_extended = found == EXTENDED;
    if !is_extended && found != PLAIN {
        let found = format!("{} of type {}", file["architectures"], found[0]);
        return Err(reader.unsupported(
            "architectures",
            found,
            "Qwen3ForCausalLM, SparForCausalLM",
        ));
    }
    reader.require(
        "architectures",
        |value| value.as_array().is_some_and(|a| a.len() == 1),
        "one",
    )?;
    reader.require("hidden_act", |value| value == "silu", "\"silu\"")?;
    reader.require("attention_bias", |value| value == false, "false")?;
    reader.require("use_sliding_window", |value| value == false, "false")?;
    reader.require("quantization_config", |_| false, "none")?;
    let is_full = |layers: &Value| {
        layers.as_array().is_some_and(|layers| layers.iter().all(|kind| kind == "full_attention"))
    };
    reader.require("layer_types", is_full, "\"full_attention\" in every layer")?;
    let is_default = |rope: &Value| {
        let kind = rope.get("rope_type").or(rope.get("type"));
        let rotated = rope.get("partial_rotary_factor");
        kind.is_none_or(|kind| kind == "default") && rotated.is_none_or(|share| share == 1.0)
    };
    reader.require("rope_scaling", is_default, "none")?;
    reader.require("rope_parameters", is_default, "\"rope_type\": \"default\"")?;

    let inner_theta = &file["rope_parameters"]["rope_theta"];
    let theta = reader.float("rope_theta", inner_theta.as_f64().unwrap_or(10_000.0))?;
    let same = |inner: &Value| inner.as_f64().is_none_or(|inner| inner as f32 == theta);
    if !same(inner_theta) {
        let supported = format!("one value, but `rope_theta` is {theta}");
        return Err(reader.unsupported("rope_parameters", inner_theta.to_string(), &supported));
    }
    // A Qwen3 model has none of the extensions, whatever else its file says.
    let extension = |name| if is_extended { reader.float(name, 1.0) } else { Ok(1.0) };
    let config = ModelConfig {
        family: Family::Qwen3,
        rope_scaling: RopeScaling::None,
        sliding_window: None,
        vocab_size: reader.size("vocab_size")?,
        hidden_size: reader.size("hidden_size")?,
        intermediate_size: reader.size("intermediate_size")?,
        num_hidden_layers: reader.size("num_hidden_layers")?,
        num_attention_heads: reader.size("num_attention_heads")?,
        num_key_value_heads: reader.size("num_key_value_heads")?,
        head_dim: reader.size("head_dim")?,
        max_position_embeddings: reader.size("max_position_embeddings")?,
        rope_theta: theta,
        rms_norm_eps: reader.float("rms_norm_eps", 1e-6)?,
        tie_word_embeddings: reader.flag("tie_word_embeddings")?,
        partial_rotary_factor: extension("partial_rotary_factor")?,
        smear_tokens: if is_extended { reader.size("smear_tokens")? } else { 0 },
        token_match_bias: is_extended && reader.flag("token_match_bias")?,
    };
    let mut problems = config.problems();
    if config.num_hidden_layers > MOST_LAYERS {
        let layers = config.num_hidden_layers;
        problems.push(format!("`num_hidden_layers` is {layers}, at the most {MOST_LAYERS}"));
    }
    if !config.rope_theta.is_finite() || !config.rms_norm_eps.is_finite() {
        problems.push("`rope_theta` or `rms_norm_eps` is too large".to_owned());
    }
    if problems.is_empty() {
        Ok(config)
    } else {
        Err(CheckpointError::Config { path: path.to_owned(), problems })
    }
}

/// Reads fields of a file and says which one is wrong.
struct Reader<'a> {
    file: &'a Value,
    path: &'a Path,
}

impl Reader<'_> {
    fn unsupported(&self, field: &str, found: String, supported: &str) -> CheckpointError {
        CheckpointError::Unsupported {
            path: self.path.to_owned(),
            field: field.to_owned(),
            found,
            supported: supported.to_owned(),
        }
    }

    /// A field that may be absent or null, and otherwise must pass.
    fn require(
        &self,
        field: &str,
        passes: impl Fn(&Value) -> bool,
        supported: &str,
    ) -> Result<(), CheckpointError> {
        match &self.file[field] {
            Value::Null => Ok(()),
            value if passes(value) => Ok(()),
            value => Err(self.unsupported(field, value.to_string(), supported)),
        }
    }

    fn size(&self, field: &str) -> Result<usize, CheckpointError> {
        let value = &self.file[field];
        let size = value.as_u64().filter(|size| *size <= LARGEST_SIZE);
        size.and_then(|size| usize::try_from(size).ok()).ok_or_else(|| {
            self.unsupported(field, value.to_string(), &format!("0 to {LARGEST_SIZE}"))
        })
    }

    fn float(&self, field: &str, default: f64) -> Result<f32, CheckpointError> {
        match &self.file[field] {
            Value::Null => Ok(default as f32),
            value => value
                .as_f64()
                .map(|value| value as f32)
                .ok_or_else(|| self.unsupported(field, value.to_string(), "a number")),
        }
    }

    /// False where absent, as in Qwen3's own configuration.
    fn flag(&self, field: &str) -> Result<bool, CheckpointError> {
        match &self.file[field] {
            Value::Null => Ok(false),
            value => value
                .as_bool()
                .ok_or_else(|| self.unsupported(field, value.to_string(), "true or false")),
        }
    }
}
