//! Heads that read a value off each of the decoder's final hidden states.
//!
//! They stand beside the head of the vocabulary and see the states as that does, behind the final norm. Their weights
//! are [`Parameters`] of their own in the host's memory, whatever the decoder computes on, and in a file of their own
//! beside a checkpoint's model. Their gradient by the states goes into the decoder by way of
//! [`DrawLoss::dstates_td`](crate::head::DrawLoss), with that of the vocabulary's head.

mod head_weights;
mod hidden_layer;
mod histogram;
mod linear;
mod registry;
mod value_histogram;

use std::fmt::Debug;

use spar_core::Seed;

use crate::{ParameterKind, Parameters};

pub use head_weights::HeadWeights;
pub use registry::{
    OpenStateHead, StateHeadConfig, StateHeadRow, open_state_head, state_head_registry,
};
pub use value_histogram::{HistogramKind, ValueHistogram};

/// Reads numbers off each of the decoder's final hidden states: the value itself, or a histogram's logits.
///
/// What is computed for a state depends on that state alone, and sums over states are in their order: both to the bit,
/// on any number of threads.
pub trait StateHead: Debug + Send + Sync {
    /// The name in settings.
    fn name(&self) -> &'static str;

    /// How its numbers are told and trained as one value; by default each state has one number, which is the value.
    fn histogram(&self) -> Option<&ValueHistogram> {
        None
    }

    /// Names, shapes and kinds of its parameters, on states of so many numbers.
    fn shapes(&self, width: usize) -> Vec<(String, Vec<usize>, ParameterKind)>;

    /// Parameters to start with, where every number is 0.
    fn initial(&self, width: usize, seed: Seed) -> Parameters;

    /// The numbers of states, `[rows, width]`: `[rows]`, or `[rows, bins]` of a histogram.
    fn forward(&self, parameters: &Parameters, states_rd: &[f32]) -> Vec<f32>;

    /// Adds to `gradient`, and to `dstates_rd` where that is asked for, the gradient of a loss, given that by the
    /// numbers of the same states.
    fn backward(
        &self,
        parameters: &Parameters,
        states_rd: &[f32],
        dnumbers: &[f32],
        dstates_rd: Option<&mut [f32]>,
        gradient: &mut [f32],
    );
}
