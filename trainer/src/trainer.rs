//! Owns the weights and improves them.

use std::ops::Range;
use std::sync::OnceLock;
use std::time::Instant;

use rayon::prelude::*;
use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use spar_core::{PolicyVersion, Row, Seed};
use spar_policy::Parameters;
use spar_policy::ops::parallel;

use crate::batches::{
    by_prompt, prefix_order, shared_prefixes, shuffled, split_evenly, split_shared_by_budget,
};
use crate::optimisers::{StateReader, counter_tensor};
use crate::{
    BatchWeight, Drift, LossAggregation, NamedTensor, Objective, Optimizer, RowGradient, RowLossFn,
    Tally, TrainerConfig, TrainerError, UpdateMetrics, WeightAverage, clip_global_norm,
};

/// Owns the weights and improves them, one update at a time.
///
/// An update runs every row forward once, asks the objective for the derivative by the
/// log-probabilities, runs backward, and hands the sum to the optimiser:
///
/// ```text
/// rows ─▶ shards ─▶ micro-batches ─▶ RowGradient ─logprobs─▶ Objective
///                                        ▲                      │ d loss / d logprob
///                                        └──────────────────────┘
///             gradient per shard ─▶ sum in shard order ─▶ clip ─▶ Optimizer ─▶ weights
/// ```
///
/// The weights after an update depend on the rows, their order, the config and the state, not on
/// threads. An update that fails leaves weights and state as they were.
pub struct Trainer {
    config: TrainerConfig,
    parameters: Parameters,
    optimizer: Box<dyn Optimizer>,
    average: Option<WeightAverage>,
    updates: u64,
    /// One gradient per shard; kept for their memory.
    shard_gradients: Vec<Vec<f32>>,
}

/// What came of a row.
#[derive(Default)]
struct RowOutcome {
    loss: f64,
    tally: Tally,
    drift: Drift,
    /// Log-probabilities the model gave, where that is not one per token.
    wrong_count: Option<usize>,
}

