//! `spar tasks build-image`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, ensure};
use serde::Serialize;
use spar::instance_image::{BuildEnd, Engine, ImagePlan, Interpreter, Mirror, PlanOptions};
use spar::tasks::{Suite, SweTask};

use super::super::suites::open_suite;
use super::super::whole_file::write_whole;
use super::super::{cancel_on_ctrl_c, hint, print, print_json, stopped};
use super::description::swe_task;
use crate::bar::Bar;
use crate::cli::BuildImageArguments;

/// What came of one instance's image.
#[derive(Serialize)]
struct Built {
    id: String,
    image: String,
    /// Absent where it failed before it was known what it is built from.
    key: Option<String>,
    /// Absent where it failed.
    end: Option<BuildEnd>,
    /// The interpreter's version.
    python: Option<String>,
    /// The archive of its files, where one was asked for.
    archive: Option<PathBuf>,
    seconds: f64,
    error: Option<String>,
    hint: Option<String>,
}

/// Builds the images of instances.
pub(super) async fn build_image(arguments: &BuildImageArguments) -> anyhow::Result<ExitCode> {
    let suite = open_suite(&arguments.suite, None)?;
    let wanted = wanted(suite.as_ref(), &arguments.id)?;
    if let Some(out) = &arguments.out {
        ensure!(
            Path::new(&arguments.suite).is_file(),
            "write a suite to `{}`: `{}` is no file of rows",
            out.display(),
            arguments.suite
        );
        let images = out.join("images");
        std::fs::create_dir_all(&images)
            .with_context(|| format!("make folder `{}`", images.display()))?;
    }
    let engine = Engine::open().await?;
    let options = PlanOptions {
        base: arguments.base.clone(),
        packages: arguments.pip.clone(),
        ..PlanOptions::default()
    };
    let base_id = engine.base_id(&options.base).await?;
    let cancellation = cancel_on_ctrl_c();
    let bar = Bar::new("build", wanted.len());
    let mut all = Vec::new();
    for (task, image) in &wanted {
        let id = task.instance.id.clone();
        bar.say(id.clone());
        let began = Instant::now();
        let mut built = Built {
            id,
            image: image.clone(),
            key: None,
            end: None,
            python: None,
            archive: None,
            seconds: 0.0,
            error: None,
            hint: None,
        };
        let building = build(arguments, &engine, &options, &base_id, task, &bar, &mut built);
        let done = tokio::select! {
            done = building => done,
            () = cancellation.cancelled() => break,
        };
        built.seconds = began.elapsed().as_secs_f64();
        if let Err(error) = done {
            (built.error, built.hint) = (Some(format!("{error:#}")), hint(&error));
        }
        bar.advance();
        all.push(built);
    }
    drop(bar);
    if let Some(out) = &arguments.out {
        write_suite(out, Path::new(&arguments.suite))?;
    }
    match arguments.json {
        true => print_json(&all)?,
        false => print(&text(&all))?,
    }
    if cancellation.is_cancelled() {
        return Ok(stopped());
    }
    let is_whole = all.iter().all(|built| built.error.is_none());
    Ok(if is_whole { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The instances whose images are wanted, with the names of these. One that brings its repository along shares its image with
/// all of that name.
fn wanted(suite: &dyn Suite, ids: &[String]) -> anyhow::Result<Vec<(SweTask, String)>> {
    let mut wanted = Vec::new();
    let mut left: BTreeSet<&str> = ids.iter().map(String::as_str).collect();
    let mut shared = BTreeSet::new();
    for (split, len) in &suite.manifest().splits {
        for index in 0..*len {
            let task = suite.task(split, index)?;
            let swe = swe_task(&task).with_context(|| {
                format!(
                    "build an image for `{}`: it is no instance of software engineering",
                    task.id
                )
            })?;
            let is_asked = left.remove(&*swe.instance.id) | left.remove(&*task.id);
            if !ids.is_empty() && !is_asked {
                continue;
            }
            let image = swe.image.clone().or_else(|| swe.instance.source.image.clone());
            let image = image.with_context(|| {
                format!("name the image of `{}`: the row does not", swe.instance.id)
            })?;
            if swe.repository.is_some() && !shared.insert(image.clone()) {
                continue;
            }
            wanted.push((swe, image));
        }
    }
    ensure!(
        left.is_empty(),
        "find instance `{}`: the suite has none of this id",
        left.first().copied().unwrap_or_default()
    );
    Ok(wanted)
}

async fn build(
    arguments: &BuildImageArguments,
    engine: &Engine,
    options: &PlanOptions,
    base_id: &str,
    task: &SweTask,
    bar: &Bar,
    built: &mut Built,
) -> anyhow::Result<()> {
    let instance = &task.instance;
    let version = ImagePlan::python(instance, options)?.unwrap_or("3");
    let interpreter = match &arguments.python {
        Some(folder) => Interpreter::open(folder, version).await?,
        None => Interpreter::find(version).await?,
    };
    built.python = Some(interpreter.version.clone());
    let repo = instance.repo.as_deref().unwrap_or_default();
    let (owner, name) = repo.split_once('/').unwrap_or(("", repo));
    let folder = arguments
        .repo
        .replace("{owner}", owner)
        .replace("{name}", name)
        .replace("{id}", &instance.id);
    let mirror = Mirror::open(Path::new(&folder)).await?;
    let plan =
        ImagePlan::of(instance, &built.image, &mirror, &interpreter, base_id, options).await?;
    built.key = Some(plan.key.clone());
    let line = |line: &str| {
        if arguments.verbose {
            eprintln!("{line}");
        } else {
            bar.say(format!("{} {}", instance.id, line.chars().take(80).collect::<String>()));
        }
    };
    built.end = Some(engine.build(&plan, arguments.force, &line).await?);
    if let Some(out) = &arguments.out {
        let archive = std::path::absolute(out.join("images")).context("find the present folder")?;
        let archive = archive.join(format!("{}.tar", instance.id));
        let key = archive.with_extension("key");
        // Archives are large, and a name tells nothing of what they are of.
        let is_there =
            archive.is_file() && std::fs::read_to_string(&key).is_ok_and(|it| it == plan.key);
        if !is_there {
            engine.export(&plan.image, &archive).await?;
            write_whole(&key, plan.key.as_bytes())?;
        }
        built.archive = Some(archive);
    }
    Ok(())
}

/// A suite of the same rows that are played in their archives.
fn write_suite(out: &Path, rows: &Path) -> anyhow::Result<()> {
    // A suite is found from wherever it is named.
    let rows = std::path::absolute(rows).context("find the present folder")?;
    let images = std::path::absolute(out.join("images")).context("find the present folder")?;
    let mut overlay = toml::Table::new();
    overlay.insert("tasks".to_owned(), rows.display().to_string().into());
    overlay.insert("image".to_owned(), format!("{}/{{id}}.tar", images.display()).into());
    let text = toml::to_string(&overlay).context("write the suite")?;
    write_whole(&out.join("swe.toml"), text.as_bytes())
}

fn text(all: &[Built]) -> String {
    let mut text = String::new();
    for built in all {
        let what = match built.end {
            Some(BuildEnd::Present) => "is there",
            Some(BuildEnd::Named) => "was there, and is named",
            Some(BuildEnd::Built) => "is built",
            None => "FAILED",
        };
        text += &format!("{}: {} {what}, {:.1} s\n", built.id, built.image, built.seconds);
        if let Some(archive) = &built.archive {
            text += &format!("  archive {}\n", archive.display());
        }
        if let Some(error) = &built.error {
            text += &format!("  could not {error}\n");
        }
        if let Some(hint) = &built.hint {
            text += &format!("  hint: {hint}\n");
        }
    }
    text
}
