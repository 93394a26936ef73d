//! The checks that every backend has to pass.
//!
//! [`run`] walks a backend through all of them: what commands, files, snapshots and lifetimes have
//! to do, and what hostile programs must not be able to do. A check that needs what the backend
//! says it lacks asserts that asking for it is
//! [`SandboxError::Unsupported`](crate::SandboxError::Unsupported).
//!
//! A backend has to pass all checks but those that its row in the registry names
//! ([`NamedBackend::pins`](crate::registry::NamedBackend::pins)): a check that was left out is a failure like
//! any other, unless the row says so.
//!
//! ```
//! use spar_sandbox::backends::fake::FakeBackend;
//! use spar_sandbox::conformance::{Options, Programs, run};
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! let options = Options { only: Some("exit".into()), ..Options::new(Programs::fake()) };
//! let report = run(&FakeBackend::new(), &options).await;
//! println!("{report}");
//! assert!(report.is_passed());
//! # });
//! ```

mod abuse;
mod allow_list;
mod changes;
mod connections;
mod context;
mod exec;
mod files;
mod hostile;
mod lifecycle;
mod pins;
mod powers;
mod processes;
mod programs;
mod shells;
mod spawn;
mod terminals;

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::time::{Duration, Instant};

use crate::registry::backend_registry;
use crate::{Image, SandboxBackend};

pub use pins::Pins;
pub use programs::{Program, Programs};

use context::{Context, Finding};

/// How a backend is checked.
#[derive(Debug, Clone)]
pub struct Options {
    /// What runs where a program's own image is absent. Default [`Image::Default`].
    pub image: Image,
    /// One that cannot be had. Default a reference to a registry that does not exist.
    pub missing_image: Option<Image>,
    /// How to do simple things.
    pub programs: Programs,
    /// How long each check may take. Default 180 seconds.
    pub check_timeout: Duration,
    /// What the check of much output writes. Default 1 GiB.
    pub many_bytes: u64,
    /// Only checks whose name holds this. Default all.
    pub only: Option<String>,
    /// What the backend may leave out. Default what its row in the registry says; a backend without
    /// one may leave out what it likes.
    pub pins: Option<Pins>,
}

impl Options {
    /// The defaults, with these programs.
    pub fn new(programs: Programs) -> Self {
        Self {
            image: Image::Default,
            missing_image: Some(Image::Reference("localhost:1/spar/no-such-image".into())),
            programs,
            check_timeout: Duration::from_secs(180),
            many_bytes: 1 << 30,
            only: None,
            pins: None,
        }
    }
}

/// What came of all checks; displayed as a table.
#[derive(Debug, Clone)]
pub struct Report {
    /// The backend's name.
    pub backend: &'static str,
    /// In the order in which they ran.
    pub checks: Vec<Check>,
}

/// What came of one check.
#[derive(Debug, Clone)]
pub struct Check {
    /// A sentence: what holds if it passed.
    pub name: &'static str,
    /// What came of it.
    pub verdict: Verdict,
    /// How long it took.
    pub wall: Duration,
}

/// What came of one check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// What its name says holds.
    Passed,
    /// The backend says that it cannot do this, and says so when asked.
    Unsupported,
    /// It cannot be tried here.
    Skipped {
        /// Why not.
        reason: String,
    },
    /// It does not hold.
    Failed {
        /// What was seen.
        reason: String,
    },
}

impl Report {
    /// Whether nothing failed.
    pub fn is_passed(&self) -> bool {
        self.failures().next().is_none()
    }

    /// The checks that failed.
    pub fn failures(&self) -> impl Iterator<Item = &Check> {
        self.checks.iter().filter(|check| matches!(check.verdict, Verdict::Failed { .. }))
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.checks.iter().map(|check| check.name.len()).max().unwrap_or(0);
        for check in &self.checks {
            let Check { name, verdict, wall } = check;
            writeln!(f, "{name:width$}  {:>8.3} s  {verdict}", wall.as_secs_f64())?;
        }
        let count = |wanted: fn(&Verdict) -> bool| {
            self.checks.iter().filter(|check| wanted(&check.verdict)).count()
        };
        write!(
            f,
            "{}: {} passed, {} failed, {} unsupported, {} skipped",
            self.backend,
            count(|verdict| *verdict == Verdict::Passed),
            count(|verdict| matches!(verdict, Verdict::Failed { .. })),
            count(|verdict| *verdict == Verdict::Unsupported),
            count(|verdict| matches!(verdict, Verdict::Skipped { .. })),
        )
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Passed => write!(f, "passed"),
            Self::Unsupported => write!(f, "unsupported, and says so"),
            Self::Skipped { reason } => write!(f, "skipped: {reason}"),
            Self::Failed { reason } => write!(f, "FAILED: {reason}"),
        }
    }
}

type Running<'c> = Pin<Box<dyn Future<Output = Result<(), Finding>> + Send + 'c>>;

