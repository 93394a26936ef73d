//! `spar doctor`.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use serde::Serialize;
use spar::envs::web::{Pages, WebError, browser_version, find_browser};
use spar::policy::cuda::{Device, DeviceInfo};
use spar::sandbox::registry::{self, BackendRow};
use spar::sandbox::{
    Capabilities, ExecRequest, Image, Latencies, SandboxBackend, SandboxSpec, measure,
};

use super::sandbox::{ask, chosen, columns};
use super::{hint, print, print_json};
use crate::cli::DoctorArguments;

/// What measuring a backend may take, getting its image included.
const MEASURE: Duration = Duration::from_secs(180);

/// What there is to say about a backend.
#[derive(Serialize)]
struct Finding {
    backend: &'static str,
    about: &'static str,
    /// Whether sandboxes can be made.
    works: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    capabilities: Option<Capabilities>,
    #[serde(skip_serializing_if = "Option::is_none")]
    medians_us: Option<Medians>,
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
    /// The one thing to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

/// What there is to say about the machine's GPU.
#[derive(Serialize)]
struct Gpu {
    /// Its name, or absent where none can be opened.
    gpu: Option<String>,
    /// Whether a product and a kernel came out right.
    works: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    capability: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    memory_bytes: Option<usize>,
    /// Version of CUDA that the driver supports.
    #[serde(skip_serializing_if = "Option::is_none")]
    driver: Option<String>,
    /// Version of NCCL, by which several GPUs train together; absent where it is missing.
    nccl: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

impl Gpu {
    fn find() -> Self {
        let nccl = Device::nccl_version().ok();
        match Device::open() {
            Ok(device) => {
                let DeviceInfo { name, capability, memory_bytes, driver_version, .. } =
                    device.info().clone();
                let failed = device.try_out().err();
                Self {
                    gpu: Some(name),
                    works: failed.is_none(),
                    capability: Some(capability),
                    memory_bytes: Some(memory_bytes),
                    driver: Some(driver_version),
                    nccl,
                    problem: failed.as_ref().map(|error| format!("could not {error}")),
                    hint: failed.and_then(|error| error.hint()).map(str::to_owned),
                }
            }
            Err(error) => Self {
                gpu: None,
                works: false,
                capability: None,
                memory_bytes: None,
                driver: None,
                nccl,
                problem: Some(format!("could not {error}")),
                hint: error.hint().map(str::to_owned),
            },
        }
    }

    fn text(&self) -> String {
        let found = match (&self.gpu, &self.capability, self.memory_bytes, &self.driver) {
            (Some(name), Some(capability), Some(bytes), Some(driver)) => {
                let gibibytes = bytes >> 30;
                format!(
                    "{name}, compute capability {capability}, {gibibytes} GiB, driver of CUDA {driver}"
                )
            }
            _ => "none".to_owned(),
        };
        let mut text = format!("\ngpu: {found}\n");
        let nccl = self.nccl.as_deref().unwrap_or("none, which several GPUs need");
        text += &format!("nccl: {nccl}\n");
        if let Some(problem) = &self.problem {
            text += &format!("gpu: {problem}\n");
        }
        if let Some(hint) = &self.hint {
            text += &format!("  hint: {hint}\n");
        }
        text
    }
}

/// What there is to say about the machine's browser.
#[derive(Serialize)]
struct BrowserFinding {
    /// Its version, or absent where there is none that runs.
    browser: Option<String>,
    /// Whether the pages of MiniWoB++ are there.
    has_miniwob: bool,
    /// Whether both are there.
    works: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

impl BrowserFinding {
    async fn find() -> Self {
        let browser = match find_browser() {
            Ok(program) => browser_version(&program).await,
            Err(error) => Err(error),
        };
        let pages = Pages::shared();
        let errors: Vec<&WebError> =
            browser.as_ref().err().into_iter().chain(pages.as_ref().err()).collect();
        let problems: Vec<String> =
            errors.iter().map(|error| format!("could not {error}")).collect();
        let hints: Vec<&str> = errors.iter().filter_map(|error| error.hint()).collect();
        let unless_empty = |text: String| Some(text).filter(|text| !text.is_empty());
        Self {
            works: errors.is_empty(),
            problem: unless_empty(problems.join("; ")),
            hint: unless_empty(hints.join("; ")),
            has_miniwob: pages.is_ok(),
            browser: browser.ok(),
        }
    }

