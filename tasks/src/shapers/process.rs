//! Rewards of steps that cannot be earned by more steps.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::registry::{NamedOptions, RowError};
use spar_core::{RewardPart, Trajectory};

use super::RewardShaper;
use super::registry::AXIS;
use crate::ShaperError;

/// Options of [`Process`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ProcessOptions {
    /// The parts that are rewards of steps. Default `process`.
    pub parts: Vec<String>,
    /// Clip: `min(r - clip, 0)` in place of each of them; absent: as they are. Default absent.
    pub clip: Option<f64>,
    /// Delta: each of them less the next one, the last one as it is. Default true.
    pub delta: bool,
}

impl Default for ProcessOptions {
    fn default() -> Self {
        Self { parts: vec!["process".to_owned()], clip: None, delta: true }
    }
}

impl NamedOptions for ProcessOptions {
    fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        if self.parts.is_empty() {
            problems.push("parts is empty, name at least one".to_owned());
        }
        if self.clip.is_some_and(|clip| !clip.is_finite()) {
            problems.push("clip is not finite".to_owned());
        }
        if self.clip.is_none() && !self.delta {
            problems.push("neither clip nor delta is set: nothing would change".to_owned());
        }
        problems
    }
}

/// Clip and Delta of the rewards of a process (arXiv 2410.15115, section 4.2; reconstructed from a summary).
///
/// Clip bounds every step's reward above by 0, so that a step more never pays; Delta makes them differences, `r_k - r_{k+1}`, so that they add up to the first one however many there are. With both, Clip comes first. A
/// step is a turn that has one of the parts, by the sum of them where it has several.
#[derive(Debug, Clone)]
pub struct Process {
    options: ProcessOptions,
}

impl Process {
    /// The shaper with these options.
    ///
    /// # Errors
    ///
    /// [`ShaperError::Row`] when one is outside its range.
    pub fn new(options: &ProcessOptions) -> Result<Self, ShaperError> {
        RowError::refuse(AXIS.what, "process", options.problems())?;
        Ok(Self { options: options.clone() })
    }
}

impl RewardShaper for Process {
    fn name(&self) -> &'static str {
        "process"
    }

    fn shape(&self, _: &Trajectory, rewards: &mut [Vec<RewardPart>]) {
        let ProcessOptions { parts: names, clip, delta } = &self.options;
        let is_process = |part: &RewardPart| names.contains(&part.name);
        let mut steps: Vec<(usize, f64)> = Vec::new();
        for (turn, parts) in rewards.iter_mut().enumerate() {
            let own: Vec<f64> =
                parts.iter().filter(|it| is_process(it)).map(|it| it.value).collect();
            if !own.is_empty() {
                let sum: f64 = own.iter().sum();
                steps.push((turn, clip.map_or(sum, |clip| (sum - clip).min(0.0))));
                parts.retain(|part| !is_process(part));
            }
        }
        for (place, (turn, value)) in steps.iter().enumerate() {
            let next = steps.get(place + 1).filter(|_| *delta).map_or(0.0, |(_, next)| *next);
            let value = value - next;
            rewards[*turn].push(RewardPart { name: names[0].clone(), value });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::RewardShapers;
    use super::super::tests::episode;
    use super::*;

    fn shaped(options: &ProcessOptions, steps: &[f64]) -> Vec<f64> {
        let mut turns: Vec<Vec<(&str, f64)>> =
            steps.iter().map(|it| vec![("process", *it)]).collect();
        turns.push(vec![("success", 1.0)]);
        let turns: Vec<&[(&str, f64)]> = turns.iter().map(Vec::as_slice).collect();
        let process = Process::new(options).unwrap();
        RewardShapers::new(vec![Box::new(process)]).rewards(&episode(&turns))
    }

    #[test]
    fn differences_add_up_to_the_first_step_however_many_there_are() {
        let delta = ProcessOptions::default();
        let few = shaped(&delta, &[0.7, 0.9]);
        let padded = shaped(&delta, &[0.7, 0.9, 0.9, 0.9, 1.0, 0.9]);
        let sum = |rewards: &[f64]| rewards.iter().sum::<f64>();
        assert!((sum(&few) - 1.7).abs() < 1e-12 && (sum(&padded) - 1.7).abs() < 1e-12);
        assert!((few[0] + 0.2).abs() < 1e-12 && few[1] == 0.9);
    }

    #[test]
    fn what_is_clipped_never_pays() {
        let clip = ProcessOptions { clip: Some(0.8), delta: false, ..ProcessOptions::default() };
        let few = shaped(&clip, &[0.5]);
        assert!((few[0] + 0.3).abs() < 1e-12);
        let padded = shaped(&clip, &[0.5, 0.9, 1.0, 0.95]);
        assert!((padded.iter().sum::<f64>() - few.iter().sum::<f64>()).abs() < 1e-12);
        assert!(ProcessOptions { delta: false, ..ProcessOptions::default() }.problems().len() == 1);
    }
}
