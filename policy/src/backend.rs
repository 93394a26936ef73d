//! Where a decoder computes.

use std::fmt::Debug;
use std::sync::Arc;

use spar_ops::page::PageShape;
use spar_ops::parallel;

use crate::cuda::{DeviceError, Placement};
use crate::decoder::{self, CachePage, HiddenStates, Segment, Tape};
use crate::head::{self, Draw, DrawLoss, DrawStatistics};
use crate::weight_gradient::WeightGradient;
use crate::{LoraModel, Parameters, Weights};

/// Where a decoder computes: the CPU, or a device. What callers see of both is in [`crate::decoder`]
/// and [`crate::head`], which say what each of these does; their errors are those of devices.
pub(crate) trait Backend: Debug + Send + Sync {
    /// The decoder's place on a device, for what only devices have; absent for the CPU.
    fn placement(&self) -> Option<&Placement>;

    /// The same, to keep.
    fn into_placement(self: Arc<Self>) -> Option<Arc<Placement>>;

    /// A page for keys and values.
    fn new_page(&self, shape: PageShape) -> Result<CachePage, DeviceError>;

    /// The final hidden states of the segments' tokens, which are read into their caches.
    fn forward(
        &self,
        weights: &Weights,
        segments: &mut [Segment<'_>],
        kept: Option<&mut Tape>,
    ) -> Result<HiddenStates, DeviceError>;

    /// Adds the gradients of the parameters, given those of the final hidden states.
    fn backward(
        &self,
        weights: &Weights,
        tape: &Tape,
        dhidden_td: &[f32],
        gradient: &mut WeightGradient<'_>,
    ) -> Result<(), DeviceError>;

    /// Logits of the whole vocabulary behind several states, row by row.
    fn logits(
        &self,
        weights: &Weights,
        hidden_rd: &[f32],
        out_rv: &mut Vec<f32>,
    ) -> Result<(), DeviceError>;

    /// Logits of some tokens behind one state.
    fn logits_of(
        &self,
        weights: &Weights,
        hidden: &[f32],
        tokens: &[u32],
        out: &mut Vec<f32>,
    ) -> Result<(), DeviceError>;

    /// Reads the segments' tokens: the most probable token behind each, with its log-probability.
    fn best(
        &self,
        weights: &Weights,
        segments: &mut [Segment<'_>],
    ) -> Result<Vec<(u32, f32)>, DeviceError>;

    /// Log-probability and entropy of draws behind states that the host has.
    fn judge(
        &self,
        weights: &Weights,
        hidden_td: &[f32],
        draws: &[Draw<'_>],
        temperature: f32,
    ) -> Result<Vec<DrawStatistics>, DeviceError>;

    /// The same behind states wherever they are.
    fn judge_states(
        &self,
        weights: &Weights,
        hidden: &HiddenStates,
        draws: &[Draw<'_>],
        temperature: f32,
    ) -> Result<Vec<DrawStatistics>, DeviceError>;

    /// Adds the gradients of the parameters, given those of draws.
    fn learn(
        &self,
        weights: &Weights,
        tape: &Tape,
        hidden: &HiddenStates,
        loss: &DrawLoss<'_>,
        gradient: &mut WeightGradient<'_>,
    ) -> Result<(), DeviceError>;

    /// The decoder with an adapter's factors.
    fn adapted(
        &self,
        adapter: &LoraModel,
        factors: &Parameters,
    ) -> Result<Arc<Weights>, DeviceError>;
}

/// The CPU, with all of its cores; it does not fail.
#[derive(Debug)]
pub(crate) struct Cpu;

impl Backend for Cpu {
    fn placement(&self) -> Option<&Placement> {
        None
    }

    fn into_placement(self: Arc<Self>) -> Option<Arc<Placement>> {
        None
    }

    fn new_page(&self, shape: PageShape) -> Result<CachePage, DeviceError> {
        Ok(CachePage::new(shape))
    }

    fn forward(
        &self,
        weights: &Weights,
        segments: &mut [Segment<'_>],
        kept: Option<&mut Tape>,
    ) -> Result<HiddenStates, DeviceError> {
        parallel::in_pool(|| decoder::forward_here(weights, segments, kept)).map(Into::into)
    }

    fn backward(
        &self,
        weights: &Weights,
        tape: &Tape,
        dhidden_td: &[f32],
        gradient: &mut WeightGradient<'_>,
    ) -> Result<(), DeviceError> {
        parallel::in_pool(|| decoder::backward_here(weights, tape, dhidden_td, gradient));
        Ok(())
    }

    fn logits(
        &self,
        weights: &Weights,
        hidden_rd: &[f32],
        out_rv: &mut Vec<f32>,
    ) -> Result<(), DeviceError> {
        parallel::in_pool(|| head::batch_logits_here(weights, hidden_rd, out_rv));
        Ok(())
    }

    fn logits_of(
        &self,
        weights: &Weights,
        hidden: &[f32],
        tokens: &[u32],
        out: &mut Vec<f32>,
    ) -> Result<(), DeviceError> {
        head::logits_of_here(weights, hidden, tokens, out);
        Ok(())
    }

    fn best(
        &self,
        weights: &Weights,
        segments: &mut [Segment<'_>],
    ) -> Result<Vec<(u32, f32)>, DeviceError> {
        head::best_here(weights, segments)
    }

    fn judge(
        &self,
        weights: &Weights,
        hidden_td: &[f32],
        draws: &[Draw<'_>],
        temperature: f32,
    ) -> Result<Vec<DrawStatistics>, DeviceError> {
        Ok(parallel::in_pool(|| head::judge_here(weights, hidden_td, draws, temperature)))
    }

    fn judge_states(
        &self,
        weights: &Weights,
        hidden: &HiddenStates,
        draws: &[Draw<'_>],
        temperature: f32,
    ) -> Result<Vec<DrawStatistics>, DeviceError> {
        self.judge(weights, &hidden.read()?, draws, temperature)
    }

    fn learn(
        &self,
        weights: &Weights,
        tape: &Tape,
        hidden: &HiddenStates,
        loss: &DrawLoss<'_>,
        gradient: &mut WeightGradient<'_>,
    ) -> Result<(), DeviceError> {
        let hidden_td = hidden.read()?;
        let mut dhidden = match loss.dstates_td {
            Some(dstates_td) => dstates_td.to_vec(),
            None => vec![0.0; hidden_td.len()],
        };
        head::judge_backward(weights, &hidden_td, loss, &mut dhidden, gradient);
        self.backward(weights, tape, &dhidden, gradient)
    }

    fn adapted(
        &self,
        adapter: &LoraModel,
        factors: &Parameters,
    ) -> Result<Arc<Weights>, DeviceError> {
        Ok(match adapter.is_apart() {
            true => Arc::new(adapter.base().beside(adapter.adapter(factors))),
            false => adapter.merged(factors),
        })
    }
}
