//! Players that need no model.

use spar_core::registry::{Axis, OptionSet, Row, Table};

/// A player that needs no model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BuiltIn {
    /// Draws one of the admissible actions, or a call of a tool.
    Random,
    /// Does nothing.
    Idle,
    /// The environment's player who sees the whole state.
    Oracle,
    /// The environment's player who knows only what the episode has shown.
    Expert,
    /// The person at the terminal.
    Human,
}

const AXIS: Axis = Axis { name: "policies", what: "player", about: "Players that need no model." };

const ROWS: &[Row<BuiltIn>] = &[
    row("random", "Draws one of the admissible actions, or a call of a tool.", BuiltIn::Random),
    row("no-op", "Does nothing: what it earns is given for nothing.", BuiltIn::Idle),
    row("oracle", "The environment's player who sees the whole state.", BuiltIn::Oracle),
    row(
        "expert",
        "The environment's player who knows only what the episode has shown.",
        BuiltIn::Expert,
    ),
    row("human", "You, at this terminal.", BuiltIn::Human),
];

/// All players that need no model.
pub static PLAYERS: Table<BuiltIn> = Table::new(AXIS, ROWS);

const fn row(name: &'static str, about: &'static str, open: BuiltIn) -> Row<BuiltIn> {
    Row { name, about, source: "own", formula: "", options: OptionSet::NONE, open }
}
