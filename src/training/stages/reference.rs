//! The model that a stage holds its policy to.

use std::sync::{Arc, OnceLock};

use spar_core::{Sample, Signal};
use spar_policy::Weights;
use spar_trainer::{
    DecoderGradient, MeasuredAt, MeasuredTokens, PreparedModel, SignalSource, Trained, fill_signals,
};

use crate::recipe::ReferenceHold;
use crate::training::run::Training;

/// The model that a stage holds its policy to: the policy that the stage began with.
#[derive(Default)]
pub(super) struct Reference {
    /// Its weights, where they stay in memory and have been read.
    weights: OnceLock<Arc<Weights>>,
}

impl Reference {
    /// Fills the log-probabilities under it, of draws at `temperature`, in all samples.
    pub(super) fn fill(
        &self,
        run: &Training,
        hold: ReferenceHold,
        samples: &mut [Sample],
        tokens: MeasuredTokens,
        temperature: f32,
        micro_batch_tokens: usize,
    ) -> anyhow::Result<()> {
        let model = self.model(run, hold, temperature)?;
        let (weights, model) = (MeasuredAt::Reference, model.as_ref());
        let source = SignalSource { weights, model, head: None, micro_batch_tokens };
        Ok(fill_signals(samples, &[Signal::Reference], tokens, &source)?)
    }

    /// The model itself, for draws at `temperature`.
    pub(super) fn model(
        &self,
        run: &Training,
        hold: ReferenceHold,
        temperature: f32,
    ) -> anyhow::Result<Box<dyn PreparedModel>> {
        let model = DecoderGradient::new(self.weights(run, hold)?, temperature);
        Ok(model.with_grammars(run.policy.grammars().clone()).at_base())
    }

    fn weights(&self, run: &Training, hold: ReferenceHold) -> anyhow::Result<Arc<Weights>> {
        if let (ReferenceHold::AdapterOff, Trained::Adapter(model)) = (hold, &run.model.trained) {
            return Ok(model.base().clone());
        }
        if let Some(weights) = self.weights.get() {
            return Ok(weights.clone());
        }
        let weights = run.marked_reference()?;
        Ok(match hold {
            ReferenceHold::Memory => self.weights.get_or_init(|| weights).clone(),
            _ => weights,
        })
    }
}
