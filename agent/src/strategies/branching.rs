//! Trees of episodes.

use async_trait::async_trait;
use rand::RngExt;
use rand::distr::Distribution;
use rand::distr::weighted::WeightedIndex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::registry::NamedOptions;
use spar_core::{Seed, Source, Trajectory, Turn};

use super::members::{from_points, from_start, leave_room};
use super::{RolloutStrategy, StrategyError};
use crate::{BranchPoint, GroupInProgress};

/// Options of [`Branching`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct BranchingOptions {
    /// Episodes that begin at the group's start, each the root of a tree; at least 1, fewer than the group has
    /// trajectories. Default 2.
    pub trunks: usize,
    /// Rounds in which the other trajectories are begun, about as many in each; at least 1. From the second on,
    /// branches fork off from branches too. Default 1.
    pub rounds: usize,
    /// How the turns are chosen in which episodes fork. Default `uniform`.
    pub choose: ChooseBranches,
    /// Whether the answer of that turn is sampled anew from a token on, drawn among all behind its first, in place of
    /// from its start; the policy has to go on behind partial answers. First turns are branch points then too.
    /// Default false.
    pub in_mid_turn: bool,
    /// Tokens that a group may sample; once they are sampled, no further round begins and the group stays smaller.
    /// What forks took over and what was sampled in tries that failed is not counted. Default absent: no limit.
    pub max_tokens: Option<usize>,
}

impl Default for BranchingOptions {
    fn default() -> Self {
        Self {
            trunks: 2,
            rounds: 1,
            choose: ChooseBranches::default(),
            in_mid_turn: false,
            max_tokens: None,
        }
    }
}

impl NamedOptions for BranchingOptions {
    fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        for (name, value) in [("trunks", self.trunks), ("rounds", self.rounds)] {
            if value == 0 {
                problems.push(format!("{name} is 0, must be at least 1"));
            }
        }
        if self.max_tokens == Some(0) {
            problems.push("max_tokens is 0, must be at least 1 or absent".to_owned());
        }
        problems
    }
}

/// How the turns are chosen in which episodes fork.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChooseBranches {
    /// Every turn that was sampled is as probable.
    #[default]
    Uniform,
    /// In proportion to `-mean log pi` of the tokens that were drawn in the turn: where the policy was least sure
    /// of what it did. Turns in which nothing was drawn are not chosen.
    Unsure,
}

/// A group is grown as a tree: `trunks` episodes from its start; then, in each of `rounds`, trajectories that fork off
/// at turns of those that there are, until the group is full.
///
/// After Tree-GRPO (arXiv 2509.21240, section 3.2), whose nodes are turns of an agent: there the same number of nodes is
/// drawn in every tree of a group, here among all turns of the group, a turn that several trajectories share counting
/// once. Before the first turn of an episode there is no branch point, only within it: it would be one more trunk. Where
/// there is no branch point at all, there are more trunks.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Branching {
    options: BranchingOptions,
}

impl Branching {
    /// A strategy with these options.
    ///
    /// # Errors
    ///
    /// [`StrategyError::Row`] lists the options that are outside their range.
    pub fn new(options: BranchingOptions) -> Result<Self, StrategyError> {
        StrategyError::refuse("branching", options.problems())?;
        Ok(Self { options })
    }

    /// Where the next trajectories fork off, each with the number of its origin.
    fn choose(&self, grown: &[Trajectory], count: usize, seed: Seed) -> Vec<(usize, BranchPoint)> {
        let mut rng = seed.rng();
        let mut candidates = Vec::new();
        let mut weights = Vec::new();
        for (origin, trajectory) in grown.iter().enumerate() {
            for (turn, played) in trajectory.turns.iter().enumerate() {
                let begins_within = self.options.in_mid_turn && played.sampled.ids.len() > 1;
                let weight = match self.options.choose {
                    // What was taken over is its owner's candidate.
                    _ if played.source == Source::Inherited => continue,
                    _ if turn == 0 && !begins_within => continue,
                    ChooseBranches::Uniform => 1.0,
                    ChooseBranches::Unsure => unsureness(played),
                };
                if weight > 0.0 {
                    candidates.push((origin, turn));
                    weights.push(weight);
                }
            }
        }
        let Ok(turns) = WeightedIndex::new(&weights) else { return Vec::new() };
        let mut draw = || {
            let (origin, turn) = candidates[turns.sample(&mut rng)];
            let tokens = grown[origin].turns[turn].sampled.ids.len();
            let token = match self.options.in_mid_turn && tokens > 1 {
                true => rng.random_range(1..tokens),
                false => 0,
            };
            (origin, BranchPoint { turn, token })
        };
        (0..count).map(|_| draw()).collect()
    }
}

