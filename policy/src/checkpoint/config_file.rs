//! `config.json`.

use std::path::Path;

use serde_json::{Map, Value, json};

use super::NumberType;
use crate::{CheckpointError, Family, ModelConfig, RopeScaling};

/// Widths and lengths above are taken for a damaged file.
const LARGEST_SIZE: u64 = 1 << 24;
/// So are layers above.
const MOST_LAYERS: usize = 4096;

/// `model_type` and architecture of models with extensions.
const EXTENDED: [&str; 2] = ["spar", "SparForCausalLM"];

/// `model_type` and architecture of a family's models without extensions.
fn plain(family: Family) -> [&'static str; 2] {
    match family {
        Family::Llama => ["llama", "LlamaForCausalLM"],
        Family::Mistral => ["mistral", "MistralForCausalLM"],
        Family::Qwen2 => ["qwen2", "Qwen2ForCausalLM"],
        Family::Qwen3 => ["qwen3", "Qwen3ForCausalLM"],
    }
}

/// What transformers takes where `config.json` is silent.
struct Defaults {
    num_key_value_heads: Option<usize>,
    head_dim: Option<usize>,
    max_position_embeddings: usize,
    sliding_window: Option<usize>,
}

fn defaults(family: Family) -> Defaults {
    match family {
        Family::Llama => Defaults {
            num_key_value_heads: None,
            head_dim: None,
            max_position_embeddings: 2048,
            sliding_window: None,
        },
        Family::Mistral => Defaults {
            num_key_value_heads: Some(8),
            head_dim: None,
            max_position_embeddings: 131_072,
            sliding_window: Some(4096),
        },
        Family::Qwen2 | Family::Qwen3 => Defaults {
            num_key_value_heads: Some(32),
            head_dim: (family == Family::Qwen3).then_some(128),
            max_position_embeddings: 32_768,
            sliding_window: Some(4096),
        },
    }
}

/// A float as the shortest decimal that reads back as the same.
fn shortest(value: f32) -> Value {
    value.to_string().parse::<f64>().map_or(Value::Null, Value::from)
}

/// `config.json` of a model whose completions end with one of the tokens `ends`.
///
/// # Errors
///
/// When no architecture of that name has what the model has.
pub(super) fn to_json(
    config: &ModelConfig,
    ends: &[u32],
    number_type: NumberType,
    path: &Path,
) -> Result<Value, CheckpointError> {
    let family = config.family;
    let [model_type, architecture] = if config.is_plain() { plain(family) } else { EXTENDED };
    if family == Family::Llama && config.is_plain() && config.sliding_window.is_some() {
        let nothing = Value::Null;
        return Err(Reader { file: &nothing, path }.unsupported(
            "sliding_window",
            format!("{:?} in a Llama model", config.sliding_window),
            "none; a Mistral model is the same with a window",
        ));
    }
    let theta = shortest(config.rope_theta);
    let scaling = scaling_to_json(config.rope_scaling);
    let mut rope = scaling.clone();
    rope.insert("rope_theta".to_owned(), theta.clone());
    let number_type = number_type.name();
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
        // Tools before transformers 5 read the first two, those after it the third.
        "rope_theta": theta,
        "rope_scaling": if config.rope_scaling == RopeScaling::None { Value::Null } else { scaling.into() },
        "rope_parameters": rope,
        "rms_norm_eps": shortest(config.rms_norm_eps),
        "tie_word_embeddings": config.tie_word_embeddings,
        "hidden_act": "silu",
        "attention_dropout": 0.0,
        "use_cache": true,
        "torch_dtype": number_type,
        "dtype": number_type,
        "bos_token_id": null,
        "eos_token_id": match ends { [end] => json!(end), ends => json!(ends) },
    });
    if family != Family::Qwen2 {
        file["attention_bias"] = json!(false);
    }
    match family {
        Family::Llama => file["mlp_bias"] = json!(false),
        Family::Mistral => file["sliding_window"] = json!(config.sliding_window),
        Family::Qwen2 | Family::Qwen3 => {
            let kind = if config.sliding_window.is_some() { "sliding" } else { "full" };
            let kinds = vec![format!("{kind}_attention"); config.num_hidden_layers];
            file["use_sliding_window"] = json!(config.sliding_window.is_some());
            if config.sliding_window.is_some() {
                file["sliding_window"] = json!(config.sliding_window);
                file["max_window_layers"] = json!(0);
                file["layer_types"] = json!(kinds);
            }
        }
    }
    if !config.is_plain() {
        file["family"] = json!(family);
        file["sliding_window"] = json!(config.sliding_window);
        file["partial_rotary_factor"] = shortest(config.partial_rotary_factor);
        file["smear_tokens"] = json!(config.smear_tokens);
        file["token_match_bias"] = json!(config.token_match_bias);
    }
    Ok(file)
}

