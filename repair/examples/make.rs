//! Makes tasks of packages: `make OUT PYTHON host|local COUNT PACKAGE...`, for measurements.

use std::path::Path;
use std::sync::Arc;

use spar_repair::runner::Python;
use spar_repair::{Attempt, MakeOptions, Maker, Observer, PackageReport, SourcePackage};

struct Quiet;

impl Observer for Quiet {
    fn baseline(&self, report: &PackageReport, candidates: usize) {
        eprintln!(
            "{}: {} tests in {:.2} s, {candidates} candidates",
            report.package, report.num_tests, report.suite_seconds
        );
    }

    fn attempt(&self, attempt: &Attempt, _: &PackageReport) {
        eprintln!(
            "  {} {:?} {} {:.2} s",
            attempt.id, attempt.outcome, attempt.failing, attempt.cpu_seconds
        );
    }

    fn is_cancelled(&self) -> bool {
        false
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [out, python, place, count, packages @ ..] = &arguments[..] else {
        return Err("usage: make OUT PYTHON host|BACKEND COUNT PACKAGE...".into());
    };
    let python = Python::ask(Path::new(python)).await?;
    let backend = match place.as_str() {
        "host" => None,
        name => Some(spar_sandbox::registry::open(name)?),
    };
    let options = MakeOptions { count: Some(count.parse()?), ..MakeOptions::default() };
    let maker = Maker::new(options, python, backend)?;
    for package in packages {
        let package = Arc::new(SourcePackage::open(Path::new(package))?);
        let report = maker.make(package, Path::new(out), &Quiet).await?;
        println!("{}", serde_json::to_string(&report)?);
        println!(
            "{:.1} tasks per minute of processor time",
            report.tasks_per_cpu_minute().unwrap_or(0.0)
        );
    }
    Ok(())
}
