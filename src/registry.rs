//! All that has a name, and rows that other crates add to it.

use spar_agent::contexts::{ContextPolicyRow, context_registry};
use spar_agent::credit::{EstimatorRow, credit_registry};
use spar_agent::filters::{FilterRow, filter_registry};
use spar_agent::scaffolds::{ScaffoldRow, scaffold_registry};
use spar_agent::strategies::{StrategyRow, strategy_registry};
use spar_core::registry::{AnyTable, InstallError, Row, Table};
use spar_envs::tools::{ToolRow, tool_registry};
use spar_envs::toolsets::{ToolsetRow, toolset_registry};
use spar_envs::wrappers::{WrapperRow, wrapper_registry};
use spar_envs::{EnvironmentRow, environment_registry};
use spar_parsers::{ParserRow, parser_registry};
use spar_policy::draw_rules::{DrawRuleRow, draw_rule_registry};
use spar_policy::state_heads::{StateHeadRow, state_head_registry};
use spar_predictors::{PredictorRow, predictor_registry};
use spar_sandbox::registry::{BackendRow, backend_registry};
use spar_tasks::formats::{FormatRow, suite_formats};
use spar_tasks::graders::{GraderRow, grader_registry};
use spar_tasks::samplers::{SamplerRow, sampler_registry};
use spar_tasks::{ShaperRow, SuiteRow, shaper_registry, suite_registry};
use spar_trainer::{
    ObjectiveRow, OptimizerRow, TurnFeaturesRow, objective_registry, optimizer_registry,
    signal_stages, turn_features_registry,
};

use crate::players::PLAYERS;
use crate::recipe::SHIPPED_RECIPES;
use crate::training::stages::{StageRow, stage_registry};

/// All tables, in the order in which they are listed.
pub fn tables() -> [&'static dyn AnyTable; 26] {
    [
        suite_registry(),
        suite_formats(),
        environment_registry(),
        wrapper_registry(),
        tool_registry(),
        backend_registry(),
        &SHIPPED_RECIPES,
        sampler_registry(),
        strategy_registry(),
        scaffold_registry(),
        toolset_registry(),
        context_registry(),
        parser_registry(),
        grader_registry(),
        shaper_registry(),
        signal_stages(),
        turn_features_registry(),
        predictor_registry(),
        credit_registry(),
        filter_registry(),
        objective_registry(),
        state_head_registry(),
        draw_rule_registry(),
        optimizer_registry(),
        stage_registry(),
        &PLAYERS,
    ]
}

/// What ships, and the rows that a program adds to it.
///
/// Rows become part of the tables before anything else is done, so that recipes, lists, pages and checks know them like
/// those that ship. Three tables take none: signals have fields of samples, recipes are files that every command takes by
/// path, and players are part of the command line.
///
/// ```no_run
/// # use spar::Registry;
/// fn gym(guess: spar::envs::EnvironmentRow) -> std::process::ExitCode {
///     spar::main(Registry::builtin().environment(guess))
/// }
/// # let _ = gym;
/// ```
#[derive(Default)]
pub struct Registry {
    rows: Vec<AddedRow>,
}

/// A row with the table that it is added to.
struct AddedRow {
    install: Box<dyn FnOnce() -> Result<(), InstallError>>,
    check: Box<dyn FnOnce() -> Result<(), InstallError>>,
}

impl AddedRow {
    fn new<O: Copy + Send + 'static>(table: &'static Table<O>, row: Row<O>) -> Self {
        let install = Box::new(move || table.install(row));
        Self { install, check: Box::new(move || table.check(&row)) }
    }
}

/// Rows cannot be added.
#[derive(Debug, thiserror::Error)]
#[error("{}", problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
pub struct RegistryError {
    /// All that is wrong, at least one thing.
    pub problems: Vec<InstallError>,
}

