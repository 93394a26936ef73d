//! The model that a stage holds its policy to.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use anyhow::{Context, ensure};
use spar_core::{Sample, Signal};
use spar_policy::draw_rules::LoadedDrawRule;
use spar_policy::{Parameters, Weights};
use spar_trainer::{
    DecoderGradient, MeasuredAt, MeasuredTokens, PreparedModel, SignalSource, Trained, fill_signals,
};

use crate::recipe::{ReferenceHold, ReferenceResetConfig, ResetState, SoupMember};
use crate::training::run::Training;

/// The model that a stage holds its policy to: the policy that the stage began with.
#[derive(Default)]
pub(super) struct Reference {
    /// Its weights, where they stay in memory and have been read.
    weights: OnceLock<Arc<Weights>>,
    /// The models that it is the mean of; empty where it is the policy itself.
    soup: Vec<SoupMember>,
    /// What was trained when it was replaced last, and when it is again.
    replaced: Option<Parameters>,
    state: ResetState,
}

/// The files in a checkpoint of one that was replaced: its weights as little-endian numbers of 32 bits, and when it is replaced again.
const FILES: [&str; 2] = ["reference.bin", "reference.json"];

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
    /// The mean of these models; of none, the policy that the stage began with.
    pub(super) fn of(soup: Vec<SoupMember>) -> Self {
        Self { soup, ..Self::default() }
    }

    /// Sees an iteration, the last of `done`, with its success rate, and becomes the present policy where it is time; how often it has.
    pub(super) fn see(
        &mut self,
        run: &Training,
        config: &ReferenceResetConfig,
        done: u64,
        success: f64,
    ) -> anyhow::Result<u64> {
        if self.state.see(config, done, success) {
            self.replace(run, run.trainer.parameters()?)?;
        }
        Ok(self.state.resets)
    }

    fn replace(&mut self, run: &Training, parameters: Parameters) -> anyhow::Result<()> {
        self.weights = OnceLock::from(run.model.trained.weights(&parameters)?);
        self.replaced = Some(parameters);
        Ok(())
    }

    /// Writes what it needs to go on into the folder of a checkpoint; nothing where it is never replaced.
    pub(super) fn save(&self, folder: &Path) -> anyhow::Result<()> {
        let [weights, state] = FILES.map(|name| folder.join(name));
        std::fs::write(&state, serde_json::to_vec(&self.state)?)
            .with_context(|| format!("write `{}`", state.display()))?;
        let Some(parameters) = &self.replaced else { return Ok(()) };
        let bytes: Vec<u8> = parameters.data.iter().flat_map(|value| value.to_le_bytes()).collect();
        std::fs::write(&weights, bytes).with_context(|| format!("write `{}`", weights.display()))
    }

    /// Goes on from the folder of a checkpoint.
    pub(super) fn load(&mut self, run: &Training, folder: &Path) -> anyhow::Result<()> {
        let [weights, state] = FILES.map(|name| folder.join(name));
        let text = std::fs::read(&state).with_context(|| format!("read `{}`", state.display()))?;
        self.state = serde_json::from_slice(&text)?;
        if self.state.resets == 0 {
            return Ok(());
        }
        let bytes =
            std::fs::read(&weights).with_context(|| format!("read `{}`", weights.display()))?;
        let mut parameters = run.trainer.parameters()?;
        let found = bytes.len() / 4;
        let expected = parameters.data.len();
        ensure!(found == expected, "`{}` has {found} weights, not {expected}", weights.display());
        let values: Vec<f32> = bytes
            .chunks_exact(4)
            .map(|bytes| f32::from_le_bytes(bytes.try_into().expect("four bytes")))
            .collect();
        parameters.data = values.into();
        self.replace(run, parameters)
    }

    /// The mean of the models that it is made of.
    fn averaged(&self, run: &Training) -> anyhow::Result<Arc<Weights>> {
        let mut parameters = run.trainer.parameters()?;
        let mut members = Vec::with_capacity(self.soup.len());
        for member in &self.soup {
            members.push((member.weight, run.model.read(&member.path)?));
        }
        let members: Vec<(f64, &[f32])> =
            members.iter().map(|(weight, own)| (*weight, &own.data[..])).collect();
        parameters.data = mean(&members).into();
        Ok(run.model.trained.weights(&parameters)?)
    }

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

    /// Fills the values that the run's value head tells of its states, in all samples.
    pub(super) fn fill_values(
        &self,
        run: &Training,
        hold: ReferenceHold,
        samples: &mut [Sample],
        tokens: MeasuredTokens,
        drawn: &Drawn,
        micro_batch_tokens: usize,
    ) -> anyhow::Result<()> {
        let model = self.model(run, hold, drawn)?;
        // Values are otherwise those of the present weights.
        let (weights, model) = (MeasuredAt::Present, model.as_ref());
        let source = SignalSource { weights, model, head: run.trainer.head(), micro_batch_tokens };
        Ok(fill_signals(samples, &[Signal::Values], tokens, &source)?)
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
        let weights = match self.soup.is_empty() {
            true => run.marked_reference()?,
            false => self.averaged(run)?,
        };
        Ok(match hold {
            ReferenceHold::Memory => self.weights.get_or_init(|| weights).clone(),
            _ => weights,
        })
    }
}

/// The mean of weights, each counting what is said; what all have alike stays to the bit.
fn mean(members: &[(f64, &[f32])]) -> Vec<f32> {
    let sum: f64 = members.iter().map(|(weight, _)| weight).sum();
    let len = members.first().map_or(0, |(_, own)| own.len());
    let of = |place: usize| {
        let first = members[0].1[place];
        if members.iter().all(|(_, own)| own[place] == first) {
            return first;
        }
        let weighed = members.iter().map(|(weight, own)| weight / sum * f64::from(own[place]));
        weighed.sum::<f64>() as f32
    };
    (0..len).map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_soup_is_the_weighed_mean_and_one_alone_is_itself() {
        let (a, b) = ([0.1_f32, 1.0, -2.0], [0.1_f32, 3.0, 2.0]);
        assert_eq!(mean(&[(7.0, &a)]), a);
        assert_eq!(mean(&[(1.0, &a), (1.0, &b)]), [0.1, 2.0, 0.0]);
        assert_eq!(mean(&[(3.0, &a), (1.0, &b)]), [0.1, 1.5, -1.0]);
        assert!(mean(&[]).is_empty());
    }
}