    fn text(&self) -> String {
        let pages = if self.has_miniwob { "there" } else { "none" };
        let mut text = format!(
            "browser: {}\nminiwob's pages: {pages}\n",
            self.browser.as_deref().unwrap_or("none")
        );
        if let Some(problem) = &self.problem {
            text += &format!("browser: {problem}\n");
        }
        if let Some(hint) = &self.hint {
            text += &format!("  hint: {hint}\n");
        }
        text
    }
}

/// Microseconds.
#[derive(Serialize)]
struct Medians {
    create: u64,
    exec: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    fork: Option<u64>,
}

/// Tells for every backend whether it works here and what it costs, or the one thing to do. What
/// is missing is no failure.
pub(crate) async fn doctor(arguments: &DoctorArguments) -> anyhow::Result<ExitCode> {
    let mut findings = Vec::new();
    for entry in chosen(&arguments.backend)? {
        findings.push(examine(entry, arguments.rounds).await);
    }
    // Asked for one backend, there is nothing to say about the rest.
    let gpu = arguments.backend.is_empty().then(Gpu::find);
    let browser = match arguments.backend.is_empty() {
        true => Some(BrowserFinding::find().await),
        false => None,
    };
    if arguments.json {
        let findings = findings.iter().map(serde_json::to_value);
        let mut all: Vec<serde_json::Value> = findings.collect::<Result<_, _>>()?;
        all.extend(gpu.as_ref().map(serde_json::to_value).transpose()?);
        all.extend(browser.as_ref().map(serde_json::to_value).transpose()?);
        print_json(&all)?;
    } else {
        let of_gpu = gpu.as_ref().map(Gpu::text).unwrap_or_default();
        let of_browser = browser.as_ref().map(BrowserFinding::text).unwrap_or_default();
        print(&(text(&findings) + &of_gpu + &of_browser))?;
    }
    Ok(ExitCode::SUCCESS)
}

async fn examine(entry: &BackendRow, rounds: usize) -> Finding {
    let mut finding = Finding {
        backend: entry.name,
        about: entry.about,
        works: false,
        version: None,
        capabilities: None,
        medians_us: None,
        problem: None,
        hint: None,
    };
    if let Err(error) = examine_into(&mut finding, entry, rounds).await {
        finding.works = false;
        finding.hint = hint(&error);
        finding.problem = Some(format!("could not {error:#}"));
    }
    finding
}

async fn examine_into(
    finding: &mut Finding,
    entry: &BackendRow,
    rounds: usize,
) -> anyhow::Result<()> {
    let backend = registry::open(entry.name)?;
    finding.capabilities = Some(backend.capabilities());
    finding.version = Some(ask("probe the backend", backend.probe()).await?);
    finding.works = true;
    if rounds > 0 {
        let found = tokio::time::timeout(MEASURE, of_smallest(backend.as_ref(), rounds)).await;
        let found =
            found.with_context(|| format!("make sandboxes within {} s", MEASURE.as_secs()))??;
        let micros = |duration: Duration| duration.as_micros() as u64;
        finding.medians_us = Some(Medians {
            create: micros(found.create),
            exec: micros(found.exec),
            fork: found.fork.map(micros),
        });
    }
    Ok(())
}

/// Measures the backend's smallest image, with a command that does nothing.
async fn of_smallest(
    backend: &dyn SandboxBackend,
    rounds: usize,
) -> Result<Latencies, spar::sandbox::SandboxError> {
    let is_posix = backend.capabilities().posix;
    // The smallest guest is a shell, which is given arguments alone.
    let command = if is_posix { &["true"][..] } else { &["-c", "true"] };
    let command = ExecRequest::new(command.iter().copied());
    measure(backend, &SandboxSpec::new(Image::Default), &command, rounds).await
}

fn text(findings: &[Finding]) -> String {
    let head = ["BACKEND", "WORKS", "CREATE", "EXEC", "FORK", "VERSION"].map(str::to_owned);
    let rows = findings.iter().map(|finding| {
        let medians = finding.medians_us.as_ref();
        let time = |micros: Option<u64>| micros.map_or_else(|| "-".to_owned(), human);
        [
            finding.backend.to_owned(),
            if finding.works { "yes" } else { "no" }.to_owned(),
            time(medians.map(|medians| medians.create)),
            time(medians.map(|medians| medians.exec)),
            time(medians.and_then(|medians| medians.fork)),
            finding.version.clone().unwrap_or_else(|| "-".to_owned()),
        ]
    });
    let mut text = columns(&std::iter::once(head).chain(rows).collect::<Vec<_>>());
    for finding in findings {
        if let Some(problem) = &finding.problem {
            text += &format!("\n{}: {problem}\n", finding.backend);
        }
        if let Some(hint) = &finding.hint {
            text += &format!("  hint: {hint}\n");
        }
    }
    text
}

/// A time with three digits at the most.
fn human(micros: u64) -> String {
    match micros {
        0..1000 => format!("{micros} us"),
        1000..10_000 => format!("{:.1} ms", micros as f64 / 1e3),
        10_000..1_000_000 => format!("{} ms", micros / 1000),
        _ => format!("{:.1} s", micros as f64 / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_short() {
        let told = [40, 1234, 56_789, 1_234_567].map(human);
        assert_eq!(told, ["40 us", "1.2 ms", "56 ms", "1.2 s"]);
    }
}
