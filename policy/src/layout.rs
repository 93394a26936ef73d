//! Which parameter lies where.

use std::ops::Range;

use rand::RngExt;
use spar_core::Seed;

use crate::{ModelConfig, ParameterKind, Parameters};

/// Where a layer's parameters lie in the flat buffer.
///
/// Matrices that are applied to the same input stand side by side, so that one product serves them.
#[derive(Debug, Clone)]
pub(crate) struct LayerLayout {
    pub(crate) input_norm: Range<usize>,
    /// Query, key and value projections, `[query_width + 2 * key_width, hidden]`.
    pub(crate) qkv: Range<usize>,
    /// Biases of queries, keys and values, `[query_width + 2 * key_width]`; empty in families
    /// without.
    pub(crate) qkv_bias: Range<usize>,
    /// `[head_dim]`; empty in families without.
    pub(crate) query_norm: Range<usize>,
    /// `[head_dim]`; empty in families without.
    pub(crate) key_norm: Range<usize>,
    /// `[hidden, query_width]`.
    pub(crate) output: Range<usize>,
    /// `[heads, 2]`; empty without the extension.
    pub(crate) match_bias: Range<usize>,
    pub(crate) feed_norm: Range<usize>,
    /// Gate and up projections, `[2 * intermediate, hidden]`.
    pub(crate) gate_up: Range<usize>,
    /// `[hidden, intermediate]`.
    pub(crate) down: Range<usize>,
}

/// Where all parameters lie in the flat buffer.
#[derive(Debug, Clone)]
pub(crate) struct Layout {
    /// `[vocab, hidden]`.
    pub(crate) embedding: Range<usize>,
    /// `[smear_tokens, hidden]`; empty without the extension.
    pub(crate) smear: Range<usize>,
    pub(crate) layers: Vec<LayerLayout>,
    pub(crate) final_norm: Range<usize>,
    /// `[vocab, hidden]`; the embedding where the two are tied.
    pub(crate) head: Range<usize>,
}

/// Names, shapes and kinds of all parameters, in the order of the flat buffer.
pub(crate) fn shapes(config: &ModelConfig) -> Vec<(String, Vec<usize>, ParameterKind)> {
    use ParameterKind::{Embedding, Matrix, Vector};
    let (d, f) = (config.hidden_size, config.intermediate_size);
    let (q, k) = (config.query_width(), config.key_width());
    let mut shapes =
        vec![("model.embed_tokens.weight".to_owned(), vec![config.vocab_size, d], Embedding)];
    if config.smear_tokens > 0 {
        shapes.push(("model.smear.weight".to_owned(), vec![config.smear_tokens, d], Vector));
    }
    for layer in 0..config.num_hidden_layers {
        let mut add = |name: &str, shape: Vec<usize>, kind| {
            shapes.push((format!("model.layers.{layer}.{name}"), shape, kind));
        };
        add("input_layernorm.weight", vec![d], Vector);
        add("self_attn.q_proj.weight", vec![q, d], Matrix);
        add("self_attn.k_proj.weight", vec![k, d], Matrix);
        add("self_attn.v_proj.weight", vec![k, d], Matrix);
        if config.family.has_qkv_bias() {
            add("self_attn.q_proj.bias", vec![q], Vector);
            add("self_attn.k_proj.bias", vec![k], Vector);
            add("self_attn.v_proj.bias", vec![k], Vector);
        }
        if config.family.has_query_key_norm() {
            add("self_attn.q_norm.weight", vec![config.head_dim], Vector);
            add("self_attn.k_norm.weight", vec![config.head_dim], Vector);
        }
        add("self_attn.o_proj.weight", vec![d, q], Matrix);
        if config.token_match_bias {
            add("self_attn.match_bias", vec![config.num_attention_heads, 2], Vector);
        }
        add("post_attention_layernorm.weight", vec![d], Vector);
        add("mlp.gate_proj.weight", vec![f, d], Matrix);
        add("mlp.up_proj.weight", vec![f, d], Matrix);
        add("mlp.down_proj.weight", vec![d, f], Matrix);
    }
    shapes.push(("model.norm.weight".to_owned(), vec![d], Vector));
    if !config.tie_word_embeddings {
        shapes.push(("lm_head.weight".to_owned(), vec![config.vocab_size, d], Embedding));
    }
    shapes
}

