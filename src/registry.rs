//! All that has a name, and rows that other crates add to it.

use spar_agent::credit::{EstimatorRow, credit_registry};
use spar_agent::filters::{FilterRow, filter_registry};
use spar_agent::scaffolds::{ScaffoldRow, scaffold_registry};
use spar_agent::strategies::{StrategyRow, strategy_registry};
use spar_core::registry::{AnyTable, InstallError};
use spar_envs::{EnvironmentRow, environment_registry};
use spar_parsers::{ParserRow, parser_registry};
use spar_policy::state_heads::{StateHeadRow, state_head_registry};
use spar_sandbox::registry::{BackendRow, backend_registry};
use spar_tasks::formats::{FormatRow, suite_formats};
use spar_tasks::graders::{GraderRow, grader_registry};
use spar_tasks::samplers::{SamplerRow, sampler_registry};
use spar_tasks::{ShaperRow, SuiteRow, shaper_registry, suite_registry};
use spar_trainer::{
    ObjectiveRow, OptimizerRow, objective_registry, optimizer_registry, signal_stages,
};

use crate::players::PLAYERS;
use crate::recipe::SHIPPED_RECIPES;
use crate::training::stages::{StageRow, stage_registry};

/// All tables, in the order in which they are listed.
pub fn tables() -> [&'static dyn AnyTable; 19] {
    [
        suite_registry(),
        suite_formats(),
        environment_registry(),
        backend_registry(),
        &SHIPPED_RECIPES,
        sampler_registry(),
        strategy_registry(),
        scaffold_registry(),
        parser_registry(),
        grader_registry(),
        shaper_registry(),
        signal_stages(),
        credit_registry(),
        filter_registry(),
        objective_registry(),
        state_head_registry(),
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
/// # fn guess() -> spar::envs::EnvironmentRow { unimplemented!() }
/// fn main() -> std::process::ExitCode {
///     spar::main(Registry::builtin().environment(guess()))
/// }
/// # main();
/// ```
#[derive(Default)]
pub struct Registry {
    rows: Vec<Box<dyn FnOnce() -> Result<(), InstallError>>>,
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
                self.rows.push(Box::new(move || $table().install(row)));
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
    /// Adds a backend of sandboxes.
    backend: BackendRow, backend_registry;
    /// Adds a task sampler.
    sampler: SamplerRow, sampler_registry;
    /// Adds a rollout strategy.
    strategy: StrategyRow, strategy_registry;
    /// Adds a scaffold.
    scaffold: ScaffoldRow, scaffold_registry;
    /// Adds a parser of actions.
    parser: ParserRow, parser_registry;
    /// Adds a grader.
    grader: GraderRow, grader_registry;
    /// Adds a reward shaper.
    shaper: ShaperRow, shaper_registry;
    /// Adds an advantage estimator.
    estimator: EstimatorRow, credit_registry;
    /// Adds a group filter.
    filter: FilterRow, filter_registry;
    /// Adds an objective.
    objective: ObjectiveRow, objective_registry;
    /// Adds a head that reads values off the decoder's final states.
    head: StateHeadRow, state_head_registry;
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
    /// [`RegistryError`] tells of all rows that cannot be added; the others are.
    pub fn install(self) -> Result<(), RegistryError> {
        let results = self.rows.into_iter().map(|install| install());
        let problems: Vec<_> = results.filter_map(Result::err).collect();
        if problems.is_empty() { Ok(()) } else { Err(RegistryError { problems }) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
