//! The progress estimator of SPA-RL.

use candle_core::{Device, Result as TensorResult, Tensor};
use candle_nn::{AdamW, Optimizer, ParamsAdamW};
use rand::seq::SliceRandom;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::registry::NamedOptions;
use spar_core::{Seed, Signal};

use crate::checks::{
    check_predicted, check_rewards, check_segments, positive_problems, width_problem,
};
use crate::network::{Network, Shape};
use crate::state::{self, StateReader};
use crate::{Fit, OpenFor, Predictions, Predictor, PredictorDevice, PredictorError, Segments};

const NAME: &str = "progress";

/// Options of [`Progress`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ProgressConfig {
    /// Hidden layers between features and contribution; 0 reads it off the features by a linear head, as SPA's code does
    /// on states that are trained along. Default 1.
    pub layers: usize,
    /// Numbers in each hidden layer, at least 1. Default absent: 64.
    pub width: Option<usize>,
    /// Passes over the sequences of a fit, at least 1. Default 8.
    pub epochs: usize,
    /// Sequences in a step of AdamW, at least 1. Default 16.
    pub batch: usize,
    /// Learning rate of AdamW, above 0. Default 1e-3.
    pub learning_rate: f64,
    /// Weight decay of AdamW, 0 or more. Default 0.
    pub weight_decay: f64,
    /// Where it computes. Default `cpu`.
    pub device: PredictorDevice,
}

impl Default for ProgressConfig {
    fn default() -> Self {
        Self {
            layers: 1,
            width: None,
            epochs: 8,
            batch: 16,
            learning_rate: 1e-3,
            weight_decay: 0.0,
            device: PredictorDevice::Cpu,
        }
    }
}

impl NamedOptions for ProgressConfig {
    fn problems(&self) -> Vec<String> {
        let counts = [("epochs", self.epochs), ("batch", self.batch)];
        let mut problems = positive_problems(&counts, self.learning_rate, self.weight_decay);
        problems.extend(width_problem(self.layers, self.width));
        problems.extend(self.device.problem());
        problems
    }
}

/// What every segment contributed to its sequence's outcome, learned from outcomes alone: SPA's progress estimator
/// (arXiv 2505.20732), on features that stay as they are.
///
/// ```text
/// c_t = f(x_t),    R^ = sum_t c_t,    loss = mean over sequences of (R^ - R)^2,    R = sum_t r_t
/// ```
///
/// It gives [`Signal::Progress`], `c_t`; the predicted outcome `R^` is the sum of a sequence's contributions, and nothing
/// else. SPA's released code (`prm/train_our_progress_model.py`) reads `c_t` off a language model that is trained along,
/// by a linear head at the last token of every turn. Deviations: the features are given and frozen, `f` has hidden
/// layers; AdamW begins anew in every fit, its weights do not.
#[derive(Debug)]
pub struct Progress {
    config: ProgressConfig,
    width: usize,
    network: Network,
    device: Device,
}

impl Progress {
    /// One that has learned nothing.
    ///
    /// # Errors
    ///
    /// [`PredictorError::Compute`] when the device cannot be used.
    pub fn new(config: ProgressConfig, open_for: &OpenFor) -> Result<Self, PredictorError> {
        let device = config.device.open().map_err(failed)?;
        let shape = Shape {
            inputs: open_for.width,
            layers: config.layers,
            hidden: config.width.unwrap_or(64),
        };
        let network = Network::fresh(shape, open_for.seed.derive("network", NAME), &device);
        Ok(Self { width: open_for.width, network: network.map_err(failed)?, device, config })
    }

    /// Weights that have learned from sequences, and the loss of every epoch.
    fn learn(
        &self,
        segments: &Segments,
        rewards: &[f32],
        seed: Seed,
    ) -> Result<(Network, Fit), PredictorError> {
        let network = self.network.copy().map_err(failed)?;
        let mut order: Vec<_> = segments.sequence_rows().filter(|rows| !rows.is_empty()).collect();
        let mut fit = Fit { losses: Vec::new(), num_examples: order.len() };
        if order.is_empty() {
            return Ok((network, fit));
        }
        let ProgressConfig { epochs, batch, learning_rate, weight_decay, .. } = self.config;
        let params = ParamsAdamW { lr: learning_rate, weight_decay, ..ParamsAdamW::default() };
        let mut optimizer = AdamW::new(network.variables(), params).map_err(failed)?;
        let mut step = 0;
        for epoch in 0..epochs {
            order.shuffle(&mut seed.derive("epoch", epoch).rng());
            let mut sum = 0.0;
            for batch in order.chunks(batch) {
                let mut features = Vec::new();
                let mut outcomes = Vec::with_capacity(batch.len());
                for rows in batch {
                    features.extend_from_slice(segments.rows_of(rows.clone()));
                    let of_sequence = rewards[rows.clone()].iter();
                    let outcome = of_sequence.map(|reward| f64::from(*reward)).sum::<f64>();
                    outcomes.push((rows.len(), outcome));
                }
                let (loss, squares) = self.loss(&network, features, &outcomes).map_err(failed)?;
                if !squares.is_finite() {
                    return Err(PredictorError::Diverged { name: NAME, step });
                }
                optimizer.backward_step(&loss).map_err(failed)?;
                sum += squares;
                step += 1;
            }
            fit.losses.push(sum / order.len() as f64);
        }
        Ok((network, fit))
    }

