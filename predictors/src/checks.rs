//! Checks that predictors have in common.

use crate::{PredictorError, Segments};

/// Refuses segments of other features than a predictor reads.
pub(crate) fn check_segments(segments: &Segments, width: usize) -> Result<(), PredictorError> {
    match segments.width() == width {
        true => Ok(()),
        false => Err(PredictorError::Width { found: segments.width(), expected: width }),
    }
}

/// Refuses rewards that are not one for every segment, each finite.
pub(crate) fn check_rewards(segments: &Segments, rewards: &[f32]) -> Result<(), PredictorError> {
    let (found, expected) = (rewards.len(), segments.rows());
    if found != expected {
        return Err(PredictorError::Rewards { found, expected });
    }
    match rewards.iter().position(|reward| !reward.is_finite()) {
        Some(segment) => Err(PredictorError::Reward { segment }),
        None => Ok(()),
    }
}

/// Refuses what a predictor says of segments where a number is not finite.
pub(crate) fn check_predicted(name: &'static str, column: &[f32]) -> Result<(), PredictorError> {
    match column.iter().position(|value| !value.is_finite()) {
        Some(segment) => Err(PredictorError::Prediction { name, segment }),
        None => Ok(()),
    }
}

/// What is wrong with counts that have to be at least 1, and with the optimiser's numbers.
pub(crate) fn positive_problems(
    counts: &[(&str, usize)],
    learning_rate: f64,
    weight_decay: f64,
) -> Vec<String> {
    let zero = counts.iter().filter(|(_, count)| *count == 0);
    let mut problems: Vec<String> =
        zero.map(|(name, _)| format!("{name} is 0, must be at least 1")).collect();
    if !(learning_rate > 0.0 && learning_rate.is_finite()) {
        problems.push(format!("learning_rate is {learning_rate}, must be above 0"));
    }
    if !(weight_decay >= 0.0 && weight_decay.is_finite()) {
        problems.push(format!("weight_decay is {weight_decay}, must be 0 or more"));
    }
    problems
}

/// Largest number of hidden layers, and of numbers in one: what is beyond is a slip of the pen.
const MAX_LAYERS: usize = 16;
const MAX_WIDTH: usize = 1 << 16;

/// What is wrong with the hidden layers of a network.
pub(crate) fn width_problem(layers: usize, width: Option<usize>) -> Option<String> {
    match width {
        _ if layers > MAX_LAYERS => {
            Some(format!("layers is {layers}, must be at most {MAX_LAYERS}"))
        }
        Some(0) => Some("width is 0, must be at least 1".to_owned()),
        Some(width) if width > MAX_WIDTH => {
            Some(format!("width is {width}, must be at most {MAX_WIDTH}"))
        }
        Some(_) if layers == 0 => Some("width has no effect: there are 0 layers".to_owned()),
        _ => None,
    }
}
