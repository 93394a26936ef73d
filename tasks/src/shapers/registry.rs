//! The reward shapers that have a name.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::{Gated, LengthDiscount, RewardShaper};
use crate::ShaperError;

/// Which reward shaper, with which options.
///
/// ```
/// use spar_tasks::{ShaperConfig, open_shaper};
///
/// let config: ShaperConfig = toml::from_str(
///     r#"
///     name = "length_discount"
///     options = { factor = 0.9 }
///     "#,
/// )?;
/// assert_eq!(open_shaper(&config).unwrap().name(), "length_discount");
/// # Ok::<(), toml::de::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShaperConfig {
    /// The shaper's name.
    pub name: String,
    /// Its options; those left out have the defaults that the shaper documents. Default empty.
    #[serde(default)]
    pub options: toml::Table,
}

impl ShaperConfig {
    /// The shaper `name` with its default options.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), options: toml::Table::new() }
    }
}

/// A reward shaper that has a name.
pub struct ShaperEntry {
    /// The name.
    pub name: &'static str,
    /// One line on what it does.
    pub about: &'static str,
    /// Makes one from its options.
    pub open: fn(&toml::Table) -> Result<Box<dyn RewardShaper>, ShaperError>,
}

/// All reward shapers that have a name; a new one is one file and one row here.
pub fn shaper_registry() -> &'static [ShaperEntry] {
    &[
        ShaperEntry {
            name: "gated",
            about: "What is earned on the way counts only where the outcome is good enough.",
            open: |given| Ok(Box::new(Gated::new(&options("gated", given)?)?)),
        },
        ShaperEntry {
            name: "length_discount",
            about: "Success is worth less by a factor per turn of the episode; penalties are not.",
            open: |given| Ok(Box::new(LengthDiscount::new(&options("length_discount", given)?)?)),
        },
    ]
}

/// Makes a reward shaper.
///
/// # Errors
///
/// [`ShaperError`] when none has the name, it does not have the options, or one is out of range.
pub fn open_shaper(config: &ShaperConfig) -> Result<Box<dyn RewardShaper>, ShaperError> {
    match shaper_registry().iter().find(|entry| entry.name == config.name) {
        Some(entry) => (entry.open)(&config.options),
        None => {
            let known: Vec<_> =
                shaper_registry().iter().map(|entry| format!("`{}`", entry.name)).collect();
            Err(ShaperError::Unknown { name: config.name.clone(), known: known.join(", ") })
        }
    }
}

fn options<T: DeserializeOwned>(name: &'static str, given: &toml::Table) -> Result<T, ShaperError> {
    let options = given.clone().try_into();
    options.map_err(|source| ShaperError::Options { name, source: Box::new(source) })
}

#[cfg(test)]
mod tests {
    use std::error::Error;

    use super::super::RewardShapers;
    use super::super::tests::episode;
    use super::*;

    #[test]
    fn every_shaper_opens_and_keeps_one_list_per_turn() {
        let episodes =
            [episode(&[&[("success", 1.0)], &[], &[("invalid_action", -1.0)]]), episode(&[])];
        for entry in shaper_registry() {
            let config = ShaperConfig::new(entry.name);
            assert_eq!(open_shaper(&config).unwrap().name(), entry.name);
            let shapers = RewardShapers::open(&[config.clone(), config]).unwrap();
            for episode in &episodes {
                let rewards = shapers.rewards(episode);
                assert_eq!(rewards.len(), episode.turns.len());
                assert!(rewards.iter().all(|reward| reward.is_finite()));
            }
        }
    }

    #[test]
    fn what_is_not_known_is_refused() {
        let error = open_shaper(&ShaperConfig::new("potential")).unwrap_err();
        assert_eq!(
            error.to_string(),
            "find reward shaper `potential`: known are `gated`, `length_discount`"
        );
        let mut config = ShaperConfig::new("length_discount");
        config.options.insert("facto".to_owned(), 0.9.into());
        let error = open_shaper(&config).unwrap_err();
        assert!(error.source().unwrap().to_string().contains("unknown field `facto`"));
    }
}