    /// What has the gradient of the loss, and the sum of the squared errors, of sequences of so many rows with these
    /// outcomes.
    ///
    /// The loss is `sum_b (R^_b - R_b)^2 / B`, and its derivative by a contribution of sequence `b` is
    /// `2 (R^_b - R_b) / B`: what is differentiated is the sum of all contributions, weighed by these as constants. So
    /// memory grows with the rows, and not with rows times sequences.
    fn loss(
        &self,
        network: &Network,
        features: Vec<f32>,
        outcomes: &[(usize, f64)],
    ) -> TensorResult<(Tensor, f64)> {
        let num_rows = features.len() / self.width;
        let rows = Tensor::from_vec(features, (num_rows, self.width), &self.device)?;
        let contributions = network.forward(&rows)?;
        let values = contributions.detach().to_vec1::<f32>()?;
        let (mut slopes, mut squares, mut start) = (Vec::with_capacity(num_rows), 0.0, 0);
        for &(len, outcome) in outcomes {
            let of_sequence = &values[start..start + len];
            let error = of_sequence.iter().map(|value| f64::from(*value)).sum::<f64>() - outcome;
            squares += error * error;
            let slope = 2.0 * error / outcomes.len() as f64;
            slopes.extend(std::iter::repeat_n(slope as f32, len));
            start += len;
        }
        let slopes = Tensor::from_vec(slopes, num_rows, &self.device)?;
        Ok(((contributions * slopes)?.sum_all()?, squares))
    }
}

impl Predictor for Progress {
    fn name(&self) -> &'static str {
        NAME
    }

    fn width(&self) -> usize {
        self.width
    }

    fn fit(
        &mut self,
        segments: &Segments,
        rewards: &[f32],
        seed: Seed,
    ) -> Result<Fit, PredictorError> {
        check_segments(segments, self.width)?;
        check_rewards(segments, rewards)?;
        let (network, fit) = self.learn(segments, rewards, seed)?;
        // The last step was not looked at by a loss.
        let probe = network.values(segments.features(), self.width, &self.device);
        if probe.map_err(failed)?.iter().any(|value| !value.is_finite()) {
            let step = fit.losses.len();
            return Err(PredictorError::Diverged { name: NAME, step });
        }
        self.network = network;
        Ok(fit)
    }

    fn predict(&self, segments: &Segments) -> Result<Predictions, PredictorError> {
        check_segments(segments, self.width)?;
        let values = self.network.values(segments.features(), self.width, &self.device);
        let values = values.map_err(failed)?;
        check_predicted(NAME, &values)?;
        Ok(Predictions::new(vec![(Signal::Progress, values)]))
    }

    fn state(&self) -> Result<Vec<u8>, PredictorError> {
        let tensors = self.network.tensors("contribution").map_err(failed)?;
        Ok(state::write(NAME, &(), &tensors))
    }

    fn load(&mut self, state: &[u8]) -> Result<(), PredictorError> {
        let read = || {
            let (reader, ()) = StateReader::open(NAME, state)?;
            self.network.read("contribution", &reader)
        };
        self.network = read().map_err(|source| PredictorError::State { name: NAME, source })?;
        Ok(())
    }
}

