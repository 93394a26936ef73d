//! The turn-level critic of ArCHer.

use candle_core::{Device, Result as TensorResult, Tensor};
use candle_nn::{AdamW, Optimizer, ParamsAdamW};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::registry::NamedOptions;
use spar_core::{Seed, Signal};

use crate::checks::{
    check_predicted, check_rewards, check_segments, positive_problems, width_problem,
};
use crate::network::{Network, Shape};
use crate::replay::{Replay, ReplaySummary};
use crate::state::{self, StateReader};
use crate::{
    Fit, OpenFor, Predictions, Predictor, PredictorDevice, PredictorError, Segments, StateError,
};

const NAME: &str = "turn_critic";

/// What the critic learns to expect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CriticTargets {
    /// The reward and what slowly following copies of the networks expect behind it.
    #[default]
    Td,
    /// What was earned from the turn on.
    MonteCarlo,
}

/// Options of [`TurnCritic`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TurnCriticConfig {
    /// Discount per turn, 0 to 1. Default 0.9.
    pub discount: f64,
    /// What it learns to expect. Default `td`.
    pub targets: CriticTargets,
    /// How far the copies follow the networks behind each step, above 0 up to 1; for targets `td` alone. Default absent:
    /// 0.1.
    pub polyak: Option<f64>,
    /// Hidden layers of each network. Default 2.
    pub layers: usize,
    /// Numbers in each hidden layer, at least 1. Default absent: as many as the network reads.
    pub width: Option<usize>,
    /// Transitions that are remembered, at least 1; the oldest go first. Default 10000.
    pub capacity: usize,
    /// Steps of AdamW in a fit, at least 1. Default 64.
    pub steps: usize,
    /// Transitions that are drawn for a step, at least 1. Default 64.
    pub batch: usize,
    /// Learning rate of AdamW, above 0. Default 1e-3.
    pub learning_rate: f64,
    /// Weight decay of AdamW, 0 or more. Default 0.
    pub weight_decay: f64,
    /// Where it computes. Default `cpu`.
    pub device: PredictorDevice,
}

impl Default for TurnCriticConfig {
    fn default() -> Self {
        Self {
            discount: 0.9,
            targets: CriticTargets::Td,
            polyak: None,
            layers: 2,
            width: None,
            capacity: 10_000,
            steps: 64,
            batch: 64,
            learning_rate: 1e-3,
            weight_decay: 0.0,
            device: PredictorDevice::Cpu,
        }
    }
}

impl NamedOptions for TurnCriticConfig {
    fn problems(&self) -> Vec<String> {
        let counts = [("capacity", self.capacity), ("steps", self.steps), ("batch", self.batch)];
        let mut problems = positive_problems(&counts, self.learning_rate, self.weight_decay);
        if !(0.0..=1.0).contains(&self.discount) {
            problems.push(format!("discount is {}, must be 0 to 1", self.discount));
        }
        match self.polyak {
            Some(_) if self.targets == CriticTargets::MonteCarlo => problems
                .push("polyak has no effect: targets `monte_carlo` need no copies".to_owned()),
            Some(polyak) if !(polyak > 0.0 && polyak <= 1.0) => {
                problems.push(format!("polyak is {polyak}, must be above 0 and at most 1"));
            }
            _ => {}
        }
        problems.extend(width_problem(self.layers, self.width));
        problems.extend(self.device.problem());
        problems
    }
}

/// What a turn and what the situation before it are worth: ArCHer's critic (arXiv 2402.19446), on features that stay as
/// they are.
///
/// Two networks `Q_j(s, a)` and two `V_j(s)`, each with a copy `Q'_j`, `V'_j` that follows it,
/// `w' <- (1 - polyak) w' + polyak w` behind every step. A segment's features are those of the situation `s`, then as many
/// of the situation with the answer. Over transitions that are drawn from the memory:
///
/// ```text
/// Q_j(s, a) <- r + discount * V'_j(s'),     V_j(s) <- Q'_j(s, a),     loss = sum_j mean (Q_j - ..)^2 + mean (V_j - ..)^2
/// ```
///
/// with 0 in place of `V'_j(s')` behind the last turn of a sequence. With targets `monte_carlo` both learn the discounted
/// sum of what was earned. It gives [`Signal::ActionValues`], `min(Q_1, Q_2)`, and [`Signal::StateValues`],
/// `min(V_1, V_2)`, whose difference is ArCHer's advantage.
///
/// Reconstructed from its code (`archer/algorithms/archer/trainer.py`, `models/critic.py`), with these deviations. There,
/// `V_j` learns from a fresh answer of the present policy to `s`; here from the answer in the memory, whose expectation is
/// that over the policies that filled it, so that nothing is sampled for the critic's sake. There, the encoder of texts is
/// trained along; here features are given. An episode that a budget cut off counts as ended, as does its environments'
/// own limit there. AdamW begins anew in every fit, and gradients are not clipped (there to a norm of 0.01), which hardly
/// changes steps that are divided by their own size.
#[derive(Debug)]
pub struct TurnCritic {
    config: TurnCriticConfig,
    /// Features of a segment, the first half those of the situation.
    width: usize,
    device: Device,
    networks: Networks,
    replay: Replay,
}