impl Trainer {
    /// A trainer that starts at `parameters`.
    ///
    /// # Errors
    ///
    /// [`TrainerError::Config`] tells all that is wrong with the config.
    pub fn new(config: TrainerConfig, parameters: Parameters) -> Result<Self, TrainerError> {
        let problems = config.problems();
        if !problems.is_empty() {
            return Err(TrainerError::Config { problems });
        }
        let optimizer = config.optimizer.build(&parameters)?;
        let average = config.average.map(WeightAverage::new);
        Ok(Self { config, parameters, optimizer, average, updates: 0, shard_gradients: Vec::new() })
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

    /// The weights; master weights where others compute with their roundings.
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// Which weights they are: the number of updates made.
    pub fn version(&self) -> PolicyVersion {
        PolicyVersion(u32::try_from(self.updates).unwrap_or(u32::MAX))
    }

    /// The average of the weights; `None` when the config has no average, or before an update.
    pub fn averaged(&self) -> Option<Parameters> {
        let data = self.average.as_ref()?.average()?;
        Some(Parameters { specs: self.parameters.specs.clone(), data: data.into() })
    }

    /// Makes the updates of an iteration: `epochs` times over all rows, each time shuffled by
    /// `seed`, or their prompts where `keep_prompts_together` says so, and divided into
    /// `minibatches`.
    ///
    /// Rows to which the objective gives no weight are left out first; when none is left, no
    /// update is made. `progress` is how far the run is, 0 to 1, for the schedule.
    ///
    /// # Errors
    ///
    /// Those of [`Trainer::update`]; the updates made before the failed one stay.
    pub fn iterate(
        &mut self,
        rows: &[Row],
        objective: &dyn Objective,
        aggregation: LossAggregation,
        model: &dyn RowGradient,
        seed: Seed,
        progress: f32,
    ) -> Result<Vec<UpdateMetrics>, TrainerError> {
        for (row, streams) in rows.iter().enumerate() {
            streams.validate().map_err(|source| TrainerError::Row { row, source })?;
        }
        let rows: Vec<&Row> = rows.iter().filter(|row| objective.weight(row) > 0.0).collect();
        let mut metrics = Vec::new();
        let units = if self.config.keep_prompts_together {
            by_prompt(&rows)
        } else {
            (0..rows.len()).map(|row| vec![row]).collect()
        };
        let length = |unit: &usize| units[*unit].iter().map(|row| rows[*row].len()).sum();
        for epoch in 0..self.config.epochs {
            let order = shuffled(units.len(), seed.derive("epoch", epoch));
            let lengths: Vec<usize> = order.iter().map(length).collect();
            for range in split_evenly(&lengths, self.config.minibatches) {
                let of_range = order[range].iter().flat_map(|unit| &units[*unit]);
                let batch: Vec<&Row> = of_range.map(|row| rows[*row]).collect();
                if !batch.is_empty() {
                    metrics.push(self.update(&batch, objective, aggregation, model, progress)?);
                }
            }
        }
        Ok(metrics)
    }

    /// Makes one update from `rows`.
    ///
    /// # Errors
    ///
    /// [`TrainerError::NoWeight`] when there is nothing to learn from, [`TrainerError::NonFinite`]
    /// when loss or gradient are not finite, [`TrainerError::Model`] when the model fails, and
    /// others when rows or model contradict themselves. Weights and state stay as they were.
    pub fn update(
        &mut self,
        rows: &[&Row],
        objective: &dyn Objective,
        aggregation: LossAggregation,
        model: &dyn RowGradient,
        progress: f32,
    ) -> Result<UpdateMetrics, TrainerError> {
        let started = Instant::now();
        for (row, streams) in rows.iter().enumerate() {
            streams.validate().map_err(|source| TrainerError::Row { row, source })?;
        }
        if objective.needs_reference()
            && let Some(row) = rows.iter().position(|row| row.reference_logprobs.is_empty())
        {
            return Err(TrainerError::NoReference { row });
        }
        let batch = BatchWeight::of(objective, rows.iter().copied());
        if batch.rows == 0.0 {
            return Err(TrainerError::NoWeight { rows: rows.len() });
        }

        // 1. Rows that begin alike stand together, so that what they share is computed once.
        let order = prefix_order(rows);
        let rows: Vec<&Row> = order.iter().map(|row| rows[*row]).collect();
        let lengths: Vec<usize> = rows.iter().map(|row| row.len()).collect();
        let shared = shared_prefixes(&rows);
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
                    .map(|rows| shard.start + rows.start..shard.start + rows.end)
                    .collect()
            })
            .collect();
        let computed =
            |rows: &Range<usize>| shared[rows.start] + own[rows.clone()].iter().sum::<usize>();
        let computed_tokens = shards.iter().flatten().map(computed).sum();

        // 2. One gradient per shard, at the same time.
        let outcomes: Vec<OnceLock<RowOutcome>> = rows.iter().map(|_| OnceLock::new()).collect();
        self.shard_gradients.resize_with(shards.len(), Vec::new);
        let version = self.version();
        let num_weights = self.parameters.data.len();
        let model = model.prepare(&self.parameters);
        // Threads that all have a shard are busy; fewer shards leave some for the operations.
        let is_busy = shards.len() >= rayon::current_num_threads();
        let accumulate = |gradient: &mut Vec<f32>, shard: Vec<Range<usize>>| {
            gradient.clear();
            gradient.resize(num_weights, 0.0);
            for micro_batch in shard {
                let first = micro_batch.start;
                let rows = &rows[micro_batch];
                let loss = |index: usize, logprobs: &[f32]| -> Vec<f32> {
                    let row = rows[index];
                    if logprobs.len() != row.len() {
                        let wrong_count = Some(logprobs.len());
                        let outcome = RowOutcome { wrong_count, ..RowOutcome::default() };
                        let _ = outcomes[first + index].set(outcome);
                        return vec![0.0; logprobs.len()];
                    }
                    let scale = aggregation.scale(objective.weight(row), batch);
                    let found = objective.row_loss(row, logprobs, scale);
                    let drift = Drift::of(row, logprobs, version);
                    // A second answer for the same row would be equal: the first one stays.
                    let _ = outcomes[first + index].set(RowOutcome {
                        loss: found.loss,
                        tally: found.tally,
                        drift,
                        wrong_count: None,
                    });
                    found.gradient
                };
                let loss: &RowLossFn<'_> = &loss;
                model
                    .accumulate(rows, loss, gradient)
                    .map_err(|source| TrainerError::Model { source })?;
            }
            Ok(())
        };
        let shard_gradients = self.shard_gradients.par_iter_mut();
        shard_gradients.zip(shards.into_par_iter()).try_for_each(|(gradient, shard)| {
            if is_busy {
                parallel::serially(|| accumulate(gradient, shard))
            } else {
                accumulate(gradient, shard)
            }
        })?;
        // Its weights are those that are about to change.
        drop(model);

