//! The predictors that have a name.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::registry::{Axis, Given, OptionSet, Options, Row, Table};
use spar_core::{Seed, Signal};

use crate::{
    Predictor, PredictorError, Progress, ProgressConfig, StateZero, StateZeroConfig, TurnCritic,
    TurnCriticConfig,
};

/// Which predictor, with which options.
///
/// ```
/// use spar_core::Seed;
/// use spar_predictors::{OpenFor, PredictorConfig, open_predictor};
///
/// let config: PredictorConfig = serde_json::from_str(r#"{ "kind": "progress", "epochs": 2 }"#)?;
/// let open_for = OpenFor { width: 8, seed: Seed::from_u64(1) };
/// assert_eq!(open_predictor(&config, &open_for)?.name(), "progress");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PredictorConfig {
    /// The predictor's name.
    pub kind: String,
    /// Its options; those left out have the defaults its config documents.
    #[serde(flatten)]
    pub options: Options,
}

impl PredictorConfig {
    /// The predictor `kind` with its default options.
    pub fn new(kind: impl Into<String>) -> Self {
        Self { kind: kind.into(), options: Options::new() }
    }
}

/// What a predictor is opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenFor {
    /// Features of a segment, at least 1.
    pub width: usize,
    /// What its first weights derive from.
    pub seed: Seed,
}

/// What the features of a segment say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SegmentLayout {
    /// How things stand at the segment's end.
    Ends,
    /// How things stand before the segment's first own part, then, in as many features, how they stand at its end.
    StartsAndEnds,
}

/// A predictor as the table knows it.
#[derive(Debug, Clone, Copy)]
pub struct PredictorKind {
    /// What it reads.
    pub layout: SegmentLayout,
    /// The signals that it gives, a number for every segment each.
    pub gives: &'static [Signal],
    /// Makes one from its options.
    pub open: OpenPredictor,
}

/// Makes a predictor from its options.
pub type OpenPredictor = fn(&Given<'_>, &OpenFor) -> Result<Box<dyn Predictor>, PredictorError>;

/// A predictor that has a name.
pub type PredictorRow = Row<PredictorKind>;

const ROWS: &[PredictorRow] = &[
    Row {
        name: "progress",
        about: "What every turn contributed to the outcome, learned from outcomes alone.",
        source: "SPA-RL, arXiv 2505.20732, and its code (`prm/train_our_progress_model.py`); reconstructed on frozen \
                 features, assumed: hidden layers in place of a trunk that is trained along",
        formula: "c_t = f(x_t); loss = mean over sequences of (sum_t c_t - sum_t r_t)^2",
        options: OptionSet::of::<ProgressConfig>(),
        open: PredictorKind {
            layout: SegmentLayout::Ends,
            gives: &[Signal::Progress],
            open: |given, open_for| Ok(Box::new(Progress::new(given.read()?, open_for)?)),
        },
    },
    Row {
        name: "turn_critic",
        about: "What a turn and the situation before it are worth, learned from remembered turns.",
        source: "ArCHer, arXiv 2402.19446, and its code (`archer/algorithms/archer/trainer.py`); reconstructed on frozen \
                 features, assumed: V learns from remembered answers and not from fresh ones",
        formula: "Q_j(s, a) <- r + discount * V'_j(s'), V_j(s) <- Q'_j(s, a), j = 1, 2; \
                  w' <- (1 - polyak) * w' + polyak * w; with `monte_carlo` both <- sum_k discount^k * r_k",
        options: OptionSet::of::<TurnCriticConfig>(),
        open: PredictorKind {
            layout: SegmentLayout::StartsAndEnds,
            gives: &[Signal::ActionValues, Signal::StateValues],
            open: |given, open_for| Ok(Box::new(TurnCritic::new(given.read()?, open_for)?)),
        },
    },
    Row {
        name: "v0",
        about: "What an episode will earn, told before its first answer from its prompt and from what the policy did before.",
        source: "V_0, arXiv 2602.03584, reconstructed from its abstract: a network on frozen features in the place of a language model",
        formula: "V_0(x | H) = f(x, 1[H], mean of H, outcomes of H by likeness); loss = mean (V_0 - R)^2",
        options: OptionSet::of::<StateZeroConfig>(),
        open: PredictorKind {
            layout: SegmentLayout::StartsAndEnds,
            gives: &[Signal::StateValues],
            open: |given, open_for| Ok(Box::new(StateZero::new(given.read()?, open_for)?)),
        },
    },
];

static TABLE: Table<PredictorKind> = Table::new(
    Axis {
        name: "predictors",
        what: "predictor",
        about: "Small learned functions that are not the policy.",
    },
    ROWS,
);

/// All predictors that have a name; a new one is one file and one row here.
pub fn predictor_registry() -> &'static Table<PredictorKind> {
    &TABLE
}

