//! Cuts trajectories into samples, before anything has a weight.

use spar_core::{GrammarSpan, Sample, Trajectory};

use crate::SamplesError;

/// What a token of a trajectory is, where it comes for the first time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Segment {
    /// Part of the prompt of a turn.
    Prompt {
        /// The turn.
        turn: usize,
    },
    /// Part of what was sampled in a turn.
    Sampled {
        /// The turn.
        turn: usize,
        /// Whether it was the only token allowed.
        is_forced: bool,
    },
}

/// The samples of a trajectory, without weights and advantages.
///
/// Turns join one sample while the next prompt begins with exactly the tokens so far; otherwise a new
/// sample begins under the same episode, which repeats what it keeps as observed. So every sampled token
/// stands in one sample as sampled, with its turn in the stream `turns`, and in the order of the trajectory;
/// all other tokens are [`Sample::OBSERVED`].
///
/// # Errors
///
/// [`SamplesError::Trajectory`] when the trajectory contradicts itself.
pub fn cut_samples(trajectory: &Trajectory) -> Result<Vec<Sample>, SamplesError> {
    cut(trajectory, |_| 0.0)
}

/// The same with a cross-entropy weight for every token. What a sample repeats of the one before weighs
/// nothing, nor does the first token of a sample: nothing stands before it that could predict it.
pub(super) fn cut(
    trajectory: &Trajectory,
    cross_entropy_weight: impl Fn(Segment) -> f32,
) -> Result<Vec<Sample>, SamplesError> {
    trajectory.validate()?;
    let new_sample = || Sample { episode: trajectory.episode, ..Sample::default() };
    let mut samples = Vec::new();
    let mut sample = new_sample();
    for (index, turn) in trajectory.turns.iter().enumerate() {
        if turn.prompt.kept < sample.len() {
            let mut next = new_sample();
            for token in &sample.tokens[..turn.prompt.kept] {
                next.push_observed(*token, 0.0);
                next.turns.push(Sample::OBSERVED);
            }
            samples.push(std::mem::replace(&mut sample, next));
        }
        let weigh = |sample: &Sample, segment: Segment| match sample.is_empty() {
            true => 0.0,
            false => cross_entropy_weight(segment),
        };
        for &token in &turn.prompt.appended {
            let weight = weigh(&sample, Segment::Prompt { turn: index });
            sample.push_observed(token, weight);
            sample.turns.push(Sample::OBSERVED);
        }
        let sampled = &turn.sampled;
        if let Some(hash) = &sampled.grammar
            && !sampled.ids.is_empty()
        {
            let places = sample.len()..sample.len() + sampled.ids.len();
            let grammar = trajectory.grammars[hash].clone();
            sample.grammars.push(GrammarSpan { places, grammar });
        }
        for (t, &token) in sampled.ids.iter().enumerate() {
            let allowed = sampled.allowed.get(t).map_or(&[][..], Vec::as_slice);
            let is_forced = allowed.len() == 1;
            let weight = weigh(&sample, Segment::Sampled { turn: index, is_forced });
            let (logprob, version) = (sampled.logprobs[t], sampled.versions[t]);
            sample.push(token, 0.0, 0.0, weight, logprob, version, allowed);
            sample.turns.push(index as u32);
        }
    }
    samples.push(sample);
    samples.retain(|sample| !sample.is_empty());
    Ok(samples)
}

/// Whether something in a sample carries weight.
pub(super) fn carries_weight(sample: &Sample) -> bool {
    let weighs = |weights: &[f32]| weights.iter().any(|weight| *weight != 0.0);
    weighs(&sample.policy_weights) || weighs(&sample.cross_entropy_weights)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use spar_core::GrammarSource;

    use super::super::test_trajectories::{sampled, trajectory, turn};
    use super::*;

    #[test]
    fn every_sampled_token_knows_its_turn_and_stands_once() {
        let samples = cut_samples(&trajectory(vec![
            turn(0, &[1, 2], sampled(&[10, 11], &[])),
            turn(4, &[3], sampled(&[13], &[])),
            turn(3, &[4], sampled(&[14, 15], &[])),
        ]))
        .unwrap();
        const NONE: u32 = Sample::OBSERVED;
        assert_eq!(samples.len(), 2);
        assert_eq!(samples[0].turns, [NONE, NONE, 0, 0, NONE, 1]);
        assert_eq!(samples[1].tokens, [1, 2, 10, 4, 14, 15]);
        assert_eq!(samples[1].turns, [NONE, NONE, NONE, NONE, 2, 2], "10 is repeated");
        assert!(samples.iter().all(|sample| sample.validate().is_ok() && !carries_weight(sample)));
        assert_eq!(samples[0].behavior_logprobs[2], -0.5);
    }

    #[test]
    fn answers_that_were_held_to_a_grammar_are_told() {
        let grammar = Arc::new(GrammarSource::regex("go|stay"));
        let mut turns = vec![
            turn(0, &[1, 2], sampled(&[10, 11], &[&[], &[11]])),
            turn(4, &[3], sampled(&[13], &[])),
            turn(3, &[4], sampled(&[14, 15], &[])),
        ];
        turns[0].sampled.grammar = Some(grammar.hash());
        turns[2].sampled.grammar = Some(grammar.hash());
        let mut trajectory = trajectory(turns);
        assert!(cut_samples(&trajectory).is_err(), "the grammar is not there");
        trajectory.grammars.insert(grammar.hash(), grammar.clone());
        let samples = cut_samples(&trajectory).unwrap();
        let spans = |sample: &Sample| {
            sample.grammars.iter().map(|s| (s.places.start, s.places.end)).collect::<Vec<_>>()
        };
        assert_eq!(spans(&samples[0]), [(2, 4)]);
        assert_eq!(spans(&samples[1]), [(4, 6)], "what is repeated is no answer");
        assert!(samples.iter().flat_map(|sample| &sample.grammars).all(|s| s.grammar == grammar));
    }

    #[test]
    fn text_leaves_no_sample() {
        let text = trajectory(vec![turn(0, &[], sampled(&[], &[]))]);
        assert!(cut_samples(&text).unwrap().is_empty());
    }
}