#[async_trait]
impl RolloutStrategy for Branching {
    fn name(&self) -> &'static str {
        "branching"
    }

    fn check(&self, group_size: usize) -> Result<(), StrategyError> {
        leave_room("branching", "trunks", self.options.trunks, group_size)
    }

    fn branches(&self) -> bool {
        true
    }

    async fn grow(&self, group: &GroupInProgress<'_>) -> Vec<Trajectory> {
        let BranchingOptions { trunks, rounds, max_tokens, .. } = self.options;
        let trunks = trunks.min(group.size());
        let mut grown = from_start(group, 0..trunks).await;
        let mut member = trunks;
        for round in 0..rounds {
            let spent: usize = grown.iter().map(own_tokens).sum();
            if max_tokens.is_some_and(|limit| spent >= limit) {
                group.leave_out(group.size() - member);
                break;
            }
            let count = (group.size() - member).div_ceil(rounds - round);
            let points = self.choose(&grown, count, group.seed().derive("round", round));
            let branches = from_points(group, member, &grown, &points).await;
            grown.extend(branches);
            // Where nothing can be forked, such as behind trunks of one turn, there are more trunks.
            grown.extend(from_start(group, member + points.len()..member + count).await);
            member += count;
        }
        grown
    }
}

/// Tokens that were sampled for this trajectory alone.
fn own_tokens(trajectory: &Trajectory) -> usize {
    let own = trajectory.turns.iter().filter(|turn| turn.source != Source::Inherited);
    let sampled: usize = own.map(Turn::num_tokens).sum();
    // The first turn of its own may begin with tokens of its origin.
    sampled.saturating_sub(trajectory.lineage.fork_token.unwrap_or(0) as usize)
}

