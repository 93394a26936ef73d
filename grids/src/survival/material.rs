//! What the ground is.

/// What a cell of the world is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Material {
    /// Is drunk.
    Water,
    /// Is walked on; saplings are found in it.
    Grass,
    /// Is dug with a wood pickaxe.
    Stone,
    /// Is walked on: the ground of caves, and what digging leaves.
    Path,
    /// Is walked on.
    Sand,
    /// Gives wood.
    Tree,
    /// Kills who walks into it.
    Lava,
    /// Is dug with a wood pickaxe.
    Coal,
    /// Is dug with a stone pickaxe.
    Iron,
    /// Is dug with an iron pickaxe.
    Diamond,
    /// Tools are made near it.
    Table,
    /// Tools of iron are made near it and a table.
    Furnace,
}

impl Material {
    /// All of them, in the order of the package, which counts from 1.
    pub const ALL: [Self; 12] = [
        Self::Water,
        Self::Grass,
        Self::Stone,
        Self::Path,
        Self::Sand,
        Self::Tree,
        Self::Lava,
        Self::Coal,
        Self::Iron,
        Self::Diamond,
        Self::Table,
        Self::Furnace,
    ];

    /// It in words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Water => "water",
            Self::Grass => "grass",
            Self::Stone => "stone",
            Self::Path => "a path",
            Self::Sand => "sand",
            Self::Tree => "a tree",
            Self::Lava => "lava",
            Self::Coal => "coal",
            Self::Iron => "iron",
            Self::Diamond => "a diamond",
            Self::Table => "a table",
            Self::Furnace => "a furnace",
        }
    }

    /// It as a letter of a drawing.
    pub(super) fn letter(self) -> char {
        match self {
            Self::Water => '~',
            Self::Grass => '.',
            Self::Stone => '#',
            Self::Path => ',',
            Self::Sand => ':',
            Self::Tree => 'T',
            Self::Lava => '!',
            Self::Coal => 'c',
            Self::Iron => 'i',
            Self::Diamond => 'd',
            Self::Table => 't',
            Self::Furnace => 'f',
        }
    }

    /// Whether creatures walk on it. The player walks into lava as well.
    pub fn is_walkable(self) -> bool {
        matches!(self, Self::Grass | Self::Path | Self::Sand)
    }
}
