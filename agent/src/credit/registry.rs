//! The advantage estimators that have a name.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::registry::{Axis, Given, OptionSet, Options, Row, Table};

use super::{
    AdvantageEstimator, Archer, ArcherConfig, CreditError, Gae, GaeConfig, Gigpo, GigpoConfig,
    Grpo, GrpoConfig, ReinforcePp, ReinforcePpConfig, Salt, SaltConfig, Spa, SpaConfig,
};

/// Which estimator, with which options.
///
/// ```
/// use spar_agent::credit::{CreditConfig, open_estimator};
///
/// let config: CreditConfig = serde_json::from_str(r#"{ "kind": "gigpo", "discount": 0.9 }"#)?;
/// assert_eq!(open_estimator(&config).unwrap().name(), "gigpo");
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
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
        Self { kind: kind.into(), options: Options::new() }
    }
}

impl Default for CreditConfig {
    /// `grpo` with its default options.
    fn default() -> Self {
        Self::new("grpo")
    }
}

/// Makes an estimator from its options.
pub type OpenEstimator = fn(&Given<'_>) -> Result<Box<dyn AdvantageEstimator>, CreditError>;

/// An estimator that has a name.
pub type EstimatorRow = Row<OpenEstimator>;

pub(super) const AXIS: Axis = Axis {
    name: "credit",
    what: "advantage estimator",
    about: "How advantages are assigned to steps.",
};

const ROWS: &[EstimatorRow] = &[
    Row {
        name: "grpo",
        about: "Every step takes its trajectory's advantage among the group.",
        source: "DeepSeekMath, arXiv 2402.03300, section 4.1.2; `mean_norm`: Dr.GRPO, arXiv 2503.20783",
        formula: "A_i = (R_i - mean R) / (std R + epsilon), the same for every step of trajectory i; \
                  with `mean_norm` A_i = R_i - mean R",
        options: OptionSet::of::<GrpoConfig>(),
        open: |given| Ok(Box::new(Grpo::new(given.read()?)?)),
    },
    Row {
        name: "gigpo",
        about: "Adds the advantage among all steps that were taken in the same state.",
        source: "GiGPO, arXiv 2505.10978",
        formula: "A = A_episode + step_weight * A_step; A_step compares ret_t = r_t + discount * ret_{t+1} \
                  with those of all steps of the group from the same state",
        options: OptionSet::of::<GigpoConfig>(),
        open: |given| Ok(Box::new(Gigpo::new(given.read()?)?)),
    },
    Row {
        name: "salt",
        about: "Equal transitions share their advantage: SALT reconstructed from summaries of it.",
        source: "SALT, arXiv 2510.20022, reconstructed from GRAFT's appendix on it; assumed: the base is GRPO, \
                 `history_window`, and that the mean runs over occurrences",
        formula: "A_t = mean of A_grpo over all steps of the group with the same (state, action, next state)",
        options: OptionSet::of::<SaltConfig>(),
        open: |given| Ok(Box::new(Salt::new(given.read()?)?)),
    },
    Row {
        name: "gae",
        about: "What was earned over what a value head expected, by token or by turn.",
        source: "GAE, arXiv 1506.02438, equation 16; `bi_level`: RAGEN's code, arXiv 2504.20073",
        formula: "delta_t = r_t + discount * V_{t+1} - V_t; A_t = delta_t + discount * lambda * A_{t+1}; \
                  return_t = A_t + V_t",
        options: OptionSet::of::<GaeConfig>(),
        open: |given| Ok(Box::new(Gae::new(given.read()?)?)),
    },
    Row {
        name: "reinforce_pp",
        about: "Every token takes what was earned from it on, normalised over the batch.",
        source: "REINFORCE++, arXiv 2501.03262",
        formula: "G_k = r_k + discount * G_{k+1}, or R_i - mean R with baseline `group`; \
                  A = (G - mean G) / std G over the tokens of the batch",
        options: OptionSet::of::<ReinforcePpConfig>(),
        open: |given| Ok(Box::new(ReinforcePp::new(given.read()?)?)),
    },
    Row {
        name: "spa",
        about: "What a turn contributed to the outcome, as a predictor of progress sees it.",
        source: "SPA-RL, arXiv 2505.20732, section 3; reconstructed, assumed: sums to come are compared over the batch \
                 in place of PPO's baseline per step",
        formula: "r_t = progress_weight * c_t + grounding_weight * g_t; G_t = r_t + discount * G_{t+1}; \
                  A = (G - mean G) / std G over the turns of the batch",
        options: OptionSet::of::<SpaConfig>(),
        open: |given| Ok(Box::new(Spa::new(given.read()?)?)),
    },
    Row {
        name: "archer",
        about: "How much better a turn is than the situation before it, by a critic of turns.",
        source: "ArCHer, arXiv 2402.19446, and its code (`archer/algorithms/archer/trainer.py`); reconstructed, assumed: \
                 turns that were played are judged, not fresh ones",
        formula: "A_t = min(Q_1, Q_2)(s_t, a_t) - min(V_1, V_2)(s_t)",
        options: OptionSet::of::<ArcherConfig>(),
        open: |given| Ok(Box::new(Archer::new(given.read()?))),
    },
];

static TABLE: Table<OpenEstimator> = Table::new(AXIS, ROWS);

/// All estimators that have a name; a new one is one file and one row here.
pub fn credit_registry() -> &'static Table<OpenEstimator> {
    &TABLE
}

