//! Entropies are kept near those of earlier rollouts, beside any loss of a policy.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::bounds::{not_negative, positive};
use super::{PolicyLosses, PolicyTokens, Tally};

/// Turns whose entropies are remembered; later ones count as the last of them.
const MAX_TURNS: usize = 256;

/// Options of an entropy bonus with a bound on how far entropies stray from those of earlier rollouts.
///
/// `l = l_policy - weight s (H_t - penalty_weight P_t)`, where `P` is 0 while `low m_k < H < high m_k`, `m_k` being the mean
/// entropy of what was sampled in the same turn `k`, over all updates before. Otherwise `P` is
///
/// - `penalty (max(0, low m_k - H) + max(0, H - high m_k))` by default, which has a derivative: the paper formulates a
///   regulariser, and its form is reconstructed;
/// - `penalty` with `released`: what the released code computes, a constant, so that it moves the loss that is told and no
///   weights. That code applies it only to batches with late turns; here it is applied to all.
///
/// Sources: EPO, arXiv 2509.22576, and its released code. Without updates before, `P` is 0. `s` is 1, or falls with
/// `decay_updates`, its number of updates `N`: `1 - 0.2 (1 - exp(-4 n / N))` in the first half, and
/// `0.8 exp(-3 (2 n / N - 1))` in the second, with a small jump between, as there.
///
/// Metrics: `entropy_penalty`, the mean of `P` over tokens; `entropy_within_fraction`, the share of tokens within bounds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct EntropySmoothingOptions {
    /// What entropies weigh; positive. Default 0.001.
    pub weight: f64,
    /// What the penalty weighs beside them; 0 or more. Default 1.
    pub penalty_weight: f64,
    /// What a penalty is; 0 or more. Default 0.1.
    pub penalty: f64,
    /// The lower bound, as a share of the mean; 0 or more. Default 0.8.
    pub low: f64,
    /// The upper bound; above `low`. Default 1.2.
    pub high: f64,
    /// Whether samples are judged by their mean entropy, and not each token. Default false.
    pub by_sample: bool,
    /// Whether the penalty is the released code's constant. Default false.
    pub released: bool,
    /// Updates over which the weight falls; at least 1. Default absent: it stays.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decay_updates: Option<u64>,
}

impl Default for EntropySmoothingOptions {
    fn default() -> Self {
        Self {
            weight: 0.001,
            penalty_weight: 1.0,
            penalty: 0.1,
            low: 0.8,
            high: 1.2,
            by_sample: false,
            released: false,
            decay_updates: None,
        }
    }
}

/// What is remembered of entropies: the sum over updates of their means by turn, and how many updates those were.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct EntropyHistory {
    updates: f64,
    by_turn: Vec<(f64, f64)>,
}

impl EntropyHistory {
    /// What [`EntropyHistory::to_numbers`] wrote; nothing where there is too little.
    pub(super) fn from_numbers(numbers: &[f64]) -> Self {
        let Some((updates, by_turn)) = numbers.split_first() else { return Self::default() };
        let by_turn = by_turn.chunks_exact(2).take(MAX_TURNS).map(|pair| (pair[0], pair[1]));
        Self { updates: *updates, by_turn: by_turn.collect() }
    }

    pub(super) fn to_numbers(&self) -> Vec<f64> {
        let pairs = self.by_turn.iter().flat_map(|(sum, count)| [*sum, *count]);
        std::iter::once(self.updates).chain(pairs).collect()
    }

    /// The mean entropy of a turn; `None` where nothing was seen of it.
    fn mean(&self, turn: u32) -> Option<f64> {
        let (sum, count) = self.by_turn.get(place(turn))?;
        (*count > 0.0).then(|| sum / count)
    }

    /// Remembers the samples of an update.
    pub(super) fn after(&self, rows: &[PolicyTokens]) -> Self {
        let mut of_update: Vec<(f64, f64)> = Vec::new();
        for row in rows {
            for (turn, entropy) in row.turns.iter().zip(&row.entropies) {
                let place = place(*turn);
                if of_update.len() <= place {
                    of_update.resize(place + 1, (0.0, 0.0));
                }
                of_update[place].0 += entropy;
                of_update[place].1 += 1.0;
            }
        }
        let mut next = Self { updates: self.updates + 1.0, by_turn: self.by_turn.clone() };
        let length = next.by_turn.len().max(of_update.len());
        next.by_turn.resize(length, (0.0, 0.0));
        for (known, (sum, count)) in next.by_turn.iter_mut().zip(of_update) {
            if count > 0.0 {
                known.0 += sum / count;
                known.1 += 1.0;
            }
        }
        next
    }
}

