//! The features of turns that have a name.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::registry::{Axis, Given, OptionSet, Options, Row, RowError, Table};

use super::{HashedTokens, HashedTokensOptions, HiddenStateFeatures, TurnFeatures};

/// Which features of turns, with which options.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TurnFeaturesConfig {
    /// Their name.
    pub kind: String,
    /// Their options; those left out have the defaults their config documents.
    #[serde(flatten)]
    pub options: Options,
}

impl Default for TurnFeaturesConfig {
    /// `hashed_tokens` with its default options.
    fn default() -> Self {
        Self { kind: "hashed_tokens".to_owned(), options: Options::new() }
    }
}

/// Makes features from their options.
pub type OpenTurnFeatures = fn(&Given<'_>) -> Result<Box<dyn TurnFeatures>, RowError>;

/// Features that have a name.
pub type TurnFeaturesRow = Row<OpenTurnFeatures>;

const ROWS: &[TurnFeaturesRow] = &[
    Row {
        name: "hashed_tokens",
        about: "Which tokens the newest observation and the answer have; needs no model.",
        source: "feature hashing, arXiv 0902.2206",
        formula: "x = sum over tokens k of a part: sign(part, k) / sqrt(n of the part) at place hash(part, k)",
        options: OptionSet::of::<HashedTokensOptions>(),
        open: |given| Ok(Box::new(HashedTokens::new(given.read()?))),
    },
    Row {
        name: "hidden_states",
        about: "Final hidden states of the policy that the stage began with, before and behind answers.",
        source: "the encoders of SPA-RL, arXiv 2505.20732, and ArCHer, arXiv 2402.19446, reconstructed; assumed: the \
                 policy's trunk, frozen, takes the place of an encoder of its own",
        formula: "",
        options: OptionSet::NONE,
        open: |_| Ok(Box::new(HiddenStateFeatures)),
    },
];

static TABLE: Table<OpenTurnFeatures> = Table::new(
    Axis { name: "turn-features", what: "turn features", about: "What predictors see of turns." },
    ROWS,
);

/// All features of turns that have a name; new ones are one file and one row here.
pub fn turn_features_registry() -> &'static Table<OpenTurnFeatures> {
    &TABLE
}

/// Makes features of turns.
///
/// # Errors
///
/// [`RowError`] when none have the name, or they do not have the options.
pub fn open_turn_features(config: &TurnFeaturesConfig) -> Result<Box<dyn TurnFeatures>, RowError> {
    let (row, given) = turn_features_registry().choose(&config.kind, &config.options)?;
    (row.open)(&given)
}

#[cfg(test)]
mod tests {
    use spar_core::Sample;
    use spar_core::registry::AnyTable;

    use super::super::FrozenModel;
    use super::super::tests::sample;
    use super::*;
    use crate::SampleGradient;
    use crate::testing::Bigram;

    #[test]
    fn every_row_says_what_it_has_to() {
        assert_eq!(AnyTable::problems(turn_features_registry()), [""; 0]);
        let config: TurnFeaturesConfig =
            serde_json::from_str(r#"{ "kind": "hashed_tokens", "width": 0, "x": 1 }"#).unwrap();
        let told = open_turn_features(&config).unwrap_err().to_string();
        assert!(told.contains("width is 0") && told.contains("no option `x`"), "{told}");
    }

    #[test]
    fn every_row_gives_a_start_and_an_end_of_its_width_that_depend_on_their_sample_alone() {
        let model = Bigram.prepare(&Bigram::new(5));
        let samples: Vec<Sample> = [0, 4, 1]
            .into_iter()
            .map(|start| {
                sample(&[(start, None), (1, Some(0)), (2, Some(0)), (start, None), (3, Some(1))])
            })
            .collect();
        let samples: Vec<&Sample> = samples.iter().collect();
        for row in turn_features_registry() {
            let config = TurnFeaturesConfig { kind: row.name.to_owned(), options: Options::new() };
            let features = open_turn_features(&config).unwrap();
            assert_eq!(features.name(), row.name);
            let frozen =
                FrozenModel { model: model.as_ref(), hidden_size: 5, micro_batch_tokens: 100 };
            let given = Some(&frozen).filter(|_| features.needs_model());
            let together = features.of(&samples, given).unwrap();
            for (sample, of_sample) in samples.iter().zip(&together) {
                assert_eq!(&features.of(&[*sample], given).unwrap()[0], of_sample);
                assert_eq!(of_sample.iter().map(|rows| rows.turn).collect::<Vec<_>>(), [0, 1]);
                for rows in of_sample {
                    let width = features.width(5);
                    assert_eq!((rows.start.len(), rows.end.len()), (width, width));
                    assert_ne!(rows.start, rows.end);
                }
            }
            assert_ne!(together[0], together[1], "{}", row.name);
            assert!(features.of(&[], given).unwrap().is_empty());
        }
    }
}
