//! What strategies do with the members of a group.

use std::ops::Range;

use futures::future::join_all;
use spar_core::Trajectory;

use super::StrategyError;
use crate::{BranchPoint, GroupInProgress};

/// Plays these members at one time, from the start that the group shares; those that failed for good are left out.
pub(super) async fn from_start(
    group: &GroupInProgress<'_>,
    members: Range<usize>,
) -> Vec<Trajectory> {
    let episodes = join_all(members.map(|member| group.episode(member))).await;
    episodes.into_iter().flatten().collect()
}

/// Plays a member for every point at one time, numbered from `first_member` on, from there in the trajectory of `grown`
/// whose number stands beside the point; those that failed for good are left out.
pub(super) async fn from_points(
    group: &GroupInProgress<'_>,
    first_member: usize,
    grown: &[Trajectory],
    points: &[(usize, BranchPoint)],
) -> Vec<Trajectory> {
    let branches = points
        .iter()
        .enumerate()
        .map(|(number, (origin, at))| group.branch(first_member + number, &grown[*origin], *at));
    join_all(branches).await.into_iter().flatten().collect()
}

/// Checks that an option, which tells how many members a strategy begins with, leaves room for at least one more in
/// groups of this size.
///
/// # Errors
///
/// [`StrategyError::Row`] where it does not.
pub(super) fn leave_room(
    name: &str,
    what: &str,
    count: usize,
    group_size: usize,
) -> Result<(), StrategyError> {
    if count < group_size {
        return Ok(());
    }
    let problem = format!("{what} is {count}, and groups have {group_size} trajectories");
    StrategyError::refuse(name, vec![problem])
}