fn place(turn: u32) -> usize {
    (turn as usize).min(MAX_TURNS - 1)
}

impl EntropySmoothingOptions {
    /// All that is wrong with the values; empty when nothing is.
    pub fn problems(&self) -> Vec<String> {
        let mut problems: Vec<String> = positive("weight", self.weight).into_iter().collect();
        problems.extend(not_negative("penalty_weight", self.penalty_weight));
        problems.extend(not_negative("penalty", self.penalty));
        problems.extend(not_negative("low", self.low));
        if !(self.high.is_finite() && self.high > self.low) {
            problems.push(format!("`high` {} must be above `low` {}", self.high, self.low));
        }
        if self.decay_updates == Some(0) {
            problems.push("`decay_updates` is 0, must be at least 1".to_owned());
        }
        problems.iter().map(|problem| format!("entropy_smoothing: {problem}")).collect()
    }

    /// The penalty of an entropy beside the mean of its turn, and its derivative.
    fn penalty(&self, entropy: f64, mean: f64) -> (f64, f64) {
        let (low, high) = (self.low * mean, self.high * mean);
        match (entropy > low && entropy < high, self.released) {
            (true, _) => (0.0, 0.0),
            (false, true) => (self.penalty, 0.0),
            (false, false) if entropy <= low => (self.penalty * (low - entropy), -self.penalty),
            (false, false) => (self.penalty * (entropy - high), self.penalty),
        }
    }

    /// The penalties of tokens with these entropies, whose turns have these means, and their derivatives by the entropy
    /// of the token, or that of every token of the sample.
    fn penalties(&self, entropies: &[f64], means: &[Option<f64>]) -> Vec<(f64, f64)> {
        let whole = entropies.iter().sum::<f64>() / entropies.len().max(1) as f64;
        let of = |(entropy, mean): (&f64, &Option<f64>)| match mean {
            None => (0.0, 0.0),
            Some(mean) => self.penalty(if self.by_sample { whole } else { *entropy }, *mean),
        };
        entropies.iter().zip(means).map(of).collect()
    }

    /// What the weight is multiplied by after so many updates.
    pub fn decay(&self, updates: u64) -> f64 {
        let Some(all) = self.decay_updates else { return 1.0 };
        let (updates, half) = (updates.min(all), all / 2);
        match updates <= half {
            true if half == 0 => 1.0,
            true => 1.0 - 0.2 * (1.0 - (-2.0 * updates as f64 / half as f64).exp()),
            false => 0.8 * (-3.0 * (updates - half) as f64 / (all - half) as f64).exp(),
        }
    }

