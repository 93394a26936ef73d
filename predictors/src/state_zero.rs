//! How probably a policy succeeds, known from the prompt and from what it did before.

use std::collections::VecDeque;

use candle_core::{Device, Result as TensorResult, Tensor};
use candle_nn::{AdamW, Optimizer, ParamsAdamW};
use rand::RngExt;
use rand::seq::SliceRandom;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::registry::NamedOptions;
use spar_core::{Seed, Signal};

use crate::checks::{
    check_predicted, check_rewards, check_segments, positive_problems, width_problem,
};
use crate::network::{Network, Shape};
use crate::state::{self, StateReader, StateTensor};
use crate::{
    Fit, OpenFor, Predictions, Predictor, PredictorDevice, PredictorError, Segments, StateError,
};

const NAME: &str = "v0";

/// The tensor of what is remembered.
const REMEMBERED: &str = "remembered";

/// Numbers that the history comes to: whether there is one, its mean outcome, and that of what is like the prompt.
const HISTORY: usize = 3;

/// How often an example is shown without its history, so that both are learned.
const WITHOUT: f64 = 0.25;

/// How fast what is unlike the prompt counts less, in mean squared distances.
const NEARNESS: f64 = 4.0;

/// Options of [`StateZero`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct StateZeroConfig {
    /// Hidden layers. Default 1.
    pub layers: usize,
    /// Numbers in each hidden layer, at least 1. Default absent: 64.
    pub width: Option<usize>,
    /// Episodes of the history, at least 1: the newest ones. Default 512.
    pub history: usize,
    /// Earlier episodes, with what their history came to then, that are remembered, of which older ones are forgotten geometrically: as many of them as there are new ones are learned from again in every
    /// fit. Without them only episodes of the present policy are seen, and the network learns that policy in place of reading its history. 0 remembers none. Default 4096.
    pub remembered: usize,
    /// Passes over the episodes of a fit, at least 1. Default 8.
    pub epochs: usize,
    /// Episodes in a step of AdamW, at least 1. Default 16.
    pub batch: usize,
    /// Learning rate of AdamW, above 0. Default 1e-3.
    pub learning_rate: f64,
    /// Weight decay of AdamW, 0 or more. Default 0.
    pub weight_decay: f64,
    /// Where it computes. Default `cpu`.
    pub device: PredictorDevice,
}

impl Default for StateZeroConfig {
    fn default() -> Self {
        Self {
            layers: 1,
            width: None,
            history: 512,
            remembered: 4096,
            epochs: 8,
            batch: 16,
            learning_rate: 1e-3,
            weight_decay: 0.0,
            device: PredictorDevice::Cpu,
        }
    }
}

impl NamedOptions for StateZeroConfig {
    fn problems(&self) -> Vec<String> {
        let counts = [("epochs", self.epochs), ("batch", self.batch), ("history", self.history)];
        let mut problems = positive_problems(&counts, self.learning_rate, self.weight_decay);
        problems.extend(width_problem(self.layers, self.width));
        problems.extend(self.device.problem());
        problems
    }
}

/// What an episode will earn, told before its first answer: V_0 (arXiv 2602.03584), a value of state zero that is told the policy by pairs of prompts and outcomes, so that it follows a policy that changes
/// without learning anew.
///
/// ```text
/// V_0(x | H) = f(x, 1[H], mean of H, sum_i k(x, x_i) r_i / sum_i k(x, x_i)),   k = exp(-4 |x - x_i|^2 / mean |x - x_j|^2)
/// loss = mean over episodes of (V_0(x | H) - R)^2
/// ```
///
/// `x` are the features of an episode before its first answer, `R` what it earned, and `H` the newest episodes of the fits before. Every fit learns from its own episodes and
/// as many earlier ones, drawn evenly from those that are remembered, with what their own history came to: only where policies of several kinds stand beside each other, what tells them apart
/// is their history. It speaks of episodes before it learns from them, so that neither its weights nor its history know their outcomes. A quarter of the examples is
/// learned without their history. It gives [`Signal::StateValues`], the same for all segments of an episode.
///
/// Reconstructed from the abstract: there a language model reads prompts and outcomes of many policies; here a network reads frozen features, and the history by a mean and by likeness. AdamW begins anew in
/// every fit.
#[derive(Debug)]
pub struct StateZero {
    config: StateZeroConfig,
    width: usize,
    network: Network,
    device: Device,
    memory: Memory,
}

