//! A decoder's weights where they are trained.

use std::ops::Range;
use std::sync::Arc;

use super::DeviceError;
use super::device::{Buffer, Kind};
use super::placement::Placement;
use crate::decoder::Tape;
use crate::head::DrawLoss;
use crate::lora::AdaptedMatrix;
use crate::{LoraModel, ParameterSpec, Parameters, SharedBuffer, Weights};
use spar_ops::elementwise::AdamWStep;

/// What is trained of a decoder on its device, its weights or the factors of an adapter: in f32, with their gradient and AdamW's
/// two means, and in the numbers that the decoder computes with.
///
/// Whoever holds [`DeviceLearner::weights`] computes with what the last update left: publishing them
/// copies nothing. Of an update, nothing crosses to the host but hidden states and what is told of
/// draws.
#[derive(Debug)]
pub struct DeviceLearner {
    weights: Arc<Weights>,
    specs: Arc<[ParameterSpec]>,
    /// In f32; `live` has the same in the decoder's numbers.
    master: Buffer,
    live: Buffer,
    first: Buffer,
    second: Buffer,
    gradient: Buffer,
}

/// Weights that are on a device alone, in the decoder's numbers; updates change them in place.
#[derive(Debug, Clone)]
pub(crate) struct LiveWeights(pub(super) Live);

#[derive(Debug, Clone)]
pub(super) enum Live {
    /// All of them.
    Whole(Buffer),
    /// The factors of an adapter; the weights below it are the host's.
    Adapter(DeviceAdapter),
}

/// The factors of an adapter in its layout.
#[derive(Debug, Clone)]
pub(super) struct DeviceAdapter {
    pub(super) matrices: Arc<[AdaptedMatrix]>,
    pub(super) rank: usize,
    pub(super) scale: f32,
    pub(super) factors: Buffer,
}

impl DeviceAdapter {
    /// `A` and `B` of a matrix.
    pub(super) fn factors_of(&self, matrix: &AdaptedMatrix) -> (Buffer, Buffer) {
        let part = |range: &Range<usize>| self.factors.slice(range.clone());
        (part(&matrix.a), part(&matrix.b))
    }

    /// The adapted matrices among those that lie in `range` one below the other, with the first of
    /// their outputs.
    pub(super) fn inside(
        &self,
        range: &Range<usize>,
    ) -> impl Iterator<Item = (&AdaptedMatrix, usize)> {
        let range = range.clone();
        let inside = move |matrix: &&AdaptedMatrix| {
            range.start <= matrix.weight.start && matrix.weight.end <= range.end
        };
        let start = range.start;
        let first = move |matrix: &AdaptedMatrix| (matrix.weight.start - start) / matrix.inputs;
        self.matrices.iter().filter(inside).map(move |matrix| (matrix, first(matrix)))
    }
}

/// The placement of a decoder that has to be on a device.
fn placement_of(weights: &Weights) -> Result<&Placement, DeviceError> {
    let detail = "the decoder is on the CPU".to_owned();
    weights.placement.as_deref().ok_or(DeviceError::Unsupported { detail })
}

impl Weights {
    /// The decoder on its device with an adapter of which `factors` are the numbers.
    pub(crate) fn with_adapter(
        &self,
        matrices: &Arc<[AdaptedMatrix]>,
        (rank, scale): (usize, f32),
        factors: &[f32],
    ) -> Result<Self, DeviceError> {
        let placement = placement_of(self)?;
        let factors = placement.device().upload_numbers(placement.number(), factors)?;
        let adapter = DeviceAdapter { matrices: matrices.clone(), rank, scale, factors };
        Ok(self.with_live(self.parameters.clone(), LiveWeights(Live::Adapter(adapter))))
    }
}

impl DeviceLearner {
    /// Starts at `parameters`, which are those of the decoder `weights`, on its device.
    ///
    /// # Errors
    ///
    /// When the decoder is on the CPU, or the device has no room.
    pub fn new(weights: &Weights, parameters: &Parameters) -> Result<Self, DeviceError> {
        let placement = placement_of(weights)?;
        let live = placement.device().upload_numbers(placement.number(), &parameters.data)?;
        let shape = Parameters { specs: parameters.specs.clone(), data: SharedBuffer::default() };
        let of_learner = LiveWeights(Live::Whole(live.clone()));
        let weights = weights.with_live(shape, of_learner);
        Self::at(weights, live, parameters)
    }