/// The networks, and their copies where there are any.
#[derive(Debug)]
struct Networks {
    online: [Network; 4],
    /// In the same order; empty with targets `monte_carlo`.
    targets: Vec<Network>,
}

/// What networks are called in states, in their order: action values, then state values.
const NAMES: [&str; 4] = ["q1", "q2", "v1", "v2"];

impl Networks {
    fn copy(&self) -> TensorResult<Self> {
        let [q1, q2, v1, v2] = &self.online;
        let targets = self.targets.iter().map(Network::copy).collect::<TensorResult<_>>()?;
        Ok(Self { online: [q1.copy()?, q2.copy()?, v1.copy()?, v2.copy()?], targets })
    }
}

/// What a step learns from.
struct Batch {
    /// `[batch, width / 2]`.
    situations: Tensor,
    /// `[batch, width]`.
    turns: Tensor,
    /// What each network is to say, in their order, `[batch]`.
    targets: [Tensor; 4],
}

impl TurnCritic {
    /// One that has learned nothing and remembers nothing.
    ///
    /// # Errors
    ///
    /// [`PredictorError::Features`] for an odd number of features, [`PredictorError::Compute`] when the device cannot be
    /// used.
    pub fn new(config: TurnCriticConfig, open_for: &OpenFor) -> Result<Self, PredictorError> {
        let OpenFor { width, seed } = *open_for;
        if !width.is_multiple_of(2) {
            let problem = "half of them are of the situation, and half of it with the answer";
            return Err(PredictorError::Features { name: NAME, width, problem });
        }
        let device = config.device.open().map_err(failed)?;
        let fresh = |index: usize| {
            let inputs = if index < 2 { width } else { width / 2 };
            let hidden = config.width.unwrap_or(inputs);
            let shape = Shape { inputs, layers: config.layers, hidden };
            Network::fresh(shape, seed.derive("network", NAMES[index]), &device)
        };
        let networks = || {
            let online = [fresh(0)?, fresh(1)?, fresh(2)?, fresh(3)?];
            let targets = match config.targets {
                CriticTargets::Td => online.iter().map(Network::copy).collect(),
                CriticTargets::MonteCarlo => Ok(Vec::new()),
            };
            Ok(Networks { online, targets: targets? })
        };
        let networks = networks().map_err(failed)?;
        Ok(Self { replay: Replay::new(config.capacity, width), width, device, networks, config })
    }

    /// What a step learns from the transitions at these places.
    fn batch(&self, replay: &Replay, networks: &Networks, places: &[usize]) -> TensorResult<Batch> {
        let half = self.width / 2;
        let (mut situations, mut turns, mut next) = (Vec::new(), Vec::new(), Vec::new());
        for &place in places {
            replay.features(place, 0..half, &mut situations);
            replay.features(place, 0..self.width, &mut turns);
            if replay.earned(place).is_followed {
                replay.features(place + 1, 0..half, &mut next);
            }
        }
        let targets = match networks.targets.as_slice() {
            [] => {
                let of_place = |place: &usize| replay.earned(*place).discounted_return;
                let returns: Vec<f32> = places.iter().map(of_place).collect();
                [returns.clone(), returns.clone(), returns.clone(), returns]
            }
            copies => {
                // A copy expects something behind those that are followed alone.
                let behind = |copy: &Network| -> TensorResult<Vec<f32>> {
                    let mut values = copy.values(&next, half, &self.device)?.into_iter();
                    let mut expected = |place: &usize| {
                        let earned = replay.earned(*place);
                        let behind = if earned.is_followed { values.next() } else { None };
                        let behind = f64::from(behind.unwrap_or(0.0));
                        (f64::from(earned.reward) + self.config.discount * behind) as f32
                    };
                    Ok(places.iter().map(&mut expected).collect())
                };
                let worth = |copy: &Network| copy.values(&turns, self.width, &self.device);
                [behind(&copies[2])?, behind(&copies[3])?, worth(&copies[0])?, worth(&copies[1])?]
            }
        };
        let [q1, q2, v1, v2] = targets;
        let column = |values: Vec<f32>| Tensor::from_vec(values, places.len(), &self.device);
        Ok(Batch {
            situations: Tensor::from_vec(situations, (places.len(), half), &self.device)?,
            turns: Tensor::from_vec(turns, (places.len(), self.width), &self.device)?,
            targets: [column(q1)?, column(q2)?, column(v1)?, column(v2)?],
        })
    }