/// What stands in a state beside its tensors.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kept<M> {
    memory: M,
    /// Examples that are remembered.
    remembered: usize,
}

/// What it remembers of the policy.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Memory {
    /// Features before the first answer, and what was earned: oldest first.
    history: VecDeque<(Vec<f32>, f64)>,
    /// What was learned before, as a tensor of the state.
    #[serde(skip)]
    examples: Vec<Example>,
}

/// An episode as it is learned from.
#[derive(Debug, Clone, PartialEq)]
struct Example {
    /// Features before the first answer.
    start: Vec<f32>,
    /// What the history came to when it was played.
    told: [f32; HISTORY],
    /// What it earned.
    outcome: f32,
}

impl Memory {
    /// Remembers at most so many examples; those that are forgotten are drawn evenly from all, these among them, so that old ones are forgotten geometrically:
    /// of every fit's examples the same share is lost with each fit that comes after it.
    fn remember(&mut self, examples: Vec<Example>, most: usize, seed: Seed) {
        self.examples.extend(examples);
        let mut rng = seed.derive("forget", 0).rng();
        while self.examples.len() > most {
            let place = rng.random_range(0..self.examples.len());
            self.examples.swap_remove(place);
        }
    }

    /// The examples, row by row.
    fn tensor(&self, width: usize) -> StateTensor {
        let mut values = Vec::with_capacity(self.examples.len() * (width + HISTORY + 1));
        for Example { start, told, outcome } in &self.examples {
            values.extend(start.iter().chain(told).chain([outcome]));
        }
        let shape = vec![self.examples.len(), width + HISTORY + 1];
        StateTensor { name: REMEMBERED.to_owned(), shape, values }
    }

    /// The examples that a tensor has row by row.
    fn read(
        reader: &StateReader<'_>,
        count: usize,
        width: usize,
    ) -> Result<Vec<Example>, StateError> {
        let row = width + HISTORY + 1;
        let values = reader.numbers(REMEMBERED, &[count, row])?;
        let example = |row: &[f32]| {
            let (start, rest) = row.split_at(width);
            let mut told = [0.0; HISTORY];
            told.copy_from_slice(&rest[..HISTORY]);
            Example { start: start.to_vec(), told, outcome: rest[HISTORY] }
        };
        Ok(values.chunks_exact(row).map(example).collect())
    }

    /// What the history comes to for these features.
    fn summary(&self, features: &[f32]) -> [f32; HISTORY] {
        if self.history.is_empty() {
            return [0.0; HISTORY];
        }
        let distance = |other: &[f32]| -> f64 {
            let pairs = features.iter().zip(other);
            pairs.map(|(a, b)| (f64::from(*a) - f64::from(*b)).powi(2)).sum()
        };
        let count = self.history.len() as f64;
        let distances: Vec<f64> = self.history.iter().map(|(it, _)| distance(it)).collect();
        let scale = distances.iter().sum::<f64>() / count;
        let mean = self.history.iter().map(|(_, outcome)| outcome).sum::<f64>() / count;
        let weight = |distance: &f64| match scale > 0.0 && scale.is_finite() {
            true => (-NEARNESS * distance / scale).exp(),
            false => 1.0,
        };
        let weights: Vec<f64> = distances.iter().map(weight).collect();
        let (total, outcomes) =
            (weights.iter().sum::<f64>(), self.history.iter().map(|(_, outcome)| outcome));
        let near = weights.iter().zip(outcomes).map(|(weight, it)| weight * it).sum::<f64>();
        let near = if total > 0.0 { near / total } else { mean };
        [1.0, mean as f32, near as f32]
    }
}

