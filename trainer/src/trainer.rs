//! Owns the weights and improves them.

use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use spar_core::{PolicyVersion, Sample, Seed, Signal};
use spar_policy::checkpoint::TensorFile;
use spar_policy::cuda::DeviceGroup;
use spar_policy::state_heads::HeadWeights;
use spar_policy::{Parameters, Weights};

use crate::batches::{
    by_prompt, joined_by_pair, prefix_order, shared_prefixes, shuffled, split_by_budget,
    split_evenly, split_shared_by_budget,
};
use crate::home::{DeviceHome, HeadHome, Home, HostHome, Work};
use crate::objectives::Pairs;
use crate::optimisers::{clip_factor, write_state};
use crate::{
    Drift, LossAggregation, Measured, MeasuredAt, MeasuredTokens, Objective, OptimizerPlace,
    SampleGradient, SignalRow, SignalSource, Slopes, StatePlace, StateReader, StateTensor, Tally,
    Trained, TrainerConfig, TrainerError, Update, UpdateMetrics, WeightAverage, fill_signals,
    signal_stages,
};

/// Owns the weights and improves them, one update at a time.
///
/// An update runs every sample forward once, asks the objective for the derivative by the
/// log-probabilities, runs backward, and hands the sum to the optimiser:
///
/// ```text
/// samples ─▶ shards ─▶ micro-batches ─▶ SampleGradient ─logprobs─▶ Objective
///                                        ▲                      │ d loss / d logprob
///                                        └──────────────────────┘
///             gradient per shard ─▶ sum in shard order ─▶ clip ─▶ Optimizer ─▶ weights
/// ```
///
/// The weights after an update depend on the samples, their order, the config and the state, not on
/// threads. An update that fails leaves weights and state as they were, but for one whose state file
/// fails.
pub struct Trainer {
    config: TrainerConfig,
    place: Place,
    /// The head that is trained beside the vocabulary's, if one is.
    head: Option<HeadHome>,
    average: Option<WeightAverage>,
    /// What the objective of the last update left to the next.
    objective_state: Vec<f64>,
    updates: u64,
}

/// A pass over the samples of an iteration.
#[derive(Debug, Clone, Copy)]
pub struct Pass {
    /// Its number in the iteration, which decides the order of the samples with the seed.
    pub epoch: usize,
    /// How the samples are divided into updates.
    pub division: Division,
    /// What its random choices derive from.
    pub seed: Seed,
    /// How far the run is when it begins and when it ends, 0 to 1, for the schedule.
    pub progress: [f32; 2],
}

/// How the samples of a pass are divided into updates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Division {
    /// So many updates of about equally many tokens.
    Minibatches(usize),
    /// Updates of at most so many tokens; a longer sample stands alone.
    Tokens(usize),
}

/// Where the weights are.
enum Place {
    Host(HostHome),
    Device(DeviceHome),
}

impl Place {
    fn home(&self) -> &dyn Home {
        match self {
            Self::Host(home) => home,
            Self::Device(home) => home,
        }
    }

    fn home_mut(&mut self) -> &mut dyn Home {
        match self {
            Self::Host(home) => home,
            Self::Device(home) => home,
        }
    }
}

/// The longest gradient of which the squares fit into single precision, in which optimisers keep their means.
const MAX_GRADIENT_NORM: f64 = 1e18;

/// The most numbers that an objective leaves to the next update.
const MAX_OBJECTIVE_STATE: u64 = 4096;

/// What came of a sample.
#[derive(Default)]
struct SampleOutcome {
    loss: f64,
    tally: Tally,
    drift: Drift,
    /// Log-probabilities the model gave, where that is not one per token.
    wrong_count: Option<usize>,
}

impl Trainer {
    /// A trainer that starts at `parameters`, which are in the host's memory, as the optimiser is.
    ///
    /// # Errors
    ///
    /// [`TrainerError::Config`] tells all that is wrong with the config, which has to keep the
    /// optimiser's state in memory.
    pub fn new(config: TrainerConfig, parameters: Parameters) -> Result<Self, TrainerError> {
        if config.optimizer_state == StatePlace::File {
            let problem = "`optimizer_state` is `file`, and there is no folder for it".to_owned();
            return Err(TrainerError::Config { problems: vec![problem] });
        }
        Self::on_host(config, parameters, None)
    }

    fn on_host(
        config: TrainerConfig,
        parameters: Parameters,
        folder: Option<&Path>,
    ) -> Result<Self, TrainerError> {
        let mut problems = config.problems();
        if config.optimizer_on == Some(OptimizerPlace::Device) {
            let problem = "`optimizer_on` is `device`, and what is trained is on the CPU";
            problems.push(problem.to_owned());
        }
        if !problems.is_empty() {
            return Err(TrainerError::Config { problems });
        }
        let optimizer = config.optimizer.build(&parameters, folder)?;
        Ok(Self::at(config, Place::Host(HostHome::new(parameters, optimizer))))
    }

    /// A trainer of what `trained` is, starting at `parameters`: on its device, where it has one and
    /// the config does not keep the optimiser on the host. The devices of a group, of which that one is
    /// the first, share out the shards of an update.
    ///
    /// # Errors
    ///
    /// [`TrainerError::Config`] tells all that is wrong with the config, [`TrainerError::Model`] what
    /// the device says.
    pub fn beside(
        config: TrainerConfig,
        parameters: Parameters,
        trained: &Trained,
        group: Option<&Arc<DeviceGroup>>,
    ) -> Result<Self, TrainerError> {
        let mut problems = config.problems();
        if let Some(group) = group {
            let devices = group.devices().len();
            if !config.is_for_device() {
                problems.push("on several devices, `adamw` is used without an average".to_owned());
            }
            if config.shards < devices {
                let shards = config.shards;
                problems.push(format!("`shards` is {shards}: {devices} devices have one at least"));
            }
        }
        if !problems.is_empty() {
            return Err(TrainerError::Config { problems });
        }
        if !config.is_for_device() || trained.decoder().device().is_none() {
            return Self::new(config, parameters);
        }
        let learners = trained.learners(&parameters, group.map(Arc::as_ref));
        let learners =
            learners.map_err(|source| TrainerError::Model { source: Box::new(source) })?;
        let home = DeviceHome::new(learners, group.cloned(), config.optimizer.adamw()?);
        Ok(Self::at(config, Place::Device(home)))
    }

    /// As [`Trainer::beside`], the optimiser's state being in a file within `folder` where the config
    /// says so.
    ///
    /// # Errors
    ///
    /// As [`Trainer::beside`], and [`TrainerError::StateFile`] when the file cannot be made.
    pub fn in_folder(
        config: TrainerConfig,
        parameters: Parameters,
        trained: &Trained,
        group: Option<&Arc<DeviceGroup>>,
        folder: &Path,
    ) -> Result<Self, TrainerError> {
        match (config.optimizer_state, group) {
            (StatePlace::Memory, group) => Self::beside(config, parameters, trained, group),
            (StatePlace::File, None) => Self::on_host(config, parameters, Some(folder)),
            (StatePlace::File, Some(_)) => {
                let problem = "`optimizer_state` is `file`: several devices keep their own";
                Err(TrainerError::Config { problems: vec![problem.to_owned()] })
            }
        }
    }

    fn at(config: TrainerConfig, place: Place) -> Self {
        let average = config.average.map(WeightAverage::new);
        Self { config, place, head: None, average, objective_state: Vec::new(), updates: 0 }
    }

