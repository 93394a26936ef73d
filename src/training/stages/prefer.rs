//! Learning from preferences: pairs of answers, of which one was chosen.

use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, ensure};
use async_trait::async_trait;
use serde_json::Value;
use spar_agent::credit::GroupView;
use spar_agent::strategies::StrategyConfig;
use spar_agent::{TurnMask, group_samples};
use spar_core::{Group, Preference, Sample, Trajectory};
use spar_policy::Tokenizer;
use spar_tasks::RewardShapers;
use spar_trainer::{
    DecoderGradient, MeasuredTokens, MetricRecord, Objective, TrainerConfig, UpdateMetrics,
    measure_held_out,
};

use super::groups::{Collected, GroupOptions, GroupSource};
use super::reference::{Drawn, Reference};
use super::registry::written;
use super::{Place, RunningStage, Stage, Step, WordsRequest};
use crate::recipe::{DataConfig, PairsConfig, PreferConfig, Recipe};
use crate::training::demonstrations::{TOKENIZER_TASKS, words_of_random_play};
use crate::training::pairs::{PreferencePair, read_pairs};
use crate::training::records::{with_collection, with_suites, with_updates};
use crate::training::run::Training;
use crate::training::shuffled_places::shuffled_places;

/// The most pairs that a model refuses and that are told of.
const MAX_REFUSED: usize = 20;
/// At which answers in files are read: nobody sampled them.
const FILE_TEMPERATURE: f32 = 1.0;
/// Answers in files were not drawn by the run's rule.
const IN_FILES: Drawn = Drawn { temperature: FILE_TEMPERATURE, rule: None };

/// Learning from preferences.
pub(super) struct Prefer {
    pub(super) config: PreferConfig,
}

impl Prefer {
    fn all_files(&self) -> Vec<PathBuf> {
        let of = |pairs: &PairsConfig| pairs.files.iter().chain(&pairs.held_out).cloned().collect();
        self.config.pairs.as_ref().map(of).unwrap_or_default()
    }
}

#[async_trait(?Send)]
impl Stage for Prefer {
    fn iterations(&self) -> u64 {
        self.config.iterations
    }

    fn num_tasks(&self) -> u64 {
        match self.config.pairs {
            Some(_) => 0,
            None => self.config.iterations * self.config.tasks as u64,
        }
    }

    fn splits(&self, data: &DataConfig) -> Vec<String> {
        match self.config.pairs {
            Some(_) => Vec::new(),
            None => vec![data.train.clone(), data.dev.clone()],
        }
    }

    fn trainer(&self) -> Option<&TrainerConfig> {
        Some(&self.config.trainer)
    }

    fn max_turns(&self) -> Option<u32> {
        self.config.pairs.is_none().then_some(self.config.max_turns)
    }

    fn has_baseline(&self) -> bool {
        self.config.pairs.is_none()
    }

    fn is_evaluated(&self, done: u64, every: u64) -> bool {
        let is_due = done.is_multiple_of(every) || done == self.config.iterations;
        self.config.pairs.is_none() && is_due
    }

    fn has_reference(&self) -> bool {
        self.config.has_reference()
    }

    fn problems(&self, recipe: &Recipe) -> Vec<String> {
        self.config.problems(recipe)
    }

    fn data_problems(&self) -> Vec<String> {
        read_pairs(&self.all_files()).err().unwrap_or_default()
    }

    fn files(&self) -> Vec<PathBuf> {
        self.all_files()
    }

    fn model_problems(&self, tokenizer: &Tokenizer) -> Vec<String> {
        match read_pairs(&self.all_files()) {
            Ok(pairs) => {
                let refused = pairs.iter().filter_map(|pair| pair.samples(tokenizer, 0).err());
                refused.take(MAX_REFUSED).map(|error| format!("{error:#}")).collect()
            }
            Err(problems) => problems,
        }
    }

    fn budget(&self, data: &DataConfig) -> String {
        let PreferConfig { iterations, tasks, group_size, .. } = self.config;
        let objective = &self.config.objective.name;
        let Some(pairs) = &self.config.pairs else {
            return format!(
                "{iterations} iterations of {tasks} tasks x {group_size} on `{}` of `{}`, the best of each against \
                 the worst; {objective} objective",
                data.train, data.suite
            );
        };
        let files: Vec<_> =
            pairs.files.iter().map(|path| format!("`{}`", path.display())).collect();
        let count = match pairs.per_iteration {
            Some(count) => format!("{count} pairs"),
            None => "all pairs".to_owned(),
        };
        format!("{iterations} iterations of {count} of {}; {objective} objective", files.join(", "))
    }

