//! What a player can do.

use super::{Item, Material};

/// A direction; `up` is towards the first row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Way {
    /// To the column before.
    Left,
    /// To the column behind.
    Right,
    /// To the row above.
    Up,
    /// To the row below.
    Down,
}

impl Way {
    /// All of them, in the order in which creatures draw one.
    pub const ALL: [Self; 4] = [Self::Left, Self::Right, Self::Up, Self::Down];

    /// Columns and rows of a step.
    pub fn offset(self) -> (i8, i8) {
        match self {
            Self::Left => (-1, 0),
            Self::Right => (1, 0),
            Self::Up => (0, -1),
            Self::Down => (0, 1),
        }
    }

    /// It in a word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Left => "left",
            Self::Right => "right",
            Self::Up => "up",
            Self::Down => "down",
        }
    }
}

/// What a player does in a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    /// Nothing.
    Noop,
    /// Turns there, and goes there where that can be walked on.
    Move(Way),
    /// Collects, attacks or eats what is faced.
    Do,
    /// Falls asleep, unless energy is full.
    Sleep,
    /// Puts a stone into the cell that is faced.
    PlaceStone,
    /// Puts a table there.
    PlaceTable,
    /// Puts a furnace there.
    PlaceFurnace,
    /// Plants a sapling there.
    PlacePlant,
    /// Makes a tool, whose item this is.
    Make(Tool),
}

/// What can be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Tool {
    /// Digs stone and coal.
    WoodPickaxe,
    /// Digs iron.
    StonePickaxe,
    /// Digs diamonds.
    IronPickaxe,
    /// Does a damage of 2.
    WoodSword,
    /// Does a damage of 3.
    StoneSword,
    /// Does a damage of 5.
    IronSword,
}

impl Tool {
    /// All of them, in the order of the package.
    pub const ALL: [Self; 6] = [
        Self::WoodPickaxe,
        Self::StonePickaxe,
        Self::IronPickaxe,
        Self::WoodSword,
        Self::StoneSword,
        Self::IronSword,
    ];

    /// What one has then.
    pub fn item(self) -> Item {
        match self {
            Self::WoodPickaxe => Item::WoodPickaxe,
            Self::StonePickaxe => Item::StonePickaxe,
            Self::IronPickaxe => Item::IronPickaxe,
            Self::WoodSword => Item::WoodSword,
            Self::StoneSword => Item::StoneSword,
            Self::IronSword => Item::IronSword,
        }
    }

    /// What it takes, one of each.
    pub fn uses(self) -> &'static [Item] {
        match self {
            Self::WoodPickaxe | Self::WoodSword => &[Item::Wood],
            Self::StonePickaxe | Self::StoneSword => &[Item::Wood, Item::Stone],
            Self::IronPickaxe | Self::IronSword => &[Item::Wood, Item::Coal, Item::Iron],
        }
    }

    /// What has to be beside the player, corners included.
    pub fn wants_near(self) -> &'static [Material] {
        match self {
            Self::IronPickaxe | Self::IronSword => &[Material::Table, Material::Furnace],
            _ => &[Material::Table],
        }
    }
}

impl Action {
    /// All of them, in the order of the package.
    pub const ALL: [Self; 17] = [
        Self::Noop,
        Self::Move(Way::Left),
        Self::Move(Way::Right),
        Self::Move(Way::Up),
        Self::Move(Way::Down),
        Self::Do,
        Self::Sleep,
        Self::PlaceStone,
        Self::PlaceTable,
        Self::PlaceFurnace,
        Self::PlacePlant,
        Self::Make(Tool::WoodPickaxe),
        Self::Make(Tool::StonePickaxe),
        Self::Make(Tool::IronPickaxe),
        Self::Make(Tool::WoodSword),
        Self::Make(Tool::StoneSword),
        Self::Make(Tool::IronSword),
    ];

    /// It in words: the package's name with spaces.
    pub fn words(self) -> &'static str {
        match self {
            Self::Noop => "noop",
            Self::Move(Way::Left) => "move left",
            Self::Move(Way::Right) => "move right",
            Self::Move(Way::Up) => "move up",
            Self::Move(Way::Down) => "move down",
            Self::Do => "do",
            Self::Sleep => "sleep",
            Self::PlaceStone => "place stone",
            Self::PlaceTable => "place table",
            Self::PlaceFurnace => "place furnace",
            Self::PlacePlant => "place plant",
            Self::Make(Tool::WoodPickaxe) => "make wood pickaxe",
            Self::Make(Tool::StonePickaxe) => "make stone pickaxe",
            Self::Make(Tool::IronPickaxe) => "make iron pickaxe",
            Self::Make(Tool::WoodSword) => "make wood sword",
            Self::Make(Tool::StoneSword) => "make stone sword",
            Self::Make(Tool::IronSword) => "make iron sword",
        }
    }

    /// The action of words.
    pub fn from_words(words: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|action| action.words() == words)
    }

    /// What it places: how many of which item that takes, and on what it can be placed.
    pub(super) fn places(self) -> Option<(Item, i8, &'static [Material])> {
        use Material::{Grass, Lava, Path, Sand, Water};
        match self {
            Self::PlaceStone => Some((Item::Stone, 1, &[Grass, Sand, Path, Water, Lava])),
            Self::PlaceTable => Some((Item::Wood, 2, &[Grass, Sand, Path])),
            Self::PlaceFurnace => Some((Item::Stone, 4, &[Grass, Sand, Path])),
            Self::PlacePlant => Some((Item::Sapling, 1, &[Grass])),
            _ => None,
        }
    }
}
