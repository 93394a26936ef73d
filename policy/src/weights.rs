//! Weights of a decoder with what is derived from them.

use std::ops::Range;
use std::sync::Arc;

use crate::cuda::{Device, DeviceError, LiveWeights, Number, Placement};
use crate::decoder::{CachePage, page_shape};
use crate::layout::Layout;
use crate::{HalfParameters, HalfType, ModelConfig, Parameters, SharedBuffer};
use spar_ops::Matrix;
use spar_ops::rotary::Rotary;

/// One version of a decoder's weights, ready for forward and backward; shared by reference.
#[derive(Debug, Clone)]
pub struct Weights {
    pub(crate) config: ModelConfig,
    pub(crate) layout: Arc<Layout>,
    pub(crate) rotary: Arc<Rotary>,
    /// Their layout alone where the weights are `halves`.
    pub(crate) parameters: Parameters,
    /// The weights, where they are kept in half precision; never on a device.
    halves: Option<Arc<HalfParameters>>,
    /// Where the decoder is, if not on the CPU.
    pub(crate) placement: Option<Arc<Placement>>,
    /// The weights themselves where they are on a device alone; `parameters` then has no numbers.
    pub(crate) live: Option<LiveWeights>,
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
        let config = config.clone();
        Self { config, layout, rotary, parameters, halves: None, placement: None, live: None }
    }

    /// Makes weights in half precision ready.
    pub fn of_halves(config: &ModelConfig, halves: HalfParameters) -> Self {
        let data = SharedBuffer::default();
        let layout = Parameters { specs: halves.specs().clone(), data };
        Self::new(config, layout).with_halves(halves)
    }

    /// Another version of the same decoder's weights.
    #[must_use]
    pub fn with_parameters(&self, parameters: Parameters) -> Self {
        Self { parameters, halves: None, live: None, ..self.clone() }
    }

    /// Another version of the same decoder's weights, in half precision; on a device, which keeps
    /// weights in its own way, they are widened before they go there.
    ///
    /// On the CPU, what is computed equals what the same numbers in single precision give, to the bit.
    #[must_use]
    pub fn with_halves(&self, halves: HalfParameters) -> Self {
        if self.placement.is_some() {
            return self.with_parameters(halves.widened());
        }
        let data = SharedBuffer::default();
        let parameters = Parameters { specs: halves.specs().clone(), data };
        Self { parameters, halves: Some(Arc::new(halves)), live: None, ..self.clone() }
    }

    /// Another version of the same decoder's weights, kept as the other ones are; on a device as that
    /// keeps them.
    #[must_use]
    pub fn with_weights_of(&self, other: &Self) -> Self {
        let (parameters, halves) = match &self.placement {
            None => (other.parameters.clone(), other.halves.clone()),
            Some(_) => (other.to_parameters(), None),
        };
        Self { parameters, halves, live: None, ..self.clone() }
    }

    /// The decoder on its device with weights that are there alone, beside `parameters` or in place of
    /// their numbers.
    pub(crate) fn with_live(&self, parameters: Parameters, live: LiveWeights) -> Self {
        Self { live: Some(live), ..self.with_parameters(parameters) }
    }

    /// The type of half precision that the weights are kept in, if they are.
    pub fn half_type(&self) -> Option<HalfType> {
        self.halves.as_ref().map(|halves| halves.half_type())
    }

    /// Bytes that the weights take in the machine's memory.
    pub fn bytes(&self) -> usize {
        match &self.halves {
            None => size_of_val(&self.parameters.data[..]),
            Some(halves) => halves.bytes(),
        }
    }

    /// The same decoder on a device, with its weights and what it computes as `number`; they go there
    /// when they are first used.
    ///
    /// # Errors
    ///
    /// [`DeviceError::Unsupported`] when the kernels do not cover the decoder's shape.
    pub fn on_device(&self, device: &Device, number: Number) -> Result<Self, DeviceError> {
        let placement = Placement::new(device, number, &self.config, &self.rotary)?;
        let parameters = self.to_parameters();
        Ok(Self { parameters, halves: None, placement: Some(Arc::new(placement)), ..self.clone() })
    }

    /// The device that the decoder is on; absent for the CPU.
    pub fn device(&self) -> Option<&Device> {
        self.placement.as_ref().map(|placement| placement.device())
    }

    /// The numbers that it computes with there.
    pub fn device_number(&self) -> Option<Number> {
        self.placement.as_ref().map(|placement| placement.number())
    }

    /// A page for keys and values, where the decoder is.
    pub(crate) fn new_page(&self) -> Result<CachePage, DeviceError> {
        let shape = page_shape(self);
        match &self.placement {
            None => Ok(CachePage::new(shape)),
            Some(placement) => Ok(CachePage::on_device(shape, placement.new_page()?)),
        }
    }

    /// The shape of the decoder.
    pub fn config(&self) -> &ModelConfig {
        &self.config
    }

    /// The weights in their flat buffer, which is empty where they are kept in half precision or
    /// trained on a device ([`crate::cuda::DeviceLearner::weights`]).
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// The weights in single precision; costs nothing where they are kept so.
    pub fn to_parameters(&self) -> Parameters {
        match &self.halves {
            None => self.parameters.clone(),
            Some(halves) => halves.widened(),
        }
    }

    /// The matrices in a range of the layout.
    pub(crate) fn matrix(&self, range: &Range<usize>) -> Matrix<'_> {
        match &self.halves {
            None => Matrix::F32(&self.parameters.data[range.clone()]),
            Some(halves) => halves.matrix(range),
        }
    }

    /// The vectors in a range of the layout that lie side by side.
    pub(crate) fn vector(&self, range: &Range<usize>) -> &[f32] {
        match &self.halves {
            None => &self.parameters.data[range.clone()],
            Some(halves) => halves.vector(range),
        }
    }
}

/// Freshly drawn weights of a decoder: gains 1, smear 0, match biases on the first two heads,
/// matrices normal.
pub fn initial_parameters(config: &ModelConfig, seed: spar_core::Seed) -> Parameters {
    crate::layout::initialise(config, seed)
}
