//! Reinforcement learning: groups of episodes, credit over them, updates.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::time::Instant;

use anyhow::Context;
use async_trait::async_trait;
use rand::seq::SliceRandom;
use serde_json::Value;
use spar_agent::credit::{AdvantageEstimator, BatchView, GroupView, open_estimator};
use spar_agent::filters::{GroupFilter, kept, open_filter};
use spar_agent::strategies::open_strategy;
use spar_agent::{CutBatch, CutGroup, TurnMask};
use spar_core::{Credit, Group, PerTurnOrToken, Sample, SampleOrigin, Signal, Signals, Trajectory};
use spar_predictors::Fit;
use spar_trainer::{
    DecoderGradient, FrozenModel, MeasuredTokens, MetricRecord, Objective, PreparedModel,
    TrainerConfig, UpdateMetrics, explained_variance, with_rehearsal,
};

use super::groups::{Collected, GroupOptions, GroupSource};
use super::hardest::{Hardest, Shown};
use super::reference::{Drawn, Reference};
use super::registry::written;
use super::rehearsal::Rehearsal;
use super::replay::Replay;
use super::turn_predictor::TurnPredictor;
use super::{Place, RunningStage, Stage, Step, WordsRequest};
use crate::recipe::{DataConfig, Recipe, ReferenceHold, ReinforceConfig};
use crate::training::demonstrations::words_of_random_play;
use crate::training::learners::{exchanged, learner_of_seat};
use crate::training::records::{with_collection, with_suites, with_updates};
use crate::training::run::Training;

/// Reinforcement learning.
pub(super) struct Reinforce {
    pub(super) config: ReinforceConfig,
}

#[async_trait(?Send)]
impl Stage for Reinforce {
    fn iterations(&self) -> u64 {
        self.config.iterations
    }

    fn num_tasks(&self) -> u64 {
        self.config.iterations * self.config.tasks as u64
    }

    fn splits(&self, data: &DataConfig) -> Vec<String> {
        vec![data.train.clone(), data.dev.clone()]
    }

    fn trainer(&self) -> Option<&TrainerConfig> {
        Some(&self.config.trainer)
    }

    fn max_turns(&self) -> Option<u32> {
        Some(self.config.max_turns)
    }

    fn has_baseline(&self) -> bool {
        true
    }

    fn is_evaluated(&self, done: u64, every: u64) -> bool {
        done.is_multiple_of(every) || done == self.config.iterations
    }

    fn has_reference(&self) -> bool {
        self.config.has_reference()
    }