impl StateZero {
    /// One that has learned nothing.
    ///
    /// # Errors
    ///
    /// [`PredictorError::Features`] when features are not of starts and ends, [`PredictorError::Compute`] when the device cannot be used.
    pub fn new(config: StateZeroConfig, open_for: &OpenFor) -> Result<Self, PredictorError> {
        let OpenFor { width, seed } = *open_for;
        if !width.is_multiple_of(2) {
            let problem = "half of them are of the situation, and half of it with the answer";
            return Err(PredictorError::Features { name: NAME, width, problem });
        }
        let device = config.device.open().map_err(failed)?;
        let inputs = width / 2 + HISTORY;
        let shape = Shape { inputs, layers: config.layers, hidden: config.width.unwrap_or(64) };
        let network = Network::fresh(shape, seed.derive("network", NAME), &device);
        let network = network.map_err(failed)?;
        Ok(Self { config, width, network, device, memory: Memory::default() })
    }

    /// The features of each sequence before its first answer; absent for one without segments.
    fn starts<'s>(&self, segments: &'s Segments) -> Vec<Option<&'s [f32]>> {
        let start = |rows: std::ops::Range<usize>| {
            (!rows.is_empty()).then(|| &segments.rows_of(rows)[..self.width / 2])
        };
        segments.sequence_rows().map(start).collect()
    }

    /// Weights that have learned from examples, and the loss of every epoch.
    fn learn(&self, examples: &[&Example], seed: Seed) -> Result<(Network, Fit), PredictorError> {
        let network = self.network.copy().map_err(failed)?;
        let StateZeroConfig { epochs, batch, learning_rate, weight_decay, .. } = self.config;
        let params = ParamsAdamW { lr: learning_rate, weight_decay, ..ParamsAdamW::default() };
        let mut optimizer = AdamW::new(network.variables(), params).map_err(failed)?;
        let mut order: Vec<usize> = (0..examples.len()).collect();
        let mut fit = Fit { losses: Vec::new(), num_examples: examples.len() };
        let mut step = 0;
        for epoch in 0..epochs {
            let mut rng = seed.derive("epoch", epoch).rng();
            order.shuffle(&mut rng);
            let mut sum = 0.0;
            for batch in order.chunks(batch) {
                let (mut rows, mut outcomes) = (Vec::new(), Vec::new());
                for place in batch {
                    let Example { start, told, outcome } = examples[*place];
                    let is_told = !rng.random_bool(WITHOUT);
                    rows.extend_from_slice(start);
                    rows.extend(if is_told { *told } else { [0.0; HISTORY] });
                    outcomes.push(f64::from(*outcome));
                }
                let (loss, squares) = self.loss(&network, rows, &outcomes).map_err(failed)?;
                if !squares.is_finite() {
                    return Err(PredictorError::Diverged { name: NAME, step });
                }
                optimizer.backward_step(&loss).map_err(failed)?;
                sum += squares;
                step += 1;
            }
            fit.losses.push(sum / examples.len() as f64);
        }
        Ok((network, fit))
    }

    /// What has the gradient of the mean squared error, and the sum of the squared errors.
    fn loss(
        &self,
        network: &Network,
        rows: Vec<f32>,
        outcomes: &[f64],
    ) -> TensorResult<(Tensor, f64)> {
        let shape = (outcomes.len(), self.width / 2 + HISTORY);
        let rows = Tensor::from_vec(rows, shape, &self.device)?;
        let values = network.forward(&rows)?;
        let told = values.detach().to_vec1::<f32>()?;
        let errors = told.iter().zip(outcomes).map(|(told, outcome)| f64::from(*told) - outcome);
        let errors: Vec<f64> = errors.collect();
        let squares = errors.iter().map(|error| error * error).sum();
        let slope = |error: &f64| (2.0 * error / outcomes.len() as f64) as f32;
        let slopes: Vec<f32> = errors.iter().map(slope).collect();
        let slopes = Tensor::from_vec(slopes, outcomes.len(), &self.device)?;
        Ok(((values * slopes)?.sum_all()?, squares))
    }

    /// What a network says of these features with a history.
    fn say(&self, network: &Network, memory: &Memory, starts: &[&[f32]]) -> TensorResult<Vec<f32>> {
        let row = |start: &&[f32]| {
            let told = memory.summary(start);
            start.iter().copied().chain(told).collect::<Vec<f32>>()
        };
        let rows: Vec<f32> = starts.iter().flat_map(row).collect();
        network.values(&rows, self.width / 2 + HISTORY, &self.device)
    }
}

