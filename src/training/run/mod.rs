//! A training run from its start, or from its last checkpoint, to its end.

mod collection;
mod evaluation;
mod fresh;
mod iterations;
mod records;
mod signals;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::{Instant, SystemTime};

use anyhow::{Context, bail, ensure};
use spar_agent::credit::{AdvantageEstimator, open_estimator};
use spar_agent::filters::{GroupFilter, open_filter};
use spar_agent::strategies::{RolloutStrategy, open_strategy};
use spar_agent::{Cancellation, JsonlStore, StoreConfig};
use spar_core::Seed;
use spar_policy::{LocalPolicy, Weights};
use spar_tasks::samplers::{TaskSampler, open_sampler};
use spar_tasks::{RewardShapers, Suite, SuiteOptions, open_suite};
use spar_trainer::{
    Checkpoints, EventWriter, Manifest, MetricRecord, MetricsLog, RunFolder, RunFolderError,
    RunLock, StatePlace, Trainer, TrainerConfig, git_revision, rfc3339,
};

use super::state::{self, Loaded, Model, State};
use super::{Observer, Stage, Summary};
use crate::recipe::Recipe;
use crate::sandboxes::OpenSandboxes;
use fresh::Fresh;

/// How a run is started, beside its recipe.
#[derive(Debug, Clone)]
pub struct StartOptions {
    /// The folder that holds runs.
    pub root: PathBuf,
    /// The run's name; absent takes the recipe's with a number.
    pub name: Option<String>,
    /// The command line, for the manifest.
    pub command: Vec<String>,
    /// Engine threads; does not change results.
    pub threads: usize,
}

/// How [`Training::run`] came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// All iterations are done.
    Finished,
    /// It was told to stop; a checkpoint was written, unless an iteration was broken off.
    Stopped,
}

/// A training run.
pub struct Training {
    recipe: Recipe,
    folder: RunFolder,
    /// Held as long as the run is written.
    _lock: RunLock,
    suite: Box<dyn Suite>,
    sandboxes: OpenSandboxes,
    seed: Seed,
    model: Model,
    policy: LocalPolicy,
    trainer: Trainer,
    /// The reference model's weights, where they stay in memory and have been read.
    reference: OnceLock<Arc<Weights>>,
    shapers: RewardShapers,
    sampler: Box<dyn TaskSampler>,
    strategy: Box<dyn RolloutStrategy>,
    credit: Box<dyn AdvantageEstimator>,
    filter: Box<dyn GroupFilter>,
    state: State,
    /// Whether all that belongs to the last iteration is done, so that a checkpoint may be made.
    is_whole: bool,
    metrics: MetricsLog,
    /// Results of evaluations by task.
    evaluations: MetricsLog,
    /// Wall-clock times, apart from the metrics so that those of equal runs are equal.
    timings: MetricsLog,
    events: EventWriter,
    checkpoints: Checkpoints,
    store: JsonlStore,
}

impl Training {
    /// Starts a run: checks the recipe, makes the folder, trains the tokenizer, draws the weights.
    ///
    /// # Errors
    ///
    /// When the recipe is wrong, the suite cannot be opened or the folder cannot be made; nothing
    /// is left behind then.
    pub async fn start(
        recipe: Recipe,
        options: &StartOptions,
        cancellation: &Cancellation,
        observer: &dyn Observer,
    ) -> anyhow::Result<Self> {
        recipe.validate()?;
        let suite = open(&recipe)?;
        if let Some(name) = &options.name
            && options.root.join(name).exists()
        {
            let (name, path) = (name.clone(), options.root.join(name));
            return Err(RunFolderError::Exists { name, path }.into());
        }
        // Before the folder is made, so that what cannot begin leaves nothing behind.
        let (fresh, sandboxes) = begin(&recipe, suite.as_ref(), cancellation, observer).await?;

        let name = options.name.clone().unwrap_or_else(|| {
            let stem = if recipe.name.is_empty() { "run" } else { &recipe.name };
            RunFolder::free_name(&options.root, stem)
        });
        let manifest = Manifest {
            name,
            seed: recipe.seed,
            started: rfc3339(SystemTime::now()),
            command: options.command.clone(),
            git_revision: git_revision(Path::new(".")),
            versions: BTreeMap::from([("spar".to_owned(), env!("CARGO_PKG_VERSION").to_owned())]),
            suites: BTreeMap::from([(
                suite.manifest().name.clone(),
                suite.manifest().content_hash.clone(),
            )]),
            notes: BTreeMap::new(),
        };
        let (folder, lock) = RunFolder::create(&options.root, &manifest, &recipe.to_toml())?;
        observer.note(&fresh.footprint(&recipe).to_string());
        let parts = fresh.into_parts(recipe, folder, lock, suite, sandboxes)?;
        let mut training = Self::assemble(parts, options.threads, None)?;
        training.save()?;
        Ok(training)
    }

