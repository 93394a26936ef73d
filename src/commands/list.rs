//! `spar list`.

use std::process::ExitCode;

use clap::ValueEnum;
use spar::agent::credit::credit_registry;
use spar::agent::filters::filter_registry;
use spar::agent::strategies::strategy_registry;
use spar::envs::environment_registry;
use spar::parsers::parser_registry;
use spar::recipe::{Recipe, recipe_names};
use spar::tasks::formats::suite_formats;
use spar::tasks::graders::grader_registry;
use spar::tasks::samplers::sampler_registry;
use spar::tasks::{shaper_registry, suite_registry};
use spar::trainer::{objective_registry, optimizer_registry};
use spar::training::stages::stage_registry;

use super::print;
use crate::cli::{BuiltIn, ListArguments, Listing};

/// Lists what there is, a line each.
pub(crate) fn list(arguments: &ListArguments) -> anyhow::Result<ExitCode> {
    let listings = match arguments.what {
        Some(what) => vec![what],
        None => Listing::value_variants().to_vec(),
    };
    let mut text = String::new();
    for what in &listings {
        if listings.len() > 1 {
            let name = what.to_possible_value().map(|value| value.get_name().to_owned());
            text += &format!(
                "{}{}\n",
                if text.is_empty() { "" } else { "\n" },
                name.unwrap_or_default()
            );
        }
        let indent = if listings.len() > 1 { "  " } else { "" };
        let entries = entries(*what)?;
        let width = entries.iter().map(|(name, _)| name.len()).max().unwrap_or_default();
        for (name, about) in entries {
            text += format!("{indent}{name:width$}  {about}").trim_end();
            text += "\n";
        }
    }
    print(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// Names, each with a line on what it is.
fn entries(what: Listing) -> anyhow::Result<Vec<(String, String)>> {
    let named = |name: &str, about: &str| (name.to_owned(), about.to_owned());
    Ok(match what {
        Listing::Suites => suite_registry()
            .iter()
            .map(|entry| {
                let data = if entry.needs_data { " Needs --data." } else { "" };
                named(entry.name, &format!("{}{data}", entry.about))
            })
            .collect(),
        Listing::SuiteFormats => {
            suite_formats().iter().map(|format| named(format.name(), format.about())).collect()
        }
        Listing::Environments => {
            environment_registry().iter().map(|entry| named(entry.name, entry.about)).collect()
        }
        Listing::Recipes => recipe_names()
            .map(|name| Ok(named(name, &Recipe::parse(name, &Recipe::text(name)?, &[])?.about)))
            .collect::<anyhow::Result<_>>()?,
        Listing::Graders => {
            grader_registry().iter().map(|entry| named(entry.name, entry.about)).collect()
        }
        Listing::Shapers => {
            shaper_registry().iter().map(|entry| named(entry.name, entry.about)).collect()
        }
        Listing::Parsers => {
            parser_registry().iter().map(|entry| named(entry.name, entry.about)).collect()
        }
        Listing::Samplers => {
            sampler_registry().iter().map(|entry| named(entry.name, entry.about)).collect()
        }
        Listing::Strategies => {
            strategy_registry().iter().map(|entry| named(entry.name, entry.about)).collect()
        }
        Listing::Credit => {
            credit_registry().iter().map(|entry| named(entry.name, entry.about)).collect()
        }
        Listing::Filters => {
            filter_registry().iter().map(|entry| named(entry.name, entry.about)).collect()
        }
        Listing::Objectives => {
            objective_registry().iter().map(|entry| named(entry.name, entry.about)).collect()
        }
        Listing::Optimizers => {
            optimizer_registry().iter().map(|entry| named(entry.name, entry.about)).collect()
        }
        Listing::Stages => {
            stage_registry().iter().map(|entry| named(entry.name, entry.about)).collect()
        }
        Listing::Policies => BuiltIn::value_variants()
            .iter()
            .filter_map(ValueEnum::to_possible_value)
            .map(|value| {
                let about = value.get_help().map(ToString::to_string).unwrap_or_default();
                named(value.get_name(), &(about + "."))
            })
            .collect(),
    })
}
