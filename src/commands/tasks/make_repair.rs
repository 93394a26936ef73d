//! `spar tasks make repair`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Context, ensure};
use serde::Serialize;
use spar::agent::Cancellation;
use spar::repair::mutation::Language;
use spar::repair::runner::{Cargo, Python};
use spar::repair::{
    Attempt, MakeOptions, Maker, Observer, Outcome, PackageReport, SourcePackage, Tools, Yield,
};
use spar::sandbox::{SandboxBackend, registry};
use tokio::process::Command;

use super::super::sandbox::columns;
use super::super::whole_file::write_whole;
use super::super::{cancel_on_ctrl_c, print, print_json, stopped};
use super::package_index;
use crate::bar::Bar;
use crate::child;
use crate::cli::MakeRepairArguments;

/// How long a run of tests that is under way may go on behind Ctrl-C.
const GRACE: Duration = Duration::from_secs(10);

/// What came of a package.
#[derive(Serialize)]
struct Made {
    package: String,
    /// The suite; absent where there is none.
    suite: Option<PathBuf>,
    /// Tasks for each minute of processor time of the tests.
    tasks_per_cpu_minute: Option<f64>,
    report: Option<PackageReport>,
    /// Why nothing was made of it.
    error: Option<String>,
}

/// Makes tasks of packages, one after the other.
pub(super) async fn make_repair(arguments: &MakeRepairArguments) -> anyhow::Result<ExitCode> {
    let mut options = MakeOptions {
        seed: arguments.seed,
        count: arguments.count,
        workers: arguments.workers,
        pytest_args: arguments.pytest_args.clone(),
        stages: arguments.stages,
        ..MakeOptions::default()
    };
    options.stacked = arguments.stacked.unwrap_or(options.stacked);
    options.operators = (!arguments.operators.is_empty()).then(|| arguments.operators.clone());
    let backend = match arguments.backend.as_str() {
        "host" => None,
        name => {
            let backend = registry::open(name)?;
            backend.probe().await?;
            Some(backend)
        }
    };
    let problems = options.problems();
    ensure!(problems.is_empty(), "make tasks: {}", problems.join("; "));
    let kit = Kit { arguments, options, backend };
    let cancellation = cancel_on_ctrl_c();
    let mut all = Vec::new();
    for package in &arguments.package {
        if cancellation.is_cancelled() {
            break;
        }
        let patience = async {
            cancellation.cancelled().await;
            tokio::time::sleep(GRACE).await;
        };
        let made = tokio::select! {
            made = make(&kit, package, &cancellation) => made,
            // What is under way is thrown away; what was recorded stays.
            () = patience => break,
        };
        all.push(match made {
            Ok(made) => made,
            Err(error) => {
                let error = format!("{error:#}");
                eprintln!("{package}: could not make tasks of it: {error}");
                Made {
                    package: package.clone(),
                    suite: None,
                    tasks_per_cpu_minute: None,
                    report: None,
                    error: Some(error),
                }
            }
        });
    }
    match arguments.json {
        true => print_json(&all)?,
        false => all.iter().try_for_each(|made| print(&text(made)))?,
    }
    if cancellation.is_cancelled() {
        return Ok(stopped());
    }
    let all_made =
        all.iter().all(|made| made.report.as_ref().is_some_and(|report| report.all.valid() > 0));
    Ok(if all_made { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What packages are made tasks of with.
struct Kit<'a> {
    arguments: &'a MakeRepairArguments,
    options: MakeOptions,
    backend: Option<Arc<dyn SandboxBackend>>,
}

impl Kit<'_> {
    /// What makes tasks of packages in a language, whose tools are asked only where they are needed.
    async fn maker(&self, language: Language) -> anyhow::Result<Maker> {
        let tools: Tools = match language {
            Language::Python => {
                Python::ask(&whole_path(&self.arguments.python).await?).await?.into()
            }
            Language::Rust => Cargo::ask(&self.arguments.cargo).await?.into(),
        };
        Ok(Maker::new(self.options.clone(), tools, self.backend.clone())?)
    }
}

async fn make(kit: &Kit<'_>, package: &str, cancellation: &Cancellation) -> anyhow::Result<Made> {
    let arguments = kit.arguments;
    let out = &arguments.out;
    let path = package_index::find(package, &arguments.python, &arguments.cargo, out).await?;
    let source = tokio::task::spawn_blocking(move || SourcePackage::open(&path)).await;
    let source = Arc::new(source.expect("reading does not panic")?);
    let maker = kit.maker(source.language).await?;
    let progress = Progress {
        name: source.name.clone(),
        count: arguments.count,
        bar: Mutex::new(None),
        cancellation,
    };
    let made = maker.make(Arc::clone(&source), out, &progress).await;
    drop(progress);
    let report = made.with_context(|| format!("make tasks of `{package}`"))?;
    let folder = out.join(source.key());
    let suite = match report.all.valid() {
        0 => None,
        _ => Some(write_suite(&folder, &source, arguments.held_out).await?),
    };
    let tasks_per_cpu_minute = report.tasks_per_cpu_minute();
    Ok(Made {
        package: package.to_owned(),
        suite,
        tasks_per_cpu_minute,
        report: Some(report),
        error: None,
    })
}

/// Makes the folder of a package a suite: its rows are played with a working copy of its repository.
async fn write_suite(
    folder: &Path,
    package: &SourcePackage,
    held_out: Option<f64>,
) -> anyhow::Result<PathBuf> {
    let copy = folder.join("repository");
    let new = folder.join("repository.part");
    for old in [&new, &copy] {
        if old.exists() {
            std::fs::remove_dir_all(old).with_context(|| format!("remove `{}`", old.display()))?;
        }
    }
    let mut clone = Command::new("git");
    clone
        // One pack and no hooks: every sandbox is given all files of it.
        .args(["-c", "core.hooksPath=/dev/null", "clone", "--quiet", "--no-local", "--template="])
        .arg(folder.join("repository.git"))
        .arg(&new);
    let cloned = child::output(&mut clone, child::TRANSFER).await?;
    ensure!(
        cloned.status.success(),
        "copy the repository of the tasks: {}",
        String::from_utf8_lossy(&cloned.stderr).trim()
    );
    std::fs::rename(&new, &copy).with_context(|| format!("write `{}`", copy.display()))?;
    let mut overlay = format!(
        "tasks = \"swe_bench.jsonl\"\nname = \"repair-{}\"\nrepository = \"repository\"\n",
        package.key()
    );
    if let Some(share) = held_out {
        let half = share / 2.0;
        overlay += &format!("splits = {{ dev = {half}, test = {half} }}\n");
    }
    write_whole(&folder.join("swe.toml"), overlay.as_bytes())?;
    Ok(folder.to_owned())
}

/// The interpreter itself, behind names in `PATH` and what chooses among versions.
async fn whole_path(python: &Path) -> anyhow::Result<PathBuf> {
    if python.components().count() > 1 {
        return Ok(python.to_owned());
    }
    let mut ask = Command::new(python);
    ask.args(["-I", "-c", "import sys; print(sys.executable)"]);
    let asked = child::output(&mut ask, child::ANSWER).await;
    let asked = asked
        .with_context(|| format!("use `{}` as the interpreter (--python)", python.display()))?;
    let path = String::from_utf8_lossy(&asked.stdout).trim().to_owned();
    ensure!(
        asked.status.success() && !path.is_empty(),
        "use `{}` as the interpreter (--python): {}",
        python.display(),
        String::from_utf8_lossy(&asked.stderr).trim()
    );
    Ok(path.into())
}

/// A bar for the package under way.
struct Progress<'a> {
    name: String,
    count: Option<usize>,
    bar: Mutex<Option<Bar>>,
    cancellation: &'a Cancellation,
}

