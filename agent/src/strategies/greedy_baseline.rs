//! A greedy episode beside those that are sampled.

use async_trait::async_trait;
use futures::future::join;
use spar_core::Trajectory;

use super::members::{from_start, leave_room};
use super::{RolloutStrategy, StrategyError};
use crate::GroupInProgress;

/// The last episode of every group takes the most probable token everywhere, the others are drawn: the baseline of ReMax (arXiv 2310.10505).
///
/// It is [told](spar_core::Lineage::greedy) from the others and never trained; credit `remax` compares these with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct GreedyBaseline;

#[async_trait]
impl RolloutStrategy for GreedyBaseline {
    fn name(&self) -> &'static str {
        "greedy_baseline"
    }

    fn check(&self, group_size: usize) -> Result<(), StrategyError> {
        leave_room("greedy_baseline", "greedy episodes", 1, group_size)
    }

    async fn grow(&self, group: &GroupInProgress<'_>) -> Vec<Trajectory> {
        let own = group.size() - 1;
        let (mut grown, greedy) = join(from_start(group, 0..own), group.greedy(own)).await;
        grown.extend(greedy);
        grown
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use spar_core::{Policy, Seed};

    use super::*;
    use crate::fake_environment::{FakeEnvironment, fake_task};
    use crate::policies::ScriptedPolicy;
    use crate::{
        Cancellation, CollectConfig, CollectRequest, Seating, SharedPlayer, collect_groups,
    };

    #[tokio::test]
    async fn the_last_episode_of_a_group_is_greedy_and_no_other() {
        let policy: Arc<dyn Policy> = Arc::new(ScriptedPolicy::new(["right"]));
        let tasks = [fake_task(0), fake_task(1)];
        let request = CollectRequest {
            tasks: &tasks,
            player: SharedPlayer::Policy(policy.clone()),
            seating: Seating::default(),
            strategy: &GreedyBaseline,
            open: FakeEnvironment::new().opener(),
            seed: Seed::from_u64(5),
            cancellation: &Cancellation::new(),
            on_episode: &|_| {},
        };
        let mut config = CollectConfig { group_size: 3, ..CollectConfig::default() };
        config.episode.max_turns = Some(4);
        let played = collect_groups(&request, &config).await;
        assert_eq!((played.groups.len(), played.counts.missing()), (2, 0));
        for group in &played.groups {
            let greedy: Vec<bool> = group.trajectories.iter().map(|it| it.lineage.greedy).collect();
            assert_eq!(greedy, [false, false, true]);
        }
        assert!(GreedyBaseline.check(2).is_ok() && GreedyBaseline.check(1).is_err());
    }
}
