//! The heads that have a name.

use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::StateHead;
use super::hidden_layer::{HiddenLayer, HiddenLayerOptions};
use super::linear::Linear;
use crate::StateHeadError;

/// Which head reads numbers off the decoder's final states, and how it is trained.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct StateHeadConfig {
    /// Name of the head; one in [`state_head_registry`]. Default `linear`.
    pub kind: String,
    /// Whether the head's gradient goes on into the decoder; otherwise the decoder learns nothing from its loss.
    /// Default true.
    pub trunk_gradient: bool,
    /// What the optimiser's learning rate is multiplied by for the head; positive. Default 1.
    pub learning_rate_scale: f32,
    /// The options of the named head. Default empty.
    #[serde(flatten)]
    pub options: Map<String, Value>,
}

impl Default for StateHeadConfig {
    fn default() -> Self {
        Self {
            kind: "linear".to_owned(),
            trunk_gradient: true,
            learning_rate_scale: 1.0,
            options: Map::new(),
        }
    }
}

impl StateHeadConfig {
    /// All that is wrong with the values; empty when nothing is.
    pub fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        let scale = self.learning_rate_scale;
        if !(scale.is_finite() && scale > 0.0) {
            problems.push(format!("`learning_rate_scale` {scale} must be positive"));
        }
        problems.extend(open_state_head(self).err().map(|error| error.to_string()));
        problems
    }
}

type Constructor = fn(&Map<String, Value>) -> Result<Arc<dyn StateHead>, String>;

/// A head that has a name.
pub struct StateHeadEntry {
    /// The name.
    pub name: &'static str,
    /// One line on what it computes.
    pub about: &'static str,
    /// Where it is described.
    pub source: &'static str,
    open: Constructor,
}

/// All heads that have a name; a new one is a file in this folder and a row here.
pub fn state_head_registry() -> &'static [StateHeadEntry] {
    &[
        StateHeadEntry {
            name: "linear",
            about: "A weighted sum of the state, and a bias.",
            source: "the value head of TRL's AutoModelForCausalLMWithValueHead, zero to start with",
            open: |given| {
                options::<NoOptions>(given)?;
                Ok(Arc::new(Linear))
            },
        },
        StateHeadEntry {
            name: "hidden_layer",
            about: "The same of a hidden layer of `width` numbers with tanh.",
            source: "the usual critic of two layers",
            open: |given| Ok(Arc::new(HiddenLayer::new(options::<HiddenLayerOptions>(given)?)?)),
        },
    ]
}

/// Makes a head.
///
/// # Errors
///
/// [`StateHeadError`] when no head has the name, or it does not have the options.
pub fn open_state_head(config: &StateHeadConfig) -> Result<Arc<dyn StateHead>, StateHeadError> {
    let Some(entry) = state_head_registry().iter().find(|entry| entry.name == config.kind) else {
        let known: Vec<_> =
            state_head_registry().iter().map(|entry| format!("`{}`", entry.name)).collect();
        return Err(StateHeadError::Unknown { kind: config.kind.clone(), known: known.join(", ") });
    };
    (entry.open)(&config.options)
        .map_err(|detail| StateHeadError::Options { kind: entry.name, detail })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NoOptions {}

fn options<T: DeserializeOwned>(given: &Map<String, Value>) -> Result<T, String> {
    serde_json::from_value(Value::Object(given.clone())).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(text: &str) -> Vec<String> {
        serde_json::from_str::<StateHeadConfig>(text).unwrap().problems()
    }

    #[test]
    fn every_head_opens_under_its_name() {
        for entry in state_head_registry() {
            assert!(!entry.about.is_empty() && !entry.source.is_empty());
            let config = StateHeadConfig { kind: entry.name.to_owned(), ..Default::default() };
            assert_eq!(open_state_head(&config).unwrap().name(), entry.name);
        }
    }

    #[test]
    fn what_is_wrong_is_told_at_once() {
        assert_eq!(problems("{}"), [""; 0]);
        let told = problems(r#"{ "kind": "cubic", "learning_rate_scale": 0 }"#);
        assert_eq!(told.len(), 2);
        assert_eq!(told[1], "find head `cubic`: known are `linear`, `hidden_layer`");
        assert!(problems(r#"{ "width": 3 }"#)[0].contains("unknown field `width`"));
        assert!(problems(r#"{ "kind": "hidden_layer", "width": 0 }"#)[0].contains("width is 0"));
        assert_eq!(problems(r#"{ "kind": "hidden_layer", "width": 3 }"#), [""; 0]);
    }
}