    /// Trains a head beside the vocabulary's, from `weights` on: by an optimiser like that of the decoder, in the host's
    /// memory, both gradients being shortened together. An average of weights has no part of it. Updates of objectives
    /// that need no returns leave it as it is.
    ///
    /// # Errors
    ///
    /// [`TrainerError::Config`] when the optimiser cannot be made.
    pub fn with_head(mut self, weights: HeadWeights) -> Result<Self, TrainerError> {
        self.head = Some(HeadHome::new(weights, &self.config.optimizer)?);
        Ok(self)
    }

    /// The head that is trained beside the vocabulary's, as it is now; `None` where none is.
    pub fn head(&self) -> Option<&HeadWeights> {
        self.head.as_ref().map(HeadHome::weights)
    }

    /// Counts on from the updates of an earlier stage.
    #[must_use]
    pub fn starting_at(mut self, version: PolicyVersion) -> Self {
        self.updates = u64::from(version.0);
        self
    }

    /// How it works.
    pub fn config(&self) -> &TrainerConfig {
        &self.config
    }

    /// The weights; master weights where others compute with their roundings. From a device they are
    /// read back.
    ///
    /// # Errors
    ///
    /// [`TrainerError::Model`] when the device fails.
    pub fn parameters(&self) -> Result<Parameters, TrainerError> {
        self.place.home().parameters()
    }

    /// The decoder at the weights of [`Trainer::version`]: they are shared, not copied, and later updates
    /// leave them as they are, on a device as in the host's memory.
    ///
    /// # Errors
    ///
    /// [`TrainerError::Model`] when a device fails.
    pub fn weights(&self, trained: &Trained) -> Result<Arc<Weights>, TrainerError> {
        match &self.place {
            Place::Host(home) => trained
                .weights(&home.parameters()?)
                .map_err(|source| TrainerError::Model { source: Box::new(source) }),
            Place::Device(home) => Ok(home.weights()),
        }
    }

    /// Which weights they are: the number of updates made.
    pub fn version(&self) -> PolicyVersion {
        PolicyVersion(u32::try_from(self.updates).unwrap_or(u32::MAX))
    }

    /// The average of the weights; `None` when the config has no average, or before an update.
    ///
    /// # Errors
    ///
    /// [`TrainerError::Model`] when a device fails.
    pub fn averaged(&self) -> Result<Option<Parameters>, TrainerError> {
        let Some(data) = self.average.as_ref().and_then(WeightAverage::average) else {
            return Ok(None);
        };
        Ok(Some(Parameters { data: data.into(), ..self.parameters()? }))
    }

    /// Makes the updates of an iteration: `epochs` [passes](Trainer::pass) over all samples, each divided
    /// into `minibatches`, at the same point of the schedule.
    ///
    /// # Errors
    ///
    /// Those of [`Trainer::update`]; the updates made before the failed one stay.
    pub fn iterate(
        &mut self,
        samples: &[Sample],
        objective: &dyn Objective,
        aggregation: LossAggregation,
        model: &dyn SampleGradient,
        seed: Seed,
        progress: f32,
    ) -> Result<Vec<UpdateMetrics>, TrainerError> {
        let division = Division::Minibatches(self.config.minibatches);
        let mut metrics = Vec::new();
        for epoch in 0..self.config.epochs {
            let pass = Pass { epoch, division, seed, progress: [progress; 2] };
            metrics.extend(self.pass(samples, objective, aggregation, model, &pass)?);
        }
        Ok(metrics)
    }

    /// Makes one pass over samples, shuffled by its seed and number, or their prompts where
    /// `keep_prompts_together` says so, and divided into batches of an update each. Pairs stay whole where the objective
    /// compares their answers.
    ///
    /// Samples to which the objective gives no weight are left out first. The others are divided among
    /// the batches, those without gradient as well, so that every loss is divided by what its
    /// share of the pass weighs; where no sample of a batch has a gradient, no update is made.
    ///
    /// # Errors
    ///
    /// Those of [`Trainer::update`]; the updates made before the failed one stay.
    pub fn pass(
        &mut self,
        samples: &[Sample],
        objective: &dyn Objective,
        aggregation: LossAggregation,
        model: &dyn SampleGradient,
        pass: &Pass,
    ) -> Result<Vec<UpdateMetrics>, TrainerError> {
        for (sample, streams) in samples.iter().enumerate() {
            streams.validate().map_err(|source| TrainerError::Sample { sample, source })?;
        }
        let samples: Vec<&Sample> =
            samples.iter().filter(|sample| objective.weight(sample) > 0.0).collect();
        let is_by_prompt = objective.needs().groups || aggregation == LossAggregation::PromptMean;
        let units = if self.config.keep_prompts_together || is_by_prompt {
            by_prompt(&samples)
        } else {
            (0..samples.len()).map(|sample| vec![sample]).collect()
        };
        let units = match objective.needs().pairs {
            true => joined_by_pair(&samples, units),
            false => units,
        };
        let length = |unit: &usize| units[*unit].iter().map(|sample| samples[*sample].len()).sum();
        let order = shuffled(units.len(), pass.seed.derive("epoch", pass.epoch));
        let lengths: Vec<usize> = order.iter().map(length).collect();
        let ranges = match pass.division {
            Division::Minibatches(parts) => split_evenly(&lengths, parts),
            Division::Tokens(budget) => split_by_budget(&lengths, budget),
        };
        let [from, to] = pass.progress;
        let share = (to - from) / ranges.len().max(1) as f32;
        let mut metrics = Vec::new();
        for (index, range) in ranges.into_iter().enumerate() {
            let of_range = order[range].iter().flat_map(|unit| &units[*unit]);
            let batch: Vec<&Sample> = of_range.map(|sample| samples[*sample]).collect();
            if batch.iter().any(|sample| objective.has_gradient(sample)) {
                let progress = from + index as f32 * share;
                let seed = pass.seed.derive("update", self.updates);
                metrics.push(self.update_by(
                    &batch,
                    objective,
                    aggregation,
                    model,
                    progress,
                    seed,
                )?);
            }
        }
        Ok(metrics)
    }

    /// Makes one update from `samples`. What an objective chooses by chance follows from the number of the update;
    /// [`Trainer::iterate`] derives it from its seed.
    ///
    /// All of them count in what the loss is divided by, as the objective weighs them; only those
    /// that have a gradient are computed.
    ///
    /// # Errors
    ///
    /// [`TrainerError::NoWeight`] when no sample has weight and a gradient, [`TrainerError::NonFinite`]
    /// when loss or gradient are not finite, [`TrainerError::Model`] when the model fails, and
    /// others when samples or model contradict themselves. Weights and state stay as they were, except
    /// behind a [`TrainerError::StateFile`], when they have to be loaded anew.
    pub fn update(
        &mut self,
        samples: &[&Sample],
        objective: &dyn Objective,
        aggregation: LossAggregation,
        model: &dyn SampleGradient,
        progress: f32,
    ) -> Result<UpdateMetrics, TrainerError> {
        let seed = Seed::from_u64(self.updates);
        self.update_by(samples, objective, aggregation, model, progress, seed)
    }

