//! The task samplers that have a name.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Dynamic, TaskSampler, Uniform};
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
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SamplerConfig {
    /// The sampler's name.
    pub kind: String,
    /// Its options; those left out have the defaults that it documents.
    #[serde(flatten)]
    pub options: Map<String, Value>,
}

impl Default for SamplerConfig {
    /// `uniform`.
    fn default() -> Self {
        Self { kind: "uniform".to_owned(), options: Map::new() }
    }
}

/// Makes a task sampler from its options, to begin at a place.
pub type OpenSampler = fn(&Map<String, Value>, u64) -> Result<Box<dyn TaskSampler>, SamplerError>;

/// A task sampler that has a name.
pub struct SamplerEntry {
    /// The name.
    pub name: &'static str,
    /// One line on what it does.
    pub about: &'static str,
    /// Where it is described.
    pub source: &'static str,
    /// Makes one.
    pub open: OpenSampler,
}

/// All task samplers that have a name; a new one is one file and one row here.
pub fn sampler_registry() -> &'static [SamplerEntry] {
    &[
        SamplerEntry {
            name: "uniform",
            about: "Tasks as they come in their shuffled, stratified order.",
            source: "spar's own",
            open: |given, first| {
                options::<NoOptions>("uniform", given)?;
                Ok(Box::new(Uniform::new(first)))
            },
        },
        SamplerEntry {
            name: "dynamic",
            about: "Drops groups whose episodes all earned the same, and plays other tasks for them.",
            source: "DAPO, arXiv 2503.14476, equation 11",
            open: |given, first| Ok(Box::new(Dynamic::new(&options("dynamic", given)?, first)?)),
        },
    ]
}

/// Makes a task sampler that begins at the place `first` of the shuffled order.
///
/// # Errors
///
/// [`SamplerError`] when none has the name, it does not have the options, or one is out of range.
pub fn open_sampler(
    config: &SamplerConfig,
    first: u64,
) -> Result<Box<dyn TaskSampler>, SamplerError> {
    match sampler_registry().iter().find(|entry| entry.name == config.kind) {
        Some(entry) => (entry.open)(&config.options, first),
        None => {
            let known: Vec<_> =
                sampler_registry().iter().map(|entry| format!("`{}`", entry.name)).collect();
            Err(SamplerError::Unknown { kind: config.kind.clone(), known: known.join(", ") })
        }
    }
}

/// A sampler that has nothing to set.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NoOptions {}

fn options<T: DeserializeOwned>(
    name: &'static str,
    given: &Map<String, Value>,
) -> Result<T, SamplerError> {
    serde_json::from_value(Value::Object(given.clone()))
        .map_err(|source| SamplerError::Options { name, source })
}

#[cfg(test)]
mod tests {
    use super::super::Outcome;
    use super::*;

    #[test]
    fn every_sampler_gives_what_is_wanted_and_goes_on_from_its_state() {
        for entry in sampler_registry() {
            let config = SamplerConfig { kind: entry.name.to_owned(), options: Map::new() };
            let mut sampler = open_sampler(&config, 3).unwrap();
            assert_eq!(sampler.name(), entry.name);
            assert!(!entry.about.is_empty() && !entry.source.is_empty());
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
        let open = |text: &str| {
            let error = open_sampler(&toml::from_str(text).unwrap(), 0).unwrap_err();
            match std::error::Error::source(&error) {
                Some(source) => format!("{error}: {source}"),
                None => error.to_string(),
            }
        };
        assert_eq!(
            open("kind = 'hard'"),
            "find task sampler `hard`: known are `uniform`, `dynamic`"
        );
        assert!(open("kind = 'uniform'\nmax_rounds = 1").contains("field `max_rounds`"));
        assert!(open("kind = 'dynamic'\nmax_rounds = 0").contains("max_rounds is 0"));
    }
}
