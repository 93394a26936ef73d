//! Episodes that know nothing of each other.

use async_trait::async_trait;
use futures::future::join_all;
use spar_core::Trajectory;

use super::RolloutStrategy;
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
        let episodes = (0..group.size()).map(|member| group.episode(member));
        join_all(episodes).await.into_iter().flatten().collect()
    }
}
