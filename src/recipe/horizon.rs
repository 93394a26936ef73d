//! Episodes and answers that may become longer as training goes on.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_tasks::curricula::HorizonSchedule;

/// How long episodes, answers, or both may be, phase by phase: the last phase goes on to the end of the stage.
///
/// For turns that is ScalingInter-RL (arXiv 2509.08755), for tokens the stages of CAMPO (arXiv 2507.14683).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct HorizonConfig {
    /// Iterations of a phase; at least 1. Default 100.
    pub every: u64,
    /// The share of the stage's `max_turns` that an episode may have in each phase: above 0, none less than the one before, the last one 1. Default
    /// empty: all of them.
    pub turns: Vec<f64>,
    /// The same of the tokens of an answer, `sampling.max_tokens`. Default empty.
    pub answers: Vec<f64>,
}

impl Default for HorizonConfig {
    fn default() -> Self {
        Self { every: 100, turns: Vec::new(), answers: Vec::new() }
    }
}

impl HorizonConfig {
    /// What is wrong with it.
    pub(super) fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        if self.every == 0 {
            problems.push("every is 0, must be at least 1".to_owned());
        }
        if self.turns.is_empty() && self.answers.is_empty() {
            problems.push("turns and answers are empty, name the phases of one of them".to_owned());
        }
        for (name, shares) in [("turns", &self.turns), ("answers", &self.answers)] {
            let rises = shares.windows(2).all(|pair| pair[0] <= pair[1]);
            let is_within = shares.iter().all(|share| *share > 0.0 && *share <= 1.0);
            let ends = shares.last().is_none_or(|last| *last == 1.0);
            if !(rises && is_within && ends) {
                problems.push(format!(
                    "{name} are {shares:?}, must be above 0, none less than the one before, the last one 1"
                ));
            }
        }
        problems
    }

    /// The turns that episodes may have behind so many iterations of the stage, of the most.
    pub fn max_turns(&self, done: u64, most: u32) -> u32 {
        phase(&self.turns, self.every, done, most)
    }

    /// The tokens that answers may have, likewise.
    pub fn max_tokens(&self, done: u64, most: usize) -> usize {
        let most = u32::try_from(most).unwrap_or(u32::MAX);
        phase(&self.answers, self.every, done, most) as usize
    }
}

/// A share of `most`, rounded up, so never 0.
fn phase(shares: &[f64], every: u64, done: u64, most: u32) -> u32 {
    let number = |share: &f64| ((share * f64::from(most)).ceil() as u32).max(1);
    let schedule = HorizonSchedule::new(shares.iter().map(number).collect(), every);
    schedule.map_or(most, |schedule| schedule.max_turns(done))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_horizon_grows_phase_by_phase_up_to_the_most() {
        let horizon =
            HorizonConfig { every: 10, turns: vec![0.25, 0.5, 1.0], answers: vec![0.5, 1.0] };
        assert!(horizon.problems().is_empty());
        let turns: Vec<u32> =
            [0, 9, 10, 19, 20, 500].map(|done| horizon.max_turns(done, 20)).into();
        assert_eq!(turns, [5, 5, 10, 10, 20, 20]);
        assert_eq!([horizon.max_tokens(0, 63), horizon.max_tokens(10, 63)], [32, 63]);
        let only = HorizonConfig { turns: vec![1.0], ..HorizonConfig::default() };
        assert_eq!((only.max_turns(0, 7), only.max_tokens(0, 64)), (7, 64));
        let wrong = HorizonConfig { every: 0, turns: vec![0.5, 0.25], answers: vec![f64::NAN] };
        assert_eq!(wrong.problems().len(), 3, "{:?}", wrong.problems());
        assert_eq!(HorizonConfig::default().problems().len(), 1);
    }
}