    /// Adds the term to the loss of a sample's tokens.
    pub(super) fn add(
        &self,
        tokens: &PolicyTokens,
        history: &EntropyHistory,
        sum: &mut PolicyLosses,
        tally: &mut Tally,
    ) {
        let means: Vec<Option<f64>> = tokens.turns.iter().map(|turn| history.mean(*turn)).collect();
        let weight = self.weight * self.decay(history.updates as u64);
        let penalties = self.penalties(&tokens.entropies, &means);
        if sum.entropies.is_empty() {
            sum.entropies = vec![0.0; tokens.len()];
        }
        let mut common = 0.0;
        for (t, (penalty, slope)) in penalties.into_iter().enumerate() {
            tally.add_mean("entropy_penalty", penalty);
            tally.add_mean("entropy_within_fraction", (penalty == 0.0).into());
            let factor = weight * tokens.weights[t];
            sum.loss -= factor * (tokens.entropies[t] - self.penalty_weight * penalty);
            sum.entropies[t] -= factor;
            let by_penalty = factor * self.penalty_weight * slope;
            match self.by_sample {
                true => common += by_penalty,
                false => sum.entropies[t] += by_penalty,
            }
        }
        let share = common / tokens.len().max(1) as f64;
        sum.entropies.iter_mut().for_each(|slope| *slope += share);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{assert_close, each_case, matrix, number, vector};

    #[test]
    fn the_released_penalty_equals_the_golden_numbers() {
        each_case("epo_entropy_penalty", |case| {
            let options = EntropySmoothingOptions {
                penalty: case.param("out_range_penalty").unwrap(),
                low: case.param("min_ratio").unwrap(),
                high: case.param("max_ratio").unwrap(),
                by_sample: case.params["mode"] == "seq",
                released: true,
                decay_updates: case.inputs["max_epochs"].as_u64(),
                ..EntropySmoothingOptions::default()
            };
            assert_eq!(options.problems(), [""; 0]);
            let history = vector(&case.inputs["entropy_history"]);
            let turns = vector(&case.inputs["rollout_step"]);
            let wanted = matrix(&case.outputs["penalty"]);
            let (mut within, mut count) = (0.0, 0.0);
            for (row, entropies) in matrix(&case.inputs["entropy"]).iter().enumerate() {
                let means = vec![history.get(turns[row] as usize).copied(); entropies.len()];
                let found = options.penalties(entropies, &means);
                for ((found, slope), wanted) in found.iter().zip(&wanted[row]) {
                    case.assert_close(*found, *wanted);
                    assert_eq!(*slope, 0.0, "a constant");
                }
                // Of tokens, or of samples.
                let judged = if options.by_sample { &found[..1] } else { &found[..] };
                within += judged.iter().filter(|(penalty, _)| *penalty == 0.0).count() as f64;
                count += judged.len() as f64;
            }
            if options.penalty > 0.0 {
                case.assert_close(within / count, number(&case.outputs["within_fraction"]));
            }
            let weights = vector(&case.outputs["epoch_weight"]);
            for (epoch, wanted) in vector(&case.inputs["epochs"]).into_iter().zip(weights) {
                case.assert_close(options.decay(epoch as u64), wanted);
            }
        });
    }

    fn row(turns: &[u32], entropies: &[f64]) -> PolicyTokens {
        PolicyTokens {
            places: (0..turns.len()).collect(),
            weights: vec![1.0; turns.len()],
            importance: vec![1.0; turns.len()],
            turns: turns.to_vec(),
            entropies: entropies.to_vec(),
            ..PolicyTokens::default()
        }
    }

    #[test]
    fn the_default_penalty_has_the_derivative_of_its_value() {
        let history = EntropyHistory::default().after(&[row(&[0, 0, 1], &[1.0, 3.0, 0.5])]);
        assert_eq!(
            (history.mean(0), history.mean(1), history.mean(2)),
            (Some(2.0), Some(0.5), None)
        );
        for by_sample in [false, true] {
            let options = EntropySmoothingOptions {
                weight: 0.7,
                penalty: 0.9,
                by_sample,
                ..EntropySmoothingOptions::default()
            };
            let mut tokens = row(&[0, 0, 1, 2], &[1.0, 2.1, 1.5, 0.3]);
            let at = |tokens: &PolicyTokens| {
                let mut sum = PolicyLosses::zero(4);
                options.add(tokens, &history, &mut sum, &mut Tally::default());
                sum
            };
            let told = at(&tokens);
            for t in 0..4 {
                let middle = tokens.entropies[t];
                tokens.entropies[t] = middle + 1e-6;
                let above = at(&tokens).loss;
                tokens.entropies[t] = middle - 1e-6;
                let below = at(&tokens).loss;
                tokens.entropies[t] = middle;
                assert_close(told.entropies[t], (above - below) / 2e-6, 1e-6);
            }
        }
    }

    #[test]
    fn history_is_a_mean_over_updates_and_goes_through_numbers() {
        let first = EntropyHistory::default().after(&[row(&[0, 0], &[1.0, 2.0])]);
        let second = first.after(&[row(&[0, 3], &[0.5, 4.0])]);
        assert_eq!((second.mean(0), second.mean(1), second.mean(3)), (Some(1.0), None, Some(4.0)));
        assert_eq!(EntropyHistory::from_numbers(&second.to_numbers()), second);
        assert_eq!(EntropyHistory::from_numbers(&[]), EntropyHistory::default());
    }
}
