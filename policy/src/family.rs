//! Which architecture a decoder has.

use serde::{Deserialize, Serialize};

/// The architectures that the decoder computes, called as `model_type` in a Hugging Face
/// `config.json`.
///
/// All have RMSNorm before each part, rotary positions, grouped-query attention and SwiGLU; they
/// differ in what the methods tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Family {
    /// Llama, and the many that are laid out like it.
    Llama,
    /// Mistral: Llama with a sliding window in some versions.
    Mistral,
    /// Qwen2 and Qwen2.5.
    Qwen2,
    /// Qwen3.
    #[default]
    Qwen3,
}

impl Family {
    /// All families.
    pub const ALL: [Self; 4] = [Self::Llama, Self::Mistral, Self::Qwen2, Self::Qwen3];

    /// Whether queries, keys and values have a bias; the output projection never has one.
    pub fn has_qkv_bias(self) -> bool {
        match self {
            Self::Qwen2 => true,
            Self::Llama | Self::Mistral | Self::Qwen3 => false,
        }
    }

    /// Whether every query head and key head is normed before it is rotated.
    pub fn has_query_key_norm(self) -> bool {
        match self {
            Self::Qwen3 => true,
            Self::Llama | Self::Mistral | Self::Qwen2 => false,
        }
    }
}
