//! The environments that have a name.

use spar_tasks::Task;

use crate::frozen_lake::FrozenLake;
use crate::household::Household;
use crate::{Environment, EnvironmentError};

/// An environment that has a name.
pub struct EnvironmentEntry {
    /// The name.
    pub name: &'static str,
    /// One line on what it is about.
    pub about: &'static str,
    /// A suite that exercises it, for the conformance tests.
    pub suite: &'static str,
    /// Makes a task interactive.
    pub open: fn(&Task) -> Result<Box<dyn Environment>, EnvironmentError>,
}

/// All environments that have a name; a new one is one file and one row here.
pub fn environment_registry() -> &'static [EnvironmentEntry] {
    &[
        EnvironmentEntry {
            name: "household",
            about: "Household chores in text, equal to ALFWorld's text engine.",
            suite: "household",
            open: |task| Ok(Box::new(Household::open(task)?)),
        },
        EnvironmentEntry {
            name: "frozen-lake",
            about: "Cross a frozen lake drawn in text, slippery or not.",
            suite: "frozen-lake",
            open: |task| Ok(Box::new(FrozenLake::open(task)?)),
        },
    ]
}

/// Makes a task interactive.
///
/// # Errors
///
/// [`EnvironmentError`] when no environment has the task's name for it, or it refuses the task.
pub fn open_environment(task: &Task) -> Result<Box<dyn Environment>, EnvironmentError> {
    let entry = environment_registry().iter().find(|entry| entry.name == task.environment);
    match entry {
        Some(entry) => (entry.open)(task),
        None => {
            let known: Vec<_> =
                environment_registry().iter().map(|entry| format!("`{}`", entry.name)).collect();
            let (name, known) = (task.environment.clone(), known.join(", "));
            Err(EnvironmentError::Unknown { name, known })
        }
    }
}
