//! `spar list`.

use std::process::ExitCode;

use serde_json::{Map, Value};
use spar::core::registry::AnyTable;
use spar::registry::tables;

use super::{print, print_json};
use crate::cli::ListArguments;

/// Lists what there is, a line each.
pub(crate) fn list(arguments: &ListArguments) -> anyhow::Result<ExitCode> {
    let is_wanted = |table: &&dyn AnyTable| {
        arguments.axis.as_ref().is_none_or(|name| table.axis().name == name)
    };
    let wanted: Vec<_> = tables().into_iter().filter(is_wanted).collect();
    if arguments.json {
        let described = |table: &&dyn AnyTable| {
            let rows = serde_json::to_value(table.describe())?;
            Ok((table.axis().name.to_owned(), rows))
        };
        let all: Map<String, Value> =
            wanted.iter().map(described).collect::<serde_json::Result<_>>()?;
        print_json(&all)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut text = String::new();
    for table in &wanted {
        let indent = if wanted.len() > 1 { "  " } else { "" };
        if wanted.len() > 1 {
            let gap = if text.is_empty() { "" } else { "\n" };
            text += &format!("{gap}{}\n", table.axis().name);
        }
        let rows = table.describe();
        let width = rows.iter().map(|row| row.name.len()).max().unwrap_or_default();
        for row in rows {
            text += &format!("{indent}{:width$}  {}\n", row.name, row.about);
        }
    }
    print(&text)?;
    Ok(ExitCode::SUCCESS)
}
