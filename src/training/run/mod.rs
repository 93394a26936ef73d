//! A training run from its start, or from its last checkpoint, to its end.

mod companions;
mod evaluation;
mod fresh;
mod records;
mod unchanged;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use anyhow::{Context, ensure};
use spar_agent::spend::{Budget, SpendConfig, SpendReport};
use spar_agent::{Cancellation, FailureStore, JsonlStore, StoreConfig};
use spar_core::Seed;
use spar_policy::LocalPolicy;
use spar_trainer::{
    Checkpoints, EventWriter, Manifest, MetricRecord, MetricsLog, RunFolder, RunFolderError,
    RunLock, StatePlace, Trainer, TrainerConfig, git_revision, rfc3339,
};

use super::domains::{Domains, Suites};
use super::learners::{Companion, LearnersPolicy};
use super::model::Model;
use super::stages::{Plan, PlannedStage, RunningStage, Step, Watch};
use super::state::{self, Loaded, StageState, State};
use super::{KeepsFailures, Observer, Summary};
use crate::draw_rules::FoundModels;
use crate::recipe::{Recipe, RecipeError};
use crate::training::records::spend_values;
use fresh::Fresh;
use unchanged::{notes, refuse_changes, rule_models};

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
    /// The same by a limit of what may be spent; with a higher one it goes on.
    StoppedAtLimit,
}

/// A training run.
pub struct Training {
    pub(super) recipe: Recipe,
    plan: Plan,
    pub(super) folder: RunFolder,
    /// Held as long as the run is written.
    _lock: RunLock,
    pub(super) domains: Domains,
    pub(super) seed: Seed,
    pub(super) model: Model,
    pub(super) policy: Arc<LocalPolicy>,
    pub(super) trainer: Trainer,
    /// The other learners of the stage that is under way, where it trains several.
    companions: BTreeMap<String, Companion>,
    /// All of them as a policy.
    learners: Option<Arc<LearnersPolicy>>,
    /// Engine threads.
    threads: usize,
    /// Where the run stands within its stages.
    stage: StageState,
    /// The stage that it is at; absent while that works, and when all are over.
    running: Option<Box<dyn RunningStage>>,
    state: State,
    /// Whether all that belongs to the last iteration is done, so that a checkpoint may be made.
    pub(super) is_whole: bool,
    metrics: MetricsLog,
    /// Results of evaluations by task.
    evaluations: MetricsLog,
    /// Wall-clock times, apart from the metrics so that those of equal runs are equal.
    pub(super) timings: MetricsLog,
    events: EventWriter,
    checkpoints: Checkpoints,
    pub(super) store: JsonlStore,
    /// Episodes that failed, of whatever they were played for.
    failures: Arc<FailureStore>,
    /// What it spends, and may.
    pub(super) budget: Budget,
}

/// The file in a run's folder that has what was spent.
pub const LEDGER: &str = "spend.jsonl";

impl Training {
    /// What it does.
    pub fn recipe(&self) -> &Recipe {
        &self.recipe
    }

