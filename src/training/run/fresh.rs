//! What a run begins with.

use std::path::Path;

use anyhow::{Context, ensure};
use spar_core::Seed;
use spar_policy::{LoraModel, ModelConfig, Parameters, Tokenizer, initial_parameters};
use spar_trainer::{RunFolder, RunLock, Trainer};

use super::Parts;
use crate::draw_rules::FoundModels;
use crate::recipe::{POLICY, Recipe, RecipeError};
use crate::training::Footprint;
use crate::training::domains::Domains;
use crate::training::model::Model;
use crate::training::stages::{Plan, PlannedStage, Watch, WordsRequest};
use crate::training::state::State;

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
        plan: &Plan,
        domains: &Domains,
        watch: Watch<'_>,
    ) -> anyhow::Result<Self> {
        let seed = Seed::from_u64(recipe.seed);
        if let Some(path) = &recipe.start_from {
            let path = spar_policy::hub::resolve(path, &mut |_| {})
                .await
                .with_context(|| format!("find the model `{}` to start from", path.display()))?;
            let (config, parameters, tokenizer) = spar_policy::checkpoint::load_model(&path)
                .with_context(|| format!("start from checkpoint `{}`", path.display()))?;
            if recipe.episode.context.instruction && !tokenizer.has_place_for_instructions() {
                watch.observer.note(
                    "the model's chat template has no place for instructions: they open the first \
                     question",
                );
            }
            let adapters = recipe.adapters();
            if adapters.is_empty() {
                let model = Model::whole(config, &parameters, tokenizer);
                return Self { model, parameters }.with_heads(recipe, Some(&path));
            }
            ensure!(
                !spar_policy::checkpoint::is_adapter(&path),
                "start from `{}`: it is an adapter itself, merge it first (`spar merge`)",
                path.display()
            );
            // Where the adapter's checkpoints find it again.
            let base = path.canonicalize().with_context(|| format!("find `{}`", path.display()))?;
            let initial = |learner: &str, model: &LoraModel| {
                let seed = match learner {
                    POLICY => seed.derive("stage", "adapter"),
                    _ => seed.derive("learner", learner),
                };
                Ok(model.initial(seed))
            };
            let whole = (config, parameters, tokenizer);
            let learner = plan.learner_at(0);
            let (model, parameters) = Model::adapted(whole, base, adapters, learner, initial)?;
            return Self { model, parameters }.with_heads(recipe, Some(&path));
        }
        let tokenizer = train_tokenizer(recipe, plan, seed, domains, watch).await?;
        let config = ModelConfig { vocab_size: tokenizer.vocab_size(), ..recipe.model.clone() };
        let parameters = initial_parameters(&config, seed.derive("stage", "model"));
        let model = Model::whole(config, &parameters, tokenizer);
        Self { model, parameters }.with_heads(recipe, None)
    }

    /// Adds the value heads of the recipe, as they are in the folder that the run starts from where it has one.
    fn with_heads(mut self, recipe: &Recipe, from: Option<&Path>) -> anyhow::Result<Self> {
        self.model.add_heads(recipe, |_, shape| {
            let Some(folder) = from else { return Ok(None) };
            spar_policy::checkpoint::load_value_head(folder, shape)
                .with_context(|| format!("start with the value head in `{}`", folder.display()))
        })?;
        Ok(self)
    }

    /// Looks whether the model can read what all stages show it, before hours are spent on the first of them.
    pub(super) fn check(&self, plan: &Plan) -> Result<(), RecipeError> {
        let mut problems = Vec::new();
        for planned in plan.stages() {
            let found = planned.stage.model_problems(&self.model.tokenizer);
            let name = &planned.place.name;
            problems.extend(found.into_iter().map(|problem| format!("stage `{name}`: {problem}")));
        }
        if problems.is_empty() { Ok(()) } else { Err(RecipeError::Problems { problems }) }
    }

    /// Puts the model where it computes.
    pub(super) fn place(&mut self, recipe: &Recipe) -> anyhow::Result<()> {
        self.model.place(recipe)
    }

    /// Opens what tokens are drawn by, as [`Model::open_draw_rule`] does.
    pub(super) async fn open_draw_rule(
        &mut self,
        recipe: &Recipe,
        found: &FoundModels,
    ) -> anyhow::Result<FoundModels> {
        self.model.open_draw_rule(recipe, found).await
    }

    /// What the run will train.
    pub(super) fn footprint(&self, recipe: &Recipe, plan: &Plan) -> Footprint {
        let trainer = plan.last_trainer();
        let adapter = recipe.adapters().remove(&self.model.learner);
        Footprint::new(&self.model.config, adapter.as_ref(), trainer)
    }

    pub(super) fn into_parts(
        self,
        recipe: Recipe,
        plan: Plan,
        folder: RunFolder,
        lock: RunLock,
        domains: Domains,
    ) -> anyhow::Result<Parts> {
        let Self { mut model, parameters } = self;
        let state = State::new(&plan);
        let config = plan.trainer_at(0).clone();
        model.trained = model.trained.computing_in(config.weights)?;
        let (trained, group) = (&model.trained, model.group.as_ref());
        let trainer = Trainer::in_folder(config, parameters, trained, group, folder.path())?;
        let trainer = model.with_head(trainer)?;
        Ok(Parts { recipe, plan, folder, lock, domains, model, trainer, state })
    }
}

/// Learns the tokens of the text of each suite, and of all files, that the run trains on: from what the first stage
/// gives that trains on them, which are the first tasks that it demonstrates, and no others, or episodes of random
/// actions.
async fn train_tokenizer(
    recipe: &Recipe,
    plan: &Plan,
    seed: Seed,
    domains: &Domains,
    watch: Watch<'_>,
) -> anyhow::Result<Tokenizer> {
    let mut sources: Vec<&PlannedStage> = Vec::new();
    for planned in plan.stages().iter().filter(|planned| planned.stage.trainer().is_some()) {
        let is_same = |other: &&PlannedStage| {
            planned.plays() && other.plays() && other.place.data.is_same_suite(&planned.place.data)
        };
        if !sources.iter().any(is_same) {
            sources.push(planned);
        }
    }
    let about = "learning the words that are trained on";
    watch.observer.stage("tokenizer", about, 0, sources.len() as u64);
    let mut texts = Vec::new();
    for (index, planned) in sources.into_iter().enumerate() {
        let of_run = seed.derive("stage", "tokenizer");
        let data = &planned.place.data;
        let request = WordsRequest {
            recipe,
            data,
            domain: domains.find(data),
            run: seed,
            seed: if index == 0 { of_run } else { of_run.derive("source", index as u64) },
            watch,
        };
        texts.extend(planned.stage.words(&request).await?);
        ensure!(!watch.cancellation.is_cancelled(), "stopped before the run began");
    }
    let texts = texts.iter().map(|messages| messages.iter().map(AsRef::as_ref));
    Tokenizer::train(texts, &recipe.tokenizer).context("train the tokenizer")
}