    fn learners_problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        if self.config.objective.value_loss.is_some() {
            problems.push("learners: several at one time train no value heads".to_owned());
        }
        if self.config.predictor.is_some() {
            problems.push("learners: several at one time fit no predictor".to_owned());
        }
        if self.config.replay.is_some() {
            problems.push("learners: several at one time replay nothing".to_owned());
        }
        if self.config.imitate_hardest.is_some() {
            problems.push("learners: several at one time imitate nothing".to_owned());
        }
        if self.config.rehearse.is_some() {
            problems.push("learners: several at one time rehearse nothing".to_owned());
        }
        if self.config.trainer.average.is_some() {
            problems.push("learners: several at one time keep no average of weights".to_owned());
        }
        if self.has_reference() && self.config.reference != Some(ReferenceHold::AdapterOff) {
            let problem = "learners: several at one time are held to the model below them, set \
                           reference = \"adapter_off\"";
            problems.push(problem.to_owned());
        }
        problems
    }

    fn needs_learners(&self) -> Vec<&'static str> {
        let exchange = self.config.exchange_every.map(|_| "exchange_every");
        let sequential = self.config.sequential_updates.then_some("sequential_updates");
        exchange.into_iter().chain(sequential).collect()
    }

    fn trains_value_head(&self) -> bool {
        self.config.objective.value_loss.is_some()
    }

    fn trains_values_alone(&self) -> bool {
        self.config.objective.name == "values_alone"
    }

    fn needs_values(&self) -> bool {
        self.config.needs_values()
    }

    fn branches(&self) -> bool {
        let strategy = open_strategy(&self.config.strategy);
        strategy.is_ok_and(|strategy| strategy.branches() || strategy.adds_demonstrations())
    }

    fn problems(&self, recipe: &Recipe) -> Vec<String> {
        self.config.problems(recipe)
    }

    fn budget(&self, data: &DataConfig) -> String {
        let ReinforceConfig { iterations, tasks, group_size, .. } = self.config;
        format!(
            "{iterations} iterations of {tasks} tasks x {group_size} on `{}` of `{}`, {} episodes; {} \
             credit, {} objective, {}",
            data.train,
            data.label(),
            iterations * (tasks * group_size) as u64,
            self.config.credit.kind,
            self.config.objective.name,
            self.config.trainer.optimizer.name,
        )
    }

    fn options(&self) -> toml::Table {
        written(&self.config)
    }

    async fn words(&self, request: &WordsRequest<'_>) -> anyhow::Result<Vec<Vec<String>>> {
        words_of_random_play(request).await
    }

    fn begin(
        &self,
        place: &Place,
        done: u64,
        state: Option<&Value>,
    ) -> anyhow::Result<Box<dyn RunningStage>> {
        let config = self.config.clone();
        let groups = GroupOptions {
            tasks: config.tasks,
            group_size: config.group_size,
            max_turns: config.max_turns,
            horizon: config.horizon.clone(),
            sampler: config.sampler.clone(),
            strategy: config.strategy.clone(),
            shapers: config.shapers.clone(),
        };
        Ok(Box::new(Reinforcement {
            groups: GroupSource::open(groups, place, done, state)?,
            credit: open_estimator(&config.credit)?,
            filter: open_filter(&config.filter.clone().unwrap_or_default())?,
            reference: Reference::of(config.reference_soup.clone()),
            replay: config.replay.clone().map(Replay::new),
            hardest: config.imitate_hardest.clone().map(Hardest::new),
            rehearsal: config.rehearse.clone().map(Rehearsal::new),
            predictor: None,
            place: place.clone(),
            config,
        }))
    }
}

/// Reinforcement learning that is under way.
struct Reinforcement {
    config: ReinforceConfig,
    place: Place,
    groups: GroupSource,
    credit: Box<dyn AdvantageEstimator>,
    filter: Box<dyn GroupFilter>,
    reference: Reference,
    /// What was played before, where some of it is trained again.
    replay: Option<Replay>,
    /// The tasks that nobody solves, where these are demonstrated.
    hardest: Option<Hardest>,
    /// What the policy did before it was trained, where that is rehearsed.
    rehearsal: Option<Rehearsal>,
    /// Open from the first iteration on, where the stage has one.
    predictor: Option<TurnPredictor>,
}

