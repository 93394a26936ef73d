//! Trees whose branches have to go other ways.

use async_trait::async_trait;
use futures::future::join_all;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::registry::NamedOptions;
use spar_core::{Source, Trajectory};

use super::critical_tokens::critical_tokens;
use super::members::from_start;
use super::{RolloutStrategy, StrategyError, rouge_l, suffix_match};
use crate::{BranchPoint, GroupInProgress};

/// By what branches are found alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Likeness {
    /// ROUGE-L's F1 of the tokens ([`rouge_l`]).
    #[default]
    RougeL,
    /// The longest end of one that stands in the other ([`suffix_match`]).
    SuffixMatch,
}

/// Options of [`Lookahead`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LookaheadOptions {
    /// Tokens behind a fork by which a branch is compared with its origin; at least 1. Default 30.
    pub window: usize,
    /// By what they are found alike. Default `rouge_l`.
    pub likeness: Likeness,
    /// Above which likeness a branch is let go, 0 to 1. Default 0.5.
    pub threshold: f64,
    /// Branches that are tried for each trajectory of the group at the most; at least 1. Default 2.
    pub tries: usize,
}

impl Default for LookaheadOptions {
    fn default() -> Self {
        Self { window: 30, likeness: Likeness::default(), threshold: 0.5, tries: 2 }
    }
}

impl NamedOptions for LookaheadOptions {
    fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        for (name, value) in [("window", self.window), ("tries", self.tries)] {
            if value == 0 {
                problems.push(format!("{name} is 0, must be at least 1"));
            }
        }
        if !(0.0..=1.0).contains(&self.threshold) {
            problems.push(format!("threshold is {}, must be 0 to 1", self.threshold));
        }
        problems
    }
}

/// Lookahead tree rollouts (LATR, and its code's measures of likeness): one episode is played from the start; forks begin at the tokens that it was least sure of, and a branch whose next `window` tokens are like those of its origin is let go, until the group is full of leaves
/// that differ. What is still missing when all tries are over begins at the start.
///
/// Reconstructed: a fork begins where the token that was sampled was in doubt, where the code looks at the probabilities of all candidates; and a branch is played to its end before it is compared, where the code stops it there, so that it saves nothing but the update.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Lookahead {
    options: LookaheadOptions,
}

impl Lookahead {
    /// A strategy with these options.
    ///
    /// # Errors
    ///
    /// [`StrategyError::Row`] lists the options that are outside their range.
    pub fn new(options: LookaheadOptions) -> Result<Self, StrategyError> {
        StrategyError::refuse("lookahead", options.problems())?;
        Ok(Self { options })
    }

    /// Whether a branch goes another way than its origin behind where it forked.
    fn differs(&self, branch: &Trajectory, origin: &Trajectory, at: BranchPoint) -> bool {
        let LookaheadOptions { window, likeness, threshold, .. } = self.options;
        let (own, other) = (behind(branch, at, window), behind(origin, at, window));
        let length = own.len().min(other.len());
        let alike = match likeness {
            _ if own == other => 1.0,
            Likeness::RougeL => rouge_l(&own, &other),
            Likeness::SuffixMatch => suffix_match(&own[..length], &other[..length]),
        };
        alike <= threshold
    }
}

/// The first tokens that were sampled behind a place.
fn behind(trajectory: &Trajectory, at: BranchPoint, count: usize) -> Vec<u32> {
    let turns = trajectory.turns.iter().skip(at.turn);
    let tokens = turns.flat_map(|turn| turn.sampled.ids.iter().copied());
    tokens.skip(at.token).take(count).collect()
}

#[async_trait]
impl RolloutStrategy for Lookahead {
    fn name(&self) -> &'static str {
        "lookahead"
    }

    fn branches(&self) -> bool {
        true
    }

    async fn grow(&self, group: &GroupInProgress<'_>) -> Vec<Trajectory> {
        let size = group.size();
        let Some(trunk) = group.episode(0).await else {
            return from_start(group, 1..size).await;
        };
        let candidates = critical_tokens(&trunk, self.options.tries * (size - 1));
        let mut grown = vec![trunk.clone()];
        let mut tried = candidates.chunks(size.max(2) - 1).enumerate();
        while grown.len() < size
            && let Some((round, points)) = tried.next()
        {
            let points = &points[..points.len().min(size - grown.len())];
            let branches = points
                .iter()
                .enumerate()
                .map(|(number, at)| group.branch(1 + round * size + number, &trunk, *at));
            for (branch, at) in join_all(branches).await.into_iter().zip(points) {
                let Some(branch) = branch else { continue };
                debug_assert!(
                    branch.turns.iter().take(at.turn).all(|it| it.source == Source::Inherited)
                );
                match self.differs(&branch, &trunk, *at) {
                    true => grown.push(branch),
                    false => group.play_more(1),
                }
            }
        }
        let first = 1 + (self.options.tries + 1) * size;
        let missing = size - grown.len();
        grown.extend(from_start(group, first..first + missing).await);
        grown
    }
}

#[cfg(test)]
mod tests {
    use spar_core::Seed;

    use super::*;
    use crate::fake_environment::{FakeEnvironment, fake_task};
    use crate::policies::{RandomPolicy, ScriptedPolicy};
    use crate::{
        Cancellation, CollectConfig, CollectRequest, Collection, Seating, SharedPlayer,
        collect_groups,
    };

    async fn grow(player: SharedPlayer) -> Collection {
        let strategy = Lookahead::default();
        let tasks = [fake_task(0)];
        let request = CollectRequest {
            tasks: &tasks,
            player,
            seating: Seating::default(),
            strategy: &strategy,
            open: FakeEnvironment::new().opener(),
            seed: Seed::from_u64(5),
            cancellation: &Cancellation::new(),
            on_episode: &|_| {},
        };
        let config = CollectConfig { group_size: 4, ..CollectConfig::default() };
        collect_groups(&request, &config).await
    }

    #[tokio::test]
    async fn groups_are_full_and_branches_that_are_alike_are_let_go() {
        let scripted = SharedPlayer::of(ScriptedPolicy::new(["right"]));
        for player in [scripted, SharedPlayer::of(RandomPolicy)] {
            let collection = grow(player).await;
            assert_eq!(collection.groups[0].trajectories.len(), 4);
            assert_eq!(collection.counts.missing(), 0);
        }
    }

    #[tokio::test]
    async fn likeness_is_that_of_the_tokens_behind_the_fork() {
        let collection = grow(SharedPlayer::of(ScriptedPolicy::new(["right"]))).await;
        let origin = collection.groups[0].trajectories[0].clone();
        let at = BranchPoint { turn: 1, token: 2 };
        let mut branch = origin.clone();
        for likeness in [Likeness::RougeL, Likeness::SuffixMatch] {
            let options = LookaheadOptions { likeness, window: 8, ..LookaheadOptions::default() };
            let strategy = Lookahead::new(options).unwrap();
            assert!(!strategy.differs(&origin, &origin, at), "it goes the same way");
            branch.turns[1].sampled.ids[2..].fill(7);
            branch.turns[2].sampled.ids.fill(9);
            assert!(strategy.differs(&branch, &origin, at), "{likeness:?}");
            // What stands before the fork is not compared.
            branch.turns.clone_from(&origin.turns);
            branch.turns[0].sampled.ids.fill(9);
            branch.turns[1].sampled.ids[..2].fill(9);
            assert!(!strategy.differs(&branch, &origin, at));
        }
        assert_eq!(
            LookaheadOptions { window: 0, tries: 0, threshold: 2.0, ..Default::default() }
                .problems()
                .len(),
            3
        );
    }
}
