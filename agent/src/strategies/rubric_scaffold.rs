//! Rubrics that are shown to some of a group, and fade.

use async_trait::async_trait;
use futures::future::join_all;
use rand::seq::SliceRandom;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use spar_core::registry::NamedOptions;
use spar_core::{Message, Role, Seed, Trajectory};
use spar_tasks::rubric_of;

use super::guidance::{GuidedContext, without_guidance};
use super::{RolloutStrategy, StrategyError};
use crate::GroupInProgress;

/// Options of [`RubricScaffold`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RubricScaffoldOptions {
    /// The iteration by which the scaffold has faded to one half; above 0. Default 20.
    pub half: f64,
    /// How steeply it fades there, above 0: by `1 / steepness` iterations behind that it has fallen to about a quarter. Default 0.2.
    pub steepness: f64,
    /// The share of the rubric below which nothing is shown, above 0, below 1. Default 0.02.
    pub least: f64,
    /// In which context episodes behind a scaffold are trained. Of `plain`, they are left out where the member that sees nothing has failed, whose prompt is theirs. Default `guided`.
    pub context: GuidedContext,
}

impl Default for RubricScaffoldOptions {
    fn default() -> Self {
        Self { half: 20.0, steepness: 0.2, least: 0.02, context: GuidedContext::default() }
    }
}

impl NamedOptions for RubricScaffoldOptions {
    fn problems(&self) -> Vec<String> {
        let positive = [("half", self.half), ("steepness", self.steepness)];
        let wrong = positive.into_iter().filter(|(_, it)| !(it.is_finite() && *it > 0.0));
        let mut problems: Vec<String> =
            wrong.map(|(name, value)| format!("{name} is {value}, must be above 0")).collect();
        if !(self.least > 0.0 && self.least < 1.0) {
            problems.push(format!("least is {}, must be above 0 and below 1", self.least));
        }
        problems
    }
}

/// Rubric-scaffolded rollouts (RuscaRL, arXiv 2508.16949): the criteria of the task's rubric are said to the policy before it begins, to the members of a group in different amounts, and to all of them less and less:
///
/// ```text
/// share(i, t) = (G - i) / (G - 1) * sigmoid(steepness (half - t)),   i = 1..G, t the iteration
/// ```
///
/// so that the last member sees none of it, and behind the scaffold's end nobody does. Which criteria a member sees is drawn; those that tell what an answer must not have are among them. The rubric is the list `metadata.rubric` of the task, which the
/// grader `rubric` judges by; where there is none, it is the [solution](GroupInProgress::solution), an action being a criterion.
///
/// Reconstructed: the two factors are the paper's, their numbers are not known. What was shown stands in the record as injected.
#[derive(Debug, Default)]
pub struct RubricScaffold {
    options: RubricScaffoldOptions,
    /// Iterations so far.
    done: u64,
}

impl RubricScaffold {
    /// A strategy with these options.
    ///
    /// # Errors
    ///
    /// [`StrategyError::Row`] lists the options that are outside their range.
    pub fn new(options: RubricScaffoldOptions) -> Result<Self, StrategyError> {
        StrategyError::refuse("rubric_scaffold", options.problems())?;
        Ok(Self { options, done: 0 })
    }

    /// The share of the rubric that this member of a group of this size is shown now, from 0 to 1.
    fn share(&self, member: usize, size: usize) -> f64 {
        let RubricScaffoldOptions { half, steepness, least, .. } = self.options;
        let of_group = match size {
            0 | 1 => 1.0,
            size => (size - 1 - member.min(size - 1)) as f64 / (size - 1) as f64,
        };
        let of_time = 1.0 / (1.0 + (steepness * (self.done as f64 - half)).exp());
        let share = of_group * of_time;
        if share < least { 0.0 } else { share }
    }