    fn options(&self) -> toml::Table {
        written(&self.config)
    }

    async fn words(&self, request: &WordsRequest<'_>) -> anyhow::Result<Vec<Vec<String>>> {
        let Some(pairs) = &self.config.pairs else { return words_of_random_play(request).await };
        let pairs = read_pairs(&pairs.files).map_err(unreadable)?;
        let few = pairs.iter().take(TOKENIZER_TASKS as usize);
        Ok(few.flat_map(PreferencePair::words).collect())
    }

    fn begin(
        &self,
        place: &Place,
        done: u64,
        state: Option<&Value>,
    ) -> anyhow::Result<Box<dyn RunningStage>> {
        let config = self.config.clone();
        let groups = match &config.pairs {
            Some(_) => None,
            None => {
                let options = GroupOptions {
                    tasks: config.tasks,
                    group_size: config.group_size,
                    max_turns: config.max_turns,
                    horizon: None,
                    sampler: config.sampler.clone(),
                    strategy: StrategyConfig::default(),
                    shapers: config.shapers.clone(),
                };
                Some(GroupSource::open(options, place, done, state)?)
            }
        };
        let reference = Reference::default();
        let (place, files) = (place.clone(), None);
        Ok(Box::new(Preferring { config, place, groups, files, reference }))
    }
}

/// Learning from preferences that is under way.
struct Preferring {
    config: PreferConfig,
    place: Place,
    /// Where pairs come from, unless they are in files.
    groups: Option<GroupSource>,
    /// Those in files, once they have been read.
    files: Option<FilePairs>,
    reference: Reference,
}

/// The pairs of files, as the samples of both answers; those of the reference model are read when a pair is first
/// met.
struct FilePairs {
    trained: Vec<Vec<Sample>>,
    held_out: Vec<Sample>,
}

/// What an iteration learns from.
struct Compared {
    /// The samples of all pairs.
    samples: Vec<Sample>,
    /// How they were drawn, which their log-probabilities refer to.
    drawn: Drawn,
    record: MetricRecord,
}

#[async_trait(?Send)]
impl RunningStage for Preferring {
    async fn iterate(
        &mut self,
        run: &mut Training,
        step: &Step<'_>,
    ) -> anyhow::Result<Option<MetricRecord>> {
        // 1. Pairs, with their log-probabilities under the reference model.
        let started = Instant::now();
        let compared = match self.config.pairs.clone() {
            Some(pairs) => Some(self.take_from_files(run, &pairs, step)?),
            None => self.play(run, step).await?,
        };
        let Some(Compared { samples, drawn, record }) = compared else { return Ok(None) };
        if samples.is_empty() {
            step.watch
                .observer
                .note("no group had a best and a worst, so that nothing was compared");
        }
        let pair_seconds = started.elapsed().as_secs_f64();

        // 2. Updates.
        let started = Instant::now();
        let config = &self.config;
        let objective = config.objective.build()?;
        let model = DecoderGradient::of(run.model.trained.clone(), drawn.temperature)
            .with_draw_rule(drawn.rule)
            .with_activation_bytes(config.trainer.activation_bytes())
            .with_grammars(run.policy.grammars().clone());
        let updates: Vec<UpdateMetrics> = run.trainer.iterate(
            &samples,
            objective.as_ref(),
            config.objective.aggregation,
            &model,
            step.seed.derive("updates", 0),
            step.done as f32 / config.iterations as f32,
        )?;

        // 3. What pairs that are not trained on say of it, and what is left on disk.
        let times =
            [("pair_seconds", pair_seconds), ("update_seconds", started.elapsed().as_secs_f64())];
        run.timings.append(&MetricRecord::new(step.number, "parts").with(times))?;
        let record = record.with([("samples", samples.len() as f64)]);
        let held_out = self.held_out(run, objective.as_ref(), step.done + 1)?;
        Ok(Some(with_updates(record, &updates).with(held_out)))
    }

    fn next_place(&self) -> Option<u64> {
        Some(self.groups.as_ref()?.next_place())
    }

    fn state(&self) -> Option<Value> {
        self.groups.as_ref()?.state()
    }
}

