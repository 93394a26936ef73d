//! Checkpoints of a run: the model as a folder that other tools open, and the state beside it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, ensure};
use serde::{Deserialize, Serialize};
use spar_policy::checkpoint::{LoraAdapter, NumberType, SaveOptions};
use spar_policy::cuda::DeviceGroup;
use spar_policy::{
    CheckpointError, LoraConfig, LoraModel, ModelConfig, Parameters, SharedBuffer, Tokenizer,
    Weights, checkpoint,
};
use spar_trainer::{Checkpoint, Checkpoints, Trained, Trainer, TrainerError, WeightPrecision};

use super::stages::Plan;
use crate::recipe::Recipe;

const TRAINER_FILE: &str = "trainer.safetensors";
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

/// What a run trains, with the words and files that go with it.
pub(super) struct Model {
    pub(super) config: ModelConfig,
    pub(super) tokenizer: Tokenizer,
    pub(super) trained: Trained,
    /// The devices that train it, where there are several.
    pub(super) group: Option<Arc<DeviceGroup>>,
    /// The folder of the weights below an adapter.
    pub(super) base: Option<PathBuf>,
}

impl Model {
    /// All weights are trained, which have the layout of `parameters`.
    pub(super) fn whole(
        config: ModelConfig,
        parameters: &Parameters,
        tokenizer: Tokenizer,
    ) -> Self {
        // The trainer has the numbers.
        let shape = Parameters { specs: parameters.specs.clone(), data: SharedBuffer::default() };
        let trained = Trained::Weights(Arc::new(Weights::new(&config, shape)));
        Self { config, tokenizer, trained, group: None, base: None }
    }

    /// An adapter is trained on the weights in the folder `base`.
    pub(super) fn adapted(
        config: ModelConfig,
        parameters: Parameters,
        tokenizer: Tokenizer,
        lora: &LoraConfig,
        base: PathBuf,
    ) -> (Self, Arc<LoraModel>) {
        let weights = Arc::new(Weights::new(&config, parameters));
        let adapted = Arc::new(LoraModel::new(weights, lora));
        let trained = Trained::Adapter(adapted.clone());
        (Self { config, tokenizer, trained, group: None, base: Some(base) }, adapted)
    }

    /// Puts the decoder where it computes; on several devices it is trained side by side.
    pub(super) fn place(&mut self, recipe: &Recipe) -> anyhow::Result<()> {
        self.trained = self.trained.clone().placed(recipe.device).context("place the decoder")?;
        let devices = recipe.devices.unwrap_or(1);
        if devices > 1 {
            let first = self.trained.decoder().device();
            let first = first.with_context(|| format!("train on {devices} GPUs: there is none"))?;
            let group = DeviceGroup::around(first, devices).context("put the GPUs together")?;
            self.group = Some(Arc::new(group));
        }
        Ok(())
    }

    /// The trained parameters in a checkpoint of this model.
    pub(super) fn read(&self, folder: &Path) -> anyhow::Result<Parameters> {
        match &self.trained {
            Trained::Weights(_) | Trained::Rounded(_) => {
                let (_, parameters) = checkpoint::load_weights(folder)
                    .with_context(|| format!("load checkpoint `{}`", folder.display()))?;
                let is_same = parameters.specs == self.shape().specs;
                ensure!(is_same, "`{}` is of another model", folder.display());
                Ok(parameters)
            }
            Trained::Adapter(model) => {
                let adapter = LoraAdapter::load(folder, model.base().parameters())
                    .with_context(|| format!("load the adapter in `{}`", folder.display()))?;
                let factors = model.factors_of(&adapter);
                factors.with_context(|| {
                    format!("the adapter in `{}` is of another shape", folder.display())
                })
            }
        }
    }