/// A method for each table that is open to rows.
macro_rules! open_tables {
    ($($(#[$doc:meta])* $method:ident: $row:ty, $table:ident;)*) => {
        impl Registry {
            $($(#[$doc])*
            #[must_use]
            pub fn $method(mut self, row: $row) -> Self {
                self.rows.push(AddedRow::new($table(), row));
                self
            })*
        }
    };
}

open_tables! {
    /// Adds a suite.
    suite: SuiteRow, suite_registry;
    /// Adds a form in which tasks lie on disk.
    suite_format: FormatRow, suite_formats;
    /// Adds an environment.
    environment: EnvironmentRow, environment_registry;
    /// Adds a wrapper of environments.
    wrapper: WrapperRow, wrapper_registry;
    /// Adds a tool.
    tool: ToolRow, tool_registry;
    /// Adds a backend of sandboxes.
    backend: BackendRow, backend_registry;
    /// Adds a task sampler.
    sampler: SamplerRow, sampler_registry;
    /// Adds a rollout strategy.
    strategy: StrategyRow, strategy_registry;
    /// Adds a scaffold.
    scaffold: ScaffoldRow, scaffold_registry;
    /// Adds a toolset.
    toolset: ToolsetRow, toolset_registry;
    /// Adds a context policy.
    context_policy: ContextPolicyRow, context_registry;
    /// Adds a parser of actions.
    parser: ParserRow, parser_registry;
    /// Adds a grader.
    grader: GraderRow, grader_registry;
    /// Adds a reward shaper.
    shaper: ShaperRow, shaper_registry;
    /// Adds features of turns.
    turn_features: TurnFeaturesRow, turn_features_registry;
    /// Adds a predictor.
    predictor: PredictorRow, predictor_registry;
    /// Adds an advantage estimator.
    estimator: EstimatorRow, credit_registry;
    /// Adds a group filter.
    filter: FilterRow, filter_registry;
    /// Adds an objective.
    objective: ObjectiveRow, objective_registry;
    /// Adds a head that reads values off the decoder's final states.
    head: StateHeadRow, state_head_registry;
    /// Adds a draw rule.
    draw_rule: DrawRuleRow, draw_rule_registry;
    /// Adds an optimiser.
    optimizer: OptimizerRow, optimizer_registry;
    /// Adds a kind of stage.
    stage: StageRow, stage_registry;
}

impl Registry {
    /// What ships, and nothing else.
    pub fn builtin() -> Self {
        Self::default()
    }

    /// Puts the rows into the tables, before these are read for the first time. [`main`](crate::main) does it first;
    /// a program or a test that uses the library alone does it itself, once.
    ///
    /// # Errors
    ///
    /// [`RegistryError`] tells of all rows that cannot be added, or do not say what they have to; the others are added.
    pub fn install(self) -> Result<(), RegistryError> {
        let (installs, checks): (Vec<_>, Vec<_>) =
            self.rows.into_iter().map(|row| (row.install, row.check)).unzip();
        // What checks the options of a row may read other tables, which have all of their rows by then.
        let results = installs.into_iter().chain(checks).map(|step| step());
        let problems: Vec<_> = results.filter_map(Result::err).collect();
        if problems.is_empty() { Ok(()) } else { Err(RegistryError { problems }) }
    }
}

#[cfg(test)]
mod tests {
    use schemars::JsonSchema;
    use serde::{Deserialize, Serialize};
    use spar_core::registry::{Axis, NamedOptions, OptionSet};

    use super::*;

    type Number = fn() -> u32;

    const fn axis(name: &'static str) -> Axis {
        Axis { name, what: "number", about: "Numbers." }
    }

    const fn number(name: &'static str, options: OptionSet) -> Row<Number> {
        Row { name, about: "A number.", source: "own", formula: "", options, open: || 1 }
    }

    /// Tables whose rows' options name a row of the table at the same place of `PARTS`.
    static SUMS: [Table<Number>; 2] = [const { Table::new(axis("sums"), &[]) }; 2];
    static PARTS: [Table<Number>; 2] = [const { Table::new(axis("parts"), &[]) }; 2];

    /// Options of a sum of the first table.
    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields, default)]
    struct FirstOptions {
        /// What is added. Default `one`.
        part: String,
    }

    impl Default for FirstOptions {
        fn default() -> Self {
            Self { part: "one".to_owned() }
        }
    }

    impl NamedOptions for FirstOptions {
        fn problems(&self) -> Vec<String> {
            PARTS[0].find(&self.part).err().iter().map(ToString::to_string).collect()
        }
    }

    /// Those of the second table.
    #[derive(Default, Serialize, Deserialize, JsonSchema)]
    #[serde(transparent)]
    struct SecondOptions(FirstOptions);

    impl NamedOptions for SecondOptions {
        fn problems(&self) -> Vec<String> {
            PARTS[1].find(&self.0.part).err().iter().map(ToString::to_string).collect()
        }
    }

    #[test]
    fn rows_whose_options_read_another_table_are_added_in_any_order() {
        let part = |table: usize| AddedRow::new(&PARTS[table], number("one", OptionSet::NONE));
        let first = AddedRow::new(&SUMS[0], number("sum", OptionSet::of::<FirstOptions>()));
        Registry { rows: vec![first, part(0)] }.install().unwrap();
        let second = AddedRow::new(&SUMS[1], number("sum", OptionSet::of::<SecondOptions>()));
        Registry { rows: vec![part(1), second] }.install().unwrap();
        for table in 0..2 {
            assert_eq!((SUMS[table].len(), PARTS[table].len()), (1, 1));
        }
    }

    #[test]
    fn all_rows_that_do_not_say_what_they_have_to_are_told_of() {
        static TABLE: Table<Number> = Table::new(axis("numbers"), &[]);
        let blank = |name| Row { about: "", ..number(name, OptionSet::NONE) };
        let rows = [blank("one"), number("two", OptionSet::NONE), blank("three")];
        let rows = rows.into_iter().map(|row| AddedRow::new(&TABLE, row)).collect();
        let told = Registry { rows }.install().unwrap_err();
        let is_blank = |problem: &InstallError| matches!(problem, InstallError::Incomplete { .. });
        assert!(told.problems.len() == 2 && told.problems.iter().all(is_blank), "{told}");
    }

    #[test]
    fn every_row_says_what_it_has_to() {
        let mut names = Vec::new();
        for table in tables() {
            let axis = table.axis();
            assert!(!names.contains(&axis.name), "{}", axis.name);
            names.push(axis.name);
            assert!(axis.about.ends_with('.') && !axis.what.is_empty(), "{}", axis.name);
            assert_eq!(table.problems(), [""; 0]);
            assert!(!table.describe().is_empty(), "{}", axis.name);
        }
    }
}
