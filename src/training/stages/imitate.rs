//! Imitation: of demonstrations that are played, or of conversations in files.

use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Instant;

use async_trait::async_trait;
use serde_json::Value;
use spar_agent::demonstration_samples;
use spar_core::{Sample, Trajectory};
use spar_policy::Tokenizer;
use spar_trainer::{
    DecoderGradient, Division, LossAggregation, MetricRecord, Pass, Supervised, TrainerConfig,
    UpdateMetrics,
};

use super::registry::written;
use super::{Place, RunningStage, Stage, Step, WordsRequest};
use crate::recipe::{ChatsConfig, DataConfig, ImitateConfig, Recipe};
use crate::training::chats::read_chats;
use crate::training::demonstrations::{
    TOKENIZER_TASKS, demonstrate, demonstrator, imitated, is_cut_off, is_outside_grammar,
    take_demonstrated, words_of,
};
use crate::training::records::{with_collection, with_suites, with_updates};
use crate::training::run::Training;
use crate::training::shuffled_places::shuffled_places;

/// The most conversations that a model refuses and that are told of.
const MAX_REFUSED: usize = 20;

/// Imitation.
pub(super) struct Imitate {
    pub(super) config: ImitateConfig,
}

#[async_trait(?Send)]
impl Stage for Imitate {
    fn iterations(&self) -> u64 {
        self.config.iterations
    }

    fn num_tasks(&self) -> u64 {
        match self.config.chats {
            Some(_) => 0,
            None => self.config.tasks_of(self.config.iterations).0,
        }
    }

    fn splits(&self, data: &DataConfig) -> Vec<String> {
        if self.config.chats.is_some() {
            return Vec::new();
        }
        let demonstrated = match &data.demonstrations[..] {
            [] => std::slice::from_ref(&data.train),
            demonstrations => demonstrations,
        };
        demonstrated.iter().chain([&data.dev]).cloned().collect()
    }

    fn trainer(&self) -> Option<&TrainerConfig> {
        Some(&self.config.trainer)
    }

    fn is_evaluated(&self, done: u64, _: u64) -> bool {
        self.config.chats.is_none() && done == self.config.iterations
    }

    fn problems(&self, recipe: &Recipe) -> Vec<String> {
        self.config.problems(recipe)
    }

    fn data_problems(&self) -> Vec<String> {
        let read = |chats: &ChatsConfig| read_chats(&chats.files, chats.messages).err();
        self.config.chats.as_ref().and_then(read).unwrap_or_default()
    }

    fn files(&self) -> Vec<PathBuf> {
        self.config.chats.as_ref().map(|chats| chats.files.clone()).unwrap_or_default()
    }

    fn model_problems(&self, tokenizer: &Tokenizer) -> Vec<String> {
        let Some(chats) = &self.config.chats else { return Vec::new() };
        match read_chats(&chats.files, chats.messages) {
            Ok(chats) => {
                let refused = chats.iter().filter_map(|chat| chat.samples(tokenizer).err());
                refused.take(MAX_REFUSED).map(|error| format!("{error:#}")).collect()
            }
            Err(problems) => problems,
        }
    }

    fn budget(&self, data: &DataConfig) -> String {
        let config = &self.config;
        if let Some(chats) = &config.chats {
            let files: Vec<_> =
                chats.files.iter().map(|path| format!("`{}`", path.display())).collect();
            let count = match chats.per_iteration {
                Some(count) => format!("{count} conversations"),
                None => "all conversations".to_owned(),
            };
            let (iterations, files) = (config.iterations, files.join(", "));
            return format!("{iterations} iterations of {count} of {files}");
        }
        let roll_in = &config.roll_in;
        let led = match roll_in.share > 0.0 {
            true => format!(
                "; from {:.0} % of the iterations on, the policy begins {:.0} % of the episodes",
                100.0 * roll_in.after,
                100.0 * roll_in.share
            ),
            false => String::new(),
        };
        format!(
            "{} iterations, {} demonstrations of `{}` by `{}`{led}",
            config.iterations,
            self.num_tasks(),
            data.label(),
            config.demonstrator.name()
        )
    }

    fn options(&self) -> toml::Table {
        written(&self.config)
    }

