//! The advantage estimators that have a name.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{AdvantageEstimator, CreditError, Gae, Gigpo, Grpo, ReinforcePp, Salt};

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
    /// The paper it comes from.
    pub source: &'static str,
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
            source: "DeepSeekMath, arXiv 2402.03300; `mean_norm`: Dr.GRPO, arXiv 2503.20783",
            open: |given| Ok(Box::new(Grpo::new(options("grpo", given)?)?)),
        },
        EstimatorEntry {
            name: "gigpo",
            about: "Adds the advantage among all steps that were taken in the same state.",
            source: "GiGPO, arXiv 2505.10978",
            open: |given| Ok(Box::new(Gigpo::new(options("gigpo", given)?)?)),
        },
        EstimatorEntry {
            name: "salt",
            about: "Equal transitions share their advantage: SALT reconstructed from summaries of it.",
            source: "SALT, arXiv 2510.20022, through GRAFT's appendix on it",
            open: |given| Ok(Box::new(Salt::new(options("salt", given)?)?)),
        },
        EstimatorEntry {
            name: "gae",
            about: "What was earned over what a value head expected, by token or by turn.",
            source: "GAE, arXiv 1506.02438; `bi_level`: RAGEN's code, arXiv 2504.20073",
            open: |given| Ok(Box::new(Gae::new(options("gae", given)?)?)),
        },
        EstimatorEntry {
            name: "reinforce_pp",
            about: "Every token takes what was earned from it on, normalised over the batch.",
            source: "REINFORCE++, arXiv 2501.03262",
            open: |given| Ok(Box::new(ReinforcePp::new(options("reinforce_pp", given)?)?)),
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

    use proptest::prelude::*;
    use spar_core::{Signal, SignalError, Signals};

    use super::super::BatchView;
    use super::super::test_vectors::{small_group, to_view};
    use super::*;

    fn error(config: &str) -> String {
        let error = open_estimator(&serde_json::from_str(config).unwrap()).err().unwrap();
        match error.source() {
            Some(source) => format!("{error}: {source}"),
            None => error.to_string(),
        }
    }

    /// Numbers for every signal that an estimator needs.
    fn signals(estimator: &dyn AdvantageEstimator, batch: &BatchView<'_>) -> Signals {
        let mut signals = Signals::default();
        for &signal in estimator.needs() {
            let stream = batch.trajectories().map(|t| vec![0.5; t.num_tokens()]).collect();
            signals.insert(signal, stream);
        }
        signals
    }

    #[test]
    fn every_estimator_opens_and_keeps_the_shape() {
        let first = small_group(vec![vec![(0, 0, 1.0), (1, 0, 0.0)], vec![], vec![(0, 1, 0.5)]]);
        let second = small_group(vec![vec![(2, 0, 1.0)]]);
        let batch: BatchView<'_> = [&first, &second].into_iter().map(to_view).collect();
        for entry in credit_registry() {
            let estimator = open_estimator(&CreditConfig::new(entry.name)).unwrap();
            assert_eq!(estimator.name(), entry.name);
            assert!(!entry.source.is_empty(), "{}", entry.name);
            let signals = signals(estimator.as_ref(), &batch);
            let credit = estimator.estimate(&batch, &signals).unwrap();
            assert_eq!(credit.check(&batch.num_tokens()), Ok(()), "{}", entry.name);
            let nothing = estimator.estimate(&BatchView::default(), &signals_of_nothing());
            assert_eq!(nothing.unwrap().check(&[]), Ok(()), "{}", entry.name);
            if let Some(&signal) = estimator.needs().first() {
                let error = estimator.estimate(&batch, &Signals::default()).unwrap_err();
                assert!(matches!(
                    error,
                    CreditError::Signal(SignalError::Absent { signal: absent }) if absent == signal
                ));
            }
        }
    }

    fn signals_of_nothing() -> Signals {
        let mut signals = Signals::default();
        Signal::ALL.into_iter().for_each(|signal| signals.insert(signal, Vec::new()));
        signals
    }

    /// Groups of trajectories of (state, action, reward).
    type Groups = Vec<Vec<Vec<(u8, u8, f64)>>>;

    fn reversed(groups: &Groups) -> Groups {
        let reversed = |group: &Vec<_>| group.iter().rev().cloned().collect();
        groups.iter().rev().map(reversed).collect()
    }

    proptest! {
        #[test]
        fn the_order_of_groups_and_trajectories_does_not_matter(
            groups in prop::collection::vec(
                prop::collection::vec(
                    prop::collection::vec((0_u8..4, 0_u8..3, -1.0..1.0), 0..5), 0..4),
                0..4,
            ),
        ) {
            for entry in credit_registry() {
                let estimator = open_estimator(&CreditConfig::new(entry.name)).unwrap();
                let estimate = |groups: &Groups| {
                    let groups: Vec<_> = groups.iter().cloned().map(small_group).collect();
                    let batch: BatchView<'_> = groups.iter().map(to_view).collect();
                    let signals = signals(estimator.as_ref(), &batch);
                    let credit = estimator.estimate(&batch, &signals).unwrap();
                    credit.advantages.into_tokens(&batch.num_tokens())
                };
                let mut backward = estimate(&reversed(&groups));
                backward.reverse();
                for (a, b) in estimate(&groups).iter().zip(&backward) {
                    prop_assert!(a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-6));
                }
            }
        }
    }

    #[test]
    fn what_is_not_known_is_refused() {
        assert_eq!(
            error(r#"{ "kind": "a2c" }"#),
            "find advantage estimator `a2c`: known are `grpo`, `gigpo`, `salt`, `gae`, \
             `reinforce_pp`"
        );
        assert!(error(r#"{ "kind": "grpo", "discount": 1 }"#).contains("unknown field `discount`"));
        assert!(error(r#"{ "kind": "salt", "base": { "w": 1 } }"#).contains("unknown field `w`"));
        let range = error(r#"{ "kind": "gigpo", "discount": 2, "epsilon": 0 }"#);
        assert!(range.contains("discount is 2") && range.contains("epsilon is 0"));
    }
}
