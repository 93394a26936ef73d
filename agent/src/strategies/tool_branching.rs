//! Forks behind calls of tools.

use async_trait::async_trait;
use rand::RngExt;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::registry::NamedOptions;
use spar_core::{Seed, Source, Trajectory, Turn};

use super::members::{from_points, from_start, leave_room};
use super::{RolloutStrategy, StrategyError, arpo_branches};
use crate::{BranchPoint, GroupInProgress};

/// Tokens of an answer by which it is told how sure the policy is, as in ARPO's code.
const MAX_TOKENS: usize = 20;

/// Options of [`ToolBranching`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ToolBranchingOptions {
    /// Episodes that begin at the group's start; at least 1, no more than the group has trajectories. Default 2.
    pub trunks: usize,
    /// How much a rise of the entropy counts; 0 or more. Default 0.2.
    pub weight: f64,
    /// Below which drawn number an episode forks, 0 to 1. Default 0.5.
    pub probability: f64,
    /// How many ways an episode goes on from a fork, its own among them; at least 2. Default 2.
    pub beams: usize,
}

impl Default for ToolBranchingOptions {
    fn default() -> Self {
        Self { trunks: 2, weight: 0.2, probability: 0.5, beams: 2 }
    }
}

impl NamedOptions for ToolBranchingOptions {
    fn problems(&self) -> Vec<String> {
        let Self { trunks, weight, probability, beams } = *self;
        let mut problems = Vec::new();
        if trunks == 0 {
            problems.push("trunks is 0, must be at least 1".to_owned());
        }
        if !(weight.is_finite() && weight >= 0.0) {
            problems.push(format!("weight is {weight}, must be 0 or more"));
        }
        if !(0.0..=1.0).contains(&probability) {
            problems.push(format!("probability is {probability}, must be 0 to 1"));
        }
        if beams < 2 {
            problems.push(format!("beams is {beams}, must be at least 2"));
        }
        problems
    }
}

/// The entropy-based rollouts of ARPO (arXiv 2507.19849, section 3.1, and [`arpo_branches`], its code's rule).
///
/// `trunks` episodes are played from the start. Behind every call of a tool in them, an episode forks with a probability that grows with how much less sure the policy is there than in its first answer, up to `beams - 1` times, as long as the group is not full; what is left of the group begins at
/// the start. So there are as many leaves as the group has trajectories. Where nobody calls tools, every turn behind the first is looked at.
///
/// Deviation: how sure the policy is tells the mean surprise at its first 20 tokens, where the code has entropies of the ten most probable ones; forks of forks are not looked at again.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ToolBranching {
    options: ToolBranchingOptions,
}

impl ToolBranching {
    /// A strategy with these options.
    ///
    /// # Errors
    ///
    /// [`StrategyError::Row`] lists the options that are outside their range.
    pub fn new(options: ToolBranchingOptions) -> Result<Self, StrategyError> {
        StrategyError::refuse("tool_branching", options.problems())?;
        Ok(Self { options })
    }

    /// Where these trunks fork, each with the number of its origin, up to `room` times in all.
    fn points(&self, trunks: &[Trajectory], room: usize, seed: Seed) -> Vec<(usize, BranchPoint)> {
        let ToolBranchingOptions { weight, probability, beams, .. } = self.options;
        let mut points = Vec::new();
        let longest = trunks.iter().map(|trunk| trunk.turns.len()).max().unwrap_or(0);
        // Round by round over all trunks, as segments end in the code.
        for turn in 1..longest {
            for (origin, trunk) in trunks.iter().enumerate() {
                if !is_behind_call(trunk, turn) {
                    continue;
                }
                let first = entropy(&trunk.turns[0]);
                let now = entropy(&trunk.turns[turn]);
                let mut rng = seed.derive("trunk", origin).derive("turn", turn).rng();
                for _ in 1..beams {
                    let draw: f64 = rng.random();
                    if points.len() < room && arpo_branches(draw, now, first, weight, probability) {
                        points.push((origin, BranchPoint::before(turn)));
                    }
                }
            }
        }
        points
    }
}

