//! DOTS: tasks whose predicted success rate is near a target are played.

/// Probabilities with which tasks are drawn, by their predicted success rates: `softmax(-|p - target| / temperature)` (DOTS, arXiv 2506.05316, and its
/// code `ray_trainer_teacher_replay.py`, which draws without replacement). `temperature` is above 0. A rate that is no number is never drawn,
/// and where none is a number all are 0.
pub fn difficulty_weights(predicted: &[f64], target: f64, temperature: f64) -> Vec<f64> {
    let scores: Vec<f64> =
        predicted.iter().map(|rate| -(rate - target).abs() / temperature).collect();
    let most = scores.iter().copied().filter(|it| !it.is_nan()).fold(f64::NEG_INFINITY, f64::max);
    let exp = |score: &f64| if score.is_nan() { 0.0 } else { (score - most).exp() };
    let weights: Vec<f64> = scores.iter().map(exp).collect();
    let sum: f64 = weights.iter().sum();
    weights.into_iter().map(|weight| if sum > 0.0 { weight / sum } else { 0.0 }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_vectors::{cases, floats, number};

    #[test]
    fn probabilities_equal_the_reference() {
        cases("dots_sampling_prob", |case, near| {
            let found = difficulty_weights(
                &floats(&case.inputs["predicted_pass_rate"]),
                number(&case.params, "alpha"),
                number(&case.params, "tau"),
            );
            for (found, expected) in found.into_iter().zip(floats(&case.outputs["sampling_prob"])) {
                near(found, expected);
            }
        });
        assert_eq!(difficulty_weights(&[f64::NAN, 0.5], 0.5, 0.1), [0.0, 1.0]);
        assert_eq!(difficulty_weights(&[f64::NAN], 0.5, 0.1), [0.0]);
    }
}
