//! Checkpoints of a run: the model as a folder that other tools open, and the state beside it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use serde::{Deserialize, Serialize};
use spar_policy::checkpoint::NumberType;
use spar_policy::{CheckpointError, LoraConfig, LoraModel, Parameters, Tokenizer, checkpoint};
use spar_trainer::{Checkpoint, Checkpoints, Trainer, TrainerError, WeightPrecision};

use super::learners::Companion;
use super::model::{Model, learner_folder, read_factors};
use super::stages::{Plan, RunningStage};
use crate::recipe::POLICY;

pub(super) const TRAINER_FILE: &str = "trainer.safetensors";
const STATE_FILE: &str = "state.json";
/// The trainer's own weights, where the model beside it is an average or rounded.
const RAW_FOLDER: &str = "raw";

/// Where a run stands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct State {
    /// Iterations done.
    pub(super) iteration: u64,
    /// The stage that the run is at; absent in runs of two stages that older versions wrote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) stage: Option<StageState>,
    /// Whether the policy's weights are an average, the trainer's own standing in a folder apart.
    pub(super) is_averaged: bool,
    /// Whether the policy's weights are rounded, the master weights standing in a folder apart.
    #[serde(default)]
    pub(super) is_rounded: bool,
    /// What the task sampler keeps between iterations, as older versions wrote it.
    #[serde(default, skip_serializing)]
    pub(super) sampler: Option<serde_json::Value>,
    /// The learner that trains; absent in older runs, which have one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) learner: Option<String>,
    /// Tasks that stages took beyond what the plan says, by the stage's name: those behind them on the same suite begin
    /// further on.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) surplus_tasks: BTreeMap<String, u64>,
    /// Tells the weights below an adapter apart from others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) base: Option<String>,
}

/// Where a run stands within its stages.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct StageState {
    /// Its place in the list, from 0; as many as there are when all are over.
    pub(super) index: usize,
    /// Its name; empty when all are over.
    pub(super) name: String,
    /// Iterations of it that are done.
    pub(super) done: u64,
    /// What else it needs to go on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) own: Option<serde_json::Value>,
}

impl State {
    /// That of a run that has done nothing.
    pub(super) fn new(plan: &Plan) -> Self {
        let stage = Some(StageState::at(plan, 0, 0, None));
        Self {
            iteration: 0,
            stage,
            is_averaged: false,
            is_rounded: false,
            sampler: None,
            learner: None,
            surplus_tasks: BTreeMap::new(),
            base: None,
        }
    }

    /// Where it stands in a plan.
    ///
    /// # Errors
    ///
    /// When it was written by another plan.
    pub(super) fn stage_in(&mut self, plan: &Plan) -> anyhow::Result<StageState> {
        let (index, done) = plan.position(self.iteration);
        let own = self.sampler.take().map(|sampler| serde_json::json!({ "sampler": sampler }));
        let by_iteration = StageState::at(plan, index, done, own.filter(|_| done > 0));
        let Some(kept) = self.stage.take() else { return Ok(by_iteration) };
        let name = plan.stages().get(kept.index).map_or("", |planned| &planned.place.name);
        let first =
            plan.stages().get(kept.index).map_or(plan.num_iterations(), |it| it.first_iteration);
        ensure!(
            name == kept.name && first + kept.done == self.iteration,
            "go on with stage `{}` behind {} of its iterations: the stages in config.toml are no longer those \
             the run was started with, bring them back",
            kept.name,
            kept.done
        );
        Ok(kept)
    }
}

impl StageState {
    pub(super) fn at(plan: &Plan, index: usize, done: u64, own: Option<serde_json::Value>) -> Self {
        let planned = plan.stages().get(index);
        let name = planned.map(|planned| planned.place.name.clone()).unwrap_or_default();
        Self { index, name, done, own }
    }
}

/// What a checkpoint holds.
pub(super) struct Loaded {
    pub(super) state: State,
    pub(super) model: Model,
    /// The trainer's parameters.
    pub(super) parameters: Parameters,
    /// The file of the trainer's state.
    pub(super) trainer: PathBuf,
}