impl Preferring {
    /// Takes pairs of the files.
    fn take_from_files(
        &mut self,
        run: &Training,
        pairs: &PairsConfig,
        step: &Step<'_>,
    ) -> anyhow::Result<Compared> {
        let mut files = match self.files.take() {
            Some(files) => files,
            None => {
                let mut files = read_files(run, pairs, step)?;
                self.fill_reference(run, &mut files.held_out, &IN_FILES)?;
                files
            }
        };
        let count = pairs.per_iteration.unwrap_or(files.trained.len());
        let seed = run.seed.derive("pairs", &*self.place.name);
        let first = step.done * count as u64;
        let places = shuffled_places(files.trained.len(), seed, first, count);

        let is_new = |place: &usize| files.trained[*place][0].reference_logprobs.is_empty();
        let mut new: Vec<usize> = places.iter().copied().filter(is_new).collect();
        new.sort_unstable();
        new.dedup();
        let mut lacking: Vec<Sample> =
            new.iter().flat_map(|place| std::mem::take(&mut files.trained[*place])).collect();
        self.fill_reference(run, &mut lacking, &IN_FILES)?;
        for sample in lacking {
            let pair = sample.preference.map_or(0, |preference| preference.pair);
            files.trained[pair as usize].push(sample);
        }

        let mut samples = Vec::new();
        // A pair that comes twice in an iteration is two.
        for (number, place) in (0..).zip(&places) {
            let numbered = |sample: &Sample| {
                let preference = sample.preference.map(|it| Preference { pair: number, ..it });
                Sample { preference, ..sample.clone() }
            };
            samples.extend(files.trained[*place].iter().map(numbered));
        }
        self.files = Some(files);
        let record = MetricRecord::new(step.number, "prefer").with([("pairs", count as f64)]);
        Ok(Compared { samples, drawn: IN_FILES, record })
    }

    /// Plays groups and takes the best and the worst of each; `None` when it was told to stop.
    async fn play(
        &mut self,
        run: &mut Training,
        step: &Step<'_>,
    ) -> anyhow::Result<Option<Compared>> {
        let groups = self.groups.as_mut().context("play groups: pairs are in files")?;
        let Some(collected) = groups.collect(run, &self.place, step, self.config.tasks).await?
        else {
            return Ok(None);
        };
        let Collected { collection, num_dropped, .. } = collected;
        let mut samples = Vec::new();
        let mut num_pairs = 0;
        for group in &collection.groups {
            let found = compare(group, groups.shapers(), self.config.margin, num_pairs)?;
            num_pairs += u64::from(!found.is_empty());
            samples.extend(found);
        }
        let drawn = Drawn::by_policy(run);
        self.fill_reference(run, &mut samples, &drawn)?;
        let record = with_collection(MetricRecord::new(step.number, "prefer"), &collection);
        let suite = run.domains.of(&self.place.data).suite.as_ref();
        let record = with_suites(record, &collection, suite);
        let dropped = Some(("dropped_groups", num_dropped as f64)).filter(|_| num_dropped > 0);
        let record = record.with([("pairs", num_pairs as f64)]).with(dropped);
        Ok(Some(Compared { samples, drawn, record }))
    }

    /// Fills the log-probabilities under the reference model, where the objective asks for one.
    fn fill_reference(
        &self,
        run: &Training,
        samples: &mut [Sample],
        drawn: &Drawn,
    ) -> anyhow::Result<()> {
        let has_adapter = !run.recipe.adapters().is_empty();
        let hold = self.config.reference_hold(has_adapter, self.place.is_first);
        let Some(hold) = hold.filter(|_| !samples.is_empty()) else { return Ok(()) };
        let budget = self.config.trainer.micro_batch_tokens;
        self.reference.fill(run, hold, samples, MeasuredTokens::Weighed, drawn, budget)
    }

    /// What the objective says of the pairs that are held out, by names with `held_out_` before them, where that is due
    /// behind so many iterations. The weights are those that are evaluated.
    fn held_out(
        &self,
        run: &Training,
        objective: &dyn Objective,
        done: u64,
    ) -> anyhow::Result<Vec<(String, f64)>> {
        let Some(files) = &self.files else { return Ok(Vec::new()) };
        let every = run.recipe.evaluation.every;
        let is_due = done.is_multiple_of(every) || done == self.config.iterations;
        if files.held_out.is_empty() || !is_due {
            return Ok(Vec::new());
        }
        let weights = match run.trainer.averaged()? {
            Some(averaged) => run.model.trained.weights(&averaged)?,
            None => run.trainer.weights(&run.model.trained)?,
        };
        let model = DecoderGradient::new(weights, FILE_TEMPERATURE).at_base();
        let samples: Vec<&Sample> = files.held_out.iter().collect();
        let (aggregation, trainer) = (self.config.objective.aggregation, &self.config.trainer);
        let budget = trainer.micro_batch_tokens;
        let (loss, metrics) =
            measure_held_out(&samples, objective, aggregation, model.as_ref(), budget)?;
        let named = metrics.into_iter().map(|(name, value)| (format!("held_out_{name}"), value));
        Ok(named.chain([("held_out_loss".to_owned(), loss)]).collect())
    }
}

