//! Weights of a decoder with what is derived from them.

use std::sync::Arc;

use crate::layout::Layout;
use crate::ops::rotary::Rotary;
use crate::{ModelConfig, Parameters};

/// One version of a decoder's weights, ready for forward and backward; shared by reference.
#[derive(Debug, Clone)]
pub struct Weights {
    pub(crate) config: ModelConfig,
    pub(crate) layout: Arc<Layout>,
    pub(crate) rotary: Arc<Rotary>,
    pub(crate) parameters: Parameters,
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
        let (layout, rotary) = (Arc::new(layout), Arc::new(rotary));
        Self { config: config.clone(), layout, rotary, parameters }
    }

    /// Another version of the same decoder's weights.
    #[must_use]
    pub fn with_parameters(&self, parameters: Parameters) -> Self {
        let (layout, rotary) = (self.layout.clone(), self.rotary.clone());
        Self { config: self.config.clone(), layout, rotary, parameters }
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