#[async_trait(?Send)]
impl RunningStage for Reinforcement {
    async fn iterate(
        &mut self,
        run: &mut Training,
        step: &Step<'_>,
    ) -> anyhow::Result<Option<MetricRecord>> {
        // 1. Groups of episodes under the present weights.
        let started = Instant::now();
        let wanted = self.config.tasks;
        let num_replayed = self.replay.as_ref().map_or(0, |replay| replay.num_replayed(wanted));
        let fresh = wanted - num_replayed;
        let seated = exchanged(&self.place.learners, self.config.exchange_every, step.done);
        run.seat_learners(seated.clone());
        let collected = self.groups.collect(run, &self.place, step, fresh).await?;
        // Evaluations have them where the recipe says.
        run.seat_learners(self.place.learners.clone());
        let Some(collected) = collected else { return Ok(None) };
        let Collected { collection, cut, places, seats, num_dropped, waiting } = collected;
        let rollout_seconds = started.elapsed().as_secs_f64();

        // 2. Each learner learns from its own groups: all of them, where there is one.
        let started = Instant::now();
        let present = run.model.learner.clone();
        let mut learned = Vec::new();
        let fresh = &collection.groups;
        let seed = step.seed.derive("replay", 0);
        let replayed = self.replay.as_mut().map(|it| it.groups(num_replayed, fresh, seed));
        let (trained, cut) = with_replayed(fresh, cut, replayed.unwrap_or_default())?;
        let mut advantages: Vec<f64> = vec![0.0; trained.len()];
        let mut of_learners = by_learner(&self.place, (&seated, &seats), &trained, cut)?;
        let mut changes = self.config.sequential_updates.then(EarlierChanges::default);
        if changes.is_some() {
            of_learners.shuffle(&mut step.seed.derive("order of learners", 0).rng());
        }
        for OfLearner { learner, groups, cut, numbers } in of_learners {
            run.turn_to(&learner)?;
            let found =
                self.learn(run, step, (groups.as_ref(), cut), &learner, changes.as_mut())?;
            for (number, advantage) in numbers.iter().zip(&found.group_advantages) {
                // Of a group with a learner for each seat, what moves most.
                advantages[*number] = advantages[*number].max(*advantage);
            }
            learned.push((learner, found));
        }
        run.turn_to(&present)?;
        self.groups.learned(&collection.groups, &places, &advantages);
        let shown = match &mut self.hardest {
            None => None,
            Some(hardest) => {
                hardest.see(&collection.groups, &places);
                let Some(shown) = hardest.imitate(run, &self.place, step, &self.config).await?
                else {
                    // The weights have moved on: the run goes back to the iteration before.
                    run.is_whole = false;
                    return Ok(None);
                };
                Some((hardest.len(), shown))
            }
        };

        let resets = match &self.config.reference_reset {
            None => None,
            Some(config) => {
                let counts = &collection.counts;
                let success = counts.successes as f64 / counts.finished.max(1) as f64;
                Some(self.reference.see(run, config, step.done + 1, success)?)
            }
        };

        // 3. What is told of it.
        let times = [
            ("rollout_seconds", rollout_seconds),
            ("update_seconds", started.elapsed().as_secs_f64()),
        ];
        run.timings.append(&MetricRecord::new(step.number, "parts").with(times))?;
        let record = with_collection(MetricRecord::new(step.number, "reinforce"), &collection);
        let suite = run.domains.of(&self.place.data).suite.as_ref();
        let record = with_suites(record, &collection, suite);
        let record = match &self.config.horizon {
            None => record,
            Some(horizon) => {
                let most = run.recipe.episode.sampling.max_tokens;
                record.with([
                    ("max_turns", f64::from(horizon.max_turns(step.done, self.config.max_turns))),
                    ("max_answer_tokens", horizon.max_tokens(step.done, most) as f64),
                ])
            }
        };
        let record = record.with(self.groups.strategy_learned());
        let record = record.with(self.groups.shapers().metrics());
        let record = record.with(resets.map(|resets| ("reference_resets", resets as f64)));
        let replayed = self.replay.as_ref().map(|_| ("replayed_groups", num_replayed as f64));
        let record = record.with(replayed);
        let record = record.with(waiting.into_iter().flat_map(|(groups, tokens)| {
            [("waiting_groups", groups as f64), ("waiting_tokens", tokens as f64)]
        }));
        let record = match &shown {
            None => record,
            Some((waiting, shown)) => with_shown(record, *waiting, shown),
        };
        let dropped = Some(("dropped_groups", num_dropped as f64)).filter(|_| num_dropped > 0);
        let record = with_learned(record.with(dropped), &self.config, &self.place, &learned);
        Ok(Some(record))
    }

    fn next_place(&self) -> Option<u64> {
        Some(self.groups.next_place())
    }

    fn state(&self) -> Option<Value> {
        self.groups.state()
    }

    fn save_files(&self, folder: &Path) -> anyhow::Result<()> {
        self.groups.save(folder)?;
        self.hardest.as_ref().map_or(Ok(()), |hardest| hardest.save(folder))?;
        self.rehearsal.as_ref().map_or(Ok(()), |rehearsal| rehearsal.save(folder))?;
        self.replay.as_ref().map_or(Ok(()), |replay| replay.save(folder))?;
        if self.config.reference_reset.is_some() {
            self.reference.save(folder)?;
        }
        self.predictor.as_ref().map_or(Ok(()), |predictor| predictor.save(folder))
    }

