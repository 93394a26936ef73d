//! Groups that all fail are played again with hints.

use async_trait::async_trait;
use futures::future::join_all;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::Trajectory;
use spar_core::registry::NamedOptions;

use super::guidance::{GuidedContext, hint, without_guidance};
use super::members::from_start;
use super::{RolloutStrategy, StrategyError};
use crate::GroupInProgress;

/// Options of [`Hints`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct HintsOptions {
    /// The shares of the solution that are told, one after the other, until an episode succeeds: above 0, at most 1, each more than the one before. Default 0.25, 0.5 and 0.75.
    pub ratios: Vec<f64>,
    /// How many of a group's episodes see a hint at the most, the first ones being kept as they are; absent: all of them. Default absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hinted: Option<usize>,
    /// In which context hinted episodes are trained. Default `guided`: the prompt with the hint is what is trained, as in the code.
    pub context: GuidedContext,
}

impl Default for HintsOptions {
    fn default() -> Self {
        let ratios = vec![0.25, 0.5, 0.75];
        Self { ratios, hinted: None, context: GuidedContext::default() }
    }
}

impl NamedOptions for HintsOptions {
    fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        let rises = self.ratios.windows(2).all(|pair| pair[0] < pair[1]);
        let is_within = self.ratios.iter().all(|ratio| *ratio > 0.0 && *ratio <= 1.0);
        if self.ratios.is_empty() || !rises || !is_within {
            problems.push(format!(
                "ratios are {:?}, must be above 0, at most 1, each more than the one before",
                self.ratios
            ));
        }
        if self.hinted == Some(0) {
            problems.push("hinted is 0, must be at least 1 or absent".to_owned());
        }
        problems
    }
}

/// Difficulty-adaptive hints (GHPO, arXiv 2507.10628, and its code): where all episodes of a group fail, they are played again with a quarter of the solution as a hint, then with a half, then with three quarters, until one succeeds; the last ones that were played are the group. A group
/// of which any episode succeeds by itself never sees a hint.
///
/// With `hinted` only so many of a group are played again, beside those that nobody helped, as ADHint compares them. Where there is no [solution](GroupInProgress::solution), nothing is played again. Episodes behind a hint have a first turn that is
/// [hinted](spar_core::Source::Hinted), and the one that they were played for as their parent, of whose turns they take over none.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Hints {
    options: HintsOptions,
}

impl Hints {
    /// A strategy with these options.
    ///
    /// # Errors
    ///
    /// [`StrategyError::Row`] lists the options that are outside their range.
    pub fn new(options: HintsOptions) -> Result<Self, StrategyError> {
        StrategyError::refuse("hints", options.problems())?;
        Ok(Self { options })
    }
}

