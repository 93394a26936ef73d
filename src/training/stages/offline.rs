//! Learning from episodes that others played.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use anyhow::Context;
use async_trait::async_trait;
use serde_json::Value;
use spar_agent::credit::{AdvantageEstimator, BatchView, open_estimator};
use spar_agent::filters::{GroupFilter, kept, open_filter};
use spar_agent::{Collection, CutBatch};
use spar_core::{Credit, Group, Policy, Sample, Seed, Signal, Trajectory};
use spar_tasks::{
    Dataset, OfflineSuite, RewardShapers, ScoreReferences, Suite, SuiteManifest, Task,
};
use spar_trainer::{
    DecoderGradient, MeasuredTokens, MetricRecord, TrainerConfig, UpdateMetrics, batches,
    explained_variance,
};

use super::reference::{Drawn, Reference};
use super::registry::written;
use super::{Place, RunningStage, Stage, Step, WordsRequest};
use crate::recipe::{DataConfig, OfflineConfig, Recipe, ReferenceHold};
use crate::training::demonstrations::{TOKENIZER_TASKS, is_cut_off, play_recorded, words_of};
use crate::training::records::{with_collection, with_updates};
use crate::training::run::Training;
use crate::training::shuffled_places::shuffled_places;

/// Learning from episodes that others played.
pub(super) struct Offline {
    pub(super) config: OfflineConfig,
}

impl Offline {
    fn open(&self) -> anyhow::Result<OfflineSuite> {
        let folder = &self.config.dataset.folder;
        let suite = OfflineSuite::open(folder)?;
        suite.len(&self.config.dataset.split)?;
        Ok(suite)
    }
}

#[async_trait(?Send)]
impl Stage for Offline {
    fn iterations(&self) -> u64 {
        self.config.iterations
    }

    fn splits(&self, data: &DataConfig) -> Vec<String> {
        vec![data.dev.clone()]
    }

