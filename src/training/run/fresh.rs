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
use crate::training::demonstrations::{
    demonstrate, demonstrator, messages_of, play_randomly, take_demonstrated, take_tasks,
};
use crate::training::state::{Model, State};
use crate::training::{Footprint, Observer, Stage};

/// The most tasks whose text the tokenizer learns from.
const TOKENIZER_TASKS: u64 = 256;

/// What a run begins with.
pub(super) struct Fresh {
    model: Model,
    /// What is trained.
    parameters: Parameters,
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
        let seed = Seed::from_u64(recipe.seed);
        if let Some(path) = &recipe.start_from {
            let path = spar_policy::hub::resolve(path, &mut |_| {})
                .await
                .with_context(|| format!("find the model `{}` to start from", path.display()))?;
            let (config, parameters, tokenizer) = spar_policy::checkpoint::load_model(&path)
                .with_context(|| format!("start from checkpoint `{}`", path.display()))?;
            if recipe.episode.context.instruction && !tokenizer.has_place_for_instructions() {
                observer.note(
                    "the model's chat template has no place for instructions: they open the first \
                     question",
                );
            }
            let Some(lora) = &recipe.lora else {
                let model = Model::whole(config, &parameters, tokenizer);
                return Ok(Self { model, parameters });
            };
            ensure!(
                !spar_policy::checkpoint::is_adapter(&path),
                "start from `{}`: it is an adapter itself, merge it first (`spar merge`)",
                path.display()
            );
            // Where the adapter's checkpoints find it again.
            let base = path.canonicalize().with_context(|| format!("find `{}`", path.display()))?;
            let (model, adapted) = Model::adapted(config, parameters, tokenizer, lora, base);
            let parameters = adapted.initial(seed.derive("stage", "adapter"));
            return Ok(Self { model, parameters });
        }
        let tokenizer =
            train_tokenizer(recipe, suite, seed, sandboxes, cancellation, observer).await?;
        let config = ModelConfig { vocab_size: tokenizer.vocab_size(), ..recipe.model.clone() };
        let parameters = initial_parameters(&config, seed.derive("stage", "model"));
        let model = Model::whole(config, &parameters, tokenizer);
        Ok(Self { model, parameters })
    }

    /// Puts the model where it computes.
    pub(super) fn place(&mut self, recipe: &Recipe) -> anyhow::Result<()> {
        self.model.place(recipe)
    }

    /// What the run will train.
    pub(super) fn footprint(&self, recipe: &Recipe) -> Footprint {
        let trainer = match recipe.reinforce.iterations {
            0 => &recipe.warm_start.trainer,
            _ => &recipe.reinforce.trainer,
        };
        Footprint::new(&self.model.config, recipe.lora.as_ref(), trainer)
    }

    pub(super) fn into_parts(
        self,
        recipe: Recipe,
        folder: RunFolder,
        lock: RunLock,
        suite: Box<dyn Suite>,
        sandboxes: OpenSandboxes,
    ) -> anyhow::Result<Parts> {
        let Self { mut model, parameters } = self;
        let state = State {
            iteration: 0,
            is_averaged: false,
            is_rounded: false,
            sampler: None,
            base: None,
        };
        let config = stage_config(&recipe, 0);
        model.trained = model.trained.computing_in(config.weights)?;
        let (trained, group) = (&model.trained, model.group.as_ref());
        let trainer = Trainer::in_folder(config, parameters, trained, group, folder.path())?;
        Ok(Parts { recipe, folder, lock, suite, sandboxes, model, trainer, state })
    }
}

/// Learns the tokens of the suite's text: from the first tasks that are demonstrated, and no others; where
/// none are, from episodes of random actions.
async fn train_tokenizer(
    recipe: &Recipe,
    suite: &dyn Suite,
    seed: Seed,
    sandboxes: &OpenSandboxes,
    cancellation: &Cancellation,
    observer: &dyn Observer,
) -> anyhow::Result<Tokenizer> {
    let warm = &recipe.warm_start;
    let demonstrated = warm.tasks_of(warm.iterations).0;
    let count = if demonstrated == 0 { TOKENIZER_TASKS } else { demonstrated.min(TOKENIZER_TASKS) };
    observer.stage(Stage::Tokenizer, 0, count);
    let count = count as usize;
    observer.playing("tokenizer", count);
    let data = &recipe.data;
    let play = seed.derive("stage", "tokenizer");
    let played = if demonstrated == 0 {
        let tasks = take_tasks(suite, &data.train, seed, 0, count)?;
        play_randomly(recipe, &tasks, play, sandboxes, cancellation, observer).await?
    } else {
        let tasks = take_demonstrated(suite, data, seed, 0, count)?;
        demonstrate(
            recipe,
            (&tasks, None),
            demonstrator(recipe, None, None),
            play,
            sandboxes,
            cancellation,
            observer,
        )
        .await?
    };
    ensure!(!cancellation.is_cancelled(), "stopped before the run began");
    let trajectories = played.groups.iter().flat_map(|group| &group.trajectories);
    let games = trajectories.map(|trajectory| messages_of(&recipe.episode.context, trajectory));
    let games: Vec<_> = games.collect();
    let games = games.iter().map(|game| game.iter().map(AsRef::as_ref));
    Tokenizer::train(games, &recipe.tokenizer).context("train the tokenizer")
}
