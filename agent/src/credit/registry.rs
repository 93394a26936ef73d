//! The advantage estimators that have a name.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{AdvantageEstimator, CreditError, Gigpo, Grpo, Salt};

/// Which estimator, with which options.
///
/// ```
/// use spar_agent::credit::{CreditConfig, open_estimator};
///
/// let config: CreditConfig = serde_json::from_str(r#"{ "kind": "gigpo", "discount": 0.9 }"#)?;
/// assert_eq!(open_estimator(&config).unwrap().name(), "gigpo");
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CreditConfig {
    /// The estimator's name.
    pub kind: String,
    /// Its options; those left out have the defaults its config documents.
    #[serde(flatten)]
    pub options: Options,
}

impl CreditConfig {
    /// The estimator `kind` with its default options.
    pub fn new(kind: impl Into<String>) -> Self {
        Self { kind: kind.into(), options: Map::new() }
    }
}

impl Default for CreditConfig {
    /// `grpo` with its default options.
    fn default() -> Self {
        Self::new("grpo")
    }
}

/// An estimator that has a name.
pub struct EstimatorEntry {
    /// The name.
    pub name: &'static str,
    /// One line on what it does.
    pub about: &'static str,
    /// Makes one from its options.
    pub open: fn(&Options) -> Result<Box<dyn AdvantageEstimator>, CreditError>,
}

/// The options of an estimator, as they were written.
pub type Options = Map<String, Value>;

/// All estimators that have a name; a new one is one file and one row here.
pub fn credit_registry() -> &'static [EstimatorEntry] {
    &[
        EstimatorEntry {
            name: "grpo",
            about: "Every step takes its trajectory's advantage among the group.",
            open: |given| Ok(Box::new(Grpo::new(options("grpo", given)?)?)),
        },
        EstimatorEntry {
            name: "gigpo",
            about: "Adds the advantage among all steps that were taken in the same state.",
            open: |given| Ok(Box::new(Gigpo::new(options("gigpo", given)?)?)),
        },
        EstimatorEntry {
            name: "salt",
            about: "Equal transitions share their advantage: SALT reconstructed from summaries of it.",
            open: |given| Ok(Box::new(Salt::new(options("salt", given)?)?)),
        },
    ]
}

/// Makes an estimator.
///
/// # Errors
///
/// [`CreditError`] when no estimator has the name, or it does not have the options.
pub fn open_estimator(config: &CreditConfig) -> Result<Box<dyn AdvantageEstimator>, CreditError> {
    match credit_registry().iter().find(|entry| entry.name == config.kind) {
        Some(entry) => (entry.open)(&config.options),
        None => {
            let known: Vec<_> =
                credit_registry().iter().map(|entry| format!("`{}`", entry.name)).collect();
            Err(CreditError::Unknown { kind: config.kind.clone(), known: known.join(", ") })
        }
    }
}

fn options<T: DeserializeOwned>(kind: &'static str, given: &Options) -> Result<T, CreditError> {
    serde_json::from_value(Value::Object(given.clone()))
        .map_err(|source| CreditError::Options { kind, source })
}

#[cfg(test)]
mod tests {
    use std::error::Error;

    use super::super::test_vectors::{small_group, to_view};
    use super::*;

    fn error(config: &str) -> String {
        let error = open_estimator(&serde_json::from_str(config).unwrap()).err().unwrap();
        match error.source() {
            Some(source) => format!("{error}: {source}"),
            None => error.to_string(),
        }
    }

    #[test]
    fn every_estimator_opens_and_keeps_the_shape() {
        let group = small_group(vec![vec![(0, 0, 1.0), (1, 0, 0.0)], vec![], vec![(0, 1, 0.5)]]);
        for entry in credit_registry() {
            let estimator = open_estimator(&CreditConfig::new(entry.name)).unwrap();
            assert_eq!(estimator.name(), entry.name);
            let lens: Vec<_> = estimator.estimate(&to_view(&group)).iter().map(Vec::len).collect();
            assert_eq!(lens, [2, 0, 1]);
            assert!(estimator.estimate(&to_view(&small_group(vec![]))).is_empty());
        }
    }

    #[test]
    fn what_is_not_known_is_refused() {
        assert_eq!(
            error(r#"{ "kind": "gae" }"#),
            "find advantage estimator `gae`: known are `grpo`, `gigpo`, `salt`"
        );
        assert!(error(r#"{ "kind": "grpo", "discount": 1 }"#).contains("unknown field `discount`"));
        assert!(error(r#"{ "kind": "salt", "base": { "w": 1 } }"#).contains("unknown field `w`"));
        let range = error(r#"{ "kind": "gigpo", "discount": 2, "epsilon": 0 }"#);
        assert!(range.contains("discount is 2") && range.contains("epsilon is 0"));
    }
}