#[async_trait]
impl RolloutStrategy for Hints {
    fn name(&self) -> &'static str {
        "hints"
    }

    fn branches(&self) -> bool {
        true
    }

    async fn grow(&self, group: &GroupInProgress<'_>) -> Vec<Trajectory> {
        let size = group.size();
        let grown = from_start(group, 0..size).await;
        if grown.is_empty() || grown.iter().any(|trajectory| trajectory.success) {
            return grown;
        }
        let solution = group.solution().await;
        let hinted = self.options.hinted.unwrap_or(size).min(grown.len());
        let first = grown.len() - hinted;
        let mut last = grown.clone();
        for (round, ratio) in self.options.ratios.iter().enumerate() {
            let Some(hint) = hint(&solution, *ratio) else { break };
            group.play_more(hinted);
            let number = |place: usize| (round + 1) * size + place;
            let again = (0..hinted).map(|it| group.episode_behind(number(it), vec![hint.clone()]));
            let again = join_all(again).await;
            last.truncate(first);
            for (failed, again) in grown[first..].iter().zip(again) {
                let Some(mut again) = again else { continue };
                again.lineage.parent = Some(failed.episode);
                last.push(again);
            }
            if last.iter().any(|trajectory| trajectory.success) {
                break;
            }
        }
        if self.options.context == GuidedContext::Plain {
            let plain = grown[0].turns.first().map(|turn| turn.prompt.clone()).unwrap_or_default();
            let hinted = last.split_off(first);
            let is_hinted = |trajectory: &Trajectory| trajectory.lineage.parent.is_some();
            last.extend(hinted.into_iter().filter_map(|it| match is_hinted(&it) {
                true => without_guidance(it, 0, &plain),
                false => Some(it),
            }));
        }
        last
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
        Cancellation, CollectConfig, CollectRequest, Collection, Seating, SharedPlayer,
        collect_groups,
    };

    async fn grow(options: HintsOptions, player: SharedPlayer, solution: bool) -> Collection {
        let mut task = fake_task(0);
        if solution {
            task.parameters["metadata"] = serde_json::json!({ "solution": ["right", "right"] });
        }
        let strategy = Hints::new(options).unwrap();
        let tasks = [task];
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
        let mut config = CollectConfig { group_size: 3, ..CollectConfig::default() };
        config.episode.max_turns = Some(4);
        collect_groups(&request, &config).await
    }

    fn scripted(action: &'static str) -> (Arc<dyn Policy>, SharedPlayer) {
        let policy: Arc<dyn Policy> = Arc::new(ScriptedPolicy::new([action]));
        (policy.clone(), SharedPlayer::Policy(policy))
    }

    #[tokio::test]
    async fn groups_that_all_fail_see_more_of_the_solution_and_no_other_does() {
        let (_policy, player) = scripted("left");
        let collection = grow(HintsOptions::default(), player.clone(), true).await;
        let group = &collection.groups[0].trajectories;
        assert_eq!(group.len(), 3);
        for trajectory in group {
            let first = &trajectory.turns[0];
            assert_eq!(first.source, Source::Hinted);
            // Of two steps three quarters are both.
            assert_eq!(first.injected[0].text(), "Hint: right\nright");
            assert!(trajectory.lineage.parent.is_some() && trajectory.lineage.fork_turn == 0);
            assert!(trajectory.turns[1..].iter().all(|turn| turn.source == Source::Sampled));
            trajectory.validate().unwrap();
        }
        assert_eq!((collection.counts.finished, collection.counts.missing()), (12, 0));
        // What the task does not say, the environment's player who sees all knows.
        let shown = grow(HintsOptions::default(), player, false).await;
        let first = &shown.groups[0].trajectories[0].turns[0];
        assert!(first.injected[0].text().starts_with("Hint: right"), "{:?}", first.injected);

        let (_policy, player) = scripted("right");
        let collection = grow(HintsOptions::default(), player, true).await;
        let group = &collection.groups[0].trajectories;
        assert!(group.iter().any(|trajectory| trajectory.success));
        let turns = group.iter().flat_map(|trajectory| &trajectory.turns);
        assert!(turns.clone().all(|turn| turn.injected.is_empty()));
        assert_eq!(collection.counts.finished, 3);
    }

    #[tokio::test]
    async fn hinted_episodes_can_be_trained_without_the_hint() {
        let options = |context| HintsOptions { hinted: Some(2), context, ..Default::default() };
        let (_policy, player) = scripted("left");
        let guided = grow(options(GuidedContext::Guided), player.clone(), true).await;
        let plain = grow(options(GuidedContext::Plain), player, true).await;
        let (guided, plain) = (&guided.groups[0].trajectories, &plain.groups[0].trajectories);
        assert_eq!((guided.len(), plain.len()), (3, 3));
        assert_eq!(plain[0].lineage.parent, None, "the first is as it was played by itself");
        let alone = &plain[0].turns;
        for (with, without) in guided[1..].iter().zip(&plain[1..]) {
            without.validate().unwrap();
            assert_eq!(without.turns[0].prompt, alone[0].prompt);
            assert!(with.turns[0].prompt.appended.len() > alone[0].prompt.appended.len());
            for (with, without) in with.turns.iter().zip(&without.turns) {
                assert_eq!(with.sampled, without.sampled);
                assert_eq!(without.injected, []);
            }
            let shift = with.turns[0].prompt.appended.len() - alone[0].prompt.appended.len();
            assert_eq!(with.turns[1].prompt.kept - shift, without.turns[1].prompt.kept);
        }
    }

    #[test]
    fn ratios_rise() {
        for ratios in [vec![], vec![0.5, 0.5], vec![0.0], vec![1.5]] {
            assert!(Hints::new(HintsOptions { ratios, ..HintsOptions::default() }).is_err());
        }
    }
}
