//! Groups over the paraphrases of a task.

use async_trait::async_trait;
use futures::future::join_all;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use spar_core::registry::NamedOptions;
use spar_core::{Message, Role, Trajectory};

use super::{RolloutStrategy, StrategyError};
use crate::GroupInProgress;

/// Options of [`Paraphrases`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ParaphrasesOptions {
    /// How tasks that have no paraphrases of their own are put otherwise, `{task}` being what they ask for; at least one, each with that. Default `In other words: {task}` and
    /// `Once more, briefly: {task}`.
    pub wordings: Vec<String>,
}

impl Default for ParaphrasesOptions {
    fn default() -> Self {
        let wordings = ["In other words: {task}", "Once more, briefly: {task}"];
        Self { wordings: wordings.map(str::to_owned).into() }
    }
}

impl NamedOptions for ParaphrasesOptions {
    fn problems(&self) -> Vec<String> {
        let lacks = self.wordings.iter().filter(|wording| !wording.contains("{task}"));
        let mut problems: Vec<String> =
            lacks.map(|wording| format!("wordings: `{wording}` has no `{{task}}`")).collect();
        if self.wordings.is_empty() {
            problems.push("wordings are none, must be at least one".to_owned());
        }
        problems
    }
}

/// A group over paraphrases (PS-GRPO of Con-RAG, arXiv 2510.04392): its members are shared out to the task as it is and to its paraphrases, so that the reward shaper `agreement` can compare what they come to.
///
/// The paraphrases are the list `metadata.paraphrases` of the task, or else the `wordings`. Reconstructed from the abstract; deviation: a paraphrase is said behind the question and does not take its place, since what the environment shows is its own. It stands in the record as injected.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Paraphrases {
    options: ParaphrasesOptions,
}

impl Paraphrases {
    /// A strategy with these options.
    ///
    /// # Errors
    ///
    /// [`StrategyError::Row`] lists the options that are outside their range.
    pub fn new(options: ParaphrasesOptions) -> Result<Self, StrategyError> {
        StrategyError::refuse("paraphrases", options.problems())?;
        Ok(Self { options })
    }

    /// The paraphrases of a group's task.
    fn of(&self, group: &GroupInProgress<'_>) -> Vec<String> {
        let told = &group.task().parameters["metadata"]["paraphrases"];
        let own: Vec<String> = match told {
            Value::Array(told) => {
                told.iter().filter_map(|it| it.as_str()).map(str::to_owned).collect()
            }
            _ => Vec::new(),
        };
        if !own.is_empty() {
            return own;
        }
        let task = group.asked();
        self.options.wordings.iter().map(|wording| wording.replace("{task}", &task)).collect()
    }
}

#[async_trait]
impl RolloutStrategy for Paraphrases {
    fn name(&self) -> &'static str {
        "paraphrases"
    }

    async fn grow(&self, group: &GroupInProgress<'_>) -> Vec<Trajectory> {
        let paraphrases = self.of(group);
        let member = |member: usize| {
            // The first of each round sees the task as it is.
            let wording = (member % (paraphrases.len() + 1)).checked_sub(1);
            let said = wording.map(|it| Message::new(Role::User, paraphrases[it].clone()));
            async move {
                match said {
                    Some(said) => group.episode_behind(member, vec![said]).await,
                    None => group.episode(member).await,
                }
            }
        };
        let grown = join_all((0..group.size()).map(member)).await;
        grown.into_iter().flatten().collect()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use spar_core::Seed;

    use super::*;
    use crate::fake_environment::{FakeEnvironment, fake_task};
    use crate::policies::ScriptedPolicy;
    use crate::{
        Cancellation, CollectConfig, CollectRequest, PlayedEpisode, Seating, SharedPlayer,
        collect_groups,
    };

    async fn said(metadata: Value) -> Vec<String> {
        let mut task = fake_task(0);
        task.parameters = serde_json::json!({ "metadata": metadata });
        let tasks = [task];
        let strategy = Paraphrases::default();
        let request = CollectRequest {
            tasks: &tasks,
            player: SharedPlayer::Policy(Arc::new(ScriptedPolicy::new(["right"]))),
            seating: Seating::default(),
            strategy: &strategy,
            open: FakeEnvironment::new().opener(),
            seed: Seed::from_u64(5),
            cancellation: &Cancellation::new(),
            on_episode: &|_: &PlayedEpisode<'_>| {},
        };
        let config = CollectConfig { group_size: 5, ..CollectConfig::default() };
        let collection = collect_groups(&request, &config).await;
        let said = |it: &Trajectory| {
            it.turns[0].injected.first().map(|it| it.text().into_owned()).unwrap_or_default()
        };
        collection.groups[0].trajectories.iter().map(said).collect()
    }

    #[tokio::test]
    async fn members_are_shared_out_to_the_paraphrases_of_a_task() {
        let words = ["", "In other words: go right", "Once more, briefly: go right"];
        assert_eq!(said(Value::Null).await, [words[0], words[1], words[2], words[0], words[1]]);
        let own = said(serde_json::json!({ "paraphrases": ["to the right, please"] })).await;
        assert_eq!(own, ["", "to the right, please", "", "to the right, please", ""]);
        let wrong = ParaphrasesOptions { wordings: vec!["again".to_owned()] };
        assert!(Paraphrases::new(wrong).is_err());
        assert_eq!(ParaphrasesOptions { wordings: Vec::new() }.problems().len(), 1);
    }
}
