//! Whether who is sure is right as often.

use std::collections::HashMap;
use std::hash::Hash;

use serde::{Deserialize, Serialize};

/// Bins of confidence that the calibration error is taken over.
const BINS: usize = 10;

/// How well stated confidence agrees with success.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct CalibrationScore {
    /// Episodes that stated a confidence.
    pub episodes: usize,
    /// Their mean confidence, 0 to 1.
    pub mean_confidence: f64,
    /// The mean square of confidence less success (Brier 1950); 0 is best.
    pub brier: f64,
    /// The expected calibration error over ten bins of equal width (Guo et al., arXiv 1706.04599, equation 3); 0 is best.
    pub error: f64,
    /// The share of tasks whose answer is right that has the most confidence behind it, over all attempts; absent where no task had one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weighted_vote: Option<f64>,
}

/// How well confidence from 0 to 1 agrees with success, of episodes that stated one; `None` of none.
pub fn calibration(stated: &[(f64, bool)]) -> Option<CalibrationScore> {
    let known = stated.iter().filter(|(confidence, _)| (0.0..=1.0).contains(confidence));
    let mut bins = [(0.0, 0.0, 0.0); BINS];
    let (mut episodes, mut sum, mut squares) = (0_usize, 0.0, 0.0);
    for (confidence, success) in known {
        let success = f64::from(u8::from(*success));
        let bin = &mut bins[((confidence * BINS as f64) as usize).min(BINS - 1)];
        *bin = (bin.0 + 1.0, bin.1 + confidence, bin.2 + success);
        episodes += 1;
        sum += confidence;
        squares += (confidence - success).powi(2);
    }
    let count = episodes as f64;
    let apart: f64 = bins.iter().map(|(_, confidence, success)| (confidence - success).abs()).sum();
    (episodes > 0).then(|| CalibrationScore {
        episodes,
        mean_confidence: sum / count,
        brier: squares / count,
        error: apart / count,
        weighted_vote: None,
    })
}

/// What the answer with the most confidence behind it is worth: the value of the first that gave it; of equal sums the one that came first counts. An answer without a confidence has none behind it. `None` of no answer.
pub fn weighted_vote<A: Eq + Hash>(answers: &[(A, Option<f64>)], values: &[f64]) -> Option<f64> {
    let mut sums: HashMap<&A, (f64, usize)> = HashMap::new();
    for (place, (answer, confidence)) in answers.iter().enumerate() {
        sums.entry(answer).or_insert((0.0, place)).0 += confidence.unwrap_or(0.0);
    }
    let best = sums.into_values().max_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1)));
    values.get(best?.1).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_right_as_often_as_he_says_has_no_error() {
        let perfect: Vec<(f64, bool)> = (0..10).map(|it| (0.7, it < 7)).collect();
        let found = calibration(&perfect).unwrap();
        assert!(found.error < 1e-12 && (found.brier - 0.21).abs() < 1e-12);
        assert_eq!(found.episodes, 10);
        let bold: Vec<(f64, bool)> = (0..10).map(|it| (1.0, it < 5)).collect();
        let found = calibration(&bold).unwrap();
        assert!((found.error - 0.5).abs() < 1e-12 && (found.brier - 0.5).abs() < 1e-12);
        assert_eq!(calibration(&[(f64::NAN, true), (2.0, true)]), None);
    }

    #[test]
    fn votes_count_by_their_confidence() {
        let answers = [("a", Some(0.2)), ("b", Some(0.9)), ("a", Some(0.3)), ("c", None)];
        assert_eq!(weighted_vote(&answers, &[0.0, 1.0, 0.0, 0.0]), Some(1.0));
        assert_eq!(weighted_vote(&[("a", None), ("b", None)], &[1.0, 0.0]), Some(1.0));
        assert_eq!(weighted_vote::<&str>(&[], &[]), None);
    }
}