/// Makes a predictor that has learned nothing.
///
/// # Errors
///
/// [`PredictorError::Row`] when no predictor has the name, or it does not have the options;
/// [`PredictorError::Features`] when it cannot read so many features, [`PredictorError::Compute`] when its device cannot be
/// used.
pub fn open_predictor(
    config: &PredictorConfig,
    open_for: &OpenFor,
) -> Result<Box<dyn Predictor>, PredictorError> {
    let (row, given) = predictor_registry().choose(&config.kind, &config.options)?;
    if open_for.width == 0 {
        let problem = "there are none to read";
        return Err(PredictorError::Features { name: row.name, width: 0, problem });
    }
    (row.open.open)(&given, open_for)
}

#[cfg(test)]
mod tests {
    use std::hash::{Hash, Hasher};

    use proptest::prelude::*;
    use spar_core::registry::AnyTable;

    use super::*;
    use crate::testing::numbers;
    use crate::{Predictions, Segments, StateError};

    const WIDTH: usize = 6;

    fn open(row: &PredictorRow, seed: u64) -> Box<dyn Predictor> {
        let open_for = OpenFor { width: WIDTH, seed: Seed::from_u64(seed) };
        open_predictor(&PredictorConfig::new(row.name), &open_for).unwrap()
    }

    fn segments(lens: &[usize], seed: u64) -> (Segments, Vec<f32>) {
        let mut segments = Segments::new(WIDTH).unwrap();
        for (index, len) in lens.iter().enumerate() {
            segments.push(&numbers(len * WIDTH, 100 * seed + index as u64)).unwrap();
        }
        let rewards = numbers(segments.rows(), seed);
        (segments, rewards)
    }

    fn bits(predictions: &Predictions) -> Vec<u32> {
        predictions.columns().flat_map(|(_, column)| column).map(|value| value.to_bits()).collect()
    }

    #[test]
    fn every_row_says_what_it_has_to() {
        assert_eq!(AnyTable::problems(predictor_registry()), [""; 0]);
        for row in predictor_registry() {
            assert!(!row.gives.is_empty(), "{}", row.name);
        }
    }

    #[test]
    fn every_predictor_says_what_its_row_promises_of_every_segment() {
        for row in predictor_registry() {
            let mut predictor = open(row, 1);
            assert_eq!((predictor.name(), predictor.width()), (row.name, WIDTH));
            let (some, rewards) = segments(&[3, 0, 1], 1);
            predictor.fit(&some, &rewards, Seed::from_u64(2)).unwrap();
            for given in [some, segments(&[], 1).0] {
                let predictions = predictor.predict(&given).unwrap();
                let columns: Vec<_> = predictions.columns().collect();
                let signals: Vec<_> = columns.iter().map(|(signal, _)| *signal).collect();
                assert_eq!(signals, row.gives, "{}", row.name);
                for (signal, column) in columns {
                    assert_eq!(column.len(), given.rows());
                    assert!(column.iter().all(|value| value.is_finite()));
                    assert_eq!(predictions.column(signal), Some(column));
                }
            }
        }
    }

    #[test]
    fn every_predictor_learns_and_nothing_teaches_nothing() {
        for row in predictor_registry() {
            let mut predictor = open(row, 1);
            let fresh = predictor.state().unwrap();
            let nothing = predictor.fit(&segments(&[], 1).0, &[], Seed::from_u64(2)).unwrap();
            assert_eq!((nothing.losses, &predictor.state().unwrap()), (vec![], &fresh));
            let (some, rewards) = segments(&[3, 2, 4, 2], 1);
            let fit = |predictor: &mut Box<dyn Predictor>| {
                predictor.fit(&some, &rewards, Seed::from_u64(2)).unwrap()
            };
            let first = fit(&mut predictor);
            (0..5).for_each(|_| drop(fit(&mut predictor)));
            let last = fit(&mut predictor);
            assert!(first.num_examples > 0 && last.num_examples >= first.num_examples);
            let losses = (first.losses[0], last.last_loss().unwrap());
            assert!(losses.1 < 0.7 * losses.0, "{}: {losses:?}", row.name);
        }
    }

