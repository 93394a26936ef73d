//! What the page about this crate shows is what it does.

use std::fmt::Write as _;
use std::sync::Arc;

use spar_core::Seed;

use crate::{App, AppTask, FAMILIES, Session, specs, tools};

/// All tools with their arguments, as the page lists them.
fn tool_list() -> String {
    let mut text = String::new();
    for app in App::ALL {
        let _ = write!(text, "\n**{app}**\n\n");
        for (tool, spec) in tools().iter().zip(specs()).filter(|(tool, _)| tool.app == app) {
            let required: Vec<&str> = spec.parameters["required"]
                .as_array()
                .map(|names| names.iter().filter_map(|name| name.as_str()).collect())
                .unwrap_or_default();
            let arguments = spec.parameters["properties"].as_object();
            let arguments: Vec<String> = arguments
                .into_iter()
                .flatten()
                .map(|(name, _)| match required.contains(&name.as_str()) {
                    true => name.clone(),
                    false => format!("[{name}]"),
                })
                .collect();
            let _ = writeln!(text, "- `{}({})`: {}", tool.name, arguments.join(", "), tool.about);
        }
    }
    text
}

/// All families by level, as the page lists them.
fn family_list() -> String {
    let mut text = String::new();
    for level in 1..=4 {
        let named = |is_unseen| {
            let of =
                FAMILIES.iter().filter(move |it| it.level == level && it.is_unseen == is_unseen);
            of.map(|it| format!("`{}`", it.name)).collect::<Vec<_>>().join(", ")
        };
        let unseen = named(true);
        let unseen = if unseen.is_empty() { "none".to_owned() } else { unseen };
        let _ = writeln!(text, "| {level} | {} | {unseen} |", named(false));
    }
    text
}

/// An episode of the demonstration, as the page shows it.
fn episode() -> String {
    let task = AppTask::of("reply-date", Seed::from_u64(7)).expect("a family that is there");
    let mut session = Session::new(Arc::new(task));
    let mut text = format!("{}\n", session.task().instruction);
    while let Some(gold) = session.next_gold().cloned() {
        let arguments = serde_json::Value::Object(gold.arguments.clone());
        let result = session.call(gold.tool, &gold.arguments).expect("it can be carried out");
        let _ = write!(text, "\n> {} {arguments}\n{result}\n", gold.tool);
    }
    text
}

#[test]
fn the_page_lists_all_tools_and_families_and_shows_a_real_episode() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/apps.md");
    let page = std::fs::read_to_string(path).unwrap();
    let parts = [("TOOLS", tool_list()), ("FAMILIES", family_list()), ("EPISODE", episode())];
    let missing = parts.into_iter().filter(|(_, part)| !page.contains(part));
    let missing: Vec<String> = missing.map(|(what, part)| format!("{what}\n{part}")).collect();
    assert!(missing.is_empty(), "docs/apps.md lacks:\n{}", missing.join("\n"));
}
