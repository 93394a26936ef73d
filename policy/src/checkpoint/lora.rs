//! Low-rank adapters, in the files of Hugging Face's PEFT.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use safetensors::{Dtype, View};
use serde_json::{Value, json};

use super::tensor_file::TensorFile;
use super::{NumberType, read_json, write_json};
use crate::lora::add_low_rank;
use crate::{CheckpointError, ParameterKind, Parameters};

pub(super) const CONFIG_FILE: &str = "adapter_config.json";
const WEIGHTS_FILE: &str = "adapter_model.safetensors";
/// What PEFT puts before the names of the model.
const PREFIX: &str = "base_model.model.";

/// A low-rank change of some matrices of a model: `W + scale B A` in place of `W` (Hu et al. 2021).
#[derive(Debug, Clone, PartialEq)]
pub struct LoraAdapter {
    /// Rows of every `A`, columns of every `B`.
    pub rank: usize,
    /// `scale` is this divided by the rank, or by its root.
    pub alpha: f32,
    /// Whether `alpha` is divided by the root of the rank (Kalajdzievski 2023).
    pub scales_by_root: bool,
    /// The changes by the name of the matrix, such as `model.layers.0.self_attn.q_proj.weight`.
    pub changes: BTreeMap<String, LowRank>,
}

/// The two factors of a change.
#[derive(Debug, Clone, PartialEq)]
pub struct LowRank {
    /// `A`, `[rank, inputs]`.
    pub a: Vec<f32>,
    /// `B`, `[outputs, rank]`.
    pub b: Vec<f32>,
}

impl LoraAdapter {
    /// What the product of the factors is multiplied by.
    pub fn scale(&self) -> f32 {
        let rank = self.rank as f32;
        self.alpha / if self.scales_by_root { rank.sqrt() } else { rank }
    }

    /// The name of a factor's tensor; `factor` is `A` or `B`.
    pub(crate) fn tensor_name(parameter: &str, factor: &str) -> String {
        let module = parameter.strip_suffix(".weight").unwrap_or(parameter);
        format!("{PREFIX}{module}.lora_{factor}.weight")
    }

    /// Adds the changes to the weights they were made for.
    ///
    /// # Panics
    ///
    /// When the adapter is of another model; [`LoraAdapter::load`] checks.
    pub fn merge_into(&self, parameters: &mut Parameters) {
        let scale = self.scale();
        for (name, LowRank { a, b }) in &self.changes {
            let spec = parameters.spec(name).expect("the adapter is of this model").clone();
            add_low_rank(parameters.view_mut(&spec), a, b, self.rank, scale);
        }
    }

    /// Reads `adapter_config.json` and `adapter_model.safetensors` in `folder`, made for a model
    /// with these parameters.
    ///
    /// # Errors
    ///
    /// When a file cannot be read, the adapter is of another kind than described here, or does not
    /// fit the model.
    pub fn load(folder: &Path, parameters: &Parameters) -> Result<Self, CheckpointError> {
        let path = folder.join(CONFIG_FILE);
        let config = read_json(&path)?;
        let unsupported = |field: &str, supported: &str| CheckpointError::Unsupported {
            path: path.clone(),
            field: field.to_owned(),
            found: config[field].to_string(),
            supported: supported.to_owned(),
        };
        if config["peft_type"] != "LORA" {
            return Err(unsupported("peft_type", "\"LORA\""));
        }
        if !(config["bias"].is_null() || config["bias"] == "none") {
            return Err(unsupported("bias", "\"none\""));
        }
        // Variants that are off, empty or absent change nothing.
        let is_off = |value: &Value| match value {
            Value::Null | Value::Bool(false) => true,
            Value::Array(values) => values.is_empty(),
            Value::Object(fields) => fields.is_empty(),
            _ => false,
        };
        for field in [
            "use_dora",
            "lora_bias",
            "fan_in_fan_out",
            "modules_to_save",
            "trainable_token_indices",
            "target_parameters",
            "rank_pattern",
            "alpha_pattern",
            "layer_replication",
            "use_qalora",
            "use_bdlora",
            "alora_invocation_tokens",
            "arrow_config",
            "kasa_config",
            "monteclora_config",
            "velora_config",
            "megatron_config",
        ] {
            if !is_off(&config[field]) {
                return Err(unsupported(field, "none"));
            }
        }
        // The others (PiSSA, OLoRA, CorDA, LoftQ, LoRA-GA) take what the factors began as out of the
        // model's weights, and PEFT does so again whenever it opens the adapter.
        let leaves_weights = match &config["init_lora_weights"] {
            Value::Null | Value::Bool(_) => true,
            Value::String(start) => ["gaussian", "eva", "orthogonal", "mica"].contains(&&**start),
            _ => false,
        };
        if !leaves_weights {
            let supported = "true, false, gaussian, eva, orthogonal or mica";
            return Err(unsupported("init_lora_weights", supported));
        }
        let rank = config["r"].as_u64().and_then(|rank| usize::try_from(rank).ok());
        let rank = rank.filter(|rank| (1..=1 << 16).contains(rank));
        let rank = rank.ok_or_else(|| unsupported("r", "1 to 65536"))?;
        let alpha = config["lora_alpha"].as_f64().map(|alpha| alpha as f32);
        let alpha = alpha.filter(|alpha| alpha.is_finite());
        let alpha = alpha.ok_or_else(|| unsupported("lora_alpha", "a number"))?;
        let scales_by_root = config["use_rslora"] == true;
        let mut adapter = Self { rank, alpha, scales_by_root, changes: BTreeMap::new() };

        let mut file = TensorFile::open(folder.join(WEIGHTS_FILE))?;
        for tensor in file.names() {
            let extra = || CheckpointError::ExtraTensor {
                path: folder.join(WEIGHTS_FILE),
                name: tensor.clone(),
            };
            let (name, is_a) = parse(&tensor).ok_or_else(extra)?;
            let spec = parameters.spec(&name).filter(|spec| spec.kind == ParameterKind::Matrix);
            let spec = spec.ok_or_else(extra)?;
            let (outputs, inputs) = (spec.shape[0], spec.shape[1]);
            let expected = if is_a { vec![rank, inputs] } else { vec![outputs, rank] };
            let found = file.info(&tensor)?.shape.clone();
            if found != expected {
                let path = folder.join(WEIGHTS_FILE);
                return Err(CheckpointError::Shape { path, name: tensor, found, expected });
            }
            let mut values = Vec::with_capacity(expected.iter().product());
            file.read(&tensor, |_, piece| {
                values.extend_from_slice(piece);
                Ok(())
            })?;
            let change = adapter.changes.entry(name);
            let change = change.or_insert(LowRank { a: Vec::new(), b: Vec::new() });
            *(if is_a { &mut change.a } else { &mut change.b }) = values;
        }
        for (name, change) in &adapter.changes {
            for (factor, values) in [("A", &change.a), ("B", &change.b)] {
                if values.is_empty() {
                    let name = Self::tensor_name(name, factor);
                    return Err(CheckpointError::MissingTensor { folder: folder.to_owned(), name });
                }
            }
        }
        Ok(adapter)
    }

