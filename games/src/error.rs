//! What can go wrong with games.

use spar_core::registry::RowError;

/// A game that cannot be had, or a move that comes too late.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GameError {
    /// No game has this name.
    #[error(transparent)]
    Row(#[from] RowError),
    /// Settings that are none of this game's, or out of range.
    #[error("understand the settings of `{game}`: {detail}")]
    Settings {
        /// The game.
        game: &'static str,
        /// What is wrong, with what is allowed.
        detail: String,
    },
    /// A player that is not known here.
    #[error("find player `{player}`: {detail}")]
    Player {
        /// What was asked for.
        player: String,
        /// What is known.
        detail: String,
    },
    /// A move was made before the start or behind the end.
    #[error("make a move {when}")]
    Misused {
        /// When it was made.
        when: &'static str,
    },
    /// Recorded traces that cannot be read.
    #[error("read traces of `{path}`: {detail}")]
    Traces {
        /// The file.
        path: String,
        /// What is wrong with it.
        detail: String,
    },
}
