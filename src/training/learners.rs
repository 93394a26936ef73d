//! Several learners that one stage plays and trains.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use spar_core::{Completion, CompletionRequest, Message, Policy, PolicyError};
use spar_policy::LocalPolicy;
use spar_trainer::{Trained, Trainer};

/// A learner of the stage that is under way that is not the run's present one.
pub(super) struct Companion {
    pub(super) trainer: Trainer,
    pub(super) trained: Trained,
}

/// The learners of a stage as one policy, which sends every environment to its own; one engine answers all of them in
/// one batch.
pub(super) struct LearnersPolicy {
    by_learner: BTreeMap<String, Arc<LocalPolicy>>,
    /// Learners by the environment that they play.
    learners: BTreeMap<String, String>,
}

impl LearnersPolicy {
    pub(super) fn new(
        by_learner: BTreeMap<String, Arc<LocalPolicy>>,
        learners: BTreeMap<String, String>,
    ) -> Self {
        Self { by_learner, learners }
    }

    /// The policy of a learner.
    pub(super) fn of(&self, learner: &str) -> Option<&Arc<LocalPolicy>> {
        self.by_learner.get(learner)
    }
}

#[async_trait]
impl Policy for LearnersPolicy {
    fn name(&self) -> &str {
        "learners"
    }

    /// All of them have the words of the model below them.
    fn encode(&self, before: Option<&Message>, message: &Message) -> Vec<u32> {
        let first = self.by_learner.values().next();
        first.map(|policy| policy.encode(before, message)).unwrap_or_default()
    }

    async fn complete(&self, _: CompletionRequest) -> Result<Completion, PolicyError> {
        let what = "an environment that no learner of the stage plays".to_owned();
        Err(PolicyError::Unsupported { name: self.name().to_owned(), what })
    }

    fn for_environment(&self, environment: &str) -> Option<&dyn Policy> {
        let policy = self.by_learner.get(self.learners.get(environment)?)?;
        Some(policy.as_ref())
    }
}
