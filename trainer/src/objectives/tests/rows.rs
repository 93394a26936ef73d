//! Rows of golden files as objectives see samples.

use rand::RngExt;
use serde_json::Value;
use spar_core::Seed;

use super::super::policy_loss::{Begun, Beside, UpdateOf};
use crate::objectives::{BatchWeight, LossAggregation, PolicyLoss, PolicyTokens, Tally};
use crate::testing::{Case, batch_of, matrix};

/// The streams of a golden file, and which of its tokens weigh.
pub(super) struct Streams {
    pub(super) logprobs: Vec<Vec<f64>>,
    pub(super) old: Vec<Vec<f64>>,
    pub(super) advantages: Vec<Vec<f64>>,
    pub(super) mask: Vec<Vec<f64>>,
    /// Those that sampled, where they are others than `old`.
    pub(super) behavior: Option<Vec<Vec<f64>>>,
    pub(super) reference: Option<Vec<Vec<f64>>>,
    pub(super) importance: Option<Vec<Vec<f64>>>,
    pub(super) groups: Vec<usize>,
}

impl Streams {
    /// Those that most files have.
    pub(super) fn of(inputs: &Value) -> Self {
        let input = |name: &str| inputs.get(name).map(matrix);
        let mask = input("response_mask").unwrap();
        let spread = |name: &str| -> Option<Vec<Vec<f64>>> {
            let values = inputs.get(name)?.as_array()?;
            let row = |value: &Value| vec![value.as_f64().unwrap(); mask[0].len()];
            Some(values.iter().map(row).collect())
        };
        Self {
            logprobs: input("log_prob").unwrap(),
            old: input("old_log_prob").or_else(|| input("rollout_log_prob")).unwrap(),
            advantages: input("advantages")
                .or_else(|| spread("advantages_per_sequence"))
                .unwrap_or_else(|| vec![vec![0.0; mask[0].len()]; mask.len()]),
            behavior: input("behaviour_log_prob"),
            reference: input("ref_log_prob"),
            importance: input("rollout_is_weights"),
            groups: Vec::new(),
            mask,
        }
    }

    /// The tokens of each row that weigh; rows without any are there too.
    pub(super) fn rows(&self) -> Vec<PolicyTokens> {
        let row = |index: usize| {
            let mask = &self.mask[index];
            let places: Vec<usize> = (0..mask.len()).filter(|t| mask[*t] != 0.0).collect();
            let take =
                |of: &Vec<Vec<f64>>| places.iter().map(|t| of[index][*t]).collect::<Vec<_>>();
            let logprobs = take(&self.logprobs);
            PolicyTokens {
                weights: vec![1.0; places.len()],
                importance: match &self.importance {
                    Some(importance) => take(importance),
                    None => vec![1.0; places.len()],
                },
                advantages: take(&self.advantages),
                behavior: take(self.behavior.as_ref().unwrap_or(&self.old)),
                old: take(&self.old),
                detached: logprobs.clone(),
                logprobs,
                reference: self.reference.as_ref().map(take).unwrap_or_default(),
                entropies: Vec::new(),
                turns: Vec::new(),
                is_outside: false,
                places,
            }
        };
        (0..self.mask.len()).map(row).collect()
    }

    /// The loss and its derivatives by log-probabilities, through all that production takes a sample through.
    pub(super) fn evaluate(
        &self,
        loss: &dyn PolicyLoss,
        beside: &Beside,
        aggregation: LossAggregation,
        batch: BatchWeight,
    ) -> Found {
        let rows = self.rows();
        let update = UpdateOf { aggregation, seed: Seed::from_u64(0), state: &[] };
        let begun = Begun::new(loss, Some(beside), rows.clone(), &self.groups, &update);
        let mut found = Found {
            loss: 0.0,
            gradient: self.mask.iter().map(|row| vec![0.0; row.len()]).collect(),
            tally: Tally::default(),
        };
        for (index, tokens) in rows.into_iter().enumerate() {
            let scale = aggregation.scale(tokens.len() as f64, batch);
            let row = begun.row(index, tokens, scale);
            found.loss += row.loss;
            found.tally.merge(&row.tally);
            for (place, slope) in row.places.iter().zip(&row.slopes) {
                found.gradient[index][*place] += slope;
            }
        }
        found
    }

    /// The same by a mean over tokens, or whatever the case says, of what the mask has.
    pub(super) fn evaluate_as(&self, case: &Case, loss: &dyn PolicyLoss, beside: &Beside) -> Found {
        self.evaluate(loss, beside, case.aggregation(&self.mask), batch_of(&self.mask))
    }
}

/// What came of rows.
pub(super) struct Found {
    pub(super) loss: f64,
    pub(super) gradient: Vec<Vec<f64>>,
    pub(super) tally: Tally,
}

impl Found {
    /// Compares the gradient with a case's.
    #[track_caller]
    pub(super) fn assert_gradient(&self, case: &Case, wanted: &Value, tolerance: f64) {
        for (found, wanted) in self.gradient.iter().zip(matrix(wanted)) {
            for (found, wanted) in found.iter().zip(wanted) {
                case.assert_near(*found, wanted, tolerance);
            }
        }
    }

    /// Compares loss and gradient with a case's.
    #[track_caller]
    pub(super) fn assert_equals(&self, case: &Case, tolerance: f64) {
        case.assert_near(self.loss, crate::testing::number(&case.outputs["loss"]), tolerance);
        self.assert_gradient(case, &case.outputs["grad_log_prob"], tolerance);
    }
}

/// Rows of chance.
pub(super) struct Draws {
    seed: Seed,
    drawn: u64,
}

impl Draws {
    pub(super) fn new(seed: Seed) -> Self {
        Self { seed, drawn: 0 }
    }

    fn within(&mut self, low: f64, high: f64) -> f64 {
        self.drawn += 1;
        self.seed.derive("draw", self.drawn).rng().random_range(low..high)
    }

    /// Rows of these lengths, each token with an advantage of its row's sign, ratios around 1, and weights and advantages
    /// of its own where `are_tokens_apart`.
    pub(super) fn rows(&mut self, lengths: &[usize], are_tokens_apart: bool) -> Vec<PolicyTokens> {
        let mut rows = Vec::new();
        for (index, &length) in lengths.iter().enumerate() {
            let sign = if index % 2 == 0 { 1.0 } else { -1.0 };
            let mut row = PolicyTokens { places: (0..length).collect(), ..PolicyTokens::default() };
            let common = sign * self.within(0.1, 2.0);
            for _ in 0..length {
                let (weight, own) = (self.within(0.2, 1.0), sign * self.within(0.1, 2.0));
                row.weights.push(if are_tokens_apart { weight } else { 1.0 });
                row.importance.push(1.0);
                row.advantages.push(if are_tokens_apart { own } else { common });
                let old = self.within(-2.5, -0.7);
                row.old.push(old);
                row.behavior.push(old);
                row.logprobs.push(old + self.within(-0.6, 0.6));
                row.reference.push(old + self.within(-0.8, 0.6));
                row.entropies.push(self.within(0.1, 2.0));
                row.turns.push(0);
            }
            row.detached = row.logprobs.clone();
            rows.push(row);
        }
        rows
    }
}