    fn load_files(&mut self, run: &Training, folder: &Path) -> anyhow::Result<()> {
        // Before the first iteration there is nothing to go on with.
        if self.groups.state().is_none() {
            return Ok(());
        }
        self.groups.load(folder)?;
        self.hardest.as_mut().map_or(Ok(()), |hardest| hardest.load(folder))?;
        self.rehearsal.as_mut().map_or(Ok(()), |rehearsal| rehearsal.load(folder))?;
        self.replay.as_mut().map_or(Ok(()), |replay| replay.load(folder))?;
        if self.config.reference_reset.is_some() {
            self.reference.load(run, folder)?;
        }
        self.predictor = self.fresh_predictor(run)?;
        self.predictor.as_mut().map_or(Ok(()), |predictor| predictor.load(folder))
    }
}

/// Adds what was shown of the hardest tasks, of which so many wait.
fn with_shown(record: MetricRecord, waiting: usize, shown: &Shown) -> MetricRecord {
    let record = record.with([
        ("hardest_waiting", waiting as f64),
        ("hardest_demonstrated", shown.demonstrated as f64),
        ("hardest_imitated", shown.imitated as f64),
    ]);
    let losses: Vec<f64> = shown.updates.iter().map(|update| update.loss).collect();
    let mean = losses.iter().sum::<f64>() / losses.len().max(1) as f64;
    record.with((!losses.is_empty()).then_some(("hardest_loss", mean)))
}

/// What came of the updates on a learner's groups.
struct Learned {
    num_samples: usize,
    num_with_gradient: usize,
    num_filtered: usize,
    /// Samples that were rehearsed beside these.
    num_rehearsed: usize,
    /// The mean over a group's trajectories of the mean absolute advantage of their tokens, by group.
    group_advantages: Vec<f64>,
    /// Of the predictor, where there is one.
    fit: Option<Fit>,
    explained_variance: Option<f64>,
    /// The mean of the finite returns that credit saw, shaped; absent where there are none.
    mean_return: Option<f64>,
    updates: Vec<UpdateMetrics>,
}

/// Fresh groups with their samples, and behind them those that are replayed.
fn with_replayed<'a>(
    fresh: &'a [Group],
    mut cut: Vec<CutGroup>,
    replayed: Vec<Group>,
) -> anyhow::Result<(Cow<'a, [Group]>, Vec<CutGroup>)> {
    if replayed.is_empty() {
        return Ok((fresh.into(), cut));
    }
    for group in &replayed {
        cut.push(CutGroup::new(group)?);
    }
    let mut all = fresh.to_vec();
    all.extend(replayed);
    Ok((all.into(), cut))
}

/// The groups that a learner learns from.
struct OfLearner<'a> {
    learner: String,
    groups: Cow<'a, [Group]>,
    cut: Vec<CutGroup>,
    /// Their numbers among all groups of the iteration.
    numbers: Vec<usize>,
}

/// The groups that each learner of a stage learns from, which are seated so: whole ones, or what its seats have of them, whose names are those of each group.
fn by_learner<'a>(
    place: &Place,
    (seated, seats): (&BTreeMap<String, String>, &[Vec<String>]),
    groups: &'a [Group],
    cut: Vec<CutGroup>,
) -> anyhow::Result<Vec<OfLearner<'a>>> {
    if place.learners.is_empty() {
        let (learner, numbers) = (place.learner.clone(), (0..groups.len()).collect());
        return Ok(vec![OfLearner { learner, groups: groups.into(), cut, numbers }]);
    }
    let mut found: BTreeMap<&String, OfLearner<'a>> = BTreeMap::new();
    for (number, (group, cut)) in groups.iter().zip(cut).enumerate() {
        // 1. Who has played which of its trajectories.
        let mut parts: BTreeMap<&String, Vec<&Trajectory>> = BTreeMap::new();
        for trajectory in &group.trajectories {
            let seat = seats[number].get(trajectory.seat.index()).map_or("", String::as_str);
            if let Some(learner) = learner_of_seat(seated, &trajectory.environment, seat) {
                parts.entry(learner).or_default().push(trajectory);
            }
        }
        // 2. Each has a group of its own of that.
        let mut whole = Some(cut);
        for (learner, trajectories) in parts {
            let own = found.entry(learner).or_insert_with(|| OfLearner {
                learner: learner.clone(),
                groups: Cow::Owned(Vec::new()),
                cut: Vec::new(),
                numbers: Vec::new(),
            });
            let is_whole = trajectories.len() == group.trajectories.len();
            let part = Group {
                task: group.task.clone(),
                trajectories: trajectories.into_iter().cloned().collect(),
            };
            own.cut.push(match whole.take_if(|_| is_whole) {
                Some(cut) => cut,
                None => CutGroup::new(&part)?,
            });
            own.groups.to_mut().push(part);
            own.numbers.push(number);
        }
    }
    Ok(found.into_values().collect())
}

