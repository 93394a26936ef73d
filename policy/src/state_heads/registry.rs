//! The heads that have a name.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use spar_core::registry::{Axis, Given, OptionSet, Options, Row, RowError, Table};

use super::StateHead;
use super::hidden_layer::{HiddenLayer, HiddenLayerOptions};
use super::histogram::{Histogram, HistogramOptions};
use super::linear::Linear;

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
    pub options: Options,
}

impl Default for StateHeadConfig {
    fn default() -> Self {
        Self {
            kind: "linear".to_owned(),
            trunk_gradient: true,
            learning_rate_scale: 1.0,
            options: Options::new(),
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
        problems.extend(open_state_head(self).err().iter().flat_map(RowError::problems));
        problems
    }
}

/// What makes a head of options.
pub type OpenStateHead = fn(&Given<'_>) -> Result<Arc<dyn StateHead>, RowError>;

/// A head that has a name.
pub type StateHeadRow = Row<OpenStateHead>;

const ROWS: &[StateHeadRow] = &[
    Row {
        name: "linear",
        about: "A weighted sum of the state, and a bias.",
        source: "the value head of TRL's AutoModelForCausalLMWithValueHead, zero to start with",
        formula: "v(x) = w x + b",
        options: OptionSet::NONE,
        open: |_| Ok(Arc::new(Linear { outputs: 1 })),
    },
    Row {
        name: "hidden_layer",
        about: "The same of a hidden layer of `width` numbers with tanh.",
        source: "the usual critic of two layers",
        formula: "v(x) = w tanh(W x + c) + b",
        options: OptionSet::of::<HiddenLayerOptions>(),
        open: |given| Ok(Arc::new(HiddenLayer::new(given.read()?, 1))),
    },
    Row {
        name: "histogram",
        about: "A histogram of the return over `bins`, learned by cross-entropy; the value is its mean.",
        source: "Stop Regressing, arXiv 2403.03950, sections 3.1 and 3.2; bins beyond the bounds in place of cutting a Gaussian off there",
        formula: "v(x) = sum_k q_k c_k, q = softmax(W x + b), or softmax(V tanh(W x + c) + b) with `width`; l = -sum_k p_k(R) log q_k",
        options: OptionSet::of::<HistogramOptions>(),
        open: |given| Ok(Arc::new(Histogram::new(&given.read()?))),
    },
];

static HEADS: Table<OpenStateHead> = Table::new(
    Axis {
        name: "heads",
        what: "head",
        about: "What reads values off the decoder's final states, in `[value_head]`.",
    },
    ROWS,
);

/// All heads that have a name; a new one is a file in this folder and a row here.
pub fn state_head_registry() -> &'static Table<OpenStateHead> {
    &HEADS
}

/// Makes a head.
///
/// # Errors
///
/// [`RowError`] when no head has the name, or tells all that is wrong with the options.
pub fn open_state_head(config: &StateHeadConfig) -> Result<Arc<dyn StateHead>, RowError> {
    let (row, given) = state_head_registry().choose(&config.kind, &config.options)?;
    (row.open)(&given)
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
            assert_eq!(entry.problems(), [""; 0]);
            let config = StateHeadConfig { kind: entry.name.to_owned(), ..Default::default() };
            assert_eq!(open_state_head(&config).unwrap().name(), entry.name);
        }
    }

    #[test]
    fn what_is_wrong_is_told_at_once() {
        assert_eq!(problems("{}"), [""; 0]);
        let told = problems(r#"{ "kind": "cubic", "learning_rate_scale": 0 }"#);
        assert_eq!(told.len(), 2);
        assert_eq!(told[1], "find head `cubic`: known are `linear`, `hidden_layer`, `histogram`");
        assert!(problems(r#"{ "kind": "liner" }"#)[0].contains("known are `linear`"));
        let told = problems(r#"{ "width": 3, "depth": 2, "learning_rate_scale": -1 }"#);
        assert_eq!(told.len(), 3, "{told:?}");
        assert_eq!(told[1], "head `linear`: there is no option `width`: it has no options");
        assert!(problems(r#"{ "kind": "hidden_layer", "width": 0 }"#)[0].contains("width is 0"));
        assert_eq!(problems(r#"{ "kind": "hidden_layer", "width": 3 }"#), [""; 0]);
        let of_histogram =
            |options: &str| problems(&format!(r#"{{ "kind": "histogram"{options} }}"#));
        assert_eq!(of_histogram(""), [""; 0]);
        assert_eq!(of_histogram(r#", "histogram": "two_hot", "bins": 2, "low": 0"#), [""; 0]);
        let told = of_histogram(r#", "bins": 7, "low": 1, "high": 1, "width": 0"#);
        assert_eq!(told.len(), 3, "{told:?}");
        assert!(told[0].ends_with("bins is 7, must be at least 8"), "{told:?}");
        assert!(told[1].contains("low is 1 and high is 1, must be finite and ascending"));
        assert!(of_histogram(r#", "sigma_ratio": 0.4"#)[0].contains("must be from 0.5 to 10"));
        let told = of_histogram(r#", "histogram": "two_hot", "sigma_ratio": 0.75"#);
        assert!(told[0].contains("sigma_ratio has no effect"), "{told:?}");
        assert!(of_histogram(r#", "histogram": "c51""#)[0].contains("two_hot"));
    }
}
