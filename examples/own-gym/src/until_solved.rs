//! Groups that end with the first success.

use async_trait::async_trait;
use spar::agent::GroupInProgress;
use spar::agent::strategies::{RolloutStrategy, StrategyRow};
use spar::core::Trajectory;
use spar::core::registry::{OptionSet, Row};

pub(crate) const ROW: StrategyRow = Row {
    name: "until_solved",
    about: "Episodes of a group one after the other, until one solves the task.",
    source: "own",
    formula: "",
    options: OptionSet::NONE,
    open: |_| Ok(Box::new(UntilSolved)),
};

/// Plays the episodes of a group one after the other, until one solves the task.
#[derive(Debug, Clone, Copy, Default)]
struct UntilSolved;

#[async_trait]
impl RolloutStrategy for UntilSolved {
    fn name(&self) -> &'static str {
        "until_solved"
    }

    async fn grow(&self, group: &GroupInProgress<'_>) -> Vec<Trajectory> {
        let mut grown = Vec::new();
        for member in 0..group.size() {
            // One that failed for good is absent.
            grown.extend(group.episode(member).await);
            if grown.last().is_some_and(|trajectory| trajectory.success) {
                group.leave_out(group.size() - member - 1);
                break;
            }
        }
        grown
    }
}