    #[test]
    fn every_state_goes_on_to_the_bit_and_equal_seeds_repeat() {
        for row in predictor_registry() {
            let (some, rewards) = segments(&[3, 1, 4], 1);
            let (more, more_rewards) = segments(&[2, 2], 2);
            let mut predictor = open(row, 1);
            predictor.fit(&some, &rewards, Seed::from_u64(2)).unwrap();
            // Opened by another seed: all that matters is in the state.
            let mut resumed = open(row, 7);
            assert_ne!(
                bits(&resumed.predict(&some).unwrap()),
                bits(&predictor.predict(&some).unwrap())
            );
            resumed.load(&predictor.state().unwrap()).unwrap();
            assert_eq!(resumed.state().unwrap(), predictor.state().unwrap());
            assert_eq!(
                bits(&resumed.predict(&some).unwrap()),
                bits(&predictor.predict(&some).unwrap())
            );
            let mut again = open(row, 1);
            again.fit(&some, &rewards, Seed::from_u64(2)).unwrap();
            for other in [&mut resumed, &mut again] {
                other.fit(&more, &more_rewards, Seed::from_u64(3)).unwrap();
            }
            let fit = predictor.fit(&more, &more_rewards, Seed::from_u64(3)).unwrap();
            assert!(!fit.losses.is_empty());
            let state = predictor.state().unwrap();
            assert!(resumed.state().unwrap() == state && again.state().unwrap() == state);
            // Other seeds, other weights.
            again.fit(&more, &more_rewards, Seed::from_u64(4)).unwrap();
            predictor.fit(&more, &more_rewards, Seed::from_u64(5)).unwrap();
            assert_ne!(again.state().unwrap(), predictor.state().unwrap(), "{}", row.name);
        }
    }

    /// The variable by which the test below asks itself, in another process, for what it computes there.
    const ASKED: &str = "SPAR_PREDICTORS_STATES";

    #[test]
    fn every_fit_is_the_same_to_the_bit_on_any_number_of_threads() {
        // Features and layers so wide that products are shared out.
        const WIDE: usize = 128;
        let states = || -> String {
            let mut told = String::new();
            for row in predictor_registry() {
                let open_for = OpenFor { width: WIDE, seed: Seed::from_u64(1) };
                let options = serde_json::json!({ "layers": 2, "width": 96 });
                let options = options.as_object().unwrap().clone();
                let config = PredictorConfig { kind: row.name.to_owned(), options };
                let mut predictor = open_predictor(&config, &open_for).unwrap();
                let mut segments = Segments::new(WIDE).unwrap();
                segments.push(&numbers(150 * WIDE, 1)).unwrap();
                let rewards = numbers(segments.rows(), 2);
                predictor.fit(&segments, &rewards, Seed::from_u64(2)).unwrap();
                let state = predictor.state().unwrap();
                let predictions = bits(&predictor.predict(&segments).unwrap());
                let mut hasher = std::hash::DefaultHasher::new();
                (state, predictions).hash(&mut hasher);
                let digest = hasher.finish();
                told += &format!("{}={digest};", row.name);
            }
            told
        };
        if std::env::var_os(ASKED).is_some() {
            println!("states:{}", states());
            return;
        }
        let with_threads = |threads: &str| {
            let name = "registry::tests::every_fit_is_the_same_to_the_bit_on_any_number_of_threads";
            let output = std::process::Command::new(std::env::current_exe().unwrap())
                .args(["--exact", name, "--nocapture"])
                .envs([(ASKED, "1"), ("RAYON_NUM_THREADS", threads)])
                .output()
                .unwrap();
            let text = String::from_utf8(output.stdout).unwrap();
            let line = text.lines().find_map(|line| line.split_once("states:"));
            line.unwrap_or_else(|| panic!("{text}")).1.to_owned()
        };
        let alone = with_threads("1");
        assert_eq!(alone.matches(';').count(), predictor_registry().len());
        for threads in ["2", "7"] {
            assert_eq!(with_threads(threads), alone, "{threads} threads");
        }
    }