/// Makes an estimator.
///
/// # Errors
///
/// [`CreditError::Row`] when no estimator has the name, or it does not have the options.
pub fn open_estimator(config: &CreditConfig) -> Result<Box<dyn AdvantageEstimator>, CreditError> {
    let (row, given) = credit_registry().choose(&config.kind, &config.options)?;
    (row.open)(&given)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use spar_core::registry::AnyTable;
    use spar_core::{Signal, SignalError, Signals};

    use super::super::BatchView;
    use super::super::test_vectors::{small_group, to_view};
    use super::*;

    fn error(config: &str) -> String {
        open_estimator(&serde_json::from_str(config).unwrap()).err().unwrap().to_string()
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
    fn every_row_says_what_it_has_to() {
        assert_eq!(AnyTable::problems(credit_registry()), [""; 0]);
    }

    #[test]
    fn every_estimator_opens_and_keeps_the_shape() {
        let first = small_group(vec![vec![(0, 0, 1.0), (1, 0, 0.0)], vec![], vec![(0, 1, 0.5)]]);
        let second = small_group(vec![vec![(2, 0, 1.0)]]);
        let batch: BatchView<'_> = [&first, &second].into_iter().map(to_view).collect();
        for entry in credit_registry() {
            let estimator = open_estimator(&CreditConfig::new(entry.name)).unwrap();
            assert_eq!(estimator.name(), entry.name);
            let signals = signals(estimator.as_ref(), &batch);
            let credit = estimator.estimate(&batch, &signals).unwrap();
            assert_eq!(credit.check(&batch.num_tokens()), Ok(()), "{}", entry.name);
            assert_eq!(credit.returns.is_some(), estimator.gives_returns(), "{}", entry.name);
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

    /// A recorded group: the first trajectory walks, sums up under this key and wins; the second walks and loses.
    fn group_with_summary(key: &str) -> spar_core::Group {
        use crate::samples::test_trajectories::{sampled, trajectory, turn};
        use spar_core::{ParsedAction, RewardPart, TurnKind};
        let step = |state: &str, next: &str, text: &str, reward: f64| {
            let mut turn = turn(0, &[1], sampled(&[2, 3], &[]));
            (turn.state_key, turn.parsed) = (state.to_owned(), ParsedAction::of(text));
            turn.step.observation.state_key = next.to_owned();
            turn.step.rewards = vec![RewardPart { name: "success".to_owned(), value: reward }];
            turn
        };
        let mut summary = step(key, "yard", "", 0.0);
        summary.kind = TurnKind::Summary;
        summary.parsed = ParsedAction::Invalid { reason: "it is a summary".to_owned() };
        summary.step.rewards.clear();
        let won = vec![step("hall", "yard", "go", 0.0), summary, step("yard", "gate", "go", 1.0)];
        let lost = vec![step("hall", "yard", "go", 0.0), step("yard", "hall", "turn", 0.0)];
        let mut trajectories = vec![trajectory(won), trajectory(lost)];
        trajectories[1].episode += 1;
        spar_core::Group { task: "t".to_owned(), trajectories }
    }

    #[test]
    fn summaries_share_in_the_outcome_and_are_compared_with_no_action() {
        for entry in credit_registry() {
            let mut config = CreditConfig::new(entry.name);
            if entry.name == "gae" {
                config.options.insert("normalize".to_owned(), false.into());
            }
            let estimator = open_estimator(&config).unwrap();
            let estimate = |key: &str| {
                let groups = [group_with_summary(key)];
                let batch = BatchView::shaped(&groups, &spar_tasks::RewardShapers::default());
                let signals = signals(estimator.as_ref(), &batch);
                let credit = estimator.estimate(&batch, &signals).unwrap();
                credit.advantages.into_tokens(&batch.num_tokens())
            };
            let found = estimate(&spar_core::Turn::summary_key("yard"));
            assert_eq!(found.iter().map(Vec::len).collect::<Vec<_>>(), [6, 4], "{}", entry.name);
            assert!(found.iter().flatten().all(|value| value.is_finite()), "{}", entry.name);
            // Where predictors say what turns were worth, the outcome itself is not asked.
            let predicted = [Signal::Progress, Signal::ActionValues, Signal::StateValues];
            if !estimator.needs().iter().any(|signal| predicted.contains(signal)) {
                let of_summary = &found[0][2..4];
                assert!(of_summary.iter().all(|it| *it > 0.0), "{}: {found:?}", entry.name);
            }
            assert_eq!(found, estimate("a situation that comes nowhere else"), "{}", entry.name);
        }
        // Were it an action in the yard, others would be compared with it.
        let gigpo = open_estimator(&CreditConfig::new("gigpo")).unwrap();
        let estimate = |key: &str| {
            let groups = [group_with_summary(key)];
            let batch = BatchView::shaped(&groups, &spar_tasks::RewardShapers::default());
            gigpo.estimate(&batch, &Signals::default()).unwrap().advantages
        };
        assert_ne!(estimate("yard"), estimate(&spar_core::Turn::summary_key("yard")));
    }

    #[test]
    fn what_is_not_known_is_refused() {
        assert_eq!(
            error(r#"{ "kind": "gigo" }"#),
            "find advantage estimator `gigo`: known are `gigpo`, `grpo`, `salt`, `gae`, \
             `reinforce_pp`, `spa`, `archer`"
        );
        let told = error(r#"{ "kind": "grpo", "discount": 1, "epsilon": "small" }"#);
        assert!(told.contains("no option `discount`") && told.contains("epsilon: invalid type"));
        assert!(error(r#"{ "kind": "salt", "base": { "w": 1 } }"#).contains("unknown field `w`"));
        let range = error(r#"{ "kind": "gigpo", "discount": 2, "epsilon": 0 }"#);
        assert!(range.contains("discount is 2") && range.contains("epsilon is 0"));
    }
}
