//! Demonstrations among the episodes of a group.

use async_trait::async_trait;
use futures::future::{join, join_all};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::Trajectory;
use spar_core::registry::NamedOptions;

use super::members::{from_start, leave_room};
use super::{RolloutStrategy, StrategyError};
use crate::{GroupInProgress, Guide};

/// Options of [`Demonstrated`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DemonstratedOptions {
    /// How many of a group are demonstrations: at least 1, fewer than a group has. Default 1.
    pub demonstrations: usize,
    /// Who demonstrates. Default `expert`.
    pub demonstrator: Guide,
}

impl Default for DemonstratedOptions {
    fn default() -> Self {
        Self { demonstrations: 1, demonstrator: Guide::default() }
    }
}

impl NamedOptions for DemonstratedOptions {
    fn problems(&self) -> Vec<String> {
        let is_none = self.demonstrations == 0;
        is_none.then(|| "demonstrations is 0, must be at least 1".to_owned()).into_iter().collect()
    }
}

/// Some episodes of every group are played by one of the environment's players, in the tokens of the policy, and are compared and trained with
/// what the policy played itself: trajectories from outside, as in RL-PLUS (arXiv 2508.00222) and LUFFY (arXiv 2504.14945).
///
/// A demonstration that does not solve its task is left out. Nobody knows how probably the demonstrator wrote what it wrote: samples of it are
/// [from outside](spar_core::SampleOrigin::Outside), and the stage takes for their log-probabilities those of the policy before the updates of the
/// iteration. What is told of an iteration's episodes counts demonstrations among them.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Demonstrated {
    options: DemonstratedOptions,
}

impl Demonstrated {
    /// A strategy with these options.
    ///
    /// # Errors
    ///
    /// [`StrategyError::Row`] lists the options that are outside their range.
    pub fn new(options: DemonstratedOptions) -> Result<Self, StrategyError> {
        StrategyError::refuse("demonstrated", options.problems())?;
        Ok(Self { options })
    }
}

#[async_trait]
impl RolloutStrategy for Demonstrated {
    fn name(&self) -> &'static str {
        "demonstrated"
    }

    fn check(&self, group_size: usize) -> Result<(), StrategyError> {
        let count = self.options.demonstrations;
        leave_room("demonstrated", "demonstrations", count, group_size)
    }

    fn adds_demonstrations(&self) -> bool {
        true
    }

    async fn grow(&self, group: &GroupInProgress<'_>) -> Vec<Trajectory> {
        let DemonstratedOptions { demonstrations, demonstrator } = self.options;
        let own = group.size() - demonstrations;
        let shown = (own..group.size()).map(|member| group.demonstration(member, demonstrator));
        let (mut grown, shown) = join(from_start(group, 0..own), join_all(shown)).await;
        let solved = shown.into_iter().flatten().filter(|it| it.success);
        grown.extend(solved);
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
    async fn solved_demonstrations_stand_among_a_groups_episodes() {
        let policy: Arc<dyn Policy> = Arc::new(ScriptedPolicy::new(["left", "left", "left"]));
        let options = DemonstratedOptions { demonstrations: 2, demonstrator: Guide::Oracle };
        let strategy = Demonstrated::new(options).unwrap();
        let tasks = [fake_task(0), fake_task(1)];
        let request = CollectRequest {
            tasks: &tasks,
            player: SharedPlayer::Policy(policy.clone()),
            seating: Seating::default(),
            strategy: &strategy,
            open: FakeEnvironment::new().opener(),
            seed: Seed::from_u64(5),
            cancellation: &Cancellation::new(),
            on_episode: &|_| {},
        };
        let mut config = CollectConfig { group_size: 5, ..CollectConfig::default() };
        config.episode.max_turns = Some(5);
        let played = collect_groups(&request, &config).await;
        assert_eq!(played.groups.len(), 2);
        for group in &played.groups {
            let guided: Vec<bool> = group.trajectories.iter().map(|it| it.lineage.guided).collect();
            assert_eq!(guided, [false, false, false, true, true]);
            assert!(group.trajectories[3..].iter().all(|it| it.success));
            let tokens = |it: &Trajectory| it.turns.iter().all(|turn| !turn.sampled.ids.is_empty());
            assert!(group.trajectories[3..].iter().all(tokens), "in the policy's tokens");
        }
        assert!(strategy.check(3).is_ok() && strategy.check(2).is_err());
        let none = DemonstratedOptions { demonstrations: 0, ..Default::default() };
        assert!(Demonstrated::new(none).is_err());
    }

    #[tokio::test]
    async fn who_failed_is_missing_and_who_solved_nothing_is_not() {
        let strategy = Demonstrated::default();
        let environment = FakeEnvironment::new();
        // The start that all share, and two steps of the first member; the second breaks.
        environment.breaks_once_after(1 + 2);
        let tasks = [fake_task(0)];
        let request = CollectRequest {
            tasks: &tasks,
            player: SharedPlayer::Policy(Arc::new(ScriptedPolicy::new(["right"]))),
            seating: Seating::default(),
            strategy: &strategy,
            open: environment.opener(),
            seed: Seed::from_u64(5),
            cancellation: &Cancellation::new(),
            on_episode: &|_| {},
        };
        let concurrency = 1.into();
        let mut config =
            CollectConfig { group_size: 3, concurrency, refills: 0, ..CollectConfig::default() };
        // One turn less than anybody needs.
        config.episode.max_turns = Some(2);
        let played = collect_groups(&request, &config).await;
        let guided = |it: &Trajectory| it.lineage.guided;
        assert!(!played.groups[0].trajectories.iter().any(guided), "it was not solved");
        let counts = &played.counts;
        assert_eq!((counts.wanted, counts.finished, counts.missing()), (3, 2, 1));
    }
}
