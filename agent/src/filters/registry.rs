//! The group filters that have a name.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::registry::{Axis, Given, OptionSet, Options, Row, Table};

use super::{
    All, Consistent, ConsistentConfig, FilterError, GroupFilter, MaxVariance, MaxVarianceConfig,
    TopBottom, TopBottomConfig, WithSignal,
};

/// Which filter, with which options.
///
/// ```
/// use spar_agent::filters::{FilterConfig, open_filter};
///
/// let config: FilterConfig = serde_json::from_str(r#"{ "kind": "max_variance", "keep": 4 }"#)?;
/// assert_eq!(open_filter(&config).unwrap().name(), "max_variance");
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FilterConfig {
    /// The filter's name.
    pub kind: String,
    /// Its options; those left out have the defaults its config documents.
    #[serde(flatten)]
    pub options: Options,
}

impl FilterConfig {
    /// The filter `kind` with its default options.
    pub fn new(kind: impl Into<String>) -> Self {
        Self { kind: kind.into(), options: Options::new() }
    }
}

impl Default for FilterConfig {
    /// `all`.
    fn default() -> Self {
        Self::new("all")
    }
}

/// Makes a filter from its options.
pub type OpenFilter = fn(&Given<'_>) -> Result<Box<dyn GroupFilter>, FilterError>;

/// A filter that has a name.
pub type FilterRow = Row<OpenFilter>;

pub(super) const AXIS: Axis = Axis {
    name: "filters",
    what: "group filter",
    about: "Which trajectories of a group are trained.",
};

const ROWS: &[FilterRow] = &[
    Row {
        name: "all",
        about: "Every trajectory is trained.",
        source: "own",
        formula: "",
        options: OptionSet::NONE,
        open: |_| Ok(Box::new(All)),
    },
    Row {
        name: "with_signal",
        about: "Groups whose returns are all equal are left out.",
        source: "DAPO, arXiv 2503.14476, section 3.2, without sampling others in their place",
        formula: "keep i iff min R < max R over its group",
        options: OptionSet::NONE,
        open: |_| Ok(Box::new(WithSignal)),
    },
    Row {
        name: "max_variance",
        about: "Of each group, those trajectories whose returns have the greatest variance.",
        source: "PODS, arXiv 2504.13818, max-variance down-sampling",
        formula: "keep the `keep` trajectories S of a group that maximise Var(R_i : i in S)",
        options: OptionSet::of::<MaxVarianceConfig>(),
        open: |given| Ok(Box::new(MaxVariance::new(given.read()?)?)),
    },
    Row {
        name: "top_bottom",
        about: "Of each group, the best and the worst trajectories.",
        source: "PF-PPO, arXiv 2409.06957, without drawing with replacement",
        formula: "keep the `top` trajectories of a group with the highest returns and the `bottom` with the lowest",
        options: OptionSet::of::<TopBottomConfig>(),
        open: |given| Ok(Box::new(TopBottom::new(given.read()?)?)),
    },
    Row {
        name: "consistent",
        about: "Of the right ones those whose process scores best, of the wrong ones those whose scores worst, as many of each.",
        source: "PROF, arXiv 2509.03403, reconstructed from its abstract",
        formula: "keep / 2 of the greatest scores among successes, keep / 2 of the least among failures",
        options: OptionSet::of::<ConsistentConfig>(),
        open: |given| Ok(Box::new(Consistent::new(given.read()?)?)),
    },
];

static TABLE: Table<OpenFilter> = Table::new(AXIS, ROWS);

/// All filters that have a name; a new one is one file and one row here.
pub fn filter_registry() -> &'static Table<OpenFilter> {
    &TABLE
}

/// Makes a filter.
///
/// # Errors
///
/// [`FilterError::Row`] when no filter has the name, or it does not have the options.
pub fn open_filter(config: &FilterConfig) -> Result<Box<dyn GroupFilter>, FilterError> {
    let (row, given) = filter_registry().choose(&config.kind, &config.options)?;
    (row.open)(&given)
}

#[cfg(test)]
mod tests {
    use super::super::kept;
    use super::*;
    use crate::credit::BatchView;
    use crate::credit::test_vectors::returns_view;

    #[test]
    fn every_filter_opens_and_tells_of_every_trajectory() {
        let groups = [&[1.0, 0.0, 1.0, 0.5, 0.2][..], &[], &[1.0, 1.0]];
        let batch: BatchView<'_> =
            groups.iter().map(|returns| returns_view(returns.iter().copied())).collect();
        for entry in filter_registry() {
            let filter = open_filter(&FilterConfig::new(entry.name)).unwrap();
            assert_eq!(filter.name(), entry.name);
            assert_eq!(kept(filter.as_ref(), &batch).len(), 7);
        }
        assert_eq!(open_filter(&FilterConfig::default()).unwrap().name(), "all");
    }

    #[test]
    fn what_is_not_known_is_refused() {
        let error = |config: &str| {
            let error = open_filter(&serde_json::from_str(config).unwrap()).unwrap_err();
            error.to_string()
        };
        let unknown = error(r#"{ "kind": "some" }"#);
        assert!(unknown.starts_with("find group filter `some`: known are "), "{unknown}");
        let none = error(r#"{ "kind": "all", "keep": 1 }"#);
        assert_eq!(none, "use group filter `all`: there is no option `keep`: it has no options");
        let range = error(r#"{ "kind": "max_variance", "keep": 0 }"#);
        assert_eq!(range, "use group filter `max_variance`: keep is 0, must be at least 1");
    }
}
