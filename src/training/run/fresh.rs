//! What a run begins with.

use anyhow::{Context, ensure};
use spar_agent::Cancellation;
use spar_core::Seed;
use spar_policy::{ModelConfig, Parameters, Tokenizer, initial_parameters};
use spar_tasks::Suite;
use spar_trainer::{RunFolder, RunLock, Trainer};

use super::{Parts, stage_config};
use crate::recipe::Recipe;
use crate::sandboxes::OpenSandboxes;
use crate::training::demonstrations::{demonstrate, messages_of, take_tasks};
use crate::training::state::State;
use crate::training::{Observer, Stage};

/// Tasks whose demonstrations the tokenizer learns from.
const TOKENIZER_TASKS: usize = 256;

/// What a run begins with.
pub(super) struct Fresh {
    config: ModelConfig,
    parameters: Parameters,
    tokenizer: Tokenizer,
}

impl Fresh {
    /// Reads the checkpoint to start from, or trains the tokenizer and draws the weights.
    pub(super) async fn make(
        recipe: &Recipe,
        suite: &dyn Suite,
        sandboxes: &OpenSandboxes,
        cancellation: &Cancellation,
        observer: &dyn Observer,
    ) -> anyhow::Result<Self> {
        if let Some(path) = &recipe.start_from {
            let path = spar_policy::hub::resolve(path, &mut |_| {})
                .await
                .with_context(|| format!("find the model `{}` to start from", path.display()))?;
            let (config, parameters, tokenizer) = spar_policy::checkpoint::load_model(&path)
                .with_context(|| format!("start from checkpoint `{}`", path.display()))?;
            return Ok(Self { config, parameters, tokenizer });
        }
        let seed = Seed::from_u64(recipe.seed);
        let tokenizer =
            train_tokenizer(recipe, suite, seed, sandboxes, cancellation, observer).await?;
        let config = ModelConfig { vocab_size: tokenizer.vocab_size(), ..recipe.model.clone() };
        let parameters = initial_parameters(&config, seed.derive("stage", "model"));
        Ok(Self { config, parameters, tokenizer })
    }

    pub(super) fn into_parts(
        self,
        recipe: Recipe,
        folder: RunFolder,
        lock: RunLock,
        suite: Box<dyn Suite>,
        sandboxes: OpenSandboxes,
    ) -> anyhow::Result<Parts> {
        let Self { config, parameters, tokenizer } = self;
        let state = State { iteration: 0, is_averaged: false };
        let trainer = Trainer::new(stage_config(&recipe, 0), parameters)?;
        Ok(Parts { recipe, folder, lock, suite, sandboxes, config, tokenizer, trainer, state })
    }
}

/// Learns the tokens of the suite's text from demonstrations.
async fn train_tokenizer(
    recipe: &Recipe,
    suite: &dyn Suite,
    seed: Seed,
    sandboxes: &OpenSandboxes,
    cancellation: &Cancellation,
    observer: &dyn Observer,
) -> anyhow::Result<Tokenizer> {
    observer.stage(Stage::Tokenizer, 0, TOKENIZER_TASKS as u64);
    observer.playing("tokenizer", TOKENIZER_TASKS);
    let tasks = take_tasks(suite, &recipe.data.train, 0, TOKENIZER_TASKS)?;
    let seed = seed.derive("stage", "tokenizer");
    let played = demonstrate(recipe, &tasks, None, seed, sandboxes, cancellation, observer).await?;
    ensure!(!cancellation.is_cancelled(), "stopped before the run began");
    let games = played.groups.iter().flat_map(|group| &group.trajectories).map(messages_of);
    Tokenizer::train(games, &recipe.tokenizer).context("train the tokenizer")
}
