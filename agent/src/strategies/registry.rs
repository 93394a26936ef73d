//! The rollout strategies that have a name.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Branching, Independent, RolloutStrategy};

/// Which rollout strategy, with which options.
///
/// ```
/// use spar_agent::strategies::{StrategyConfig, open_strategy};
///
/// let config: StrategyConfig =
///     serde_json::from_str(r#"{ "kind": "branching", "trunks": 4 }"#)?;
/// assert_eq!(open_strategy(&config).unwrap().name(), "branching");
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StrategyConfig {
    /// The strategy's name.
    pub kind: String,
    /// Its options; those left out have the defaults that it documents.
    #[serde(flatten)]
    pub options: Map<String, Value>,
}

impl Default for StrategyConfig {
    /// `independent`.
    fn default() -> Self {
        Self { kind: "independent".to_owned(), options: Map::new() }
    }
}

/// Makes a rollout strategy from its options.
pub type OpenStrategy = fn(&Map<String, Value>) -> Result<Box<dyn RolloutStrategy>, StrategyError>;

/// A rollout strategy that has a name.
pub struct StrategyEntry {
    /// The name.
    pub name: &'static str,
    /// One line on what it does.
    pub about: &'static str,
    /// Where it is described.
    pub source: &'static str,
    /// Makes one from its options.
    pub open: OpenStrategy,
}

/// A rollout strategy cannot be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StrategyError {
    /// No strategy has this name.
    #[error("find rollout strategy `{kind}`: known are {known}")]
    Unknown {
        /// The name asked for.
        kind: String,
        /// The names there are.
        known: String,
    },
    /// The strategy does not have this option, or not with this value.
    #[error("understand the options of rollout strategy `{kind}`")]
    Options {
        /// The strategy.
        kind: &'static str,
        /// What is wrong with them.
        #[source]
        source: serde_json::Error,
    },
    /// Options are outside their range, or do not fit together.
    #[error("use rollout strategy `{kind}`: {problems}")]
    Range {
        /// The strategy.
        kind: &'static str,
        /// All problems, one after the other.
        problems: String,
    },
}

/// All rollout strategies that have a name; a new one is one file and one row here.
pub fn strategy_registry() -> &'static [StrategyEntry] {
    &[
        StrategyEntry {
            name: "independent",
            about: "Every trajectory is an episode of its own from the group's start.",
            source: "DeepSeekMath, arXiv 2402.03300",
            open: |given| options::<NoOptions>("independent", given).map(|_| Independent.boxed()),
        },
        StrategyEntry {
            name: "branching",
            about: "Some episodes are trunks; the others fork off from them at a turn or a token.",
            source: "Tree-GRPO, arXiv 2509.21240",
            open: |given| {
                Branching::new(options("branching", given)?).map(RolloutStrategyExt::boxed)
            },
        },
    ]
}

/// Makes a rollout strategy.
///
/// # Errors
///
/// [`StrategyError`] when none has the name, it does not have the options, or one is out of range.
pub fn open_strategy(config: &StrategyConfig) -> Result<Box<dyn RolloutStrategy>, StrategyError> {
    match strategy_registry().iter().find(|entry| entry.name == config.kind) {
        Some(entry) => (entry.open)(&config.options),
        None => {
            let known: Vec<_> =
                strategy_registry().iter().map(|entry| format!("`{}`", entry.name)).collect();
            Err(StrategyError::Unknown { kind: config.kind.clone(), known: known.join(", ") })
        }
    }
}

/// A strategy that has nothing to set.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NoOptions {}

fn options<T: DeserializeOwned>(
    kind: &'static str,
    given: &Map<String, Value>,
) -> Result<T, StrategyError> {
    serde_json::from_value(Value::Object(given.clone()))
        .map_err(|source| StrategyError::Options { kind, source })
}

/// Puts a strategy behind its trait.
trait RolloutStrategyExt: RolloutStrategy + Sized + 'static {
    fn boxed(self) -> Box<dyn RolloutStrategy> {
        Box::new(self)
    }
}

impl<T: RolloutStrategy + Sized + 'static> RolloutStrategyExt for T {}

#[cfg(test)]
mod tests {
    use std::error::Error;

    use super::*;

    fn error(config: &str) -> String {
        let error = open_strategy(&serde_json::from_str(config).unwrap()).err().unwrap();
        match error.source() {
            Some(source) => format!("{error}: {source}"),
            None => error.to_string(),
        }
    }

    #[test]
    fn every_strategy_opens_with_its_defaults() {
        for entry in strategy_registry() {
            let config = StrategyConfig { kind: entry.name.to_owned(), options: Map::new() };
            let strategy = open_strategy(&config).unwrap();
            assert_eq!(strategy.name(), entry.name);
            strategy.check(8).unwrap();
            assert!(!entry.about.is_empty() && !entry.source.is_empty());
        }
    }

    #[test]
    fn what_is_not_known_is_refused() {
        assert_eq!(
            error(r#"{ "kind": "tree" }"#),
            "find rollout strategy `tree`: known are `independent`, `branching`"
        );
        assert!(error(r#"{ "kind": "independent", "trunks": 1 }"#).contains("field `trunks`"));
        let range = error(r#"{ "kind": "branching", "trunks": 0, "rounds": 0 }"#);
        assert!(range.contains("trunks is 0") && range.contains("rounds is 0"), "{range}");
    }
}
