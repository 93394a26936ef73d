//! Several learners that one stage plays and trains.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use async_trait::async_trait;
use spar_core::{Completion, CompletionRequest, Message, Policy, PolicyError};
use spar_policy::LocalPolicy;
use spar_trainer::{Trained, Trainer};

/// A learner of the stage that is under way that is not the run's present one.
pub(super) struct Companion {
    pub(super) trainer: Trainer,
    pub(super) trained: Trained,
}

/// The learner of a seat: by `ENVIRONMENT/SEAT`, or else by its environment.
pub(super) fn learner_of_seat<'a>(
    learners: &'a BTreeMap<String, String>,
    environment: &str,
    seat: &str,
) -> Option<&'a String> {
    learners.get(&format!("{environment}/{seat}")).or_else(|| learners.get(environment))
}

/// Whether learners are named for an environment, be it seat by seat.
pub(super) fn plays(learners: &BTreeMap<String, String>, environment: &str) -> bool {
    learners.keys().any(|key| key.split('/').next() == Some(environment))
}

/// The learners behind `done` iterations where those of the seats of an environment exchange their seats every so often: each goes one seat on, the last to the
/// first.
pub(super) fn exchanged(
    learners: &BTreeMap<String, String>,
    every: Option<u64>,
    done: u64,
) -> BTreeMap<String, String> {
    let Some(every) = every.filter(|every| *every > 0) else { return learners.clone() };
    let mut seats: BTreeMap<&str, Vec<(&String, &String)>> = BTreeMap::new();
    for (key, learner) in learners {
        let environment = key.split_once('/').map_or(key.as_str(), |(environment, _)| environment);
        seats.entry(environment).or_default().push((key, learner));
    }
    let mut now = BTreeMap::new();
    for seats in seats.values() {
        let shift = (done / every % seats.len() as u64) as usize;
        for (place, (key, _)) in seats.iter().enumerate() {
            let learner = seats[(place + seats.len() - shift) % seats.len()].1;
            now.insert((*key).clone(), learner.clone());
        }
    }
    now
}

/// The learners of a stage as one policy, which sends every environment, or every seat of one, to its own; one engine answers all of them in
/// one batch.
pub(super) struct LearnersPolicy {
    by_learner: BTreeMap<String, Arc<LocalPolicy>>,
    /// Learners by the environment that they play, or its seat.
    learners: RwLock<BTreeMap<String, String>>,
}

impl LearnersPolicy {
    pub(super) fn new(
        by_learner: BTreeMap<String, Arc<LocalPolicy>>,
        learners: BTreeMap<String, String>,
    ) -> Self {
        Self { by_learner, learners: RwLock::new(learners) }
    }

    /// From now on these play.
    pub(super) fn seat(&self, learners: BTreeMap<String, String>) {
        *self.learners.write().unwrap_or_else(PoisonError::into_inner) = learners;
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
        let learners = self.learners.read().unwrap_or_else(PoisonError::into_inner);
        let policy = self.by_learner.get(learners.get(environment)?)?;
        Some(policy.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn learners_exchange_their_seats_every_so_many_iterations() {
        let named = map(&[("panel/a", "one"), ("panel/b", "two"), ("sums", "one")]);
        assert_eq!(learner_of_seat(&named, "panel", "b").unwrap(), "two");
        assert_eq!(learner_of_seat(&named, "sums", "player").unwrap(), "one");
        assert!(learner_of_seat(&named, "panel", "c").is_none());
        assert!(plays(&named, "panel") && !plays(&named, "pan"));
        let swapped = map(&[("panel/a", "two"), ("panel/b", "one"), ("sums", "one")]);
        let at = |done| exchanged(&named, Some(3), done);
        for (done, expected) in [(0, &named), (2, &named), (3, &swapped), (5, &swapped)] {
            assert_eq!(at(done), *expected);
        }
        assert_eq!((at(6), exchanged(&named, None, 3)), (named.clone(), named.clone()));
        let three = map(&[("p/a", "1"), ("p/b", "2"), ("p/c", "3")]);
        assert_eq!(exchanged(&three, Some(1), 1), map(&[("p/a", "3"), ("p/b", "1"), ("p/c", "2")]));
    }
}
