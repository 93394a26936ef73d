//! The shape of a decoder.

use serde::{Deserialize, Serialize};

use crate::{Family, RopeScaling};

/// The shape of a decoder; the names are those of a Hugging Face `config.json`.
///
/// With the extensions at their neutral values this is the family's architecture to the letter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ModelConfig {
    /// The architecture. Default Qwen3.
    pub family: Family,
    /// Tokens in the vocabulary. Set by the tokenizer.
    pub vocab_size: usize,
    /// Width of the residual stream. Default 128.
    pub hidden_size: usize,
    /// Width of the feed-forward part. Default 256.
    pub intermediate_size: usize,
    /// Layers. Default 2.
    pub num_hidden_layers: usize,
    /// Query heads. Default 4.
    pub num_attention_heads: usize,
    /// Key-value heads; divides the query heads. Default 2.
    pub num_key_value_heads: usize,
    /// Width of a head. Default 32.
    pub head_dim: usize,
    /// Tokens the model can read. Default 2048.
    pub max_position_embeddings: usize,
    /// Base of the rotary frequencies. Default 10,000.
    pub rope_theta: f32,
    /// How the rotary frequencies are changed for longer contexts. Default not at all.
    pub rope_scaling: RopeScaling,
    /// Tokens that a token sees, itself included, in every layer; positive. Absent: all before it.
    /// Default absent.
    pub sliding_window: Option<usize>,
    /// Added to the mean square in RMSNorm. Default 1e-6.
    pub rms_norm_eps: f32,
    /// Whether the embedding serves as the output matrix. Default true.
    pub tie_word_embeddings: bool,
    /// Extension: share of each head that is rotated by position, 0 to 1. Neutral 1, default 0.5.
    pub partial_rotary_factor: f32,
    /// Extension: how many preceding tokens' embeddings are mixed into each token's, with a
    /// learned weight per channel. Neutral 0, default 2.
    pub smear_tokens: usize,
    /// Extension: attention scores get a learned bias per head where the key's token, or the
    /// token before it, equals the query's token. In every layer the first head starts with the
    /// one and the second head with the other, so that earlier mentions of a word, and what
    /// followed them, are found from the first update on. Neutral false, default true.
    pub token_match_bias: bool,
}

impl Default for ModelConfig {
    fn default() -> Self {
        Self {
            family: Family::default(),
            vocab_size: 0,
            hidden_size: 128,
            intermediate_size: 256,
            num_hidden_layers: 2,
            num_attention_heads: 4,
            num_key_value_heads: 2,
            head_dim: 32,
            max_position_embeddings: 2048,
            rope_theta: 10_000.0,
            rope_scaling: RopeScaling::default(),
            sliding_window: None,
            rms_norm_eps: 1e-6,
            tie_word_embeddings: true,
            partial_rotary_factor: 0.5,
            smear_tokens: 2,
            token_match_bias: true,
        }
    }
}

impl ModelConfig {
    /// Whether this is the family's architecture without any extension, which other tools can open.
    pub fn is_plain(&self) -> bool {
        self.partial_rotary_factor == 1.0 && self.smear_tokens == 0 && !self.token_match_bias
    }

    /// Weights that such a model has.
    pub fn num_parameters(&self) -> usize {
        let shapes = crate::layout::shapes(self);
        shapes.iter().map(|(_, shape, _)| shape.iter().product::<usize>()).sum()
    }

    /// Channels of a head that are rotated; even.
    pub fn rotary_dim(&self) -> usize {
        (self.head_dim as f32 * self.partial_rotary_factor) as usize / 2 * 2
    }

    /// Width of all query heads together.
    pub fn query_width(&self) -> usize {
        self.num_attention_heads * self.head_dim
    }

    /// Width of all key heads together.
    pub fn key_width(&self) -> usize {
        self.num_key_value_heads * self.head_dim
    }

    /// All that is wrong with the values; empty when nothing is.
    pub fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        let positive = [
            ("vocab_size", self.vocab_size),
            ("hidden_size", self.hidden_size),
            ("intermediate_size", self.intermediate_size),
            ("num_hidden_layers", self.num_hidden_layers),
            ("num_attention_heads", self.num_attention_heads),
            ("num_key_value_heads", self.num_key_value_heads),
            ("head_dim", self.head_dim),
            ("max_position_embeddings", self.max_position_embeddings),
        ];
        for (name, value) in positive {
            if value == 0 {
                problems.push(format!("`{name}` is 0, it must be positive"));
            }
        }
        let (heads, key_heads) = (self.num_attention_heads, self.num_key_value_heads);
        if key_heads > 0 && !heads.is_multiple_of(key_heads) {
            problems.push(format!(
                "`num_attention_heads` {heads} is no multiple of `num_key_value_heads` {key_heads}"
            ));
        }
        if !self.head_dim.is_multiple_of(2) {
            problems.push(format!("`head_dim` {} is odd", self.head_dim));
        }
        if !(0.0..=1.0).contains(&self.partial_rotary_factor) {
            problems.push(format!(
                "`partial_rotary_factor` {} is outside 0 to 1",
                self.partial_rotary_factor
            ));
        }
        if self.rope_theta <= 0.0 || self.rms_norm_eps <= 0.0 {
            problems.push("`rope_theta` and `rms_norm_eps` must be positive".to_owned());
        }
        if self.sliding_window == Some(0) {
            problems.push("`sliding_window` is 0, it must be positive".to_owned());
        }
        problems.extend(self.rope_scaling.problems());
        problems
    }
}
