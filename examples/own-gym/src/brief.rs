//! A scaffold that wants a call and nothing else.

use spar::agent::scaffolds::{Scaffold, ScaffoldRow, ToolUse};
use spar::core::registry::{OptionSet, Row};

pub(crate) const ROW: ScaffoldRow = Row {
    name: "brief",
    about: "One call of a tool in every answer and nothing else, in few turns.",
    source: "own",
    formula: "",
    options: OptionSet::NONE,
    open: &BRIEF,
};

const BRIEF: Scaffold = Scaffold {
    version: 1,
    system: Some("{{ instruction }} Answer with one call of a tool, and nothing else."),
    format_error: Some("No call could be read: {{ reason }}."),
    parser: "hermes",
    tools: ToolUse::Native,
    max_observation_chars: Some(200),
    max_turns: Some(3),
    ..Scaffold::PLAIN
};