    async fn words(&self, request: &WordsRequest<'_>) -> anyhow::Result<Vec<Vec<String>>> {
        if let Some(chats) = &self.config.chats {
            let chats = read_chats(&chats.files, chats.messages).map_err(unreadable)?;
            let few = chats.iter().take(TOKENIZER_TASKS as usize);
            return Ok(few.map(|chat| chat.words()).collect());
        }
        let Some(domain) = request.domain else { return Ok(Vec::new()) };
        let count = self.num_tasks().min(TOKENIZER_TASKS) as usize;
        request.watch.observer.playing("tokenizer", count);
        let suite = domain.suite.as_ref();
        let tasks = take_demonstrated(suite, request.data, request.run, 0, count)?;
        let player = demonstrator(self.config.demonstrator, None, None);
        let (seed, watch) = (request.seed, &request.watch);
        let recipe = request.recipe;
        let played = demonstrate(recipe, (&tasks, None), player, seed, domain, watch).await?;
        Ok(words_of(&recipe.episode, &played))
    }

    fn begin(
        &self,
        place: &Place,
        _: u64,
        _: Option<&Value>,
    ) -> anyhow::Result<Box<dyn RunningStage>> {
        let (config, place) = (self.config.clone(), place.clone());
        Ok(Box::new(Imitation { config, place, conversations: OnceLock::new() }))
    }
}

/// Imitation that is under way.
struct Imitation {
    config: ImitateConfig,
    place: Place,
    /// Those in the files, as samples, once they have been read.
    conversations: OnceLock<Vec<Vec<Sample>>>,
}

/// What an iteration imitates.
struct Shown {
    samples: Vec<Sample>,
    record: MetricRecord,
}

#[async_trait(?Send)]
impl RunningStage for Imitation {
    async fn iterate(
        &mut self,
        run: &mut Training,
        step: &Step<'_>,
    ) -> anyhow::Result<Option<MetricRecord>> {
        if self.config.trainer.epochs > 1 {
            // Told to stop between epochs, the run goes back to here.
            run.save()?;
        }
        // 1. What is imitated.
        let started = Instant::now();
        let shown = match &self.config.chats {
            Some(chats) => Some(self.converse(run, chats, step)?),
            None => self.demonstrate(run, step).await?,
        };
        let Some(Shown { samples, record }) = shown else { return Ok(None) };
        let demonstration_seconds = started.elapsed().as_secs_f64();

        // 2. Updates, epoch by epoch.
        let started = Instant::now();
        let mut updates = Vec::new();
        for epoch in 0..self.config.trainer.epochs {
            // One epoch is soon over, and its iteration is kept; many may take minutes.
            if epoch > 0 && step.watch.cancellation.is_cancelled() {
                run.is_whole = false;
                return Ok(None);
            }
            self.update(run, step, epoch, &samples, &mut updates)?;
        }

        // 3. What is left on disk.
        let times = [
            ("demonstration_seconds", demonstration_seconds),
            ("update_seconds", started.elapsed().as_secs_f64()),
        ];
        run.timings.append(&MetricRecord::new(step.number, "parts").with(times))?;
        Ok(Some(with_updates(record, &updates)))
    }
}

impl Imitation {
    /// Plays demonstrations.
    async fn demonstrate(&self, run: &Training, step: &Step<'_>) -> anyhow::Result<Option<Shown>> {
        let (config, observer) = (&self.config, step.watch.observer);
        let roll_in = config.roll_in_of(step.done);
        if roll_in.is_some() {
            run.publish()?;
        }
        let (first, count) = config.tasks_of(step.done);
        let first = self.place.first_task + first;
        let domain = run.domains.of(&self.place.data);
        let suite = domain.suite.as_ref();
        let tasks = take_demonstrated(suite, &self.place.data, run.seed, first, count)?;
        observer.playing("demonstrations", tasks.len());
        let player = demonstrator(config.demonstrator, Some(run.policy.clone()), roll_in);
        let tasks = (&tasks[..], Some(run.model.config.max_position_embeddings));
        let collection =
            demonstrate(&run.recipe, tasks, player, step.seed, domain, &step.watch).await?;
        if step.watch.cancellation.is_cancelled() {
            return Ok(None);
        }
        let mut samples = Vec::new();
        let mut num_imitated = 0;
        let chosen = imitated(&collection, config.imitate_unsolved);
        for trajectory in &chosen {
            let shown = demonstration_samples(trajectory, &config.weights)?;
            num_imitated += usize::from(!shown.is_empty());
            samples.extend(shown);
        }
        let num_cut_off = chosen.iter().filter(|trajectory| is_cut_off(trajectory)).count();
        if num_cut_off > 0 {
            observer.note(&format!(
                "{num_cut_off} of {} demonstrations are longer than the model reads \
                 (`model.max_position_embeddings`) and were cut off",
                chosen.len()
            ));
        }
        let is_outside = |it: &&&Trajectory| is_outside_grammar(it, &run.recipe.episode);
        let num_outside = chosen.iter().filter(is_outside).count();
        if num_outside > 0 {
            observer.note(&format!(
                "{num_outside} of {} demonstrations say what the grammar of `episode` does not allow, and are imitated in other \
                 tokens than the policy draws there",
                chosen.len()
            ));
        }
        if chosen.is_empty() {
            observer.note("no demonstration solved its task, so that nothing was imitated");
        } else if samples.is_empty() {
            observer.note("the policy needed no demonstrator, so that nothing was imitated");
        }
        let record = MetricRecord::new(step.number, "imitate");
        let record = record.with([("imitated", num_imitated as f64)]);
        let record = with_suites(with_collection(record, &collection), &collection, suite);
        Ok(Some(Shown { samples, record }))
    }