/// The samples of the best and the worst trajectory of a group, as pair `number`; none where the best has not earned
/// more by more than the margin, or one of them drew nothing. Where several seats are trained, these are those of the
/// seat whose returns are furthest apart, the first of such.
fn compare(
    group: &Group,
    shapers: &RewardShapers,
    margin: f64,
    number: u64,
) -> anyhow::Result<Vec<Sample>> {
    let mut found: Option<([usize; 2], f64)> = None;
    let mut start = 0;
    for view in GroupView::by_seat(group, shapers) {
        let returns = view.returns();
        if let Some([best, worst]) = best_and_worst(&returns, margin) {
            let apart = returns[best] - returns[worst];
            if found.is_none_or(|(_, widest)| apart > widest) {
                found = Some(([start + best, start + worst], apart));
            }
        }
        start += returns.len();
    }
    let Some(([best, worst], _)) = found else { return Ok(Vec::new()) };
    let mut samples = Vec::new();
    for (place, is_chosen) in [(best, true), (worst, false)] {
        let answer = samples_of(group, &group.trajectories[place], is_chosen)?;
        if answer.is_empty() {
            return Ok(Vec::new());
        }
        let parts = u32::try_from(answer.len()).unwrap_or(u32::MAX);
        let preference = Some(Preference { pair: number, is_chosen, parts });
        samples.extend(answer.into_iter().map(|sample| Sample { preference, ..sample }));
    }
    Ok(samples)
}

/// The places of the greatest and the least return, the first of each, where they are more than the margin apart.
fn best_and_worst(returns: &[f64], margin: f64) -> Option<[usize; 2]> {
    let first = |is_better: fn(f64, f64) -> bool| {
        let better = |found: usize, other: usize| match is_better(returns[other], returns[found]) {
            true => other,
            false => found,
        };
        (0..returns.len()).reduce(better)
    };
    let (best, worst) = (first(|a, b| a > b)?, first(|a, b| a < b)?);
    (returns[best] - returns[worst] > margin).then_some([best, worst])
}

/// What a trajectory drew, every token that had an alternative weighing 1.
fn samples_of(
    group: &Group,
    trajectory: &Trajectory,
    is_chosen: bool,
) -> anyhow::Result<Vec<Sample>> {
    let alone = Group { task: group.task.clone(), trajectories: vec![trajectory.clone()] };
    let advantage = if is_chosen { 1.0 } else { -1.0 };
    let advantages = vec![advantage; trajectory.turns.len()];
    Ok(group_samples(&alone, &[advantages], TurnMask::None)?)
}

/// The pairs of all files as samples, without those that are longer than the model reads.
fn read_files(run: &Training, pairs: &PairsConfig, step: &Step<'_>) -> anyhow::Result<FilePairs> {
    let limit = run.model.config.max_position_embeddings;
    let read = |files: &[PathBuf]| -> anyhow::Result<Vec<Vec<Sample>>> {
        let (mut fitting, mut num_long) = (Vec::new(), 0);
        for pair in read_pairs(files).map_err(unreadable)? {
            let samples = pair.samples(&run.model.tokenizer, fitting.len() as u64)?;
            if samples.iter().any(|sample| sample.len() > limit) {
                num_long += 1;
            } else {
                fitting.push(samples);
            }
        }
        if num_long > 0 {
            let all = fitting.len() + num_long;
            step.watch.observer.note(&format!(
                "{num_long} of {all} pairs are longer than the model reads ({limit} tokens) and were left out"
            ));
        }
        Ok(fitting)
    };
    let trained = read(&pairs.files)?;
    ensure!(!trained.is_empty(), "every pair is longer than the model reads ({limit} tokens)");
    let held_out = read(&pairs.held_out)?.into_iter().flatten().collect();
    Ok(FilePairs { trained, held_out })
}

fn unreadable(problems: Vec<String>) -> anyhow::Error {
    anyhow::anyhow!("read files of pairs:\n{}", problems.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_is_compared_with_the_worst_where_they_are_apart() {
        assert_eq!(best_and_worst(&[0.0, 1.0, 0.5, 1.0, 0.0], 0.0), Some([1, 0]));
        assert_eq!(best_and_worst(&[0.3, 0.1, 0.2], 0.1), Some([0, 1]));
        assert_eq!(best_and_worst(&[0.5, 0.25], 0.25), None, "a margin has to be exceeded");
        assert_eq!(best_and_worst(&[0.5; 3], 0.0), None);
        assert_eq!(best_and_worst(&[], 0.0), None);
    }
}
