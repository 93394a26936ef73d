//! What a stage is to the run.

use std::path::{Path, PathBuf};

use anyhow::bail;
use async_trait::async_trait;
use serde_json::Value;
use spar_agent::Cancellation;
use spar_core::Seed;
use spar_policy::Tokenizer;
use spar_tasks::{ScoreReferences, SuiteManifest};
use spar_trainer::{MetricRecord, TrainerConfig};

use super::Place;
use crate::recipe::{DataConfig, Recipe};
use crate::training::Observer;
use crate::training::domains::Domain;
use crate::training::run::Training;

/// A kind of work with its options.
#[async_trait(?Send)]
pub trait Stage: Send + Sync {
    /// Iterations of training; 0 where it trains nothing.
    fn iterations(&self) -> u64 {
        0
    }

    /// Tasks that it takes of a split's order, where that is known before.
    fn num_tasks(&self) -> u64 {
        0
    }

    /// The splits that it plays; none where it needs no suite.
    fn splits(&self, data: &DataConfig) -> Vec<String>;

    /// How it updates, where it does.
    fn trainer(&self) -> Option<&TrainerConfig> {
        None
    }

    /// Turns that its episodes may have, where it says so.
    fn max_turns(&self) -> Option<u32> {
        None
    }

    /// Whether it goes on from a policy that is measured before: its dev split is played when it begins as well.
    fn has_baseline(&self) -> bool {
        false
    }

    /// Whether the dev split is played behind so many of its iterations, `every` being the recipe's interval.
    fn is_evaluated(&self, done: u64, every: u64) -> bool {
        let _ = (done, every);
        false
    }

    /// Whether the policy that it begins with has to be kept, as the model that it is held to.
    fn has_reference(&self) -> bool {
        false
    }

    /// All that keeps it from training several learners at one time.
    fn learners_problems(&self) -> Vec<String> {
        vec!["learners has no effect here: a stage of kind `reinforce` trains several".to_owned()]
    }

    /// Settings that have no effect where it does not train several learners at one time.
    fn needs_learners(&self) -> Vec<&'static str> {
        Vec::new()
    }

    /// Whether it trains the value head of its learner.
    fn trains_value_head(&self) -> bool {
        false
    }

    /// Whether a value head is all that it trains, so that the policy stays as it is.
    fn trains_values_alone(&self) -> bool {
        false
    }

    /// Whether its credit reads the values of its learner's value head.
    fn needs_values(&self) -> bool {
        false
    }

    /// Whether it plays by the checkpoint that a dev split chose.
    fn needs_best(&self) -> bool {
        false
    }

    /// Whether its episodes branch, or some are demonstrated, which is not played where several act.
    fn branches(&self) -> bool {
        false
    }

    /// All that is wrong with it in a recipe, before anything is opened.
    fn problems(&self, recipe: &Recipe) -> Vec<String>;

    /// All that is wrong with its own files; see [`Stage::splits`] for what others are asked.
    fn data_problems(&self) -> Vec<String> {
        Vec::new()
    }

    /// What it cannot do with a suite that it plays.
    fn suite_problems(&self, suite: &SuiteManifest) -> Vec<String> {
        let _ = suite;
        Vec::new()
    }

    /// Between which returns scores in this suite are normalised, where it knows.
    fn references(&self, suite: &SuiteManifest) -> Option<ScoreReferences> {
        let _ = suite;
        None
    }

    /// The files that it reads, which have to stay as they are while the run lasts.
    fn files(&self) -> Vec<PathBuf> {
        Vec::new()
    }

    /// All of its own files that the model's words cannot say.
    fn model_problems(&self, tokenizer: &Tokenizer) -> Vec<String> {
        let _ = tokenizer;
        Vec::new()
    }

    /// What it does and how much of it, in a few words.
    fn budget(&self, data: &DataConfig) -> String;

    /// All its options, as a recipe has them.
    fn options(&self) -> toml::Table;

    /// Texts, message by message, that a tokenizer made for the run learns from.
    async fn words(&self, request: &WordsRequest<'_>) -> anyhow::Result<Vec<Vec<String>>> {
        let _ = request;
        Ok(Vec::new())
    }

    /// Begins it, or goes on with it behind `done` iterations, with what it [left](RunningStage::state) in a checkpoint.
    fn begin(
        &self,
        place: &Place,
        done: u64,
        state: Option<&Value>,
    ) -> anyhow::Result<Box<dyn RunningStage>>;
}

/// A stage that the run is at.
#[async_trait(?Send)]
pub trait RunningStage: Send + Sync {
    /// One iteration; `None` when it was told to stop, the stage then standing where it stood.
    async fn iterate(
        &mut self,
        run: &mut Training,
        step: &Step<'_>,
    ) -> anyhow::Result<Option<MetricRecord>> {
        let _ = (run, step);
        bail!("iterate: this stage has no iterations")
    }

    /// What comes behind its iterations. Told to stop, it returns early and is asked again by who takes up the run.
    async fn end(&mut self, run: &mut Training, watch: &Watch<'_>) -> anyhow::Result<()> {
        let _ = (run, watch);
        Ok(())
    }

    /// The place behind all that it took of its split's order, where that may be further than its
    /// [number of tasks](Stage::num_tasks) says.
    fn next_place(&self) -> Option<u64> {
        None
    }

    /// What it needs to go on behind a checkpoint, beside how many iterations are done.
    fn state(&self) -> Option<Value> {
        None
    }

    /// Writes what else it needs, where that is too much for [`state`](Self::state), as files of its own into the folder of
    /// a checkpoint.
    fn save_files(&self, folder: &Path) -> anyhow::Result<()> {
        let _ = folder;
        Ok(())
    }

    /// Goes on with the files that it left in the folder of a checkpoint.
    fn load_files(&mut self, run: &Training, folder: &Path) -> anyhow::Result<()> {
        let _ = (run, folder);
        Ok(())
    }
}

/// Who watches a run, and who may stop it.
#[derive(Clone, Copy)]
pub struct Watch<'a> {
    /// Set when the run is to stop.
    pub cancellation: &'a Cancellation,
    /// Who is told how it goes on.
    pub observer: &'a dyn Observer,
}

/// An iteration.
pub struct Step<'a> {
    /// Its number in the run, from 1.
    pub number: u64,
    /// Iterations of the stage before it.
    pub done: u64,
    /// What its random choices derive from.
    pub seed: Seed,
    /// Who watches, and who may stop it.
    pub watch: Watch<'a>,
}

/// What a stage plays for the tokenizer's sake.
pub struct WordsRequest<'a> {
    /// The recipe.
    pub recipe: &'a Recipe,
    /// What the stage plays.
    pub data: &'a DataConfig,
    /// Absent where the stage needs no suite.
    pub(crate) domain: Option<&'a Domain>,
    /// The run's seed, which decides the order of tasks.
    pub run: Seed,
    /// What the episodes' random choices derive from.
    pub seed: Seed,
    /// Who watches, and who may stop it.
    pub watch: Watch<'a>,
}
