//! Direct advantage policy optimisation.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::registry::NamedOptions;

use super::bounds::positive;
use super::{Needs, PolicyLoss, PolicyLosses, PolicyTokens, Tally};

/// Options of [`DirectAdvantage`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DirectAdvantageOptions {
    /// How strongly the policy is held to the reference model; positive. Default 0.2.
    pub beta: f64,
}

impl Default for DirectAdvantageOptions {
    fn default() -> Self {
        Self { beta: 0.2 }
    }
}

impl NamedOptions for DirectAdvantageOptions {
    fn problems(&self) -> Vec<String> {
        positive("beta", self.beta).into_iter().collect()
    }
}

/// The log-ratio of every turn to the reference model is regressed onto the turn's advantage.
///
/// With `X_k = sum_{t in turn k} log pi(y_t) / pi_ref(y_t)` the loss of turn `k` is `1/2 (X_k - A_k / beta)^2`: DAPO in the meaning of
/// direct advantage policy optimisation (arXiv 2412.18279, equation 8; from memory, so that the place of `beta` is assumed), not the
/// clip-higher one. Nobody's probability of what was done enters, so that anyone's episodes will do: where
/// `E_ref[exp(A / beta)] = 1` over the answers to every situation, the minimum is `pi_ref exp(A / beta)`, whoever answered and how often.
/// A turn's tokens, which share its advantage and weigh alike, tell its loss in equal parts. Where a sample does not tell its turns, it is one.
///
/// Metric: `advantage_error`, the mean over tokens of their turn's `|beta X_k - A_k|`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct DirectAdvantage {
    options: DirectAdvantageOptions,
}

impl DirectAdvantage {
    /// The objective with these options.
    pub fn new(options: DirectAdvantageOptions) -> Self {
        Self { options }
    }
}

impl PolicyLoss for DirectAdvantage {
    fn name(&self) -> &'static str {
        "direct_advantage"
    }

    fn needs(&self) -> Needs {
        Needs { reference: true, ..Needs::default() }
    }

    fn has_gradient(&self, sample: &spar_core::Sample) -> bool {
        sample.num_weighed() > 0
    }

    fn takes_mean_advantages(&self) -> bool {
        false
    }

    fn loss(&self, tokens: &PolicyTokens, _: &[f64], tally: &mut Tally) -> PolicyLosses {
        let beta = self.options.beta;
        let mut found = PolicyLosses::zero(tokens.len());
        let turn = |index: usize| tokens.turns.get(index).copied().unwrap_or(0);
        let mut first = 0;
        while first < tokens.len() {
            // A sample has the tokens of a turn in a row.
            let own = (first..tokens.len()).take_while(|index| turn(*index) == turn(first));
            let places = first..first + own.count();
            first = places.end;
            let (mut apart, mut advantage) = (0.0, 0.0);
            for index in places.clone() {
                apart += tokens.logprobs[index] - tokens.reference[index];
                advantage += tokens.advantages[index];
            }
            let length = places.len() as f64;
            let error = apart - advantage / length / beta;
            for index in places {
                found.add(tokens, index, 0.5 * error * error / length, error);
                tally.add_mean("advantage_error", (beta * error).abs());
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_are_regressed_by_themselves() {
        let row = |turns: &[u32]| PolicyTokens {
            places: vec![1, 2, 4],
            weights: vec![1.0; 3],
            importance: vec![1.0; 3],
            advantages: vec![0.5, 0.5, -0.25],
            logprobs: vec![-1.0, -2.0, -0.5],
            reference: vec![-1.5, -1.75, -1.0],
            turns: turns.to_vec(),
            ..PolicyTokens::default()
        };
        let objective = DirectAdvantage::new(DirectAdvantageOptions { beta: 0.5 });
        let mut tally = Tally::default();
        let found = objective.loss(&row(&[3, 3, 7]), &[], &mut tally);
        // Log-ratios 0.25 and 0.5, and what they are to be: 1 and -0.5.
        assert_eq!(found.slopes, [-0.75, -0.75, 1.0]);
        assert_eq!(found.loss, 0.5 * (0.75 * 0.75 + 1.0));
        assert_eq!(tally.values()["advantage_error"], 0.5 * (0.75 + 0.75 + 1.0) / 3.0);
        let whole = objective.loss(&row(&[]), &[], &mut Tally::default());
        let error = 0.75 - 0.5;
        assert!(whole.slopes.iter().all(|slope| (slope - error).abs() < 1e-12), "{whole:?}");
    }
}
