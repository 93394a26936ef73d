//! The decoder on a device for callers whose numbers are the host's.

use super::backward::Target;
use super::device::{Buffer, Kind};
use super::placement::Placement;
use super::{DeviceError, backward, forward, head};
use crate::Weights;
use crate::decoder::hidden_states::Place;
use crate::decoder::{HiddenStates, Tape};
use crate::head::{Draw, DrawLoss, DrawStatistics};
use crate::weight_gradient::WeightGradient;

/// Final hidden states on the device that computed them, in its numbers.
#[derive(Debug)]
pub(crate) struct DeviceStates(pub(super) Buffer);

impl DeviceStates {
    /// Brings them to the host.
    pub(crate) fn read(&self) -> Result<Vec<f32>, DeviceError> {
        self.0.read()
    }
}

impl Placement {
    /// States that the host has, as the device's numbers.
    pub(crate) fn states(&self, hidden_td: &[f32]) -> Result<DeviceStates, DeviceError> {
        self.device().upload_numbers(self.number(), hidden_td).map(DeviceStates)
    }

    /// States wherever they are, on this device.
    pub(crate) fn with_states<R>(
        &self,
        hidden: &HiddenStates,
        work: impl FnOnce(&DeviceStates) -> Result<R, DeviceError>,
    ) -> Result<R, DeviceError> {
        match &hidden.0 {
            Place::Host(hidden_td) => work(&self.states(hidden_td)?),
            Place::Device(states) => work(states),
        }
    }

    /// As [`crate::head::judge`].
    pub(crate) fn judge(
        &self,
        weights: &Weights,
        hidden: &DeviceStates,
        draws: &[Draw<'_>],
        temperature: f32,
    ) -> Result<Vec<DrawStatistics>, DeviceError> {
        head::judge(weights, self, &hidden.0, draws, temperature)
    }

    /// As [`crate::head::batch_logits`].
    pub(crate) fn logits(
        &self,
        weights: &Weights,
        hidden_rd: &[f32],
    ) -> Result<Vec<f32>, DeviceError> {
        if hidden_rd.is_empty() {
            return Ok(Vec::new());
        }
        head::logits(weights, self, &self.states(hidden_rd)?.0)?.read()
    }

    /// As [`crate::head::learn`]; all of it is computed on the device and comes back once.
    pub(crate) fn learn(
        &self,
        weights: &Weights,
        tape: &Tape,
        hidden: &HiddenStates,
        loss: &DrawLoss<'_>,
        gradient: &mut WeightGradient<'_>,
    ) -> Result<(), DeviceError> {
        let gradient = match gradient {
            WeightGradient::Full(gradient) => &mut **gradient,
            WeightGradient::Adapter(adapter) => &mut *adapter.gradient,
        };
        let sums = self.device().zeros(Kind::F32, gradient.len())?;
        self.learn_into(weights, tape, hidden, loss, &sums)?;
        for (sum, part) in gradient.iter_mut().zip(sums.read()?) {
            *sum += part;
        }
        Ok(())
    }

    /// The same for a gradient on the device.
    pub(super) fn learn_into(
        &self,
        weights: &Weights,
        tape: &Tape,
        hidden: &HiddenStates,
        loss: &DrawLoss<'_>,
        gradient: &Buffer,
    ) -> Result<(), DeviceError> {
        self.with_states(hidden, |DeviceStates(hidden)| {
            let dhidden = self.device().zeros(Kind::F32, hidden.len())?;
            let target = Target::new(self.device(), weights, gradient)?;
            head::judge_backward(weights, self, hidden, loss, &dhidden, target.whole())?;
            self.differentiate(weights, tape, &dhidden, &target)
        })
    }

    /// As [`crate::decoder::backward`].
    pub(crate) fn backward(
        &self,
        weights: &Weights,
        tape: &Tape,
        dhidden_td: &[f32],
        gradient: &mut [f32],
    ) -> Result<(), DeviceError> {
        let device = self.device();
        let sums = device.zeros(Kind::F32, gradient.len())?;
        let dhidden = device.upload_f32(dhidden_td)?;
        let target = Target::new(device, weights, &sums)?;
        self.differentiate(weights, tape, &dhidden, &target)?;
        for (sum, part) in gradient.iter_mut().zip(sums.read()?) {
            *sum += part;
        }
        Ok(())
    }

    fn differentiate(
        &self,
        weights: &Weights,
        tape: &Tape,
        dhidden: &Buffer,
        gradient: &Target<'_>,
    ) -> Result<(), DeviceError> {
        let batch = tape.batch.as_ref().expect("a forward has been kept on the tape");
        assert!(batch.is_whole(), "a sequence is differentiated from its first token on");
        let device_tape = tape.device.as_ref().expect("the forward was on the device");
        let of_products = self.device().allocate(Kind::Number(self.number()), dhidden.len())?;
        self.device().convert(dhidden, &of_products)?;
        let _turn = self.take_turn();
        backward::backward(weights, self, batch, device_tape, &of_products, gradient)
    }

    /// As [`crate::decoder::forward`]; the batch is closed by the caller, who has the turn.
    pub(crate) fn forward(
        &self,
        weights: &Weights,
        batch: &crate::decoder::batch::Batch,
        kept: Option<&mut Tape>,
    ) -> Result<DeviceStates, DeviceError> {
        let recomputes = kept.as_ref().is_some_and(|tape| tape.recomputes);
        let (hidden, tape) = forward::forward(weights, self, batch, kept.is_some(), recomputes)?;
        if let Some(kept) = kept {
            kept.device = tape;
        }
        Ok(DeviceStates(hidden))
    }
}
