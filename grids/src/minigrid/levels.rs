//! The registered levels.

use super::baby::{Baby, BabyLevel, Generated, Select};
use super::episode::Made;
use super::object::Color;
use super::world::{Rejected, World};
use super::{plain, room_levels};

/// A registered level of MiniGrid or BabyAI.
#[derive(Debug, PartialEq)]
pub struct Level {
    /// The name that it is registered under, such as `BabyAI-GoToLocal-v0`.
    pub name: &'static str,
    /// Columns and rows of the grid, or the size of its rooms.
    pub(crate) size: i8,
    pub(crate) family: Family,
    /// Steps there may be, where that is the same in all episodes.
    pub(crate) max_steps: u32,
}

/// How levels are made.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Family {
    Empty {
        anywhere: bool,
    },
    DistShift {
        row: i8,
    },
    Crossing {
        count: usize,
        walls: bool,
    },
    DoorKey,
    Obstacles {
        anywhere: bool,
        count: usize,
    },
    Fetch {
        count: usize,
    },
    FourRooms,
    GoToDoor,
    GoToObject {
        count: usize,
    },
    LavaGap,
    LockedRoom,
    Memory {
        any_length: bool,
    },
    MultiRoom {
        count: i8,
        largest: i8,
    },
    Playground,
    PutNear {
        count: usize,
    },
    RedBlueDoors,
    KeyCorridor {
        rows: i8,
    },
    Unlock,
    UnlockPickup,
    BlockedUnlockPickup,
    ObstructedPair {
        in_box: bool,
        blocked: bool,
    },
    Obstructed {
        start: (i8, i8),
        in_box: bool,
        blocked: bool,
        quarters: usize,
        rooms: u32,
        keys_last: bool,
    },
    Baby(BabyLevel),
}

impl Level {
    /// The level of a name.
    pub fn find(name: &str) -> Option<&'static Self> {
        LEVELS.iter().find(|level| level.name == name)
    }

    /// All levels, MiniGrid's first.
    pub fn all() -> &'static [Self] {
        LEVELS
    }

    /// Columns and rows of its grid.
    pub fn size(&self) -> (i8, i8) {
        let rooms =
            |columns: i8, rows: i8| ((self.size - 1) * columns + 1, (self.size - 1) * rows + 1);
        match self.family {
            Family::DistShift { .. } => (9, 7),
            Family::FourRooms | Family::LockedRoom | Family::Playground => (19, 19),
            Family::MultiRoom { .. } => (25, 25),
            Family::RedBlueDoors => (2 * self.size, self.size),
            Family::KeyCorridor { rows } => rooms(3, rows),
            Family::Unlock
            | Family::UnlockPickup
            | Family::BlockedUnlockPickup
            | Family::ObstructedPair { .. } => rooms(2, 1),
            Family::Obstructed { .. } => rooms(3, 3),
            Family::Baby(baby) => rooms(baby.columns, baby.rows),
            _ => (self.size, self.size),
        }
    }

    /// Whether an agent sees through walls.
    pub(crate) fn sees_through_walls(&self) -> bool {
        matches!(
            self.family,
            Family::Empty { .. }
                | Family::DistShift { .. }
                | Family::Obstacles { .. }
                | Family::Fetch { .. }
                | Family::GoToDoor
                | Family::GoToObject { .. }
                | Family::PutNear { .. }
        )
    }

    /// Whether `done` can end an episode.
    pub fn ends_when_said(&self) -> bool {
        matches!(self.family, Family::GoToDoor | Family::GoToObject { .. })
    }

    /// Whether anything can be won: the playground has no mission.
    pub fn has_mission(&self) -> bool {
        self.family != Family::Playground
    }

    /// Whether its instructions are of the baby language.
    pub fn is_babyai(&self) -> bool {
        matches!(self.family, Family::Baby(_))
    }

    pub(crate) fn make(&self, world: &mut World) -> Result<Made, Rejected> {
        match self.family {
            Family::Baby(baby) => super::baby::make(&baby, self.size, self.max_steps, world),
            Family::KeyCorridor { .. }
            | Family::Unlock
            | Family::UnlockPickup
            | Family::BlockedUnlockPickup
            | Family::ObstructedPair { .. }
            | Family::Obstructed { .. } => room_levels::make(self, world),
            _ => plain::make(self, world),
        }
    }
}

