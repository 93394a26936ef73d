//! A device as a backend: callers have their numbers on the host.

use std::sync::Arc;

use spar_ops::page::PageShape;

use super::backward::Target;
use super::device::{Buffer, Kind};
use super::placement::Placement;
use super::{DeviceError, Drawing, Found, Wanted, backward, forward, head};
use crate::backend::Backend;
use crate::decoder::batch::Batch;
use crate::decoder::hidden_states::Place;
use crate::decoder::{CachePage, HiddenStates, Segment, Tape};
use crate::head::{Draw, DrawLoss, DrawStatistics};
use crate::weight_gradient::WeightGradient;
use crate::{LoraModel, Parameters, Weights};

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
            let dhidden = match loss.dstates_td {
                Some(dstates_td) => self.device().upload_f32(dstates_td)?,
                None => self.device().zeros(Kind::F32, hidden.len())?,
            };
            let target = Target::new(self.device(), weights, gradient)?;
            head::judge_backward(weights, self, hidden, loss, &dhidden, target.whole())?;
            self.differentiate(weights, tape, &dhidden, &target)
        })
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

    /// Adds what `work` sums up on the device to a gradient of the host.
    fn add_sums(
        &self,
        gradient: &mut WeightGradient<'_>,
        work: impl FnOnce(&Buffer) -> Result<(), DeviceError>,
    ) -> Result<(), DeviceError> {
        let gradient = match gradient {
            WeightGradient::Full(gradient) => &mut **gradient,
            WeightGradient::Adapter(adapter) => &mut *adapter.gradient,
        };
        let sums = self.device().zeros(Kind::F32, gradient.len())?;
        work(&sums)?;
        for (sum, part) in gradient.iter_mut().zip(sums.read()?) {
            *sum += part;
        }
        Ok(())
    }
}

impl Backend for Placement {
    fn placement(&self) -> Option<&Placement> {
        Some(self)
    }

    fn into_placement(self: Arc<Self>) -> Option<Arc<Placement>> {
        Some(self)
    }

    fn new_page(&self, shape: PageShape) -> Result<CachePage, DeviceError> {
        Ok(CachePage::on_device(shape, Self::new_page(self)?))
    }

    fn forward(
        &self,
        weights: &Weights,
        segments: &mut [Segment<'_>],
        mut kept: Option<&mut Tape>,
    ) -> Result<HiddenStates, DeviceError> {
        let _turn = self.take_turn();
        let batch = Batch::new(weights, segments)?;
        if let Some(tape) = kept.as_deref_mut() {
            tape.choose(weights, batch.tokens.len());
        }
        let recomputes = kept.as_ref().is_some_and(|tape| tape.recomputes);
        let (hidden, tape) = forward::forward(weights, self, &batch, kept.is_some(), recomputes)?;
        batch.close(segments);
        if let Some(kept) = kept {
            kept.device = tape;
            kept.batch = Some(batch);
        }
        Ok(HiddenStates(Place::Device(DeviceStates(hidden))))
    }

    fn backward(
        &self,
        weights: &Weights,
        tape: &Tape,
        dhidden_td: &[f32],
        gradient: &mut WeightGradient<'_>,
    ) -> Result<(), DeviceError> {
        self.add_sums(gradient, |sums| {
            let dhidden = self.device().upload_f32(dhidden_td)?;
            let target = Target::new(self.device(), weights, sums)?;
            self.differentiate(weights, tape, &dhidden, &target)
        })
    }

    fn logits(
        &self,
        weights: &Weights,
        hidden_rd: &[f32],
        out_rv: &mut Vec<f32>,
    ) -> Result<(), DeviceError> {
        out_rv.clear();
        if !hidden_rd.is_empty() {
            *out_rv = head::logits(weights, self, &self.states(hidden_rd)?.0)?.read()?;
        }
        Ok(())
    }

    fn logits_of(
        &self,
        weights: &Weights,
        hidden: &[f32],
        tokens: &[u32],
        out: &mut Vec<f32>,
    ) -> Result<(), DeviceError> {
        let mut all = Vec::new();
        self.logits(weights, hidden, &mut all)?;
        out.clear();
        out.extend(tokens.iter().map(|token| all[*token as usize]));
        Ok(())
    }

    /// One step of the device's graphs.
    fn best(
        &self,
        weights: &Weights,
        segments: &mut [Segment<'_>],
    ) -> Result<Vec<(u32, f32)>, DeviceError> {
        let wanted = vec![Wanted::Draw(Drawing::BEST); segments.len()];
        let found = self.step(weights, segments, &wanted)?;
        let drawn = found.iter().map(|found| match found {
            Found::Drawn(drawn) => (drawn.token, drawn.logprob),
            other => unreachable!("a draw was wanted: {other:?}"),
        });
        Ok(drawn.collect())
    }

    fn judge(
        &self,
        weights: &Weights,
        hidden_td: &[f32],
        draws: &[Draw<'_>],
        temperature: f32,
    ) -> Result<Vec<DrawStatistics>, DeviceError> {
        head::judge(weights, self, &self.states(hidden_td)?.0, draws, temperature)
    }

    fn judge_states(
        &self,
        weights: &Weights,
        hidden: &HiddenStates,
        draws: &[Draw<'_>],
        temperature: f32,
    ) -> Result<Vec<DrawStatistics>, DeviceError> {
        self.with_states(hidden, |DeviceStates(hidden)| {
            head::judge(weights, self, hidden, draws, temperature)
        })
    }

    /// All of it is computed on the device and comes back once.
    fn learn(
        &self,
        weights: &Weights,
        tape: &Tape,
        hidden: &HiddenStates,
        loss: &DrawLoss<'_>,
        gradient: &mut WeightGradient<'_>,
    ) -> Result<(), DeviceError> {
        self.add_sums(gradient, |sums| self.learn_into(weights, tape, hidden, loss, sums))
    }

    fn adapted(
        &self,
        adapter: &LoraModel,
        factors: &Parameters,
    ) -> Result<Arc<Weights>, DeviceError> {
        adapter.with_factors(factors).map(Arc::new)
    }
}