    /// As [`Trainer::update`]; what an objective chooses by chance follows from `seed`.
    fn update_by(
        &mut self,
        samples: &[&Sample],
        objective: &dyn Objective,
        aggregation: LossAggregation,
        model: &dyn SampleGradient,
        progress: f32,
        seed: Seed,
    ) -> Result<UpdateMetrics, TrainerError> {
        let started = Instant::now();
        for (sample, streams) in samples.iter().enumerate() {
            streams.validate().map_err(|source| TrainerError::Sample { sample, source })?;
        }
        if objective.needs().reference
            && let Some(sample) =
                samples.iter().position(|sample| sample.reference_logprobs.is_empty())
        {
            return Err(TrainerError::NoReference { sample });
        }
        if objective.needs().pairs {
            Pairs::of(samples).map_err(|sample| TrainerError::PartedPair { sample })?;
        }
        self.check_streams(samples, objective)?;
        // 1. What the loss is divided by, before samples that need not be computed are left out.
        let scales = aggregation.scales(objective, samples);
        let num_samples = samples.len();
        let computed: Vec<usize> = (0..num_samples)
            .filter(|sample| {
                objective.weight(samples[*sample]) > 0.0 && objective.has_gradient(samples[*sample])
            })
            .collect();
        if computed.is_empty() {
            return Err(TrainerError::NoWeight { samples: num_samples });
        }

        // 2. Rows that begin alike stand together, so that what they share is computed once.
        let given: Vec<&Sample> = computed.iter().map(|sample| samples[*sample]).collect();
        let order: Vec<usize> =
            prefix_order(&given).into_iter().map(|sample| computed[sample]).collect();
        let samples: Vec<&Sample> = order.iter().map(|sample| samples[*sample]).collect();
        let lengths: Vec<usize> = samples.iter().map(|sample| sample.len()).collect();
        let shared = shared_prefixes(&samples);
        let own: Vec<usize> =
            lengths.iter().zip(&shared).map(|(len, shared)| len - shared).collect();
        let budget = self.config.micro_batch_tokens;
        let shards: Vec<Vec<Range<usize>>> = split_evenly(&own, self.config.shards)
            .into_iter()
            .filter(|shard| !shard.is_empty())
            .map(|shard| {
                let range = shard.clone();
                let micro = split_shared_by_budget(&lengths[range.clone()], &shared[range], budget);
                micro
                    .into_iter()
                    .map(|samples| shard.start + samples.start..shard.start + samples.end)
                    .collect()
            })
            .collect();
        let num_computed = |samples: &Range<usize>| {
            shared[samples.start] + own[samples.clone()].iter().sum::<usize>()
        };
        let computed_tokens = shards.iter().flatten().map(num_computed).sum();

        // 3. What the objective has to know before it is asked, and the gradient.
        let present = match objective.needs().present {
            true => Some(self.measure(model, &samples, &shards)?),
            false => None,
        };
        let (present, state) = (present.as_deref(), self.objective_state.clone());
        let update = Update { samples: &samples, present, seed, aggregation, state: &state };
        let prepared = objective.begin(&update);
        let outcomes: Vec<OnceLock<SampleOutcome>> =
            samples.iter().map(|_| OnceLock::new()).collect();
        let version = self.version();
        let loss = |index: usize, measured: Measured<'_>| -> Slopes {
            let (sample, logprobs) = (samples[index], measured.logprobs);
            if logprobs.len() != sample.len() {
                let wrong_count = Some(logprobs.len());
                let outcome = SampleOutcome { wrong_count, ..SampleOutcome::default() };
                let _ = outcomes[index].set(outcome);
                return Slopes::from(vec![0.0; logprobs.len()]);
            }
            let found = prepared.loss(index, measured, scales[order[index]]);
            let drift = Drift::of(sample, logprobs, version);
            // A second answer for the same sample would be equal: the first one stays.
            let _ = outcomes[index].set(SampleOutcome {
                loss: found.loss,
                tally: found.tally,
                drift,
                wrong_count: None,
            });
            found.slopes
        };
        // A head that nothing is learned of is neither run nor moved: its weights would decay.
        let trained_head = self.head.as_ref().filter(|_| objective.needs().returns);
        let head_work = trained_head.map(|head| head.work(shards.len()));
        let head = head_work.as_ref();
        let work = Work { samples: &samples, shards: &shards, loss: &loss, head };
        let home = self.place.home_mut();
        home.accumulate(model, &work)?;

        // 4. What came of the samples, in their order.
        let mut total = SampleOutcome { tally: prepared.tally(), ..SampleOutcome::default() };
        for (index, outcome) in outcomes.iter().enumerate() {
            let sample = order[index];
            let outcome = outcome.get().ok_or(TrainerError::SampleLeftOut { sample })?;
            if let Some(found) = outcome.wrong_count {
                return Err(TrainerError::LogprobCount { sample, tokens: lengths[index], found });
            }
            total.loss += outcome.loss;
            total.tally.merge(&outcome.tally);
            total.drift.merge(&outcome.drift);
        }
        let update = self.updates + 1;
        if !total.loss.is_finite() {
            return Err(TrainerError::NonFinite { what: "loss", update });
        }

