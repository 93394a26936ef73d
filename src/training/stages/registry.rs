//! The kinds of stages that have a name.

use serde::Serialize;
use spar_core::registry::{Axis, Given, OptionSet, Row, RowError, Table, to_options};

use super::Stage;
use super::evaluate::{Evaluate, EvaluateOptions};
use super::imitate::Imitate;
use super::offline::Offline;
use super::prefer::Prefer;
use super::reinforce::Reinforce;
use crate::recipe::{ImitateConfig, OfflineConfig, PreferConfig, ReinforceConfig, StageConfig};

/// Makes a stage from its options, or tells all that is wrong with them.
pub type OpenStage = fn(&Given<'_>) -> Result<Box<dyn Stage>, RowError>;

/// A kind of stage that has a name.
pub type StageRow = Row<OpenStage>;

const AXIS: Axis =
    Axis { name: "stages", what: "stage kind", about: "What a run can do, one after the other." };

const ROWS: &[StageRow] = &[
    Row {
        name: "imitate",
        about: "Cross-entropy on demonstrations, with roll-in where asked, or on chat files.",
        source: "behavioural cloning; roll-in: DAgger, arXiv 1011.0686",
        formula: "minimise -log pi(a | s) over what was demonstrated",
        options: OptionSet::of::<ImitateConfig>(),
        open: |given| Ok(Box::new(Imitate { config: given.read()? })),
    },
    Row {
        name: "reinforce",
        about: "Collects groups of episodes, estimates credit over them, and updates the policy.",
        source: "policy gradients, Williams 1992; PPO, arXiv 1707.06347",
        formula: "",
        options: OptionSet::of::<ReinforceConfig>(),
        open: |given| Ok(Box::new(Reinforce { config: given.read()? })),
    },
    Row {
        name: "prefer",
        about: "Learns from pairs of answers, in files or the best and the worst of groups that it plays.",
        source: "DPO, arXiv 2305.18290; pairs by reward: iterative DPO, arXiv 2312.11456",
        formula: "",
        options: OptionSet::of::<PreferConfig>(),
        open: |given| Ok(Box::new(Prefer { config: given.read()? })),
    },
    Row {
        name: "offline",
        about: "Learns from episodes that others played: by behaviour cloning, of the best alone, or by advantages.",
        source: "AWR, arXiv 1910.00177; A-LoL, arXiv 2305.14718; percent BC, arXiv 2106.01345; scores as D4RL, arXiv 2004.07219",
        formula: "",
        options: OptionSet::of::<OfflineConfig>(),
        open: |given| Ok(Box::new(Offline { config: given.read()? })),
    },
    Row {
        name: "evaluate",
        about: "Plays splits with the present weights or the best checkpoint; trains nothing.",
        source: "mean success with Wilson's interval, 1927",
        formula: "",
        options: OptionSet::of::<EvaluateOptions>(),
        open: |given| Ok(Box::new(Evaluate { config: given.read()? })),
    },
];

static TABLE: Table<OpenStage> = Table::new(AXIS, ROWS);

/// All kinds of stages that have a name; a new one is one file and one row here.
pub fn stage_registry() -> &'static Table<OpenStage> {
    &TABLE
}

/// Makes a stage; a kind of stage that stands on another opens it so.
///
/// # Errors
///
/// All that is wrong with its kind and options.
pub fn open_stage(config: &StageConfig) -> Result<Box<dyn Stage>, Vec<String>> {
    let options = to_options(&config.options);
    let row = stage_registry().find(&config.kind).map_err(|error| error.problems())?;
    let opened =
        stage_registry().choose(&config.kind, &options).and_then(|(row, given)| (row.open)(&given));
    opened.map_err(|error| {
        let mut problems = error.problems();
        let known: Vec<String> =
            row.options.describe().into_iter().map(|option| option.name).collect();
        if options.keys().any(|name| !known.contains(name)) {
            problems.push(format!("beside options, stages have {OF_EVERY_STAGE}"));
        }
        problems
    })
}

/// What every stage has, whatever its kind.
const OF_EVERY_STAGE: &str = "`kind`, `name`, `learner`, `data` and `re_evaluate`";

/// Options as a recipe has them.
///
/// # Panics
///
/// Where they are no table of TOML.
pub fn written(options: &impl Serialize) -> toml::Table {
    // By way of text, in which numbers are as short as they were written.
    let text = toml::to_string(options).expect("options can be written as TOML");
    toml::from_str(&text).expect("what was written can be read")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_opens_with_its_defaults_and_tells_its_options() {
        for row in stage_registry() {
            let named = |options| {
                let head = toml::from_str::<StageConfig>(&format!("kind = '{}'", row.name));
                StageConfig { options, ..head.unwrap() }
            };
            let defaults = open_stage(&named(toml::Table::new())).unwrap().options();
            assert!(!defaults.is_empty(), "{}", row.name);
            let stage = open_stage(&named(defaults.clone())).unwrap();
            assert_eq!(stage.options(), defaults, "{}", row.name);
            let described = row.options.describe();
            assert!(defaults.keys().all(|name| described.iter().any(|it| it.name == *name)));
        }
    }

    #[test]
    fn options_that_a_kind_does_not_have_are_told_all_at_once() {
        let config: StageConfig =
            toml::from_str("kind = 'imitate'\ngroup_size = 2\nshapers = []\ntasks = 'many'")
                .unwrap();
        let told = open_stage(&config).err().unwrap();
        assert_eq!(told.len(), 4, "{told:?}");
        assert!(told[0].contains("no option `group_size`") && told[0].contains("`roll_in`"));
        assert!(told[2].contains("tasks: invalid type: string \"many\""), "{told:?}");
        assert!(told[3].contains("`re_evaluate`"), "{told:?}");
        let unknown: StageConfig = toml::from_str("kind = 'immitate'").unwrap();
        assert!(open_stage(&unknown).err().unwrap()[0].contains("known are `imitate`"));
    }
}