/// What the updates of learners before have changed of the probability of what they did, by episode.
#[derive(Debug, Default)]
struct EarlierChanges(HashMap<u64, f64>);

impl EarlierChanges {
    /// The most that a factor changes advantages, either way.
    const MOST: f64 = 2.0;

    /// What the advantages of an episode are multiplied by.
    fn factor(&self, episode: u64) -> f64 {
        let log = self.0.get(&episode).copied().unwrap_or(0.0);
        let most = Self::MOST.ln();
        log.clamp(-most, most).exp()
    }

    /// Multiplies advantages, by trajectory.
    fn apply(&self, groups: &[Group], credit: &mut Credit) {
        let trajectories = groups.iter().flat_map(|group| &group.trajectories);
        let (PerTurnOrToken::Turns(values) | PerTurnOrToken::Tokens(values)) =
            &mut credit.advantages;
        for (trajectory, values) in trajectories.zip(values) {
            let factor = self.factor(trajectory.episode);
            values.iter_mut().for_each(|value| *value *= factor);
        }
    }

    /// Takes note of what samples are now as probable as, whose old log-probabilities are those of now.
    fn note(&mut self, samples: &[Sample]) {
        for sample in samples {
            let change: f64 = (0..sample.len())
                .filter(|t| sample.policy_weights[*t] != 0.0)
                .map(|t| f64::from(sample.old_logprobs[t]) - f64::from(sample.behavior_logprobs[t]))
                .sum();
            *self.0.entry(sample.episode).or_default() += change;
        }
    }
}

/// The mean over the trajectories of each group of the mean absolute advantage of their tokens; 0 where none has a token.
fn group_advantages(groups: &[Group], view: &BatchView<'_>, credit: &Credit) -> Vec<f64> {
    let tokens = credit.advantages.clone().into_tokens(&view.num_tokens());
    let mean = |values: &mut dyn Iterator<Item = f64>| {
        let (sum, count) = values.fold((0.0, 0.0), |(sum, count), it| (sum + it, count + 1.0));
        if count > 0.0 { sum / count } else { 0.0 }
    };
    let mut of_trajectories =
        tokens.iter().map(|tokens| mean(&mut tokens.iter().map(|it| it.abs())));
    let of_group =
        |group: &Group| mean(&mut of_trajectories.by_ref().take(group.trajectories.len()));
    groups.iter().map(of_group).collect()
}