impl Predictor for StateZero {
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
        let of_sequence = |(rows, start): (std::ops::Range<usize>, Option<&[f32]>)| {
            let earned = rewards[rows].iter().map(|reward| f64::from(*reward)).sum::<f64>();
            Some((start?.to_vec(), earned))
        };
        let sequences = segments.sequence_rows().zip(self.starts(segments));
        let episodes: Vec<(Vec<f32>, f64)> = sequences.filter_map(of_sequence).collect();
        if episodes.is_empty() {
            return Ok(Fit::default());
        }
        let mut memory = self.memory.clone();
        let example = |(start, outcome): &(Vec<f32>, f64)| Example {
            start: start.clone(),
            told: memory.summary(start),
            outcome: *outcome as f32,
        };
        let fresh: Vec<Example> = episodes.iter().map(example).collect();
        let mut examples: Vec<&Example> = fresh.iter().collect();
        let mut rng = seed.derive("rehearse", 0).rng();
        let rehearsed = if memory.examples.is_empty() { 0 } else { fresh.len() };
        for _ in 0..rehearsed {
            examples.push(&memory.examples[rng.random_range(0..memory.examples.len())]);
        }
        let (network, fit) = self.learn(&examples, seed)?;
        // The last step was not looked at by a loss.
        let starts: Vec<&[f32]> = episodes.iter().map(|(start, _)| &start[..]).collect();
        let probe = self.say(&network, &memory, &starts).map_err(failed)?;
        if probe.iter().any(|value| !value.is_finite()) {
            return Err(PredictorError::Diverged { name: NAME, step: fit.losses.len() });
        }
        memory.remember(fresh, self.config.remembered, seed);
        memory.history.extend(episodes);
        let beyond = memory.history.len().saturating_sub(self.config.history);
        memory.history.drain(..beyond);
        (self.network, self.memory) = (network, memory);
        Ok(fit)
    }

    /// Before it learns from their outcomes.
    fn predicts_first(&self) -> bool {
        true
    }

    fn predict(&self, segments: &Segments) -> Result<Predictions, PredictorError> {
        check_segments(segments, self.width)?;
        let starts: Vec<&[f32]> = self.starts(segments).into_iter().flatten().collect();
        let said = self.say(&self.network, &self.memory, &starts).map_err(failed)?;
        let mut said = said.into_iter();
        let with_rows = segments.sequence_rows().filter(|rows| !rows.is_empty());
        let values: Vec<f32> = with_rows
            .flat_map(|rows| std::iter::repeat_n(said.next().unwrap_or(0.0), rows.len()))
            .collect();
        check_predicted(NAME, &values)?;
        Ok(Predictions::new(vec![(Signal::StateValues, values)]))
    }

    fn state(&self) -> Result<Vec<u8>, PredictorError> {
        let mut tensors = self.network.tensors("value").map_err(failed)?;
        tensors.push(self.memory.tensor(self.width / 2));
        let kept = Kept { memory: &self.memory, remembered: self.memory.examples.len() };
        Ok(state::write(NAME, &kept, &tensors))
    }

    fn load(&mut self, state: &[u8]) -> Result<(), PredictorError> {
        let read = || {
            let (reader, kept) = StateReader::open::<Kept<Memory>>(NAME, state)?;
            let Kept { mut memory, remembered } = kept;
            memory.examples = Memory::read(&reader, remembered, self.width / 2)?;
            let network = self.network.read("value", &reader)?;
            let expected = vec![self.width / 2];
            let all = memory.history.iter();
            if let Some((wrong, _)) = all.clone().find(|(it, _)| it.len() != expected[0]) {
                let (name, found) = ("history".to_owned(), vec![wrong.len()]);
                return Err(StateError::Shape { name, found, expected });
            }
            if all.flat_map(|(it, _)| it).any(|value| !value.is_finite()) {
                return Err(StateError::Numbers { name: "history".to_owned() });
            }
            Ok((network, memory))
        };
        let read = read().map_err(|source| PredictorError::State { name: NAME, source })?;
        (self.network, self.memory) = read;
        Ok(())
    }
}