    #[test]
    fn what_does_not_fit_is_told_and_changes_nothing() {
        for row in predictor_registry() {
            let mut predictor = open(row, 1);
            let before = predictor.state().unwrap();
            let (some, rewards) = segments(&[3], 1);
            let seed = Seed::from_u64(2);
            let error = predictor.fit(&some, &rewards[1..], seed).unwrap_err();
            assert!(matches!(error, PredictorError::Rewards { found: 2, expected: 3 }));
            let error = predictor.fit(&some, &[0.0, f32::NAN, 0.0], seed).unwrap_err();
            assert!(matches!(error, PredictorError::Reward { segment: 1 }));
            let other = Segments::new(WIDTH + 1).unwrap();
            assert!(matches!(predictor.predict(&other), Err(PredictorError::Width { .. })));
            assert!(matches!(predictor.fit(&other, &[], seed), Err(PredictorError::Width { .. })));
            let huge = [f32::MAX, f32::MAX, f32::MAX];
            let error = predictor.fit(&some, &huge, seed).unwrap_err();
            assert!(matches!(error, PredictorError::Diverged { .. }), "{error:?}");
            assert_eq!(predictor.state().unwrap(), before, "{}", row.name);
            let none = OpenFor { width: 0, seed };
            let error = open_predictor(&PredictorConfig::new(row.name), &none).unwrap_err();
            assert!(matches!(error, PredictorError::Features { width: 0, .. }));
        }
    }

    #[test]
    fn damaged_states_are_errors_and_change_nothing() {
        for row in predictor_registry() {
            let mut predictor = open(row, 1);
            let (some, rewards) = segments(&[3, 1], 1);
            predictor.fit(&some, &rewards, Seed::from_u64(2)).unwrap();
            let state = predictor.state().unwrap();
            let error = |predictor: &mut Box<dyn Predictor>, bytes: &[u8]| match predictor
                .load(bytes)
                .unwrap_err()
            {
                PredictorError::State { name, source } if name == row.name => source,
                other => panic!("{other:?}"),
            };
            for end in [0, 7, 8, state.len() / 2, state.len() - 1] {
                let found = error(&mut predictor, &state[..end]);
                assert!(matches!(found, StateError::Unreadable(_)), "{found:?}");
            }
            for other in predictor_registry().iter().filter(|other| other.name != row.name) {
                let found = error(&mut predictor, &open(other, 1).state().unwrap());
                assert!(matches!(found, StateError::Predictor { .. }), "{found:?}");
            }
            let open_for = OpenFor { width: WIDTH + 2, seed: Seed::from_u64(1) };
            let config = PredictorConfig::new(row.name);
            let wider = open_predictor(&config, &open_for).unwrap().state().unwrap();
            let found = error(&mut predictor, &wider);
            assert!(matches!(found, StateError::Shape { .. }), "{found:?}");
            assert_eq!(predictor.state().unwrap(), state, "{}", row.name);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn whatever_bytes_are_loaded_are_a_state_or_an_error(
            places in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        ) {
            for row in predictor_registry() {
                let mut predictor = open(row, 1);
                let (some, rewards) = segments(&[2], 1);
                let mut state = predictor.state().unwrap();
                for (place, byte) in &places {
                    let place = place.index(state.len());
                    state[place] = *byte;
                }
                if predictor.load(&state).is_ok() {
                    // What it says and learns is finite, or an error.
                    if let Ok(predictions) = predictor.predict(&some) {
                        let mut values = predictions.columns().flat_map(|(_, column)| column);
                        prop_assert!(values.all(|value| value.is_finite()));
                    }
                    drop(predictor.fit(&some, &rewards, Seed::from_u64(1)));
                }
            }
        }
    }

    #[test]
    fn what_is_not_known_is_refused() {
        let error = |text: &str| {
            let config: PredictorConfig = serde_json::from_str(text).unwrap();
            let open_for = OpenFor { width: WIDTH, seed: Seed::from_u64(1) };
            open_predictor(&config, &open_for).unwrap_err().to_string()
        };
        let told = error(r#"{ "kind": "progres" }"#);
        assert_eq!(told, "find predictor `progres`: known are `progress`, `turn_critic`, `v0`");
        assert!(error(r#"{ "kind": "progress", "steps": 3 }"#).contains("no option `steps`"));
        if !cfg!(feature = "cuda") {
            let told = error(r#"{ "kind": "progress", "device": "cuda" }"#);
            assert!(told.contains("--features predictors-cuda`"), "{told}");
        }
    }
}