    /// Takes up a run at its last checkpoint; one that ended before its first begins anew.
    ///
    /// # Errors
    ///
    /// When there is no run, another process writes it, or its files cannot be read.
    pub async fn resume(
        path: &Path,
        threads: usize,
        cancellation: &Cancellation,
        observer: &dyn Observer,
    ) -> anyhow::Result<Self> {
        let folder = RunFolder::open(path)?;
        let lock = folder.lock()?;
        let recipe = Recipe::of_run(&path.display().to_string(), &folder.config()?)?;
        recipe.validate()?;
        let suite = open(&recipe)?;
        let manifest = folder.manifest()?;
        let (name, hash) = (&suite.manifest().name, &suite.manifest().content_hash);
        if manifest.suites.get(name).is_some_and(|started| started != hash) {
            bail!(
                "resume on suite `{name}`: its tasks are no longer those the run was started on \
                 (hash {hash}, was {})",
                manifest.suites[name]
            );
        }
        let Some(latest) = Checkpoints::view(&folder.checkpoints_path()).latest()? else {
            observer.note("the run ended before its first checkpoint: it begins anew");
            let (fresh, sandboxes) = begin(&recipe, suite.as_ref(), cancellation, observer).await?;
            let parts = fresh.into_parts(recipe, folder, lock, suite, sandboxes)?;
            let mut training = Self::assemble(parts, threads, Some(0))?;
            training.go_back_to(0)?;
            training.save()?;
            return Ok(training);
        };
        let Loaded { state, model, parameters, trainer: trainer_state } = state::load(
            &latest.path,
            recipe.lora.as_ref(),
        )
        .with_context(|| {
            let path = latest.path.display();
            format!(
                "go on from {path} (if it is removed, `spar resume` goes on from the one before it)"
            )
        })?;
        // Metrics are on the disk before the checkpoint is.
        let recorded = folder.metrics()?.iter().map(|record| record.iteration).max().unwrap_or(0);
        ensure!(
            recorded >= state.iteration,
            "find iterations up to {} in {}, which ends behind iteration {recorded}: bring it back",
            state.iteration,
            folder.metrics_path().display()
        );
        let mut model = model;
        model.place(&recipe)?;
        let config = stage_config(&recipe, state.iteration);
        model.trained = model.trained.computing_in(config.weights)?;
        let (start, run, group) = (parameters.clone(), folder.path(), model.group.as_ref());
        let mut trainer = Trainer::in_folder(config, start, &model.trained, group, run)?;
        trainer.load_state(parameters, &trainer_state)?;
        let iteration = state.iteration;
        let sandboxes = open_sandboxes(&recipe, suite.as_ref()).await?;
        let parts = Parts { recipe, folder, lock, suite, sandboxes, model, trainer, state };
        let mut training = Self::assemble(parts, threads, Some(iteration))?;
        training.go_back_to(iteration)?;
        training.mark_best()?;
        training.mark_reference()?;
        observer.note(&format!("resumed behind iteration {iteration}"));
        Ok(training)
    }

    /// Closes what the run holds beside its files; how many sandboxes could not be removed.
    pub async fn close(self) -> u64 {
        self.sandboxes.close().await
    }

    /// Forgets what was recorded behind an iteration.
    fn go_back_to(&mut self, iteration: u64) -> anyhow::Result<()> {
        self.metrics.truncate_after(iteration)?;
        self.evaluations.truncate_after(iteration)?;
        self.timings.truncate_after(iteration)?;
        self.store.truncate_after(iteration)?;
        self.checkpoints.remove_after(iteration)?;
        Ok(())
    }

    fn assemble(parts: Parts, threads: usize, resumed_at: Option<u64>) -> anyhow::Result<Self> {
        let Parts { recipe, folder, lock, suite, sandboxes, model, trainer, state } = parts;
        let tokenizer = Arc::new(model.tokenizer.clone());
        let weights = trainer.weights(&model.trained)?;
        let version = trainer.version();
        let policy = LocalPolicy::new("local", tokenizer, weights, version, threads)
            .context("start the engine")?;
        let shapers = RewardShapers::open(&recipe.reinforce.shapers)?;
        let sampler = begin_sampler(&recipe, &state)?;
        let strategy = open_strategy(&recipe.reinforce.strategy)?;
        let credit = open_estimator(&recipe.reinforce.credit)?;
        let filter = open_filter(&recipe.reinforce.filter.clone().unwrap_or_default())?;
        let metrics = MetricsLog::open(&folder.metrics_path())?;
        let evaluations = MetricsLog::open(&folder.evaluations_path())?;
        let timings = MetricsLog::open(&folder.path().join("timings.jsonl"))?;
        let events = EventWriter::create(&folder.tensorboard_path(), resumed_at)?;
        let checkpoints = Checkpoints::open(&folder.checkpoints_path(), recipe.keep.checkpoints)?;
        let store = JsonlStore::open(folder.trajectories_path(), StoreConfig::default())?;
        let seed = Seed::from_u64(recipe.seed);
        Ok(Self {
            recipe,
            folder,
            _lock: lock,
            suite,
            sandboxes,
            seed,
            model,
            policy,
            trainer,
            reference: OnceLock::new(),
            shapers,
            sampler,
            strategy,
            credit,
            filter,
            state,
            is_whole: true,
            metrics,
            evaluations,
            timings,
            events,
            checkpoints,
            store,
        })
    }

