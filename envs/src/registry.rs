//! The environments that have a name.

use spar_tasks::Task;

use crate::frozen_lake::FrozenLake;
use crate::household::Household;
use crate::terminal::Terminal;
use crate::{Environment, EnvironmentError, Resources};

/// An environment that has a name.
pub struct EnvironmentEntry {
    /// The name.
    pub name: &'static str,
    /// One line on what it is about.
    pub about: &'static str,
    /// A suite that exercises it, for the conformance tests.
    pub suite: &'static str,
    /// Whether its episodes need sandboxes.
    pub needs_sandbox: bool,
    /// Makes a task interactive.
    pub open: OpenTask,
}

/// Makes a task interactive with what it needs of the machine.
pub type OpenTask = fn(&Task, &Resources) -> Result<Box<dyn Environment>, EnvironmentError>;

/// All environments that have a name; a new one is one file and one row here.
pub fn environment_registry() -> &'static [EnvironmentEntry] {
    &[
        EnvironmentEntry {
            name: "household",
            about: "Household chores in text, equal to ALFWorld's text engine.",
            suite: "household",
            needs_sandbox: false,
            open: |task, _| Ok(Box::new(Household::open(task)?)),
        },
        EnvironmentEntry {
            name: "frozen-lake",
            about: "Cross a frozen lake drawn in text, slippery or not.",
            suite: "frozen-lake",
            needs_sandbox: false,
            open: |task, _| Ok(Box::new(FrozenLake::open(task)?)),
        },
        EnvironmentEntry {
            name: "terminal",
            about: "Work at a shell in a sandbox, judged by a script when it is done.",
            suite: "terminal",
            needs_sandbox: true,
            open: |task, resources| Ok(Box::new(Terminal::open(task, resources)?)),
        },
    ]
}

/// Whether the episodes of an environment need sandboxes; `false` for one that does not exist.
pub fn needs_sandbox(environment: &str) -> bool {
    environment_registry().iter().any(|entry| entry.name == environment && entry.needs_sandbox)
}

/// Makes a task interactive.
///
/// # Errors
///
/// [`EnvironmentError`] when no environment has the task's name for it, it refuses the task, or it
/// needs what `resources` lack.
pub fn open_environment(
    task: &Task,
    resources: &Resources,
) -> Result<Box<dyn Environment>, EnvironmentError> {
    let entry = environment_registry().iter().find(|entry| entry.name == task.environment);
    match entry {
        Some(entry) => (entry.open)(task, resources),
        None => {
            let known: Vec<_> =
                environment_registry().iter().map(|entry| format!("`{}`", entry.name)).collect();
            let (name, known) = (task.environment.clone(), known.join(", "));
            Err(EnvironmentError::Unknown { name, known })
        }
    }
}
