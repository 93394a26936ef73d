//! Groups as shapers see them.

use std::collections::BTreeMap;

use serde_json::Value;
use spar_core::{RewardPart, Trajectory};

/// The episodes of a group with the parts of their rewards, as they come to a shaper.
#[derive(Debug, Clone, Copy)]
pub struct ShapedGroup<'a> {
    /// The episodes.
    pub trajectories: &'a [&'a Trajectory],
    /// Their parts, by turn.
    pub rewards: &'a [Vec<Vec<RewardPart>>],
}

/// What an episode earned in parts of these names, each summed over its turns.
pub(super) fn sums(rewards: &[Vec<RewardPart>]) -> BTreeMap<&str, f64> {
    let mut sums = BTreeMap::new();
    for part in rewards.iter().flatten() {
        *sums.entry(part.name.as_str()).or_insert(0.0) += part.value;
    }
    sums
}

/// The turn in which the policy acted last; absent where it never did.
pub(super) fn last_acting(trajectory: &Trajectory) -> Option<usize> {
    trajectory.turns.iter().rposition(|turn| !turn.is_summary())
}

/// Adds a part to the turn in which the policy acted last; nothing where it is worth nothing.
pub(super) fn add_at_end(
    trajectory: &Trajectory,
    rewards: &mut [Vec<RewardPart>],
    name: &str,
    value: f64,
) {
    let last = last_acting(trajectory).and_then(|last| rewards.get_mut(last));
    if let Some(parts) = last
        && value.is_finite()
        && value != 0.0
    {
        parts.push(RewardPart { name: name.to_owned(), value });
    }
}

/// What the judging left under a name: by the first of the graders that left one, or else at the top.
pub(super) fn artifact<'t>(trajectory: &'t Trajectory, name: &str) -> Option<&'t Value> {
    let artifacts = &trajectory.verdict.as_ref()?.artifacts;
    artifacts.values().find_map(|grader| grader.get(name)).or_else(|| artifacts.get(name))
}