    /// The sum of the networks' mean squared errors.
    fn loss(networks: &[Network; 4], batch: &Batch) -> TensorResult<Tensor> {
        let mut loss: Option<Tensor> = None;
        for (index, (network, target)) in networks.iter().zip(&batch.targets).enumerate() {
            let rows = if index < 2 { &batch.turns } else { &batch.situations };
            let own = (network.forward(rows)? - target)?.sqr()?.mean_all()?;
            loss = Some(match loss {
                Some(others) => (others + own)?,
                None => own,
            });
        }
        Ok(loss.expect("there are four networks"))
    }

    /// Networks that have learned from a memory, and the loss of every step.
    fn learn(&self, replay: &Replay, seed: Seed) -> Result<(Networks, Vec<f64>), PredictorError> {
        let networks = self.networks.copy().map_err(failed)?;
        let TurnCriticConfig { steps, batch, learning_rate, weight_decay, .. } = self.config;
        let polyak = self.config.polyak.unwrap_or(0.1);
        let params = ParamsAdamW { lr: learning_rate, weight_decay, ..ParamsAdamW::default() };
        let variables = networks.online.iter().flat_map(Network::variables).collect();
        let mut optimizer = AdamW::new(variables, params).map_err(failed)?;
        let mut losses = Vec::with_capacity(steps);
        for step in 0..steps {
            let places = replay.draw(batch, seed.derive("step", step));
            let mut take = || {
                let batch = self.batch(replay, &networks, &places)?;
                let loss = Self::loss(&networks.online, &batch)?;
                let value = f64::from(loss.to_scalar::<f32>()?);
                if value.is_finite() {
                    optimizer.backward_step(&loss)?;
                    for (copy, network) in networks.targets.iter().zip(&networks.online) {
                        copy.follow(network, polyak)?;
                    }
                }
                Ok(value)
            };
            let loss = take().map_err(failed)?;
            if !loss.is_finite() {
                return Err(PredictorError::Diverged { name: NAME, step });
            }
            losses.push(loss);
        }
        Ok((networks, losses))
    }

    /// The lower of what two networks say of rows, one after the other.
    fn lower(
        &self,
        networks: [&Network; 2],
        rows: &[f32],
        width: usize,
    ) -> Result<Vec<f32>, PredictorError> {
        let values = |network: &Network| network.values(rows, width, &self.device);
        let [one, other] = networks.map(values);
        let (one, other) = (one.map_err(failed)?, other.map_err(failed)?);
        Ok(one.into_iter().zip(other).map(|(one, other)| one.min(other)).collect())
    }

    /// What networks say of segments: action values, and state values.
    fn values(
        &self,
        networks: &Networks,
        segments: &Segments,
    ) -> Result<(Vec<f32>, Vec<f32>), PredictorError> {
        let half = self.width / 2;
        let of_row = |row: &[f32]| row[..half].to_vec();
        let situations: Vec<f32> =
            segments.features().chunks_exact(self.width).flat_map(of_row).collect();
        let [q1, q2, v1, v2] = &networks.online;
        let action_values = self.lower([q1, q2], segments.features(), self.width)?;
        Ok((action_values, self.lower([v1, v2], &situations, half)?))
    }
}