fn scaling_to_json(scaling: RopeScaling) -> Map<String, Value> {
    let file = match scaling {
        RopeScaling::None => json!({ "rope_type": "default" }),
        RopeScaling::Linear { factor } => {
            json!({ "rope_type": "linear", "factor": shortest(factor) })
        }
        RopeScaling::Llama3 {
            factor,
            low_freq_factor,
            high_freq_factor,
            original_max_position_embeddings,
        } => json!({
            "rope_type": "llama3",
            "factor": shortest(factor),
            "low_freq_factor": shortest(low_freq_factor),
            "high_freq_factor": shortest(high_freq_factor),
            "original_max_position_embeddings": original_max_position_embeddings,
        }),
    };
    file.as_object().cloned().unwrap_or_default()
}

/// The model that a `config.json` describes; what the decoder would not compute is refused.
pub(super) fn from_json(file: &Value, path: &Path) -> Result<ModelConfig, CheckpointError> {
    let reader = Reader { file, path };
    let (family, is_extended) = reader.family()?;
    let is_false = |value: &Value| value == false;
    reader.require("hidden_act", |value| value == "silu", "\"silu\"")?;
    reader.require("attention_bias", is_false, "false")?;
    reader.require("mlp_bias", is_false, "false")?;
    // transformers 5 lets tokens see what follows them where it is false.
    reader.require("is_causal", |value| value == true, "true")?;
    for field in ["quantization_config", "num_experts", "num_local_experts"] {
        reader.require(field, |_| false, "none")?;
    }
    if !is_extended {
        reader.require("partial_rotary_factor", |value| value == 1.0, "1")?;
    }
    let (rope_theta, rope_scaling) = reader.rope()?;
    let defaults = defaults(family);
    let heads = reader.size("num_attention_heads")?;
    let hidden_size = reader.size("hidden_size")?;
    let num_hidden_layers = reader.size("num_hidden_layers")?;
    let key_heads = match &file["num_key_value_heads"] {
        // Absent and null are not the same to transformers.
        Value::Null if file.get("num_key_value_heads").is_some() => heads,
        Value::Null => defaults.num_key_value_heads.unwrap_or(heads),
        _ => reader.size("num_key_value_heads")?,
    };
    let own_head_dim = defaults.head_dim.or(hidden_size.checked_div(heads));
    // A plain model has none of the extensions, whatever else its file says.
    let extension = |name| if is_extended { reader.float(name, 1.0) } else { Ok(1.0) };
    let config = ModelConfig {
        family,
        vocab_size: reader.size("vocab_size")?,
        hidden_size,
        intermediate_size: reader.size("intermediate_size")?,
        num_hidden_layers,
        num_attention_heads: heads,
        num_key_value_heads: key_heads,
        head_dim: reader.size_or("head_dim", own_head_dim)?,
        max_position_embeddings: reader
            .size_or("max_position_embeddings", Some(defaults.max_position_embeddings))?,
        rope_theta,
        rope_scaling,
        sliding_window: if is_extended {
            reader.window(None)?
        } else {
            reader.sliding_window(family, defaults.sliding_window, num_hidden_layers)?
        },
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

    /// The family, and whether the model has extensions.
    fn family(&self) -> Result<(Family, bool), CheckpointError> {
        let (model_type, architectures) = (&self.file["model_type"], &self.file["architectures"]);
        let architecture = match architectures.as_array().map(Vec::as_slice) {
            Some([only]) => only,
            _ => &Value::Null,
        };
        if [model_type, architecture] == EXTENDED {
            let family: Option<Family> = match &self.file["family"] {
                Value::Null => Some(Family::Qwen3),
                value => serde_json::from_value(value.clone()).ok(),
            };
            let names = Family::ALL.map(|family| plain(family)[0]).join(", ");
            let family = family.ok_or_else(|| {
                self.unsupported("family", self.file["family"].to_string(), &names)
            })?;
            return Ok((family, true));
        }
        let known = Family::ALL.into_iter().find(|family| plain(*family)[1] == *architecture);
        let fits = |family: &Family| model_type.is_null() || *model_type == plain(*family)[0];
        known.filter(fits).map(|family| (family, false)).ok_or_else(|| {
            let names = Family::ALL.map(|family| plain(family)[1]).join(", ");
            let found = format!("{architectures} of type {model_type}");
            self.unsupported("architectures", found, &format!("{names}, {}", EXTENDED[1]))
        })
    }

    /// Base and change of the rotary frequencies, as transformers 4 and 5 write them.
    fn rope(&self) -> Result<(f32, RopeScaling), CheckpointError> {
        let inner_theta = &self.file["rope_parameters"]["rope_theta"];
        let theta = self.float("rope_theta", inner_theta.as_f64().unwrap_or(10_000.0))?;
        if inner_theta.as_f64().is_some_and(|inner| inner as f32 != theta) {
            let supported = format!("one value, but `rope_theta` is {theta}");
            let found = inner_theta.to_string();
            return Err(self.unsupported("rope_parameters", found, &supported));
        }
        let [new, old] = ["rope_parameters", "rope_scaling"]
            .map(|field| self.rope_scaling(field, &self.file[field]));
        let scaling = match (new?, old?) {
            (None, None) => RopeScaling::None,
            (Some(scaling), None) | (None, Some(scaling)) => scaling,
            (Some(new), Some(old)) if new == old => new,
            (Some(new), Some(_)) => {
                let found = self.file["rope_scaling"].to_string();
                let supported = format!("what `rope_parameters` says, {new:?}");
                return Err(self.unsupported("rope_scaling", found, &supported));
            }
        };
        Ok((theta, scaling))
    }

    /// The change of the rotary frequencies in `field`; `None` where it is absent.
    fn rope_scaling(
        &self,
        field: &str,
        rope: &Value,
    ) -> Result<Option<RopeScaling>, CheckpointError> {
        const SUPPORTED: &str = "\"rope_type\" default, linear or llama3 with its factors";
        if rope.is_null() {
            return Ok(None);
        }
        let unsupported = || Err(self.unsupported(field, rope.to_string(), SUPPORTED));
        let Some(fields) = rope.as_object() else { return unsupported() };
        let kind = rope.get("rope_type").or(rope.get("type"));
        let kind = kind.map_or(Some("default"), Value::as_str);
        let known: &[&str] = match kind {
            Some("default") => &[],
            Some("linear") => &["factor"],
            Some("llama3") => &[
                "factor",
                "low_freq_factor",
                "high_freq_factor",
                "original_max_position_embeddings",
            ],
            _ => return unsupported(),
        };
        for (name, value) in fields {
            let is_fine = match &**name {
                "rope_type" | "type" | "rope_theta" => true,
                "partial_rotary_factor" => value == 1.0 || value == 1,
                name => known.contains(&name),
            };
            if !is_fine && !value.is_null() {
                return unsupported();
            }
        }
        let number = |name: &str| rope[name].as_f64().map(|value| value as f32);
        let scaling = match kind {
            Some("linear") => number("factor").map(|factor| RopeScaling::Linear { factor }),
            Some("llama3") => {
                let original = &rope["original_max_position_embeddings"];
                // Where it is absent, the context was not made longer.
                let original = if original.is_null() {
                    self.file["max_position_embeddings"].as_u64()
                } else {
                    original.as_u64()
                };
                match (
                    number("factor"),
                    number("low_freq_factor"),
                    number("high_freq_factor"),
                    original.filter(|original| *original <= LARGEST_SIZE),
                ) {
                    (Some(factor), Some(low), Some(high), Some(original)) => {
                        Some(RopeScaling::Llama3 {
                            factor,
                            low_freq_factor: low,
                            high_freq_factor: high,
                            original_max_position_embeddings: original as usize,
                        })
                    }
                    _ => None,
                }
            }
            _ => Some(RopeScaling::None),
        };
        scaling.map_or_else(unsupported, |scaling| Ok(Some(scaling)))
    }

    /// The window that all layers have, if they have one.
    fn sliding_window(
        &self,
        family: Family,
        default: Option<usize>,
        layers: usize,
    ) -> Result<Option<usize>, CheckpointError> {
        match family {
            // It has none, whatever its file says.
            Family::Llama => return Ok(None),
            Family::Mistral => return self.window(default),
            Family::Qwen2 | Family::Qwen3 => {}
        }
        let window = if self.flag("use_sliding_window")? { self.window(default)? } else { None };
        let num_sliding = match &self.file["layer_types"] {
            Value::Null => match (window, &self.file["max_window_layers"]) {
                (None, _) => 0,
                (Some(_), Value::Null) => layers.saturating_sub(28),
                (Some(_), _) => layers.saturating_sub(self.size("max_window_layers")?),
            },
            kinds => {
                let kinds = kinds.as_array().map_or(&[][..], Vec::as_slice);
                let count = |name: &str| kinds.iter().filter(|kind| **kind == name).count();
                let (full, sliding) = (count("full_attention"), count("sliding_attention"));
                if kinds.len() != layers || full + sliding != layers {
                    let found = self.file["layer_types"].to_string();
                    let supported = "\"full_attention\" or \"sliding_attention\" for each layer";
                    return Err(self.unsupported("layer_types", found, supported));
                }
                sliding
            }
        };
        match (num_sliding, window) {
            (0, _) => Ok(None),
            (sliding, Some(window)) if sliding == layers => Ok(Some(window)),
            (sliding, _) => Err(self.unsupported(
                "layer_types",
                format!("a window in {sliding} of {layers} layers"),
                "the same window in every layer, or none",
            )),
        }
    }

    /// `sliding_window`, with what it is where it is absent.
    fn window(&self, default: Option<usize>) -> Result<Option<usize>, CheckpointError> {
        match self.file.get("sliding_window") {
            None => Ok(default),
            Some(Value::Null) => Ok(None),
            Some(_) => self.size("sliding_window").map(Some),
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

    /// A size that may be absent or null.
    fn size_or(&self, field: &str, default: Option<usize>) -> Result<usize, CheckpointError> {
        match default {
            Some(default) if self.file[field].is_null() => Ok(default),
            _ => self.size(field),
        }
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

    /// False where absent, as in the families' own configurations.
    fn flag(&self, field: &str) -> Result<bool, CheckpointError> {
        match &self.file[field] {
            Value::Null => Ok(false),
            value => value
                .as_bool()
                .ok_or_else(|| self.unsupported(field, value.to_string(), "true or false")),
        }
    }
}