    /// Runs what is left of both stages and the final evaluation.
    ///
    /// # Errors
    ///
    /// When the suite's environments fail for good, an update is not finite, or the run folder
    /// cannot be written; the last checkpoint stays good.
    pub async fn run(
        &mut self,
        cancellation: &Cancellation,
        observer: &dyn Observer,
    ) -> anyhow::Result<Outcome> {
        // A run that stops before its first iteration is still owed the evaluation before it.
        if self.state.iteration == self.recipe.warm_start.iterations {
            self.test("test_before", cancellation, observer).await?;
        }
        self.announce(observer);
        while self.state.iteration < self.recipe.num_iterations() {
            if cancellation.is_cancelled() {
                return self.stop();
            }
            let started = Instant::now();
            let Some(record) = self.iteration(cancellation, observer).await? else {
                return self.stop();
            };
            self.is_whole = false;
            self.state.iteration += 1;
            let iteration = self.state.iteration;
            let stage = stage_of(&self.recipe, iteration - 1);
            self.log(&record)?;
            let seconds = started.elapsed().as_secs_f64();
            let timing = MetricRecord::new(iteration, stage.name()).with([("seconds", seconds)]);
            self.timings.append(&timing)?;
            observer.iteration(stage, &record);
            self.after_iteration(cancellation, observer).await?;
        }
        if cancellation.is_cancelled() {
            return self.stop();
        }
        self.finish(cancellation, observer).await
    }

    /// What the run reached so far.
    ///
    /// # Errors
    ///
    /// When the metrics cannot be read.
    pub fn summary(&self) -> anyhow::Result<Summary> {
        let metrics = self.folder.metrics()?;
        let is_finished = metrics.iter().any(|record| record.kind == "finished");
        let checkpoint = match self.checkpoints.best()? {
            Some(best) => Some(best),
            None => self.checkpoints.latest()?,
        };
        let folder = self.folder.path().to_owned();
        let checkpoint = checkpoint.map(|checkpoint| checkpoint.path);
        Ok(Summary::of(folder, &metrics, self.state.iteration, is_finished, checkpoint))
    }

    /// One iteration of the present stage; `None` when it was told to stop.
    async fn iteration(
        &mut self,
        cancellation: &Cancellation,
        observer: &dyn Observer,
    ) -> anyhow::Result<Option<MetricRecord>> {
        let number = self.state.iteration + 1;
        let seed = self.seed.derive("iteration", number);
        match stage_of(&self.recipe, self.state.iteration) {
            Stage::Reinforce => self.reinforce(number, seed, cancellation, observer).await,
            _ => self.imitate(number, seed, cancellation, observer).await,
        }
    }

    /// Evaluation, stage change and checkpoint, as they are due behind an iteration.
    async fn after_iteration(
        &mut self,
        cancellation: &Cancellation,
        observer: &dyn Observer,
    ) -> anyhow::Result<()> {
        let (iteration, total) = (self.state.iteration, self.recipe.num_iterations());
        let warm = self.recipe.warm_start.iterations;
        let is_evaluated = iteration >= warm
            && ((iteration - warm).is_multiple_of(self.recipe.evaluation.every)
                || iteration == total);
        if is_evaluated {
            let evaluation = self.evaluate(cancellation, observer).await?;
            if cancellation.is_cancelled() {
                // Incomplete: the iteration counts as not done, the last checkpoint stands.
                return Ok(());
            }
            self.log_evaluation("evaluation", &evaluation)?;
        }
        if iteration == warm {
            self.enter_stage()?;
        }
        self.is_whole = true;
        if is_evaluated
            || iteration == warm
            || iteration == total
            || iteration.is_multiple_of(self.recipe.keep.checkpoint_every)
        {
            self.save()?;
        }
        if iteration == warm {
            self.test("test_before", cancellation, observer).await?;
            self.announce(observer);
        }
        Ok(())
    }

