//! What a game consists of.

use std::sync::Arc;

use crate::play::{Play, Status, Where};

/// A way out of a room.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Direction {
    /// East.
    East,
    /// North.
    North,
    /// South.
    South,
    /// West.
    West,
}

impl Direction {
    /// All, by their names.
    pub const ALL: [Self; 4] = [Self::East, Self::North, Self::South, Self::West];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::East => "east",
            Self::North => "north",
            Self::South => "south",
            Self::West => "west",
        }
    }

    pub(crate) fn opposite(self) -> Self {
        match self {
            Self::East => Self::West,
            Self::North => Self::South,
            Self::South => Self::North,
            Self::West => Self::East,
        }
    }

    /// How far it leads on a map, to the east and to the north.
    pub(crate) fn offset(self) -> (i32, i32) {
        match self {
            Self::East => (1, 0),
            Self::North => (0, 1),
            Self::South => (0, -1),
            Self::West => (-1, 0),
        }
    }
}

/// Where a direction leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exit {
    /// The room behind it.
    pub to: usize,
    /// The door in it.
    pub door: Option<usize>,
}

/// A room.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Room {
    /// Its name, without an article.
    pub name: String,
    /// A sentence about it.
    pub mood: &'static str,
    /// Its exits, in the order of [`Direction::ALL`].
    pub exits: [Option<Exit>; 4],
}

/// What can be done with a thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// It can be taken.
    Item,
    /// It can be taken and eaten.
    Food,
    /// It can be taken, and fits one container or door.
    Key {
        /// What it fits.
        fits: usize,
    },
    /// Things can be in it; it can be opened, closed and, where a key fits, locked.
    Container,
    /// Things can be on it.
    Supporter,
    /// It stands between two rooms, and can be opened, closed and, where a key fits, locked.
    Door,
}

impl Kind {
    /// Whether it can be taken.
    pub fn is_portable(self) -> bool {
        matches!(self, Self::Item | Self::Food | Self::Key { .. })
    }

    /// Whether it can be opened and closed.
    pub fn can_be_opened(self) -> bool {
        matches!(self, Self::Container | Self::Door)
    }
}

/// Something in a house.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Thing {
    /// Its name, without an article; no other has it.
    pub name: String,
    /// What can be done with it.
    pub kind: Kind,
}

/// What has to be true in the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Goal {
    /// The player has the thing.
    Hold(usize),
    /// The first thing lies on the second, or in it.
    Put(usize, usize),
    /// The thing was eaten.
    Eat(usize),
    /// The thing is open.
    Open(usize),
    /// The player is in the room.
    Reach(usize),
}

/// A house with a quest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Game {
    /// Its rooms.
    pub rooms: Vec<Room>,
    /// Its things, doors included.
    pub things: Vec<Thing>,
    /// The room in which the player begins.
    pub start: usize,
    /// Where each thing is in the beginning; doors are in the first of their rooms.
    pub places: Vec<Where>,
    /// Whether each is open; nothing is said of what cannot be opened.
    pub statuses: Vec<Status>,
    /// For each thing the key that fits it.
    pub keys: Vec<Option<usize>>,
    /// The rooms on both sides of a door.
    pub sides: Vec<Option<(usize, usize)>>,
    /// What has to be true in the end.
    pub goal: Goal,
    /// What is true behind each command of a solution, in its order, the goal last.
    pub milestones: Vec<Goal>,
    /// The quest in words.
    pub instruction: Arc<str>,
}

impl Game {
    /// Whether something is true.
    pub fn holds(&self, play: &Play, goal: Goal) -> bool {
        match goal {
            Goal::Hold(thing) => play.place(thing) == Where::Held,
            Goal::Put(thing, other) => {
                [Where::On(other), Where::In(other)].contains(&play.place(thing))
            }
            Goal::Eat(thing) => play.place(thing) == Where::Gone,
            Goal::Open(thing) => play.status(thing) == Status::Open,
            Goal::Reach(room) => play.room() == room,
        }
    }
}