/// Whether what is sampled in a turn stands behind the result of a tool, or, in an episode without tools, behind an answer of the environment.
fn is_behind_call(trajectory: &Trajectory, turn: usize) -> bool {
    let calls =
        |turn: &Turn| turn.parsed.action().is_some_and(|action| !action.tool_calls().is_empty());
    let Some(here) = trajectory.turns.get(turn) else { return false };
    let has_tools = trajectory.turns.iter().any(calls);
    here.source == Source::Sampled && (!has_tools || calls(&trajectory.turns[turn - 1]))
}

/// The mean surprise at the first tokens of a turn; 0 where the policy shows none.
fn entropy(turn: &Turn) -> f64 {
    let first = turn.sampled.logprobs.iter().take(MAX_TOKENS);
    let (sum, count) =
        first.fold((0.0, 0.0), |(sum, count), logprob| (sum - f64::from(*logprob), count + 1.0));
    if count > 0.0 { sum / count } else { 0.0 }
}

#[async_trait]
impl RolloutStrategy for ToolBranching {
    fn name(&self) -> &'static str {
        "tool_branching"
    }

    fn check(&self, group_size: usize) -> Result<(), StrategyError> {
        match self.options.trunks {
            // Where nothing forks, all are trunks, so that they may fill the group.
            trunks if trunks == group_size => Ok(()),
            trunks => leave_room("tool_branching", "trunks", trunks, group_size),
        }
    }

    fn branches(&self) -> bool {
        true
    }

    async fn grow(&self, group: &GroupInProgress<'_>) -> Vec<Trajectory> {
        let trunks = self.options.trunks.min(group.size());
        let mut grown = from_start(group, 0..trunks).await;
        let points = self.points(&grown, group.size() - trunks, group.seed());
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

    async fn grow(options: ToolBranchingOptions) -> Vec<Trajectory> {
        let policy: Arc<dyn Policy> = Arc::new(ScriptedPolicy::new(["right", "left", "right"]));
        let strategy = ToolBranching::new(options).unwrap();
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
        let mut config = CollectConfig { group_size: 6, ..CollectConfig::default() };
        config.episode.max_turns = Some(5);
        collect_groups(&request, &config).await.groups.remove(0).trajectories
    }

    #[tokio::test]
    async fn the_budget_is_kept_and_forks_begin_where_the_entropy_has_risen() {
        let never = ToolBranchingOptions { probability: 0.0, ..ToolBranchingOptions::default() };
        let mut group = grow(never).await;
        assert_eq!(group.len(), 6);
        assert!(group.iter().all(|it| it.lineage.parent.is_none()), "more trunks in their place");
        let always = ToolBranchingOptions { probability: 1.0, ..ToolBranchingOptions::default() };
        let forked = grow(always.clone()).await;
        assert_eq!(forked.len(), 6);
        assert_eq!(forked.iter().filter(|it| it.lineage.parent.is_some()).count(), 4);

        // One turn alone is less sure than the first one.
        group.truncate(2);
        for trunk in &mut group {
            trunk.turns.iter_mut().for_each(|turn| turn.sampled.logprobs.fill(-0.1));
        }
        group[1].turns[2].sampled.logprobs.fill(-6.0);
        let rule = ToolBranchingOptions { weight: 1.0, probability: 0.0, ..always };
        let strategy = ToolBranching::new(rule).unwrap();
        assert_eq!(strategy.points(&group, 4, Seed::from_u64(1)), [(1, BranchPoint::before(2))]);
        assert!(strategy.points(&group, 0, Seed::from_u64(1)).is_empty());
    }

    #[tokio::test]
    async fn where_tools_are_called_forks_begin_behind_calls_alone() {
        let mut group = grow(ToolBranchingOptions::default()).await;
        let trunk = &mut group[0];
        let call = spar_core::ToolCall::new("look", Default::default());
        let action = spar_core::Action::calls(vec![call]);
        trunk.turns[1].parsed = spar_core::ParsedAction::of(action);
        let behind: Vec<usize> =
            (1..trunk.turns.len()).filter(|turn| is_behind_call(trunk, *turn)).collect();
        assert_eq!(behind, [2]);
    }
}