/// Adds what the learners learned: over all of them, and of each where there are several.
fn with_learned(
    record: MetricRecord,
    config: &ReinforceConfig,
    place: &Place,
    learned: &[(String, Learned)],
) -> MetricRecord {
    let sum = |count: fn(&Learned) -> usize| {
        learned.iter().map(|(_, learned)| count(learned) as f64).sum::<f64>()
    };
    let mut record = record.with([
        ("samples", sum(|learned| learned.num_samples)),
        ("samples_with_gradient", sum(|learned| learned.num_with_gradient)),
    ]);
    let num_filtered = sum(|learned| learned.num_filtered);
    record = record.with(config.filter.as_ref().map(|_| ("filtered", num_filtered)));
    let num_rehearsed = sum(|learned| learned.num_rehearsed);
    record = record.with(config.rehearse.as_ref().map(|_| ("rehearsed", num_rehearsed)));
    if let [(_, only)] = learned {
        record = record.with(only.explained_variance.map(|share| ("explained_variance", share)));
        record = record.with(only.mean_return.map(|mean| ("shaped_return", mean)));
        if let Some(fit) = &only.fit {
            record = record.with([("predictor_examples", fit.num_examples as f64)]);
            record = record.with(fit.last_loss().map(|loss| ("predictor_loss", loss)));
        }
    }
    if !place.learners.is_empty() {
        for (learner, learned) in learned {
            let count = learned.updates.len();
            let loss = learned.updates.iter().map(|update| update.loss).sum::<f64>();
            record = record.with([
                (format!("samples/{learner}"), learned.num_samples as f64),
                (format!("updates/{learner}"), count as f64),
                (format!("loss/{learner}"), loss / count.max(1) as f64),
            ]);
        }
    }
    let updates: Vec<UpdateMetrics> =
        learned.iter().flat_map(|(_, learned)| learned.updates.iter().cloned()).collect();
    with_updates(record, &updates)
}

impl Reinforcement {
    /// Updates the present learner by its groups, which credit sees all at once.
    fn learn(
        &mut self,
        run: &mut Training,
        step: &Step<'_>,
        (groups, cut): (&[Group], Vec<CutGroup>),
        learner: &str,
        changes: Option<&mut EarlierChanges>,
    ) -> anyhow::Result<Learned> {
        let seed = step.seed.derive("updates", 0);
        let seed = match self.place.learners.is_empty() {
            true => seed,
            false => seed.derive("learner", learner),
        };
        // 1. Credit over all groups at once: what is measured first, then advantages by shaped rewards.
        let temperature = run.recipe.episode.sampling.temperature;
        let model = DecoderGradient::of(run.model.trained.clone(), temperature)
            .with_activation_bytes(self.config.trainer.activation_bytes())
            .with_grammars(run.policy.grammars().clone())
            .with_draw_rule(run.model.draw_rule.clone());
        let mut cut = CutBatch::join(groups, cut);
        let (asked, tokens) = (self.credit.needs().to_vec(), MeasuredTokens::Sampled);
        self.fill_signals(run, &model, &asked, tokens, cut.samples_mut())?;
        let view = BatchView::shaped(groups, self.groups.shapers());
        let mut signals = cut.signals();
        let fit = self.predict(run, step, (&cut, &view), &mut signals)?;
        let mut credit = self.credit.estimate(&view, &signals)?;
        if let Some(changes) = &changes {
            changes.apply(groups, &mut credit);
        }
        let group_advantages = group_advantages(groups, &view, &credit);
        let returns: Vec<f64> = view.groups().iter().flat_map(GroupView::returns).collect();
        let finite: Vec<f64> = returns.into_iter().filter(|it| it.is_finite()).collect();
        let mean_return =
            (!finite.is_empty()).then(|| finite.iter().sum::<f64>() / finite.len() as f64);
        let mut kept = kept(self.filter.as_ref(), &view);
        let num_filtered = kept.iter().filter(|kept| !**kept).count();
        if self.predictor.as_ref().is_some_and(|it| it.is_warming_up(step.done)) {
            kept.fill(false);
        }
        if let Some(rehearsal) = self.rehearsal.as_mut().filter(|it| it.is_keeping(step.done)) {
            rehearsal.keep(groups);
            kept.fill(false);
        }
        let objective = self.objective()?;
        let credit = self.config.turn_mask().hide(groups, credit);
        let credit = match self.config.mask_shared_turns {
            true => TurnMask::Shared.hide(groups, credit),
            false => credit,
        };
        let credit = self.config.shared_turns(&*objective).settle(&view, credit, &kept)?;
        let mut samples = match self.groups.adds_demonstrations() {
            true => cut.weigh_with_demonstrations(&credit, &kept)?,
            false => cut.weigh(&credit, &kept)?,
        };
        let is_outside = |sample: &Sample| sample.origin == SampleOrigin::Outside;
        if samples.iter().any(is_outside) {
            let (mut outside, own): (Vec<Sample>, Vec<Sample>) =
                samples.into_iter().partition(is_outside);
            self.measure_outside(run, &model, &mut outside)?;
            samples = own;
            samples.extend(outside);
        }
        if let Some(replay) = &mut self.replay {
            samples.extend(replay.samples(
                groups,
                &credit,
                &kept,
                step.seed.derive("replay", 1),
            )?);
        }
        let with_gradient = samples.iter().filter(|sample| objective.has_gradient(sample)).count();

        // 2. Updates.
        // What credit asked for is there for all samples, these among them.
        let is_filled = |signal: &Signal| asked.contains(signal);
        let left: Vec<Signal> = objective.needs().signals().filter(|it| !is_filled(it)).collect();
        self.fill_signals(run, &model, &left, MeasuredTokens::Weighed, &mut samples)?;
        let explained_variance = explained_variance(&samples);
        let num_samples = samples.len();
        let rehearsal = self.rehearsal.as_ref().filter(|it| !it.is_keeping(step.done));
        if let Some(rehearsal) = rehearsal {
            let needs = objective.needs();
            let mut rehearsed = rehearsal.samples(step.seed.derive("rehearsal", 0))?;
            let signals: Vec<Signal> = needs.signals().collect();
            self.fill_signals(run, &model, &signals, MeasuredTokens::Weighed, &mut rehearsed)?;
            for sample in rehearsed.iter_mut().filter(|_| needs.returns) {
                // Of which no token counts.
                sample.returns = vec![0.0; sample.len()];
            }
            samples.extend(rehearsed);
        }
        let updates: Vec<UpdateMetrics> = run.trainer.iterate(
            &samples,
            objective.as_ref(),
            self.config.objective.aggregation,
            &model,
            seed,
            step.done as f32 / self.config.iterations as f32,
        )?;
        if let Some(changes) = changes {
            let mut now = samples.clone();
            self.fill_signals(run, &model, &[Signal::Old], MeasuredTokens::Weighed, &mut now)?;
            changes.note(&now);
        }
        Ok(Learned {
            num_samples,
            num_with_gradient: with_gradient,
            num_filtered,
            group_advantages,
            fit,
            num_rehearsed: samples.len() - num_samples,
            explained_variance,
            mean_return,
            updates,
        })
    }