    /// The layout of what is trained, where that is all weights.
    fn shape(&self) -> &Parameters {
        match &self.trained {
            Trained::Weights(base) => base.parameters(),
            Trained::Rounded(model) => model.base().parameters(),
            Trained::Adapter(model) => model.base().parameters(),
        }
    }

    fn write(
        &self,
        folder: &Path,
        parameters: &Parameters,
        number_type: NumberType,
    ) -> Result<(), CheckpointError> {
        match (&self.trained, &self.base) {
            (Trained::Adapter(model), Some(base)) => {
                let adapter = model.to_adapter(parameters);
                let frozen = model.base().parameters();
                checkpoint::save_adapter(folder, &adapter, base, frozen, &self.tokenizer)
            }
            _ => {
                let options = SaveOptions { number_type, ..SaveOptions::default() };
                let (config, tokenizer) = (&self.config, &self.tokenizer);
                checkpoint::save_model_with(folder, config, parameters, tokenizer, &options)
            }
        }
    }

    /// Tells the frozen weights apart from others.
    fn fingerprint(&self) -> Option<String> {
        let Trained::Adapter(model) = &self.trained else { return None };
        // FNV-1a over whole numbers: no protection, but no accident goes unseen.
        let step = |hash: u64, value: &f32| {
            (hash ^ u64::from(value.to_bits())).wrapping_mul(0x0000_0100_0000_01b3)
        };
        let values = &model.base().parameters().data;
        Some(format!("{:016x}", values.into_iter().fold(0xcbf2_9ce4_8422_2325, step)))
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
) -> anyhow::Result<Checkpoint> {
    let (averaged, own) = (trainer.averaged()?, trainer.parameters()?);
    let evaluated = averaged.as_ref().unwrap_or(&own);
    let base = state.base.clone().or_else(|| model.fingerprint());
    let (is_averaged, number_type) = (averaged.is_some(), number_type(trainer));
    let is_rounded = number_type != NumberType::F32;
    let state = State { is_averaged, is_rounded, base, ..state.clone() };
    let json = serde_json::to_vec_pretty(&state).context("write the run's state as JSON")?;
    let write = |folder: &Path| {
        model.write(folder, evaluated, number_type).map_err(into_io)?;
        if is_averaged || is_rounded {
            let folder = folder.join(RAW_FOLDER);
            model.write(&folder, &own, NumberType::F32).map_err(into_io)?;
        }
        std::fs::write(folder.join(STATE_FILE), &json)?;
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

/// Reads a checkpoint of a run that trains an adapter of this shape, or all weights.
pub(super) fn load(folder: &Path, lora: Option<&LoraConfig>) -> anyhow::Result<Loaded> {
    let read = |name: &str| {
        let path = folder.join(name);
        std::fs::read(&path).with_context(|| format!("read `{}`", path.display()))
    };
    let state: State = serde_json::from_slice(&read(STATE_FILE)?)
        .with_context(|| format!("understand `{}`", folder.join(STATE_FILE).display()))?;
    let loading = || format!("load checkpoint `{}`", folder.display());
    let (model, whole) = if let Some(lora) = lora {
        let base = checkpoint::base_of(folder).with_context(loading)?;
        let (config, parameters) = checkpoint::load_weights(&base).with_context(loading)?;
        let tokenizer = Tokenizer::load(folder).with_context(loading)?;
        let (model, _) = Model::adapted(config, parameters, tokenizer, lora, base.clone());
        ensure!(
            state.base.is_none() || state.base == model.fingerprint(),
            "the weights in `{}` are no longer those that the adapter is trained on",
            base.display()
        );
        (model, None)
    } else {
        let (config, parameters, tokenizer) =
            checkpoint::load_model(folder).with_context(loading)?;
        (Model::whole(config, &parameters, tokenizer), Some(parameters))
    };
    let parameters = match whole {
        _ if state.is_averaged || state.is_rounded => model.read(&folder.join(RAW_FOLDER))?,
        Some(parameters) => parameters,
        None => model.read(folder)?,
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