/// Writes the checkpoint of an iteration.
///
/// The model files hold the weights that were evaluated, which are the average where there is one, in
/// the precision that they compute in.
pub(super) fn save(
    checkpoints: &Checkpoints,
    state: &State,
    model: &Model,
    trainer: &Trainer,
    companions: &BTreeMap<String, Companion>,
    running: Option<&dyn RunningStage>,
) -> anyhow::Result<Checkpoint> {
    let (averaged, own) = (trainer.averaged()?, trainer.parameters()?);
    let evaluated = averaged.as_ref().unwrap_or(&own);
    let base = state.base.clone().or_else(|| model.fingerprint());
    let (is_averaged, number_type) = (averaged.is_some(), number_type(trainer));
    let is_rounded = number_type != NumberType::F32;
    let learner = Some(model.learner.clone());
    let state = State { is_averaged, is_rounded, learner, base, ..state.clone() };
    let json = serde_json::to_vec_pretty(&state).context("write the run's state as JSON")?;
    let write = |folder: &Path| {
        model.write(folder, evaluated, number_type).map_err(into_io)?;
        if let Some(head) = trainer.head() {
            checkpoint::save_value_head(folder, head.parameters()).map_err(into_io)?;
        }
        model.write_parked(folder).map_err(into_io)?;
        for (learner, companion) in companions {
            let file = learner_folder(folder, learner).join(TRAINER_FILE);
            companion.trainer.save_state(&file).map_err(trainer_into_io)?;
        }
        if is_averaged || is_rounded {
            let folder = folder.join(RAW_FOLDER);
            model.write(&folder, &own, NumberType::F32).map_err(into_io)?;
        }
        std::fs::write(folder.join(STATE_FILE), &json)?;
        if let Some(running) = running {
            running.save_files(folder).map_err(std::io::Error::other)?;
        }
        trainer.save_state(&folder.join(TRAINER_FILE)).map_err(trainer_into_io)
    };
    checkpoints.save(state.iteration, &write).context("save a checkpoint")
}

/// What the weights that compute are stored as.
fn number_type(trainer: &Trainer) -> NumberType {
    match trainer.config().weights {
        WeightPrecision::F32 => NumberType::F32,
        WeightPrecision::Bf16 => NumberType::Bf16,
    }
}

/// Reads a checkpoint of a run that trains these adapters, or all weights where there are none.
pub(super) fn load(
    folder: &Path,
    adapters: BTreeMap<String, LoraConfig>,
) -> anyhow::Result<Loaded> {
    let read = |name: &str| {
        let path = folder.join(name);
        std::fs::read(&path).with_context(|| format!("read `{}`", path.display()))
    };
    let state: State = serde_json::from_slice(&read(STATE_FILE)?)
        .with_context(|| format!("understand `{}`", folder.join(STATE_FILE).display()))?;
    let loading = || format!("load checkpoint `{}`", folder.display());
    let has_raw = state.is_averaged || state.is_rounded;
    let (model, parameters) = if adapters.is_empty() {
        let (config, parameters, tokenizer) =
            checkpoint::load_model(folder).with_context(loading)?;
        let model = Model::whole(config, &parameters, tokenizer);
        let own = if has_raw { model.read(&folder.join(RAW_FOLDER))? } else { parameters };
        (model, own)
    } else {
        let base = checkpoint::base_of(folder).with_context(loading)?;
        let (config, parameters) = checkpoint::load_weights(&base).with_context(loading)?;
        let tokenizer = Tokenizer::load(folder).with_context(loading)?;
        let whole = (config, parameters, tokenizer);
        let learner = state.learner.as_deref().unwrap_or(POLICY);
        let of_learner = |name: &str, model: &LoraModel| match name == learner {
            true if has_raw => read_factors(&folder.join(RAW_FOLDER), model),
            true => read_factors(folder, model),
            false => read_factors(&learner_folder(folder, name), model),
        };
        let (model, own) = Model::adapted(whole, base.clone(), adapters, learner, of_learner)?;
        ensure!(
            state.base.is_none() || state.base == model.fingerprint(),
            "the weights in `{}` are no longer those that the adapter is trained on",
            base.display()
        );
        (model, own)
    };
    Ok(Loaded { state, model, parameters, trainer: folder.join(TRAINER_FILE) })
}

fn trainer_into_io(error: TrainerError) -> std::io::Error {
    let kind = match &error {
        TrainerError::StateFile { source, .. } => source.kind(),
        _ => std::io::ErrorKind::Other,
    };
    std::io::Error::new(kind, error)
}

/// The same error as one of the system, its kind being kept where it is one.
fn into_io(error: CheckpointError) -> std::io::Error {
    let kind = match &error {
        CheckpointError::Io { source, .. } => source.kind(),
        _ => std::io::ErrorKind::Other,
    };
    std::io::Error::new(kind, error)
}