impl Predictor for TurnCritic {
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
        if segments.rows() == 0 {
            return Ok(Fit { num_examples: self.replay.len(), ..Fit::default() });
        }
        let mut replay = self.replay.clone();
        replay.push(segments, rewards, self.config.discount);
        let (networks, losses) = self.learn(&replay, seed)?;
        // The last step was not looked at by a loss.
        let (action_values, state_values) = self.values(&networks, segments)?;
        if action_values.iter().chain(&state_values).any(|value| !value.is_finite()) {
            return Err(PredictorError::Diverged { name: NAME, step: losses.len() });
        }
        (self.replay, self.networks) = (replay, networks);
        Ok(Fit { losses, num_examples: self.replay.len() })
    }

    fn predict(&self, segments: &Segments) -> Result<Predictions, PredictorError> {
        check_segments(segments, self.width)?;
        let (action_values, state_values) = self.values(&self.networks, segments)?;
        check_predicted(NAME, &action_values)?;
        check_predicted(NAME, &state_values)?;
        Ok(Predictions::new(vec![
            (Signal::ActionValues, action_values),
            (Signal::StateValues, state_values),
        ]))
    }

    fn state(&self) -> Result<Vec<u8>, PredictorError> {
        let mut tensors = Vec::new();
        for (prefix, networks) in
            [("online", &self.networks.online[..]), ("target", &self.networks.targets)]
        {
            for (name, network) in NAMES.iter().zip(networks) {
                let name = format!("{prefix}.{name}");
                tensors.extend(network.tensors(&name).map_err(failed)?);
            }
        }
        tensors.extend(self.replay.tensors());
        Ok(state::write(NAME, &self.replay.summary(), &tensors))
    }

    fn load(&mut self, state: &[u8]) -> Result<(), PredictorError> {
        let read = || -> Result<_, StateError> {
            let (reader, summary) = StateReader::open::<ReplaySummary>(NAME, state)?;
            let network = |prefix: &str, index: usize| {
                let name = format!("{prefix}.{}", NAMES[index]);
                self.networks.online[index].read(&name, &reader)
            };
            let online = [
                network("online", 0)?,
                network("online", 1)?,
                network("online", 2)?,
                network("online", 3)?,
            ];
            let copies = 0..self.networks.targets.len();
            let targets = copies.map(|index| network("target", index)).collect::<Result<_, _>>()?;
            let replay = self.replay.read(&summary, &reader)?;
            Ok((Networks { online, targets }, replay))
        };
        (self.networks, self.replay) =
            read().map_err(|source| PredictorError::State { name: NAME, source })?;
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

    /// Situations of the chain, and features of a segment: situations, then situations with one of two answers.
    const LEN: usize = 3;
    const WIDTH: usize = 4 * LEN;
    const DISCOUNT: f64 = 0.9;

    /// Walks along a chain by coin flips: answer 1 goes on, answer 0 costs 0.1 and stays; the end of the chain pays 1.
    fn walks(num_walks: usize, seed: u64) -> (Segments, Vec<f32>) {
        let mut coins = numbers(num_walks * 100, seed).into_iter();
        let mut segments = Segments::new(WIDTH).unwrap();
        let mut rewards = Vec::new();
        for _ in 0..num_walks {
            let (mut at, mut rows) = (0, Vec::new());
            while at < LEN {
                let answer = usize::from(coins.next().unwrap() < 0.5);
                rows.extend(row(at, answer));
                at += answer;
                rewards.push(match (answer, at) {
                    (0, _) => -0.1,
                    (_, LEN) => 1.0,
                    _ => 0.0,
                });
            }
            segments.push(&rows).unwrap();
        }
        (segments, rewards)
    }

    fn row(at: usize, answer: usize) -> Vec<f32> {
        let mut row = vec![0.0; WIDTH];
        row[at] = 1.0;
        row[2 * LEN + 2 * at + answer] = 1.0;
        row
    }

    /// `V(s) = (Q(s, 0) + Q(s, 1)) / 2`, `Q(s, 0) = -0.1 + discount V(s)`, `Q(s, 1) = r + discount V(s + 1)`.
    fn true_values() -> [(f64, [f64; 2]); LEN] {
        let mut behind = 0.0;
        let mut found = [(0.0, [0.0; 2]); LEN];
        for at in (0..LEN).rev() {
            let reward = if at + 1 == LEN { 1.0 } else { 0.0 };
            let goes_on = reward + DISCOUNT * behind;
            let value = (goes_on - 0.1) / (2.0 - DISCOUNT);
            found[at] = (value, [DISCOUNT * value - 0.1, goes_on]);
            behind = value;
        }
        found
    }

    fn open(config: TurnCriticConfig) -> TurnCritic {
        TurnCritic::new(config, &OpenFor { width: WIDTH, seed: Seed::from_u64(5) }).unwrap()
    }

    #[test]
    fn on_a_chain_it_finds_the_values_that_are_known() {
        for (targets, polyak) in [(CriticTargets::Td, Some(0.2)), (CriticTargets::MonteCarlo, None)]
        {
            let mut critic = open(TurnCriticConfig {
                discount: DISCOUNT,
                targets,
                polyak,
                layers: 0,
                steps: 200,
                batch: 128,
                ..TurnCriticConfig::default()
            });
            for (index, learning_rate) in [0.1, 0.02, 0.002].into_iter().enumerate() {
                critic.config.learning_rate = learning_rate;
                let (segments, rewards) = walks(200, index as u64);
                let fit = critic.fit(&segments, &rewards, Seed::from_u64(9)).unwrap();
                assert_eq!(fit.losses.len(), 200);
            }
            let mut segments = Segments::new(WIDTH).unwrap();
            (0..LEN).for_each(|at| segments.push(&[row(at, 0), row(at, 1)].concat()).unwrap());
            let found = critic.predict(&segments).unwrap();
            let action_values = found.column(Signal::ActionValues).unwrap();
            let state_values = found.column(Signal::StateValues).unwrap();
            for (at, (value, of_answers)) in true_values().into_iter().enumerate() {
                for (answer, of_answer) in of_answers.into_iter().enumerate() {
                    let row = 2 * at + answer;
                    let near = |found: f32, known: f64| (f64::from(found) - known).abs() < 0.06;
                    let told = format!("{targets:?} {at} {answer}: {found:?}, {value} {of_answer}");
                    assert!(near(action_values[row], of_answer), "{told}");
                    assert!(near(state_values[row], value), "{told}");
                }
            }
        }
    }

    #[test]
    fn the_gradient_is_that_of_the_squared_errors() {
        let critic = open(TurnCriticConfig { layers: 1, width: Some(3), ..Default::default() });
        let mut replay = critic.replay.clone();
        let (segments, rewards) = walks(5, 1);
        replay.push(&segments, &rewards, DISCOUNT);
        let places: Vec<usize> = (0..replay.len()).collect();
        let batch = critic.batch(&replay, &critic.networks, &places).unwrap();
        let differentiated = TurnCritic::loss(&critic.networks.online, &batch).unwrap();
        for index in 0..4 {
            let loss = |network: &Network| {
                let mut online = critic.networks.copy().unwrap().online;
                online[index] = network.copy().unwrap();
                let loss = TurnCritic::loss(&online, &batch).unwrap();
                f64::from(loss.to_scalar::<f32>().unwrap())
            };
            assert_network_gradient(&critic.networks.online[index], &differentiated, loss);
        }
    }

    #[test]
    fn copies_follow_by_polyak_averaging() {
        let mut critic = open(TurnCriticConfig {
            steps: 1,
            polyak: Some(0.25),
            layers: 1,
            width: Some(3),
            ..TurnCriticConfig::default()
        });
        let read = |network: &Network| -> Vec<f32> {
            network.tensors("n").unwrap().into_iter().flat_map(|tensor| tensor.values).collect()
        };
        let (segments, rewards) = walks(5, 1);
        let before: Vec<_> = critic.networks.targets.iter().map(read).collect();
        critic.fit(&segments, &rewards, Seed::from_u64(9)).unwrap();
        for (index, copy) in critic.networks.targets.iter().enumerate() {
            let online = read(&critic.networks.online[index]);
            assert_ne!(before[index], online);
            for ((copy, before), online) in read(copy).iter().zip(&before[index]).zip(online) {
                assert!((copy - (0.75 * before + 0.25 * online)).abs() < 1e-6);
            }
        }
    }

    #[test]
    fn what_would_be_ignored_is_refused() {
        let problems = |config: TurnCriticConfig| config.problems().join("; ");
        let ignored = TurnCriticConfig {
            targets: CriticTargets::MonteCarlo,
            polyak: Some(0.5),
            layers: 0,
            width: Some(3),
            ..TurnCriticConfig::default()
        };
        let told = problems(ignored);
        assert!(told.contains("polyak has no effect") && told.contains("width has no effect"));
        let wrong = TurnCriticConfig {
            discount: 1.5,
            polyak: Some(0.0),
            batch: 0,
            learning_rate: f64::NAN,
            ..TurnCriticConfig::default()
        };
        let told = problems(wrong);
        for part in ["discount is 1.5", "polyak is 0", "batch is 0", "learning_rate is NaN"] {
            assert!(told.contains(part), "{told}");
        }
        let odd = OpenFor { width: 3, seed: Seed::from_u64(1) };
        let error = TurnCritic::new(TurnCriticConfig::default(), &odd).unwrap_err();
        assert!(matches!(error, PredictorError::Features { width: 3, .. }));
    }
}
