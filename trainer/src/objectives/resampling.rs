//! Samples are drawn again by how good or bad they are, beside any loss of a policy.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::Seed;

use super::PolicyTokens;
use super::bounds::positive;

/// What every weight is more than 0 by.
const LEAST: f64 = 1e-8;

/// Options of drawing an update's samples again.
///
/// As many samples as there are, are drawn with replacement, each as often as its weight says; one that was drawn `n` times
/// weighs `n` times as much, and one that was not, nothing. With `s` a sample's score, its mean advantage, the weight is
/// `|s|^power` (`power`), 1 for the best and the worst scores and 0 for others (`extremes`), or 0.4 for the best and 0.1 for
/// others (`best_and_some`), and 1e-8 more. Source: PF-PPO, policy filtration, arXiv 2409.06957, as in verl's
/// `compute_pf_ppo_reweight_data`, where scores are rewards.
///
/// Metric: `drawn_again_fraction`, the share of samples that were drawn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ResamplingOptions {
    /// How weights follow from scores. Default `power`.
    pub by: ResamplingWeight,
    /// Of `power`: the power; positive. Default 2, verl's.
    pub power: f64,
}

/// How the weights of [`ResamplingOptions`] follow from scores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ResamplingWeight {
    /// `|s|^power`.
    #[default]
    #[serde(alias = "pow")]
    Power,
    /// 1 for the best and the worst, else 0.
    #[serde(alias = "max_min")]
    Extremes,
    /// 0.4 for the best, else 0.1.
    #[serde(alias = "max_random")]
    BestAndSome,
}

impl Default for ResamplingOptions {
    fn default() -> Self {
        Self { by: ResamplingWeight::default(), power: 2.0 }
    }
}

impl ResamplingOptions {
    /// All that is wrong with the values; empty when nothing is.
    pub fn problems(&self) -> Vec<String> {
        let wrong = positive("power", self.power);
        wrong.into_iter().map(|problem| format!("resampling: {problem}")).collect()
    }

    /// What samples with these scores are drawn by.
    pub fn weights(&self, scores: &[f64]) -> Vec<f64> {
        let most = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let least = scores.iter().copied().fold(f64::INFINITY, f64::min);
        let weight = |score: &f64| match self.by {
            ResamplingWeight::Power => score.abs().powf(self.power),
            ResamplingWeight::Extremes => f64::from(u8::from(*score == most || *score == least)),
            ResamplingWeight::BestAndSome => {
                if *score == most {
                    0.4
                } else {
                    0.1
                }
            }
        };
        scores.iter().map(|score| (weight(score) + LEAST).max(LEAST)).collect()
    }

    /// How often each sample is drawn.
    pub(super) fn draw(&self, rows: &[PolicyTokens], seed: Seed) -> Vec<f64> {
        let scores: Vec<f64> = rows.iter().map(PolicyTokens::mean_advantage).collect();
        let weights = self.weights(&scores);
        let total: f64 = weights.iter().sum();
        let mut drawn = vec![0.0; rows.len()];
        // What is undefined is found by the loss.
        if !total.is_finite() {
            return vec![1.0; rows.len()];
        }
        for draw in 0..rows.len() {
            // 53 bits, as many as a number between 0 and 1 has.
            let bits = seed.derive("resampling", draw).as_u64() >> 11;
            let mut left = bits as f64 / (1_u64 << 53) as f64 * total;
            let place = weights.iter().position(|weight| {
                left -= weight;
                left < 0.0
            });
            drawn[place.unwrap_or(rows.len() - 1)] += 1.0;
        }
        drawn
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{each_case, vector};

    #[test]
    fn weights_equal_the_golden_numbers() {
        each_case("pf_ppo_weights", |case| {
            let by = serde_json::from_value(case.params["method"].clone()).unwrap();
            let options = ResamplingOptions { by, power: case.param("pow").unwrap() };
            assert_eq!(options.problems(), [""; 0]);
            let found = options.weights(&vector(&case.inputs["scores"]));
            for (found, wanted) in found.iter().zip(vector(&case.outputs["weights"])) {
                case.assert_close(*found, wanted);
            }
        });
    }

    #[test]
    fn samples_are_drawn_as_often_as_they_weigh() {
        let row = |advantage: f64| PolicyTokens {
            places: vec![0],
            advantages: vec![advantage],
            ..PolicyTokens::default()
        };
        let rows: Vec<PolicyTokens> = (0..1000).map(|index| row((index % 3) as f64)).collect();
        let drawn = ResamplingOptions::default().draw(&rows, Seed::from_u64(3));
        assert_eq!(drawn.iter().sum::<f64>(), 1000.0);
        let of = |kind: usize| drawn.iter().skip(kind).step_by(3).sum::<f64>();
        // Weights 0, 1 and 4.
        assert_eq!(of(0), 0.0);
        assert!((of(2) / of(1) - 4.0).abs() < 0.8, "{} {}", of(1), of(2));
    }
}
