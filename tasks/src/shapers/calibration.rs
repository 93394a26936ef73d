//! Who is sure has to be right.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::registry::{NamedOptions, RowError};
use spar_core::{RewardPart, Trajectory};

use super::RewardShaper;
use super::registry::AXIS;
use super::shaped::add_at_end;
use crate::ShaperError;

/// Options of [`Calibration`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CalibrationOptions {
    /// Between which tags the confidence stands in the last turn: `<mark>0.8</mark>`, from 0 to 1, or `80%`. Default `confidence`.
    pub mark: String,
    /// What the square of the difference counts; above 0. Default 1.
    pub weight: f64,
}

impl Default for CalibrationOptions {
    fn default() -> Self {
        Self { mark: "confidence".to_owned(), weight: 1.0 }
    }
}

impl NamedOptions for CalibrationOptions {
    fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        let is_word =
            !self.mark.is_empty() && self.mark.chars().all(|c| c.is_alphanumeric() || c == '_');
        if !is_word {
            problems.push(format!("mark is {:?}, must be a word", self.mark));
        }
        if !(self.weight.is_finite() && self.weight > 0.0) {
            problems.push(format!("weight is {}, must be above 0", self.weight));
        }
        problems
    }
}

/// The calibration reward of RLCR (arXiv 2507.16806, equation 2): `-weight (q - 1[success])^2`, `q` being the confidence that the last turn states, is added to it as
/// part `calibration`.
///
/// With success worth 1 the expected reward is greatest where `q` is the probability of success, and grows with that. Where no confidence can be read, the difference counts as 1, so that nothing
/// is gained by keeping silent.
#[derive(Debug, Clone)]
pub struct Calibration {
    options: CalibrationOptions,
}

impl Calibration {
    /// The shaper with these options.
    ///
    /// # Errors
    ///
    /// [`ShaperError::Row`] when one is outside its range.
    pub fn new(options: &CalibrationOptions) -> Result<Self, ShaperError> {
        RowError::refuse(AXIS.what, "calibration", options.problems())?;
        Ok(Self { options: options.clone() })
    }
}

/// The confidence, 0 to 1, that the last turn of an episode states between tags of this name; the last one where it states several. Absent where there is none, or none from 0 to 1.
pub fn stated_confidence(trajectory: &Trajectory, mark: &str) -> Option<f64> {
    let text = &trajectory.last_acting()?.text;
    let (_, inside) = text.rsplit_once(&format!("<{mark}>"))?;
    let (inside, _) = inside.split_once(&format!("</{mark}>"))?;
    let inside = inside.trim();
    let stated = match inside.strip_suffix('%') {
        Some(percent) => percent.trim().parse::<f64>().ok()? / 100.0,
        None => inside.parse().ok()?,
    };
    (0.0..=1.0).contains(&stated).then_some(stated)
}

impl RewardShaper for Calibration {
    fn name(&self) -> &'static str {
        "calibration"
    }

    fn shape(&self, trajectory: &Trajectory, rewards: &mut [Vec<RewardPart>]) {
        let CalibrationOptions { mark, weight } = &self.options;
        let right = f64::from(u8::from(trajectory.success));
        let off = stated_confidence(trajectory, mark).map_or(1.0, |stated| stated - right);
        add_at_end(trajectory, rewards, "calibration", -weight * off * off);
    }
}

#[cfg(test)]
mod tests {
    use super::super::RewardShapers;
    use super::super::tests::episode;
    use super::*;

    fn said(text: &str, success: bool) -> Trajectory {
        let mut trajectory = episode(&[&[]]);
        trajectory.turns[0].text = text.to_owned();
        trajectory.success = success;
        trajectory
    }

    #[test]
    fn the_expected_reward_is_greatest_at_the_probability_of_success() {
        let calibration = Calibration::new(&CalibrationOptions::default()).unwrap();
        let shapers = RewardShapers::new(vec![Box::new(calibration)]);
        let reward = |stated: f64, success: bool| {
            let trajectory = said(&format!("<confidence>{stated}</confidence>"), success);
            f64::from(u8::from(success)) + shapers.rewards(&trajectory)[0]
        };
        for probability in [0.0, 0.3, 0.5, 0.9, 1.0] {
            let expected = |stated: f64| {
                probability * reward(stated, true) + (1.0 - probability) * reward(stated, false)
            };
            let best = (0..=10)
                .map(|tenth| f64::from(tenth) / 10.0)
                .max_by(|a, b| expected(*a).total_cmp(&expected(*b)));
            assert_eq!(best, Some(probability));
        }
        assert!((reward(0.8, true) - (1.0 - 0.04)).abs() < 1e-12);
    }

    #[test]
    fn confidence_is_read_from_the_last_mark_or_there_is_none() {
        let read = |text: &str| stated_confidence(&said(text, true), "confidence");
        assert_eq!(read("<confidence> 80% </confidence>"), Some(0.8));
        assert_eq!(read("<confidence>1</confidence> no, <confidence>0.5</confidence>"), Some(0.5));
        for text in [
            "",
            "<confidence>",
            "<confidence>2</confidence>",
            "<confidence>nan</confidence>",
            "<confidence>-0.1</confidence>",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
        let silent = said("no idea", false);
        let calibration = Calibration::new(&CalibrationOptions::default()).unwrap();
        assert_eq!(RewardShapers::new(vec![Box::new(calibration)]).rewards(&silent), [-1.0]);
    }
}
