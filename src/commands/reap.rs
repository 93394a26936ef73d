//! `spar reap`.

use std::process::ExitCode;

use serde_json::{Map, json};

use super::sandbox::{ask, chosen, working};
use super::{print, print_json};
use crate::cli::ReapArguments;

/// Removes what dead runs left on all backends that work here, and tells what that was.
pub(crate) async fn reap(arguments: &ReapArguments) -> anyhow::Result<ExitCode> {
    let (mut text, mut reports) = (String::new(), Map::new());
    let mut is_clean = true;
    for entry in chosen(&arguments.backend)? {
        let name = entry.name;
        let backend = match working(entry).await {
            Ok(backend) => backend,
            Err(error) if arguments.backend.is_empty() => {
                text += &format!("{name}: does not work here\n");
                reports.insert(name.to_owned(), json!({ "problem": format!("{error:#}") }));
                continue;
            }
            Err(error) => return Err(error),
        };
        let report = ask("reap", backend.reap()).await?;
        text += &format!("{name}: {} removed, {} in use\n", report.removed.len(), report.kept);
        text += &report.removed.iter().map(|it| format!("  removed {it}\n")).collect::<String>();
        text +=
            &report.failed.iter().map(|it| format!("  still there: {it}\n")).collect::<String>();
        text += &report.unread.iter().map(|it| format!("  left alone: {it}\n")).collect::<String>();
        is_clean &= report.failed.is_empty();
        reports.insert(name.to_owned(), serde_json::to_value(&report)?);
    }
    if arguments.json {
        print_json(&reports)?;
    } else {
        print(&text)?;
    }
    Ok(if is_clean { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
