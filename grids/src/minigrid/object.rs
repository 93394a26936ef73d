//! What stands in the cells of a grid.

/// A colour, in the order of the package's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Color {
    /// 0.
    Red,
    /// 1.
    Green,
    /// 2.
    Blue,
    /// 3.
    Purple,
    /// 4.
    Yellow,
    /// 5.
    Grey,
}

impl Color {
    /// All of them by name, which is how colours are drawn.
    pub const SORTED: [Self; 6] =
        [Self::Blue, Self::Green, Self::Grey, Self::Purple, Self::Red, Self::Yellow];

    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            Self::Red => "red",
            Self::Green => "green",
            Self::Blue => "blue",
            Self::Purple => "purple",
            Self::Yellow => "yellow",
            Self::Grey => "grey",
        }
    }
}

/// A kind of thing, with the package's number of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Kind {
    /// 2.
    Wall = 2,
    /// 4.
    Door = 4,
    /// 5.
    Key = 5,
    /// 6.
    Ball = 6,
    /// 7.
    Box = 7,
    /// 8.
    Goal = 8,
    /// 9.
    Lava = 9,
}

impl Kind {
    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            Self::Wall => "wall",
            Self::Door => "door",
            Self::Key => "key",
            Self::Ball => "ball",
            Self::Box => "box",
            Self::Goal => "goal",
            Self::Lava => "lava",
        }
    }

    /// Whether an agent can carry it.
    pub fn is_portable(self) -> bool {
        matches!(self, Self::Key | Self::Ball | Self::Box)
    }
}

/// How a door is, with the package's number of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum DoorState {
    /// 0.
    Open,
    /// 1.
    Closed,
    /// 2.
    Locked,
}

/// A place in a grid: columns from the left, rows from the top. Outside of the grid it is nowhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Position {
    /// Column.
    pub x: i8,
    /// Row.
    pub y: i8,
}

impl Position {
    /// Where what is carried is.
    pub const NOWHERE: Self = Self { x: -1, y: -1 };

    pub(crate) const fn new(x: i8, y: i8) -> Self {
        Self { x, y }
    }

    /// Steps from here to there, were nothing between.
    pub(crate) fn distance(self, other: Self) -> u32 {
        u32::from(self.x.abs_diff(other.x)) + u32::from(self.y.abs_diff(other.y))
    }

    /// One step in a direction: right, down, left, up.
    pub(crate) fn towards(self, direction: u8) -> Self {
        let (dx, dy) = STEPS[usize::from(direction & 3)];
        Self { x: self.x + dx, y: self.y + dy }
    }
}

/// The steps of the directions right, down, left, up.
pub(crate) const STEPS: [(i8, i8); 4] = [(1, 0), (0, 1), (-1, 0), (0, -1)];

/// What a cell holds: nothing, what never changes, or one of the world's objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cell(pub(crate) u8);

impl Cell {
    /// Nothing.
    pub const EMPTY: Self = Self(0);
    /// A grey wall.
    pub const WALL: Self = Self(1);
    /// The green goal.
    pub const GOAL: Self = Self(2);
    /// Lava.
    pub const LAVA: Self = Self(3);
    /// How many come before objects.
    pub(crate) const FIXED: u8 = 4;
    /// How many there can be in all, so that a set of them is a word.
    pub(crate) const MOST: usize = 64;

    /// Whether it holds nothing.
    pub fn is_empty(self) -> bool {
        self == Self::EMPTY
    }

    /// The number of the object, where it is one.
    pub(crate) fn object(self) -> Option<usize> {
        self.0.checked_sub(Self::FIXED).map(usize::from)
    }

    /// The set of this one.
    pub(crate) fn bit(self) -> u64 {
        1 << self.0
    }
}

/// Something that can be opened or carried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Object {
    /// What it is.
    pub kind: Kind,
    /// Its colour.
    pub color: Color,
    /// How it is, if it is a door.
    pub door: DoorState,
    /// What a box holds.
    pub(crate) inside: Cell,
    /// Where it was put last.
    pub(crate) place: Position,
}

impl Object {
    pub(crate) fn new(kind: Kind, color: Color) -> Self {
        // Doors begin closed; all other things count as open, which is the state 0.
        let door = if kind == Kind::Door { DoorState::Closed } else { DoorState::Open };
        Self { kind, color, door, inside: Cell::EMPTY, place: Position::NOWHERE }
    }

    pub(crate) fn door(color: Color, is_locked: bool) -> Self {
        let door = if is_locked { DoorState::Locked } else { DoorState::Closed };
        Self { door, ..Self::new(Kind::Door, color) }
    }
}
