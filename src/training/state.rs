//! Checkpoints of a run: the model as a folder that other tools open, and the state beside it.

use std::path::Path;

use anyhow::{Context, ensure};
use serde::{Deserialize, Serialize};
use spar_policy::{ModelConfig, Parameters, Tokenizer};
use spar_trainer::{Checkpoint, CheckpointFile, Checkpoints, Trainer};

const TRAINER_FILE: &str = "trainer.safetensors";
const RAW_FILE: &str = "raw.safetensors";
const STATE_FILE: &str = "state.json";

/// Where a run stands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct State {
    /// Iterations done.
    pub(super) iteration: u64,
    /// Whether the policy's weights are an average, the trainer's own standing in a file apart.
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
    let mut files = checkpoint::model_files(config, evaluated, tokenizer)
        .context("write the model as files")?;
    let state = State { is_averaged: averaged.is_some(), ..state.clone() };
    let json = serde_json::to_vec_pretty(&state).context("write the run's state as JSON")?;
    files.push((STATE_FILE.to_owned(), json));
    files.push((TRAINER_FILE.to_owned(), trainer.save_state()));
    if averaged.is_some() {
        files.push((RAW_FILE.to_owned(), checkpoint::weights_file(trainer.parameters(), config)));
    }
    let writers: Vec<_> = files
        .iter()
        .map(|(_, bytes)| move |writer: &mut dyn std::io::Write| writer.write_all(bytes))
        .collect();
    let files: Vec<_> = files
        .iter()
        .zip(&writers)
        .map(|((name, _), write)| CheckpointFile { name, write })
        .collect();
    checkpoints.save(state.iteration, &files).context("save a checkpoint")
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
        let path = folder.join(RAW_FILE);
        let raw = checkpoint::load_weights(&path, &config)
            .with_context(|| format!("load `{}`", path.display()))?;
        ensure!(raw.specs == parameters.specs, "`{}` is of another model", path.display());
        parameters = raw;
    }
    Ok(Loaded { state, config, parameters, tokenizer, trainer: read(TRAINER_FILE)? })
}

pub(super) mod checkpoint {
    use super::*;
    pub(crate) fn model_files(
        config: &ModelConfig,
        p: &Parameters,
        t: &Tokenizer,
    ) -> anyhow::Result<Vec<(String, Vec<u8>)>> {
        let dir = std::env::temp_dir().join(format!("spar-tmp-{}", std::process::id()));
        std::fs::create_dir_all(&dir)?;
        t.save(&dir)?;
        let tok = std::fs::read(dir.join("tokenizer.json"))?;
        Ok(vec![
            ("config.json".into(), serde_json::to_vec(config)?),
            ("tokenizer.json".into(), tok),
            ("model.safetensors".into(), weights_file(p, config)),
        ])
    }
    pub(crate) fn weights_file(p: &Parameters, _: &ModelConfig) -> Vec<u8> {
        p.data.iter().flat_map(|v| v.to_le_bytes()).collect()
    }
    pub(crate) fn load_weights(path: &Path, c: &ModelConfig) -> anyhow::Result<Parameters> {
        let mut p = spar_policy::initial_parameters(c, spar_core::Seed::from_u64(0));
        p.data = std::fs::read(path)?
            .chunks_exact(4)
            .map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]))
            .collect();
        Ok(p)
    }
    pub(crate) fn load_model(f: &Path) -> anyhow::Result<(ModelConfig, Parameters, Tokenizer)> {
        let c: ModelConfig = serde_json::from_slice(&std::fs::read(f.join("config.json"))?)?;
        let p = load_weights(&f.join("model.safetensors"), &c)?;
        Ok((c, p, Tokenizer::load(f)?))
    }
}
