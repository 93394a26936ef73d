//! The one data form between credit and objectives.

use std::ops::Range;
use std::sync::Arc;

use crate::{GrammarSource, PolicyVersion, Preference};

/// The tokens that could be drawn in each place of a sample.
///
/// A compressed list of lists: place `t` may draw `ids[offsets[t]..offsets[t + 1]]`, ascending; an
/// empty range means the whole vocabulary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllowedTokens {
    offsets: Vec<u32>,
    ids: Vec<u32>,
}

impl Default for AllowedTokens {
    fn default() -> Self {
        Self { offsets: vec![0], ids: Vec::new() }
    }
}

impl AllowedTokens {
    /// Appends the list of the next place.
    pub fn push(&mut self, allowed: &[u32]) {
        self.ids.extend_from_slice(allowed);
        self.offsets.push(self.ids.len() as u32);
    }

    /// The list of place `t`; empty means the whole vocabulary.
    pub fn get(&self, t: usize) -> &[u32] {
        &self.ids[self.offsets[t] as usize..self.offsets[t + 1] as usize]
    }

    /// Places that have a list.
    pub fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Whether there is no place.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Tokens of a sample that were held to a grammar: an answer, from its first token on.
#[derive(Debug, Clone, PartialEq)]
pub struct GrammarSpan {
    /// Their places in the sample.
    pub places: Range<usize>,
    /// The grammar.
    pub grammar: Arc<GrammarSource>,
}

/// Why a sample is trained.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SampleOrigin {
    /// The policy has sampled it, and learns from what came of it; or it is imitated.
    #[default]
    Policy,
    /// Somebody else has written it, nobody knows how probably, and the policy learns from what came of it as from its own.
    Outside,
    /// The policy has sampled it before it was trained, and is kept from forgetting it.
    Rehearsed,
}

/// A training sample: a token sequence with per-token streams, one entry per token in each.
///
/// Entry `t` of a stream speaks of drawing `tokens[t]` behind `tokens[..t]`, so entry 0 never
/// carries weight. Credit fills the streams, objectives read them, and neither knows the other.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Sample {
    /// The episode the sample was cut from.
    pub episode: u64,
    /// Why it is trained.
    pub origin: SampleOrigin,
    /// Which answer of which pair it is; `None` where nobody compared it with another.
    pub preference: Option<Preference>,
    /// Token ids.
    pub tokens: Vec<u32>,
    /// Weight of the token in the policy-gradient term; 0 for tokens that were not sampled.
    pub policy_weights: Vec<f32>,
    /// Advantage of the step that the token belongs to.
    pub advantages: Vec<f32>,
    /// Weight of the token in the cross-entropy term.
    pub cross_entropy_weights: Vec<f32>,
    /// Log-probability with which the token was drawn; 0 where it was not sampled.
    pub behavior_logprobs: Vec<f32>,
    /// The turn of its trajectory in which the token was sampled, from 0; [`Sample::OBSERVED`] for tokens that
    /// were not. Empty where nobody asks for it.
    pub turns: Vec<u32>,
    /// Log-probability of the token under a reference model, of the same draw; empty unless an objective
    /// asks for it, as are the streams below.
    pub reference_logprobs: Vec<f32>,
    /// The same under the weights before the first update of the iteration, where these differ from those that
    /// sampled.
    pub old_logprobs: Vec<f32>,
    /// Entropy of what the token was drawn from, in nats, before the first update of the iteration.
    pub entropies: Vec<f32>,
    /// Sum of the squared probabilities of that.
    pub sum_squares: Vec<f32>,
    /// What a value head expected behind `tokens[..t]`, before the first update of the iteration.
    pub values: Vec<f32>,
    /// What the value head is to learn to expect there.
    pub returns: Vec<f32>,
    /// The weights that drew the token.
    pub versions: Vec<PolicyVersion>,
    /// The tokens that could be drawn; where the list is empty within one of `grammars`, those that it allows.
    pub allowed: AllowedTokens,
    /// Answers that were held to a grammar, ascending.
    pub grammars: Vec<GrammarSpan>,
}

/// A sample's streams contradict each other.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("use a sample of {tokens} tokens: stream `{stream}` has {found} entries")]
pub struct SampleError {
    /// Tokens in the sample.
    pub tokens: usize,
    /// The stream.
    pub stream: &'static str,
    /// Its entries.
    pub found: usize,
}

impl Sample {
    /// The turn of tokens that were not sampled.
    pub const OBSERVED: u32 = u32::MAX;

    /// Tokens in the sample.
    pub fn len(&self) -> usize {
        self.tokens.len()
    }

    /// Tokens that carry weight in the policy-gradient term.
    pub fn num_weighed(&self) -> usize {
        self.policy_weights.iter().filter(|weight| **weight != 0.0).count()
    }

    /// Whether one of these has an advantage.
    pub fn has_advantage(&self) -> bool {
        let mut tokens = self.policy_weights.iter().zip(&self.advantages);
        tokens.any(|(weight, advantage)| *weight != 0.0 && *advantage != 0.0)
    }