    /// Starts at the factors of an adapter of `model`, whose weights are on a device and stay as they
    /// are.
    ///
    /// # Errors
    ///
    /// As [`DeviceLearner::new`].
    pub fn of_adapter(model: &LoraModel, factors: &Parameters) -> Result<Self, DeviceError> {
        let weights = model.with_factors(factors)?;
        let Some(LiveWeights(Live::Adapter(adapter))) = &weights.live else {
            unreachable!("a decoder on a device has its adapter there")
        };
        let live = adapter.factors.clone();
        Self::at(weights, live, factors)
    }

    fn at(weights: Weights, live: Buffer, trained: &Parameters) -> Result<Self, DeviceError> {
        let (device, len) = (placement_of(&weights)?.device(), trained.data.len());
        Ok(Self {
            master: device.upload_f32(&trained.data)?,
            first: device.zeros(Kind::F32, len)?,
            second: device.zeros(Kind::F32, len)?,
            gradient: device.zeros(Kind::F32, len)?,
            live,
            specs: trained.specs.clone(),
            weights: Arc::new(weights),
        })
    }

    /// What is trained, and where it lies.
    pub fn specs(&self) -> &Arc<[ParameterSpec]> {
        &self.specs
    }

    /// The decoder at the weights as they are and will be.
    pub fn weights(&self) -> &Arc<Weights> {
        &self.weights
    }

    pub(super) fn placement(&self) -> &Placement {
        self.weights.placement.as_ref().expect("a learner's decoder is on a device")
    }

    pub(super) fn gradient(&self) -> &Buffer {
        &self.gradient
    }

    /// Begins a gradient anew.
    ///
    /// # Errors
    ///
    /// When the device fails.
    pub fn clear_gradient(&self) -> Result<(), DeviceError> {
        self.gradient.clear()
    }

    /// As [`crate::head::learn`], into this gradient; the tape is of a forward by
    /// [`DeviceLearner::weights`].
    ///
    /// # Errors
    ///
    /// When the device fails.
    pub fn learn(
        &self,
        tape: &Tape,
        hidden_td: &[f32],
        loss: &DrawLoss<'_>,
    ) -> Result<(), DeviceError> {
        self.placement().learn_into(&self.weights, tape, hidden_td, loss, &self.gradient)
    }

    /// The Euclidean length of the gradient.
    ///
    /// # Errors
    ///
    /// When the device fails.
    pub fn gradient_norm(&self) -> Result<f64, DeviceError> {
        let squares = self.placement().device().square_sums(&self.gradient)?.read()?;
        Ok(squares.iter().map(|sum| f64::from(*sum)).sum::<f64>().sqrt())
    }

    /// One update of AdamW, part by part; the gradient is multiplied by `scale` first.
    ///
    /// # Errors
    ///
    /// When the device fails; the weights are not to be used any more.
    ///
    /// # Panics
    ///
    /// When a part is outside the weights.
    pub fn step(&self, parts: &[(Range<usize>, AdamWStep)], scale: f32) -> Result<(), DeviceError> {
        let placement = self.placement();
        // Nobody reads weights of which only some have been updated.
        let _turn = placement.take_turn();
        for (range, step) in parts {
            let of = |buffer: &Buffer| buffer.slice(range.clone());
            let (weights, means) =
                ((&of(&self.master), &of(&self.live)), (&of(&self.first), &of(&self.second)));
            placement.device().adamw(weights, means, &of(&self.gradient), step, scale)?;
        }
        Ok(())
    }

    /// The weights in f32 as they are now.
    ///
    /// # Errors
    ///
    /// When the device fails.
    pub fn parameters(&self) -> Result<Parameters, DeviceError> {
        Ok(Parameters { specs: self.specs.clone(), data: self.master.read()?.into() })
    }

    /// AdamW's means of gradients and of their squares.
    ///
    /// # Errors
    ///
    /// When the device fails.
    pub fn means(&self) -> Result<[Vec<f32>; 2], DeviceError> {
        Ok([self.first.read()?, self.second.read()?])
    }

    /// Goes on from other weights and means.
    ///
    /// # Errors
    ///
    /// When the device fails; the weights are not to be used any more.
    ///
    /// # Panics
    ///
    /// When they are of another layout.
    pub fn load(&self, weights: &[f32], means: [&[f32]; 2]) -> Result<(), DeviceError> {
        let _turn = self.placement().take_turn();
        self.master.write(weights)?;
        self.live.write(weights)?;
        self.first.write(means[0])?;
        self.second.write(means[1])
    }
}
