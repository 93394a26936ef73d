//! Episodes that know nothing of each other.

use async_trait::async_trait;
use spar_core::Trajectory;

use super::RolloutStrategy;
use super::members::from_start;
use crate::GroupInProgress;

/// Every trajectory is an episode of its own from the start that the group shares, as in GRPO (DeepSeekMath, arXiv
/// 2402.03300).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Independent;

#[async_trait]
impl RolloutStrategy for Independent {
    fn name(&self) -> &'static str {
        "independent"
    }

    async fn grow(&self, group: &GroupInProgress<'_>) -> Vec<Trajectory> {
        from_start(group, 0..group.size()).await
    }
}
