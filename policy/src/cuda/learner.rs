//! A decoder's weights where they are trained.

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::DeviceError;
use super::device::{Buffer, Kind};
use super::placement::Placement;
use crate::decoder::{HiddenStates, Tape};
use crate::head::DrawLoss;
use crate::lora::AdaptedMatrix;
use crate::{LoraModel, ParameterSpec, Parameters, SharedBuffer, Weights};
use spar_ops::elementwise::AdamWStep;

/// What is trained of a decoder on its device, its weights or the factors of an adapter: in f32, with their
/// gradient and AdamW's two means, and in the numbers that the decoder computes with.
///
/// Whoever holds [`DeviceLearner::weights`] computes with what they were when they were asked for: publishing
/// them copies nothing, since an update writes the next ones beside those that somebody holds. So there are
/// two of them on the device while rollouts and updates take turns or overlap, and one where nobody plays.
#[derive(Debug)]
pub struct DeviceLearner {
    placement: Arc<Placement>,
    specs: Arc<[ParameterSpec]>,
    current: Mutex<Current>,
    /// In f32; the current weights are the same in the decoder's numbers.
    master: Buffer,
    first: Buffer,
    second: Buffer,
    gradient: Buffer,
}

/// The weights as the last update left them, in the decoder's numbers.
#[derive(Debug)]
struct Current {
    weights: Arc<Weights>,
    /// Those that were held when the next ones were written; they are written over once nobody has them.
    spare: Option<Buffer>,
}

impl Current {
    fn live(&self) -> &Buffer {
        match &self.weights.live {
            Some(LiveWeights(Live::Whole(live))) => live,
            Some(LiveWeights(Live::Adapter(adapter))) => &adapter.factors,
            None => unreachable!("a learner's weights are on the device alone"),
        }
    }

    /// Where the next weights go: over the current ones where only the learner has them, else beside
    /// them.
    fn next(&mut self) -> Result<Buffer, DeviceError> {
        let live = self.live().clone();
        // This one and that of the weights.
        if Arc::strong_count(&self.weights) == 1 && live.num_holders() == 2 {
            return Ok(live);
        }
        match self.spare.take().filter(|spare| spare.num_holders() == 1) {
            Some(spare) => Ok(spare),
            None => live.alike(),
        }
    }

    /// Goes on with weights that have been written.
    fn go_on(&mut self, next: Buffer) {
        if next.address() == self.live().address() {
            return;
        }
        let live = match &self.weights.live {
            Some(LiveWeights(Live::Adapter(adapter))) => {
                Live::Adapter(DeviceAdapter { factors: next, ..adapter.clone() })
            }
            _ => Live::Whole(next),
        };
        self.spare = Some(self.live().clone());
        let parameters = self.weights.parameters.clone();
        self.weights = Arc::new(self.weights.with_live(parameters, LiveWeights(live)));
    }
}

/// Weights that are on a device alone, in the decoder's numbers; they stay as they are while somebody holds
/// them.
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
fn placement_of(weights: &Weights) -> Result<Arc<Placement>, DeviceError> {
    let detail = "the decoder is on the CPU".to_owned();
    weights.backend.clone().into_placement().ok_or(DeviceError::Unsupported { detail })
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
        Self::at(weights.with_live(shape, LiveWeights(Live::Whole(live))), parameters)
    }

    /// Starts at the factors of an adapter of `model`, whose weights are on a device and stay as they
    /// are.
    ///
    /// # Errors
    ///
    /// As [`DeviceLearner::new`].
    pub fn of_adapter(model: &LoraModel, factors: &Parameters) -> Result<Self, DeviceError> {
        Self::at(model.with_factors(factors)?, factors)
    }

    fn at(weights: Weights, trained: &Parameters) -> Result<Self, DeviceError> {
        let placement = placement_of(&weights)?;
        let (device, len) = (placement.device(), trained.data.len());
        Ok(Self {
            master: device.upload_f32(&trained.data)?,
            first: device.zeros(Kind::F32, len)?,
            second: device.zeros(Kind::F32, len)?,
            gradient: device.zeros(Kind::F32, len)?,
            specs: trained.specs.clone(),
            current: Mutex::new(Current { weights: Arc::new(weights), spare: None }),
            placement,
        })
    }

    /// What is trained, and where it lies.
    pub fn specs(&self) -> &Arc<[ParameterSpec]> {
        &self.specs
    }

    fn current(&self) -> MutexGuard<'_, Current> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The decoder at the weights as they are now, whatever comes after.
    pub fn weights(&self) -> Arc<Weights> {
        self.current().weights.clone()
    }

    pub(super) fn placement(&self) -> &Placement {
        &self.placement
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
    /// [`DeviceLearner::weights`] since the last update.
    ///
    /// # Errors
    ///
    /// When the device fails.
    pub fn learn(
        &self,
        tape: &Tape,
        hidden: &HiddenStates,
        loss: &DrawLoss<'_>,
    ) -> Result<(), DeviceError> {
        self.placement().learn_into(&self.weights(), tape, hidden, loss, &self.gradient)
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
        let mut current = self.current();
        // Nobody reads weights of which only some have been updated.
        let _turn = placement.take_turn();
        let next = current.next()?;
        let updated: usize = parts.iter().map(|(range, _)| range.len()).sum();
        if updated < next.len() && next.address() != current.live().address() {
            next.copy_from(current.live())?;
        }
        for (range, step) in parts {
            let of = |buffer: &Buffer| buffer.slice(range.clone());
            let (weights, means) =
                ((&of(&self.master), &of(&next)), (&of(&self.first), &of(&self.second)));
            placement.device().adamw(weights, means, &of(&self.gradient), step, scale)?;
        }
        current.go_on(next);
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
        let mut current = self.current();
        let _turn = self.placement().take_turn();
        let next = current.next()?;
        self.master.write(weights)?;
        next.write(weights)?;
        self.first.write(means[0])?;
        self.second.write(means[1])?;
        current.go_on(next);
        Ok(())
    }
}
