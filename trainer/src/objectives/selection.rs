//! Which tokens of an update are trained, beside any loss of a policy.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::PolicyTokens;

/// Options of which tokens of an update are trained.
///
/// The share of its tokens with the highest scores is trained; all others weigh nothing and count in what the loss is
/// divided by. Sources: `entropy`, "Beyond the 80/20 rule", arXiv 2506.01939 (there a share of 0.2; TRL's
/// `top_entropy_quantile`); `advantage_entropy`, the token level of D^3S, reconstructed from its abstract: the paper says
/// that tokens are kept by advantage and entropy, and the product is assumed. Entropies are those before the first update
/// of the iteration. Ties are broken by the order of tokens.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SelectionOptions {
    /// The share that is trained; above 0 up to 1. Default 0.2.
    pub share: f64,
    /// What a token's score is. Default `entropy`.
    pub by: TokenScore,
}

/// What a token is chosen by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TokenScore {
    /// `H_t`.
    #[default]
    Entropy,
    /// `|A_t| H_t`.
    AdvantageEntropy,
    /// `|A_t|`.
    Advantage,
}

impl Default for SelectionOptions {
    fn default() -> Self {
        Self { share: 0.2, by: TokenScore::default() }
    }
}

impl SelectionOptions {
    /// All that is wrong with the values; empty when nothing is.
    pub fn problems(&self) -> Vec<String> {
        let is_share = self.share > 0.0 && self.share <= 1.0;
        let tell = || format!("`selection.share` {} is outside 0 to 1, or 0", self.share);
        (!is_share).then(tell).into_iter().collect()
    }

    pub(super) fn needs_entropies(&self) -> bool {
        self.by != TokenScore::Advantage
    }

    /// Which tokens of each sample are trained.
    pub(super) fn select(&self, rows: &[PolicyTokens]) -> Vec<Vec<bool>> {
        let score = |row: &PolicyTokens, t: usize| {
            let advantage = || row.advantages[t].abs();
            match self.by {
                TokenScore::Entropy => row.entropies[t],
                TokenScore::AdvantageEntropy => advantage() * row.entropies[t],
                TokenScore::Advantage => advantage(),
            }
        };
        let mut scores: Vec<(f64, usize, usize)> = Vec::new();
        for (index, row) in rows.iter().enumerate() {
            scores.extend((0..row.len()).map(|t| (score(row, t), index, t)));
        }
        // What cannot be compared comes first, so that it is seen in the loss.
        scores.sort_by(|a, b| b.0.total_cmp(&a.0).then((a.1, a.2).cmp(&(b.1, b.2))));
        let count = (self.share * scores.len() as f64).ceil() as usize;
        let mut chosen: Vec<Vec<bool>> = rows.iter().map(|row| vec![false; row.len()]).collect();
        scores.iter().take(count).for_each(|(_, index, t)| chosen[*index][*t] = true);
        chosen
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_with_the_highest_scores_is_chosen() {
        let row = |advantages: &[f64], entropies: &[f64]| PolicyTokens {
            places: (0..advantages.len()).collect(),
            advantages: advantages.to_vec(),
            entropies: entropies.to_vec(),
            ..PolicyTokens::default()
        };
        let rows = [row(&[1.0, -3.0], &[0.5, 0.1]), row(&[0.0, 2.0, -1.0], &[2.0, 0.4, 0.5])];
        let chosen = |share, by| SelectionOptions { share, by }.select(&rows);
        let (yes, no) = (true, false);
        assert_eq!(chosen(0.2, TokenScore::Entropy), [vec![no, no], vec![yes, no, no]]);
        // A tie goes to the first.
        assert_eq!(chosen(0.4, TokenScore::Entropy), [vec![yes, no], vec![yes, no, no]]);
        assert_eq!(chosen(0.4, TokenScore::AdvantageEntropy), [vec![yes, no], vec![no, yes, no]]);
        assert_eq!(chosen(0.4, TokenScore::Advantage), [vec![no, yes], vec![no, yes, no]]);
        assert_eq!(chosen(1.0, TokenScore::Advantage), [vec![yes; 2], vec![yes; 3]]);
        for share in [0.0, -1.0, 1.5, f64::NAN] {
            assert_eq!(SelectionOptions { share, ..Default::default() }.problems().len(), 1);
        }
    }
}
