//! `spar show AXIS NAME`: all that is known of what has a name.

use std::process::ExitCode;

use anyhow::{Context, anyhow};
use serde_json::Value;
use spar::core::registry::{Axis, DescribedDetail, DescribedOption, DescribedRow, known_names};
use spar::registry::tables;

use super::{print, print_json};

/// Columns that a page is wide.
const WIDTH: usize = 100;

/// Shows the row of a name.
pub(crate) fn show_row(axis: &str, name: &str, json: bool) -> anyhow::Result<ExitCode> {
    let (axis, row) = find(axis, name)?;
    if json {
        print_json(&row)?;
    } else {
        print(&page(axis, &row))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Finds a row, or tells which there are.
fn find(axis: &str, name: &str) -> anyhow::Result<(Axis, DescribedRow)> {
    let is_named = |table: &Axis| table.name == axis || table.what == axis;
    let table = tables().into_iter().find(|table| is_named(&table.axis())).with_context(|| {
        let known = known_names(axis, tables().map(|table| table.axis().name));
        format!("find `{name}` in `{axis}`: what is listed are {known}")
    })?;
    let rows = table.describe();
    let row = rows.iter().find(|row| row.name == name).cloned();
    let row = row.ok_or_else(|| {
        let known = known_names(name, rows.iter().map(|row| row.name.as_str()));
        anyhow!("find {} `{name}`: known are {known}", table.axis().what)
    })?;
    Ok((table.axis(), row))
}

/// A page on a row.
pub(super) fn page(axis: Axis, row: &DescribedRow) -> String {
    let mut text = format!("{} `{}`\n{}\n", axis.what, row.name, wrapped(&row.about, 2));
    if !row.formula.is_empty() {
        text += &format!("formula\n{}\n", wrapped(&row.formula, 2));
    }
    text += &format!("source\n{}\n", wrapped(&row.source, 2));
    text += &details(&row.details);
    text += if row.options.is_empty() { "no options\n" } else { "options\n" };
    let width = row.options.iter().map(|option| option.name.len()).max().unwrap_or_default();
    for option in &row.options {
        let DescribedOption { name, kind, doc, .. } = option;
        text += &format!("  {name:width$}  {kind}; default {}\n", option.default_text());
        text += &format!("{}\n", wrapped(doc, width + 4));
    }
    text
}

/// What a row consists of; texts of several lines as they are, with a bar before each of their lines.
fn details(details: &[DescribedDetail]) -> String {
    let mut text = String::new();
    for DescribedDetail { name, value } in details {
        text += &format!("{name}\n");
        match value {
            Value::Null => text += "  absent\n",
            Value::String(value) if value.is_empty() => text += "  empty\n",
            Value::String(value) if value.contains('\n') => {
                value.split('\n').for_each(|line| {
                    text += format!("  | {line}").trim_end();
                    text += "\n";
                });
            }
            Value::String(value) => text += &format!("  {value}\n"),
            value => text += &format!("  {value}\n"),
        }
    }
    text
}

/// Text in lines of a page.
fn wrapped(text: &str, indent: usize) -> String {
    let mut lines = vec![" ".repeat(indent)];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("there is a first one");
        let is_empty = line.len() == indent;
        if !is_empty && line.chars().count() + 1 + word.chars().count() > WIDTH {
            lines.push(" ".repeat(indent) + word);
        } else {
            line.push_str(if is_empty { "" } else { " " });
            line.push_str(word);
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_has_a_page_without_blanks() {
        for table in tables() {
            for row in table.describe() {
                let (axis, found) = find(table.axis().name, &row.name).unwrap();
                let page = page(axis, &found);
                assert!(page.lines().all(|line| !line.trim().is_empty()), "{page}");
                for detail in &found.details {
                    assert!(page.contains(&format!("\n{}\n  ", detail.name)), "{page}");
                }
                assert!(page.contains("\nsource\n  ") && page.contains("options\n"), "{page}");
                for option in &found.options {
                    assert!(!option.doc.is_empty() && !option.kind.is_empty(), "{page}");
                    assert!(!option.kind.contains("any value"), "{page}");
                }
            }
        }
    }

    #[test]
    fn what_is_unknown_lists_what_there_is() {
        let told = find("objectivs", "clip").unwrap_err().to_string();
        assert!(told.contains("listed are `objectives`, "), "{told}");
        let told = find("objectives", "clop").unwrap_err().to_string();
        assert!(told.starts_with("find objective `clop`: known are `clip`, "), "{told}");
        assert_eq!(find("objective", "clip").unwrap().1.name, "clip");
    }
}
