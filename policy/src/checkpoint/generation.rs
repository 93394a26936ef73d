//! `generation_config.json`.

use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{read_json, write_json};
use crate::CheckpointError;

/// How a model's makers sample from it; absent is what they leave open.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct GenerationDefaults {
    /// Whether tokens are drawn; false means the most probable one.
    pub do_sample: Option<bool>,
    /// Divisor of the logits.
    pub temperature: Option<f32>,
    /// Share of probability from which tokens are drawn, the most probable first.
    pub top_p: Option<f32>,
    /// Tokens among which is drawn.
    pub top_k: Option<u32>,
    /// Probability, relative to the greatest, below which a token is not drawn.
    pub min_p: Option<f32>,
    /// Divisor of the logits of tokens that have come before.
    pub repetition_penalty: Option<f32>,
    /// Tokens of a completion.
    pub max_new_tokens: Option<u32>,
}

const FILE: &str = "generation_config.json";

impl GenerationDefaults {
    /// Reads `generation_config.json` in a model's folder; all absent where there is no such file.
    ///
    /// # Errors
    ///
    /// When the file cannot be read or a value has the wrong type.
    pub fn load(folder: &Path) -> Result<Self, CheckpointError> {
        let path = folder.join(FILE);
        if !path.exists() {
            return Ok(Self::default());
        }
        serde_json::from_value(read_json(&path)?)
            .map_err(|source| CheckpointError::Json { path, source })
    }
}

/// Writes `generation_config.json` of a model whose completions end with one of `ends`.
pub(super) fn save(folder: &Path, ends: &[u32]) -> Result<(), CheckpointError> {
    let ends = match ends {
        [end] => json!(end),
        ends => json!(ends),
    };
    let file = json!({ "do_sample": true, "temperature": 1.0, "eos_token_id": ends });
    write_json(&folder.join(FILE), &file)
}
