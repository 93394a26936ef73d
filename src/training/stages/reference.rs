//! The model that a stage holds its policy to.

use std::sync::{Arc, OnceLock};

use spar_core::{Sample, Signal};
use spar_policy::Weights;
use spar_policy::draw_rules::LoadedDrawRule;
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

/// How tokens were drawn, which the reference model is judged by as well.
#[derive(Debug, Clone)]
pub(super) struct Drawn {
    pub(super) temperature: f32,
    pub(super) rule: Option<Arc<LoadedDrawRule>>,
}

impl Drawn {
    /// As the run's policy draws.
    pub(super) fn by_policy(run: &Training) -> Self {
        let temperature = run.recipe.episode.sampling.temperature;
        Self { temperature, rule: run.model.draw_rule.clone() }
    }
}

impl Reference {
    /// Fills the log-probabilities under it, of draws that were made so, in all samples.
    pub(super) fn fill(
        &self,
        run: &Training,
        hold: ReferenceHold,
        samples: &mut [Sample],
        tokens: MeasuredTokens,
        drawn: &Drawn,
        micro_batch_tokens: usize,
    ) -> anyhow::Result<()> {
        let model = self.model(run, hold, drawn)?;
        let (weights, model) = (MeasuredAt::Reference, model.as_ref());
        let source = SignalSource { weights, model, head: None, micro_batch_tokens };
        Ok(fill_signals(samples, &[Signal::Reference], tokens, &source)?)
    }

    /// The model itself, for draws that were made so.
    pub(super) fn model(
        &self,
        run: &Training,
        hold: ReferenceHold,
        drawn: &Drawn,
    ) -> anyhow::Result<Box<dyn PreparedModel>> {
        let model = DecoderGradient::new(self.weights(run, hold)?, drawn.temperature)
            .with_grammars(run.policy.grammars().clone())
            .with_draw_rule(drawn.rule.clone());
        Ok(model.at_base())
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
