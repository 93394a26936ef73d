//! What a recipe trains.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use spar_policy::LoraConfig;
use spar_policy::state_heads::StateHeadConfig;

use super::Recipe;

/// The learner of a recipe that names none.
pub const POLICY: &str = "policy";

/// A learner that has a name: a low-rank adapter on the frozen weights of `start_from`, which it shares with the others.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LearnerConfig {
    /// How its adapter is made.
    pub lora: LoraConfig,
    /// Its head that tells values beside the vocabulary's. Default absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value_head: Option<StateHeadConfig>,
}

impl Recipe {
    /// The adapters that are trained, by learner; none where all weights are.
    pub fn adapters(&self) -> BTreeMap<String, LoraConfig> {
        let named =
            self.learners.iter().map(|(name, learner)| (name.clone(), learner.lora.clone()));
        let single = self.lora.iter().map(|lora| (POLICY.to_owned(), lora.clone()));
        single.chain(named).collect()
    }

    /// The learner of a stage that asks for `wanted`.
    pub(crate) fn learner_of(&self, wanted: Option<&str>) -> Result<String, String> {
        let known = || {
            let names: Vec<_> = self.learners.keys().map(|name| format!("`{name}`")).collect();
            names.join(", ")
        };
        match wanted {
            Some(name) if self.learners.contains_key(name) => Ok(name.to_owned()),
            Some(name) if self.learners.is_empty() => {
                Err(format!("learner is `{name}`, and the recipe has no [learners.{name}]"))
            }
            Some(name) => Err(format!("learner is `{name}`: known are {}", known())),
            None if self.learners.len() > 1 => {
                Err(format!("learner is missing, and there are several: {}", known()))
            }
            None => Ok(self.learners.keys().next().map_or(POLICY, String::as_str).to_owned()),
        }
    }

    /// All that is wrong with the adapters.
    pub(super) fn adapter_problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        if self.needs_model && self.start_from.is_none() {
            problems.push(
                "the recipe goes on from a model, name one by `--start-from` or `start_from`"
                    .to_owned(),
            );
        }
        let single = self.lora.iter().map(|lora| ("lora".to_owned(), lora));
        let named = |(name, learner): (&String, _)| (format!("learners.{name}.lora"), learner);
        let of_learners = self.learners.iter().map(|(name, learner)| named((name, &learner.lora)));
        for (label, lora) in single.chain(of_learners) {
            problems.extend(lora.problems().into_iter().map(|it| format!("{label}: {it}")));
            if self.start_from.is_none() {
                problems.push(format!("{label}: there is no model to adapt, name one by `--start-from` or `start_from`"));
            }
        }
        if self.lora.is_some() && !self.learners.is_empty() {
            problems.push(
                "lora: has no effect beside [learners], each of which has its own".to_owned(),
            );
        }
        let is_plain = |name: &String| {
            !name.is_empty()
                && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
        };
        let strange = self.learners.keys().filter(|name| !is_plain(name));
        problems.extend(
            strange.map(|name| format!("learners.{name}: a name is letters, digits, `_` and `-`")),
        );
        problems
    }
}