    /// Writes the two files into `folder`, which is made where it is absent; `base` is where the
    /// model is from that the adapter changes.
    ///
    /// # Errors
    ///
    /// When a file cannot be written or a number is not finite.
    pub fn save(
        &self,
        folder: &Path,
        base: &str,
        parameters: &Parameters,
    ) -> Result<(), CheckpointError> {
        let path = folder.join(WEIGHTS_FILE);
        let io = |source| CheckpointError::Io { path: path.clone(), source };
        std::fs::create_dir_all(folder).map_err(io)?;
        let mut tensors = Vec::new();
        for (name, change) in &self.changes {
            let missing =
                || CheckpointError::MissingTensor { folder: folder.to_owned(), name: name.clone() };
            let spec = parameters.spec(name).ok_or_else(missing)?;
            let (outputs, inputs) = (spec.shape[0], spec.shape[1]);
            for (factor, shape, values) in
                [("A", [self.rank, inputs], &change.a), ("B", [outputs, self.rank], &change.b)]
            {
                let name = Self::tensor_name(name, factor);
                if let Some(element) = values.iter().position(|value| !value.is_finite()) {
                    let value = values[element];
                    return Err(CheckpointError::NotFinite { path, name, element, value });
                }
                tensors.push((name, Factor { shape, values }));
            }
        }
        let views = tensors.iter().map(|(name, factor)| (&**name, factor));
        let metadata = HashMap::from([("format".to_owned(), "pt".to_owned())]);
        let bytes = safetensors::serialize(views, Some(metadata))
            .map_err(|source| CheckpointError::Damaged { path: path.clone(), source })?;
        super::write(&path, &bytes)?;
        // The last part of a matrix's name, as PEFT looks for it.
        let mut modules: Vec<&str> = self
            .changes
            .keys()
            .filter_map(|name| name.strip_suffix(".weight")?.rsplit('.').next())
            .collect();
        modules.sort_unstable();
        modules.dedup();
        let config = json!({
            "peft_type": "LORA",
            "task_type": "CAUSAL_LM",
            "base_model_name_or_path": base,
            "r": self.rank,
            "lora_alpha": self.alpha,
            "use_rslora": self.scales_by_root,
            "target_modules": modules,
            "lora_dropout": 0.0,
            "bias": "none",
            "fan_in_fan_out": false,
            "inference_mode": true,
        });
        write_json(&folder.join(CONFIG_FILE), &config)
    }
}

/// A factor on its way into a file.
struct Factor<'a> {
    shape: [usize; 2],
    values: &'a [f32],
}

impl View for &Factor<'_> {
    fn dtype(&self) -> Dtype {
        Dtype::F32
    }

    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn data(&self) -> Cow<'_, [u8]> {
        let bytes = NumberType::F32.encode(self.values);
        Cow::Owned(bytes.expect("single precision holds all its numbers"))
    }

    fn data_len(&self) -> usize {
        4 * self.values.len()
    }
}

/// The matrix that a tensor changes, and whether it is `A`.
fn parse(tensor: &str) -> Option<(String, bool)> {
    let name = tensor.strip_prefix(PREFIX)?.strip_suffix(".weight")?;
    let (module, is_a) = match name.strip_suffix(".lora_A") {
        Some(module) => (module, true),
        None => (name.strip_suffix(".lora_B")?, false),
    };
    Some((format!("{module}.weight"), is_a))
}