    /// Whether the sample has no token.
    pub fn is_empty(&self) -> bool {
        self.tokens.is_empty()
    }

    /// Appends a token that was observed, with its weight in the cross-entropy term.
    pub fn push_observed(&mut self, token: u32, cross_entropy_weight: f32) {
        self.push(token, 0.0, 0.0, cross_entropy_weight, 0.0, PolicyVersion(0), &[]);
    }

    /// Appends a token with an entry for every stream.
    #[expect(clippy::too_many_arguments, reason = "one argument per stream")]
    pub fn push(
        &mut self,
        token: u32,
        policy_weight: f32,
        advantage: f32,
        cross_entropy_weight: f32,
        behavior_logprob: f32,
        version: PolicyVersion,
        allowed: &[u32],
    ) {
        self.tokens.push(token);
        self.policy_weights.push(policy_weight);
        self.advantages.push(advantage);
        self.cross_entropy_weights.push(cross_entropy_weight);
        self.behavior_logprobs.push(behavior_logprob);
        self.versions.push(version);
        self.allowed.push(allowed);
    }

    /// Checks that every stream has one entry per token; those that are only there where they are asked
    /// for may be empty.
    ///
    /// # Errors
    ///
    /// [`SampleError`] names the first stream that has not.
    pub fn validate(&self) -> Result<(), SampleError> {
        let streams = [
            ("policy_weights", self.policy_weights.len()),
            ("advantages", self.advantages.len()),
            ("cross_entropy_weights", self.cross_entropy_weights.len()),
            ("behavior_logprobs", self.behavior_logprobs.len()),
            ("versions", self.versions.len()),
            ("allowed", self.allowed.len()),
        ];
        for (stream, found) in streams {
            if found != self.len() {
                return Err(SampleError { tokens: self.len(), stream, found });
            }
        }
        let asked_for = [
            ("turns", self.turns.len()),
            ("reference_logprobs", self.reference_logprobs.len()),
            ("old_logprobs", self.old_logprobs.len()),
            ("entropies", self.entropies.len()),
            ("sum_squares", self.sum_squares.len()),
            ("values", self.values.len()),
            ("returns", self.returns.len()),
        ];
        for (stream, found) in asked_for {
            if found != 0 && found != self.len() {
                return Err(SampleError { tokens: self.len(), stream, found });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_has_its_list_of_allowed_tokens() {
        let mut allowed = AllowedTokens::default();
        assert!(allowed.is_empty());
        let lists: [&[u32]; 4] = [&[], &[3, 5], &[9], &[]];
        lists.iter().for_each(|list| allowed.push(list));
        assert_eq!(allowed.len(), 4);
        for (t, list) in lists.iter().enumerate() {
            assert_eq!(allowed.get(t), *list);
        }
    }

    #[test]
    fn pushing_keeps_the_streams_of_one_length() {
        let mut sample = Sample::default();
        assert!(sample.is_empty());
        assert_eq!(sample.validate(), Ok(()));
        sample.push_observed(7, 0.1);
        sample.push(8, 1.0, -0.5, 0.0, -0.25, PolicyVersion(3), &[4, 8]);
        assert_eq!((sample.len(), sample.validate()), (2, Ok(())));
        assert_eq!(sample.policy_weights, [0.0, 1.0], "what was observed is not rewarded");
        assert_eq!((sample.allowed.get(0), sample.allowed.get(1)), (&[][..], &[4, 8][..]));
    }

    #[test]
    fn a_stream_of_another_length_is_named() {
        let sample = || {
            let mut sample = Sample::default();
            sample.push_observed(7, 0.1);
            sample
        };
        type Break = fn(&mut Sample);
        let breaks: [(&str, Break); 13] = [
            ("policy_weights", |sample| sample.policy_weights.clear()),
            ("advantages", |sample| sample.advantages.push(0.0)),
            ("cross_entropy_weights", |sample| sample.cross_entropy_weights.clear()),
            ("behavior_logprobs", |sample| sample.behavior_logprobs.clear()),
            ("reference_logprobs", |sample| sample.reference_logprobs.extend([0.0, 0.0])),
            ("turns", |sample| sample.turns.extend([0, 0])),
            ("old_logprobs", |sample| sample.old_logprobs.extend([0.0, 0.0])),
            ("entropies", |sample| sample.entropies.extend([0.0, 0.0])),
            ("sum_squares", |sample| sample.sum_squares.extend([0.0, 0.0])),
            ("values", |sample| sample.values.extend([0.0, 0.0])),
            ("returns", |sample| sample.returns.extend([0.0, 0.0])),
            ("versions", |sample| sample.versions.clear()),
            ("allowed", |sample| sample.allowed.push(&[])),
        ];
        for (stream, change) in breaks {
            let mut sample = sample();
            change(&mut sample);
            assert_eq!(sample.validate().unwrap_err().stream, stream);
        }
        let error = SampleError { tokens: 2, stream: "advantages", found: 1 };
        assert_eq!(
            error.to_string(),
            "use a sample of 2 tokens: stream `advantages` has 1 entries"
        );
    }
}
