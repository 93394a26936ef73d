//! The group filters that have a name.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use spar_core::registry::Options;

use super::{All, FilterError, GroupFilter, MaxVariance, WithSignal};

/// Which filter, with which options.
///
/// ```
/// use spar_agent::filters::{FilterConfig, open_filter};
///
/// let config: FilterConfig = serde_json::from_str(r#"{ "kind": "max_variance", "keep": 4 }"#)?;
/// assert_eq!(open_filter(&config).unwrap().name(), "max_variance");
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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
        Self { kind: kind.into(), options: Map::new() }
    }
}

impl Default for FilterConfig {
    /// `all`.
    fn default() -> Self {
        Self::new("all")
    }
}

/// A filter that has a name.
pub struct FilterEntry {
    /// The name.
    pub name: &'static str,
    /// One line on what it does.
    pub about: &'static str,
    /// The paper it comes from; empty where there is none.
    pub source: &'static str,
    /// Makes one from its options.
    pub open: fn(&Options) -> Result<Box<dyn GroupFilter>, FilterError>,
}

/// All filters that have a name; a new one is one file and one row here.
pub fn filter_registry() -> &'static [FilterEntry] {
    &[
        FilterEntry {
            name: "all",
            about: "Every trajectory is trained.",
            source: "",
            open: |given| options::<Nothing>("all", given).map(|_| Box::new(All) as _),
        },
        FilterEntry {
            name: "with_signal",
            about: "Groups whose returns are all equal are left out.",
            source: "DAPO, arXiv 2503.14476",
            open: |given| {
                options::<Nothing>("with_signal", given).map(|_| Box::new(WithSignal) as _)
            },
        },
        FilterEntry {
            name: "max_variance",
            about: "Of each group, those trajectories whose returns have the greatest variance.",
            source: "PODS, arXiv 2504.13818",
            open: |given| Ok(Box::new(MaxVariance::new(options("max_variance", given)?)?)),
        },
    ]
}

/// Makes a filter.
///
/// # Errors
///
/// [`FilterError`] when no filter has the name, or it does not have the options.
pub fn open_filter(config: &FilterConfig) -> Result<Box<dyn GroupFilter>, FilterError> {
    match filter_registry().iter().find(|entry| entry.name == config.kind) {
        Some(entry) => (entry.open)(&config.options),
        None => {
            let known: Vec<_> =
                filter_registry().iter().map(|entry| format!("`{}`", entry.name)).collect();
            Err(FilterError::Unknown { kind: config.kind.clone(), known: known.join(", ") })
        }
    }
}

/// Options of filters that have none.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Nothing {}

fn options<T: DeserializeOwned>(kind: &'static str, given: &Options) -> Result<T, FilterError> {
    serde_json::from_value(Value::Object(given.clone()))
        .map_err(|source| FilterError::Options { kind, source })
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
        assert_eq!(
            error(r#"{ "kind": "some" }"#),
            "find group filter `some`: known are `all`, `with_signal`, `max_variance`"
        );
        assert!(error(r#"{ "kind": "all", "keep": 1 }"#).contains("options of group filter `all`"));
        let range = error(r#"{ "kind": "max_variance", "keep": 0 }"#);
        assert_eq!(range, "use group filter `max_variance`: keep is 0, must be at least 1");
    }
}
