//! The average of the weights of several updates.

use std::collections::VecDeque;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::TrainerError;
use crate::optimisers::{StateReader, StateTensor};

/// Which weights are averaged.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum AverageConfig {
    /// The last so many weights count the same (stochastic weight averaging, arXiv 1803.05407,
    /// over a window).
    Last {
        /// How many; at least 1. Each takes the memory of the weights.
        count: usize,
    },
    /// `average <- decay average + (1 - decay) weights`, started at the first weights.
    Exponential {
        /// Share of the average that stays; 0 up to but not including 1.
        decay: f32,
    },
}

impl AverageConfig {
    /// All that is wrong with the values; empty when nothing is.
    pub fn problems(&self) -> Vec<String> {
        match self {
            Self::Last { count: 0 } => vec!["`average.last.count` is 0".to_owned()],
            Self::Exponential { decay } if !(0.0..1.0).contains(decay) => {
                vec![format!("`average.exponential.decay` {decay} is outside 0 to 1")]
            }
            _ => Vec::new(),
        }
    }
}

/// The average of the weights of several updates; often better than the last ones alone.
#[derive(Debug, Clone, PartialEq)]
pub struct WeightAverage {
    config: AverageConfig,
    /// Oldest first; the one average when exponential.
    kept: VecDeque<Vec<f32>>,
}

impl WeightAverage {
    /// An average over nothing yet.
    pub fn new(config: AverageConfig) -> Self {
        Self { config, kept: VecDeque::new() }
    }

    /// Takes in the weights after an update.
    pub fn add(&mut self, weights: &[f32]) {
        match (self.config, self.kept.front_mut()) {
            (AverageConfig::Last { count }, _) => {
                let mut room = Vec::new();
                while self.kept.len() >= count.max(1) {
                    room = self.kept.pop_front().unwrap_or_default();
                }
                room.clear();
                room.extend_from_slice(weights);
                self.kept.push_back(room);
            }
            (AverageConfig::Exponential { decay }, Some(average)) => {
                for (average, weight) in average.iter_mut().zip(weights) {
                    *average = decay * *average + (1.0 - decay) * weight;
                }
            }
            (AverageConfig::Exponential { .. }, None) => self.kept.push_back(weights.to_vec()),
        }
    }

    /// The average, in the layout of the weights; `None` before the first were added.
    pub fn average(&self) -> Option<Vec<f32>> {
        let mut sum: Vec<f64> = self.kept.front()?.iter().map(|value| f64::from(*value)).collect();
        for weights in self.kept.iter().skip(1) {
            for (sum, weight) in sum.iter_mut().zip(weights) {
                *sum += f64::from(*weight);
            }
        }
        let count = self.kept.len() as f64;
        Some(sum.into_iter().map(|sum| (sum / count) as f32).collect())
    }

    /// The state as named tensors.
    pub(crate) fn state(&self) -> Vec<StateTensor<'_>> {
        let mut tensors = vec![StateTensor::counter("kept", self.kept.len() as u64)];
        for (index, weights) in self.kept.iter().enumerate() {
            tensors.push(StateTensor::new(format!("kept.{index}"), &[weights.len()], weights));
        }
        tensors
    }

    /// Takes over a state of weights with `len` elements.
    pub(crate) fn load_state(
        &mut self,
        mut state: StateReader<'_>,
        len: usize,
    ) -> Result<(), TrainerError> {
        let kept =
            (0..state.counter("kept")?).map(|index| state.tensor(&format!("kept.{index}"), &[len]));
        self.kept = kept.collect::<Result<_, TrainerError>>()?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use spar_policy::checkpoint::TensorFile;

    use super::*;
    use crate::optimisers::write_state;

    #[test]
    fn the_last_ones_count_the_same() {
        let mut average = WeightAverage::new(AverageConfig::Last { count: 2 });
        assert_eq!(average.average(), None);
        for weight in [1.0, 2.0, 5.0] {
            average.add(&[weight, -weight]);
        }
        assert_eq!(average.average().unwrap(), [3.5, -3.5]);
    }

    #[test]
    fn an_exponential_average_starts_at_the_first_weights() {
        let mut average = WeightAverage::new(AverageConfig::Exponential { decay: 0.75 });
        average.add(&[4.0]);
        average.add(&[0.0]);
        assert_eq!(average.average().unwrap(), [3.0]);
    }

    #[test]
    fn a_state_round_trips() {
        let mut average = WeightAverage::new(AverageConfig::Last { count: 3 });
        average.add(&[1.0]);
        average.add(&[2.0]);
        let mut other = WeightAverage::new(AverageConfig::Last { count: 3 });
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state");
        write_state(&path, &average.state()).unwrap();
        let mut file = TensorFile::open(path).unwrap();
        other.load_state(StateReader::new(&mut file), 1).unwrap();
        assert_eq!(average, other);
        assert!(other.load_state(StateReader::new(&mut file), 2).is_err());
    }
}
