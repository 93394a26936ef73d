//! Answers are thought over again.

use async_trait::async_trait;
use futures::future::join_all;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::registry::NamedOptions;
use spar_core::{Message, Role, Source, Trajectory};

use super::members::{from_start, leave_room};
use super::{RolloutStrategy, StrategyError};
use crate::{BranchPoint, GroupInProgress};

/// Characters of an answer that are said again at the most.
const MAX_CHARS: usize = 2_000;

/// Options of [`Rethink`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RethinkOptions {
    /// The share of a group's trajectories that rethink, above 0, below 1; at least one does and at least one does not. Default 0.5.
    pub share: f64,
    /// What is said behind the answer. Default `Wait. Think about that again, and answer anew.`
    pub trigger: String,
}

impl Default for RethinkOptions {
    fn default() -> Self {
        Self { share: 0.5, trigger: "Wait. Think about that again, and answer anew.".to_owned() }
    }
}

impl NamedOptions for RethinkOptions {
    fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        if !(self.share > 0.0 && self.share < 1.0) {
            problems.push(format!("share is {}, must be above 0 and below 1", self.share));
        }
        if self.trigger.trim().is_empty() {
            problems.push("trigger is empty, and has to be what is said".to_owned());
        }
        problems
    }
}

/// Forced rethinking (VL-Rethinker, arXiv 2504.08837, section 3.3; reconstructed from its abstract and a summary): some episodes go back to before the last turn of another one, are told what was answered there and to think again, and go on.
///
/// What is said is in no environment's words and never trained, and neither is the answer that is said again: it is trained where it was sampled. Assumed: that the answer and the trigger are one message, where there the trigger stands
/// behind the answer's tokens and the model goes on writing, and the share. An episode that rethinks names the other as its parent and shares the turns before its last with it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Rethink {
    options: RethinkOptions,
}

impl Rethink {
    /// A strategy with these options.
    ///
    /// # Errors
    ///
    /// [`StrategyError::Row`] lists the options that are outside their range.
    pub fn new(options: RethinkOptions) -> Result<Self, StrategyError> {
        StrategyError::refuse("rethink", options.problems())?;
        Ok(Self { options })
    }

    /// Plays the member of this number from before the last turn of another one; from the start where that one has none.
    async fn rethink(
        &self,
        group: &GroupInProgress<'_>,
        member: usize,
        first: &Trajectory,
    ) -> Option<Trajectory> {
        let own = |turn: &usize| first.turns[*turn].source != Source::Inherited;
        let Some(last) = (0..first.turns.len()).rev().find(own) else {
            return group.episode(member).await;
        };
        let answer: String = first.turns[last].text.trim().chars().take(MAX_CHARS).collect();
        let said = format!("{answer}\n\n{}", self.options.trigger);
        let said = vec![Message::new(Role::User, said)];
        let mut again = group.branch_behind(member, first, BranchPoint::before(last), said).await?;
        again.lineage.parent = Some(first.episode);
        Some(again)
    }
}

#[async_trait]
impl RolloutStrategy for Rethink {
    fn name(&self) -> &'static str {
        "rethink"
    }

    fn check(&self, group_size: usize) -> Result<(), StrategyError> {
        leave_room("rethink", "episodes that are thought over again", 1, group_size)
    }

    fn branches(&self) -> bool {
        true
    }

    async fn grow(&self, group: &GroupInProgress<'_>) -> Vec<Trajectory> {
        let size = group.size();
        let again = (size as f64 * self.options.share).round() as usize;
        let firsts = size - again.clamp(1, size.max(2) - 1);
        let mut grown = from_start(group, 0..firsts).await;
        let next = |member: usize| {
            let first = grown.get((member - firsts) % grown.len().max(1));
            async move {
                match first {
                    Some(first) => self.rethink(group, member, first).await,
                    None => group.episode(member).await,
                }
            }
        };
        let others = join_all((firsts..size).map(next)).await;
        grown.extend(others.into_iter().flatten());
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
    async fn last_answers_are_said_again_with_the_trigger_and_sampled_anew() {
        let policy: Arc<dyn Policy> = Arc::new(ScriptedPolicy::new(["right"]));
        let strategy = Rethink::default();
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
        let played = collect_groups(&request, &config).await;
        let group = &played.groups[0].trajectories;
        assert_eq!(group.len(), 4);
        assert!(group[..2].iter().all(|it| it.lineage.parent.is_none()));
        for (first, again) in group[..2].iter().zip(&group[2..]) {
            again.validate().unwrap();
            let last = first.turns.len() - 1;
            assert_eq!(again.lineage.parent, Some(first.episode));
            assert_eq!(again.lineage.fork_turn as usize, last);
            let anew = &again.turns[last];
            assert_eq!(anew.source, Source::Hinted);
            let said = anew.injected[0].text();
            assert!(said.starts_with("right\n\nWait. "), "{said}");
        }
    }

    #[test]
    fn some_rethink_and_some_do_not() {
        assert!(Rethink::default().check(2).is_ok() && Rethink::default().check(1).is_err());
        for share in [0.0, 1.0, f64::NAN] {
            let options = RethinkOptions { share, trigger: " ".to_owned() };
            assert_eq!(options.problems().len(), 2, "{share}");
        }
    }
}
