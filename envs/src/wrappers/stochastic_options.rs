//! The options of the wrappers that make environments stochastic.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::registry::NamedOptions;

/// What is carried out in the place of an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Replacement {
    /// Any of the actions that are listed, each as likely.
    #[default]
    Random,
    /// The action that was carried out last.
    Sticky,
}

/// What is left out at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// All that is shown.
    All,
    /// A line.
    Line,
    /// A sentence.
    #[default]
    Sentence,
}

/// When a concept takes the place of another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Drift {
    /// Once, for good.
    #[default]
    Sudden,
    /// Again and again, for as many steps each.
    Cyclic,
}

/// What an environment drifts to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Concept {
    /// Listed actions mean each other: always the same ones in an episode.
    #[default]
    RenamedActions,
    /// Actions are replaced, as by `random_actions`.
    RandomActions,
    /// Actions happen, as by `random_events`.
    RandomEvents,
    /// Sentences are missing, as by `missing_observations`.
    MissingObservations,
    /// Letters and digits are wrong, as by `noisy_observations`.
    NoisyObservations,
}

/// Options of `random_actions`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RandomActionsOptions {
    /// How often an action that can be carried out is replaced, 0 to 1. Default 0.25.
    pub probability: f64,
    /// By what. Default `random`.
    pub replacement: Replacement,
}

/// Options of `random_events`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RandomEventsOptions {
    /// How often something happens before an action is carried out, 0 to 1. Default 0.1.
    pub probability: f64,
}

/// Options of `concept_drift`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ConceptDriftOptions {
    /// When it drifts. Default `sudden`.
    pub drift: Drift,
    /// The steps before that, and between one drift and the next; at least 1. Default 5.
    pub threshold: u32,
    /// What it drifts to. Default `renamed_actions`.
    pub concept: Concept,
    /// How often the concept shows, as its wrapper has it, 0 to 1; with `renamed_actions`, how often names are exchanged. Default 1.
    pub probability: f64,
}

/// Options of `missing_observations`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct MissingObservationsOptions {
    /// How often each part is missing, 0 to 1. Default 0.25.
    pub probability: f64,
    /// What a part is. Default `sentence`.
    pub unit: Unit,
}

/// Options of `noisy_observations`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct NoisyObservationsOptions {
    /// How often a letter or digit is replaced by another one, 0 to 1. Default 0.05.
    pub probability: f64,
}

impl Default for RandomActionsOptions {
    fn default() -> Self {
        Self { probability: 0.25, replacement: Replacement::default() }
    }
}

impl Default for RandomEventsOptions {
    fn default() -> Self {
        Self { probability: 0.1 }
    }
}

impl Default for ConceptDriftOptions {
    fn default() -> Self {
        Self {
            drift: Drift::default(),
            threshold: 5,
            concept: Concept::default(),
            probability: 1.0,
        }
    }
}

impl Default for MissingObservationsOptions {
    fn default() -> Self {
        Self { probability: 0.25, unit: Unit::default() }
    }
}

impl Default for NoisyObservationsOptions {
    fn default() -> Self {
        Self { probability: 0.05 }
    }
}

fn probability_problems(probability: f64) -> Vec<String> {
    match (0.0..=1.0).contains(&probability) {
        true => Vec::new(),
        false => vec![format!("`probability` is {probability}, must be from 0 to 1")],
    }
}

impl NamedOptions for RandomActionsOptions {
    fn problems(&self) -> Vec<String> {
        probability_problems(self.probability)
    }
}

impl NamedOptions for RandomEventsOptions {
    fn problems(&self) -> Vec<String> {
        probability_problems(self.probability)
    }
}

impl NamedOptions for ConceptDriftOptions {
    fn problems(&self) -> Vec<String> {
        let mut problems = probability_problems(self.probability);
        if self.threshold == 0 {
            problems.push("`threshold` is 0, must be at least 1".to_owned());
        }
        problems
    }
}

impl NamedOptions for MissingObservationsOptions {
    fn problems(&self) -> Vec<String> {
        probability_problems(self.probability)
    }
}

impl NamedOptions for NoisyObservationsOptions {
    fn problems(&self) -> Vec<String> {
        probability_problems(self.probability)
    }
}