        // 3. Sums in row order and shard order.
        let mut total = RowOutcome::default();
        for (index, outcome) in outcomes.iter().enumerate() {
            let row = order[index];
            let outcome = outcome.get().ok_or(TrainerError::RowLeftOut { row })?;
            if let Some(found) = outcome.wrong_count {
                return Err(TrainerError::LogprobCount { row, tokens: lengths[index], found });
            }
            total.loss += outcome.loss;
            total.tally.merge(&outcome.tally);
            total.drift.merge(&outcome.drift);
        }
        let update = self.updates + 1;
        if !total.loss.is_finite() {
            return Err(TrainerError::NonFinite { what: "loss", update });
        }
        let (gradient, others) =
            self.shard_gradients.split_first_mut().expect("a checked config has a shard");
        for other in others {
            gradient.iter_mut().zip(other.iter()).for_each(|(sum, value)| *sum += value);
        }

        // 4. The step.
        let max_norm = self.config.max_gradient_norm.unwrap_or(f64::INFINITY);
        let gradient_norm = clip_global_norm(gradient, max_norm);
        if !gradient_norm.is_finite() {
            return Err(TrainerError::NonFinite { what: "gradient", update });
        }
        let learning_rate_scale = self.config.schedule.scale(progress);
        self.optimizer.update(&mut self.parameters, gradient, learning_rate_scale);
        self.updates = update;
        if let Some(average) = &mut self.average {
            average.add(&self.parameters.data);
        }
        Ok(UpdateMetrics {
            update,
            loss: total.loss,
            gradient_norm,
            is_clipped: gradient_norm > max_norm,
            learning_rate_scale,
            rows: rows.len(),
            tokens: lengths.iter().sum(),
            computed_tokens,
            drift: total.drift,
            objective: total.tally.values(),
            seconds: started.elapsed().as_secs_f64(),
        })
    }

    /// Everything but the weights, as a safetensors file: optimiser, update counter, averages.
    ///
    /// With the weights of the same moment it is all that [`Trainer::load_state`] needs to go on
    /// to the bit.
    pub fn save_state(&self) -> Vec<u8> {
        let prefixed = |prefix: &str, tensors: Vec<NamedTensor>| {
            let rename = |tensor: NamedTensor| NamedTensor {
                name: format!("{prefix}.{}", tensor.name),
                ..tensor
            };
            tensors.into_iter().map(rename).collect::<Vec<_>>()
        };
        let mut tensors = vec![counter_tensor("updates", self.updates)];
        tensors.extend(prefixed(self.optimizer.name(), self.optimizer.state()));
        if let Some(average) = &self.average {
            tensors.extend(prefixed("average", average.state()));
        }
        write_tensors(&tensors)
    }

    /// Takes over weights and the state saved with them; on an error it keeps what it had.
    ///
    /// # Errors
    ///
    /// [`TrainerError::State`] when the weights have another layout, or the state is of another
    /// optimiser, lacks something, or is no safetensors file.
    pub fn load_state(&mut self, parameters: Parameters, state: &[u8]) -> Result<(), TrainerError> {
        if parameters.specs != self.parameters.specs
            || parameters.data.len() != self.parameters.data.len()
        {
            let detail = "the weights have another layout".to_owned();
            return Err(TrainerError::State { detail });
        }
        let tensors = read_tensors(state)?;
        let updates = StateReader(&tensors).counter("updates")?;
        let under = |prefix: &str| -> Vec<NamedTensor> {
            let strip = |tensor: &NamedTensor| {
                let name = tensor.name.strip_prefix(prefix)?.strip_prefix('.')?.to_owned();
                Some(NamedTensor { name, ..tensor.clone() })
            };
            tensors.iter().filter_map(strip).collect()
        };
        let mut average = self.config.average.map(WeightAverage::new);
        if let Some(average) = &mut average {
            average.load_state(&under("average"), parameters.data.len())?;
        }
        self.optimizer.load_state(&under(self.optimizer.name()))?;
        self.average = average;
        self.updates = updates;
        self.parameters = parameters;
        Ok(())
    }
}