    /// What is said to a member; absent where that is nothing.
    fn said(
        &self,
        rubric: &[String],
        (member, size): (usize, usize),
        seed: Seed,
    ) -> Option<Message> {
        let count = (self.share(member, size) * rubric.len() as f64).ceil() as usize;
        if count == 0 {
            return None;
        }
        let mut places: Vec<usize> = (0..rubric.len()).collect();
        places.shuffle(&mut seed.derive("criteria", member).rng());
        places.truncate(count);
        places.sort_unstable();
        let lines: Vec<String> = places.iter().map(|it| format!("- {}", rubric[*it])).collect();
        Some(Message::new(Role::User, format!("A good answer has this:\n{}", lines.join("\n"))))
    }
}

#[async_trait]
impl RolloutStrategy for RubricScaffold {
    fn name(&self) -> &'static str {
        "rubric_scaffold"
    }

    async fn grow(&self, group: &GroupInProgress<'_>) -> Vec<Trajectory> {
        // A rubric that cannot be read is told of by its grader.
        let rubric = rubric_of(group.task()).unwrap_or_default();
        let worded = rubric.iter().map(|it| match it.points < 0.0 {
            true => format!("not: {}", it.criterion),
            false => it.criterion.clone(),
        });
        let mut rubric: Vec<String> = worded.collect();
        if rubric.is_empty() && self.share(0, group.size()) > 0.0 {
            rubric = group.solution().await;
        }
        let seed = group.seed();
        let said = |member| self.said(&rubric, (member, group.size()), seed);
        let grown = join_all((0..group.size()).map(|member| async move {
            match said(member) {
                Some(said) => group.episode_behind(member, vec![said]).await,
                None => group.episode(member).await,
            }
        }));
        let mut grown: Vec<Trajectory> = grown.await.into_iter().flatten().collect();
        if self.options.context == GuidedContext::Plain {
            let is_plain =
                |it: &&Trajectory| it.turns.first().is_some_and(|it| it.injected.is_empty());
            // The last member is shown nothing; where it failed, nobody knows what the others would have read.
            let plain = grown.iter().find(is_plain).map(|it| it.turns[0].prompt.clone());
            let is_shown =
                |it: &Trajectory| it.turns.first().is_some_and(|it| !it.injected.is_empty());
            grown = grown
                .into_iter()
                .filter_map(|it| match is_shown(&it) {
                    true => without_guidance(it, 0, plain.as_ref()?),
                    false => Some(it),
                })
                .collect();
        }
        grown
    }

    fn learn(&mut self) -> Vec<(String, f64)> {
        let share = self.share(0, 1);
        self.done += 1;
        vec![("scaffold_share".to_owned(), share)]
    }

    fn state(&self) -> Value {
        self.done.into()
    }

    fn load(&mut self, state: &Value) -> Result<(), StrategyError> {
        let problem = || vec!["its state is that of none".to_owned()];
        match state.as_u64() {
            Some(done) => self.done = done,
            None => StrategyError::refuse("rubric_scaffold", problem())?,
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use spar_core::Source;

    use super::*;
    use crate::fake_environment::{FakeEnvironment, fake_task};
    use crate::policies::ScriptedPolicy;
    use crate::{
        Cancellation, CollectConfig, CollectRequest, Collection, PlayedEpisode, Seating,
        SharedPlayer, collect_groups,
    };

    async fn grow(strategy: &RubricScaffold) -> Vec<Trajectory> {
        grow_of(strategy, 5).await
    }

    /// What became of a group of this size.
    async fn grow_of(strategy: &RubricScaffold, group_size: usize) -> Vec<Trajectory> {
        let mut collection = collect(strategy, group_size, &FakeEnvironment::new()).await;
        assert_eq!(collection.counts.missing(), 0);
        collection.groups.remove(0).trajectories
    }

    /// Plays a group of this size, one member after the other, and none anew.
    async fn collect(
        strategy: &RubricScaffold,
        group_size: usize,
        environment: &FakeEnvironment,
    ) -> Collection {
        let mut task = fake_task(0);
        let criteria = ["greets", "asks", "answers", "thanks"];
        let rubric = criteria.map(|it| serde_json::json!({ "criterion": it }));
        task.parameters = serde_json::json!({ "metadata": { "rubric": rubric } });
        let tasks = [task];
        let request = CollectRequest {
            tasks: &tasks,
            player: SharedPlayer::Policy(Arc::new(ScriptedPolicy::new(["right"]))),
            seating: Seating::default(),
            strategy,
            open: environment.opener(),
            seed: Seed::from_u64(5),
            cancellation: &Cancellation::new(),
            on_episode: &|_: &PlayedEpisode<'_>| {},
        };
        let concurrency = 1.into();
        let config =
            CollectConfig { group_size, concurrency, refills: 0, ..CollectConfig::default() };
        collect_groups(&request, &config).await
    }

    /// How many criteria each of a group was shown.
    fn shown(group: &[Trajectory]) -> Vec<usize> {
        let lines = |it: &Trajectory| {
            it.turns[0].injected.first().map_or(0, |it| it.text().matches("\n- ").count())
        };
        group.iter().map(lines).collect()
    }

    #[tokio::test]
    async fn members_see_different_shares_of_the_rubric_and_in_the_end_nobody_any() {
        let options = RubricScaffoldOptions {
            half: 10.0,
            steepness: 1.0,
            ..RubricScaffoldOptions::default()
        };
        let mut strategy = RubricScaffold::new(options).unwrap();
        let group = grow(&strategy).await;
        assert_eq!(shown(&group), [4, 3, 2, 1, 0], "it has hardly begun to fade");
        assert_eq!(group[0].turns[0].source, Source::Hinted);
        assert!(group[0].turns[0].injected[0].text().contains("- greets\n- asks"));
        let mut shares = Vec::new();
        for _ in 0..30 {
            shares.push(strategy.learn()[0].1);
        }
        assert!(shares.windows(2).all(|pair| pair[1] <= pair[0]), "{shares:?}");
        assert_eq!((shares[10], shares[29]), (0.5, 0.0));
        assert_eq!(shown(&grow(&strategy).await), [0; 5]);
        let mut half = RubricScaffold::new(options).unwrap();
        half.load(&10.into()).unwrap();
        assert_eq!((shown(&grow(&half).await), half.state()), (vec![2, 2, 1, 1, 0], 10.into()));
        assert!(half.load(&Value::Null).is_err());
    }

    #[tokio::test]
    async fn who_failed_is_missing_though_others_cannot_be_trained_without_it() {
        let context = GuidedContext::Plain;
        let options = RubricScaffoldOptions { context, ..RubricScaffoldOptions::default() };
        let strategy = RubricScaffold::new(options).unwrap();
        let environment = FakeEnvironment::new();
        // The start that all share, and three steps of each of four; the fifth sees nothing.
        environment.breaks_once_after(1 + 4 * 3);
        let Collection { groups, counts, .. } = collect(&strategy, 5, &environment).await;
        assert!(groups[0].trajectories.is_empty(), "nobody knows what they would have read");
        assert_eq!((counts.wanted, counts.finished, counts.missing()), (5, 4, 1));
    }

    #[tokio::test]
    async fn scaffolded_episodes_can_be_trained_without_the_scaffold() {
        let context = GuidedContext::Plain;
        let options = RubricScaffoldOptions { context, ..RubricScaffoldOptions::default() };
        let group = grow(&RubricScaffold::new(options).unwrap()).await;
        assert_eq!((group.len(), shown(&group)), (5, vec![0; 5]));
        assert!(group.iter().all(|it| it.turns[0].prompt == group[4].turns[0].prompt));
        // A group of one has no member that sees nothing.
        assert!(grow_of(&RubricScaffold::new(options).unwrap(), 1).await.is_empty());
        let guided = RubricScaffoldOptions::default();
        assert_eq!(grow_of(&RubricScaffold::new(guided).unwrap(), 1).await.len(), 1);
        let wrong = RubricScaffoldOptions { half: 0.0, least: 1.0, ..options };
        assert_eq!(wrong.problems().len(), 2);
    }
}
