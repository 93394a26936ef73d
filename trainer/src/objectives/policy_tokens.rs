//! What a loss of a policy is computed from.

use std::collections::HashMap;

use spar_core::{Sample, SampleOrigin};

/// Log-ratios are held within this before they are exponentiated, as verl does; a token beyond it has no gradient.
pub const MAX_LOG_RATIO: f64 = 20.0;

/// The tokens of a sample that weigh in the policy gradient, in double precision; all lists are as long as there are such
/// tokens, but for those that are only there where they are asked for.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PolicyTokens {
    /// Where they stand in the sample.
    pub places: Vec<usize>,
    /// What each weighs, by credit.
    pub weights: Vec<f64>,
    /// What multiplies that, by a [correction](super::CorrectionOptions); 1 where there is none.
    pub importance: Vec<f64>,
    /// The advantage of each.
    pub advantages: Vec<f64>,
    /// Log-probabilities with which they were drawn.
    pub behavior: Vec<f64>,
    /// Log-probabilities that ratios are relative to: those with which they were drawn, or, with a correction, those at
    /// the weights before the first update of the iteration.
    pub old: Vec<f64>,
    /// Log-probabilities at the weights that are trained.
    pub logprobs: Vec<f64>,
    /// The same, where they are taken for constants (`sg[log pi]`): no derivative goes through them.
    pub detached: Vec<f64>,
    /// Log-probabilities under a reference model; empty where nobody asks.
    pub reference: Vec<f64>,
    /// Entropies of what they are drawn from, in nats; empty where nobody measured them.
    pub entropies: Vec<f64>,
    /// The turn in which each was sampled; empty where nobody asks.
    pub turns: Vec<u32>,
    /// Whether somebody else has written them.
    pub is_outside: bool,
}

/// A token of [`PolicyTokens`], without what it weighs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PolicyToken {
    /// Its advantage.
    pub advantage: f64,
    /// The log-probability that ratios are relative to.
    pub old: f64,
    /// The log-probability at the weights that are trained.
    pub logprob: f64,
    /// The same, taken for a constant.
    pub detached: f64,
}

impl PolicyToken {
    /// The logarithm of the ratio, within [`MAX_LOG_RATIO`], and whether it has a derivative.
    pub fn log_ratio(&self) -> (f64, bool) {
        let free = self.logprob - self.old;
        // NaN is neither within nor beyond, and is to be seen.
        let is_within = free.is_nan() || free.abs() <= MAX_LOG_RATIO;
        (free.clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO), is_within)
    }

    /// The ratio as a constant.
    pub fn detached_ratio(&self) -> f64 {
        (self.detached - self.old).clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO).exp()
    }
}

impl PolicyTokens {
    /// The tokens of a sample that weigh, with what a model told of the whole sample.
    pub fn of(sample: &Sample, logprobs: &[f32], entropies: &[f32]) -> Self {
        let places: Vec<usize> =
            (0..sample.len()).filter(|t| sample.policy_weights[*t] != 0.0).collect();
        let take = |stream: &[f32]| match stream.is_empty() {
            true => Vec::new(),
            false => places.iter().map(|t| f64::from(stream[*t])).collect(),
        };
        let (behavior, logprobs) = (take(&sample.behavior_logprobs), take(logprobs));
        Self {
            weights: take(&sample.policy_weights),
            importance: vec![1.0; places.len()],
            advantages: take(&sample.advantages),
            old: behavior.clone(),
            behavior,
            detached: logprobs.clone(),
            logprobs,
            reference: take(&sample.reference_logprobs),
            entropies: take(entropies),
            turns: match sample.turns.is_empty() {
                true => Vec::new(),
                false => places.iter().map(|t| sample.turns[*t]).collect(),
            },
            places,
            is_outside: sample.origin == SampleOrigin::Outside,
        }
    }

    /// Takes the log-probabilities before the first update of the iteration for those that ratios are relative to.
    pub(super) fn relative_to_old(&mut self, sample: &Sample) {
        self.old = self.places.iter().map(|t| f64::from(sample.old_logprobs[*t])).collect();
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// The token at this index.
    pub fn token(&self, index: usize) -> PolicyToken {
        PolicyToken {
            advantage: self.advantages[index],
            old: self.old[index],
            logprob: self.logprobs[index],
            detached: self.detached[index],
        }
    }

    /// What the loss of the token at this index is multiplied by.
    pub fn factor(&self, index: usize) -> f64 {
        self.weights[index] * self.importance[index]
    }

    /// The mean of a list over the tokens; 0 without any.
    pub fn mean(&self, values: impl Iterator<Item = f64>) -> f64 {
        values.sum::<f64>() / self.len().max(1) as f64
    }

    /// The mean advantage; 0 without tokens.
    pub fn mean_advantage(&self) -> f64 {
        self.mean(self.advantages.iter().copied())
    }

    /// The logarithms of the ratios, neither bounded nor weighed.
    pub fn log_ratios(&self) -> impl Iterator<Item = f64> {
        self.logprobs.iter().zip(&self.old).map(|(logprob, old)| logprob - old)
    }

    /// Whether a number is none.
    pub(super) fn is_undefined(&self) -> bool {
        let logprobs = [&self.behavior, &self.old, &self.logprobs];
        let is_none = |values: &Vec<f64>| values.iter().any(|value| value.is_nan());
        let is_infinite = |values: &Vec<f64>| values.iter().any(|value| !value.is_finite());
        logprobs.into_iter().any(is_none)
            || is_infinite(&self.weights)
            || is_infinite(&self.advantages)
    }

    /// Leaves out the tokens for which `kept` is false.
    pub fn retain(&mut self, kept: &[bool]) {
        fn pick<T: Copy>(values: &mut Vec<T>, kept: &[bool]) {
            if !values.is_empty() {
                let picked = values.iter().zip(kept).filter(|(_, kept)| **kept);
                *values = picked.map(|(value, _)| *value).collect();
            }
        }
        pick(&mut self.places, kept);
        pick(&mut self.turns, kept);
        for values in [
            &mut self.weights,
            &mut self.importance,
            &mut self.advantages,
            &mut self.behavior,
            &mut self.old,
            &mut self.logprobs,
            &mut self.detached,
            &mut self.reference,
            &mut self.entropies,
        ] {
            pick(values, kept);
        }
    }
}

/// The group of each sample, counted from 0 in the order of their first sample: those with the same prompt, which are
/// the tokens before the first one that was sampled, or that weighs where nothing tells what was sampled.
pub(super) fn groups_of(samples: &[&Sample]) -> Vec<usize> {
    let mut places: HashMap<&[u32], usize> = HashMap::new();
    let mut groups = Vec::with_capacity(samples.len());
    for sample in samples {
        let next = places.len();
        groups.push(*places.entry(crate::batches::prompt(sample)).or_insert(next));
    }
    groups
}
