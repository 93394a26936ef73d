//! How a reference model is held.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Recipe;

/// How the reference model is held: the policy as it was when the stage began, whose log-probabilities are computed once
/// per sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReferenceHold {
    /// Its weights stay in memory.
    Memory,
    /// Its weights are read from its checkpoint in every iteration and are in memory only while samples
    /// are read.
    Disk,
    /// The policy without its adapter, which is the model that the run started from; takes no
    /// memory of its own.
    AdapterOff,
}

impl ReferenceHold {
    /// What is used where a stage says `given`; `is_first` where nothing is trained before it.
    pub(crate) fn or_default(given: Option<Self>, has_adapter: bool, is_first: bool) -> Self {
        given.unwrap_or(match has_adapter && is_first {
            true => Self::AdapterOff,
            false => Self::Memory,
        })
    }

    /// What is wrong with what a stage says, whose objective asks for a reference model or not.
    pub(super) fn problem(
        given: Option<Self>,
        is_asked_for: bool,
        recipe: &Recipe,
    ) -> Option<String> {
        match given {
            Some(_) if !is_asked_for => {
                Some("reference has no effect: the objective asks for none".to_owned())
            }
            Some(Self::AdapterOff) if recipe.adapters().is_empty() => {
                Some("reference is `adapter_off`: there is no adapter, set [lora]".to_owned())
            }
            _ => None,
        }
    }
}
