//! Bags of tokens, hashed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::Sample;
use spar_core::registry::NamedOptions;

use super::{FrozenModel, TurnFeatures, TurnRows, turn_places};
use crate::TrainerError;

/// Options of [`HashedTokens`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct HashedTokensOptions {
    /// Numbers in a row, 1 to 65536: tokens that meet in one are not told apart. Default 128.
    pub width: usize,
    /// Tokens before the answer that are counted, at least 1, and none of the answer before. Default 64.
    pub window: usize,
}

impl Default for HashedTokensOptions {
    fn default() -> Self {
        Self { width: 128, window: 64 }
    }
}

impl NamedOptions for HashedTokensOptions {
    fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        if !(1..=1 << 16).contains(&self.width) {
            problems.push(format!("width is {}, must be 1 to 65536", self.width));
        }
        if self.window == 0 {
            problems.push("window is 0, must be at least 1".to_owned());
        }
        problems
    }
}

/// Which tokens the newest observation and the answer have, whatever their order: signed feature hashing (Weinberger et
/// al., arXiv 0902.2206) of both.
///
/// ```text
/// x = sum over tokens k of one part: sign(part, k) / sqrt(tokens of the part) at place hash(part, k)
/// ```
///
/// A turn's start has the observation alone, its end the observation and the answer, the same token counting at another
/// place in each. No model is needed.
#[derive(Debug, Clone)]
pub struct HashedTokens {
    options: HashedTokensOptions,
}

impl HashedTokens {
    /// Features with these options.
    pub fn new(options: HashedTokensOptions) -> Self {
        Self { options }
    }

    /// Adds the tokens of a part.
    fn add(&self, part: u64, tokens: &[u32], row: &mut [f32]) {
        let weight = 1.0 / (tokens.len().max(1) as f32).sqrt();
        for token in tokens {
            let hash = mixed(part << 32 | u64::from(*token));
            let place = (hash >> 1) % row.len() as u64;
            row[place as usize] += if hash & 1 == 0 { weight } else { -weight };
        }
    }
}

/// The finaliser of SplitMix64 (Steele et al. 2014), behind its first step.
fn mixed(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

impl TurnFeatures for HashedTokens {
    fn name(&self) -> &'static str {
        "hashed_tokens"
    }

    fn width(&self, _: usize) -> usize {
        self.options.width
    }

    fn of(
        &self,
        samples: &[&Sample],
        _: Option<&FrozenModel<'_>>,
    ) -> Result<Vec<Vec<TurnRows>>, TrainerError> {
        let of_sample = |sample: &&Sample| {
            let of_turn = |place: super::TurnPlace| {
                let first = place.observed.end.saturating_sub(self.options.window);
                let observed = place.observed.start.max(first)..place.observed.end;
                let mut start = vec![0.0; self.options.width];
                self.add(0, &sample.tokens[observed], &mut start);
                let mut end = start.clone();
                self.add(1, &sample.tokens[place.sampled], &mut end);
                TurnRows { turn: place.turn, start, end }
            };
            turn_places(sample).into_iter().map(of_turn).collect()
        };
        Ok(samples.iter().map(of_sample).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::sample;
    use super::*;

    #[test]
    fn rows_count_the_newest_observation_and_the_answer() {
        let features = HashedTokens::new(HashedTokensOptions { width: 4096, window: 2 });
        let sample = sample(&[
            (9, None),
            (1, None),
            (2, None),
            (3, Some(0)),
            (1, None),
            (1, Some(1)),
            (3, Some(1)),
        ]);
        let rows = features.of(&[&sample], None).unwrap().remove(0);
        assert_eq!(rows.iter().map(|rows| rows.turn).collect::<Vec<_>>(), [0, 1]);
        let sparse = |row: &[f32]| -> Vec<(usize, f32)> {
            row.iter().copied().enumerate().filter(|(_, value)| *value != 0.0).collect()
        };
        let [first, second] = &rows[..] else { panic!() };
        let square = |row: &[f32]| row.iter().map(|value| value * value).sum::<f32>();
        // Of two tokens within the window; the third is beyond it.
        assert_eq!(sparse(&first.start).len(), 2);
        assert!((square(&first.start) - 1.0).abs() < 1e-6);
        assert_eq!(sparse(&first.end).len(), 3);
        assert!((square(&first.end) - 2.0).abs() < 1e-6);
        // Token 1 is one that the first turn saw too, at the same place.
        let [(place, value)] = sparse(&second.start)[..] else { panic!() };
        assert!(first.start[place] != 0.0 && value.abs() == 1.0);
        // In the answer it counts elsewhere, as token 3 does where it did before.
        assert_eq!(sparse(&second.end).len(), 3);
        let of_answer = |rows: &TurnRows| -> Vec<usize> {
            let added = rows.end.iter().zip(&rows.start).enumerate();
            added.filter(|(_, (end, start))| end != start).map(|(place, _)| place).collect()
        };
        assert!(of_answer(second).contains(&of_answer(first)[0]));
        assert_eq!(first.start.len(), features.width(7));
    }
}
