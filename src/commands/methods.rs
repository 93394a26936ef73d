//! `spar methods`: what recipes choose among, with where it comes from and how near it is to that.

use std::process::ExitCode;

use anyhow::bail;
use serde::Serialize;
use spar::core::registry::{Axis, DescribedRow, Exactness, known_names};
use spar::registry::tables;

use super::show_row::page;
use super::{print, print_json};
use crate::cli::{MethodsArguments, MethodsCommand};

/// The axes that make a method, by the names that `spar list` has.
const AXES: [&str; 10] = [
    "credit",
    "objectives",
    "heads",
    "shapers",
    "filters",
    "samplers",
    "strategies",
    "predictors",
    "optimizers",
    "recipes",
];

/// A method: a row of one of the axes, or a recipe that combines several.
#[derive(Debug, Serialize)]
struct Method {
    axis: &'static str,
    exactness: Exactness,
    #[serde(flatten)]
    row: DescribedRow,
    #[serde(skip)]
    of: Axis,
}

/// Lists methods, or shows those of a name.
pub(crate) fn methods(arguments: &MethodsArguments) -> anyhow::Result<ExitCode> {
    let MethodsArguments { command, axis, exactness, json } = arguments;
    if let Some(MethodsCommand::Show { name, json }) = command {
        return show(name, *json);
    }
    let is_wanted = |method: &Method| {
        axis.as_ref().is_none_or(|axis| method.axis == axis)
            && exactness.as_ref().is_none_or(|word| method.exactness.word() == word)
    };
    let methods: Vec<Method> = all().into_iter().filter(is_wanted).collect();
    if *json {
        print_json(&methods)?;
    } else {
        print(&table(&methods))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The axes, for the command line.
pub(crate) fn axes() -> [&'static str; 10] {
    AXES
}

fn all() -> Vec<Method> {
    let tables = tables();
    let of_axis = |axis: &'static str| {
        let table = tables.iter().find(|table| table.axis().name == axis);
        let table = table.expect("every axis has a table");
        let of = table.axis();
        table.describe().into_iter().map(move |row| Method {
            axis,
            exactness: row.exactness(),
            row,
            of,
        })
    };
    AXES.into_iter().flat_map(of_axis).collect()
}

/// A line for each: axis, name, exactness, source.
fn table(methods: &[Method]) -> String {
    let width = |of: fn(&Method) -> usize| methods.iter().map(of).max().unwrap_or_default();
    let axis = width(|method| method.axis.len());
    let name = width(|method| method.row.name.len());
    let exactness = width(|method| method.exactness.word().len());
    let mut text = String::new();
    for Method { axis: of, exactness: how, row, .. } in methods {
        let how = how.word();
        // A recipe's source is all of its head.
        let source = if *of == "recipes" { &row.about } else { &row.source };
        text += &format!("{of:axis$}  {:name$}  {how:exactness$}  {source}\n", row.name);
    }
    let count = |exactness| methods.iter().filter(|it| it.exactness == exactness).count();
    text + &format!(
        "\n{} methods: {} exact, {} reconstructed, {} own; `spar methods show NAME` has formula and defaults\n",
        methods.len(),
        count(Exactness::Exact),
        count(Exactness::Reconstructed),
        count(Exactness::Own),
    )
}

/// Shows all methods of a name: an estimator and a recipe can have the same.
fn show(name: &str, json: bool) -> anyhow::Result<ExitCode> {
    let all = all();
    let found: Vec<&Method> = all.iter().filter(|method| method.row.name == name).collect();
    if found.is_empty() {
        let known = known_names(name, all.iter().map(|method| method.row.name.as_str()));
        bail!("find a method `{name}`: known are {known}");
    }
    if json {
        print_json(&found)?;
        return Ok(ExitCode::SUCCESS);
    }
    let pages: Vec<String> = found
        .iter()
        .map(|method| {
            format!("{}exactness\n  {}\n", page(method.of, &method.row), method.exactness.word())
        })
        .collect();
    print(&pages.join("\n"))?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_method_says_where_it_comes_from() {
        let methods = all();
        for axis in AXES {
            assert!(methods.iter().any(|method| method.axis == axis), "{axis}");
        }
        for Method { axis, row, exactness, .. } in &methods {
            assert!(!row.source.is_empty(), "{axis} {}", row.name);
            // What a method assumes is told by no other word, so that the list finds it.
            let source = row.source.to_lowercase();
            let assumes = source.contains("assumed");
            assert!(!assumes || *exactness == Exactness::Reconstructed, "{axis} {}", row.name);
        }
        assert!(table(&methods).lines().count() == methods.len() + 2);
    }
}
