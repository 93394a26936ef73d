//! Weights made ready for matrix products.

use std::sync::Arc;

use crate::layout::Layout;
use crate::ops::matmul::Panels;
use crate::ops::rotary::Rotary;
use crate::{ModelConfig, Parameters};

/// A matrix in the two layouts that forward and backward read.
#[derive(Debug, Clone)]
pub(crate) struct Matrix {
    /// `[in, out]`: outputs from inputs.
    pub(crate) forward: Panels,
    /// `[out, in]`: gradients of inputs from gradients of outputs.
    pub(crate) backward: Panels,
}

impl Matrix {
    fn new(weight: &[f32], outputs: usize, inputs: usize) -> Self {
        Self {
            forward: Panels::from_transposed(weight, outputs, inputs),
            backward: Panels::from_rows(weight, outputs, inputs),
        }
    }
}

/// A layer's matrices.
#[derive(Debug, Clone)]
pub(crate) struct LayerWeights {
    pub(crate) qkv: Matrix,
    pub(crate) output: Matrix,
    pub(crate) gate_up: Matrix,
    pub(crate) down: Matrix,
}

/// One version of a decoder's weights, ready for forward and backward; shared by reference.
#[derive(Debug, Clone)]
pub struct Weights {
    pub(crate) config: ModelConfig,
    pub(crate) layout: Arc<Layout>,
    pub(crate) rotary: Arc<Rotary>,
    pub(crate) parameters: Parameters,
    pub(crate) layers: Vec<LayerWeights>,
    pub(crate) head: Matrix,
}

impl Weights {
    /// Makes `parameters` ready.
    pub fn new(config: &ModelConfig, parameters: Parameters) -> Self {
        let layout = Layout::new(config, &parameters);
        let rotary = Rotary::new(
            config.max_position_embeddings,
            config.rotary_dim(),
            config.rope_theta,
            config.rope_scaling,
        );
        Self::pack(config.clone(), Arc::new(layout), Arc::new(rotary), parameters)
    }

    /// Another version of the same decoder's weights.
    #[must_use]
    pub fn with_parameters(&self, parameters: Parameters) -> Self {
        Self::pack(self.config.clone(), self.layout.clone(), self.rotary.clone(), parameters)
    }

    fn pack(
        config: ModelConfig,
        layout: Arc<Layout>,
        rotary: Arc<Rotary>,
        parameters: Parameters,
    ) -> Self {
        let (d, f, q) = (config.hidden_size, config.intermediate_size, config.query_width());
        let data = &parameters.data;
        let layers = layout
            .layers
            .iter()
            .map(|layer| LayerWeights {
                qkv: Matrix::new(&data[layer.qkv.clone()], q + 2 * config.key_width(), d),
                output: Matrix::new(&data[layer.output.clone()], d, q),
                gate_up: Matrix::new(&data[layer.gate_up.clone()], 2 * f, d),
                down: Matrix::new(&data[layer.down.clone()], d, f),
            })
            .collect();
        let head = Matrix::new(&data[layout.head.clone()], config.vocab_size, d);
        Self { config, layout, rotary, parameters, layers, head }
    }

    /// The shape of the decoder.
    pub fn config(&self) -> &ModelConfig {
        &self.config
    }

    /// The weights in their flat buffer.
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }
}

/// Freshly drawn weights of a decoder: gains 1, smear 0, match biases on the first two heads,
/// matrices normal.
pub fn initial_parameters(config: &ModelConfig, seed: spar_core::Seed) -> Parameters {
    crate::layout::initialise(config, seed)
}
