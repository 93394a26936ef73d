//! Answers that are sampled anew from where they were in doubt.

use async_trait::async_trait;
use rand::RngExt;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::registry::NamedOptions;
use spar_core::{Seed, Source, Trajectory};

use super::members::{from_points, from_start, leave_room};
use super::{RolloutStrategy, StrategyError};
use crate::{BranchPoint, GroupInProgress};

/// Options of [`CriticalTokens`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CriticalTokensOptions {
    /// Episodes that begin at the group's start; at least 1, fewer than the group has trajectories. Default 2.
    pub trunks: usize,
    /// Tokens of each of these that are critical, those of the greatest surprise; at least 1. Default 20.
    pub candidates: usize,
}

impl Default for CriticalTokensOptions {
    fn default() -> Self {
        Self { trunks: 2, candidates: 20 }
    }
}

impl NamedOptions for CriticalTokensOptions {
    fn problems(&self) -> Vec<String> {
        let counts = [("trunks", self.trunks), ("candidates", self.candidates)];
        let none = counts.into_iter().filter(|(_, count)| *count == 0);
        none.map(|(name, _)| format!("{name} is 0, must be at least 1")).collect()
    }
}

/// Regeneration at critical tokens, the first stage of CURE (arXiv 2508.11016; reconstructed from its abstract; assumed: which tokens are critical by their surprise, and how many): of each trunk the tokens are found that the policy was least sure of, and the other trajectories of the group keep what
/// stands before one of them, drawn evenly, and sample the token and all behind it anew.
///
/// Originals and branches are compared in one group. A second stage without it is a second stage of the recipe, with `strategy = { kind = "independent" }`. The policy has to go on behind partial answers. Where no token was in doubt, there are more trunks.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CriticalTokens {
    options: CriticalTokensOptions,
}

impl CriticalTokens {
    /// A strategy with these options.
    ///
    /// # Errors
    ///
    /// [`StrategyError::Row`] lists the options that are outside their range.
    pub fn new(options: CriticalTokensOptions) -> Result<Self, StrategyError> {
        StrategyError::refuse("critical_tokens", options.problems())?;
        Ok(Self { options })
    }
}

/// The tokens of a trajectory of the greatest surprise, of those that it sampled itself and that had an alternative, greatest first. The very first of an episode is none: a fork there would be one more trunk.
pub(super) fn critical_tokens(trajectory: &Trajectory, count: usize) -> Vec<BranchPoint> {
    let mut found: Vec<(f32, BranchPoint)> = Vec::new();
    for (turn, played) in trajectory.turns.iter().enumerate() {
        if played.source == Source::Inherited || played.is_summary() {
            continue;
        }
        for (token, logprob) in played.sampled.logprobs.iter().enumerate() {
            if *logprob < 0.0 && (turn, token) != (0, 0) {
                found.push((*logprob, BranchPoint { turn, token }));
            }
        }
    }
    found.sort_by(|a, b| {
        a.0.total_cmp(&b.0).then((a.1.turn, a.1.token).cmp(&(b.1.turn, b.1.token)))
    });
    found.into_iter().take(count).map(|(_, at)| at).collect()
}

impl CriticalTokens {
    fn points(&self, trunks: &[Trajectory], count: usize, seed: Seed) -> Vec<(usize, BranchPoint)> {
        let of_trunk = |(origin, trunk): (usize, &Trajectory)| {
            let tokens = critical_tokens(trunk, self.options.candidates);
            tokens.into_iter().map(move |at| (origin, at))
        };
        let candidates: Vec<_> = trunks.iter().enumerate().flat_map(of_trunk).collect();
        if candidates.is_empty() {
            return Vec::new();
        }
        let mut rng = seed.rng();
        (0..count).map(|_| candidates[rng.random_range(0..candidates.len())]).collect()
    }
}

#[async_trait]
impl RolloutStrategy for CriticalTokens {
    fn name(&self) -> &'static str {
        "critical_tokens"
    }

    fn check(&self, group_size: usize) -> Result<(), StrategyError> {
        leave_room("critical_tokens", "trunks", self.options.trunks, group_size)
    }

    fn branches(&self) -> bool {
        true
    }

    async fn grow(&self, group: &GroupInProgress<'_>) -> Vec<Trajectory> {
        let trunks = self.options.trunks.min(group.size());
        let mut grown = from_start(group, 0..trunks).await;
        let count = group.size() - trunks;
        let points = self.points(&grown, count, group.seed());
        let branches = from_points(group, trunks, &grown, &points).await;
        grown.extend(branches);
        grown.extend(from_start(group, trunks + points.len()..group.size()).await);
        grown
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use spar_core::Policy;

    use super::*;
    use crate::fake_environment::{FakeEnvironment, fake_task};
    use crate::policies::ScriptedPolicy;
    use crate::{
        Cancellation, CollectConfig, CollectRequest, Seating, SharedPlayer, collect_groups,
    };

    #[tokio::test]
    async fn branches_begin_at_the_tokens_of_the_greatest_surprise() {
        let policy: Arc<dyn Policy> = Arc::new(ScriptedPolicy::new(["right", "left", "right"]));
        let strategy = CriticalTokens::default();
        let tasks = [fake_task(0)];
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
        let config = CollectConfig { group_size: 5, ..CollectConfig::default() };
        let mut group = collect_groups(&request, &config).await.groups.remove(0).trajectories;
        assert_eq!(group.len(), 5);
        group.truncate(2);
        for trunk in &mut group {
            trunk.turns.iter_mut().for_each(|turn| turn.sampled.logprobs.fill(0.0));
        }
        assert!(critical_tokens(&group[0], 9).is_empty());
        let surprises = [(0, 0, -9.0), (0, 2, -0.5), (1, 1, -3.0), (2, 0, -2.0)];
        for (turn, token, logprob) in surprises {
            group[1].turns[turn].sampled.logprobs[token] = logprob;
        }
        let point = |turn, token| BranchPoint { turn, token };
        assert_eq!(critical_tokens(&group[1], 2), [point(1, 1), point(2, 0)]);
        assert_eq!(critical_tokens(&group[1], 9).len(), 3, "not where the episode begins");
        let strategy =
            CriticalTokens::new(CriticalTokensOptions { trunks: 2, candidates: 2 }).unwrap();
        let points = strategy.points(&group, 40, Seed::from_u64(3));
        assert_eq!(points.len(), 40);
        assert!(points.iter().all(|it| [(1, point(1, 1)), (1, point(2, 0))].contains(it)));
        assert!(CriticalTokens::default().check(2).is_err());
    }
}
