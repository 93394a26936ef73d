//! Failed episodes are tried again with guidance.

use async_trait::async_trait;
use futures::future::join_all;
use rand::RngExt;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::registry::NamedOptions;
use spar_core::{Seed, Source, Trajectory};

use super::branching::unsureness;
use super::guidance::{Guidance, GuidedContext, guide, without_guidance};
use super::members::{from_start, leave_room};
use super::{RolloutStrategy, StrategyError};
use crate::{BranchPoint, GroupInProgress};

/// Options of [`Retry`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RetryOptions {
    /// Episodes that nobody guides, at least 1 and fewer than the group has trajectories; the others are retries of those that failed. Default 2.
    pub attempts: usize,
    /// What guides a retry. Default `feedback`.
    pub guidance: Guidance,
    /// The share of the solution that is told, above 0, at most 1; of guidance `solution` alone. Default 0.5.
    pub ratio: f64,
    /// Where a retry begins. Default `start`.
    pub from: RetryFrom,
    /// In which context retries are trained. Default `guided`.
    pub context: GuidedContext,
}

/// Where a retry begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RetryFrom {
    /// At the start of the task.
    #[default]
    Start,
    /// At the first turn whose action could not be executed, or else the last one.
    FirstError,
    /// At the turn in which the policy was least sure of what it did.
    Unsure,
    /// At a turn that is drawn evenly.
    Uniform,
}

impl Default for RetryOptions {
    fn default() -> Self {
        Self {
            attempts: 2,
            guidance: Guidance::default(),
            ratio: 0.5,
            from: RetryFrom::default(),
            context: GuidedContext::default(),
        }
    }
}

impl NamedOptions for RetryOptions {
    fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        if self.attempts == 0 {
            problems.push("attempts is 0, must be at least 1".to_owned());
        }
        if !(self.ratio > 0.0 && self.ratio <= 1.0) {
            problems.push(format!("ratio is {}, must be above 0 and at most 1", self.ratio));
        }
        if self.guidance != Guidance::Solution && self.ratio != Self::default().ratio {
            problems.push("ratio has no effect without guidance `solution`".to_owned());
        }
        problems
    }
}

/// Failed episodes are tried again behind guidance, in the same group.
///
/// - From the start: Agent-RLVR (arXiv 2506.11425) with `solution` as its plan, or the errors of the tests as `feedback`; Critique-GRPO (arXiv 2506.03106), whose refinements are trained in the context of the question alone, with `context = "plain"`.
/// - From a pivot: reflect-then-retry (R3L, arXiv 2601.03715) and corrections from the first error (SCOPE, arXiv 2602.24110): the environment is brought to that turn, and the turns before it are shared with the failed episode; `mask_shared_turns` of the stage leaves these out of the loss. Deviation: a rule finds
///   the pivot, where R3L asks the policy for it.
///
/// The first `attempts` episodes are played by themselves; each further one retries one of those that failed, one after the other. Where none failed, or there is nothing to say, there are more attempts. A retry names what it retries as its parent.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Retry {
    options: RetryOptions,
}

impl Retry {
    /// A strategy with these options.
    ///
    /// # Errors
    ///
    /// [`StrategyError::Row`] lists the options that are outside their range.
    pub fn new(options: RetryOptions) -> Result<Self, StrategyError> {
        StrategyError::refuse("retry", options.problems())?;
        Ok(Self { options })
    }

    /// The turn from which a failed episode is tried again.
    fn pivot(&self, failed: &Trajectory, seed: Seed) -> usize {
        let own = |turn: &usize| failed.turns[*turn].source != Source::Inherited;
        let turns: Vec<usize> = (0..failed.turns.len()).filter(own).collect();
        let last = turns.last().copied().unwrap_or(0);
        match self.options.from {
            RetryFrom::Start => 0,
            RetryFrom::FirstError => {
                let is_wrong = |turn: &&usize| {
                    !failed.turns[**turn].step.valid || failed.turns[**turn].parsed.is_invalid()
                };
                turns.iter().find(is_wrong).copied().unwrap_or(last)
            }
            RetryFrom::Unsure => {
                let unsure = |turn: &usize| unsureness(&failed.turns[*turn]);
                let most = turns
                    .iter()
                    .copied()
                    .reduce(|a, b| if unsure(&b) > unsure(&a) { b } else { a });
                most.unwrap_or(0)
            }
            RetryFrom::Uniform if turns.is_empty() => 0,
            RetryFrom::Uniform => turns[seed.rng().random_range(0..turns.len())],
        }
    }

    async fn retry(
        &self,
        group: &GroupInProgress<'_>,
        member: usize,
        failed: &Trajectory,
    ) -> Option<Trajectory> {
        let RetryOptions { guidance, ratio, from, context, .. } = self.options;
        let Some(said) = guide(group, guidance, ratio, failed).await else {
            return group.episode(member).await;
        };
        let at = self.pivot(failed, group.seed().derive("pivot", member));
        let mut retried = match from {
            RetryFrom::Start => group.episode_behind(member, vec![said]).await?,
            _ => group.branch_behind(member, failed, BranchPoint::before(at), vec![said]).await?,
        };
        retried.lineage.parent = Some(failed.episode);
        if context == GuidedContext::Guided {
            return Some(retried);
        }
        let plain = failed.turns.get(at)?.prompt.clone();
        without_guidance(retried, at, &plain)
    }
}