impl Layout {
    pub(crate) fn new(config: &ModelConfig, parameters: &Parameters) -> Self {
        let find = |name: &str| {
            parameters.spec(name).unwrap_or_else(|| panic!("`shapes` lists {name}")).range()
        };
        let embedding = find("model.embed_tokens.weight");
        let layers = (0..config.num_hidden_layers)
            .map(|layer| {
                let find = |name: &str| find(&format!("model.layers.{layer}.{name}"));
                let span = |first: &str, last: &str| find(first).start..find(last).end;
                let find_if = |exists, name| if exists { find(name) } else { 0..0 };
                let has_norm = config.family.has_query_key_norm();
                LayerLayout {
                    input_norm: find("input_layernorm.weight"),
                    qkv: span("self_attn.q_proj.weight", "self_attn.v_proj.weight"),
                    qkv_bias: if config.family.has_qkv_bias() {
                        span("self_attn.q_proj.bias", "self_attn.v_proj.bias")
                    } else {
                        0..0
                    },
                    query_norm: find_if(has_norm, "self_attn.q_norm.weight"),
                    key_norm: find_if(has_norm, "self_attn.k_norm.weight"),
                    output: find("self_attn.o_proj.weight"),
                    match_bias: find_if(config.token_match_bias, "self_attn.match_bias"),
                    feed_norm: find("post_attention_layernorm.weight"),
                    gate_up: span("mlp.gate_proj.weight", "mlp.up_proj.weight"),
                    down: find("mlp.down_proj.weight"),
                }
            })
            .collect();
        Self {
            smear: if config.smear_tokens > 0 { find("model.smear.weight") } else { 0..0 },
            layers,
            final_norm: find("model.norm.weight"),
            head: if config.tie_word_embeddings {
                embedding.clone()
            } else {
                find("lm_head.weight")
            },
            embedding,
        }
    }
}

/// Standard deviation of freshly drawn matrices and embeddings.
const INITIAL_DEVIATION: f32 = 0.02;

/// Bias on matching tokens that the first two heads of every layer start with.
///
/// From 0 the bias on the same token is never found: a small model then learns to take objects,
/// but not the one that its task names.
const INITIAL_MATCH_BIAS: f32 = 4.0;

/// Fresh parameters: gains 1, match biases as above, the rest normal with deviation 0.02, projections
/// back into the residual stream smaller by `sqrt(2 * layers)` (GPT-2's rule). The token before is mixed
/// in whole and each further one half as much as the one behind it: the places that a match finds then
/// differ by what stands before them from the first update on. From 0 some seeds take several times as
/// long to tell a thing that is seen from one that is only named.
pub(crate) fn initialise(config: &ModelConfig, seed: Seed) -> Parameters {
    let mut parameters = Parameters::zeros(shapes(config));
    let residual = 1.0 / (2.0 * config.num_hidden_layers as f32).sqrt();
    for spec in parameters.specs.clone().iter() {
        let mut rng = seed.derive("parameter", &spec.name).rng();
        let is_gain = spec.name.ends_with("norm.weight");
        let back = spec.name.ends_with("o_proj.weight") || spec.name.ends_with("down_proj.weight");
        let deviation = if back { INITIAL_DEVIATION * residual } else { INITIAL_DEVIATION };
        let values = parameters.view_mut(spec);
        match spec.kind {
            ParameterKind::Vector if spec.name.ends_with("match_bias") => {
                // `[head, 2]`: the first head looks for the same token, the second one for what
                // followed it, where there is a second one.
                values[0] = INITIAL_MATCH_BIAS;
                if let Some(value) = values.get_mut(3) {
                    *value = INITIAL_MATCH_BIAS;
                }
            }
            ParameterKind::Vector if spec.name == "model.smear.weight" => {
                let mut mixed = 1.0;
                for weights in values.chunks_exact_mut(config.hidden_size) {
                    weights.fill(mixed);
                    mixed /= 2.0;
                }
            }
            ParameterKind::Vector => values.fill(if is_gain { 1.0 } else { 0.0 }),
            ParameterKind::Matrix | ParameterKind::Embedding => {
                for pair in values.chunks_mut(2) {
                    // Box and Muller's transform; 1 - u keeps the logarithm finite.
                    let (u, angle): (f64, f64) = (rng.random(), rng.random());
                    let radius = (-2.0 * (1.0 - u).ln()).sqrt() * f64::from(deviation);
                    let angle = angle * std::f64::consts::TAU;
                    let normal = [radius * angle.cos(), radius * angle.sin()];
                    for (value, normal) in pair.iter_mut().zip(normal) {
                        *value = normal as f32;
                    }
                }
            }
        }
    }
    parameters
}
