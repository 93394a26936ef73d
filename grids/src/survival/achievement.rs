//! What there is to be achieved.

use serde::{Deserialize, Serialize};

use super::action::Tool;

/// Something that a player can do for the first time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "their names say it")]
pub enum Achievement {
    CollectCoal,
    CollectDiamond,
    CollectDrink,
    CollectIron,
    CollectSapling,
    CollectStone,
    CollectWood,
    DefeatSkeleton,
    DefeatZombie,
    EatCow,
    EatPlant,
    MakeIronPickaxe,
    MakeIronSword,
    MakeStonePickaxe,
    MakeStoneSword,
    MakeWoodPickaxe,
    MakeWoodSword,
    PlaceFurnace,
    PlacePlant,
    PlaceStone,
    PlaceTable,
    WakeUp,
}

impl Achievement {
    /// All of them, in the order of the package.
    pub const ALL: [Self; 22] = [
        Self::CollectCoal,
        Self::CollectDiamond,
        Self::CollectDrink,
        Self::CollectIron,
        Self::CollectSapling,
        Self::CollectStone,
        Self::CollectWood,
        Self::DefeatSkeleton,
        Self::DefeatZombie,
        Self::EatCow,
        Self::EatPlant,
        Self::MakeIronPickaxe,
        Self::MakeIronSword,
        Self::MakeStonePickaxe,
        Self::MakeStoneSword,
        Self::MakeWoodPickaxe,
        Self::MakeWoodSword,
        Self::PlaceFurnace,
        Self::PlacePlant,
        Self::PlaceStone,
        Self::PlaceTable,
        Self::WakeUp,
    ];

    /// The package's name of it.
    pub fn name(self) -> &'static str {
        match self {
            Self::CollectCoal => "collect_coal",
            Self::CollectDiamond => "collect_diamond",
            Self::CollectDrink => "collect_drink",
            Self::CollectIron => "collect_iron",
            Self::CollectSapling => "collect_sapling",
            Self::CollectStone => "collect_stone",
            Self::CollectWood => "collect_wood",
            Self::DefeatSkeleton => "defeat_skeleton",
            Self::DefeatZombie => "defeat_zombie",
            Self::EatCow => "eat_cow",
            Self::EatPlant => "eat_plant",
            Self::MakeIronPickaxe => "make_iron_pickaxe",
            Self::MakeIronSword => "make_iron_sword",
            Self::MakeStonePickaxe => "make_stone_pickaxe",
            Self::MakeStoneSword => "make_stone_sword",
            Self::MakeWoodPickaxe => "make_wood_pickaxe",
            Self::MakeWoodSword => "make_wood_sword",
            Self::PlaceFurnace => "place_furnace",
            Self::PlacePlant => "place_plant",
            Self::PlaceStone => "place_stone",
            Self::PlaceTable => "place_table",
            Self::WakeUp => "wake_up",
        }
    }

    /// What is to be done for it, in words.
    pub fn words(self) -> &'static str {
        match self {
            Self::CollectCoal => "collect coal",
            Self::CollectDiamond => "collect a diamond",
            Self::CollectDrink => "drink water",
            Self::CollectIron => "collect iron",
            Self::CollectSapling => "collect a sapling",
            Self::CollectStone => "collect stone",
            Self::CollectWood => "collect wood",
            Self::DefeatSkeleton => "defeat a skeleton",
            Self::DefeatZombie => "defeat a zombie",
            Self::EatCow => "eat a cow",
            Self::EatPlant => "eat a plant",
            Self::MakeIronPickaxe => "make an iron pickaxe",
            Self::MakeIronSword => "make an iron sword",
            Self::MakeStonePickaxe => "make a stone pickaxe",
            Self::MakeStoneSword => "make a stone sword",
            Self::MakeWoodPickaxe => "make a wood pickaxe",
            Self::MakeWoodSword => "make a wood sword",
            Self::PlaceFurnace => "place a furnace",
            Self::PlacePlant => "place a plant",
            Self::PlaceStone => "place stone",
            Self::PlaceTable => "place a table",
            Self::WakeUp => "sleep until you wake up",
        }
    }

    /// That of making a tool.
    pub(super) fn of_tool(tool: Tool) -> Self {
        match tool {
            Tool::WoodPickaxe => Self::MakeWoodPickaxe,
            Tool::StonePickaxe => Self::MakeStonePickaxe,
            Tool::IronPickaxe => Self::MakeIronPickaxe,
            Tool::WoodSword => Self::MakeWoodSword,
            Tool::StoneSword => Self::MakeStoneSword,
            Tool::IronSword => Self::MakeIronSword,
        }
    }
}

/// A set of achievements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct Achievements(u32);

impl Achievements {
    /// Whether it is among them.
    pub fn has(self, achievement: Achievement) -> bool {
        self.0 >> achievement as u32 & 1 == 1
    }

    /// With one more.
    pub fn insert(&mut self, achievement: Achievement) {
        self.0 |= 1 << achievement as u32;
    }

    /// How many there are.
    pub fn len(self) -> u32 {
        self.0.count_ones()
    }

    /// Whether there are none.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Those that the others lack.
    #[must_use]
    pub fn without(self, others: Self) -> Self {
        Self(self.0 & !others.0)
    }

    /// Them, in the order of the package.
    pub fn iter(self) -> impl Iterator<Item = Achievement> {
        Achievement::ALL.into_iter().filter(move |it| self.has(*it))
    }
}