    /// What is minimised.
    fn objective(&self) -> anyhow::Result<Box<dyn Objective>> {
        let objective = self.config.objective.build()?;
        Ok(match &self.config.rehearse {
            None => objective,
            Some(rehearse) => with_rehearsal(objective, rehearse.options()),
        })
    }

    /// Takes the log-probabilities of the present policy for those of samples that somebody else has written.
    fn measure_outside(
        &self,
        run: &Training,
        model: &DecoderGradient,
        samples: &mut [Sample],
    ) -> anyhow::Result<()> {
        let tokens = MeasuredTokens::Weighed;
        run.trainer.fill_signals(samples, &[Signal::Old], tokens, model)?;
        let version = run.trainer.version();
        for sample in samples {
            sample.behavior_logprobs.clone_from(&sample.old_logprobs);
            sample.versions.fill(version);
        }
        Ok(())
    }

    /// The stage's predictor before it has learned anything, where there is one.
    fn fresh_predictor(&self, run: &Training) -> anyhow::Result<Option<TurnPredictor>> {
        let open = |config| {
            let seed = run.seed.derive("predictor", &self.place.name);
            TurnPredictor::open(config, run.model.config.hidden_size, seed)
        };
        self.config.predictor.as_ref().map(open).transpose()
    }

    /// Fits the predictor to what was played, where there is one, and fills in what it says of that.
    fn predict(
        &mut self,
        run: &Training,
        step: &Step<'_>,
        (cut, view): (&CutBatch<'_>, &BatchView<'_>),
        signals: &mut Signals,
    ) -> anyhow::Result<Option<Fit>> {
        if self.predictor.is_none() {
            self.predictor = self.fresh_predictor(run)?;
        }
        let needs_model = self.predictor.as_ref().is_some_and(TurnPredictor::needs_model);
        let model = needs_model.then(|| self.reference_model(run)).transpose()?;
        let frozen = model.as_ref().map(|model| FrozenModel {
            model: model.as_ref(),
            hidden_size: run.model.config.hidden_size,
            micro_batch_tokens: self.config.trainer.micro_batch_tokens,
        });
        let Some(predictor) = &mut self.predictor else { return Ok(None) };
        let seed = step.seed.derive("predictor", 0);
        let fit = predictor.fill(cut, view, frozen.as_ref(), signals, seed);
        Ok(Some(fit.context("fit the predictor of turns")?))
    }

