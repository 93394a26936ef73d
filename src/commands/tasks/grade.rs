//! `spar tasks grade`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, bail};
use futures::StreamExt;
use futures::stream;
use serde::Serialize;
use spar::agent::EpisodeConfig;
use spar::envs::swe::{Predictions, Swe, SweVerdict};
use spar::swe::report::{Prediction, read_predictions};
use spar::tasks::{Suite, Task};

use super::super::environments::{open_sandboxes, within};
use super::super::suites::open_suite;
use super::super::{cancel_on_ctrl_c, print, print_json, stopped};
use super::description::swe_task;
use crate::bar::Bar;
use crate::cli::GradeArguments;

/// What grading came to.
#[derive(Serialize)]
struct Report {
    suite: String,
    /// In the order of the suite.
    graded: Vec<SweVerdict>,
    /// What could not be graded, with the reason.
    failed: BTreeMap<String, String>,
    wall_secs: f64,
}

/// Grades patches that others have written.
pub(super) async fn grade(arguments: &GradeArguments) -> anyhow::Result<ExitCode> {
    let suite = open_suite(&arguments.suite, arguments.data.as_deref())?;
    let splits: Vec<String> = match &*arguments.split {
        [] => suite.manifest().splits.iter().map(|(split, _)| split.clone()).collect(),
        named => named.to_vec(),
    };
    let path = &arguments.predictions;
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("read predictions `{}`", path.display()))?;
    let predictions = read_predictions(&text)
        .with_context(|| format!("read predictions `{}`", path.display()))?;
    let attempts = attempts(suite.as_ref(), &splits, predictions)?;
    let began = Instant::now();
    let bar = Bar::new("grade", attempts.len());
    let sandboxes = open_sandboxes(
        &arguments.environment,
        None,
        Some(arguments.concurrency),
        suite.as_ref(),
        splits.first().map(String::as_str).unwrap_or_default(),
        &EpisodeConfig::default(),
    )
    .await?;
    let cancellation = cancel_on_ctrl_c();
    let graded = within(sandboxes, async |sandboxes| {
        let resources = &sandboxes.resources().clone().without_graders();
        let each = attempts.iter().enumerate().map(async |(number, (task, prediction))| {
            let patch = prediction.model_patch.as_deref().unwrap_or_default();
            (number, Swe::grade(task, resources, patch).await)
        });
        let mut under_way = stream::iter(each).buffer_unordered(arguments.concurrency);
        let mut found = Vec::new();
        loop {
            tokio::select! {
                () = cancellation.cancelled() => return Ok(None),
                next = under_way.next() => match next {
                    Some(one) => found.push(one),
                    None => return Ok(Some(found)),
                },
            }
            bar.set(found.len());
        }
    })
    .await?;
    drop(bar);
    let Some(mut graded) = graded else { return Ok(stopped()) };
    graded.sort_by_key(|(number, _)| *number);
    let noted = Predictions::default();
    let mut report = Report {
        suite: suite.manifest().name.clone(),
        graded: Vec::new(),
        failed: BTreeMap::new(),
        wall_secs: began.elapsed().as_secs_f64(),
    };
    for (number, ended) in graded {
        let prediction = &attempts[number].1;
        match ended {
            Ok(verdict) => {
                noted.note_verdict(&prediction.model_name_or_path, verdict.clone());
                report.graded.push(verdict);
            }
            Err(error) => {
                let error = format!("{:#}", anyhow::Error::from(error));
                report.failed.insert(prediction.instance_id.clone(), error);
            }
        }
    }
    if let Some(base) = &arguments.out {
        for (end, text) in noted.files(suite.as_ref(), &splits).context("report on instances")? {
            let path = PathBuf::from(format!("{}.{end}", base.display()));
            spar::trainer::write_atomically(&path, text.as_bytes())?;
        }
    }
    match arguments.json {
        true => print_json(&report)?,
        false => print(&text_of(&report)?)?,
    }
    Ok(if report.failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The tasks of the predictions, in the order of the suite.
fn attempts(
    suite: &dyn Suite,
    splits: &[String],
    predictions: Vec<Prediction>,
) -> anyhow::Result<Vec<(Task, Prediction)>> {
    let mut by_id = BTreeMap::new();
    for prediction in predictions {
        let id = prediction.instance_id.clone();
        if by_id.insert(id.clone(), prediction).is_some() {
            bail!("there are two predictions for `{id}`\nhint: grade one after the other");
        }
    }
    let mut found = Vec::new();
    for split in splits {
        for index in 0..suite.len(split)? {
            let task = suite.task(split, index)?;
            let id = swe_task(&task).map(|swe| swe.instance.id);
            if let Some(prediction) = id.and_then(|id| by_id.remove(&id)) {
                found.push((task, prediction));
            }
        }
    }
    if let Some(id) = by_id.keys().next() {
        let (name, count) = (&suite.manifest().name, by_id.len());
        bail!("`{name}` has no instance `{id}`, of which there is a prediction ({count} such)");
    }
    Ok(found)
}

fn text_of(report: &Report) -> anyhow::Result<String> {
    let mut text = String::new();
    let mut resolved = 0;
    for verdict in &report.graded {
        let outcome = serde_json::to_value(verdict.outcome)?;
        let outcome = outcome.as_str().unwrap_or_default();
        resolved += usize::from(outcome == "resolved");
        let reason = match verdict.reason.as_str() {
            "" => String::new(),
            reason => format!(": {reason}"),
        };
        text += &format!("{}  {outcome}{reason}\n", verdict.instance_id);
    }
    for (id, why) in &report.failed {
        text += &format!("{id}  not graded: {why}\n");
    }
    let (all, seconds) = (report.graded.len() + report.failed.len(), report.wall_secs);
    Ok(text + &format!("{}: {resolved} of {all} resolved in {seconds:.1} s\n", report.suite))
}
