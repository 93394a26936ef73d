//! The task samplers that have a name.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::registry::{Axis, Given, OptionSet, Options, Row, Table};

use super::{Dynamic, DynamicOptions, TaskSampler, Uniform};
use crate::SamplerError;

/// Which task sampler, with which options.
///
/// ```
/// use spar_tasks::samplers::{SamplerConfig, open_sampler};
///
/// let config: SamplerConfig = toml::from_str("kind = 'dynamic'\nmax_rounds = 3")?;
/// let mut sampler = open_sampler(&config, 0).unwrap();
/// sampler.begin(2);
/// assert_eq!(sampler.draw(), [0, 1]);
/// # Ok::<(), toml::de::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SamplerConfig {
    /// The sampler's name.
    pub kind: String,
    /// Its options; those left out have the defaults that it documents.
    #[serde(flatten)]
    pub options: Options,
}

impl Default for SamplerConfig {
    /// `uniform`.
    fn default() -> Self {
        Self { kind: "uniform".to_owned(), options: Options::new() }
    }
}

/// Makes a task sampler from its options, to begin at a place.
pub type OpenSampler = fn(&Given<'_>, u64) -> Result<Box<dyn TaskSampler>, SamplerError>;

/// A task sampler that has a name.
pub type SamplerRow = Row<OpenSampler>;

pub(super) const AXIS: Axis = Axis {
    name: "samplers",
    what: "task sampler",
    about: "Which tasks are played, and which of their groups are trained.",
};

const ROWS: &[SamplerRow] = &[
    Row {
        name: "uniform",
        about: "Tasks as they come in their shuffled, stratified order.",
        source: "own",
        formula: "",
        options: OptionSet::NONE,
        open: |_, first| Ok(Box::new(Uniform::new(first))),
    },
    Row {
        name: "dynamic",
        about: "Drops groups whose episodes all earned the same, and plays other tasks for them.",
        source: "DAPO, arXiv 2503.14476, section 3.2, equation 11",
        formula: "a group is trained iff min R < max R over its episodes",
        options: OptionSet::of::<DynamicOptions>(),
        open: |given, first| Ok(Box::new(Dynamic::new(&given.read()?, first)?)),
    },
];

static TABLE: Table<OpenSampler> = Table::new(AXIS, ROWS);

/// All task samplers that have a name; a new one is one file and one row here.
pub fn sampler_registry() -> &'static Table<OpenSampler> {
    &TABLE
}

/// Makes a task sampler that begins at the place `first` of the shuffled order.
///
/// # Errors
///
/// [`SamplerError::Row`] when none has the name, it does not have the options, or one is out of range.
pub fn open_sampler(
    config: &SamplerConfig,
    first: u64,
) -> Result<Box<dyn TaskSampler>, SamplerError> {
    let (row, given) = sampler_registry().choose(&config.kind, &config.options)?;
    (row.open)(&given, first)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::super::Outcome;
    use super::*;

    #[test]
    fn every_sampler_gives_what_is_wanted_and_goes_on_from_its_state() {
        for entry in sampler_registry() {
            let config = SamplerConfig { kind: entry.name.to_owned(), options: Options::new() };
            let mut sampler = open_sampler(&config, 3).unwrap();
            assert_eq!(sampler.name(), entry.name);
            sampler.begin(2);
            let drawn = sampler.draw();
            assert_eq!(drawn, [3, 4], "{}", entry.name);
            let mixed = Outcome { returns: vec![0.0, 1.0] };
            assert_eq!(sampler.observe(&[mixed.clone(), mixed]), [true, true]);
            assert!(sampler.draw().is_empty(), "{}", entry.name);
            let mut resumed = open_sampler(&config, 0).unwrap();
            resumed.load(&sampler.state()).unwrap();
            for sampler in [&mut sampler, &mut resumed] {
                sampler.begin(1);
                assert_eq!(sampler.draw(), [5], "{}", entry.name);
            }
            assert!(resumed.load(&Value::Null).is_err(), "{}", entry.name);
        }
    }

    #[test]
    fn what_is_not_known_is_refused() {
        let open =
            |text: &str| open_sampler(&toml::from_str(text).unwrap(), 0).unwrap_err().to_string();
        assert_eq!(
            open("kind = 'hard'"),
            "find task sampler `hard`: known are `uniform`, `dynamic`"
        );
        assert!(open("kind = 'uniform'\nmax_rounds = 1").contains("no option `max_rounds`"));
        assert!(open("kind = 'dynamic'\nmax_rounds = 0").contains("max_rounds is 0"));
    }
}