    fn trainer(&self) -> Option<&TrainerConfig> {
        Some(&self.config.trainer)
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

    fn trains_value_head(&self) -> bool {
        self.config.objective.value_loss.is_some()
    }

    fn trains_values_alone(&self) -> bool {
        self.config.objective.name == "values_alone"
    }

    fn needs_values(&self) -> bool {
        self.config.needs_values()
    }

    fn problems(&self, recipe: &Recipe) -> Vec<String> {
        self.config.problems(recipe)
    }

    fn data_problems(&self) -> Vec<String> {
        self.open().err().map(|error| format!("{error:#}")).into_iter().collect()
    }

    fn suite_problems(&self, suite: &SuiteManifest) -> Vec<String> {
        let Ok(dataset) = Dataset::read(&self.config.dataset.folder) else { return Vec::new() };
        if dataset.suite == suite.name {
            return Vec::new();
        }
        let folder = self.config.dataset.folder.display();
        vec![format!(
            "the dataset in `{folder}` is of suite `{}`, and what is learned from it is measured on `{}`",
            dataset.suite, suite.name
        )]
    }

    fn references(&self, suite: &SuiteManifest) -> Option<ScoreReferences> {
        let dataset = Dataset::read(&self.config.dataset.folder).ok()?;
        dataset.references().filter(|_| dataset.suite == suite.name)
    }

    fn files(&self) -> Vec<PathBuf> {
        self.open().map(|suite| suite.files()).unwrap_or_default()
    }

    fn budget(&self, _: &DataConfig) -> String {
        let OfflineConfig { iterations, dataset, tasks, best, .. } = &self.config;
        let credit = self.config.credit.as_ref().map_or_else(
            || "everything alike".to_owned(),
            |credit| format!("{} credit", credit.kind),
        );
        let share = match *best < 1.0 {
            true => format!("the best {:.0} % of ", 100.0 * best),
            false => String::new(),
        };
        format!(
            "{iterations} iterations of {tasks} tasks of {share}`{}` in `{}`; {credit}, {} objective, {}",
            dataset.split,
            dataset.folder.display(),
            self.config.objective.name,
            self.config.trainer.optimizer.name,
        )
    }

    fn options(&self) -> toml::Table {
        written(&self.config)
    }

    async fn words(&self, request: &WordsRequest<'_>) -> anyhow::Result<Vec<Vec<String>>> {
        let Some(domain) = request.domain else { return Ok(Vec::new()) };
        let (suite, split) = (self.open()?, &self.config.dataset.split);
        let count = suite.len(split)?;
        let seed = request.run.derive("words", split);
        let few = batches::shuffled(count, seed).into_iter().take(TOKENIZER_TASKS as usize);
        let tasks: Result<Vec<Task>, _> = few.map(|index| suite.task(split, index)).collect();
        let tasks = tasks?;
        request.watch.observer.playing("tokenizer", tasks.len());
        let with = (&tasks[..], None);
        let recipe = request.recipe;
        let played =
            play_recorded(recipe, with, None, request.seed, domain, &request.watch).await?;
        Ok(words_of(&recipe.episode, &played))
    }

    fn begin(
        &self,
        place: &Place,
        _: u64,
        _: Option<&Value>,
    ) -> anyhow::Result<Box<dyn RunningStage>> {
        let (config, suite) = (self.config.clone(), self.open()?);
        let groups = tasks_of(&suite, &config)?;
        Ok(Box::new(OfflineLearning {
            shapers: RewardShapers::open(&config.shapers)?,
            credit: config.credit.as_ref().map(open_estimator).transpose()?,
            filter: open_filter(&config.filter.clone().unwrap_or_default())?,
            reference: Reference::default(),
            place: place.clone(),
            groups,
            suite,
            config,
        }))
    }
}

/// The recorded episodes of each task that are learned from, tasks in the order in which the dataset has them.
fn tasks_of(suite: &OfflineSuite, config: &OfflineConfig) -> anyhow::Result<Vec<RecordedTask>> {
    let episodes = suite.recorded(&config.dataset.split)?;
    let returns: Vec<f64> = episodes.iter().map(|episode| episode.total_reward).collect();
    let mut groups: Vec<RecordedTask> = Vec::new();
    let mut known: BTreeMap<&str, usize> = BTreeMap::new();
    for index in best_of(&returns, config.best) {
        let task = episodes[index].task.as_str();
        let place = *known.entry(task).or_insert(groups.len());
        if place == groups.len() {
            groups.push(RecordedTask { task: task.to_owned(), episodes: Vec::new() });
        }
        groups[place].episodes.push(index);
    }
    Ok(groups)
}

/// The places of the share with the highest returns, in their order; of equal ones the first.
fn best_of(returns: &[f64], share: f64) -> Vec<usize> {
    let count = ((returns.len() as f64 * share).ceil() as usize).clamp(1, returns.len().max(1));
    let mut places: Vec<usize> = (0..returns.len()).collect();
    places.sort_by(|one, other| returns[*other].total_cmp(&returns[*one]));
    places.truncate(count);
    places.sort_unstable();
    places
}

/// What is recorded of a task.
struct RecordedTask {
    /// Its id in the suite that was played.
    task: String,
    /// Its episodes, by their index in the split.
    episodes: Vec<usize>,
}

/// Learning that is under way.
struct OfflineLearning {
    config: OfflineConfig,
    place: Place,
    suite: OfflineSuite,
    groups: Vec<RecordedTask>,
    shapers: RewardShapers,
    /// Absent where everything is imitated alike.
    credit: Option<Box<dyn AdvantageEstimator>>,
    filter: Box<dyn GroupFilter>,
    reference: Reference,
}

#[async_trait(?Send)]
impl RunningStage for OfflineLearning {
    async fn iterate(
        &mut self,
        run: &mut Training,
        step: &Step<'_>,
    ) -> anyhow::Result<Option<MetricRecord>> {
        // 1. Recorded episodes, in the words and tokens of the policy.
        let started = Instant::now();
        let drawn = self.draw(run.seed, step);
        let split = &self.config.dataset.split;
        let indices = drawn.iter().flat_map(|(_, episodes)| episodes);
        let tasks: Result<Vec<Task>, _> =
            indices.map(|index| self.suite.task(split, *index)).collect();
        let tasks = tasks?;
        step.watch.observer.playing("recordings", tasks.len());
        let with = (&tasks[..], Some(run.model.config.max_position_embeddings));
        let domain = run.domains.of(&self.place.data);
        let encoder: Option<Arc<dyn Policy>> = Some(run.policy.clone());
        let collection =
            play_recorded(&run.recipe, with, encoder, step.seed, domain, &step.watch).await?;
        if step.watch.cancellation.is_cancelled() {
            return Ok(None);
        }
        let (groups, num_cut_off) = regroup(&drawn, &collection);
        if num_cut_off > 0 {
            step.watch.observer.note(&format!(
                "{num_cut_off} of {} recorded episodes are longer than the model reads \
                 (`model.max_position_embeddings`) and were left out",
                tasks.len()
            ));
        }
        let read_seconds = started.elapsed().as_secs_f64();

        // 2. What each of their tokens is worth, and updates.
        let started = Instant::now();
        let learned = self.learn(run, step, &groups)?;

        // 3. What is told of it.
        let times =
            [("read_seconds", read_seconds), ("update_seconds", started.elapsed().as_secs_f64())];
        run.timings.append(&MetricRecord::new(step.number, "parts").with(times))?;
        let record = with_collection(MetricRecord::new(step.number, "offline"), &collection);
        let trajectories = groups.iter().flat_map(|group| &group.trajectories);
        let (sum, count) =
            trajectories.fold((0.0, 0), |(sum, count), it| (sum + it.total_reward(), count + 1));
        let record = record.with([
            ("reward", sum / f64::from(count.max(1))),
            ("left_out", num_cut_off as f64),
            ("samples", learned.num_samples as f64),
            ("samples_with_gradient", learned.num_with_gradient as f64),
        ]);
        let filtered = self.config.filter.as_ref().map(|_| ("filtered", learned.num_filtered));
        let record = record.with(filtered.map(|(name, count)| (name, count as f64)));
        let explained = learned.explained_variance.map(|share| ("explained_variance", share));
        Ok(Some(with_updates(record.with(explained), &learned.updates)))
    }
}

/// What came of the updates.
struct Learned {
    num_samples: usize,
    num_with_gradient: usize,
    num_filtered: usize,
    explained_variance: Option<f64>,
    updates: Vec<UpdateMetrics>,
}

impl OfflineLearning {
    /// The tasks of an iteration with the indices of their episodes.
    fn draw(&self, run: Seed, step: &Step<'_>) -> Vec<(String, Vec<usize>)> {
        let count = self.config.tasks.min(self.groups.len());
        let seed = run.derive("offline", &*self.place.name);
        let places = shuffled_places(self.groups.len(), seed, step.done * count as u64, count);
        let episodes = |place: usize| {
            let RecordedTask { task, episodes } = &self.groups[place];
            let most = self.config.group_size.unwrap_or(episodes.len());
            let seed = step.seed.derive("episodes", task);
            let mut chosen: Vec<usize> = batches::shuffled(episodes.len(), seed)
                .into_iter()
                .take(most)
                .map(|index| episodes[index])
                .collect();
            chosen.sort_unstable();
            (task.clone(), chosen)
        };
        places.into_iter().map(episodes).collect()
    }