        // 5. The step.
        let max_norm = self.config.max_gradient_norm.unwrap_or(f64::INFINITY);
        let mut gradient_norm = home.gradient_norm()?;
        let mut trained_head = None;
        if let (Some(head), Some(work)) = (&mut self.head, head_work) {
            head.add_up(work);
            gradient_norm = gradient_norm.hypot(head.gradient_norm());
            trained_head = Some(head);
        }
        if !gradient_norm.is_finite() {
            return Err(TrainerError::NonFinite { what: "gradient", update });
        }
        let by_objective = prepared.learning_rate_scale();
        if !(0.0..=1.0).contains(&by_objective) {
            return Err(TrainerError::NonFinite { what: "learning rate", update });
        }
        let learning_rate_scale = self.config.schedule.scale(progress) * by_objective as f32;
        let factor = clip_factor(gradient_norm, max_norm);
        if gradient_norm.min(max_norm) > MAX_GRADIENT_NORM {
            return Err(TrainerError::NonFinite { what: "square of the gradient", update });
        }
        let next_state = prepared.state(&total.tally);
        home.step(factor, learning_rate_scale)?;
        if let Some(head) = trained_head {
            head.step(factor, learning_rate_scale)?;
        }
        self.updates = update;
        self.objective_state = next_state;
        if let Some(average) = &mut self.average {
            average.add(&home.parameters()?.data);
        }
        Ok(UpdateMetrics {
            update,
            loss: total.loss,
            gradient_norm,
            is_clipped: gradient_norm > max_norm,
            learning_rate_scale,
            samples: num_samples,
            computed_samples: samples.len(),
            tokens: lengths.iter().sum(),
            computed_tokens,
            drift: total.drift,
            objective: total.tally.values(),
            seconds: started.elapsed().as_secs_f64(),
        })
    }

    /// Whether there is all that the objective reads of samples.
    fn check_streams(
        &self,
        samples: &[&Sample],
        objective: &dyn Objective,
    ) -> Result<(), TrainerError> {
        let needs = objective.needs();
        if needs.returns && self.head.is_none() {
            return Err(TrainerError::NoHead);
        }
        type Stream = fn(&Sample) -> &[f32];
        let streams: [(&'static str, bool, Stream); 4] = [
            ("values", needs.values, |sample| &sample.values),
            ("returns", needs.returns, |sample| &sample.returns),
            ("old_logprobs", needs.old, |sample| &sample.old_logprobs),
            ("entropies", needs.entropies, |sample| &sample.entropies),
        ];
        for (stream, _, of) in streams.into_iter().filter(|(_, is_needed, _)| *is_needed) {
            if let Some(sample) = samples.iter().position(|sample| of(sample).is_empty()) {
                return Err(TrainerError::NoStream { sample, stream });
            }
        }
        Ok(())
    }

    /// Fills those of `signals` that are measured at the present weights in the streams of samples, as
    /// [`fill_signals`] says.
    ///
    /// # Errors
    ///
    /// As [`fill_signals`].
    pub fn fill_signals(
        &self,
        samples: &mut [Sample],
        signals: &[Signal],
        tokens: MeasuredTokens,
        model: &dyn SampleGradient,
    ) -> Result<(), TrainerError> {
        let weights = MeasuredAt::Present;
        let is_present = |stage: &&SignalRow| stage.weights == weights;
        let mut present = signal_stages().iter().filter(is_present);
        if !present.any(|stage| signals.contains(&stage.signal)) {
            return Ok(());
        }
        let model = self.place.home().fixed(model)?;
        let micro_batch_tokens = self.config.micro_batch_tokens;
        let (model, head) = (model.as_ref(), self.head());
        let source = SignalSource { weights, model, head, micro_batch_tokens };
        fill_signals(samples, signals, tokens, &source)
    }

    /// The log-probabilities of samples at the present weights, read in the same pieces as for the gradient.
    fn measure(
        &self,
        model: &dyn SampleGradient,
        samples: &[&Sample],
        shards: &[Vec<Range<usize>>],
    ) -> Result<Vec<Vec<f32>>, TrainerError> {
        let model = self.place.home().fixed(model)?;
        let mut all = Vec::with_capacity(samples.len());
        for range in shards.iter().flatten() {
            let found = model.logprobs(&samples[range.clone()]);
            all.extend(found.map_err(|source| TrainerError::Model { source })?);
        }
        for (sample, (given, found)) in samples.iter().zip(&all).enumerate() {
            let (tokens, found) = (given.len(), found.len());
            if tokens != found {
                return Err(TrainerError::LogprobCount { sample, tokens, found });
            }
        }
        Ok(all)
    }

    /// Writes everything but the weights to a safetensors file: optimisers, update counter, averages.
    ///
    /// With the weights of the same moment it is all that [`Trainer::load_state`] needs to go on
    /// to the bit.
    ///
    /// # Errors
    ///
    /// [`TrainerError::StateFile`] when it cannot be written, or the state cannot be read;
    /// [`TrainerError::Model`] when a device fails.
    pub fn save_state(&self, path: &Path) -> Result<(), TrainerError> {
        let mut tensors = vec![StateTensor::counter("updates", self.updates)];
        let home = self.place.home();
        let name = home.optimizer();
        tensors.extend(home.state()?.into_iter().map(|tensor| tensor.under(name)));
        if let Some(head) = &self.head {
            tensors.extend(head.state().into_iter().map(|tensor| tensor.under("head")));
        }
        if let Some(average) = &self.average {
            tensors.extend(average.state().into_iter().map(|tensor| tensor.under("average")));
        }
        // Checkpoints of objectives that leave nothing are as they always were.
        if !self.objective_state.is_empty() {
            tensors.push(StateTensor::counter("objective.len", self.objective_state.len() as u64));
            for (index, number) in self.objective_state.iter().enumerate() {
                tensors.push(StateTensor::counter(format!("objective.{index}"), number.to_bits()));
            }
        }
        write_state(path, &tensors)
    }

    /// Takes over weights and the state saved with them; the weights of a head are those that the trainer was
    /// [given](Trainer::with_head). On an error it keeps what it had.
    ///
    /// # Errors
    ///
    /// [`TrainerError::State`] when the weights have another layout, or the state is of another
    /// optimiser or lacks something; [`TrainerError::StateUnreadable`] when it is no safetensors file,
    /// or not all of one.
    pub fn load_state(&mut self, parameters: Parameters, path: &Path) -> Result<(), TrainerError> {
        if parameters.specs != *self.place.home().specs() {
            let detail = "the weights have another layout".to_owned();
            return Err(TrainerError::State { detail });
        }
        let unreadable = |source| TrainerError::StateUnreadable { source };
        let mut file = TensorFile::open(path.to_owned()).map_err(unreadable)?;
        let mut state = StateReader::new(&mut file);
        let updates = state.counter("updates")?;
        let mut average = self.config.average.map(WeightAverage::new);
        if let Some(average) = &mut average {
            average.load_state(state.under("average"), parameters.data.len())?;
        }
        let anew = |head: &HeadHome| {
            let mut head = HeadHome::new(head.weights().clone(), &self.config.optimizer)?;
            head.load_state(state.under("head"))?;
            Ok::<_, TrainerError>(head)
        };
        let head = self.head.as_ref().map(anew).transpose()?;
        let mut objective_state = Vec::new();
        if state.has("objective.len") {
            for index in 0..state.counter("objective.len")?.min(MAX_OBJECTIVE_STATE) {
                objective_state.push(f64::from_bits(state.counter(&format!("objective.{index}"))?));
            }
        }
        let home = self.place.home_mut();
        let name = home.optimizer();
        home.load(parameters, state.under(name))?;
        self.head = head;
        self.average = average;
        self.objective_state = objective_state;
        self.updates = updates;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rand::RngExt;
    use spar_core::Preference;

    use super::*;
    use spar_policy::state_heads::StateHeadConfig;

    use crate::testing::{Bigram, load, saved};
    use crate::{
        AverageConfig, BySample, Clip, ClipOptions, Dpo, OptimizerConfig, PreparedObjective,
        SampleLoss, Supervised,
    };

    const VOCABULARY: usize = 5;

    fn config(name: &str, learning_rate: f64) -> TrainerConfig {
        let mut options = toml::Table::new();
        options.insert("learning_rate".to_owned(), learning_rate.into());
        let optimizer = OptimizerConfig { name: name.to_owned(), options };
        TrainerConfig { optimizer, ..TrainerConfig::default() }
    }

    fn demonstrations() -> Vec<Sample> {
        // Each token is followed by the next one.
        (0..12u32)
            .map(|start| {
                let mut sample = Sample::default();
                sample.push_observed(start % 5, 0.0);
                (1..6).for_each(|t| sample.push_observed((start + t) % 5, 1.0));
                sample
            })
            .collect()
    }

    #[test]
    fn supervised_training_learns_a_chain() {
        for (name, rate) in [("adamw", 0.1), ("muon", 0.1)] {
            let mut trainer = Trainer::new(config(name, rate), Bigram::new(VOCABULARY)).unwrap();
            let (samples, seed) = (demonstrations(), Seed::from_u64(1));
            let mut run = |iteration: usize| {
                let seed = seed.derive("iteration", iteration);
                let mode = LossAggregation::TokenMean;
                trainer.iterate(&samples, &Supervised, mode, &Bigram, seed, 0.0).unwrap().remove(0)
            };
            let first = run(0);
            assert!((first.loss - (VOCABULARY as f64).ln()).abs() < 1e-5);
            (1..150).for_each(|iteration| drop(run(iteration)));
            let last = run(150);
            assert!(last.loss < 0.1, "{name}: {}", last.loss);
            assert_eq!(last.update, 151);
        }
    }

    fn sampled(trainer: &Trainer, tokens: &[(u32, f32)]) -> Sample {
        let mut sample = Sample::default();
        sample.push_observed(0, 0.0);
        for (token, advantage) in tokens {
            sample.push(*token, 1.0, *advantage, 0.0, 0.0, trainer.version(), &[]);
        }
        sample.behavior_logprobs =
            Bigram.prepare(&trainer.parameters().unwrap()).logprobs(&[&sample]).unwrap().remove(0);
        sample
    }

    #[test]
    fn policy_gradient_follows_the_sign_of_the_advantage() {
        let mut trainer = Trainer::new(config("adamw", 0.01), Bigram::new(VOCABULARY)).unwrap();
        let sample = sampled(&trainer, &[(1, 1.0), (2, -1.0), (3, 0.0)]);
        let metrics = trainer
            .update(&[&sample], &Clip::default(), LossAggregation::TokenMean, &Bigram, 0.0)
            .unwrap();
        assert_eq!(metrics.drift.current.tokens, 3);
        assert_eq!(metrics.drift.current.max, 0.0);
        let after =
            Bigram.prepare(&trainer.parameters().unwrap()).logprobs(&[&sample]).unwrap().remove(0);
        assert!(after[1] > sample.behavior_logprobs[1]);
        assert!(after[2] < sample.behavior_logprobs[2]);
        assert_eq!(after[3], sample.behavior_logprobs[3]);
        // The same sample is of an older version now, and its log-probabilities have moved.
        let metrics = trainer
            .update(&[&sample], &Clip::default(), LossAggregation::TokenMean, &Bigram, 0.0)
            .unwrap();
        assert_eq!((metrics.drift.current.tokens, metrics.drift.all.tokens), (0, 3));
        assert!(metrics.drift.all.max > 0.0);
    }

    fn weights_after(threads: usize, config: TrainerConfig) -> Vec<f32> {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let mut trainer = Trainer::new(config, Bigram::new(VOCABULARY)).unwrap();
            for iteration in 0..4 {
                let seed = Seed::from_u64(iteration);
                let mode = LossAggregation::SampleMean;
                trainer.iterate(&demonstrations(), &Supervised, mode, &Bigram, seed, 0.3).unwrap();
            }
            trainer.parameters().unwrap().data.to_vec()
        })
    }

    #[test]
    fn threads_and_micro_batches_do_not_change_the_weights() {
        let base = TrainerConfig { minibatches: 3, epochs: 2, ..config("muon", 0.02) };
        let wanted = weights_after(1, base.clone());
        assert_eq!(weights_after(4, base.clone()), wanted);
        let small = TrainerConfig { micro_batch_tokens: 1, ..base };
        assert_eq!(weights_after(3, small), wanted);
    }

    #[test]
    fn prompts_that_are_kept_together_are_read_once() {
        let samples: Vec<Sample> = (0..8u32)
            .map(|index| {
                let mut sample = Sample::default();
                (0..6).for_each(|t| sample.push_observed((index % 2 + t) % 5, 0.0));
                sample.push_observed(index / 2, 1.0);
                sample
            })
            .collect();
        let computed = |keep_prompts_together| {
            let config =
                TrainerConfig { minibatches: 2, keep_prompts_together, ..config("adamw", 0.1) };
            let config = TrainerConfig { shards: 1, ..config };
            let mut trainer = Trainer::new(config, Bigram::new(VOCABULARY)).unwrap();
            let (seed, mode) = (Seed::from_u64(1), LossAggregation::TokenMean);
            let metrics = trainer.iterate(&samples, &Supervised, mode, &Bigram, seed, 0.0).unwrap();
            assert_eq!(metrics.iter().map(|update| update.tokens).sum::<usize>(), 8 * 7);
            metrics.iter().map(|update| update.computed_tokens).sum::<usize>()
        };
        // A prompt of six tokens and four answers in each of two minibatches.
        assert_eq!(computed(true), 2 * 10);
        assert!(computed(false) > 2 * 10);
    }

    fn fresh_head() -> HeadWeights {
        let config = StateHeadConfig { learning_rate_scale: 2.0, ..StateHeadConfig::default() };
        HeadWeights::fresh(&config, VOCABULARY, Seed::from_u64(5)).unwrap()
    }

    /// A head that tells histograms, with these options.
    fn histogram_head(options: &str) -> HeadWeights {
        let config = format!(r#"{{ "kind": "histogram", "learning_rate_scale": 2.0{options} }}"#);
        let config: StateHeadConfig = serde_json::from_str(&config).unwrap();
        HeadWeights::fresh(&config, VOCABULARY, Seed::from_u64(5)).unwrap()
    }

    fn ppo(clip: Option<f64>) -> Box<dyn Objective> {
        let value_loss = Some(crate::ValueLossOptions { weight: 0.5, clip });
        crate::ObjectiveConfig { value_loss, ..Default::default() }.build().unwrap()
    }

    /// Samples whose returns follow from the token before, without advantages.
    fn valued(trainer: &Trainer) -> Vec<Sample> {
        (0..6)
            .map(|start| {
                let mut sample = sampled(trainer, &[(start % 5, 0.0), (2, 0.0), (start % 3, 0.0)]);
                let before = [&[0], &sample.tokens[..3]].concat();
                sample.returns = before.iter().map(|token| *token as f32 / 5.0).collect();
                sample.turns = vec![Sample::OBSERVED, 0, 0, 0];
                sample
            })
            .collect()
    }

    #[test]
    fn a_value_head_learns_returns_and_leaves_the_policy_alone() {
        let start = || Trainer::new(config("adamw", 0.02), Bigram::new(VOCABULARY)).unwrap();
        let mut trainer = start().with_head(fresh_head()).unwrap();
        let mut samples = valued(&trainer);
        for iteration in 0..200 {
            let tokens = MeasuredTokens::Sampled;
            trainer.fill_signals(&mut samples, &[Signal::Values], tokens, &Bigram).unwrap();
            if iteration == 0 {
                assert!(samples.iter().all(|sample| sample.values == [0.0; 4]));
            }
            let (seed, mode) = (Seed::from_u64(iteration), LossAggregation::TokenMean);
            let objective = ppo(Some(0.2));
            let metrics = trainer.iterate(&samples, &*objective, mode, &Bigram, seed, 0.0).unwrap();
            assert!(metrics[0].objective.contains_key("value_clip_fraction"));
            if iteration == 199 {
                assert!(metrics[0].objective["value_loss"] < 1e-4, "{metrics:?}");
            }
        }
        assert!(crate::explained_variance(&samples).unwrap() > 0.99);
        // The gradient of the policy is 0 without advantages, and a table is no trunk.
        assert!(trainer.parameters().unwrap().data.iter().all(|value| *value == 0.0));
        assert_ne!(trainer.head().unwrap().parameters().data, fresh_head().parameters().data);
    }

    /// What a head errs by that has learned returns with noise that is large at times: the mean squared difference of its values
    /// from what the returns are without.
    fn error_behind_noise(head: HeadWeights) -> f64 {
        let mut trainer = Trainer::new(config("adamw", 0.02), Bigram::new(VOCABULARY))
            .unwrap()
            .with_head(head)
            .unwrap();
        let means = valued(&trainer);
        let mut rng = Seed::from_u64(11).rng();
        let tokens = MeasuredTokens::Sampled;
        for iteration in 0..300 {
            let mut samples = means.clone();
            for sample in &mut samples {
                for target in &mut sample.returns {
                    // Mostly near the mean, at times far away, which evens out.
                    let far = if rng.random_bool(0.1) { 4.0 } else { 0.2 };
                    *target += far * rng.random_range(-1.0..1.0_f32);
                }
            }
            let (seed, mode) = (Seed::from_u64(iteration), LossAggregation::TokenMean);
            trainer.iterate(&samples, &*ppo(None), mode, &Bigram, seed, 0.0).unwrap();
        }
        let mut told = means.clone();
        trainer.fill_signals(&mut told, &[Signal::Values], tokens, &Bigram).unwrap();
        let pairs = told.iter().flat_map(|it| it.values[1..].iter().zip(&it.returns[1..]));
        let (sum, count) = pairs.fold((0.0, 0.0), |(sum, count), (value, mean)| {
            (sum + f64::from(value - mean).powi(2), count + 1.0)
        });
        sum / count
    }

    #[test]
    fn histograms_learn_noiseless_returns_as_exactly_and_noisy_ones_better_than_squares() {
        for kind in ["hl_gauss", "two_hot"] {
            let options = format!(r#", "histogram": "{kind}", "low": -1, "high": 2"#);
            let mut trainer = Trainer::new(config("adamw", 0.05), Bigram::new(VOCABULARY)).unwrap();
            trainer = trainer.with_head(histogram_head(&options)).unwrap();
            let mut samples = valued(&trainer);
            let (seed, mode) = (Seed::from_u64(3), LossAggregation::TokenMean);
            for _ in 0..300 {
                trainer.iterate(&samples, &*ppo(None), mode, &Bigram, seed, 0.0).unwrap();
            }
            let tokens = MeasuredTokens::Sampled;
            trainer.fill_signals(&mut samples, &[Signal::Values], tokens, &Bigram).unwrap();
            let explained = crate::explained_variance(&samples).unwrap();
            assert!(explained > 0.99, "{kind}: {explained}");
        }
        let by_squares = error_behind_noise(fresh_head());
        for kind in ["hl_gauss", "two_hot"] {
            let options = format!(r#", "histogram": "{kind}", "low": -4, "high": 5"#);
            let by_histograms = error_behind_noise(histogram_head(&options));
            assert!(by_histograms < by_squares, "{kind}: {by_histograms} {by_squares}");
        }
    }

    /// Imitates what weighs in the cross-entropy, and needs no values.
    #[derive(Debug)]
    struct Unvalued;

    impl Objective for Unvalued {
        fn name(&self) -> &'static str {
            "unvalued"
        }

        fn weight(&self, sample: &Sample) -> f64 {
            Supervised.weight(sample)
        }

        fn begin<'a>(&'a self, update: &Update<'a>) -> Box<dyn PreparedObjective + 'a> {
            Box::new(BySample::new(update, |sample: &Sample, measured: Measured<'_>, scale| {
                assert!(measured.values.is_empty(), "the head was run");
                let slope = |weight: &f32| -(scale as f32) * weight;
                let slopes: Vec<f32> = sample.cross_entropy_weights.iter().map(slope).collect();
                SampleLoss { slopes: slopes.into(), ..SampleLoss::default() }
            }))
        }
    }

    #[test]
    fn a_head_is_left_alone_where_the_objective_needs_no_returns() {
        for name in ["adamw", "muon"] {
            let mut config = config(name, 0.1);
            config.optimizer.options.insert("weight_decay".to_owned(), 0.5.into());
            let start = || Trainer::new(config.clone(), Bigram::new(VOCABULARY)).unwrap();
            let mut head = fresh_head();
            head.parameters_mut().data.fill(0.5);
            let mut trainer = start().with_head(head.clone()).unwrap();
            let before = saved(&trainer);
            let samples = demonstrations();
            let all: Vec<&Sample> = samples.iter().collect();
            let mode = LossAggregation::TokenMean;
            let update = |trainer: &mut Trainer| {
                trainer.update(&all, &Unvalued, mode, &Bigram, 0.0).unwrap().gradient_norm
            };
            let found = update(&mut trainer);
            assert_eq!(trainer.head().unwrap().parameters(), head.parameters(), "{name}");
            assert_ne!(saved(&trainer), before, "{name}");
            let mut without = start();
            assert_eq!(update(&mut without), found, "{name}");
            assert_eq!(trainer.parameters().unwrap(), without.parameters().unwrap(), "{name}");
        }
    }

    #[test]
    fn a_value_loss_is_refused_without_what_it_needs() {
        let trainer = || Trainer::new(config("adamw", 0.1), Bigram::new(VOCABULARY)).unwrap();
        let mode = LossAggregation::TokenMean;
        let update = |mut trainer: Trainer, sample: &Sample, clip| {
            let error = trainer.update(&[sample], &*ppo(clip), mode, &Bigram, 0.0).unwrap_err();
            assert_eq!(trainer.version(), PolicyVersion(0));
            error.to_string()
        };
        let mut sample = valued(&trainer()).remove(0);
        assert_eq!(update(trainer(), &sample, None), "train a value head: the trainer has none");
        let with_head = || trainer().with_head(fresh_head()).unwrap();
        let told = update(with_head(), &sample, Some(0.2));
        assert!(told.contains("sample 0: it has no values"), "{told}");
        sample.returns.clear();
        assert!(update(with_head(), &sample, None).contains("it has no returns"));
    }

    #[test]
    fn a_head_goes_on_to_the_bit_from_its_weights_and_state() {
        let heads = [fresh_head(), histogram_head(r#", "bins": 11"#)];
        for (name, first) in ["adamw", "muon"].into_iter().zip(heads) {
            let fresh = |head| {
                Trainer::new(config(name, 0.05), Bigram::new(VOCABULARY))
                    .unwrap()
                    .with_head(head)
                    .unwrap()
            };
            let mode = LossAggregation::SampleMean;
            let train = |trainer: &mut Trainer, iterations: Range<u64>| {
                let mut samples = valued(trainer);
                for (index, sample) in samples.iter_mut().enumerate() {
                    sample.advantages.fill(index as f32 - 2.5);
                }
                for iteration in iterations {
                    let seed = Seed::from_u64(iteration);
                    trainer.iterate(&samples, &*ppo(None), mode, &Bigram, seed, 0.0).unwrap();
                }
            };
            let mut whole = fresh(first);
            train(&mut whole, 0..3);
            let (weights, head) = (whole.parameters().unwrap(), whole.head().unwrap().clone());
            let state = saved(&whole);
            train(&mut whole, 3..6);
            let mut resumed = fresh(head);
            load(&mut resumed, weights, &state).unwrap();
            train(&mut resumed, 3..6);
            let of_head = |trainer: &Trainer| trainer.head().unwrap().parameters().clone();
            assert_eq!(of_head(&resumed), of_head(&whole), "{name}");
            assert_eq!(resumed.parameters().unwrap(), whole.parameters().unwrap());
            assert_eq!(saved(&resumed), saved(&whole));
            // A state without the head's is refused, and nothing is changed.
            let mut without = Trainer::new(config(name, 0.05), Bigram::new(VOCABULARY)).unwrap();
            let plain = saved(&without);
            train_plain(&mut without);
            let before = saved(&resumed);
            assert!(load(&mut resumed, without.parameters().unwrap(), &plain).is_err());
            assert_eq!(saved(&resumed), before);
        }
    }

    fn train_plain(trainer: &mut Trainer) {
        let (seed, mode) = (Seed::from_u64(1), LossAggregation::TokenMean);
        trainer.iterate(&demonstrations(), &Supervised, mode, &Bigram, seed, 0.0).unwrap();
    }

    #[test]
    fn every_objective_moves_towards_what_was_good() {
        let names = crate::objective_registry().iter().map(|entry| entry.name);
        for name in names.filter(|name| !["supervised", "values_alone"].contains(name)) {
            let config = crate::testing::default_config(name);
            let (objective, aggregation) = (config.build().unwrap(), config.aggregation);
            let mut samples = answers(&[1.0, -1.0, 1.0, -1.0]);
            // Some compare answers to one question.
            samples.iter_mut().for_each(|sample| sample.tokens[0] = 0);
            let all: Vec<&Sample> = samples.iter().collect();
            let mut trainer = Trainer::new(config_of(0.05), Bigram::new(VOCABULARY)).unwrap();
            let before = Bigram.prepare(&trainer.parameters().unwrap()).logprobs(&all).unwrap();
            trainer.update(&all, objective.as_ref(), aggregation, &Bigram, 0.0).unwrap();
            let after = Bigram.prepare(&trainer.parameters().unwrap()).logprobs(&all).unwrap();
            let gain = |index: usize| -> f32 {
                after[index].iter().zip(&before[index]).map(|(after, before)| after - before).sum()
            };
            assert!(gain(0) + gain(2) > gain(1) + gain(3), "{name}");
        }
    }

    #[test]
    fn pairs_stay_whole_however_a_pass_is_divided() {
        let samples = answers(&[1.0, -1.0, 1.0, -1.0, 1.0, -1.0, 1.0, -1.0]);
        let objective = Dpo::default();
        for keep_prompts_together in [false, true] {
            let config = TrainerConfig {
                minibatches: 3,
                shards: 3,
                micro_batch_tokens: 1,
                keep_prompts_together,
                ..config_of(0.05)
            };
            let mut trainer = Trainer::new(config, Bigram::new(VOCABULARY)).unwrap();
            for iteration in 0..4 {
                let (seed, mode) = (Seed::from_u64(iteration), LossAggregation::TokenMean);
                let updates = trainer.iterate(&samples, &objective, mode, &Bigram, seed, 0.0);
                let updates = updates.unwrap();
                assert_eq!(updates.iter().map(|update| update.computed_samples).sum::<usize>(), 8);
                assert!(updates.iter().all(|update| update.samples % 2 == 0));
            }
        }
        let mut trainer = Trainer::new(config_of(0.05), Bigram::new(VOCABULARY)).unwrap();
        let parted: Vec<&Sample> = samples.iter().take(3).collect();
        let mode = LossAggregation::TokenMean;
        let error = trainer.update(&parted, &objective, mode, &Bigram, 0.0).unwrap_err();
        assert!(matches!(error, TrainerError::PartedPair { sample: 2 }), "{error}");
    }

    #[test]
    fn an_entropy_bonus_makes_draws_more_even() {
        let mut start = Bigram::new(VOCABULARY);
        start.data.iter_mut().step_by(3).for_each(|logit| *logit = 2.0);
        let samples = answers(&[0.0, 0.0]);
        let all: Vec<&Sample> = samples.iter().collect();
        let options = ClipOptions { entropy_weight: 1.0, ..Default::default() };
        let objective = Clip::new(options);
        let mut trainer = Trainer::new(config_of(0.1), start).unwrap();
        let mut entropies = Vec::new();
        for _ in 0..20 {
            let mode = LossAggregation::TokenMean;
            let metrics = trainer.update(&all, &objective, mode, &Bigram, 0.0).unwrap();
            entropies.push(metrics.objective["entropy"]);
        }
        assert!(entropies[19] > entropies[0] + 0.05, "{entropies:?}");
    }

    fn config_of(learning_rate: f64) -> TrainerConfig {
        config("adamw", learning_rate)
    }

    /// Rows of as many tokens each, one per advantage, drawn by uniform weights.
    fn answers(advantages: &[f32]) -> Vec<Sample> {
        let answer = |(index, advantage): (usize, &f32)| {
            let mut sample = Sample::default();
            sample.push_observed(index as u32 % 5, 0.0);
            for t in 0..3 {
                let token = (index as u32 * 7 + t * 3) % 5;
                let logprob = -(VOCABULARY as f32).ln();
                sample.push(token, 1.0, *advantage, 0.0, logprob, PolicyVersion(0), &[]);
            }
            sample.reference_logprobs = sample.behavior_logprobs.clone();
            // Each good one and the bad one behind it are a pair.
            let (pair, is_chosen) = (index as u64 / 2, *advantage > 0.0);
            sample.preference = Some(Preference { pair, is_chosen, parts: 1 });
            sample
        };
        advantages.iter().enumerate().map(answer).collect()
    }

    /// What an update of fresh weights finds.
    fn measure(
        samples: &[Sample],
        objective: &dyn Objective,
        mode: LossAggregation,
    ) -> UpdateMetrics {
        let mut trainer = Trainer::new(config("adamw", 0.1), Bigram::new(VOCABULARY)).unwrap();
        let samples: Vec<&Sample> = samples.iter().collect();
        trainer.update(&samples, objective, mode, &Bigram, 0.0).unwrap()
    }

    const MODES: [LossAggregation; 3] = [
        LossAggregation::TokenMean,
        LossAggregation::SampleMean,
        LossAggregation::SampleSum { constant: 8.0 },
    ];

    #[test]
    fn samples_without_advantage_count_in_the_denominator() {
        let alone = answers(&[1.0]);
        let among = answers(&[&[1.0][..], &[0.0; 15]].concat());
        for mode in MODES {
            let clip = Clip::default();
            let (one, many) = (measure(&alone, &clip, mode), measure(&among, &clip, mode));
            assert_eq!((many.samples, many.computed_samples), (16, 1));
            let ratio = one.gradient_norm / many.gradient_norm;
            assert!((ratio - 16.0).abs() < 1e-4, "{mode:?}: {ratio}");
            // As where all samples are computed, since a divergence draws on them.
            let options = ClipOptions { kl_weight: 1e-9, ..ClipOptions::default() };
            let all = measure(&among, &Clip::new(options), mode);
            assert_eq!((all.samples, all.computed_samples), (16, 16));
            assert!((all.gradient_norm / many.gradient_norm - 1.0).abs() < 1e-4, "{mode:?}");
        }
    }

    #[test]
    fn a_minibatch_without_gradient_makes_no_update() {
        let config = TrainerConfig { minibatches: 4, ..config("adamw", 0.1) };
        let mut trainer = Trainer::new(config, Bigram::new(VOCABULARY)).unwrap();
        let mut iterate = |advantages: &[f32]| {
            let (seed, mode) = (Seed::from_u64(1), LossAggregation::SampleMean);
            let samples = answers(advantages);
            trainer.iterate(&samples, &Clip::default(), mode, &Bigram, seed, 0.0).unwrap()
        };
        let updates = iterate(&[0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0]);
        let [only] = &updates[..] else { panic!("one update") };
        assert_eq!((only.samples, only.computed_samples), (2, 1));
        assert!(iterate(&[0.0; 8]).is_empty());
    }

    proptest! {
        #[test]
        fn neither_minibatches_nor_shards_change_the_scale_of_the_loss(
            advantages in prop::collection::vec(
                prop_oneof![Just(0.0_f32), -2.0_f32..2.0], 12..=12,
            ),
            shards in 1_usize..6,
            micro_batch_tokens in 1_usize..20,
        ) {
            prop_assume!(advantages.iter().any(|advantage| *advantage != 0.0));
            let samples = answers(&advantages);
            for mode in MODES {
                let whole = measure(&samples, &Clip::default(), mode);
                let run = |minibatches| {
                    // Weights that do not move, so that all losses are of the same ones.
                    let config = TrainerConfig {
                        minibatches, shards, micro_batch_tokens, ..config("adamw", 1e-30)
                    };
                    let mut trainer = Trainer::new(config, Bigram::new(VOCABULARY)).unwrap();
                    let seed = Seed::from_u64(3);
                    trainer.iterate(&samples, &Clip::default(), mode, &Bigram, seed, 0.0).unwrap()
                };
                let one = run(1).remove(0);
                prop_assert!((one.loss - whole.loss).abs() < 1e-6);
                prop_assert!((one.gradient_norm - whole.gradient_norm).abs() < 1e-5);
                for minibatches in [2, 3, 4] {
                    let updates = run(minibatches);
                    prop_assert!(updates.iter().all(|update| update.samples == 12 / minibatches));
                    // Those that made no update have a loss of 0.
                    let mean = updates.iter().map(|update| update.loss).sum::<f64>()
                        / minibatches as f64;
                    prop_assert!((mean - whole.loss).abs() < 1e-6, "{mean} {}", whole.loss);
                }
            }
        }
    }

    #[test]
    fn cloning_counts_only_what_it_imitates() {
        let mut samples = answers(&[1.0, -1.0, 0.0, 0.0]);
        samples[0].cross_entropy_weights = vec![0.0, 1.0, 1.0, 1.0];
        for mode in MODES {
            let found = measure(&samples, &Supervised, mode);
            let alone = measure(&samples[..1], &Supervised, mode);
            assert_eq!(found.loss, alone.loss);
            assert_eq!(found.gradient_norm, alone.gradient_norm);
        }
        assert!((measure(&samples, &Supervised, MODES[0]).loss - 5_f64.ln()).abs() < 1e-6);
    }

    #[test]
    fn a_state_in_a_file_needs_a_folder() {
        let config = TrainerConfig { optimizer_state: StatePlace::File, ..config("adamw", 0.1) };
        let error = Trainer::new(config.clone(), Bigram::new(VOCABULARY)).err().unwrap();
        assert!(error.to_string().contains("there is no folder"), "{error}");
        let file = tempfile::NamedTempFile::new().unwrap();
        let made = Trainer::on_host(config, Bigram::new(VOCABULARY), Some(file.path()));
        assert!(matches!(made, Err(TrainerError::StateFile { .. })));
    }

    #[test]
    fn a_resumed_trainer_equals_an_uninterrupted_one() {
        let config = TrainerConfig {
            average: Some(AverageConfig::Last { count: 3 }),
            minibatches: 2,
            ..config("muon", 0.02)
        };
        let run = |trainer: &mut Trainer, iterations: Range<u64>| {
            for iteration in iterations {
                let (seed, mode) = (Seed::from_u64(iteration), LossAggregation::TokenMean);
                trainer.iterate(&demonstrations(), &Supervised, mode, &Bigram, seed, 0.0).unwrap();
            }
        };
        let folder = tempfile::tempdir().unwrap();
        let start = |config: &TrainerConfig| {
            let place = (config.optimizer_state == StatePlace::File).then_some(folder.path());
            Trainer::on_host(config.clone(), Bigram::new(VOCABULARY), place).unwrap()
        };
        let mut whole = start(&config);
        run(&mut whole, 0..3);
        let (weights, state) = (whole.parameters().unwrap(), saved(&whole));
        run(&mut whole, 3..5);
        for optimizer_state in [StatePlace::Memory, StatePlace::File] {
            let config = TrainerConfig { optimizer_state, ..config.clone() };
            let mut resumed = start(&config);
            load(&mut resumed, weights.clone(), &state).unwrap();
            assert_eq!(resumed.version(), PolicyVersion(6));
            run(&mut resumed, 3..5);
            assert_eq!(resumed.parameters().unwrap(), whole.parameters().unwrap());
            assert_eq!(resumed.averaged().unwrap(), whole.averaged().unwrap());
            assert_eq!(saved(&resumed), saved(&whole));
        }

        let other = TrainerConfig { optimizer: OptimizerConfig::default(), ..config };
        let mut other = Trainer::new(other, Bigram::new(VOCABULARY)).unwrap();
        let error = load(&mut other, weights, &state).unwrap_err();
        assert!(matches!(error, TrainerError::State { .. }), "{error}");
        let error = load(&mut other, Bigram::new(VOCABULARY), b"junk").unwrap_err();
        assert!(matches!(error, TrainerError::StateUnreadable { .. }), "{error}");
        assert_eq!(other.version(), PolicyVersion(0));
    }

    #[test]
    fn what_an_objective_leaves_to_the_next_update_is_in_the_state() {
        let text = "kl = { weight = 0.5, adaptive = { target = 1e-9, horizon = 40 } }
            entropy_smoothing = {}";
        let config: crate::ObjectiveConfig = toml::from_str(text).unwrap();
        let objective = config.build().unwrap();
        let mut samples = answers(&[1.0, -1.0, 0.5, -0.5]);
        for sample in &mut samples {
            sample.entropies = vec![1.5; 4];
            sample.turns = vec![Sample::OBSERVED, 0, 1, 1];
        }
        let all: Vec<&Sample> = samples.iter().collect();
        let update = |trainer: &mut Trainer| {
            let mode = LossAggregation::TokenMean;
            trainer.update(&all, &*objective, mode, &Bigram, 0.0).unwrap()
        };
        let start = || Trainer::new(config_of(0.05), Bigram::new(VOCABULARY)).unwrap();
        let mut whole = start();
        let first = update(&mut whole);
        assert_eq!(first.objective["entropy_penalty"], 0.0, "nothing is remembered");
        update(&mut whole);
        // Four samples of a horizon of 40, a fifth each time; the first update is at the reference itself.
        let expected = 0.5 * (1.0 - 0.2 * 0.1) * (1.0 + 0.2 * 0.1);
        assert!((whole.objective_state[0] - expected).abs() < 1e-12, "{:?}", whole.objective_state);
        let (weights, state) = (whole.parameters().unwrap(), saved(&whole));
        let mut resumed = start();
        load(&mut resumed, weights, &state).unwrap();
        assert_eq!(resumed.objective_state, whole.objective_state);
        assert_eq!(update(&mut resumed).loss, update(&mut whole).loss);
        assert_eq!(saved(&resumed), saved(&whole));
        // One that leaves nothing forgets.
        let mode = LossAggregation::TokenMean;
        whole.update(&all, &Clip::default(), mode, &Bigram, 0.0).unwrap();
        assert!(whole.objective_state.is_empty());
    }

    #[test]
    fn what_is_not_finite_leaves_the_weights_alone() {
        let mut trainer = Trainer::new(config("adamw", 0.1), Bigram::new(VOCABULARY)).unwrap();
        let (before, state) = (trainer.parameters().unwrap(), saved(&trainer));
        let mode = LossAggregation::TokenMean;
        let mut sample = sampled(&trainer, &[(1, f32::INFINITY)]);
        let error = trainer.update(&[&sample], &Clip::default(), mode, &Bigram, 0.0).unwrap_err();
        assert!(matches!(error, TrainerError::NonFinite { what: "loss", update: 1 }));
        sample.policy_weights[1] = 0.0;
        let error = trainer.update(&[&sample], &Clip::default(), mode, &Bigram, 0.0).unwrap_err();
        assert!(matches!(error, TrainerError::NoWeight { samples: 1 }));
        sample.versions.pop();
        let error = trainer.update(&[&sample], &Clip::default(), mode, &Bigram, 0.0).unwrap_err();
        assert!(matches!(error, TrainerError::Sample { sample: 0, .. }));
        assert_eq!((trainer.parameters().unwrap(), saved(&trainer)), (before, state));
    }
}
