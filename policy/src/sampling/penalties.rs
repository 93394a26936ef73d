//! Logits shifted by what was there before.

use std::collections::{HashMap, HashSet};

use super::SamplingOptions;

/// Which tokens the prompt has, and how often the answer has which.
#[derive(Debug, Clone, Default)]
pub struct TokenCounts {
    prompt: HashSet<u32>,
    answer: HashMap<u32, u32>,
}

impl TokenCounts {
    /// Nothing answered yet.
    pub fn new(prompt: &[u32]) -> Self {
        Self { prompt: prompt.iter().copied().collect(), answer: HashMap::new() }
    }

    /// Counts a token of the answer.
    pub fn push(&mut self, token: u32) {
        *self.answer.entry(token).or_default() += 1;
    }
}

/// Adds the logit bias; `logits` are those of `ids`, or of the whole vocabulary if it is empty.
pub fn apply_bias(options: &SamplingOptions, ids: &[u32], logits: &mut [f32]) {
    for (token, bias) in options.logit_bias.iter() {
        if let Some(place) = place(ids, *token) {
            logits[place] += bias;
        }
    }
}

/// Applies repetition, frequency and presence penalty, in this order.
///
/// `logits` are those of `ids`, or of the whole vocabulary if it is empty.
pub fn apply_penalties(
    options: &SamplingOptions,
    counts: &TokenCounts,
    ids: &[u32],
    logits: &mut [f32],
) {
    let penalty = options.repetition_penalty;
    if penalty != 1.0 {
        let in_answer = counts.answer.keys().filter(|token| !counts.prompt.contains(token));
        for token in counts.prompt.iter().chain(in_answer) {
            let Some(place) = place(ids, *token) else { continue };
            let logit = &mut logits[place];
            *logit = if *logit > 0.0 { *logit / penalty } else { *logit * penalty };
        }
    }
    let (frequency, presence) = (options.frequency_penalty, options.presence_penalty);
    if frequency != 0.0 || presence != 0.0 {
        for (token, count) in &counts.answer {
            let Some(place) = place(ids, *token) else { continue };
            logits[place] -= frequency * *count as f32;
            logits[place] -= presence;
        }
    }
}

/// Where a token's logit stands.
fn place(ids: &[u32], token: u32) -> Option<usize> {
    if ids.is_empty() { Some(token as usize) } else { ids.binary_search(&token).ok() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn penalties_know_prompt_from_answer() {
        let options = SamplingOptions {
            repetition_penalty: 2.0,
            presence_penalty: 0.5,
            frequency_penalty: 0.25,
            ..SamplingOptions::default()
        };
        let mut counts = TokenCounts::new(&[0, 0]);
        counts.push(1);
        counts.push(1);
        let mut logits = [2.0, -1.0, 3.0];
        apply_penalties(&options, &counts, &[], &mut logits);
        assert_eq!(logits, [1.0, -2.0 - 0.5 - 0.5, 3.0]);
        // The same where only some tokens have logits.
        let mut logits = [-1.0, 3.0];
        apply_penalties(&options, &counts, &[1, 2], &mut logits);
        assert_eq!(logits, [-3.0, 3.0]);
    }
}