    /// Updates the policy by these groups.
    fn learn(
        &self,
        run: &mut Training,
        step: &Step<'_>,
        groups: &[Group],
    ) -> anyhow::Result<Learned> {
        let config = &self.config;
        let temperature = run.recipe.episode.sampling.temperature;
        let model = DecoderGradient::of(run.model.trained.clone(), temperature)
            .with_activation_bytes(config.trainer.activation_bytes())
            .with_grammars(run.policy.grammars().clone())
            .with_draw_rule(run.model.draw_rule.clone());
        // 1. Advantages.
        let mut cut = CutBatch::new(groups)?;
        let view = BatchView::shaped(groups, &self.shapers);
        let asked = self.credit.as_ref().map(|credit| credit.needs().to_vec()).unwrap_or_default();
        self.fill_signals(run, &model, &asked, MeasuredTokens::Sampled, cut.samples_mut())?;
        let credit = match &self.credit {
            Some(credit) => credit.estimate(&view, &cut.signals())?,
            None => nothing(groups),
        };
        let kept = kept(self.filter.as_ref(), &view);
        let num_filtered = kept.iter().filter(|kept| !**kept).count();
        let mut samples = cut.weigh(&credit, &kept)?;
        if config.imitates_all() {
            for sample in &mut samples {
                sample.cross_entropy_weights.clone_from(&sample.policy_weights);
            }
        }

        // 2. Who played did not tell how likely it was to do so: what the policy does stands in its place.
        let objective = config.objective.build()?;
        let with_gradient = samples.iter().filter(|sample| objective.has_gradient(sample)).count();
        let needs: Vec<Signal> = objective.needs().signals().collect();
        let mut left: Vec<Signal> =
            needs.iter().copied().filter(|signal| !asked.contains(signal)).collect();
        if !asked.contains(&Signal::Old) && !left.contains(&Signal::Old) {
            left.push(Signal::Old);
        }
        self.fill_signals(run, &model, &left, MeasuredTokens::Weighed, &mut samples)?;
        let version = run.trainer.version();
        for sample in &mut samples {
            sample.behavior_logprobs.clone_from(&sample.old_logprobs);
            sample.versions.fill(version);
            if !needs.contains(&Signal::Old) {
                sample.old_logprobs = Vec::new();
            }
        }

        // 3. Updates.
        let updates: Vec<UpdateMetrics> = run.trainer.iterate(
            &samples,
            objective.as_ref(),
            config.objective.aggregation,
            &model,
            step.seed.derive("updates", 0),
            step.done as f32 / config.iterations as f32,
        )?;
        Ok(Learned {
            num_samples: samples.len(),
            num_with_gradient: with_gradient,
            num_filtered,
            explained_variance: explained_variance(&samples),
            updates,
        })
    }