fn failed(error: candle_core::Error) -> PredictorError {
    PredictorError::Compute { name: NAME, source: Box::new(error) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{assert_network_gradient, numbers};

    const WIDTH: usize = 6;

    fn open(config: ProgressConfig) -> Progress {
        Progress::new(config, &OpenFor { width: WIDTH, seed: Seed::from_u64(5) }).unwrap()
    }

    /// Sequences of random features, where a segment contributes what two of its features say together, and what each
    /// contributed. Outcomes alone are told: they stand at the last segment.
    fn planted(num_sequences: usize, seed: u64) -> (Segments, Vec<f32>, Vec<f32>) {
        let mut segments = Segments::new(WIDTH).unwrap();
        let (mut contributions, mut rewards) = (Vec::new(), Vec::new());
        let mut draws = numbers(num_sequences * 10 * WIDTH, seed).into_iter();
        for index in 0..num_sequences {
            let len = 2 + index % 7;
            let rows: Vec<f32> = draws.by_ref().take(len * WIDTH).collect();
            segments.push(&rows).unwrap();
            let of_row = |row: &[f32]| row[0] + (row[1] - row[2]).max(0.0) - 0.5;
            let of_sequence: Vec<f32> = rows.chunks_exact(WIDTH).map(of_row).collect();
            rewards.extend(std::iter::repeat_n(0.0, len - 1));
            rewards.push(of_sequence.iter().sum());
            contributions.extend(of_sequence);
        }
        (segments, rewards, contributions)
    }

    fn correlation(a: &[f32], b: &[f32]) -> f64 {
        let mean = |values: &[f32]| {
            values.iter().map(|v| f64::from(*v)).sum::<f64>() / values.len() as f64
        };
        let (mean_a, mean_b) = (mean(a), mean(b));
        let sum = |of: &dyn Fn(f64, f64) -> f64| -> f64 {
            let pairs = a.iter().zip(b);
            pairs.map(|(a, b)| of(f64::from(*a) - mean_a, f64::from(*b) - mean_b)).sum()
        };
        sum(&|a, b| a * b) / (sum(&|a, _| a * a) * sum(&|_, b| b * b)).sqrt()
    }

    #[test]
    fn contributions_are_found_from_outcomes_alone() {
        let (segments, rewards, _) = planted(256, 1);
        let mut progress =
            open(ProgressConfig { epochs: 25, learning_rate: 1e-2, ..Default::default() });
        let (held_out, outcomes, contributions) = planted(64, 2);
        let found = |progress: &Progress| {
            let predictions = progress.predict(&held_out).unwrap();
            predictions.column(Signal::Progress).unwrap().to_vec()
        };
        assert!(correlation(&found(&progress), &contributions) < 0.9, "it knows nothing yet");
        let fit = progress.fit(&segments, &rewards, Seed::from_u64(3)).unwrap();
        assert_eq!((fit.losses.len(), fit.num_examples), (25, 256));
        assert!(fit.last_loss().unwrap() < 0.05 * fit.losses[0], "{:?}", fit.losses);
        let found = found(&progress);
        let by_segment = correlation(&found, &contributions);
        assert!(by_segment > 0.95, "{by_segment}");
        // Within sequences too, where the outcome tells nothing: what is above the sequence's mean.
        let above_mean = |values: &[f32]| -> Vec<f32> {
            let of_sequence = |rows: std::ops::Range<usize>| {
                let of_rows = &values[rows];
                let mean = of_rows.iter().sum::<f32>() / of_rows.len() as f32;
                of_rows.iter().map(|value| value - mean).collect::<Vec<_>>()
            };
            held_out.sequence_rows().flat_map(of_sequence).collect()
        };
        let within = correlation(&above_mean(&found), &above_mean(&contributions));
        assert!(within > 0.95, "{within}");
        // Their sums are the outcomes.
        let (sums, outcomes) = (held_out.sums(&found), held_out.sums(&outcomes));
        let error = sums.iter().zip(&outcomes).map(|(a, b)| (a - b).powi(2)).sum::<f64>();
        assert!(error / sums.len() as f64 <= 2.0 * fit.last_loss().unwrap() + 0.01, "{error}");
    }

    #[test]
    fn the_gradient_is_that_of_the_squared_error_of_sums() {
        let progress = open(ProgressConfig { width: Some(4), ..Default::default() });
        let features = numbers(7 * WIDTH, 4);
        let outcomes = [(3, 1.0), (1, -0.5), (3, 2.0)];
        let loss = |network: &Network| {
            let (_, squares) = progress.loss(network, features.clone(), &outcomes).unwrap();
            squares / outcomes.len() as f64
        };
        let (differentiated, _) =
            progress.loss(&progress.network, features.clone(), &outcomes).unwrap();
        assert_network_gradient(&progress.network, &differentiated, loss);
    }

    #[test]
    fn rewards_count_by_their_sum() {
        let (segments, at_end, _) = planted(12, 1);
        let mut anywhere = at_end.clone();
        for rows in segments.sequence_rows() {
            anywhere.swap(rows.start, rows.end - 1);
        }
        let fitted = |rewards: &[f32]| {
            let mut progress = open(ProgressConfig::default());
            progress.fit(&segments, rewards, Seed::from_u64(3)).unwrap();
            progress.state().unwrap()
        };
        assert_eq!(fitted(&at_end), fitted(&anywhere));
    }

    #[test]
    fn what_runs_away_is_told_and_changes_nothing() {
        let (segments, rewards, _) = planted(12, 1);
        let mut progress = open(ProgressConfig { learning_rate: 1e30, ..Default::default() });
        let before = progress.state().unwrap();
        let error = progress.fit(&segments, &rewards, Seed::from_u64(3)).unwrap_err();
        assert!(matches!(error, PredictorError::Diverged { .. }), "{error}");
        assert_eq!(progress.state().unwrap(), before);
    }
}
