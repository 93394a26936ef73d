//! Which objective is minimised.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spar_core::registry::{Axis, Given, OptionSet, Options, Row, Table, to_options};

use super::value_loss::WithValueLoss;
use super::{
    Clip, ClipCov, ClipCovOptions, ClipOptions, Dpo, DpoOptions, Gspo, GspoOptions,
    LossAggregation, Objective, Supervised, ValueLossOptions,
};
use crate::TrainerError;

/// Which objective is minimised, and how token losses become one number.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ObjectiveConfig {
    /// Name of the objective; one in [`objective_registry`]. Default `clip`.
    pub name: String,
    /// How token losses become one number; `"token_mean"`, `"sample_mean"` or
    /// `{ sample_sum = { constant = 512.0 } }`. Default `"token_mean"`.
    pub aggregation: LossAggregation,
    /// Options of the named objective, such as those of [`ClipOptions`]. Default empty.
    #[schemars(with = "Options")]
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

/// Makes an objective from its options.
pub type OpenObjective = fn(&Given<'_>) -> Result<Box<dyn Objective>, TrainerError>;

/// An objective that has a name.
pub type ObjectiveRow = Row<OpenObjective>;

const AXIS: Axis =
    Axis { name: "objectives", what: "objective", about: "What training minimises." };

const ROWS: &[ObjectiveRow] = &[
    Row {
        name: "clip",
        about: "The policy gradient, clipped token by token; with a reference model and an entropy bonus if asked.",
        source: "PPO, arXiv 1707.06347, equations 7 and 9; dual clip, arXiv 1912.09729; two sides: DAPO, arXiv \
                 2503.14476; k: GRPO, arXiv 2402.03300",
        formula: "l = max(-A r, -A clip(r, 1 - clip_low, 1 + clip_high)), at most -A dual_clip where A < 0; \
                  plus kl_weight k, less entropy_weight H; r = pi / pi_old",
        options: OptionSet::of::<ClipOptions>(),
        open: |given| Ok(Box::new(Clip::new(given.read()?))),
    },
    Row {
        name: "clip_cov",
        about: "The same without some of the tokens that would lower the entropy most.",
        source: "arXiv 2505.22617, equations 9 to 11",
        formula: "as `clip`, without a random share of the tokens with \
                  cov_low < (A_t - mean A) (log pi_t - mean log pi) < cov_high",
        options: OptionSet::of::<ClipCovOptions>(),
        open: |given| Ok(Box::new(ClipCov::new(given.read()?))),
    },
    Row {
        name: "dpo",
        about: "Answers that were chosen become likelier than those that were rejected, as a reference model sees both.",
        source: "DPO, arXiv 2305.18290, equation 7; IPO, arXiv 2310.12036, equation 17",
        formula: "-(1 - s) log sigmoid(beta h) - s log sigmoid(-beta h), or with `ipo` (h - 1 / (2 beta))^2; \
                  h = r(chosen) - r(rejected), r = sum_t log pi / pi_ref",
        options: OptionSet::of::<DpoOptions>(),
        open: |given| Ok(Box::new(Dpo::new(given.read()?))),
    },
    Row {
        name: "gspo",
        about: "The policy gradient, clipped by the ratio of whole sequences.",
        source: "GSPO, arXiv 2507.18071, equations 5, 7, 13 and 14",
        formula: "l = max(-A s, -A clip(s, 1 - clip_low, 1 + clip_high)); \
                  s = exp(1/|y| sum_t (log pi - log pi_old))",
        options: OptionSet::of::<GspoOptions>(),
        open: |given| Ok(Box::new(Gspo::new(given.read()?))),
    },
    Row {
        name: "supervised",
        about: "Imitates what weighs in the cross-entropy: demonstrations, or the best of each group.",
        source: "cross-entropy; of groups CRR's binary filter, arXiv 2006.15134",
        formula: "l = -log pi",
        options: OptionSet::NONE,
        open: |_| Ok(Box::new(Supervised)),
    },
];

static TABLE: Table<OpenObjective> = Table::new(AXIS, ROWS);

/// All objectives that have a name; a new one is a file in this folder and a row here.
pub fn objective_registry() -> &'static Table<OpenObjective> {
    &TABLE
}

impl ObjectiveConfig {
    /// Makes the objective.
    ///
    /// # Errors
    ///
    /// [`TrainerError::Row`] lists the known names; [`TrainerError::Config`] tells all
    /// that is wrong with the options.
    pub fn build(&self) -> Result<Box<dyn Objective>, TrainerError> {
        let row = objective_registry().find(&self.name)?;
        let mut problems = self.aggregation.problems();
        problems.extend(self.value_loss.iter().flat_map(ValueLossOptions::problems));
        let options = to_options(&self.options);
        let objective = match objective_registry().choose(row.name, &options) {
            Ok((row, given)) => (row.open)(&given)?,
            Err(error) => {
                problems.extend(error.problems());
                return Err(TrainerError::Config { problems });
            }
        };
        let tell = |problem| format!("{} `{}`: {problem}", AXIS.what, row.name);
        let of_objective = objective.aggregation_problems(self.aggregation);
        problems.extend(of_objective.into_iter().map(tell));
        if self.value_loss.is_some() && !objective.takes_value_loss() {
            let problem = "it takes no `value_loss`: it trains no policy by returns";
            problems.push(tell(problem.to_owned()));
        }
        match &self.value_loss {
            _ if !problems.is_empty() => Err(TrainerError::Config { problems }),
            None => Ok(objective),
            Some(options) => Ok(Box::new(WithValueLoss::new(objective, options.clone()))),
        }
    }

    /// All that is wrong with the values; empty when nothing is.
    pub fn problems(&self) -> Vec<String> {
        self.build().err().map(|error| error.problems()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_builds_its_objective() {
        for name in objective_registry().iter().map(|row| row.name) {
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
            ["find objective `clop`: known are `clip`, `clip_cov`, `dpo`, `gspo`, `supervised`"]
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
        assert_eq!(
            config.problems(),
            ["objective `supervised`: there is no option `clip_low`: it has no options"]
        );
        assert!(toml::from_str::<ObjectiveConfig>("nam = 'clip'").is_err());
    }
}
