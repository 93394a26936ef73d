//! A training run from its start, or from its last checkpoint, to its end.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use anyhow::{Context, bail, ensure};
use spar_agent::credit::{AdvantageEstimator, GroupView, open_estimator};
use spar_agent::{
    Cancellation, CollectConfig, CollectRequest, EvaluateConfig, EvaluateRequest, Evaluation,
    JsonlStore, Player, StoreConfig, collect_groups, demonstration_rows, evaluate, group_rows,
};
use spar_core::{Row, Seed, TrajectoryStore};
use spar_policy::{LocalPolicy, ModelConfig, Tokenizer, Weights, initial_parameters};
use spar_tasks::{Suite, SuiteOptions, open_suite};
use spar_trainer::{
    CheckpointMark, Checkpoints, DecoderGradient, EventWriter, LossAggregation, Manifest,
    MetricRecord, MetricsLog, RunFolder, RunLock, Supervised, Trainer, UpdateMetrics, batches,
    git_revision, rfc3339,
};

use super::demonstrations::{demonstrate, messages_of, take_tasks};
use super::records::{evaluation_record, with_collection, with_updates};
use super::state::{self, Loaded, State};
use super::{Observer, Stage, Summary};
use crate::recipe::Recipe;

/// Tasks whose demonstrations the tokenizer learns from.
const TOKENIZER_TASKS: usize = 256;

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
    /// It was told to stop; a checkpoint was written.
    Stopped,
}

/// A training run.
pub struct Training {
    recipe: Recipe,
    folder: RunFolder,
    /// Held as long as the run is written.
    _lock: RunLock,
    suite: Box<dyn Suite>,
    seed: Seed,
    config: ModelConfig,
    tokenizer: Arc<Tokenizer>,
    policy: LocalPolicy,
    /// Any version of the weights; gives the shape.
    base: Arc<Weights>,
    trainer: Trainer,
    credit: Box<dyn AdvantageEstimator>,
    state: State,
    /// Whether all that belongs to the last iteration is done, so that a checkpoint may be made.
    is_whole: bool,
    metrics: MetricsLog,
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
        let seed = Seed::from_u64(recipe.seed);

