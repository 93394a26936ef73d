//! Weights of a decoder with what is derived from them.

use std::ops::Range;
use std::sync::Arc;

use crate::adapter::Adapter;
use crate::backend::{Backend, Cpu};
use crate::cuda::{Device, DeviceError, LiveWeights, Number, Placement};
use crate::decoder::{CachePage, page_shape};
use crate::layout::{LayerLayout, Layout};
use crate::{HalfParameters, HalfType, ModelConfig, Parameters, SharedBuffer};
use spar_ops::Matrix;
use spar_ops::matmul::{Order, Weight, reorder};
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
    /// How the matrices of products lie; by rows on a device.
    order: Order,
    /// Where the decoder computes.
    pub(crate) backend: Arc<dyn Backend>,
    /// The weights themselves where they are on a device alone; `parameters` then has no numbers.
    pub(crate) live: Option<LiveWeights>,
    /// What stands beside them on the CPU.
    pub(crate) adapter: Option<Arc<Adapter>>,
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
        let (halves, order) = (None, Order::Rows);
        let backend = Arc::new(Cpu);
        let (live, adapter) = (None, None);
        Self { config, layout, rotary, parameters, halves, order, backend, live, adapter }
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
        let (halves, live, adapter) = (None, None, None);
        Self { parameters, halves, order: Order::Rows, live, adapter, ..self.clone() }
    }

    /// The same weights with an adapter beside them, on the CPU.
    pub(crate) fn beside(&self, adapter: Arc<Adapter>) -> Self {
        Self { adapter: Some(adapter), ..self.clone() }
    }

    /// The adapter that stands beside them on the CPU, if one does; [`Weights::parameters`] has nothing of it.
    pub fn adapter(&self) -> Option<&Arc<Adapter>> {
        self.adapter.as_ref()
    }

    /// Another version of the same decoder's weights, in half precision; on a device, which keeps
    /// weights in its own way, they are widened before they go there.
    ///
    /// On the CPU, what is computed equals what the same numbers in single precision give, to the bit.
    #[must_use]
    pub fn with_halves(&self, halves: HalfParameters) -> Self {
        if self.device().is_some() {
            return self.with_parameters(halves.widened());
        }
        let data = SharedBuffer::default();
        let parameters = Parameters { specs: halves.specs().clone(), data };
        let halves = Some(Arc::new(halves));
        let (live, adapter) = (None, None);
        Self { parameters, halves, order: Order::Rows, live, adapter, ..self.clone() }
    }

    /// Another version of the same decoder's weights, kept as the other ones are; on a device as that
    /// keeps them.
    #[must_use]
    pub fn with_weights_of(&self, other: &Self) -> Self {
        let (parameters, halves, order) = match self.device() {
            None => (other.parameters.clone(), other.halves.clone(), other.order),
            Some(_) => (other.to_parameters(), None, Order::Rows),
        };
        let adapter = other.adapter.clone();
        Self { parameters, halves, order, live: None, adapter, ..self.clone() }
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
        let (order, backend) = (Order::Rows, Arc::new(placement));
        Ok(Self { parameters, halves: None, order, backend, ..self.clone() })
    }

    /// The same weights for generation on the CPU, whose products of few rows then read them from the first
    /// number to the last: the same bits in less time, and nothing can be differentiated. On a device, and
    /// where they lie so, nothing is done. Takes memory for a copy where somebody else has the weights.
    #[must_use]
    pub fn for_generation(self: Arc<Self>) -> Arc<Self> {
        if self.device().is_some() || self.order == Order::Panels {
            return self;
        }
        let mut weights = Arc::unwrap_or_clone(self);
        weights.order = Order::Panels;
        let products = weights.products();
        let (from, to) = (Order::Rows, Order::Panels);
        match &mut weights.halves {
            None => reorder_all(&mut weights.parameters.data, &products, from, to),
            Some(halves) => reorder_all(Arc::make_mut(halves).bits_mut(), &products, from, to),
        }
        Arc::new(weights)
    }

    /// The matrices that inputs are multiplied by, with the number of their outputs.
    fn products(&self) -> Vec<(Range<usize>, usize)> {
        let (config, layout) = (&self.config, &self.layout);
        let (d, f) = (config.hidden_size, config.intermediate_size);
        let w = config.query_width() + 2 * config.key_width();
        let of_layers = layout.layers.iter().flat_map(|layer| {
            let LayerLayout { qkv, output, gate_up, down, .. } = layer;
            [(qkv, w), (output, d), (gate_up, 2 * f), (down, d)]
        });
        let all = of_layers.chain([(&layout.head, config.vocab_size)]);
        all.map(|(range, outputs)| (range.clone(), outputs)).collect()
    }

    /// The device that the decoder is on; absent for the CPU.
    pub fn device(&self) -> Option<&Device> {
        self.backend.placement().map(Placement::device)
    }

    /// The numbers that it computes with there.
    pub fn device_number(&self) -> Option<Number> {
        self.backend.placement().map(Placement::number)
    }

    /// A page for keys and values, where the decoder is.
    pub(crate) fn new_page(&self) -> Result<CachePage, DeviceError> {
        self.backend.new_page(page_shape(self))
    }

    /// The shape of the decoder.
    pub fn config(&self) -> &ModelConfig {
        &self.config
    }

    /// The weights in their flat buffer, which is empty where they are kept in half precision or
    /// trained on a device ([`crate::cuda::DeviceLearner::weights`]), and in another order where they are
    /// [for generation](Weights::for_generation).
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// The weights in single precision; costs nothing where they are kept so.
    pub fn to_parameters(&self) -> Parameters {
        let mut parameters = match &self.halves {
            None => self.parameters.clone(),
            Some(halves) => halves.widened(),
        };
        if self.order != Order::Rows {
            reorder_all(&mut parameters.data, &self.products(), self.order, Order::Rows);
        }
        parameters
    }

    /// The matrices in a range of the layout, row by row.
    ///
    /// # Panics
    ///
    /// When the weights are for generation alone.
    pub(crate) fn matrix(&self, range: &Range<usize>) -> Matrix<'_> {
        assert_eq!(self.order, Order::Rows, "weights for generation are not differentiated");
        self.numbers(range)
    }

    fn numbers(&self, range: &Range<usize>) -> Matrix<'_> {
        match &self.halves {
            None => Matrix::F32(&self.parameters.data[range.clone()]),
            Some(halves) => halves.matrix(range),
        }
    }

    /// The matrices in a range of the layout that inputs are multiplied by, or a part of them that begins
    /// at a multiple of 16 rows.
    pub(crate) fn weight(&self, range: &Range<usize>) -> Weight<'_> {
        Weight { numbers: self.numbers(range), order: self.order }
    }

    /// The embeddings of tokens.
    pub(crate) fn embedding(&self) -> Weight<'_> {
        let layout = &self.layout;
        let order = if layout.embedding == layout.head { self.order } else { Order::Rows };
        Weight { numbers: self.numbers(&layout.embedding), order }
    }

    /// The vectors in a range of the layout that lie side by side.
    pub(crate) fn vector(&self, range: &Range<usize>) -> &[f32] {
        match &self.halves {
            None => &self.parameters.data[range.clone()],
            Some(halves) => halves.vector(range),
        }
    }
}

/// Brings matrices that lie in one order into the other.
fn reorder_all<T: Copy + Send + Sync>(
    data: &mut [T],
    products: &[(Range<usize>, usize)],
    from: Order,
    to: Order,
) {
    for (range, outputs) in products {
        reorder(&mut data[range.clone()], *outputs, from, to);
    }
}

/// Freshly drawn weights of a decoder: gains 1, the tokens before mixed in by halves, match biases
/// on the first two heads, matrices normal.
pub fn initial_parameters(config: &ModelConfig, seed: spar_core::Seed) -> Parameters {
    crate::layout::initialise(config, seed)
}
