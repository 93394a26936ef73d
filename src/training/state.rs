//! Checkpoints of a run: the model as a folder that other tools open, and the state beside it.

use std::path::Path;

use anyhow::{Context, ensure};
use serde::{Deserialize, Serialize};
use spar_policy::{CheckpointError, ModelConfig, Parameters, Tokenizer, checkpoint};
use spar_trainer::{Checkpoint, Checkpoints, Trainer};

const TRAINER_FILE: &str = "trainer.safetensors";
const STATE_FILE: &str = "state.json";
/// The trainer's own weights, where the model beside it is an average.
const RAW_FOLDER: &str = "raw";

/// Where a run stands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct State {
    /// Iterations done.
    pub(super) iteration: u64,
    /// Whether the policy's weights are an average, the trainer's own standing in a folder apart.
    pub(super) is_averaged: bool,
}

/// What a checkpoint holds.
pub(super) struct Loaded {
    pub(super) state: State,
    pub(super) config: ModelConfig,
    /// The trainer's weights.
    pub(super) parameters: Parameters,
    pub(super) tokenizer: Tokenizer,
    /// The trainer's state.
    pub(super) trainer: Vec<u8>,
}

/// Writes the checkpoint of an iteration.
///
/// The model files hold the weights that were evaluated, which are the average where there is one.
pub(super) fn save(
    checkpoints: &Checkpoints,
    state: &State,
    config: &ModelConfig,
    tokenizer: &Tokenizer,
    trainer: &Trainer,
) -> anyhow::Result<Checkpoint> {
    let averaged = trainer.averaged();
    let evaluated = averaged.as_ref().unwrap_or(trainer.parameters());
    let state = State { is_averaged: averaged.is_some(), ..state.clone() };
    let json = serde_json::to_vec_pretty(&state).context("write the run's state as JSON")?;
    let write = |folder: &Path| {
        checkpoint::save_model(folder, config, evaluated, tokenizer).map_err(into_io)?;
        if state.is_averaged {
            let raw = folder.join(RAW_FOLDER);
            checkpoint::save_model(&raw, config, trainer.parameters(), tokenizer)
                .map_err(into_io)?;
        }
        std::fs::write(folder.join(STATE_FILE), &json)?;
        std::fs::write(folder.join(TRAINER_FILE), trainer.save_state())
    };
    checkpoints.save(state.iteration, &write).context("save a checkpoint")
}

/// Reads a checkpoint.
pub(super) fn load(folder: &Path) -> anyhow::Result<Loaded> {
    let read = |name: &str| {
        let path = folder.join(name);
        std::fs::read(&path).with_context(|| format!("read `{}`", path.display()))
    };
    let state: State = serde_json::from_slice(&read(STATE_FILE)?)
        .with_context(|| format!("understand `{}`", folder.join(STATE_FILE).display()))?;
    let (config, mut parameters, tokenizer) = checkpoint::load_model(folder)
        .with_context(|| format!("load checkpoint `{}`", folder.display()))?;
    if state.is_averaged {
        let path = folder.join(RAW_FOLDER);
        let (_, raw) = checkpoint::load_weights(&path)
            .with_context(|| format!("load `{}`", path.display()))?;
        ensure!(raw.specs == parameters.specs, "`{}` is of another model", path.display());
        parameters = raw;
    }
    Ok(Loaded { state, config, parameters, tokenizer, trainer: read(TRAINER_FILE)? })
}

/// The same error as one of the system, its kind being kept where it is one.
fn into_io(error: CheckpointError) -> std::io::Error {
    let kind = match &error {
        CheckpointError::Io { source, .. } => source.kind(),
        _ => std::io::ErrorKind::Other,
    };
    std::io::Error::new(kind, error)
}