    /// The optimiser of reinforcement learning takes over where imitation ends.
    fn enter_stage(&mut self) -> anyhow::Result<()> {
        let parameters = match self.trainer.averaged()? {
            Some(averaged) => averaged,
            None => self.trainer.parameters()?,
        };
        let version = self.trainer.version();
        let config = stage_config(&self.recipe, self.state.iteration);
        self.model.trained = self.model.trained.clone().computing_in(config.weights)?;
        let on_host = TrainerConfig {
            optimizer_on: None,
            optimizer_state: StatePlace::Memory,
            ..config.clone()
        };
        // What the old one has on a device is free before the new one takes as much.
        self.trainer = Trainer::new(on_host, parameters.clone())?;
        let (trained, group) = (&self.model.trained, self.model.group.as_ref());
        let folder = self.folder.path();
        let trainer = Trainer::in_folder(config, parameters, trained, group, folder)?;
        self.trainer = trainer.starting_at(version);
        Ok(())
    }

    fn stop(&mut self) -> anyhow::Result<Outcome> {
        if self.is_whole {
            self.save()?;
        }
        Ok(Outcome::Stopped)
    }

    /// Tells the observer where the run stands.
    fn announce(&self, observer: &dyn Observer) {
        let (done, warm) = (self.state.iteration, self.recipe.warm_start.iterations);
        if done < warm {
            observer.stage(Stage::WarmStart, done, warm);
        } else if self.recipe.reinforce.iterations > 0 {
            observer.stage(Stage::Reinforce, done - warm, self.recipe.reinforce.iterations);
        }
    }
}

/// What a run is put together from.
struct Parts {
    recipe: Recipe,
    folder: RunFolder,
    lock: RunLock,
    suite: Box<dyn Suite>,
    sandboxes: OpenSandboxes,
    model: Model,
    trainer: Trainer,
    state: State,
}

async fn open_sandboxes(recipe: &Recipe, suite: &dyn Suite) -> anyhow::Result<OpenSandboxes> {
    let mut episode = recipe.episode.clone();
    // Sandboxes have to outlive the longest episodes.
    episode.max_turns = Some(recipe.reinforce.max_turns).max(recipe.evaluation.max_turns);
    OpenSandboxes::open(&recipe.sandbox, suite, &recipe.data.train, &episode).await
}

/// What a run begins with, and where its sandboxes come from.
async fn begin(
    recipe: &Recipe,
    suite: &dyn Suite,
    cancellation: &Cancellation,
    observer: &dyn Observer,
) -> anyhow::Result<(Fresh, OpenSandboxes)> {
    let sandboxes = open_sandboxes(recipe, suite).await?;
    let fresh = Fresh::make(recipe, suite, &sandboxes, cancellation, observer).await;
    let placed = fresh.and_then(|mut fresh| {
        fresh.place(recipe)?;
        Ok(fresh)
    });
    match placed {
        Ok(fresh) => Ok((fresh, sandboxes)),
        Err(error) => {
            sandboxes.close().await;
            Err(error)
        }
    }
}

fn open(recipe: &Recipe) -> anyhow::Result<Box<dyn Suite>> {
    let options = SuiteOptions { data: recipe.data.folder.clone() };
    let suite = open_suite(&recipe.data.suite, &options)?;
    let data = &recipe.data;
    let splits = [&data.train, &data.dev].into_iter().chain(&data.demonstrations).chain(&data.test);
    for split in splits {
        suite.len(split)?;
    }
    Ok(suite)
}

/// The stage of the iteration that follows `done` others.
fn stage_of(recipe: &Recipe, done: u64) -> Stage {
    if done < recipe.warm_start.iterations { Stage::WarmStart } else { Stage::Reinforce }
}

/// The task sampler, where the run stands.
fn begin_sampler(recipe: &Recipe, state: &State) -> anyhow::Result<Box<dyn TaskSampler>> {
    let (warm, config) = (&recipe.warm_start, &recipe.reinforce);
    // Behind the tasks of the demonstrations, so that no task is met twice before all are; of older runs, behind
    // those that it has played.
    let done = state.iteration.saturating_sub(warm.iterations);
    let first = warm.tasks_of(warm.iterations).0 + done * config.tasks as u64;
    let mut sampler = open_sampler(&config.sampler, first)?;
    if let Some(kept) = &state.sampler {
        sampler.load(kept)?;
    }
    Ok(sampler)
}

/// How the trainer of that stage works.
fn stage_config(recipe: &Recipe, done: u64) -> TrainerConfig {
    match stage_of(recipe, done) {
        Stage::Reinforce => recipe.reinforce.trainer.clone(),
        _ => recipe.warm_start.trainer.clone(),
    }
}