fn failed(error: candle_core::Error) -> PredictorError {
    PredictorError::Compute { name: NAME, source: Box::new(error) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::numbers;

    const WIDTH: usize = 8;

    fn open(config: StateZeroConfig) -> StateZero {
        open_wide(config, WIDTH)
    }

    fn open_wide(config: StateZeroConfig, width: usize) -> StateZero {
        StateZero::new(config, &OpenFor { width, seed: Seed::from_u64(5) }).unwrap()
    }

    /// Episodes of two turns that succeed where their first feature is above what the policy can do.
    fn played(count: usize, skill: f32, seed: u64, width: usize) -> (Segments, Vec<f32>) {
        let mut segments = Segments::new(width).unwrap();
        let mut rewards = Vec::new();
        for rows in numbers(count * 2 * width, seed).chunks(2 * width) {
            segments.push(rows).unwrap();
            rewards.extend([0.0, f32::from(u8::from(rows[0] > skill))]);
        }
        (segments, rewards)
    }

    fn error(predictor: &StateZero, (segments, rewards): &(Segments, Vec<f32>)) -> f64 {
        let told = predictor.predict(segments).unwrap();
        let told = told.column(Signal::StateValues).unwrap();
        let squares = told.chunks(2).zip(rewards.chunks(2)).map(|(told, earned)| {
            assert_eq!(told[0], told[1], "it is told once for an episode");
            f64::from(told[0] - earned[1]).powi(2)
        });
        squares.sum::<f64>() / (rewards.len() / 2) as f64
    }

    /// One that was fitted to policies with these skills in turn, each for so many fits, so that the history is mostly its own.
    fn fitted(config: StateZeroConfig, width: usize, skills: &[f32], fits: u64) -> StateZero {
        let mut predictor = open_wide(config, width);
        for (round, skill) in (0..).zip(skills) {
            for part in 0..fits {
                let seed = 100 * round + part;
                let (segments, rewards) = played(64, *skill, seed, width);
                predictor.fit(&segments, &rewards, Seed::from_u64(seed)).unwrap();
            }
        }
        predictor
    }

    /// The same weights, told of another policy by its episodes alone.
    fn told_of(predictor: &StateZero, skill: f32) -> StateZero {
        let (segments, rewards) = played(64, skill, 2_000, predictor.width);
        let mut other = open_wide(predictor.config.clone(), predictor.width);
        other.load(&predictor.state().unwrap()).unwrap();
        assert_eq!(other.memory, predictor.memory);
        let starts = other.starts(&segments);
        let episodes = starts.iter().zip(rewards.chunks(2));
        other.memory.history = episodes
            .map(|(start, earned)| (start.unwrap().to_vec(), f64::from(earned[1])))
            .collect();
        other
    }

    #[test]
    fn success_is_foretold_from_the_prompt_and_the_history_of_the_policy() {
        let config = || StateZeroConfig { history: 64, ..Default::default() };
        let alternating = |count: usize| -> Vec<f32> { [0.25, 0.75].repeat(count) };
        let backwards = |count: usize| -> Vec<f32> { [0.75, 0.25].repeat(count) };
        // However wide what is seen is, whichever policy comes last, for however long, and however few have come before.
        let settings: [(usize, Vec<f32>, u64); 5] = [
            (8, alternating(8), 6),
            (8, backwards(8), 6),
            (8, alternating(3), 16),
            (8, alternating(2), 6),
            (32, alternating(8), 6),
        ];
        for (width, skills, fits) in settings {
            let predictor = fitted(config(), width, &skills, fits);
            let last = skills[skills.len() - 1];
            let good = error(&predictor, &played(200, last, 1_000, width));
            assert!(good < 0.14, "{width} {fits}: {good}");
            // By nothing but its history another policy is told from the last one, one that was never seen among them.
            for (skill, most) in [(1.0 - last, 0.14), (0.5, 0.16)] {
                let other = told_of(&predictor, skill);
                let test = played(200, skill, 3_000, width);
                let (followed, before) = (error(&other, &test), error(&predictor, &test));
                let weights = predictor.network.tensors("value").unwrap();
                assert_eq!(other.network.tensors("value").unwrap(), weights, "nothing is learned");
                assert!(followed < most, "{width} {fits} {skill}: {followed}, {before}");
                let is_other = (skill - last).abs() > 0.3;
                assert!(
                    !is_other || followed < 0.5 * before,
                    "{width} {fits}: {followed}, {before}"
                );
            }
        }
    }

    #[test]
    fn without_what_it_remembers_it_learns_the_present_policy_in_place_of_its_history() {
        let skills = [0.25, 0.75].repeat(8);
        let with = |remembered: usize| {
            let config = StateZeroConfig { history: 64, remembered, ..Default::default() };
            let predictor = fitted(config, 32, &skills, 6);
            error(&told_of(&predictor, 0.25), &played(200, 0.25, 3_000, 32))
        };
        let (without, with) = (with(0), with(4096));
        assert!(with < 0.6 * without, "{with} {without}");
    }

    #[test]
    fn what_is_remembered_is_bounded_and_comes_back() {
        let config = StateZeroConfig { remembered: 100, epochs: 1, ..Default::default() };
        let predictor = fitted(config, WIDTH, &[0.25, 0.75], 2);
        assert_eq!(predictor.memory.examples.len(), 100);
        // Some of the first fit, whose history was empty, are still there.
        assert!(predictor.memory.examples.iter().any(|it| it.told[0] == 0.0));
        let mut again = open(predictor.config.clone());
        again.load(&predictor.state().unwrap()).unwrap();
        assert_eq!(again.memory, predictor.memory);
        let (segments, rewards) = played(8, 0.5, 7, WIDTH);
        let mut on = predictor;
        for one in [&mut on, &mut again] {
            one.fit(&segments, &rewards, Seed::from_u64(3)).unwrap();
        }
        assert_eq!(on.state().unwrap(), again.state().unwrap());
    }

    #[test]
    fn no_episode_is_told_what_its_own_group_earned() {
        let mut predictor = open(StateZeroConfig::default());
        let (segments, rewards) = played(4, 0.0, 1, WIDTH);
        predictor.fit(&segments, &rewards, Seed::from_u64(1)).unwrap();
        assert!(predictor.predicts_first() && predictor.memory.history.len() == 4);
        predictor.fit(&segments, &rewards, Seed::from_u64(1)).unwrap();
        assert_eq!(predictor.memory.history.len(), 8);
        let small = StateZeroConfig { history: 3, ..StateZeroConfig::default() };
        let mut small = open(small);
        (0..3).for_each(|_| drop(small.fit(&segments, &rewards, Seed::from_u64(1)).unwrap()));
        assert_eq!(small.memory.history.len(), 3);
        let odd = OpenFor { width: 3, seed: Seed::from_u64(1) };
        assert!(StateZero::new(StateZeroConfig::default(), &odd).is_err());
    }
}