    /// Takes conversations of the files.
    fn converse(
        &self,
        run: &Training,
        chats: &ChatsConfig,
        step: &Step<'_>,
    ) -> anyhow::Result<Shown> {
        let conversations = match self.conversations.get() {
            Some(read) => read,
            None => {
                let read = read_conversations(run, chats, step)?;
                self.conversations.get_or_init(|| read)
            }
        };
        let count = chats.per_iteration.unwrap_or(conversations.len());
        let seed = run.seed.derive("chats", &*self.place.name);
        let first = step.done * count as u64;
        let places = shuffled_places(conversations.len(), seed, first, count);
        let samples: Vec<Sample> =
            places.iter().flat_map(|place| conversations[*place].iter().cloned()).collect();
        if samples.is_empty() {
            step.watch.observer.note("no message of these conversations is trained");
        }
        let record = MetricRecord::new(step.number, "imitate");
        let record =
            record.with([("conversations", count as f64), ("samples", samples.len() as f64)]);
        Ok(Shown { samples, record })
    }

    /// One pass over the samples.
    fn update(
        &self,
        run: &mut Training,
        step: &Step<'_>,
        epoch: usize,
        samples: &[Sample],
        updates: &mut Vec<UpdateMetrics>,
    ) -> anyhow::Result<()> {
        let config = &self.config;
        let model = DecoderGradient::of(run.model.trained.clone(), 1.0)
            .with_activation_bytes(config.trainer.activation_bytes())
            .with_grammars(run.policy.grammars().clone());
        let progress = |epochs: usize| {
            let within = epochs as f32 / config.trainer.epochs as f32;
            (step.done as f32 + within) / config.iterations as f32
        };
        let pass = Pass {
            epoch,
            division: Division::Tokens(config.batch_tokens),
            seed: step.seed,
            progress: [progress(epoch), progress(epoch + 1)],
        };
        let mode = LossAggregation::TokenMean;
        updates.extend(run.trainer.pass(samples, &Supervised, mode, &model, &pass)?);
        Ok(())
    }
}

/// All conversations of the files as samples, none longer than the model reads.
fn read_conversations(
    run: &Training,
    chats: &ChatsConfig,
    step: &Step<'_>,
) -> anyhow::Result<Vec<Vec<Sample>>> {
    let limit = run.model.config.max_position_embeddings;
    let read = read_chats(&chats.files, chats.messages).map_err(unreadable)?;
    let mut conversations = Vec::with_capacity(read.len());
    let mut num_cut_off = 0;
    for chat in &read {
        let mut samples = chat.samples(&run.model.tokenizer)?;
        let is_long = |sample: &&mut Sample| sample.len() > limit;
        num_cut_off += usize::from(samples.iter_mut().filter(is_long).count() > 0);
        for sample in samples.iter_mut().filter(is_long) {
            let mut cut = Sample::default();
            let kept = sample.tokens.iter().zip(&sample.cross_entropy_weights).take(limit);
            kept.for_each(|(token, weight)| cut.push_observed(*token, *weight));
            *sample = cut;
        }
        samples.retain(|sample| sample.cross_entropy_weights.iter().any(|weight| *weight > 0.0));
        conversations.push(samples);
    }
    if num_cut_off > 0 {
        step.watch.observer.note(&format!(
            "{num_cut_off} of {} conversations are longer than the model reads ({limit} tokens) and were cut off",
            read.len()
        ));
    }
    Ok(conversations)
}

fn unreadable(problems: Vec<String>) -> anyhow::Error {
    anyhow::anyhow!("read chat files:\n{}", problems.join("\n"))
}