    /// How the reference model is held.
    fn reference_hold(&self, run: &Training) -> anyhow::Result<ReferenceHold> {
        let has_adapter = !run.recipe.adapters().is_empty();
        let hold = self.config.reference_hold(has_adapter, self.place.is_first);
        hold.context("read the reference model: nothing asks for one")
    }

    fn reference_model(&self, run: &Training) -> anyhow::Result<Box<dyn PreparedModel>> {
        self.reference.model(run, self.reference_hold(run)?, &Drawn::by_policy(run))
    }

    /// Fills signals in the streams of samples, those that are measured at the same weights in one pass.
    ///
    /// What [`ReinforceConfig::missing_signal`] does not miss has its source here.
    fn fill_signals(
        &self,
        run: &Training,
        model: &DecoderGradient,
        signals: &[Signal],
        tokens: MeasuredTokens,
        samples: &mut [Sample],
    ) -> anyhow::Result<()> {
        if signals.contains(&Signal::Reference) {
            let hold = self.reference_hold(run)?;
            let budget = self.config.trainer.micro_batch_tokens;
            let drawn = Drawn::by_policy(run);
            self.reference.fill(run, hold, samples, tokens, &drawn, budget)?;
        }
        Ok(run.trainer.fill_signals(samples, signals, tokens, model)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_learners_heed_what_earlier_ones_have_changed() {
        let sample = |episode: u64, changes: &[f32]| Sample {
            episode,
            tokens: vec![0; changes.len()],
            // The first token was observed.
            policy_weights: (0..changes.len()).map(|t| f32::from(u8::from(t > 0))).collect(),
            behavior_logprobs: vec![-1.0; changes.len()],
            old_logprobs: changes.iter().map(|change| change - 1.0).collect(),
            ..Sample::default()
        };
        let mut changes = EarlierChanges::default();
        changes.note(&[sample(1, &[9.0, 0.25]), sample(2, &[0.0, -0.5, -5.0])]);
        changes.note(&[sample(1, &[0.0, 0.25])]);
        let factors = [1, 2, 3].map(|episode| changes.factor(episode));
        assert!((factors[0] - 0.5_f64.exp()).abs() < 1e-6, "{factors:?}");
        assert!((factors[1] - 0.5).abs() < 1e-12, "it is kept within bounds");
        assert_eq!(factors[2], 1.0, "nobody else has acted in it");
        let record = |episode: u64| {
            let record = serde_json::json!({
                "version": 5, "episode": episode, "task": "t", "environment": "e",
                "seed": spar_core::Seed::from_u64(1), "policy": "p",
                "first_observation": { "text": "", "state_key": "" }, "turns": [],
                "end": { "kind": "terminated" }, "success": false,
                "wall_time": { "secs": 0, "nanos": 0 },
            });
            Trajectory::from_json(record.to_string().as_bytes()).unwrap()
        };
        let groups = [Group { task: "t".to_owned(), trajectories: [2, 3].map(record).into() }];
        let mut credit = Credit::of_turns(vec![vec![1.0, -4.0], vec![3.0]]);
        changes.apply(&groups, &mut credit);
        let halved = vec![vec![0.5, -2.0], vec![3.0]];
        assert_eq!(credit.advantages, PerTurnOrToken::Turns(halved));
    }
}