    /// How the reference model is held.
    fn reference_hold(&self, run: &Training) -> anyhow::Result<ReferenceHold> {
        let has_adapter = !run.recipe.adapters().is_empty();
        let hold = self.config.reference_hold(has_adapter, self.place.is_first);
        hold.context("read the reference model: nothing asks for one")
    }

    /// Fills signals in the streams of samples.
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
        // A critic that is fitted no further stays with the model that it was fitted to.
        let is_fixed = self.config.objective.value_loss.is_none() && self.config.has_reference();
        if !(is_fixed && signals.contains(&Signal::Values)) {
            return Ok(run.trainer.fill_signals(samples, signals, tokens, model)?);
        }
        let budget = self.config.trainer.micro_batch_tokens;
        let (hold, drawn) = (self.reference_hold(run)?, Drawn::by_policy(run));
        self.reference.fill_values(run, hold, samples, tokens, &drawn, budget)?;
        let others: Vec<Signal> =
            signals.iter().copied().filter(|signal| *signal != Signal::Values).collect();
        Ok(run.trainer.fill_signals(samples, &others, tokens, model)?)
    }
}

/// No advantage for anything.
fn nothing(groups: &[Group]) -> Credit {
    let trajectories = groups.iter().flat_map(|group| &group.trajectories);
    Credit::of_turns(trajectories.map(|trajectory| vec![0.0; trajectory.turns.len()]).collect())
}

/// The episodes that were read, task by task as they were drawn, as those of somebody from whom is learned; and how many were left
/// out because the model cannot read all of them.
fn regroup(drawn: &[(String, Vec<usize>)], collection: &Collection) -> (Vec<Group>, usize) {
    let mut read = collection.groups.iter();
    let mut num_cut_off = 0;
    let mut groups = Vec::with_capacity(drawn.len());
    for (task, episodes) in drawn {
        let mut trajectories: Vec<Trajectory> = Vec::with_capacity(episodes.len());
        let found = read.by_ref().take(episodes.len()).flat_map(|group| &group.trajectories);
        for trajectory in found {
            if is_cut_off(trajectory) {
                num_cut_off += 1;
                continue;
            }
            let mut trajectory = Trajectory { task: task.clone(), ..trajectory.clone() };
            // What a demonstrator wrote is otherwise trained by nobody.
            trajectory.lineage.guided = false;
            trajectories.push(trajectory);
        }
        groups.push(Group { task: task.clone(), trajectories });
    }
    groups.retain(|group| !group.trajectories.is_empty());
    (groups, num_cut_off)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_share_is_kept_in_its_order() {
        let returns = [0.0, 1.0, 0.5, 1.0, 0.25];
        assert_eq!(best_of(&returns, 1.0), [0, 1, 2, 3, 4]);
        assert_eq!(best_of(&returns, 0.4), [1, 3]);
        assert_eq!(best_of(&returns, 0.5), [1, 2, 3]);
        assert_eq!(best_of(&returns, 0.01), [1], "one at least, the first of equal ones");
        assert!(best_of(&[], 0.5).is_empty());
    }

    #[test]
    fn episodes_of_a_task_are_a_group_and_no_demonstrations_any_more() {
        let played = |episode: u64, end: Value| {
            let record = serde_json::json!({
                "version": 5, "episode": episode, "task": format!("offline/medium/{episode}"), "environment": "offline",
                "seed": Seed::from_u64(5), "policy": "oracle", "first_observation": { "text": "", "state_key": "" },
                "turns": [], "end": end, "success": false, "lineage": { "guided": true },
                "wall_time": { "secs": 0, "nanos": 0 },
            });
            Trajectory::from_json(record.to_string().as_bytes()).unwrap()
        };
        let over = || serde_json::json!({ "kind": "terminated" });
        let long = serde_json::json!({ "kind": "truncated", "limit": "context" });
        let trajectories =
            [vec![played(0, over())], vec![], vec![played(2, long)], vec![played(3, over())]];
        let groups = trajectories.map(|trajectories| Group { task: "t".to_owned(), trajectories });
        let collection = Collection { groups: groups.into(), ..Collection::default() };
        let drawn =
            [("a".to_owned(), vec![7, 9]), ("b".to_owned(), vec![1]), ("c".to_owned(), vec![4])];
        let (found, num_cut_off) = regroup(&drawn, &collection);
        let told: Vec<_> =
            found.iter().map(|it| (it.task.as_str(), it.trajectories.len())).collect();
        assert_eq!((told, num_cut_off), (vec![("a", 1), ("c", 1)], 1));
        assert!(found.iter().flat_map(|group| &group.trajectories).all(|it| !it.lineage.guided));
        assert_eq!(found[1].trajectories[0].task, "c");
    }
}
