//! Trajectories whose process agrees with their outcome.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::registry::{NamedOptions, RowError};

use super::registry::AXIS;
use super::{FilterError, GroupFilter};
use crate::credit::GroupView;

/// Options of [`Consistent`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ConsistentConfig {
    /// Trajectories that are kept of each group, at least 2; groups that have no more are kept whole. Default 4.
    pub keep: usize,
    /// The score of the process: what the judging left under this name, or a part of the reward. Default `judge.value`, which a grader `judge` of weight 0 in mode `steps` leaves.
    pub score: String,
}

impl Default for ConsistentConfig {
    fn default() -> Self {
        Self { keep: 4, score: "judge.value".to_owned() }
    }
}

impl NamedOptions for ConsistentConfig {
    fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        if self.keep < 2 {
            problems.push(format!("keep is {}, must be at least 2", self.keep));
        }
        if self.score.is_empty() {
            problems.push("score is empty, name one".to_owned());
        }
        problems
    }
}

/// The process consistency filter (PROF, arXiv 2509.03403; reconstructed from its abstract): of the trajectories that succeeded those whose process scores best are kept, of the others those whose scores worst, half of `keep` each; where one
/// side has fewer, the other takes their places.
///
/// What is learned from are the outcomes alone: rewards are not changed. A trajectory without a score is the least consistent of its side; of equal ones the first is kept.
#[derive(Debug, Clone, Default)]
pub struct Consistent {
    config: ConsistentConfig,
}

impl Consistent {
    /// A filter with these options.
    ///
    /// # Errors
    ///
    /// [`FilterError::Row`] when one is outside its range.
    pub fn new(config: ConsistentConfig) -> Result<Self, FilterError> {
        RowError::refuse(AXIS.what, "consistent", config.problems())?;
        Ok(Self { config })
    }
}

impl GroupFilter for Consistent {
    fn name(&self) -> &'static str {
        "consistent"
    }

    fn keep(&self, group: &GroupView<'_>) -> Vec<bool> {
        let ConsistentConfig { keep, score } = &self.config;
        let count = group.num_trajectories();
        if count <= *keep {
            return vec![true; count];
        }
        // How far the process agrees with the outcome, by side.
        let mut sides: [Vec<(f64, usize)>; 2] = [Vec::new(), Vec::new()];
        for (place, trajectory) in group.trajectories().enumerate() {
            let episode = trajectory.episode;
            let found = episode.scores.get(score).or_else(|| episode.parts.get(score)).copied();
            let found = found.filter(|found| !found.is_nan());
            let agrees = match (found, episode.is_success) {
                (None, _) => f64::NEG_INFINITY,
                (Some(found), true) => found,
                (Some(found), false) => -found,
            };
            sides[usize::from(episode.is_success)].push((agrees, place));
        }
        let half = keep / 2;
        let of_wrong = half.max(keep - sides[1].len().min(*keep)).min(sides[0].len());
        let wanted = [of_wrong, (keep - of_wrong).min(sides[1].len())];
        let mut kept = vec![false; count];
        for (side, wanted) in sides.iter_mut().zip(wanted) {
            side.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
            side.iter().take(wanted).for_each(|(_, place)| kept[*place] = true);
        }
        kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::credit::EpisodeView;
    use crate::credit::test_vectors::step_of;

    fn group(played: &[(bool, Option<f64>)]) -> GroupView<'static> {
        let mut view = GroupView::default();
        for (number, (is_success, score)) in played.iter().enumerate() {
            let mut episode = EpisodeView::new(number as u64);
            episode.is_success = *is_success;
            episode.scores.extend(score.map(|score| ("judge.value".to_owned(), score)));
            view.push_episode(episode, [step_of(f64::from(u8::from(*is_success)), 1)]);
        }
        view
    }

    #[test]
    fn of_either_side_as_many_are_kept_whose_process_agrees() {
        let filter = Consistent::default();
        let kept = |played: &[(bool, Option<f64>)]| {
            let kept = filter.keep(&group(played));
            (0..kept.len()).filter(|place| kept[*place]).collect::<Vec<_>>()
        };
        let (good, bad, none) = (Some(0.9), Some(0.1), None);
        let both = [
            (true, bad),
            (true, good),
            (true, none),
            (true, good),
            (false, good),
            (false, bad),
            (false, none),
            (false, bad),
        ];
        assert_eq!(kept(&both), [1, 3, 5, 7]);
        // One side alone has no more than one.
        let few = [(true, bad), (false, good), (false, bad), (false, bad), (false, good)];
        assert_eq!(kept(&few), [0, 1, 2, 3]);
        assert_eq!(kept(&[(true, bad); 6]), [0, 1, 2, 3]);
        assert_eq!(kept(&both[..3]), [0, 1, 2]);
        let returns = group(&both).returns();
        assert_eq!(returns, [1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0], "rewards are as they were");
        assert!(Consistent::new(ConsistentConfig { keep: 1, ..Default::default() }).is_err());
    }
}