const fn square(size: i8) -> u32 {
    size as u32 * size as u32
}

/// A level of MiniGrid, with the steps that its family gives it.
const fn level(name: &'static str, size: i8, family: Family) -> Level {
    let max_steps = match family {
        Family::Empty { .. }
        | Family::Crossing { .. }
        | Family::Obstacles { .. }
        | Family::GoToDoor
        | Family::LavaGap => 4 * square(size),
        Family::DistShift { .. } => 4 * 9 * 7,
        Family::DoorKey => 10 * square(size),
        Family::Fetch { .. } | Family::GoToObject { .. } | Family::Memory { .. } => {
            5 * square(size)
        }
        Family::FourRooms | Family::Playground => 100,
        Family::LockedRoom => 10 * 19,
        Family::MultiRoom { count, .. } => count as u32 * 20,
        Family::PutNear { .. } => 5 * size as u32,
        Family::RedBlueDoors => 20 * square(size),
        Family::KeyCorridor { .. } => 30 * square(size),
        Family::Unlock | Family::UnlockPickup => 8 * square(size),
        Family::BlockedUnlockPickup => 16 * square(size),
        Family::ObstructedPair { .. } => 4 * 2 * square(size),
        Family::Obstructed { rooms, .. } => 4 * rooms * square(size),
        Family::Baby(_) => 0,
    };
    Level { name, size, family, max_steps }
}

/// A level of BabyAI; without steps of its own, they follow from each instruction.
const fn baby(
    name: &'static str,
    size: i8,
    columns: i8,
    rows: i8,
    max_steps: u32,
    kind: Baby,
) -> Level {
    Level { name, size, family: Family::Baby(BabyLevel { columns, rows, kind }), max_steps }
}

const fn obstructed(
    name: &'static str,
    start: (i8, i8),
    parts: (bool, bool),
    quarters: usize,
    rooms: u32,
    keys_last: bool,
) -> Level {
    let (in_box, blocked) = parts;
    level(name, 6, Family::Obstructed { start, in_box, blocked, quarters, rooms, keys_last })
}

