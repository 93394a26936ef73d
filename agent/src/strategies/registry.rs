//! The rollout strategies that have a name.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::registry::{Axis, Given, OptionSet, Options, Row, RowError, Table};

use super::{Branching, BranchingOptions, Independent, RolloutStrategy};

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
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StrategyConfig {
    /// The strategy's name.
    pub kind: String,
    /// Its options; those left out have the defaults that it documents.
    #[serde(flatten)]
    pub options: Options,
}

impl Default for StrategyConfig {
    /// `independent`.
    fn default() -> Self {
        Self { kind: "independent".to_owned(), options: Options::new() }
    }
}

/// Makes a rollout strategy from its options.
pub type OpenStrategy = fn(&Given<'_>) -> Result<Box<dyn RolloutStrategy>, StrategyError>;

/// A rollout strategy that has a name.
pub type StrategyRow = Row<OpenStrategy>;

/// A rollout strategy cannot be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StrategyError {
    /// No strategy has the name, or it does not have the options.
    #[error(transparent)]
    Row(#[from] RowError),
}

impl StrategyError {
    /// Refuses a strategy where there are problems with it.
    ///
    /// # Errors
    ///
    /// [`StrategyError::Row`] when there are any.
    pub fn refuse(name: &str, problems: Vec<String>) -> Result<(), Self> {
        Ok(RowError::refuse(AXIS.what, name, problems)?)
    }
}

const AXIS: Axis = Axis {
    name: "strategies",
    what: "rollout strategy",
    about: "How the episodes of a group come about.",
};

const ROWS: &[StrategyRow] = &[
    Row {
        name: "independent",
        about: "Every trajectory is an episode of its own from the group's start.",
        source: "DeepSeekMath, arXiv 2402.03300",
        formula: "",
        options: OptionSet::NONE,
        open: |_| Ok(Box::new(Independent)),
    },
    Row {
        name: "branching",
        about: "Some episodes are trunks; the others fork off from them at a turn or a token.",
        source: "Tree-GRPO, arXiv 2509.21240, section 3.2; branch points are drawn over a group, not over each tree",
        formula: "P(turn) is uniform, or with `unsure` in proportion to -mean log pi of its tokens",
        options: OptionSet::of::<BranchingOptions>(),
        open: |given| Ok(Box::new(Branching::new(given.read()?)?)),
    },
];

static TABLE: Table<OpenStrategy> = Table::new(AXIS, ROWS);

/// All rollout strategies that have a name; a new one is one file and one row here.
pub fn strategy_registry() -> &'static Table<OpenStrategy> {
    &TABLE
}

/// Makes a rollout strategy.
///
/// # Errors
///
/// [`StrategyError::Row`] when none has the name, it does not have the options, or one is out of range.
pub fn open_strategy(config: &StrategyConfig) -> Result<Box<dyn RolloutStrategy>, StrategyError> {
    let (row, given) = strategy_registry().choose(&config.kind, &config.options)?;
    (row.open)(&given)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(config: &str) -> String {
        open_strategy(&serde_json::from_str(config).unwrap()).err().unwrap().to_string()
    }

    #[test]
    fn every_strategy_opens_with_its_defaults() {
        for entry in strategy_registry() {
            let config = StrategyConfig { kind: entry.name.to_owned(), options: Options::new() };
            let strategy = open_strategy(&config).unwrap();
            assert_eq!(strategy.name(), entry.name);
            strategy.check(8).unwrap();
        }
    }

    #[test]
    fn what_is_not_known_is_refused() {
        assert_eq!(
            error(r#"{ "kind": "tree" }"#),
            "find rollout strategy `tree`: known are `independent`, `branching`"
        );
        assert!(error(r#"{ "kind": "independent", "trunks": 1 }"#).contains("no option `trunks`"));
        let range = error(r#"{ "kind": "branching", "trunks": 0, "rounds": 0 }"#);
        assert!(range.contains("trunks is 0") && range.contains("rounds is 0"), "{range}");
    }
}
