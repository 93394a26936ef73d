//! Which objective is minimised.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::value_loss::WithValueLoss;
use super::{
    Clip, ClipCov, ClipCovOptions, ClipOptions, Dpo, DpoOptions, Gspo, GspoOptions,
    LossAggregation, Objective, Supervised, ValueLossOptions,
};
use crate::TrainerError;

/// Which objective is minimised, and how token losses become one number.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ObjectiveConfig {
    /// Name of the objective; one in [`objective_registry`]. Default `clip`.
    pub name: String,
    /// How token losses become one number; `"token_mean"`, `"sample_mean"` or
    /// `{ sample_sum = { constant = 512.0 } }`. Default `"token_mean"`.
    pub aggregation: LossAggregation,
    /// Options of the named objective, such as those of [`ClipOptions`]. Default empty.
    pub options: toml::Table,
    /// The loss of a value head, `{ weight = 0.5, clip = 0.2 }`, beside that of the named objective, where this trains a
    /// policy. Default absent: there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value_loss: Option<ValueLossOptions>,
}

impl Default for ObjectiveConfig {
    fn default() -> Self {
        Self {
            name: "clip".to_owned(),
            aggregation: LossAggregation::default(),
            options: toml::Table::new(),
            value_loss: None,
        }
    }
}

type Constructor = fn(&toml::Table) -> Result<Box<dyn Objective>, Vec<String>>;

/// An objective that has a name.
pub struct ObjectiveEntry {
    /// The name.
    pub name: &'static str,
    /// One line on what it does.
    pub about: &'static str,
    /// Where it is described.
    pub source: &'static str,
    open: Constructor,
}

/// All objectives that have a name; a new one is a file in this folder and a row here.
pub fn objective_registry() -> &'static [ObjectiveEntry] {
    &[
        ObjectiveEntry {
            name: "clip",
            about: "The policy gradient, clipped token by token; with a reference model and an entropy bonus if asked.",
            source: "PPO, arXiv 1707.06347, equations 7 and 9; DAPO, arXiv 2503.14476",
            open: clip,
        },
        ObjectiveEntry {
            name: "clip_cov",
            about: "The same without some of the tokens that would lower the entropy most.",
            source: "arXiv 2505.22617, equations 9 to 11",
            open: clip_cov,
        },
        ObjectiveEntry {
            name: "dpo",
            about: "Answers that were chosen become likelier than those that were rejected, as a reference model sees both.",
            source: "DPO, arXiv 2305.18290, equation 7; IPO, arXiv 2310.12036, equation 17",
            open: dpo,
        },
        ObjectiveEntry {
            name: "gspo",
            about: "The policy gradient, clipped by the ratio of whole sequences.",
            source: "GSPO, arXiv 2507.18071, equations 5, 7, 13 and 14",
            open: gspo,
        },
        ObjectiveEntry {
            name: "supervised",
            about: "Imitates what weighs in the cross-entropy: demonstrations, or the best of each group.",
            source: "cross-entropy; of groups CRR's binary filter, arXiv 2006.15134",
            open: supervised,
        },
    ]
}

impl ObjectiveConfig {
    /// Makes the objective.
    ///
    /// # Errors
    ///
    /// [`TrainerError::UnknownName`] lists the known names; [`TrainerError::Config`] tells all
    /// that is wrong with the options.
    pub fn build(&self) -> Result<Box<dyn Objective>, TrainerError> {
        let named = |entry: &&ObjectiveEntry| entry.name == self.name;
        let Some(entry) = objective_registry().iter().find(named) else {
            let names: Vec<_> = objective_registry().iter().map(|entry| entry.name).collect();
            return Err(TrainerError::UnknownName {
                what: "objective",
                name: self.name.clone(),
                known: names.join(", "),
            });
        };
        let mut problems = self.aggregation.problems();
        if self.name == "gspo" && self.aggregation != LossAggregation::SampleMean {
            // Its ratio is one of the sequence, and so is the mean.
            problems.push("objective `gspo` is used with aggregation = \"sample_mean\"".to_owned());
        }
        if self.name == "dpo" && self.aggregation != LossAggregation::TokenMean {
            let problem =
                "objective `dpo` is a mean over pairs: leave `aggregation` at \"token_mean\"";
            problems.push(problem.to_owned());
        }
        problems.extend(self.value_loss.iter().flat_map(ValueLossOptions::problems));
        let objective = (entry.open)(&self.options);
        if self.value_loss.is_some() && objective.as_ref().is_ok_and(|it| !it.takes_value_loss()) {
            let name = &self.name;
            problems.push(format!(
                "objective `{name}` takes no `value_loss`: it trains no policy by returns"
            ));
        }
        match (objective, &self.value_loss) {
            (Ok(policy), None) if problems.is_empty() => return Ok(policy),
            (Ok(policy), Some(options)) if problems.is_empty() => {
                return Ok(Box::new(WithValueLoss::new(policy, options.clone())));
            }
            (Ok(_), _) => {}
            (Err(more), _) => problems.extend(more),
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

fn clip_cov(options: &toml::Table) -> Result<Box<dyn Objective>, Vec<String>> {
    let options: ClipCovOptions = read_options(options)?;
    match options.problems() {
        problems if problems.is_empty() => Ok(Box::new(ClipCov::new(options))),
        problems => Err(problems),
    }
}

fn dpo(options: &toml::Table) -> Result<Box<dyn Objective>, Vec<String>> {
    let options: DpoOptions = read_options(options)?;
    match options.problems() {
        problems if problems.is_empty() => Ok(Box::new(Dpo::new(options))),
        problems => Err(problems),
    }
}

fn gspo(options: &toml::Table) -> Result<Box<dyn Objective>, Vec<String>> {
    let options: GspoOptions = read_options(options)?;
    match options.problems() {
        problems if problems.is_empty() => Ok(Box::new(Gspo::new(options))),
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
        for ObjectiveEntry { name, about, source, .. } in objective_registry() {
            assert!(!about.is_empty() && !source.is_empty());
            let name = *name;
            let aggregation = match name {
                "gspo" => LossAggregation::SampleMean,
                _ => LossAggregation::default(),
            };
            let options = toml::Table::new();
            let config =
                ObjectiveConfig { name: name.to_owned(), aggregation, options, value_loss: None };
            assert_eq!(config.build().unwrap().name(), name);
        }
    }

    #[test]
    fn an_unknown_name_lists_the_known_ones() {
        let config: ObjectiveConfig = toml::from_str("name = \"clop\"").unwrap();
        assert_eq!(
            config.problems(),
            ["find the objective `clop`; known are clip, clip_cov, dpo, gspo, supervised"]
        );
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
