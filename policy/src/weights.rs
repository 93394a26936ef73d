//! Weights of a decoder with what is derived from them.

use std::sync::Arc;

use crate::cuda::{Device, DeviceError, Number, Placement};
use crate::decoder::page_shape;
use crate::layout::Layout;
use crate::ops::page::Page;
use crate::ops::rotary::Rotary;
use crate::{ModelConfig, Parameters};

/// One version of a decoder's weights, ready for forward and backward; shared by reference.
#[derive(Debug, Clone)]
pub struct Weights {
    pub(crate) config: ModelConfig,
    pub(crate) layout: Arc<Layout>,
    pub(crate) rotary: Arc<Rotary>,
    pub(crate) parameters: Parameters,
    /// Where the decoder is, if not on the CPU.
    pub(crate) placement: Option<Arc<Placement>>,
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
        Self { config: config.clone(), layout, rotary, parameters, placement: None }
    }

    /// Another version of the same decoder's weights.
    #[must_use]
    pub fn with_parameters(&self, parameters: Parameters) -> Self {
        Self { parameters, ..self.clone() }
    }

    /// The same decoder on a device, with its weights and what it computes as `number`; they go there
    /// when they are first used.
    ///
    /// # Errors
    ///
    /// [`DeviceError::Unsupported`] when the kernels do not cover the decoder's shape.
    pub fn on_device(&self, device: &Device, number: Number) -> Result<Self, DeviceError> {
        let placement = Placement::new(device, number, &self.config, &self.rotary)?;
        Ok(Self { placement: Some(Arc::new(placement)), ..self.clone() })
    }

    /// The device that the decoder is on; absent for the CPU.
    pub fn device(&self) -> Option<&Device> {
        self.placement.as_ref().map(|placement| placement.device())
    }

    /// A page for keys and values, where the decoder is.
    pub(crate) fn new_page(&self) -> Result<Page, DeviceError> {
        let shape = page_shape(self);
        match &self.placement {
            None => Ok(Page::new(shape)),
            Some(placement) => Ok(Page::on_device(shape, placement.new_page()?)),
        }
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
