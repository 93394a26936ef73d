//! Which objective is minimised.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::{Clip, ClipOptions, LossAggregation, Objective, Supervised};
use crate::TrainerError;

/// Which objective is minimised, and how token losses become one number.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ObjectiveConfig {
    /// Name of the objective; `clip` or `supervised`. Default `clip`.
    pub name: String,
    /// How token losses become one number; `"token_mean"`, `"sample_mean"` or
    /// `{ sample_sum = { constant = 512.0 } }`. Default `"token_mean"`.
    pub aggregation: LossAggregation,
    /// Options of the named objective, such as those of [`ClipOptions`]. Default empty.
    pub options: toml::Table,
}

impl Default for ObjectiveConfig {
    fn default() -> Self {
        Self {
            name: "clip".to_owned(),
            aggregation: LossAggregation::default(),
            options: toml::Table::new(),
        }
    }
}

type Constructor = fn(&toml::Table) -> Result<Box<dyn Objective>, Vec<String>>;

/// Every objective; a new one is a file in this folder and a line here.
const OBJECTIVES: &[(&str, Constructor)] = &[("clip", clip), ("supervised", supervised)];

/// The names [`ObjectiveConfig::name`] can have.
pub fn objective_names() -> impl Iterator<Item = &'static str> {
    OBJECTIVES.iter().map(|(name, _)| *name)
}

impl ObjectiveConfig {
    /// Makes the objective.
    ///
    /// # Errors
    ///
    /// [`TrainerError::UnknownName`] lists the known names; [`TrainerError::Config`] tells all
    /// that is wrong with the options.
    pub fn build(&self) -> Result<Box<dyn Objective>, TrainerError> {
        let Some((_, constructor)) = OBJECTIVES.iter().find(|(name, _)| *name == self.name) else {
            return Err(TrainerError::UnknownName {
                what: "objective",
                name: self.name.clone(),
                known: objective_names().collect::<Vec<_>>().join(", "),
            });
        };
        let mut problems = self.aggregation.problems();
        match constructor(&self.options) {
            Ok(objective) if problems.is_empty() => return Ok(objective),
            Ok(_) => {}
            Err(more) => problems.extend(more),
        }
        Err(TrainerError::Config { problems })
    }

    /// All that is wrong with the values; empty when nothing is.
    pub fn problems(&self) -> Vec<String> {
        match self.build() {
            Ok(_) => Vec::new(),
            Err(TrainerError::Config { problems }) => problems,
            Err(other) => vec![other.to_string()],
        }
    }
}

fn clip(options: &toml::Table) -> Result<Box<dyn Objective>, Vec<String>> {
    let options: ClipOptions = read_options(options)?;
    match options.problems() {
        problems if problems.is_empty() => Ok(Box::new(Clip::new(options))),
        problems => Err(problems),
    }
}

fn supervised(options: &toml::Table) -> Result<Box<dyn Objective>, Vec<String>> {
    let refuse = |name: &String| format!("objective `supervised` has no option `{name}`");
    match options.keys().map(refuse).collect::<Vec<_>>() {
        problems if problems.is_empty() => Ok(Box::new(Supervised)),
        problems => Err(problems),
    }
}

pub(crate) fn read_options<T: DeserializeOwned>(options: &toml::Table) -> Result<T, Vec<String>> {
    options.clone().try_into().map_err(|error| vec![error.to_string().trim().to_owned()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_builds_its_objective() {
        for name in objective_names() {
            let config = ObjectiveConfig { name: name.to_owned(), ..ObjectiveConfig::default() };
            assert_eq!(config.build().unwrap().name(), name);
        }
    }

    #[test]
    fn an_unknown_name_lists_the_known_ones() {
        let config: ObjectiveConfig = toml::from_str("name = \"clop\"").unwrap();
        assert_eq!(config.problems(), ["find the objective `clop`; known are clip, supervised"]);
    }

    #[test]
    fn all_problems_are_told_at_once() {
        let config: ObjectiveConfig = toml::from_str(
            "aggregation = { sample_sum = { constant = 0 } }
             options = { clip_low = 2, dual_clip = 0.5 }",
        )
        .unwrap();
        assert_eq!(config.problems().len(), 3);
        let config: ObjectiveConfig =
            toml::from_str("name = 'supervised'\noptions = { clip_low = 0.2 }").unwrap();
        assert_eq!(config.problems(), ["objective `supervised` has no option `clip_low`"]);
        assert!(toml::from_str::<ObjectiveConfig>("nam = 'clip'").is_err());
    }
}