        // Before the folder is made, so that what cannot begin leaves nothing behind.
        let (config, parameters, tokenizer) = match &recipe.start_from {
            Some(path) => spar_policy::checkpoint::load_model(path)
                .with_context(|| format!("start from checkpoint `{}`", path.display()))?,
            None => {
                let tokenizer =
                    train_tokenizer(&recipe, suite.as_ref(), seed, cancellation, observer).await?;
                let vocab_size = tokenizer.vocab_size();
                let config = ModelConfig { vocab_size, ..recipe.model.clone() };
                let parameters = initial_parameters(&config, seed.derive("stage", "model"));
                (config, parameters, tokenizer)
            }
        };

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
        let state = State { iteration: 0, is_averaged: false };
        let trainer = Trainer::new(stage_config(&recipe, 0), parameters)?;
        let parts = Parts { recipe, folder, lock, suite, config, tokenizer, trainer, state };
        let mut training = Self::assemble(parts, options.threads, None)?;
        training.save()?;
        Ok(training)
    }

    /// Takes up a run at its last checkpoint.
    ///
    /// # Errors
    ///
    /// When there is no run, another process writes it, or its files cannot be read.
    pub fn resume(path: &Path, threads: usize, observer: &dyn Observer) -> anyhow::Result<Self> {
        let folder = RunFolder::open(path)?;
        let lock = folder.lock()?;
        let recipe = Recipe::parse(&path.display().to_string(), &folder.config()?, &[])?;
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
        let latest = Checkpoints::view(&folder.checkpoints_path())
            .latest()?
            .with_context(|| format!("`{}` has no checkpoint to resume from", path.display()))?;
        let Loaded { state, config, parameters, tokenizer, trainer: trainer_state } =
            state::load(&latest.path)?;
        let mut trainer = Trainer::new(stage_config(&recipe, state.iteration), parameters.clone())?;
        trainer.load_state(parameters, &trainer_state)?;
        let iteration = state.iteration;
        let parts = Parts { recipe, folder, lock, suite, config, tokenizer, trainer, state };
        let mut training = Self::assemble(parts, threads, Some(iteration))?;
        training.metrics.truncate_after(iteration)?;
        training.timings.truncate_after(iteration)?;
        training.store.truncate_after(iteration)?;
        training.checkpoints.remove_after(iteration)?;
        training.mark_best()?;
        observer.note(&format!("resumed behind iteration {iteration}"));
        Ok(training)
    }

    fn assemble(parts: Parts, threads: usize, resumed_at: Option<u64>) -> anyhow::Result<Self> {
        let Parts { recipe, folder, lock, suite, config, tokenizer, trainer, state } = parts;
        let tokenizer = Arc::new(tokenizer);
        let base = Arc::new(Weights::new(&config, trainer.parameters().clone()));
        let version = trainer.version();
        let policy = LocalPolicy::new("local", tokenizer.clone(), base.clone(), version, threads)
            .context("start the engine")?;
        let credit = open_estimator(&recipe.reinforce.credit)?;
        let metrics = MetricsLog::open(&folder.metrics_path())?;
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
            seed,
            config,
            tokenizer,
            policy,
            base,
            trainer,
            credit,
            state,
            is_whole: true,
            metrics,
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

    async fn imitate(
        &mut self,
        number: u64,
        seed: Seed,
        cancellation: &Cancellation,
        observer: &dyn Observer,
    ) -> anyhow::Result<Option<MetricRecord>> {
        let config = &self.recipe.warm_start;
        let first = self.state.iteration * config.tasks as u64;
        let train = &self.recipe.data.train;
        let tasks = take_tasks(self.suite.as_ref(), train, first, config.tasks)?;
        observer.playing("demonstrations", tasks.len());
        let encoder = Some(&self.policy as &dyn spar_core::Policy);
        let collection =
            demonstrate(&self.recipe, &tasks, encoder, seed, cancellation, observer).await?;
        if cancellation.is_cancelled() {
            return Ok(None);
        }
        let mut rows = Vec::new();
        for trajectory in collection.groups.iter().flat_map(|group| &group.trajectories) {
            rows.extend(demonstration_rows(trajectory, &config.weights)?);
        }
        let order = batches::shuffled(rows.len(), seed.derive("shuffle", 0));
        let lengths: Vec<usize> = order.iter().map(|row| rows[*row].len()).collect();
        let model = DecoderGradient::new((*self.base).clone(), 1.0);
        let mut updates = Vec::new();
        let ranges = batches::split_by_budget(&lengths, config.batch_tokens);
        let share = 1.0 / (config.iterations as f32 * ranges.len().max(1) as f32);
        for range in ranges {
            let progress = self.state.iteration as f32 / config.iterations as f32
                + updates.len() as f32 * share;
            let batch: Vec<&Row> = order[range].iter().map(|row| &rows[*row]).collect();
            let mode = LossAggregation::TokenMean;
            updates.push(self.trainer.update(&batch, &Supervised, mode, &model, progress)?);
        }
        let record = MetricRecord::new(number, Stage::WarmStart.name());
        Ok(Some(with_updates(with_collection(record, &collection), &updates)))
    }

    async fn reinforce(
        &mut self,
        number: u64,
        seed: Seed,
        cancellation: &Cancellation,
        observer: &dyn Observer,
    ) -> anyhow::Result<Option<MetricRecord>> {
        let warm = &self.recipe.warm_start;
        let config = &self.recipe.reinforce;
        let done = self.state.iteration - warm.iterations;
        // Behind the tasks of the demonstrations, so that no task is met twice before all are.
        let first = warm.iterations * warm.tasks as u64 + done * config.tasks as u64;
        let train = &self.recipe.data.train;
        let tasks = take_tasks(self.suite.as_ref(), train, first, config.tasks)?;

        // 1. Groups of episodes under the present weights.
        self.publish();
        observer.playing("rollouts", tasks.len() * config.group_size);
        let request = CollectRequest {
            tasks: &tasks,
            player: Player::Policy(&self.policy),
            open: &spar_envs::open_environment,
            seed,
            cancellation,
            on_episode: &|trajectory| observer.episode(trajectory),
        };
        let mut episode = self.recipe.episode.clone();
        episode.max_turns = Some(config.max_turns);
        let collect =
            CollectConfig { group_size: config.group_size, episode, ..Default::default() };
        let started = Instant::now();
        let collection = collect_groups(&request, &collect).await;
        if cancellation.is_cancelled() {
            return Ok(None);
        }
        let failure = || collection.last_failure.clone().unwrap_or_default();
        ensure!(collection.counts.finished > 0, "no episode came about: {}", failure());
        let rollout_seconds = started.elapsed().as_secs_f64();

        // 2. Credit: an advantage for every step.
        let mut rows = Vec::new();
        for group in &collection.groups {
            let view = GroupView::from_group(group).discounted_by_length(config.length_discount);
            rows.extend(group_rows(group, &self.credit.estimate(&view))?);
        }
        // Rows without an advantage would only cost time.
        rows.retain(|row| {
            row.policy_weights.iter().zip(&row.advantages).any(|(w, a)| *w != 0.0 && *a != 0.0)
        });

        // 3. Updates.
        let started = Instant::now();
        let objective = config.objective.build()?;
        let temperature = self.recipe.episode.sampling.temperature;
        let model = DecoderGradient::new((*self.base).clone(), temperature);
        let progress = done as f32 / config.iterations as f32;
        let updates: Vec<UpdateMetrics> = self.trainer.iterate(
            &rows,
            objective.as_ref(),
            config.objective.aggregation,
            &model,
            seed.derive("updates", 0),
            progress,
        )?;
        if self.recipe.keep.trajectories_every > 0
            && number.is_multiple_of(self.recipe.keep.trajectories_every)
        {
            self.store.append(number, &collection.groups)?;
        }
        let times = [
            ("rollout_seconds", rollout_seconds),
            ("update_seconds", started.elapsed().as_secs_f64()),
        ];
        self.timings.append(&MetricRecord::new(number, "parts").with(times))?;
        let record = MetricRecord::new(number, Stage::Reinforce.name());
        let record = with_collection(record, &collection);
        Ok(Some(with_updates(record.with([("rows", rows.len() as f64)]), &updates)))
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
            let split = self.recipe.data.dev.clone();
            let tasks = Some(self.recipe.evaluation.dev_tasks);
            let evaluation = self.evaluate(&split, tasks, cancellation, observer).await?;
            if cancellation.is_cancelled() {
                // Incomplete: the iteration counts as not done, the last checkpoint stands.
                return Ok(());
            }
            self.log(&evaluation_record(iteration, "evaluation", &evaluation))?;
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

    /// Evaluates the best checkpoint on the test splits and closes the books.
    async fn finish(
        &mut self,
        cancellation: &Cancellation,
        observer: &dyn Observer,
    ) -> anyhow::Result<Outcome> {
        let iteration = self.state.iteration;
        if self.recipe.reinforce.iterations > 0 {
            self.publish_best()?;
            self.test("test_after", cancellation, observer).await?;
            if cancellation.is_cancelled() {
                return self.stop();
            }
        }
        let metrics = self.folder.metrics()?;
        if !metrics.iter().any(|record| record.kind == "finished") {
            self.log(&MetricRecord::new(iteration, "finished"))?;
        }
        self.metrics.sync()?;
        Ok(Outcome::Finished)
    }

    /// Plays the test splits that have no record of this kind yet.
    async fn test(
        &mut self,
        kind: &str,
        cancellation: &Cancellation,
        observer: &dyn Observer,
    ) -> anyhow::Result<()> {
        let done: Vec<String> = self
            .folder
            .metrics()?
            .iter()
            .filter(|record| record.kind == kind)
            .filter_map(|record| Some(record.values.get("split")?.as_str()?.to_owned()))
            .collect();
        for split in self.recipe.data.test.clone() {
            if done.contains(&split) {
                continue;
            }
            if kind == "test_before" {
                self.publish_evaluated();
            }
            let tasks = self.recipe.evaluation.test_tasks;
            let evaluation = self.play(&split, tasks, cancellation, observer).await?;
            if cancellation.is_cancelled() {
                return Ok(());
            }
            self.log(&evaluation_record(self.state.iteration, kind, &evaluation))?;
        }
        Ok(())
    }

    /// Evaluates the present weights on tasks of a split.
    async fn evaluate(
        &mut self,
        split: &str,
        tasks: Option<usize>,
        cancellation: &Cancellation,
        observer: &dyn Observer,
    ) -> anyhow::Result<Evaluation> {
        self.publish_evaluated();
        self.play(split, tasks, cancellation, observer).await
    }

    /// Evaluates the published weights on tasks of a split.
    async fn play(
        &self,
        split: &str,
        tasks: Option<usize>,
        cancellation: &Cancellation,
        observer: &dyn Observer,
    ) -> anyhow::Result<Evaluation> {
        let mut episode = self.recipe.episode.clone();
        episode.max_turns = self.recipe.evaluation.max_turns;
        episode.sampling.temperature = self.recipe.evaluation.temperature;
        let config = EvaluateConfig {
            split: split.to_owned(),
            limit: tasks,
            episode,
            ..EvaluateConfig::default()
        };
        let len = self.suite.len(split)?;
        observer.playing(split, tasks.map_or(len, |tasks| tasks.min(len)));
        let request = EvaluateRequest {
            suite: self.suite.as_ref(),
            player: Player::Policy(&self.policy),
            open: &spar_envs::open_environment,
            seed: self.seed.derive("evaluation", split),
            cancellation,
            on_episode: &|trajectory| observer.episode(trajectory),
        };
        let (evaluation, _) = evaluate(&request, &config).await?;
        if !cancellation.is_cancelled() {
            observer.evaluation(self.state.iteration, &evaluation);
        }
        Ok(evaluation)
    }

    /// The trainer's weights go to the policy.
    fn publish(&self) {
        let weights = Arc::new(self.base.with_parameters(self.trainer.parameters().clone()));
        self.policy.publish(&weights, self.trainer.version());
    }

    /// The weights that are evaluated go to the policy: the average where there is one.
    fn publish_evaluated(&self) {
        let parameters =
            self.trainer.averaged().unwrap_or_else(|| self.trainer.parameters().clone());
        let weights = Arc::new(self.base.with_parameters(parameters));
        self.policy.publish(&weights, self.trainer.version());
    }

    /// The weights that were best on the dev split go to the policy.
    fn publish_best(&self) -> anyhow::Result<()> {
        let best = self.checkpoints.best()?.context("find the best checkpoint")?;
        let (_, parameters, _) = spar_policy::checkpoint::load_model(&best.path)
            .with_context(|| format!("load checkpoint `{}`", best.path.display()))?;
        let weights = Arc::new(self.base.with_parameters(parameters));
        self.policy.publish(&weights, self.trainer.version());
        Ok(())
    }

    /// The optimiser of reinforcement learning takes over where imitation ends.
    fn enter_stage(&mut self) -> anyhow::Result<()> {
        let parameters =
            self.trainer.averaged().unwrap_or_else(|| self.trainer.parameters().clone());
        let version = self.trainer.version();
        let config = stage_config(&self.recipe, self.state.iteration);
        self.trainer = Trainer::new(config, parameters)?.starting_at(version);
        Ok(())
    }

    fn save(&mut self) -> anyhow::Result<()> {
        self.metrics.sync()?;
        let trainer = &self.trainer;
        state::save(&self.checkpoints, &self.state, &self.config, &self.tokenizer, trainer)?;
        self.mark_best()?;
        self.draw_curve()
    }

    /// Marks the checkpoint that did best on the dev split; of equals the later.
    fn mark_best(&self) -> anyhow::Result<()> {
        let metrics = self.folder.metrics()?;
        let best = metrics
            .iter()
            .filter(|record| record.kind == "evaluation")
            .filter_map(|record| Some((record.number("success_rate")?, record.iteration)))
            .max_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        if let Some((score, iteration)) = best {
            self.checkpoints.mark("best", &CheckpointMark { iteration, score: Some(score) })?;
        }
        Ok(())
    }

    fn draw_curve(&self) -> anyhow::Result<()> {
        let metrics = self.folder.metrics()?;
        if let Some(curve) = crate::picture::run_curve(&self.recipe.name, &metrics) {
            let path = self.folder.path().join("curve.svg");
            spar_trainer::write_atomically(&path, curve.to_svg().as_bytes())?;
        }
        Ok(())
    }

    fn stop(&mut self) -> anyhow::Result<Outcome> {
        if self.is_whole {
            self.save()?;
        }
        Ok(Outcome::Stopped)
    }

    fn log(&mut self, record: &MetricRecord) -> anyhow::Result<()> {
        self.metrics.append(record)?;
        let prefix = match record.values.get("split").and_then(|split| split.as_str()) {
            Some(split) => format!("{}/{split}", record.kind),
            None => record.kind.clone(),
        };
        let scalars: Vec<(String, f64)> = record
            .values
            .iter()
            .filter_map(|(name, value)| Some((format!("{prefix}/{name}"), value.as_f64()?)))
            .collect();
        let scalars = scalars.iter().map(|(name, value)| (name.as_str(), *value));
        self.events.scalars(record.iteration, scalars)?;
        self.events.flush()?;
        Ok(())
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
    config: ModelConfig,
    tokenizer: Tokenizer,
    trainer: Trainer,
    state: State,
}

/// Learns the tokens of the suite's text from demonstrations.
async fn train_tokenizer(
    recipe: &Recipe,
    suite: &dyn Suite,
    seed: Seed,
    cancellation: &Cancellation,
    observer: &dyn Observer,
) -> anyhow::Result<Tokenizer> {
    observer.stage(Stage::Tokenizer, 0, TOKENIZER_TASKS as u64);
    observer.playing("tokenizer", TOKENIZER_TASKS);
    let tasks = take_tasks(suite, &recipe.data.train, 0, TOKENIZER_TASKS)?;
    let seed = seed.derive("stage", "tokenizer");
    let played = demonstrate(recipe, &tasks, None, seed, cancellation, observer).await?;
    ensure!(!cancellation.is_cancelled(), "stopped before the run began");
    let games = played.groups.iter().flat_map(|group| &group.trajectories).map(messages_of);
    Tokenizer::train(games, &recipe.tokenizer).context("train the tokenizer")
}

fn open(recipe: &Recipe) -> anyhow::Result<Box<dyn Suite>> {
    let options = SuiteOptions { data: recipe.data.folder.clone() };
    let suite = open_suite(&recipe.data.suite, &options)?;
    let splits = [&recipe.data.train, &recipe.data.dev].into_iter().chain(&recipe.data.test);
    for split in splits {
        suite.len(split)?;
    }
    Ok(suite)
}

/// The stage of the iteration that follows `done` others.
fn stage_of(recipe: &Recipe, done: u64) -> Stage {
    if done < recipe.warm_start.iterations { Stage::WarmStart } else { Stage::Reinforce }
}

/// How the trainer of that stage works.
fn stage_config(recipe: &Recipe, done: u64) -> spar_trainer::TrainerConfig {
    match stage_of(recipe, done) {
        Stage::Reinforce => recipe.reinforce.trainer.clone(),
        _ => recipe.warm_start.trainer.clone(),
    }
}