#[async_trait]
impl RolloutStrategy for Retry {
    fn name(&self) -> &'static str {
        "retry"
    }

    fn check(&self, group_size: usize) -> Result<(), StrategyError> {
        leave_room("retry", "attempts", self.options.attempts, group_size)
    }

    fn branches(&self) -> bool {
        true
    }

    async fn grow(&self, group: &GroupInProgress<'_>) -> Vec<Trajectory> {
        let attempts = self.options.attempts.min(group.size());
        let mut grown = from_start(group, 0..attempts).await;
        let failed: Vec<&Trajectory> = grown.iter().filter(|it| !it.success).collect();
        let next = |member: usize| {
            let failed = failed.get((member - attempts) % failed.len().max(1)).copied();
            async move {
                match failed {
                    Some(failed) => self.retry(group, member, failed).await,
                    None => group.episode(member).await,
                }
            }
        };
        let others = join_all((attempts..group.size()).map(next)).await;
        grown.extend(others.into_iter().flatten());
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
        Cancellation, CollectConfig, CollectRequest, Collection, Seating, SharedPlayer,
        collect_groups,
    };

    async fn grow(options: RetryOptions, action: &'static str) -> (Arc<dyn Policy>, Collection) {
        let policy: Arc<dyn Policy> = Arc::new(ScriptedPolicy::new([action]));
        let strategy = Retry::new(options).unwrap();
        strategy.check(4).unwrap();
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
        let mut config = CollectConfig { group_size: 4, ..CollectConfig::default() };
        config.episode.max_turns = Some(4);
        (policy, collect_groups(&request, &config).await)
    }

    #[tokio::test]
    async fn every_failed_attempt_is_tried_again_behind_what_came_of_it() {
        for context in [GuidedContext::Guided, GuidedContext::Plain] {
            let options = RetryOptions { context, ..RetryOptions::default() };
            let (_policy, collection) = grow(options, "left").await;
            let group = &collection.groups[0].trajectories;
            assert_eq!(group.len(), 4);
            for (number, retried) in group[2..].iter().enumerate() {
                retried.validate().unwrap();
                assert_eq!(retried.lineage.parent, Some(group[number].episode));
                assert_eq!(retried.lineage.fork_turn, 0);
                let first = &retried.turns[0];
                assert_eq!(first.source, Source::Hinted);
                let is_guided = context == GuidedContext::Guided;
                assert_eq!(!first.injected.is_empty(), is_guided);
                if is_guided {
                    assert!(first.injected[0].text().starts_with("An earlier try failed: "));
                }
                assert_eq!(first.prompt == group[number].turns[0].prompt, !is_guided);
            }
        }
        let (_policy, collection) = grow(RetryOptions::default(), "right").await;
        let group = &collection.groups[0].trajectories;
        assert!(group.iter().all(|it| it.success && it.lineage.parent.is_none()));
    }

    #[tokio::test]
    async fn from_a_pivot_the_turns_before_it_are_shared_and_the_others_its_own() {
        for from in [RetryFrom::FirstError, RetryFrom::Unsure, RetryFrom::Uniform] {
            for context in [GuidedContext::Guided, GuidedContext::Plain] {
                let options = RetryOptions { from, context, ..RetryOptions::default() };
                let (_policy, collection) = grow(options, "left").await;
                let group = &collection.groups[0].trajectories;
                for retried in &group[2..] {
                    retried.validate().unwrap();
                    let parent = group.iter().find(|it| Some(it.episode) == retried.lineage.parent);
                    let (parent, pivot) = (parent.unwrap(), retried.lineage.fork_turn as usize);
                    for (own, taken) in retried.turns.iter().zip(&parent.turns[..pivot]) {
                        assert_eq!(own.source, Source::Inherited);
                        assert_eq!((&own.prompt, &own.sampled), (&taken.prompt, &taken.sampled));
                    }
                    let own = &retried.turns[pivot..];
                    assert_eq!(own[0].source, Source::Hinted);
                    assert!(own[1..].iter().all(|turn| turn.source == Source::Sampled));
                    if context == GuidedContext::Plain {
                        assert_eq!(own[0].prompt, parent.turns[pivot].prompt);
                    }
                }
            }
        }
    }

    #[test]
    fn groups_have_room_for_retries() {
        let told = Retry::default().check(2).unwrap_err().to_string();
        assert!(told.ends_with("attempts is 2, and groups have 2 trajectories"), "{told}");
        let wrong = RetryOptions { attempts: 0, ratio: 0.7, ..RetryOptions::default() };
        assert_eq!(wrong.problems().len(), 2);
    }
}
