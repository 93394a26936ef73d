//! Several ways on from one turn.

use async_trait::async_trait;
use futures::future::join_all;
use rand::RngExt;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::Trajectory;
use spar_core::registry::NamedOptions;

use super::{RolloutStrategy, StrategyError};
use crate::{BranchPoint, GroupInProgress, Guide};

/// Options of [`Continuations`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ContinuationsOptions {
    /// Who plays up to the turn. Default `policy`.
    pub led_by: LedBy,
    /// The share of groups in which episodes go on from a turn, above 0, at most 1; the others begin at the start. Default 1.
    pub probability: f64,
}

/// Who plays up to the turn from which episodes go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LedBy {
    /// The policy itself.
    #[default]
    Policy,
    /// The environment's player who knows what the episode has shown.
    Expert,
    /// The environment's player who sees all.
    Oracle,
}

impl Default for ContinuationsOptions {
    fn default() -> Self {
        Self { led_by: LedBy::default(), probability: 1.0 }
    }
}

impl NamedOptions for ContinuationsOptions {
    fn problems(&self) -> Vec<String> {
        let is_within = self.probability > 0.0 && self.probability <= 1.0;
        let problem =
            || format!("probability is {}, must be above 0 and at most 1", self.probability);
        (!is_within).then(problem).into_iter().collect()
    }
}

/// All episodes of a group go on from one turn of an episode that was played before, which is no member of the group.
///
/// - By the policy: the two continuations of REFUEL (arXiv 2410.04612, section 3.2) with groups of 2, whose returns from there on are compared; with more a vine (TRPO, arXiv 1502.05477, section 5.2), as polychromic objectives sample.
/// - By a player of the environment, whose episodes are a dataset: dataset reset (DR-PO, arXiv 2404.08495), `probability` being its share of resets.
///
/// The turn is drawn evenly among those of that episode, the first one, where nothing is taken over, among them. What is taken over is nobody's in the group: set `mask_shared_turns` of the stage, so that the loss is on what was newly sampled alone. Where the first episode fails for good, all begin at the
/// start.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Continuations {
    options: ContinuationsOptions,
}

impl Continuations {
    /// A strategy with these options.
    ///
    /// # Errors
    ///
    /// [`StrategyError::Row`] lists the options that are outside their range.
    pub fn new(options: ContinuationsOptions) -> Result<Self, StrategyError> {
        StrategyError::refuse("continuations", options.problems())?;
        Ok(Self { options })
    }
}

#[async_trait]
impl RolloutStrategy for Continuations {
    fn name(&self) -> &'static str {
        "continuations"
    }

    fn branches(&self) -> bool {
        true
    }

    async fn grow(&self, group: &GroupInProgress<'_>) -> Vec<Trajectory> {
        let size = group.size();
        let mut rng = group.seed().derive("turn", 0).rng();
        let mut led = None;
        if rng.random_bool(self.options.probability) {
            group.play_more(1);
            led = match self.options.led_by {
                LedBy::Policy => group.episode(size).await,
                LedBy::Expert => group.demonstration(size, Guide::Expert).await,
                LedBy::Oracle => group.demonstration(size, Guide::Oracle).await,
            };
        }
        let turns = led.as_ref().map_or(0, |led| led.turns.len());
        let turn = if turns > 0 { rng.random_range(0..turns) } else { 0 };
        let next = |member: usize| {
            let led = led.as_ref().filter(|_| turn > 0);
            async move {
                match led {
                    Some(led) => group.branch(member, led, BranchPoint::before(turn)).await,
                    None => group.episode(member).await,
                }
            }
        };
        join_all((0..size).map(next)).await.into_iter().flatten().collect()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use spar_core::{Policy, Seed, Source};

    use super::*;
    use crate::fake_environment::{FakeEnvironment, fake_task};
    use crate::policies::ScriptedPolicy;
    use crate::{
        Cancellation, CollectConfig, CollectRequest, Seating, SharedPlayer, collect_groups,
    };

    #[tokio::test]
    async fn all_of_a_group_go_on_from_one_turn_and_have_new_turns_of_their_own() {
        let policy: Arc<dyn Policy> = Arc::new(ScriptedPolicy::new(["right", "left", "right"]));
        let strategy = Continuations::default();
        let tasks: Vec<_> = (0..12).map(fake_task).collect();
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
        let mut config = CollectConfig { group_size: 2, ..CollectConfig::default() };
        config.episode.max_turns = Some(5);
        let collection = collect_groups(&request, &config).await;
        assert_eq!((collection.counts.finished, collection.counts.missing()), (36, 0));
        let mut pivots = Vec::new();
        for group in &collection.groups {
            let [one, two] = &group.trajectories[..] else { panic!("two continuations") };
            assert_eq!(one.lineage, two.lineage);
            let pivot = one.lineage.fork_turn as usize;
            assert_eq!(one.turns[..pivot], two.turns[..pivot]);
            assert_ne!(one.episode, two.episode);
            for trajectory in [one, two] {
                trajectory.validate().unwrap();
                assert!(trajectory.turns.len() > pivot);
                let sources = trajectory.turns.iter().map(|turn| turn.source);
                let inherited = sources.filter(|it| *it == Source::Inherited).count();
                assert_eq!(inherited, pivot);
            }
            pivots.push(pivot);
        }
        pivots.sort_unstable();
        pivots.dedup();
        assert!(pivots.len() > 2, "{pivots:?}");
        let wrong = ContinuationsOptions { probability: 0.0, ..Default::default() };
        assert!(Continuations::new(wrong).is_err());
    }
}
