//! What a player has.

use serde::{Deserialize, Serialize};

/// Something that a player has, 9 at most; the first four are how the player is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Item {
    /// At 0 the player is dead.
    Health,
    /// At 0 health goes.
    Food,
    /// At 0 health goes.
    Drink,
    /// At 0 health goes, unless the player sleeps.
    Energy,
    /// Can be planted.
    Sapling,
    /// From trees.
    Wood,
    /// From the ground.
    Stone,
    /// From the ground.
    Coal,
    /// From the ground.
    Iron,
    /// From the ground.
    Diamond,
    /// A tool.
    WoodPickaxe,
    /// A tool.
    StonePickaxe,
    /// A tool.
    IronPickaxe,
    /// A weapon.
    WoodSword,
    /// A weapon.
    StoneSword,
    /// A weapon.
    IronSword,
}

impl Item {
    /// The most that a player has of anything.
    pub const MOST: i8 = 9;

    /// All of them, in the order of the package.
    pub const ALL: [Self; 16] = [
        Self::Health,
        Self::Food,
        Self::Drink,
        Self::Energy,
        Self::Sapling,
        Self::Wood,
        Self::Stone,
        Self::Coal,
        Self::Iron,
        Self::Diamond,
        Self::WoodPickaxe,
        Self::StonePickaxe,
        Self::IronPickaxe,
        Self::WoodSword,
        Self::StoneSword,
        Self::IronSword,
    ];

    /// It in words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Health => "health",
            Self::Food => "food",
            Self::Drink => "drink",
            Self::Energy => "energy",
            Self::Sapling => "sapling",
            Self::Wood => "wood",
            Self::Stone => "stone",
            Self::Coal => "coal",
            Self::Iron => "iron",
            Self::Diamond => "diamond",
            Self::WoodPickaxe => "wood pickaxe",
            Self::StonePickaxe => "stone pickaxe",
            Self::IronPickaxe => "iron pickaxe",
            Self::WoodSword => "wood sword",
            Self::StoneSword => "stone sword",
            Self::IronSword => "iron sword",
        }
    }

    /// Whether it is a measure of how the player is, and nothing that can be carried.
    pub fn is_vital(self) -> bool {
        matches!(self, Self::Health | Self::Food | Self::Drink | Self::Energy)
    }
}
