//! The levels of MiniGrid and BabyAI, equal to the package `minigrid` 3.2 for equal seeds.
//!
//! ```text
//! Level ──seed──▶ Episode ──Action──▶ Outcomes (reward, terminated, truncated)
//!                    ├──▶ World, mission
//!                    └──▶ View (7 x 7 codes) ──▶ sentences, maps
//! ```
//!
//! Equal are the grid, the agent, what is carried, missions, rewards, ends, and what is seen, as its codes. The package is
//! licensed under Apache-2.0 by the Farama Foundation; its missions, names of levels and numbers of things stand here as they have
//! to for that. The sentences of [`describe`] are those of BabyAI-Text (Carta et al., arXiv 2302.02662; its gym-minigrid, Apache-2.0).
//!
//! Of the registered levels the six of wave function collapse (`MiniGrid-WFC-*`) are left out.

mod baby;
mod conformance;
mod episode;
mod instruction;
mod levels;
mod object;
mod oracle;
mod plain;
mod room_levels;
mod rooms;
mod text;
mod view;
mod world;

pub use crate::conformance::Report;
pub use conformance::replay;
pub use episode::{Episode, Outcomes};
pub use levels::Level;
pub use object::{Cell, Color, DoorState, Kind, Object, Position};
pub use oracle::plan;
pub use text::{describe, draw_view, draw_world};
pub use view::{VIEW_SIZE, View};
pub use world::World;

/// What an agent can do, with the package's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Action {
    /// 0: turn left.
    Left,
    /// 1: turn right.
    Right,
    /// 2: go forward.
    Forward,
    /// 3: pick up what is in front.
    PickUp,
    /// 4: drop what is carried in front.
    Drop,
    /// 5: open, close or unlock what is in front.
    Toggle,
    /// 6: say that it is done, which matters in few levels.
    Done,
}

impl Action {
    /// All of them, by number.
    pub const ALL: [Self; 7] = [
        Self::Left,
        Self::Right,
        Self::Forward,
        Self::PickUp,
        Self::Drop,
        Self::Toggle,
        Self::Done,
    ];

    /// It in words, as in BabyAI-Text.
    pub fn words(self) -> &'static str {
        match self {
            Self::Left => "turn left",
            Self::Right => "turn right",
            Self::Forward => "go forward",
            Self::PickUp => "pick up",
            Self::Drop => "drop",
            Self::Toggle => "toggle",
            Self::Done => "done",
        }
    }

    /// The action of some words.
    pub fn from_words(words: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|action| action.words() == words)
    }
}

/// A level cannot be made from a seed: the package raises there as well, or goes on drawing for ever.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("make level `{level}` of seed {seed}: a room is too full for what has to stand in it")]
pub struct GenerationError {
    /// The level.
    pub level: &'static str,
    /// The seed.
    pub seed: u64,
}
