//! Final hidden states of a frozen model.

use spar_core::Sample;

use super::{FrozenModel, TurnFeatures, TurnPlace, TurnRows, turn_places};
use crate::TrainerError;
use crate::signal_stages::in_batches;

/// The final hidden states of a frozen model, behind the last token before an answer and behind the last one of it: what the
/// model's heads see there.
///
/// A state tells of all tokens up to its own. Where nothing stands before an answer, its start is 0.
#[derive(Debug, Clone, Copy)]
pub struct HiddenStateFeatures;

impl TurnFeatures for HiddenStateFeatures {
    fn name(&self) -> &'static str {
        "hidden_states"
    }

    fn needs_model(&self) -> bool {
        true
    }

    fn width(&self, hidden_size: usize) -> usize {
        hidden_size
    }

    fn of(
        &self,
        samples: &[&Sample],
        model: Option<&FrozenModel<'_>>,
    ) -> Result<Vec<Vec<TurnRows>>, TrainerError> {
        let told = |problem: &str| TrainerError::Model { source: problem.into() };
        let frozen = model.ok_or_else(|| told("features `hidden_states` need a model to read"))?;
        let turns: Vec<Vec<TurnPlace>> = samples.iter().map(|sample| turn_places(sample)).collect();
        let places: Vec<Vec<usize>> = turns.iter().map(|turns| places_of(turns)).collect();
        let states = in_batches(samples, frozen.micro_batch_tokens, |batch, indices| {
            let places: Vec<&[usize]> = indices.iter().map(|index| &places[*index][..]).collect();
            frozen.model.states(batch, &places)
        })?;
        let width = frozen.hidden_size;
        let mut rows = Vec::with_capacity(samples.len());
        for ((turns, places), states) in turns.into_iter().zip(&places).zip(states) {
            if states.len() != places.len() * width {
                return Err(told("it gives states of another width than it has"));
            }
            let mut states = states.chunks_exact(width).map(<[f32]>::to_vec);
            let mut next = || states.next().expect("there is a state for every place");
            let of_turn = |turn: TurnPlace| {
                let start = if turn.sampled.start == 0 { vec![0.0; width] } else { next() };
                TurnRows { turn: turn.turn, start, end: next() }
            };
            rows.push(turns.into_iter().map(of_turn).collect());
        }
        Ok(rows)
    }
}

/// The places of the tokens behind which the states of turns stand.
fn places_of(turns: &[TurnPlace]) -> Vec<usize> {
    turns
        .iter()
        .flat_map(|turn| {
            let start = turn.sampled.start.checked_sub(1);
            start.into_iter().chain([turn.sampled.end - 1])
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::sample;
    use super::*;
    use crate::SampleGradient;
    use crate::testing::Bigram;

    #[test]
    fn rows_are_the_states_around_the_answers_whatever_is_read_at_a_time() {
        // The states of this model tell the token that was read last.
        let model = Bigram.prepare(&Bigram::new(5));
        let samples = [
            sample(&[(1, None), (2, Some(0)), (3, Some(0)), (4, None), (0, Some(1))]),
            sample(&[(3, Some(7)), (1, None)]),
            sample(&[(1, None), (2, None)]),
        ];
        let samples: Vec<&Sample> = samples.iter().collect();
        let one_hot = |token: Option<usize>| -> Vec<f32> {
            (0..5).map(|place| f32::from(u8::from(Some(place) == token))).collect()
        };
        let rows =
            |turn, start, end| TurnRows { turn, start: one_hot(start), end: one_hot(Some(end)) };
        for micro_batch_tokens in [1, 6, 1000] {
            let frozen = FrozenModel { model: model.as_ref(), hidden_size: 5, micro_batch_tokens };
            let found = HiddenStateFeatures.of(&samples, Some(&frozen)).unwrap();
            assert_eq!(found[0], [rows(0, Some(1), 3), rows(1, Some(4), 0)]);
            assert_eq!(found[1], [rows(7, None, 3)], "nothing stands before it");
            assert!(found[2].is_empty());
        }
        let error = HiddenStateFeatures.of(&samples, None).unwrap_err();
        assert!(matches!(error, TrainerError::Model { .. }));
        let wrong = FrozenModel { model: model.as_ref(), hidden_size: 4, micro_batch_tokens: 9 };
        assert!(HiddenStateFeatures.of(&samples, Some(&wrong)).is_err());
    }
}