impl Observer for Progress<'_> {
    fn baseline(&self, _: &PackageReport, candidates: usize) {
        let bar = Bar::new(&self.name, self.count.unwrap_or(candidates));
        *self.bar.lock().expect("no holder panics") = Some(bar);
    }

    fn attempt(&self, attempt: &Attempt, report: &PackageReport) {
        if let Some(bar) = &*self.bar.lock().expect("no holder panics") {
            let (valid, tried) = (report.all.valid(), report.all.tried);
            bar.set(if self.count.is_some() { valid } else { tried });
            bar.say(format!(
                "{valid} tasks of {tried} · {} {}",
                attempt.kind,
                attempt.outcome.name()
            ));
        }
    }

    fn is_cancelled(&self) -> bool {
        self.cancellation.is_cancelled()
    }
}

fn text(made: &Made) -> String {
    let Some(report) = &made.report else {
        return format!(
            "{}: nothing was made: {}\n",
            made.package,
            made.error.as_deref().unwrap_or_default()
        );
    };
    let mut text = format!(
        "{} {}: {} tasks of {} candidates, {} tests in {:.2} s, licence {}\n",
        report.package,
        report.version,
        report.all.valid(),
        report.all.tried,
        report.num_tests,
        report.suite_seconds,
        report.licence.as_deref().unwrap_or("not told")
    );
    let head = ["OPERATOR", "TRIED", "TASKS", "SURVIVED", "TOO BROAD", "OTHER", "CPU S"]
        .map(str::to_owned);
    let row = |name: &str, of: &Yield| {
        let count = |outcome: Outcome| of.outcomes.get(&outcome).copied().unwrap_or(0);
        let (valid, survived, broad) =
            (of.valid(), count(Outcome::Survived), count(Outcome::TooBroad));
        [
            name.to_owned(),
            of.tried.to_string(),
            valid.to_string(),
            survived.to_string(),
            broad.to_string(),
            (of.tried - valid - survived - broad).to_string(),
            format!("{:.1}", of.cpu_seconds),
        ]
    };
    let operators = report.by_operator.iter().map(|(name, of)| row(name, of));
    let rows: Vec<_> =
        std::iter::once(head).chain(operators).chain([row("all", &report.all)]).collect();
    text += &columns(&rows);
    for (count, what) in [
        (report.flaky.len(), "tests do not go the same way twice, and are left out"),
        (report.num_uncovered, "mutations that no test comes to are left out"),
        (report.unread.len(), "source files cannot be read"),
    ] {
        if count > 0 {
            text += &format!("{count} {what}\n");
        }
    }
    if let Some(rate) = made.tasks_per_cpu_minute {
        text += &format!("{rate:.1} tasks per minute of processor time\n");
    }
    if !report.is_done {
        text += "it was ended before it was done; the same command goes on with it\n";
    }
    match &made.suite {
        Some(suite) => text + &format!("play them with `spar eval --suite {}`\n", suite.display()),
        None => text,
    }
}