/// `-mean log pi` over the tokens that had an alternative; 0 where none had.
pub(super) fn unsureness(turn: &Turn) -> f64 {
    let drawn = turn.sampled.logprobs.iter().map(|logprob| -f64::from(*logprob));
    let (sum, count) = drawn
        .filter(|value| *value > 0.0)
        .fold((0.0, 0.0), |(sum, count), value| (sum + value, count + 1.0));
    if count > 0.0 { sum / count } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use std::sync::Arc;

    use super::*;
    use crate::fake_environment::{FakeEnvironment, fake_task};
    use crate::policies::{RandomPolicy, ScriptedPolicy};
    use crate::{
        Cancellation, CollectConfig, CollectRequest, Collection, Seating, SharedPlayer,
        collect_groups,
    };

    async fn grow(
        options: BranchingOptions,
        player: SharedPlayer,
        environment: &FakeEnvironment,
        concurrency: usize,
    ) -> Collection {
        let tasks = [fake_task(0), fake_task(1)];
        let strategy = Branching::new(options).unwrap();
        let request = CollectRequest {
            tasks: &tasks,
            player,
            seating: Seating::default(),
            strategy: &strategy,
            open: environment.opener(),
            seed: Seed::from_u64(5),
            cancellation: &Cancellation::new(),
            on_episode: &|_| {},
        };
        let config = CollectConfig { concurrency: concurrency.into(), ..CollectConfig::default() };
        strategy.check(config.group_size).unwrap();
        collect_groups(&request, &config).await
    }

    /// What was played, without times.
    fn played(collection: &Collection) -> Vec<(u64, Option<u64>, u32, Vec<String>)> {
        let trajectories = collection.groups.iter().flat_map(|group| &group.trajectories);
        let summary = |trajectory: &Trajectory| {
            let actions = trajectory.turns.iter().map(|turn| turn.text.clone()).collect();
            let lineage = &trajectory.lineage;
            (trajectory.episode, lineage.parent, lineage.fork_turn, actions)
        };
        trajectories.map(summary).collect()
    }

    #[tokio::test]
    async fn branches_begin_where_others_of_their_group_were() {
        let player = SharedPlayer::of(RandomPolicy);
        for rounds in [1, 3] {
            let options = BranchingOptions { rounds, ..BranchingOptions::default() };
            let collection = grow(options, player.clone(), &FakeEnvironment::new(), 3).await;
            for group in &collection.groups {
                let trajectories = &group.trajectories;
                assert_eq!(trajectories.len(), 8);
                let by_id: HashMap<_, _> =
                    trajectories.iter().map(|found| (found.episode, found)).collect();
                assert_eq!(by_id.len(), 8, "every episode has an id of its own");
                let trunks = trajectories.iter().filter(|found| found.lineage.parent.is_none());
                assert_eq!(trunks.count(), 2);
                let mut of_branches = 0;
                for branch in trajectories {
                    branch.validate().unwrap();
                    let Some(parent) = branch.lineage.parent else { continue };
                    let (parent, fork) = (by_id[&parent], branch.lineage.fork_turn as usize);
                    of_branches += usize::from(parent.lineage.parent.is_some());
                    assert!(fork >= 1 && fork < parent.turns.len());
                    for (own, taken) in branch.turns.iter().zip(&parent.turns[..fork]) {
                        assert_eq!(own.source, Source::Inherited);
                        assert_eq!((&own.text, &own.prompt), (&taken.text, &taken.prompt));
                    }
                    assert!(branch.turns[fork..].iter().all(|turn| turn.source == Source::Sampled));
                }
                assert!(rounds > 1 || of_branches == 0);
            }
            assert_eq!((collection.counts.finished, collection.counts.missing()), (16, 0));
            assert!(collection.counts.replayed_turns >= 12);
        }
    }

    #[tokio::test]
    async fn trees_do_not_depend_on_concurrency_or_on_whether_environments_fork() {
        let player = SharedPlayer::of(RandomPolicy);
        let options = BranchingOptions { rounds: 2, ..BranchingOptions::default() };
        let forks = FakeEnvironment::new();
        let forks_not = FakeEnvironment { can_fork: false, ..FakeEnvironment::new() };
        let one = grow(options.clone(), player.clone(), &forks, 1).await;
        for (environment, concurrency) in [(&forks, 64), (&forks_not, 1), (&forks_not, 64)] {
            let other = grow(options.clone(), player.clone(), environment, concurrency).await;
            assert_eq!(played(&one), played(&other));
        }
    }

    #[tokio::test]
    async fn a_branch_that_breaks_is_played_anew() {
        let environment = FakeEnvironment::new();
        let player = SharedPlayer::of(RandomPolicy);
        let whole = grow(BranchingOptions::default(), player.clone(), &environment, 1).await;
        let steps: usize =
            whole.groups[0].trajectories[..2].iter().map(|trunk| trunk.turns.len()).sum();
        // Both groups' trunks are through when this one breaks.
        environment.breaks_once_after(3 * steps);
        let mended = grow(BranchingOptions::default(), player.clone(), &environment, 1).await;
        assert_eq!(mended.counts.environment_failures, 1);
        assert_eq!((mended.counts.refills, mended.counts.missing()), (1, 0));
    }

    #[tokio::test]
    async fn an_unsure_turn_is_where_branches_begin() {
        // Of a trajectory, one turn alone was in doubt.
        let policy = Arc::new(ScriptedPolicy::new(["right", "left", "right", "right", "right"]));
        let collection = grow(
            BranchingOptions::default(),
            SharedPlayer::Policy(policy.clone()),
            &FakeEnvironment::new(),
            9,
        )
        .await;
        let mut trunk = collection.groups[0].trajectories[0].clone();
        trunk.turns.iter_mut().for_each(|turn| turn.sampled.logprobs.fill(0.0));
        let choose = |trunk: &Trajectory, in_mid_turn| {
            let choose = ChooseBranches::Unsure;
            let options = BranchingOptions { choose, in_mid_turn, ..Default::default() };
            let branching = Branching::new(options).unwrap();
            branching.choose(std::slice::from_ref(trunk), 20, Seed::from_u64(2))
        };
        assert!(choose(&trunk, false).is_empty(), "nothing was drawn, so nothing is in doubt");
        trunk.turns[3].sampled.logprobs[1] = -0.7;
        let before = BranchPoint::before(3);
        assert_eq!(choose(&trunk, false), vec![(0, before); 20]);
        let tokens: Vec<_> = choose(&trunk, true).iter().map(|(_, at)| at.token).collect();
        let last = trunk.turns[3].sampled.ids.len() - 1;
        assert!(tokens.iter().all(|token| (1..=last).contains(token)), "{tokens:?}");
        assert!(tokens.contains(&1) && tokens.contains(&last), "{tokens:?}");
    }

    #[tokio::test]
    async fn within_its_first_turn_an_episode_is_forked_too() {
        let policy = Arc::new(ScriptedPolicy::new(["right"]));
        let player = SharedPlayer::Policy(policy);
        let options = || BranchingOptions::default();
        let collection = grow(options(), player, &FakeEnvironment::new(), 9).await;
        let mut trunk = collection.groups[0].trajectories[0].clone();
        trunk.turns.truncate(1);
        let choose = |trunk: &Trajectory, in_mid_turn| {
            let branching = Branching::new(BranchingOptions { in_mid_turn, ..options() }).unwrap();
            branching.choose(std::slice::from_ref(trunk), 20, Seed::from_u64(2))
        };
        assert!(choose(&trunk, false).is_empty());
        let found = choose(&trunk, true);
        let is_within = |at: &BranchPoint| at.turn == 0 && (1..6).contains(&at.token);
        assert!(found.len() == 20 && found.iter().all(|(_, at)| is_within(at)), "{found:?}");
        trunk.turns[0].sampled = trunk.turns[0].sampled.first(1);
        assert!(choose(&trunk, true).is_empty(), "one token leaves nothing to sample anew");
    }

    #[tokio::test]
    async fn tokens_of_a_tree_are_counted_once() {
        let player = SharedPlayer::of(ScriptedPolicy::new(["right"]));
        let collection =
            grow(BranchingOptions::default(), player, &FakeEnvironment::new(), 9).await;
        let mut branch = collection.groups[0].trajectories[0].clone();
        assert_eq!(own_tokens(&branch), 18);
        branch.turns[0].source = Source::Inherited;
        branch.turns[1].source = Source::Regenerated;
        branch.lineage.fork_token = Some(2);
        assert_eq!(own_tokens(&branch), 10, "six of a turn and two of the next are the origin's");
        for turn in &mut branch.turns {
            turn.sampled = Default::default();
            turn.counts.sampled = Some(5);
        }
        branch.lineage.fork_token = None;
        assert_eq!(own_tokens(&branch), 10, "as many as an endpoint tells");
    }

    #[tokio::test]
    async fn a_group_that_has_sampled_its_tokens_stays_smaller() {
        let player = SharedPlayer::of(RandomPolicy);
        let policy = Arc::new(ScriptedPolicy::new(["right"]));
        let scripted = SharedPlayer::Policy(policy.clone());
        let options = BranchingOptions { max_tokens: Some(1), ..BranchingOptions::default() };
        let collection = grow(options.clone(), scripted, &FakeEnvironment::new(), 9).await;
        assert_eq!(collection.groups[0].trajectories.len(), 2);
        assert_eq!((collection.counts.wanted, collection.counts.missing()), (4, 0));
        // A policy that shows no tokens has sampled none.
        let collection = grow(options, player.clone(), &FakeEnvironment::new(), 9).await;
        assert_eq!(collection.groups[0].trajectories.len(), 8);
    }

    #[tokio::test]
    async fn where_nothing_can_be_forked_there_are_more_trunks() {
        let policy = Arc::new(ScriptedPolicy::new(["right"]));
        let tasks = [fake_task(0)];
        let strategy = Branching::default();
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
        let mut config = CollectConfig::default();
        config.episode.max_turns = Some(1);
        let collection = collect_groups(&request, &config).await;
        let trajectories = &collection.groups[0].trajectories;
        assert_eq!(trajectories.len(), 8);
        assert!(trajectories.iter().all(|found| found.lineage.parent.is_none()));
    }

    #[test]
    fn groups_have_room_for_branches() {
        let branching = Branching::default();
        branching.check(3).unwrap();
        let error = branching.check(2).unwrap_err().to_string();
        assert!(error.ends_with("trunks is 2, and groups have 2 trajectories"), "{error}");
    }
}
