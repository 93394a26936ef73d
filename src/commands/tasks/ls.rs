//! `spar tasks ls`.

use std::process::ExitCode;

use serde::Serialize;
use spar::tasks::Suite;

use super::super::sandbox::columns;
use super::super::suites::open_suite;
use super::super::{print, print_json};
use super::description::{Description, asked, swe_task};
use crate::cli::TasksListArguments;

/// What is listed as JSON.
#[derive(Serialize)]
struct Listing {
    suite: String,
    /// Names and sizes of the splits that were looked at.
    splits: Vec<(String, usize)>,
    tasks: Vec<Description>,
}

/// Lists the tasks of a suite.
pub(super) async fn ls(arguments: &TasksListArguments) -> anyhow::Result<ExitCode> {
    let suite = open_suite(&arguments.suite, arguments.data.as_deref())?;
    let listing = listing(suite.as_ref(), &arguments.split, arguments.limit).await?;
    match arguments.json {
        true => print_json(&listing)?,
        false => print(&text(&listing))?,
    }
    Ok(ExitCode::SUCCESS)
}

async fn listing(suite: &dyn Suite, named: &[String], limit: usize) -> anyhow::Result<Listing> {
    let manifest = suite.manifest();
    let splits: Vec<String> = match named {
        [] => manifest.splits.iter().map(|(split, _)| split.clone()).collect(),
        named => named.to_vec(),
    };
    let mut listing =
        Listing { suite: manifest.name.clone(), splits: Vec::new(), tasks: Vec::new() };
    for split in splits {
        let len = suite.len(&split)?;
        for index in 0..len.min(limit) {
            let task = suite.task(&split, index)?;
            let asked = asked(&task, swe_task(&task).as_ref().map(|swe| &swe.instance)).await;
            listing.tasks.push(Description::of(&task, &asked, &split, index));
        }
        listing.splits.push((split, len));
    }
    Ok(listing)
}

fn text(listing: &Listing) -> String {
    let mut text = String::new();
    let is_swe = listing.tasks.iter().any(|task| task.environment == "swe");
    if is_swe {
        let head =
            ["ID", "REPOSITORY", "LANGUAGE", "FAIL", "PASS", "IMAGE", "UNSUPPORTED", "ASKED"]
                .map(str::to_owned);
        let or_dash = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
        let number = |count: Option<usize>| count.map_or("-".to_owned(), |count| count.to_string());
        let rows = listing.tasks.iter().map(|task| {
            let unsupported = match task.unsupported.len() {
                0 => "-".to_owned(),
                count => count.to_string(),
            };
            [
                task.id.clone(),
                or_dash(&task.repository),
                or_dash(&task.language),
                number(task.fail_to_pass),
                number(task.pass_to_pass),
                or_dash(&task.image),
                unsupported,
                task.asked.clone(),
            ]
        });
        text += &columns(&std::iter::once(head).chain(rows).collect::<Vec<_>>());
    } else {
        let head = ["ID", "ENVIRONMENT", "ASKED"].map(str::to_owned);
        let rows = listing
            .tasks
            .iter()
            .map(|task| [task.id.clone(), task.environment.clone(), task.asked.clone()]);
        text += &columns(&std::iter::once(head).chain(rows).collect::<Vec<_>>());
    }
    for (split, len) in &listing.splits {
        let shown = listing.tasks.iter().filter(|task| task.split == *split).count();
        if shown < *len {
            text += &format!("{shown} of {len} tasks of split `{split}`; --limit shows more\n");
        }
    }
    text
}