const LEVELS: &[Level] = &[
    level("MiniGrid-BlockedUnlockPickup-v0", 6, Family::BlockedUnlockPickup),
    level("MiniGrid-LavaCrossingS9N1-v0", 9, Family::Crossing { count: 1, walls: false }),
    level("MiniGrid-LavaCrossingS9N2-v0", 9, Family::Crossing { count: 2, walls: false }),
    level("MiniGrid-LavaCrossingS9N3-v0", 9, Family::Crossing { count: 3, walls: false }),
    level("MiniGrid-LavaCrossingS11N5-v0", 11, Family::Crossing { count: 5, walls: false }),
    level("MiniGrid-SimpleCrossingS9N1-v0", 9, Family::Crossing { count: 1, walls: true }),
    level("MiniGrid-SimpleCrossingS9N2-v0", 9, Family::Crossing { count: 2, walls: true }),
    level("MiniGrid-SimpleCrossingS9N3-v0", 9, Family::Crossing { count: 3, walls: true }),
    level("MiniGrid-SimpleCrossingS11N5-v0", 11, Family::Crossing { count: 5, walls: true }),
    level("MiniGrid-DistShift1-v0", 9, Family::DistShift { row: 2 }),
    level("MiniGrid-DistShift2-v0", 9, Family::DistShift { row: 5 }),
    level("MiniGrid-DoorKey-5x5-v0", 5, Family::DoorKey),
    level("MiniGrid-DoorKey-6x6-v0", 6, Family::DoorKey),
    level("MiniGrid-DoorKey-8x8-v0", 8, Family::DoorKey),
    level("MiniGrid-DoorKey-16x16-v0", 16, Family::DoorKey),
    level("MiniGrid-Dynamic-Obstacles-5x5-v0", 5, Family::Obstacles { anywhere: false, count: 2 }),
    level(
        "MiniGrid-Dynamic-Obstacles-Random-5x5-v0",
        5,
        Family::Obstacles { anywhere: true, count: 2 },
    ),
    level("MiniGrid-Dynamic-Obstacles-6x6-v0", 6, Family::Obstacles { anywhere: false, count: 3 }),
    level(
        "MiniGrid-Dynamic-Obstacles-Random-6x6-v0",
        6,
        Family::Obstacles { anywhere: true, count: 3 },
    ),
    level("MiniGrid-Dynamic-Obstacles-8x8-v0", 8, Family::Obstacles { anywhere: false, count: 4 }),
    level(
        "MiniGrid-Dynamic-Obstacles-16x16-v0",
        16,
        Family::Obstacles { anywhere: false, count: 8 },
    ),
    level("MiniGrid-Empty-5x5-v0", 5, Family::Empty { anywhere: false }),
    level("MiniGrid-Empty-Random-5x5-v0", 5, Family::Empty { anywhere: true }),
    level("MiniGrid-Empty-6x6-v0", 6, Family::Empty { anywhere: false }),
    level("MiniGrid-Empty-Random-6x6-v0", 6, Family::Empty { anywhere: true }),
    level("MiniGrid-Empty-8x8-v0", 8, Family::Empty { anywhere: false }),
    level("MiniGrid-Empty-16x16-v0", 16, Family::Empty { anywhere: false }),
    level("MiniGrid-Fetch-5x5-N2-v0", 5, Family::Fetch { count: 2 }),
    level("MiniGrid-Fetch-6x6-N2-v0", 6, Family::Fetch { count: 2 }),
    level("MiniGrid-Fetch-8x8-N3-v0", 8, Family::Fetch { count: 3 }),
    level("MiniGrid-FourRooms-v0", 19, Family::FourRooms),
    level("MiniGrid-GoToDoor-5x5-v0", 5, Family::GoToDoor),
    level("MiniGrid-GoToDoor-6x6-v0", 6, Family::GoToDoor),
    level("MiniGrid-GoToDoor-8x8-v0", 8, Family::GoToDoor),
    level("MiniGrid-GoToObject-6x6-N2-v0", 6, Family::GoToObject { count: 2 }),
    level("MiniGrid-GoToObject-8x8-N2-v0", 8, Family::GoToObject { count: 2 }),
    level("MiniGrid-KeyCorridorS3R1-v0", 3, Family::KeyCorridor { rows: 1 }),
    level("MiniGrid-KeyCorridorS3R2-v0", 3, Family::KeyCorridor { rows: 2 }),
    level("MiniGrid-KeyCorridorS3R3-v0", 3, Family::KeyCorridor { rows: 3 }),
    level("MiniGrid-KeyCorridorS4R3-v0", 4, Family::KeyCorridor { rows: 3 }),
    level("MiniGrid-KeyCorridorS5R3-v0", 5, Family::KeyCorridor { rows: 3 }),
    level("MiniGrid-KeyCorridorS6R3-v0", 6, Family::KeyCorridor { rows: 3 }),
    level("MiniGrid-LavaGapS5-v0", 5, Family::LavaGap),
    level("MiniGrid-LavaGapS6-v0", 6, Family::LavaGap),
    level("MiniGrid-LavaGapS7-v0", 7, Family::LavaGap),
    level("MiniGrid-LockedRoom-v0", 19, Family::LockedRoom),
    level("MiniGrid-MemoryS17Random-v0", 17, Family::Memory { any_length: true }),
    level("MiniGrid-MemoryS13Random-v0", 13, Family::Memory { any_length: true }),
    level("MiniGrid-MemoryS13-v0", 13, Family::Memory { any_length: false }),
    level("MiniGrid-MemoryS11-v0", 11, Family::Memory { any_length: false }),
    level("MiniGrid-MemoryS9-v0", 9, Family::Memory { any_length: false }),
    level("MiniGrid-MemoryS7-v0", 7, Family::Memory { any_length: false }),
    level("MiniGrid-MultiRoom-N2-S4-v0", 25, Family::MultiRoom { count: 2, largest: 4 }),
    // Its first version has six rooms, whatever its name says.
    level("MiniGrid-MultiRoom-N4-S5-v0", 25, Family::MultiRoom { count: 6, largest: 5 }),
    level("MiniGrid-MultiRoom-N4-S5-v1", 25, Family::MultiRoom { count: 4, largest: 5 }),
    level("MiniGrid-MultiRoom-N6-v0", 25, Family::MultiRoom { count: 6, largest: 10 }),
    level(
        "MiniGrid-ObstructedMaze-1Dl-v0",
        6,
        Family::ObstructedPair { in_box: false, blocked: false },
    ),
    level(
        "MiniGrid-ObstructedMaze-1Dlh-v0",
        6,
        Family::ObstructedPair { in_box: true, blocked: false },
    ),
    level(
        "MiniGrid-ObstructedMaze-1Dlhb-v0",
        6,
        Family::ObstructedPair { in_box: true, blocked: true },
    ),
    obstructed("MiniGrid-ObstructedMaze-2Dl-v0", (2, 1), (false, false), 1, 4, false),
    obstructed("MiniGrid-ObstructedMaze-2Dlh-v0", (2, 1), (true, false), 1, 4, false),
    obstructed("MiniGrid-ObstructedMaze-2Dlhb-v0", (2, 1), (true, true), 1, 4, false),
    obstructed("MiniGrid-ObstructedMaze-1Q-v0", (1, 1), (true, true), 1, 5, false),
    obstructed("MiniGrid-ObstructedMaze-2Q-v0", (2, 1), (true, true), 2, 11, false),
    obstructed("MiniGrid-ObstructedMaze-Full-v0", (1, 1), (true, true), 4, 25, false),
    obstructed("MiniGrid-ObstructedMaze-2Dlhb-v1", (2, 1), (true, true), 1, 4, true),
    obstructed("MiniGrid-ObstructedMaze-1Q-v1", (1, 1), (true, true), 1, 5, true),
    obstructed("MiniGrid-ObstructedMaze-2Q-v1", (2, 1), (true, true), 2, 11, true),
    obstructed("MiniGrid-ObstructedMaze-Full-v1", (1, 1), (true, true), 4, 25, true),
    level("MiniGrid-Playground-v0", 19, Family::Playground),
    level("MiniGrid-PutNear-6x6-N2-v0", 6, Family::PutNear { count: 2 }),
    level("MiniGrid-PutNear-8x8-N3-v0", 8, Family::PutNear { count: 3 }),
    level("MiniGrid-RedBlueDoors-6x6-v0", 6, Family::RedBlueDoors),
    level("MiniGrid-RedBlueDoors-8x8-v0", 8, Family::RedBlueDoors),
    level("MiniGrid-Unlock-v0", 6, Family::Unlock),
    level("MiniGrid-UnlockPickup-v0", 6, Family::UnlockPickup),
    baby("BabyAI-GoToRedBallGrey-v0", 8, 1, 1, 0, Baby::GoToRedBall { others: 7, grey: true }),
    baby("BabyAI-GoToRedBall-v0", 8, 1, 1, 0, Baby::GoToRedBall { others: 7, grey: false }),
    baby("BabyAI-GoToRedBallNoDists-v0", 8, 1, 1, 0, Baby::GoToRedBall { others: 0, grey: false }),
    baby("BabyAI-GoToObj-v0", 8, 1, 1, 0, Baby::GoToObj),
    baby("BabyAI-GoToObjS4-v0", 4, 1, 1, 0, Baby::GoToObj),
    baby("BabyAI-GoToObjS6-v1", 6, 1, 1, 0, Baby::GoToObj),
    baby("BabyAI-GoToLocal-v0", 8, 1, 1, 0, Baby::GoToLocal { others: 8 }),
    baby("BabyAI-GoToLocalS5N2-v0", 5, 1, 1, 0, Baby::GoToLocal { others: 2 }),
    baby("BabyAI-GoToLocalS6N2-v0", 6, 1, 1, 0, Baby::GoToLocal { others: 2 }),
    baby("BabyAI-GoToLocalS6N3-v0", 6, 1, 1, 0, Baby::GoToLocal { others: 3 }),
    baby("BabyAI-GoToLocalS6N4-v0", 6, 1, 1, 0, Baby::GoToLocal { others: 4 }),
    baby("BabyAI-GoToLocalS7N4-v0", 7, 1, 1, 0, Baby::GoToLocal { others: 4 }),
    baby("BabyAI-GoToLocalS7N5-v0", 7, 1, 1, 0, Baby::GoToLocal { others: 5 }),
    baby("BabyAI-GoToLocalS8N2-v0", 8, 1, 1, 0, Baby::GoToLocal { others: 2 }),
    baby("BabyAI-GoToLocalS8N3-v0", 8, 1, 1, 0, Baby::GoToLocal { others: 3 }),
    baby("BabyAI-GoToLocalS8N4-v0", 8, 1, 1, 0, Baby::GoToLocal { others: 4 }),
    baby("BabyAI-GoToLocalS8N5-v0", 8, 1, 1, 0, Baby::GoToLocal { others: 5 }),
    baby("BabyAI-GoToLocalS8N6-v0", 8, 1, 1, 0, Baby::GoToLocal { others: 6 }),
    baby("BabyAI-GoToLocalS8N7-v0", 8, 1, 1, 0, Baby::GoToLocal { others: 7 }),
    baby("BabyAI-GoTo-v0", 8, 3, 3, 0, Baby::GoTo { others: 18, open: false }),
    baby("BabyAI-GoToOpen-v0", 8, 3, 3, 0, Baby::GoTo { others: 18, open: true }),
    baby("BabyAI-GoToObjMaze-v0", 8, 3, 3, 0, Baby::GoTo { others: 1, open: false }),
    baby("BabyAI-GoToObjMazeOpen-v0", 8, 3, 3, 0, Baby::GoTo { others: 1, open: true }),
    baby("BabyAI-GoToObjMazeS4R2-v0", 4, 2, 2, 0, Baby::GoTo { others: 1, open: false }),
    baby("BabyAI-GoToObjMazeS4-v0", 4, 3, 3, 0, Baby::GoTo { others: 1, open: false }),
    baby("BabyAI-GoToObjMazeS5-v0", 5, 3, 3, 0, Baby::GoTo { others: 1, open: false }),
    baby("BabyAI-GoToObjMazeS6-v0", 6, 3, 3, 0, Baby::GoTo { others: 1, open: false }),
    baby("BabyAI-GoToObjMazeS7-v0", 7, 3, 3, 0, Baby::GoTo { others: 1, open: false }),
    baby("BabyAI-GoToImpUnlock-v0", 8, 3, 3, 0, Baby::GoToImpUnlock),
    baby("BabyAI-GoToSeq-v0", 8, 3, 3, 0, Baby::Generated(Generated::goto_seq(18))),
    baby("BabyAI-GoToSeqS5R2-v0", 5, 2, 2, 0, Baby::Generated(Generated::goto_seq(4))),
    baby("BabyAI-GoToRedBlueBall-v0", 8, 1, 1, 0, Baby::GoToRedBlueBall),
    baby("BabyAI-GoToDoor-v0", 7, 3, 3, 0, Baby::GoToDoor),
    baby("BabyAI-GoToObjDoor-v0", 8, 3, 3, 0, Baby::GoToObjDoor),
    baby("BabyAI-Open-v0", 8, 3, 3, 0, Baby::Open),
    baby("BabyAI-OpenRedDoor-v0", 5, 2, 1, 0, Baby::OpenRedDoor),
    baby("BabyAI-OpenDoor-v0", 8, 3, 3, 0, Baby::OpenDoor { strict: false, by: None }),
    baby("BabyAI-OpenDoorDebug-v0", 8, 3, 3, 0, Baby::OpenDoor { strict: true, by: None }),
    baby(
        "BabyAI-OpenDoorColor-v0",
        8,
        3,
        3,
        0,
        Baby::OpenDoor { strict: false, by: Some(Select::Color) },
    ),
    baby(
        "BabyAI-OpenDoorLoc-v0",
        8,
        3,
        3,
        0,
        Baby::OpenDoor { strict: false, by: Some(Select::Location) },
    ),
    baby(
        "BabyAI-OpenTwoDoors-v0",
        6,
        3,
        3,
        20 * 36,
        Baby::OpenTwoDoors { colors: None, strict: false },
    ),
    baby(
        "BabyAI-OpenRedBlueDoors-v0",
        6,
        3,
        3,
        20 * 36,
        Baby::OpenTwoDoors { colors: RED_BLUE, strict: false },
    ),
    baby(
        "BabyAI-OpenRedBlueDoorsDebug-v0",
        6,
        3,
        3,
        20 * 36,
        Baby::OpenTwoDoors { colors: RED_BLUE, strict: true },
    ),
    baby(
        "BabyAI-OpenDoorsOrderN2-v0",
        6,
        3,
        3,
        20 * 36,
        Baby::OpenDoorsOrder { count: 2, strict: false },
    ),
    baby(
        "BabyAI-OpenDoorsOrderN4-v0",
        6,
        3,
        3,
        20 * 36,
        Baby::OpenDoorsOrder { count: 4, strict: false },
    ),
    baby(
        "BabyAI-OpenDoorsOrderN2Debug-v0",
        6,
        3,
        3,
        20 * 36,
        Baby::OpenDoorsOrder { count: 2, strict: true },
    ),
    baby(
        "BabyAI-OpenDoorsOrderN4Debug-v0",
        6,
        3,
        3,
        20 * 36,
        Baby::OpenDoorsOrder { count: 4, strict: true },
    ),
    baby("BabyAI-Pickup-v0", 8, 3, 3, 0, Baby::Pickup),
    baby("BabyAI-UnblockPickup-v0", 8, 3, 3, 0, Baby::UnblockPickup),
    baby("BabyAI-PickupLoc-v0", 8, 1, 1, 0, Baby::Generated(Generated::PICKUP_LOC)),
    baby("BabyAI-PickupDist-v0", 7, 1, 1, 0, Baby::PickupDist { strict: false }),
    baby("BabyAI-PickupDistDebug-v0", 7, 1, 1, 0, Baby::PickupDist { strict: true }),
    baby("BabyAI-PickupAbove-v0", 6, 3, 3, 8 * 36, Baby::PickupAbove),
    baby("BabyAI-PutNextLocal-v0", 8, 1, 1, 0, Baby::PutNextLocal { count: 8 }),
    baby("BabyAI-PutNextLocalS5N3-v0", 5, 1, 1, 0, Baby::PutNextLocal { count: 3 }),
    baby("BabyAI-PutNextLocalS6N4-v0", 6, 1, 1, 0, Baby::PutNextLocal { count: 4 }),
    baby("BabyAI-PutNextS4N1-v0", 4, 2, 1, 8 * 16, Baby::PutNext { count: 1, carrying: false }),
    baby("BabyAI-PutNextS5N2-v0", 5, 2, 1, 8 * 25, Baby::PutNext { count: 2, carrying: false }),
    baby("BabyAI-PutNextS5N1-v0", 5, 2, 1, 8 * 25, Baby::PutNext { count: 1, carrying: false }),
    baby("BabyAI-PutNextS6N3-v0", 6, 2, 1, 8 * 36, Baby::PutNext { count: 3, carrying: false }),
    baby("BabyAI-PutNextS7N4-v0", 7, 2, 1, 8 * 49, Baby::PutNext { count: 4, carrying: false }),
    baby(
        "BabyAI-PutNextS5N2Carrying-v0",
        5,
        2,
        1,
        8 * 25,
        Baby::PutNext { count: 2, carrying: true },
    ),
    baby(
        "BabyAI-PutNextS6N3Carrying-v0",
        6,
        2,
        1,
        8 * 36,
        Baby::PutNext { count: 3, carrying: true },
    ),
    baby(
        "BabyAI-PutNextS7N4Carrying-v0",
        7,
        2,
        1,
        8 * 49,
        Baby::PutNext { count: 4, carrying: true },
    ),
    baby("BabyAI-Unlock-v0", 8, 3, 3, 0, Baby::Unlock),
    baby("BabyAI-UnlockLocal-v0", 8, 3, 3, 0, Baby::UnlockLocal { others: false }),
    baby("BabyAI-UnlockLocalDist-v0", 8, 3, 3, 0, Baby::UnlockLocal { others: true }),
    baby("BabyAI-KeyInBox-v0", 8, 3, 3, 0, Baby::KeyInBox),
    baby("BabyAI-UnlockPickup-v0", 6, 2, 1, 0, Baby::UnlockPickup { others: false }),
    baby("BabyAI-UnlockPickupDist-v0", 6, 2, 1, 0, Baby::UnlockPickup { others: true }),
    baby("BabyAI-BlockedUnlockPickup-v0", 6, 2, 1, 16 * 36, Baby::BlockedUnlockPickup),
    baby("BabyAI-UnlockToUnlock-v0", 6, 3, 1, 30 * 36, Baby::UnlockToUnlock),
    baby("BabyAI-ActionObjDoor-v0", 7, 3, 3, 0, Baby::ActionObjDoor),
    baby("BabyAI-FindObjS5-v0", 5, 3, 3, 20 * 25, Baby::FindObj),
    baby("BabyAI-FindObjS6-v0", 6, 3, 3, 20 * 36, Baby::FindObj),
    baby("BabyAI-FindObjS7-v0", 7, 3, 3, 20 * 49, Baby::FindObj),
    baby("BabyAI-KeyCorridor-v0", 6, 3, 3, 30 * 36, Baby::KeyCorridor),
    baby("BabyAI-KeyCorridorS3R1-v0", 3, 3, 1, 30 * 9, Baby::KeyCorridor),
    baby("BabyAI-KeyCorridorS3R2-v0", 3, 3, 2, 30 * 9, Baby::KeyCorridor),
    baby("BabyAI-KeyCorridorS3R3-v0", 3, 3, 3, 30 * 9, Baby::KeyCorridor),
    baby("BabyAI-KeyCorridorS4R3-v0", 4, 3, 3, 30 * 16, Baby::KeyCorridor),
    baby("BabyAI-KeyCorridorS5R3-v0", 5, 3, 3, 30 * 25, Baby::KeyCorridor),
    baby("BabyAI-KeyCorridorS6R3-v0", 6, 3, 3, 30 * 36, Baby::KeyCorridor),
    baby("BabyAI-OneRoomS8-v0", 8, 1, 1, 0, Baby::OneRoom),
    baby("BabyAI-OneRoomS12-v0", 12, 1, 1, 0, Baby::OneRoom),
    baby("BabyAI-OneRoomS16-v0", 16, 1, 1, 0, Baby::OneRoom),
    baby("BabyAI-OneRoomS20-v0", 20, 1, 1, 0, Baby::OneRoom),
    baby("BabyAI-MoveTwoAcrossS5N2-v0", 5, 2, 1, 16 * 25, Baby::MoveTwoAcross { count: 2 }),
    baby("BabyAI-MoveTwoAcrossS8N9-v0", 8, 2, 1, 16 * 64, Baby::MoveTwoAcross { count: 9 }),
    baby("BabyAI-Synth-v0", 8, 3, 3, 0, Baby::Generated(Generated::SYNTH)),
    baby("BabyAI-SynthS5R2-v0", 5, 3, 2, 0, Baby::Generated(Generated::SYNTH)),
    baby("BabyAI-SynthLoc-v0", 8, 3, 3, 0, Baby::Generated(Generated::SYNTH_LOC)),
    baby("BabyAI-SynthSeq-v0", 8, 3, 3, 0, Baby::Generated(Generated::SYNTH_SEQ)),
    baby("BabyAI-MiniBossLevel-v0", 5, 2, 2, 0, Baby::Generated(Generated::MINI_BOSS)),
    baby("BabyAI-BossLevel-v0", 8, 3, 3, 0, Baby::Generated(Generated::BOSS)),
    baby("BabyAI-BossLevelNoUnlock-v0", 8, 3, 3, 0, Baby::Generated(Generated::BOSS_NO_UNLOCK)),
];

const RED_BLUE: Option<(Color, Color)> = Some((Color::Red, Color::Blue));
