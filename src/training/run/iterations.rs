//! What one iteration does.

use std::time::Instant;

use spar_agent::credit::{BatchView, settle_ownership};
use spar_agent::filters::kept;
use spar_agent::{Cancellation, CutBatch, TurnMask, demonstration_samples};
use spar_core::{Sample, Seed, Signal, TrajectoryStore};
use spar_trainer::{
    DecoderGradient, LossAggregation, MetricRecord, Supervised, UpdateMetrics, batches,
};

use super::Training;
use super::collection::Collected;
use crate::training::demonstrations::{
    demonstrate, demonstrator, imitated, is_cut_off, take_demonstrated,
};
use crate::training::records::{with_collection, with_updates};
use crate::training::{Observer, Stage};

impl Training {
    pub(super) async fn imitate(
        &mut self,
        number: u64,
        seed: Seed,
        cancellation: &Cancellation,
        observer: &dyn Observer,
    ) -> anyhow::Result<Option<MetricRecord>> {
        if self.recipe.warm_start.trainer.epochs > 1 {
            // Told to stop between epochs, the run goes back to here.
            self.save()?;
        }
        let roll_in = self.recipe.warm_start.roll_in_of(self.state.iteration);
        if roll_in.is_some() {
            self.publish()?;
        }
        let config = &self.recipe.warm_start;
        let (first, count) = config.tasks_of(self.state.iteration);
        let data = &self.recipe.data;
        let tasks = take_demonstrated(self.suite.as_ref(), data, self.seed, first, count)?;
        observer.playing("demonstrations", tasks.len());
        let policy = Some(&self.policy as &dyn spar_core::Policy);
        let started = Instant::now();
        let collection = demonstrate(
            &self.recipe,
            (&tasks, Some(self.model.config.max_position_embeddings)),
            demonstrator(&self.recipe, policy, roll_in),
            seed,
            &self.sandboxes,
            cancellation,
            observer,
        )
        .await?;
        if cancellation.is_cancelled() {
            return Ok(None);
        }
        let demonstration_seconds = started.elapsed().as_secs_f64();
        let started = Instant::now();
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
        if chosen.is_empty() {
            observer.note("no demonstration solved its task, so that nothing was imitated");
        } else if samples.is_empty() {
            observer.note("the policy needed no demonstrator, so that nothing was imitated");
        }
        let model = DecoderGradient::of(self.model.trained.clone(), 1.0)
            .with_activation_bytes(config.trainer.activation_bytes());
        let mut updates = Vec::new();
        let epochs = config.trainer.epochs;
        for epoch in 0..epochs {
            // One epoch is soon over, and its iteration is kept; many may take minutes.
            if epoch > 0 && cancellation.is_cancelled() {
                self.is_whole = false;
                return Ok(None);
            }
            let order = batches::shuffled(samples.len(), seed.derive("epoch", epoch));
            let lengths: Vec<usize> = order.iter().map(|sample| samples[*sample].len()).collect();
            let ranges = batches::split_by_budget(&lengths, config.batch_tokens);
            let share = 1.0 / ranges.len().max(1) as f32;
            for (index, range) in ranges.into_iter().enumerate() {
                let within = (epoch as f32 + index as f32 * share) / epochs as f32;
                let progress = (self.state.iteration as f32 + within) / config.iterations as f32;
                let batch: Vec<&Sample> =
                    order[range].iter().map(|sample| &samples[*sample]).collect();
                let mode = LossAggregation::TokenMean;
                updates.push(self.trainer.update(&batch, &Supervised, mode, &model, progress)?);
            }
        }
        let times = [
            ("demonstration_seconds", demonstration_seconds),
            ("update_seconds", started.elapsed().as_secs_f64()),
        ];
        self.timings.append(&MetricRecord::new(number, "parts").with(times))?;
        let record = MetricRecord::new(number, Stage::WarmStart.name());
        let record = record.with([("imitated", num_imitated as f64)]);
        Ok(Some(with_updates(with_collection(record, &collection), &updates)))
    }

    pub(super) async fn reinforce(
        &mut self,
        number: u64,
        seed: Seed,
        cancellation: &Cancellation,
        observer: &dyn Observer,
    ) -> anyhow::Result<Option<MetricRecord>> {
        // 1. Groups of episodes under the present weights.
        self.publish()?;
        let started = Instant::now();
        let Some(collected) = self.collect(seed, cancellation, observer).await? else {
            return Ok(None);
        };
        let Collected { collection, num_dropped } = collected;
        let config = &self.recipe.reinforce;
        let done = self.state.iteration - self.recipe.warm_start.iterations;
        let rollout_seconds = started.elapsed().as_secs_f64();

        // 2. Credit over all groups at once: what is measured first, then advantages by shaped rewards.
        let mut cut = CutBatch::new(&collection.groups)?;
        self.fill_signals(self.credit.needs(), cut.samples_mut())?;
        let view = BatchView::shaped(&collection.groups, &self.shapers);
        let credit = self.credit.estimate(&view, &cut.signals())?;
        let kept = kept(self.filter.as_ref(), &view);
        let credit = settle_ownership(&view, credit, &kept)?;
        let mask = if config.mask_cut_off_turns { TurnMask::CutOff } else { TurnMask::None };
        let mut samples = cut.weigh(&credit, &kept, mask)?;
        let objective = config.objective.build()?;
        let with_gradient = samples.iter().filter(|sample| objective.has_gradient(sample)).count();

        // 3. Updates.
        let started = Instant::now();
        let temperature = self.recipe.episode.sampling.temperature;
        // Where credit asked for it, it is there for all samples, these among them.
        if !self.credit.needs().contains(&Signal::Reference) {
            self.fill_reference(&mut samples)?;
        }
        let model = DecoderGradient::of(self.model.trained.clone(), temperature)
            .with_activation_bytes(config.trainer.activation_bytes());
        let progress = done as f32 / config.iterations as f32;
        let updates: Vec<UpdateMetrics> = self.trainer.iterate(
            &samples,
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
        let record = record.with([
            ("samples", samples.len() as f64),
            ("samples_with_gradient", with_gradient as f64),
        ]);
        let dropped = Some(("dropped_groups", num_dropped as f64)).filter(|_| num_dropped > 0);
        let num_filtered = kept.iter().filter(|kept| !**kept).count();
        let filtered = config.filter.as_ref().map(|_| ("filtered", num_filtered as f64));
        Ok(Some(with_updates(record.with(dropped).with(filtered), &updates)))
    }
}