fn write_tensors(tensors: &[NamedTensor]) -> Vec<u8> {
    let bytes: Vec<Vec<u8>> = tensors
        .iter()
        .map(|tensor| tensor.data.iter().flat_map(|value| value.to_le_bytes()).collect())
        .collect();
    let views = tensors.iter().zip(&bytes).map(|(tensor, bytes)| {
        let view = TensorView::new(Dtype::F32, tensor.shape.clone(), bytes)
            .expect("a tensor has as many elements as its shape says");
        (tensor.name.as_str(), view)
    });
    safetensors::serialize(views, None).expect("views of the right size can be written")
}

fn read_tensors(bytes: &[u8]) -> Result<Vec<NamedTensor>, TrainerError> {
    let refuse = |detail: String| TrainerError::State { detail };
    let file = SafeTensors::deserialize(bytes).map_err(|error| refuse(error.to_string()))?;
    let read = |(name, view): (String, TensorView<'_>)| {
        if view.dtype() != Dtype::F32 {
            return Err(refuse(format!("tensor `{name}` is {:?}, not F32", view.dtype())));
        }
        let value = |bytes: &[u8]| f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        let data = view.data().chunks_exact(4).map(value).collect();
        Ok(NamedTensor { name, shape: view.shape().to_vec(), data })
    };
    file.tensors().into_iter().map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Bigram;
    use crate::{AverageConfig, Clip, OptimizerConfig, Supervised};

    const VOCABULARY: usize = 5;

    fn config(name: &str, learning_rate: f64) -> TrainerConfig {
        let mut options = toml::Table::new();
        options.insert("learning_rate".to_owned(), learning_rate.into());
        let optimizer = OptimizerConfig { name: name.to_owned(), options };
        TrainerConfig { optimizer, ..TrainerConfig::default() }
    }

    fn demonstrations() -> Vec<Row> {
        // Each token is followed by the next one.
        (0..12u32)
            .map(|start| {
                let mut row = Row::default();
                row.push_observed(start % 5, 0.0);
                (1..6).for_each(|t| row.push_observed((start + t) % 5, 1.0));
                row
            })
            .collect()
    }

    #[test]
    fn supervised_training_learns_a_chain() {
        for (name, rate) in [("adamw", 0.1), ("muon", 0.1)] {
            let mut trainer = Trainer::new(config(name, rate), Bigram::new(VOCABULARY)).unwrap();
            let (rows, seed) = (demonstrations(), Seed::from_u64(1));
            let mut run = |iteration: usize| {
                let seed = seed.derive("iteration", iteration);
                let mode = LossAggregation::TokenMean;
                trainer.iterate(&rows, &Supervised, mode, &Bigram, seed, 0.0).unwrap().remove(0)
            };
            let first = run(0);
            assert!((first.loss - (VOCABULARY as f64).ln()).abs() < 1e-5);
            (1..150).for_each(|iteration| drop(run(iteration)));
            let last = run(150);
            assert!(last.loss < 0.1, "{name}: {}", last.loss);
            assert_eq!(last.update, 151);
        }
    }

    fn sampled(trainer: &Trainer, tokens: &[(u32, f32)]) -> Row {
        let mut row = Row::default();
        row.push_observed(0, 0.0);
        for (token, advantage) in tokens {
            row.push(*token, 1.0, *advantage, 0.0, 0.0, trainer.version(), &[]);
        }
        row.behavior_logprobs =
            Bigram.prepare(trainer.parameters()).logprobs(&[&row]).unwrap().remove(0);
        row
    }

    #[test]
    fn policy_gradient_follows_the_sign_of_the_advantage() {
        let mut trainer = Trainer::new(config("adamw", 0.01), Bigram::new(VOCABULARY)).unwrap();
        let row = sampled(&trainer, &[(1, 1.0), (2, -1.0), (3, 0.0)]);
        let metrics = trainer
            .update(&[&row], &Clip::default(), LossAggregation::TokenMean, &Bigram, 0.0)
            .unwrap();
        assert_eq!(metrics.drift.current.tokens, 3);
        assert_eq!(metrics.drift.current.max, 0.0);
        let after = Bigram.prepare(trainer.parameters()).logprobs(&[&row]).unwrap().remove(0);
        assert!(after[1] > row.behavior_logprobs[1]);
        assert!(after[2] < row.behavior_logprobs[2]);
        assert_eq!(after[3], row.behavior_logprobs[3]);
        // The same row is of an older version now, and its log-probabilities have moved.
        let metrics = trainer
            .update(&[&row], &Clip::default(), LossAggregation::TokenMean, &Bigram, 0.0)
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
                let mode = LossAggregation::RowMean;
                trainer.iterate(&demonstrations(), &Supervised, mode, &Bigram, seed, 0.3).unwrap();
            }
            trainer.parameters.data.to_vec()
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
        let rows: Vec<Row> = (0..8u32)
            .map(|index| {
                let mut row = Row::default();
                (0..6).for_each(|t| row.push_observed((index % 2 + t) % 5, 0.0));
                row.push_observed(index / 2, 1.0);
                row
            })
            .collect();
        let computed = |keep_prompts_together| {
            let config =
                TrainerConfig { minibatches: 2, keep_prompts_together, ..config("adamw", 0.1) };
            let config = TrainerConfig { shards: 1, ..config };
            let mut trainer = Trainer::new(config, Bigram::new(VOCABULARY)).unwrap();
            let (seed, mode) = (Seed::from_u64(1), LossAggregation::TokenMean);
            let metrics = trainer.iterate(&rows, &Supervised, mode, &Bigram, seed, 0.0).unwrap();
            assert_eq!(metrics.iter().map(|update| update.tokens).sum::<usize>(), 8 * 7);
            metrics.iter().map(|update| update.computed_tokens).sum::<usize>()
        };
        // A prompt of six tokens and four answers in each of two minibatches.
        assert_eq!(computed(true), 2 * 10);
        assert!(computed(false) > 2 * 10);
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
        let mut whole = Trainer::new(config.clone(), Bigram::new(VOCABULARY)).unwrap();
        run(&mut whole, 0..3);
        let (weights, state) = (whole.parameters().clone(), whole.save_state());
        run(&mut whole, 3..5);
        let mut resumed = Trainer::new(config.clone(), Bigram::new(VOCABULARY)).unwrap();
        resumed.load_state(weights.clone(), &state).unwrap();
        assert_eq!(resumed.version(), PolicyVersion(6));
        run(&mut resumed, 3..5);
        assert_eq!(resumed.parameters(), whole.parameters());
        assert_eq!(resumed.averaged(), whole.averaged());
        assert_eq!(resumed.save_state(), whole.save_state());

        let other = TrainerConfig { optimizer: OptimizerConfig::default(), ..config };
        let mut other = Trainer::new(other, Bigram::new(VOCABULARY)).unwrap();
        assert!(matches!(other.load_state(weights, &state), Err(TrainerError::State { .. })));
        assert!(other.load_state(Bigram::new(VOCABULARY), b"junk").is_err());
        assert_eq!(other.version(), PolicyVersion(0));
    }

    #[test]
    fn what_is_not_finite_leaves_the_weights_alone() {
        let mut trainer = Trainer::new(config("adamw", 0.1), Bigram::new(VOCABULARY)).unwrap();
        let (before, state) = (trainer.parameters().clone(), trainer.save_state());
        let mode = LossAggregation::TokenMean;
        let mut row = sampled(&trainer, &[(1, f32::INFINITY)]);
        let error = trainer.update(&[&row], &Clip::default(), mode, &Bigram, 0.0).unwrap_err();
        assert!(matches!(error, TrainerError::NonFinite { what: "loss", update: 1 }));
        row.policy_weights[1] = 0.0;
        let error = trainer.update(&[&row], &Clip::default(), mode, &Bigram, 0.0).unwrap_err();
        assert!(matches!(error, TrainerError::NoWeight { rows: 1 }));
        row.versions.pop();
        let error = trainer.update(&[&row], &Clip::default(), mode, &Bigram, 0.0).unwrap_err();
        assert!(matches!(error, TrainerError::Row { row: 0, .. }));
        assert_eq!((trainer.parameters(), trainer.save_state()), (&before, state));
    }
}