    /// Where it is written, with the metrics of what is done.
    pub fn folder(&self) -> &RunFolder {
        &self.folder
    }

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
        let plan = plan_of(&recipe)?;
        let suites = open_suites(&recipe, &plan)?;
        if let Some(name) = &options.name
            && options.root.join(name).exists()
        {
            let (name, path) = (name.clone(), options.root.join(name));
            return Err(RunFolderError::Exists { name, path }.into());
        }
        let hashes = suites.hashes();
        let watch = Watch { cancellation, observer };
        recipe.secrets.keep()?;
        let budget = Budget::new(recipe.spend.clone())?;
        // Before the folder is made, so that what cannot begin leaves nothing behind.
        let nothing = FoundModels::new();
        let Begun { fresh, domains, rule_models } =
            begin(&recipe, &plan, suites, &budget, &nothing, watch).await?;

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
            suites: hashes,
            notes: notes(&recipe, &plan, &rule_models)?,
        };
        let (folder, lock) = RunFolder::create(&options.root, &manifest, &recipe.to_toml())?;
        observer.note(&fresh.footprint(&recipe, &plan).to_string());
        budget.keep_in(folder.path().join(LEDGER))?;
        let parts = fresh.into_parts(recipe, plan, folder, lock, domains)?;
        let mut training = Self::assemble(parts, budget, options.threads, None)?;
        training.open_companions(None)?;
        training.save()?;
        Ok(training)
    }

    /// Takes up a run at its last checkpoint; one that ended before its first begins anew. What it has spent is spent;
    /// `limits` take the place of those that it has, from here on.
    ///
    /// # Errors
    ///
    /// When there is no run, another process writes it, or its files cannot be read.
    pub async fn resume(
        path: &Path,
        threads: usize,
        limits: &SpendConfig,
        cancellation: &Cancellation,
        observer: &dyn Observer,
    ) -> anyhow::Result<Self> {
        let folder = RunFolder::open(path)?;
        let lock = folder.lock()?;
        let recipe = Recipe::of_run(&path.display().to_string(), &folder.config()?)?;
        recipe.validate()?;
        let plan = plan_of(&recipe)?;
        let suites = open_suites(&recipe, &plan)?;
        let manifest = folder.manifest()?;
        refuse_changes(&recipe, &plan, &suites, &manifest)?;
        let found_models = rule_models(&manifest)?;
        let watch = Watch { cancellation, observer };
        recipe.secrets.keep()?;
        let ledger = folder.path().join(LEDGER);
        let budget = Budget::kept_in(recipe.spend.clone(), limits, ledger)?;
        let Some(latest) = Checkpoints::view(&folder.checkpoints_path()).latest()? else {
            observer.note("the run ended before its first checkpoint: it begins anew");
            let begun = begin(&recipe, &plan, suites, &budget, &found_models, watch).await?;
            let Begun { fresh, domains, .. } = begun;
            let parts = fresh.into_parts(recipe, plan, folder, lock, domains)?;
            let mut training = Self::assemble(parts, budget, threads, Some(0))?;
            training.open_companions(None)?;
            training.go_back_to(0)?;
            training.save()?;
            return Ok(training);
        };
        let Loaded { mut state, model, parameters, trainer: trainer_state } = state::load(
            &latest.path,
            recipe.adapters(),
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
        model.read_heads(&recipe, &latest.path)?;
        model.place(&recipe)?;
        model.open_draw_rule(&recipe, &found_models).await?;
        let is_older = state.stage.is_none();
        let stage = state.stage_in(&plan)?;
        let config = match plan.next_trained(stage.index) {
            // An older version gave it to runs that only imitate as well, once that was over.
            None if is_older && recipe.reinforce.iterations == 0 => &recipe.reinforce.trainer,
            _ => plan.trainer_at(stage.index),
        };
        let config = config.clone();
        state.stage = Some(stage);
        model.trained = model.trained.computing_in(config.weights)?;
        let (start, run, group) = (parameters.clone(), folder.path(), model.group.as_ref());
        let trainer = Trainer::in_folder(config, start, &model.trained, group, run)?;
        let mut trainer = model.with_head(trainer)?;
        trainer.load_state(parameters, &trainer_state)?;
        let iteration = state.iteration;
        let domains = suites.with_sandboxes(&recipe, &budget).await?;
        let parts = Parts { recipe, plan, folder, lock, domains, model, trainer, state };
        let mut training = Self::assemble(parts, budget, threads, Some(iteration))?;
        training.open_companions(Some(&latest.path))?;
        training.load_stage_files(&latest.path)?;
        let num_damaged = training.go_back_to(iteration)?;
        if num_damaged > 0 {
            let folder = training.folder.trajectories_path();
            observer.note(&format!(
                "{num_damaged} places in {} are damaged: what they held is lost, the run goes on",
                folder.display()
            ));
        }
        training.mark_best()?;
        training.mark_reference()?;
        observer.note(&format!("resumed behind iteration {iteration}"));
        Ok(training)
    }

    /// Closes what the run holds beside its files; how many sandboxes could not be removed.
    pub async fn close(self) -> u64 {
        self.domains.close().await
    }

    /// The stage that the run is at goes on with the files that it left in a checkpoint.
    fn load_stage_files(&mut self, checkpoint: &Path) -> anyhow::Result<()> {
        let Some(mut running) = self.running.take() else { return Ok(()) };
        let loaded = running.load_files(self, checkpoint);
        self.running = Some(running);
        loaded.with_context(|| format!("go on with stage `{}`", self.stage.name))
    }

    /// Forgets what was recorded behind an iteration; how many places of the trajectories before are damaged.
    fn go_back_to(&mut self, iteration: u64) -> anyhow::Result<usize> {
        self.metrics.truncate_after(iteration)?;
        self.evaluations.truncate_after(iteration)?;
        self.timings.truncate_after(iteration)?;
        let num_damaged =
            self.store.truncate_after(iteration)? + self.failures.truncate_after(iteration)?;
        self.checkpoints.remove_after(iteration)?;
        Ok(num_damaged)
    }

    fn assemble(
        parts: Parts,
        budget: Budget,
        threads: usize,
        resumed_at: Option<u64>,
    ) -> anyhow::Result<Self> {
        let Parts { recipe, plan, folder, lock, domains, model, trainer, mut state } = parts;
        let stage = state.stage_in(&plan)?;
        let tokenizer = Arc::new(model.tokenizer.clone());
        let weights = trainer.weights(&model.trained)?;
        let version = trainer.version();
        let rule = model.draw_rule.as_ref();
        let policy =
            LocalPolicy::with_draw_rule("local", tokenizer, weights, version, rule, threads)
                .context("start the engine")?;
        let policy = Arc::new(policy);
        if let Some(grammar) = &recipe.episode.grammar {
            // Now rather than in the first turn: that of a large vocabulary takes seconds.
            policy.grammars().get(grammar).context("hold answers to `episode.grammar`")?;
        }
        let metrics = MetricsLog::open(&folder.metrics_path())?;
        let evaluations = MetricsLog::open(&folder.evaluations_path())?;
        let timings = MetricsLog::open(&folder.path().join("timings.jsonl"))?;
        let events = EventWriter::create(&folder.tensorboard_path(), resumed_at)?;
        let checkpoints = Checkpoints::open(&folder.checkpoints_path(), recipe.keep.checkpoints)?;
        let store = JsonlStore::open(folder.trajectories_path(), StoreConfig::default())?;
        let failures = Arc::new(FailureStore::beside(&folder.trajectories_path()));
        let seed = Seed::from_u64(recipe.seed);
        let mut training = Self {
            recipe,
            plan,
            folder,
            _lock: lock,
            domains,
            seed,
            model,
            policy,
            trainer,
            companions: BTreeMap::new(),
            learners: None,
            threads,
            stage,
            running: None,
            state,
            is_whole: true,
            metrics,
            evaluations,
            timings,
            events,
            checkpoints,
            store,
            failures,
            budget,
        };
        training.begin_stage()?;
        Ok(training)
    }

    /// Runs what is left of all stages.
    ///
    /// # Errors
    ///
    /// When a suite's environments fail for good, an update is not finite, or the run folder
    /// cannot be written; the last checkpoint stays good.
    pub async fn run(
        &mut self,
        cancellation: &Cancellation,
        observer: &dyn Observer,
    ) -> anyhow::Result<Outcome> {
        let (failures, budget) = (Arc::clone(&self.failures), self.budget.clone());
        let observer = &KeepsFailures { failures: &failures, budget: &budget, observer };
        let _watch = budget.watch(cancellation);
        let ran = self.run_stages(Watch { cancellation, observer }).await;
        let kept = budget.sync().context("keep what was spent");
        let outcome = ran?;
        kept?;
        Ok(match budget.reached() {
            Some(_) if outcome == Outcome::Stopped => Outcome::StoppedAtLimit,
            _ => outcome,
        })
    }

    async fn run_stages(&mut self, watch: Watch<'_>) -> anyhow::Result<Outcome> {
        let Watch { cancellation, observer } = watch;
        while let Some(planned) = self.plan.stages().get(self.stage.index) {
            let iterations = planned.stage.iterations();
            let about = planned.stage.budget(&planned.place.data);
            observer.stage(&planned.place.name, &about, self.stage.done, iterations);
            while self.stage.done < iterations {
                let is_stopped = cancellation.is_cancelled();
                if is_stopped || !self.iteration(&watch).await? {
                    return self.stop();
                }
            }
            if cancellation.is_cancelled() || !self.end_stage(&watch).await? {
                return self.stop();
            }
        }
        let metrics = self.folder.metrics()?;
        if !metrics.iter().any(|record| record.kind == "finished") {
            self.log(&MetricRecord::new(self.state.iteration, "finished"))?;
        }
        self.metrics.sync()?;
        Ok(Outcome::Finished)
    }

    /// What the run has spent, and the limit that stopped it if one did.
    pub fn spent(&self) -> SpendReport {
        self.budget.report()
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

    /// One iteration of the present stage, with what is due behind it; `false` when it was told to stop.
    async fn iteration(&mut self, watch: &Watch<'_>) -> anyhow::Result<bool> {
        let (started, before) = (Instant::now(), self.budget.report());
        let number = self.state.iteration + 1;
        self.failures.begin(number);
        let (seed, done) = (self.seed.derive("iteration", number), self.stage.done);
        let step = Step { number, done, seed, watch: *watch };
        let mut running = self.running.take().context("go on: no stage is under way")?;
        // A checkpoint that it makes of itself has what it began with.
        self.stage.own = running.state();
        let record = running.iterate(self, &step).await;
        self.running = Some(running);
        let Some(record) = record? else { return Ok(false) };
        self.failures.sync()?;

        self.is_whole = false;
        (self.state.iteration, self.stage.done) = (number, done + 1);
        let name = self.stage.name.clone();
        let record = record.with([("stage", name.clone())]);
        self.log(&record)?;
        let seconds = [("seconds", started.elapsed().as_secs_f64())];
        let spent = spend_values(&self.budget.since(&before));
        let timing = MetricRecord::new(number, &record.kind).with(seconds).with(spent);
        self.timings.append(&timing)?;
        watch.observer.iteration(&name, &record);

        let planned = &self.plan.stages()[self.stage.index];
        let is_last = self.stage.done == planned.stage.iterations();
        let is_evaluated =
            planned.stage.is_evaluated(self.stage.done, self.recipe.evaluation.every);
        let place = planned.place.clone();
        if is_evaluated && !self.evaluate_dev("evaluation", &place, watch).await? {
            // Incomplete: the iteration counts as not done, the last checkpoint stands.
            return Ok(false);
        }
        // The end of a stage makes a checkpoint of its own, with the trainer of the next one.
        let is_due = is_evaluated || number.is_multiple_of(self.recipe.keep.checkpoint_every);
        self.is_whole = true;
        if is_due && !is_last {
            self.save()?;
        }
        Ok(true)
    }

    /// What is due behind the last iteration of a stage; the next one begins. `false` when it was told to stop.
    async fn end_stage(&mut self, watch: &Watch<'_>) -> anyhow::Result<bool> {
        // 1. What the stage itself does there, and earlier domains again.
        let mut running = self.running.take().context("go on: no stage is under way")?;
        let ended = running.end(self, watch).await;
        let next_place = running.next_place();
        self.running = Some(running);
        ended?;
        if watch.cancellation.is_cancelled() || !self.re_evaluate(watch).await? {
            return Ok(false);
        }

        // 2. Where the next one that trains starts from, on data of its own.
        let index = self.stage.index;
        let planned = &self.plan.stages()[index];
        let next = self.plan.next_trained(index + 1);
        let is_trained = planned.stage.trainer().is_some();
        let is_measured = |next: &&PlannedStage| {
            is_trained && next.stage.has_baseline() && next.place.learners.is_empty()
        };
        if let Some(next) = next.filter(is_measured) {
            let (before, place) = (&planned.place, next.place.clone());
            let is_known = planned.plays()
                && before.learner == place.learner
                && before.data.is_same_suite(&place.data)
                && before.data.dev == place.data.dev;
            if !is_known && !self.evaluate_dev("evaluation", &place, watch).await? {
                return Ok(false);
            }
        }

        // 3. The next one begins, with its optimiser, on tasks that were not met yet.
        let place = self.plan.place(index, &self.state.surplus_tasks);
        let planned_end = place.first_task + self.plan.stages()[index].stage.num_tasks();
        let surplus = next_place.map_or(0, |next| next.saturating_sub(planned_end));
        if surplus > 0 {
            self.state.surplus_tasks.insert(place.name, surplus);
        }
        self.stage = StageState::at(&self.plan, index + 1, 0, None);
        if is_trained {
            if self.plan.next_trained(index + 1).is_some() {
                self.change_trainer()?;
            }
            self.begin_stage()?;
            self.is_whole = true;
            self.save()?;
        } else {
            self.begin_stage()?;
        }
        Ok(true)
    }

    /// Begins the stage that the run is at, or goes on with it.
    fn begin_stage(&mut self) -> anyhow::Result<()> {
        let index = self.stage.index;
        let planned = self.plan.stages().get(index);
        let own = self.stage.own.take();
        let begin = |planned: &PlannedStage| {
            let place = self.plan.place(index, &self.state.surplus_tasks);
            let begun = planned.stage.begin(&place, self.stage.done, own.as_ref());
            begun.with_context(|| format!("begin stage `{}`", planned.place.name))
        };
        self.running = planned.map(begin).transpose()?;
        Ok(())
    }

    /// The learner and the optimiser of the next stage take over, on the weights that were evaluated.
    fn change_trainer(&mut self) -> anyhow::Result<()> {
        let parameters = match self.trainer.averaged()? {
            Some(averaged) => averaged,
            None => self.trainer.parameters()?,
        };
        self.model.keep_head(&self.trainer);
        self.close_companions()?;
        let learner = self.plan.learner_at(self.stage.index);
        let parameters = if learner == self.model.learner {
            parameters
        } else {
            let lora = self.recipe.adapters().remove(&self.model.learner);
            let lora = lora.context("change learners: only adapters can be changed for others")?;
            self.model.switch_to(learner, parameters, &lora)?
        };
        let version = self.trainer.version();
        let config = self.plan.trainer_at(self.stage.index).clone();
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
        self.trainer = self.model.with_head(trainer.starting_at(version))?;
        self.open_companions(None)
    }

    fn stop(&mut self) -> anyhow::Result<Outcome> {
        if self.is_whole {
            self.save()?;
        }
        Ok(Outcome::Stopped)
    }
}

/// What a run is put together from.
struct Parts {
    recipe: Recipe,
    plan: Plan,
    folder: RunFolder,
    lock: RunLock,
    domains: Domains,
    model: Model,
    trainer: Trainer,
    state: State,
}

fn plan_of(recipe: &Recipe) -> Result<Plan, RecipeError> {
    Plan::of(recipe).map_err(|problems| RecipeError::Problems { problems })
}

/// Opens the suites of all stages; where several cannot be, all are told.
fn open_suites(recipe: &Recipe, plan: &Plan) -> anyhow::Result<Suites> {
    Suites::open(recipe, plan).map_err(|mut problems| {
        if problems.len() == 1 {
            return problems.remove(0);
        }
        let problems = problems.iter().map(|problem| format!("{problem:#}")).collect();
        RecipeError::Problems { problems }.into()
    })
}

/// What a run begins with, where its sandboxes come from, and the models that its draw rule asks.
struct Begun {
    fresh: Fresh,
    domains: Domains,
    rule_models: FoundModels,
}

async fn begin(
    recipe: &Recipe,
    plan: &Plan,
    suites: Suites,
    budget: &Budget,
    found_models: &FoundModels,
    watch: Watch<'_>,
) -> anyhow::Result<Begun> {
    let domains = suites.with_sandboxes(recipe, budget).await?;
    let placed = async {
        let mut fresh = Fresh::make(recipe, plan, &domains, watch).await?;
        fresh.check(plan)?;
        fresh.place(recipe)?;
        let rule_models = fresh.open_draw_rule(recipe, found_models).await?;
        Ok((fresh, rule_models))
    };
    match placed.await {
        Ok((fresh, rule_models)) => Ok(Begun { fresh, domains, rule_models }),
        Err(error) => {
            domains.close().await;
            Err(error)
        }
    }
}

/// Opens the suites and files of a recipe that is valid, and looks for the splits that it plays.
///
/// # Errors
///
/// All that is wrong with them.
pub fn check_data(recipe: &Recipe) -> anyhow::Result<()> {
    open_suites(recipe, &plan_of(recipe)?).map(|_| ())
}
