//! The trait of all predictors.

use std::fmt::Debug;

use spar_core::{Seed, Signal};

use crate::{PredictorError, Segments};

/// A small learned function of segments that is not the policy.
///
/// Everything follows from what it was opened with, what it was fitted to, and the seeds of these fits: equal ones give
/// equal numbers, to the bit on one machine, on any number of threads.
pub trait Predictor: Debug + Send + Sync {
    /// The registry's name of it.
    fn name(&self) -> &'static str;

    /// Features of a segment that it reads.
    fn width(&self) -> usize;

    /// Learns from sequences whose segments earned `rewards`, one per segment in their order. Random choices derive from
    /// `seed`. What it knew before stays known as far as the method says; nothing changes where there is no segment.
    ///
    /// # Errors
    ///
    /// [`PredictorError`] when segments and rewards do not fit, or the loss is not finite; it is then as it was before.
    fn fit(
        &mut self,
        segments: &Segments,
        rewards: &[f32],
        seed: Seed,
    ) -> Result<Fit, PredictorError>;

    /// Whether what it says of new sequences is asked for before it learns from them, because it is to know nothing of their
    /// outcomes. Default false: it learns first.
    fn predicts_first(&self) -> bool {
        false
    }

    /// What it says of every segment.
    ///
    /// # Errors
    ///
    /// [`PredictorError`] when the segments have other features than it reads, or the device fails.
    fn predict(&self, segments: &Segments) -> Result<Predictions, PredictorError>;

    /// All that it needs to go on as if nothing had happened, as the bytes of a safetensors file; equal states are equal
    /// bytes.
    ///
    /// # Errors
    ///
    /// [`PredictorError::Compute`] when its weights cannot be read from the device.
    fn state(&self) -> Result<Vec<u8>, PredictorError>;

    /// Takes over a state that one with the same options wrote: predictions and fits are then the same, to the bit.
    ///
    /// # Errors
    ///
    /// [`PredictorError::State`] when the bytes are damaged or of another predictor; it is then as it was before.
    fn load(&mut self, state: &[u8]) -> Result<(), PredictorError>;
}

/// How a fit went.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Fit {
    /// The loss of every epoch, or of every step where the method knows no epochs, each before what was learned from it;
    /// empty where there was nothing to learn from.
    pub losses: Vec<f64>,
    /// Sequences, or segments where the method takes these one by one, that it chose from.
    pub num_examples: usize,
}

impl Fit {
    /// The last loss; absent where there was nothing to learn from.
    pub fn last_loss(&self) -> Option<f64> {
        self.losses.last().copied()
    }
}

/// What a predictor says of segments: a column for every signal that it gives.
#[derive(Debug, Clone, PartialEq)]
pub struct Predictions {
    columns: Vec<(Signal, Vec<f32>)>,
}

impl Predictions {
    /// Columns with a number for every segment.
    pub fn new(columns: Vec<(Signal, Vec<f32>)>) -> Self {
        Self { columns }
    }

    /// The numbers of a signal, one per segment in their order; `None` where the predictor does not give it.
    pub fn column(&self, signal: Signal) -> Option<&[f32]> {
        self.columns.iter().find(|(given, _)| *given == signal).map(|(_, column)| &column[..])
    }

    /// All columns, in the order in which the table lists the signals.
    pub fn columns(&self) -> impl Iterator<Item = (Signal, &[f32])> {
        self.columns.iter().map(|(signal, column)| (*signal, &column[..]))
    }
}