/// A sentence, and what tries whether it holds.
struct Trial {
    name: &'static str,
    attempt: for<'c> fn(&'c Context<'c>) -> Running<'c>,
}

/// A table of trials: `"sentence" => function`.
macro_rules! trials {
    ($($name:literal => $function:path,)*) => {
        &[$($crate::conformance::Trial { name: $name, attempt: |context| Box::pin($function(context)) }),*]
    };
}
use trials;

/// All trials, in their order.
fn all() -> impl Iterator<Item = &'static Trial> {
    let parts = [
        exec::TRIALS,
        files::TRIALS,
        hostile::TRIALS,
        shells::TRIALS,
        spawn::TRIALS,
        terminals::TRIALS,
        connections::TRIALS,
        lifecycle::TRIALS,
        processes::TRIALS,
        changes::TRIALS,
        powers::TRIALS,
        abuse::TRIALS,
        allow_list::TRIALS,
        lifecycle::LAST,
    ];
    parts.into_iter().flatten()
}

/// Walks `backend` through all checks, one after the other.
///
/// Failures are in the report; this function does not fail.
pub async fn run(backend: &dyn SandboxBackend, options: &Options) -> Report {
    let context = Context::new(backend, options).await;
    let mut report = Report { backend: backend.name(), checks: Vec::new() };
    let row = backend_registry().iter().find(|entry| entry.name == backend.name());
    let pins = options.pins.or(row.map(|entry| entry.pins));
    for trial in all() {
        if options.only.as_ref().is_some_and(|only| !trial.name.contains(only.as_str())) {
            continue;
        }
        let began = Instant::now();
        let attempt = tokio::time::timeout(options.check_timeout, (trial.attempt)(&context));
        let verdict = match attempt.await {
            Ok(Ok(())) => Verdict::Passed,
            Ok(Err(Finding::Unsupported)) => Verdict::Unsupported,
            Ok(Err(Finding::Skipped(reason))) => Verdict::Skipped { reason },
            Ok(Err(Finding::Failed(reason))) => Verdict::Failed { reason },
            Err(_) => {
                let reason = format!("not done after {} s", options.check_timeout.as_secs());
                Verdict::Failed { reason }
            }
        };
        let verdict = match &pins {
            Some(pins) => pins.judge(trial.name, verdict),
            None => verdict,
        };
        report.checks.push(Check { name: trial.name, verdict, wall: began.elapsed() });
    }
    report
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backends::fake::{FakeBackend, FakeFaults};

    #[tokio::test]
    async fn the_fake_backend_conforms() {
        let backend = FakeBackend::new();
        // Every name is an image of it.
        let options =
            Options { missing_image: None, many_bytes: 20 << 20, ..Options::new(Programs::fake()) };
        let report = run(&backend, &options).await;
        assert!(report.is_passed(), "{report}");
        let passed = |check: &&Check| matches!(check.verdict, Verdict::Passed);
        assert!(report.checks.iter().filter(passed).count() >= 25, "{report}");
        assert_eq!(backend.num_live(), 0);
    }

    #[test]
    fn what_rows_of_the_registry_leave_out_are_checks_each_named_once() {
        let names: Vec<&str> = all().map(|trial| trial.name).collect();
        for entry in backend_registry() {
            let mut left_out: Vec<&str> = entry.pins.names().collect();
            let strange: Vec<_> = left_out.iter().filter(|name| !names.contains(name)).collect();
            assert!(strange.is_empty(), "{}: {strange:?}", entry.name);
            left_out.sort_unstable();
            let count = left_out.len();
            left_out.dedup();
            assert_eq!(left_out.len(), count, "{}", entry.name);
        }
    }

    #[tokio::test]
    async fn a_check_that_was_left_out_is_a_failure_unless_the_row_names_it() {
        let nothing = Programs { cat: None, ..Programs::fake() };
        let only =
            |name: &str| Options { only: Some(name.into()), ..Options::new(nothing.clone()) };
        let report = run(&FakeBackend::new(), &only("standard input reaches the command")).await;
        assert!(!report.is_passed(), "{report}");
        assert!(report.to_string().contains("it was skipped: no such program"), "{report}");
        // Not a failure where nothing is pinned.
        let pins = Pins { never: &["standard input reaches the command and ends"], depends: &[] };
        let options = Options { pins: Some(pins), ..only("standard input reaches the command") };
        assert!(run(&FakeBackend::new(), &options).await.is_passed());
    }

    #[tokio::test]
    async fn a_backend_that_does_not_conform_is_told_so() {
        let faults = FakeFaults { dies_at_exec: Some(1), ..FakeFaults::default() };
        let backend = FakeBackend::new().with_faults(faults);
        let options = Options { only: Some("exit".into()), ..Options::new(Programs::fake()) };
        let report = run(&backend, &options).await;
        assert!(!report.is_passed());
        assert!(report.to_string().contains("FAILED: could not go on in sandbox"), "{report}");
    }
}
