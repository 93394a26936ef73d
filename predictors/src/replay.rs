//! A bounded memory of transitions.

use std::collections::VecDeque;

use rand::RngExt;
use serde::{Deserialize, Serialize};
use spar_core::Seed;

use crate::state::{StateReader, StateTensor};
use crate::{Segments, StateError};

/// The newest transitions of all fits, at most `capacity` of them, the oldest going first.
///
/// A transition is a segment with what it earned, what was earned from it on, and whether another one follows it. It
/// stands beside the one that follows it, so that what goes first is never missed by what stays.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Replay {
    capacity: usize,
    width: usize,
    /// Row by row.
    features: VecDeque<f32>,
    earned: VecDeque<Earned>,
}

/// What is known of a transition beside its features.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Earned {
    /// Its own reward.
    pub(crate) reward: f32,
    /// The discounted sum of the rewards from it on.
    pub(crate) discounted_return: f32,
    /// Whether the transition behind it is of the same sequence.
    pub(crate) is_followed: bool,
}

/// What a memory keeps beside its tensors.
#[derive(Serialize, Deserialize)]
pub(crate) struct ReplaySummary {
    /// Transitions.
    len: usize,
}

impl Replay {
    /// An empty memory of at most `capacity` transitions with so many features.
    pub(crate) fn new(capacity: usize, width: usize) -> Self {
        Self { capacity, width, features: VecDeque::new(), earned: VecDeque::new() }
    }

    /// Transitions in it.
    pub(crate) fn len(&self) -> usize {
        self.earned.len()
    }

    /// Adds sequences whose segments earned these rewards.
    pub(crate) fn push(&mut self, segments: &Segments, rewards: &[f32], discount: f64) {
        for rows in segments.sequence_rows() {
            let mut returns = vec![0.0; rows.len()];
            let mut behind = 0.0;
            for (place, reward) in rewards[rows.clone()].iter().enumerate().rev() {
                behind = f64::from(*reward) + discount * behind;
                returns[place] = behind as f32;
            }
            // What would be pushed out at once need not come in.
            for row in rows.clone().skip(rows.len().saturating_sub(self.capacity)) {
                if self.earned.len() == self.capacity {
                    self.earned.pop_front();
                    self.features.drain(..self.width);
                }
                self.features.extend(segments.rows_of(row..row + 1));
                self.earned.push_back(Earned {
                    reward: rewards[row],
                    discounted_return: returns[row - rows.start],
                    is_followed: row + 1 < rows.end,
                });
            }
        }
    }

    /// The places of `count` transitions, drawn evenly and independently.
    pub(crate) fn draw(&self, count: usize, seed: Seed) -> Vec<usize> {
        let mut rng = seed.rng();
        (0..count).map(|_| rng.random_range(0..self.len())).collect()
    }

    /// What the transition at a place earned.
    pub(crate) fn earned(&self, place: usize) -> Earned {
        self.earned[place]
    }

    /// Appends the features of the transition at a place, those in `part` of its row.
    pub(crate) fn features(&self, place: usize, part: std::ops::Range<usize>, to: &mut Vec<f32>) {
        let start = place * self.width;
        to.extend(self.features.range(start + part.start..start + part.end));
    }

    /// What it keeps beside its tensors.
    pub(crate) fn summary(&self) -> ReplaySummary {
        ReplaySummary { len: self.len() }
    }

    /// Its tensors, for a state.
    pub(crate) fn tensors(&self) -> Vec<StateTensor> {
        let column = |name: &str, of: fn(&Earned) -> f32| StateTensor {
            name: format!("replay.{name}"),
            shape: vec![self.len()],
            values: self.earned.iter().map(of).collect(),
        };
        vec![
            StateTensor {
                name: "replay.features".to_owned(),
                shape: vec![self.len(), self.width],
                values: self.features.iter().copied().collect(),
            },
            column("rewards", |earned| earned.reward),
            column("returns", |earned| earned.discounted_return),
            column("followed", |earned| f32::from(u8::from(earned.is_followed))),
        ]
    }

    /// One like this with the transitions of a state.
    pub(crate) fn read(
        &self,
        summary: &ReplaySummary,
        state: &StateReader<'_>,
    ) -> Result<Self, StateError> {
        let len = summary.len;
        let contradiction = |problem| Err(StateError::Contradiction { problem });
        if len > self.capacity {
            return contradiction("it remembers more transitions than `capacity` allows");
        }
        let column = |name: &str| state.numbers(&format!("replay.{name}"), &[len]);
        let features = state.numbers("replay.features", &[len, self.width])?;
        let (rewards, returns) = (column("rewards")?, column("returns")?);
        let followed = column("followed")?;
        if followed.iter().any(|flag| *flag != 0.0 && *flag != 1.0) {
            return contradiction("whether transitions are followed is neither 0 nor 1");
        }
        if followed.last() == Some(&1.0) {
            return contradiction("its last transition is followed by none");
        }
        let mut earned = VecDeque::with_capacity(len);
        for ((reward, discounted_return), flag) in rewards.into_iter().zip(returns).zip(followed) {
            earned.push_back(Earned { reward, discounted_return, is_followed: flag == 1.0 });
        }
        Ok(Self { features: features.into(), earned, ..*self })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sequences(lens: &[usize]) -> (Segments, Vec<f32>) {
        let mut segments = Segments::new(2).unwrap();
        let mut next = 0.0;
        for len in lens {
            let rows: Vec<f32> = (0..2 * len).map(|place| next + place as f32).collect();
            next += rows.len() as f32;
            segments.push(&rows).unwrap();
        }
        let rewards = (0..segments.rows()).map(|row| row as f32).collect();
        (segments, rewards)
    }

    #[test]
    fn the_oldest_go_first_and_all_that_follows_is_there() {
        let mut replay = Replay::new(4, 2);
        let (segments, rewards) = sequences(&[3, 0, 2]);
        replay.push(&segments, &rewards, 0.5);
        assert_eq!(replay.len(), 4);
        let mut features = Vec::new();
        (0..4).for_each(|place| replay.features(place, 0..2, &mut features));
        assert_eq!(features, segments.features()[2..]);
        let expected = [(1.0, 2.0, true), (2.0, 2.0, false), (3.0, 5.0, true), (4.0, 4.0, false)];
        for (place, expected) in expected.into_iter().enumerate() {
            let Earned { reward, discounted_return, is_followed } = replay.earned(place);
            assert_eq!((reward, discounted_return, is_followed), expected);
        }
        // A sequence that is longer than all there is room for leaves its end.
        let (segments, rewards) = sequences(&[9]);
        replay.push(&segments, &rewards, 0.0);
        assert_eq!((replay.len(), replay.earned(0).reward), (4, 5.0));
        let mut first = Vec::new();
        replay.features(0, 1..2, &mut first);
        assert_eq!(first, [11.0]);
    }

    #[test]
    fn draws_follow_from_the_seed() {
        let mut replay = Replay::new(100, 2);
        let (segments, rewards) = sequences(&[50, 50]);
        replay.push(&segments, &rewards, 1.0);
        let draw = |seed| replay.draw(400, Seed::from_u64(seed));
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
        let mut places = draw(1);
        places.sort_unstable();
        places.dedup();
        assert!(places.len() > 90 && places.iter().all(|place| *place < 100));
    }
}
