//! The four kinds of rooms: which receptacles stand in them, which objects, and where those lie.

use rand::{Rng, RngExt};

/// A kind of room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RoomKind {
    Kitchen,
    LivingRoom,
    Bedroom,
    Bathroom,
}

/// Receptacles of one type in a kind of room.
#[derive(Debug)]
pub(crate) struct ReceptacleRow {
    pub(crate) name: &'static str,
    /// Rooms of a hundred that have any.
    pub(crate) present: u32,
    /// Fewest and most in a room that has any; few are likelier.
    pub(crate) count: (u32, u32),
    /// Receptacles of a hundred that must be opened.
    pub(crate) openable: u32,
}

/// Objects of one type in a kind of room.
#[derive(Debug)]
pub(crate) struct ObjectRow {
    pub(crate) name: &'static str,
    /// Rooms of a hundred that have any.
    pub(crate) present: u32,
    /// Ten times the mean number in a room that has any.
    pub(crate) mean_tenths: u32,
    /// Objects of a hundred that lie in a receptacle of each type.
    pub(crate) places: &'static [(&'static str, u32)],
}

impl RoomKind {
    /// All kinds.
    pub(crate) const ALL: [Self; 4] =
        [Self::Kitchen, Self::LivingRoom, Self::Bedroom, Self::Bathroom];

    /// The name used in seed paths and problem names.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Kitchen => "kitchen",
            Self::LivingRoom => "living-room",
            Self::Bedroom => "bedroom",
            Self::Bathroom => "bathroom",
        }
    }

    /// The kind of a room that has these receptacle types.
    pub(crate) fn from_receptacles<'a>(mut types: impl Iterator<Item = &'a str>) -> Self {
        let kind = types.find_map(|name| match name {
            "Fridge" | "Microwave" | "StoveBurner" => Some(Self::Kitchen),
            "Toilet" => Some(Self::Bathroom),
            "Bed" => Some(Self::Bedroom),
            _ => None,
        });
        kind.unwrap_or(Self::LivingRoom)
    }

    /// The receptacles of such a room.
    pub(crate) fn receptacles(self) -> &'static [ReceptacleRow] {
        match self {
            Self::Kitchen => KITCHEN_RECEPTACLES,
            Self::LivingRoom => LIVING_ROOM_RECEPTACLES,
            Self::Bedroom => BEDROOM_RECEPTACLES,
            Self::Bathroom => BATHROOM_RECEPTACLES,
        }
    }

    /// The objects of such a room.
    pub(crate) fn objects(self) -> &'static [ObjectRow] {
        match self {
            Self::Kitchen => KITCHEN_OBJECTS,
            Self::LivingRoom => LIVING_ROOM_OBJECTS,
            Self::Bedroom => BEDROOM_OBJECTS,
            Self::Bathroom => BATHROOM_OBJECTS,
        }
    }

    /// Where objects of a type lie in such a room; empty where it has none.
    pub(crate) fn places(self, object: &str) -> &'static [(&'static str, u32)] {
        self.objects().iter().find(|row| row.name == object).map_or(&[], |row| row.places)
    }
}

impl ReceptacleRow {
    /// Draws how many a room has.
    pub(crate) fn draw_count(&self, rng: &mut impl Rng) -> u32 {
        if rng.random_range(0..100) >= self.present {
            return 0;
        }
        let (least, most) = self.count;
        // The lesser of two draws: real rooms have few of most things and now and then many.
        rng.random_range(least..=most).min(rng.random_range(least..=most))
    }
}

impl ObjectRow {
    /// Draws how many a room has.
    pub(crate) fn draw_count(&self, rng: &mut impl Rng) -> u32 {
        if rng.random_range(0..100) >= self.present {
            return 0;
        }
        let mut count = 1;
        while count < 4 && rng.random_range(0..self.mean_tenths) >= 10 {
            count += 1;
        }
        count
    }
}

const fn receptacle(
    name: &'static str,
    present: u32,
    count: (u32, u32),
    openable: u32,
) -> ReceptacleRow {
    ReceptacleRow { name, present, count, openable }
}

const fn object(
    name: &'static str,
    present: u32,
    mean_tenths: u32,
    places: &'static [(&'static str, u32)],
) -> ObjectRow {
    ObjectRow { name, present, mean_tenths, places }
}

const KITCHEN_RECEPTACLES: &[ReceptacleRow] = &[
    receptacle("CounterTop", 100, (1, 4), 0),
    receptacle("StoveBurner", 100, (4, 6), 0),
    receptacle("Fridge", 100, (1, 1), 100),
    receptacle("Microwave", 100, (1, 1), 100),
    receptacle("Cabinet", 100, (4, 20), 85),
    receptacle("GarbageCan", 100, (1, 1), 0),
    receptacle("CoffeeMachine", 100, (1, 1), 0),
    receptacle("Toaster", 100, (1, 1), 0),
    receptacle("SinkBasin", 100, (1, 1), 0),
    receptacle("Drawer", 94, (2, 12), 80),
    receptacle("DiningTable", 53, (1, 3), 0),
    receptacle("SideTable", 18, (1, 1), 0),
    receptacle("Shelf", 12, (2, 4), 0),
];

const LIVING_ROOM_RECEPTACLES: &[ReceptacleRow] = &[
    receptacle("ArmChair", 100, (1, 2), 0),
    receptacle("GarbageCan", 100, (1, 1), 0),
    receptacle("Sofa", 100, (1, 2), 0),
    receptacle("SideTable", 73, (1, 4), 0),
    receptacle("CoffeeTable", 73, (1, 2), 0),
    receptacle("Drawer", 55, (2, 9), 96),
    receptacle("DiningTable", 45, (1, 1), 0),
    receptacle("Shelf", 45, (2, 14), 0),
    receptacle("Ottoman", 36, (1, 1), 0),
    receptacle("TVStand", 36, (1, 2), 0),
    receptacle("Dresser", 27, (1, 2), 0),
    receptacle("Safe", 5, (1, 1), 100),
    receptacle("Cabinet", 8, (1, 6), 95),
];

const BEDROOM_RECEPTACLES: &[ReceptacleRow] = &[
    receptacle("GarbageCan", 100, (1, 1), 0),
    receptacle("Bed", 100, (1, 2), 0),
    receptacle("Drawer", 93, (2, 16), 87),
    receptacle("Dresser", 67, (1, 2), 0),
    receptacle("SideTable", 60, (1, 2), 0),
    receptacle("Shelf", 60, (1, 12), 0),
    receptacle("Desk", 53, (1, 2), 0),
    receptacle("ArmChair", 33, (1, 2), 0),
    receptacle("LaundryHamper", 33, (1, 1), 0),
    receptacle("Cabinet", 13, (1, 4), 100),
    receptacle("DiningTable", 13, (1, 1), 0),
    receptacle("CounterTop", 7, (1, 1), 0),
    receptacle("Safe", 7, (1, 1), 100),
];

const BATHROOM_RECEPTACLES: &[ReceptacleRow] = &[
    receptacle("SinkBasin", 100, (1, 2), 0),
    receptacle("TowelHolder", 100, (1, 2), 0),
    receptacle("HandTowelHolder", 100, (1, 2), 0),
    receptacle("GarbageCan", 100, (1, 1), 0),
    receptacle("ToiletPaperHanger", 100, (1, 1), 0),
    receptacle("Toilet", 100, (1, 1), 0),
    receptacle("BathtubBasin", 79, (1, 1), 0),
    receptacle("CounterTop", 79, (1, 2), 0),
    receptacle("Cabinet", 53, (2, 9), 98),
    receptacle("Drawer", 47, (1, 8), 76),
    receptacle("Shelf", 32, (1, 4), 0),
    receptacle("Cart", 11, (1, 1), 0),
    receptacle("Dresser", 11, (1, 1), 0),
    receptacle("SideTable", 11, (1, 1), 0),
];

const KITCHEN_OBJECTS: &[ObjectRow] = &[
    object(
        "Bread",
        100,
        16,
        &[("CounterTop", 56), ("DiningTable", 29), ("Fridge", 14), ("SideTable", 1)],
    ),
    object(
        "Cup",
        100,
        18,
        &[
            ("CounterTop", 24),
            ("Cabinet", 22),
            ("Fridge", 20),
            ("DiningTable", 12),
            ("SinkBasin", 12),
            ("Microwave", 8),
            ("SideTable", 2),
        ],
    ),
    object(
        "Pan",
        100,
        13,
        &[
            ("StoveBurner", 48),
            ("CounterTop", 30),
            ("Cabinet", 13),
            ("DiningTable", 5),
            ("Fridge", 4),
        ],
    ),
    object(
        "PepperShaker",
        100,
        20,
        &[
            ("CounterTop", 35),
            ("Cabinet", 34),
            ("Drawer", 12),
            ("DiningTable", 11),
            ("SideTable", 5),
            ("Shelf", 3),
        ],
    ),
    object(
        "Pot",
        100,
        16,
        &[
            ("StoveBurner", 76),
            ("CounterTop", 12),
            ("Fridge", 5),
            ("Cabinet", 3),
            ("DiningTable", 3),
            ("Shelf", 1),
        ],
    ),
    object(
        "SaltShaker",
        100,
        19,
        &[
            ("Cabinet", 37),
            ("CounterTop", 28),
            ("DiningTable", 18),
            ("Drawer", 12),
            ("SideTable", 3),
            ("Shelf", 2),
        ],
    ),
    object(
        "SoapBottle",
        100,
        20,
        &[
            ("CounterTop", 33),
            ("Cabinet", 28),
            ("DiningTable", 16),
            ("GarbageCan", 14),
            ("SideTable", 5),
            ("Shelf", 3),
            ("Drawer", 1),
        ],
    ),
    object(
        "Spatula",
        100,
        20,
        &[
            ("CounterTop", 44),
            ("DiningTable", 29),
            ("Drawer", 20),
            ("SinkBasin", 6),
            ("StoveBurner", 1),
            ("SideTable", 1),
        ],
    ),
    object(
        "Bowl",
        99,
        20,
        &[
            ("Cabinet", 38),
            ("Fridge", 25),
            ("CounterTop", 19),
            ("DiningTable", 11),
            ("Microwave", 3),
            ("SinkBasin", 3),
            ("SideTable", 1),
            ("Shelf", 1),
        ],
    ),
    object(
        "Tomato",
        99,
        19,
        &[
            ("CounterTop", 34),
            ("Fridge", 31),
            ("DiningTable", 19),
            ("GarbageCan", 9),
            ("SinkBasin", 3),
            ("SideTable", 3),
        ],
    ),
    object(
        "Fork",
        98,
        19,
        &[
            ("CounterTop", 50),
            ("DiningTable", 20),
            ("Drawer", 20),
            ("SinkBasin", 7),
            ("SideTable", 3),
        ],
    ),
    object(
        "Knife",
        98,
        19,
        &[
            ("CounterTop", 56),
            ("DiningTable", 22),
            ("Drawer", 17),
            ("SinkBasin", 4),
            ("SideTable", 1),
        ],
    ),
    object(
        "Lettuce",
        98,
        18,
        &[
            ("CounterTop", 43),
            ("DiningTable", 29),
            ("Fridge", 23),
            ("SinkBasin", 4),
            ("GarbageCan", 1),
            ("SideTable", 1),
        ],
    ),
    object(
        "Mug",
        98,
        19,
        &[
            ("Cabinet", 20),
            ("CounterTop", 20),
            ("Fridge", 17),
            ("Microwave", 12),
            ("CoffeeMachine", 10),
            ("DiningTable", 10),
            ("SinkBasin", 7),
            ("Shelf", 2),
            ("SideTable", 1),
        ],
    ),
    object(
        "Plate",
        98,
        18,
        &[
            ("Cabinet", 46),
            ("CounterTop", 22),
            ("DiningTable", 16),
            ("Fridge", 11),
            ("SinkBasin", 2),
            ("Shelf", 1),
            ("Microwave", 1),
            ("SideTable", 1),
        ],
    ),
    object(
        "Apple",
        97,
        18,
        &[
            ("Fridge", 27),
            ("CounterTop", 23),
            ("DiningTable", 15),
            ("GarbageCan", 12),
            ("Microwave", 12),
            ("SinkBasin", 10),
            ("SideTable", 2),
        ],
    ),
    object(
        "Egg",
        97,
        18,
        &[
            ("Fridge", 28),
            ("CounterTop", 26),
            ("Microwave", 13),
            ("SinkBasin", 11),
            ("DiningTable", 11),
            ("GarbageCan", 11),
        ],
    ),
    object(
        "Spoon",
        97,
        19,
        &[
            ("CounterTop", 34),
            ("Drawer", 34),
            ("DiningTable", 15),
            ("SinkBasin", 13),
            ("SideTable", 3),
        ],
    ),
    object(
        "ButterKnife",
        96,
        18,
        &[
            ("CounterTop", 60),
            ("DiningTable", 28),
            ("Drawer", 7),
            ("SinkBasin", 4),
            ("SideTable", 1),
        ],
    ),
    object(
        "DishSponge",
        95,
        18,
        &[
            ("CounterTop", 33),
            ("Cabinet", 23),
            ("DiningTable", 17),
            ("Drawer", 14),
            ("SinkBasin", 7),
            ("GarbageCan", 5),
            ("SideTable", 1),
            ("Shelf", 1),
        ],
    ),
    object(
        "Potato",
        94,
        20,
        &[
            ("CounterTop", 32),
            ("Fridge", 25),
            ("DiningTable", 11),
            ("SinkBasin", 11),
            ("Microwave", 11),
            ("GarbageCan", 8),
            ("SideTable", 3),
        ],
    ),
    object(
        "Kettle",
        54,
        17,
        &[
            ("CounterTop", 40),
            ("StoveBurner", 33),
            ("Cabinet", 18),
            ("DiningTable", 8),
            ("SinkBasin", 1),
        ],
    ),
    object(
        "Ladle",
        42,
        18,
        &[("CounterTop", 54), ("Cabinet", 19), ("Drawer", 18), ("DiningTable", 9)],
    ),
    object("HousePlant", 35, 10, &[("CounterTop", 74), ("DiningTable", 26)]),
    object(
        "PaperTowelRoll",
        27,
        10,
        &[
            ("CounterTop", 46),
            ("DiningTable", 19),
            ("GarbageCan", 15),
            ("Shelf", 12),
            ("SideTable", 8),
        ],
    ),
    object(
        "WineBottle",
        27,
        18,
        &[
            ("DiningTable", 40),
            ("CounterTop", 21),
            ("Cabinet", 19),
            ("GarbageCan", 12),
            ("Shelf", 4),
            ("Fridge", 4),
        ],
    ),
    object("CellPhone", 20, 17, &[("Drawer", 50), ("CounterTop", 38), ("DiningTable", 12)]),
    object(
        "Glassbottle",
        19,
        21,
        &[
            ("Cabinet", 42),
            ("CounterTop", 29),
            ("Fridge", 13),
            ("DiningTable", 13),
            ("GarbageCan", 3),
        ],
    ),
    object("Statue", 18, 19, &[("Shelf", 47), ("CounterTop", 44), ("DiningTable", 9)]),
    object(
        "Vase",
        18,
        27,
        &[("CounterTop", 35), ("Shelf", 33), ("Cabinet", 30), ("DiningTable", 2)],
    ),
    object(
        "SprayBottle",
        14,
        19,
        &[
            ("CounterTop", 34),
            ("DiningTable", 28),
            ("Cabinet", 24),
            ("GarbageCan", 12),
            ("Toaster", 2),
        ],
    ),
    object(
        "Book",
        9,
        19,
        &[("DiningTable", 35), ("Cabinet", 29), ("CounterTop", 18), ("Drawer", 12), ("Shelf", 6)],
    ),
    object("Pen", 5, 20, &[("CounterTop", 80), ("Drawer", 20)]),
];

const BATHROOM_OBJECTS: &[ObjectRow] = &[
    object(
        "Candle",
        100,
        20,
        &[
            ("Toilet", 29),
            ("CounterTop", 25),
            ("Shelf", 15),
            ("Cabinet", 15),
            ("Drawer", 9),
            ("Dresser", 2),
            ("Cart", 2),
            ("SideTable", 2),
        ],
    ),
    object(
        "Cloth",
        100,
        19,
        &[
            ("BathtubBasin", 34),
            ("Cabinet", 23),
            ("SinkBasin", 12),
            ("Shelf", 10),
            ("CounterTop", 10),
            ("Toilet", 6),
            ("Cart", 3),
            ("Drawer", 1),
        ],
    ),
    object("HandTowel", 100, 12, &[("HandTowelHolder", 100)]),
    object(
        "SprayBottle",
        100,
        22,
        &[
            ("Toilet", 24),
            ("CounterTop", 23),
            ("Cabinet", 16),
            ("Shelf", 11),
            ("Cart", 8),
            ("GarbageCan", 7),
            ("Dresser", 6),
            ("SideTable", 6),
        ],
    ),
    object(
        "ToiletPaper",
        100,
        19,
        &[
            ("Toilet", 22),
            ("Cabinet", 21),
            ("CounterTop", 14),
            ("Shelf", 14),
            ("ToiletPaperHanger", 10),
            ("GarbageCan", 9),
            ("Drawer", 5),
            ("Cart", 2),
            ("SideTable", 2),
        ],
    ),
    object("Towel", 100, 12, &[("TowelHolder", 99), ("CounterTop", 1)]),
    object(
        "SoapBottle",
        98,
        20,
        &[
            ("CounterTop", 25),
            ("Cabinet", 23),
            ("Toilet", 22),
            ("Shelf", 13),
            ("GarbageCan", 12),
            ("Dresser", 2),
            ("Cart", 2),
            ("Drawer", 1),
            ("SideTable", 1),
        ],
    ),
    object(
        "SoapBar",
        94,
        19,
        &[
            ("SinkBasin", 24),
            ("CounterTop", 17),
            ("Toilet", 15),
            ("Shelf", 13),
            ("Cabinet", 11),
            ("Drawer", 7),
            ("BathtubBasin", 6),
            ("GarbageCan", 4),
            ("Cart", 2),
            ("SideTable", 1),
        ],
    ),
    object(
        "TissueBox",
        26,
        23,
        &[
            ("Shelf", 43),
            ("CounterTop", 25),
            ("Drawer", 14),
            ("Cart", 7),
            ("SideTable", 4),
            ("Cabinet", 4),
            ("Toilet", 4),
        ],
    ),
    object(
        "DishSponge",
        21,
        20,
        &[
            ("BathtubBasin", 30),
            ("Toilet", 20),
            ("Cart", 15),
            ("SinkBasin", 10),
            ("Shelf", 10),
            ("GarbageCan", 5),
            ("Cabinet", 5),
            ("CounterTop", 5),
        ],
    ),
    object(
        "PaperTowelRoll",
        15,
        10,
        &[("GarbageCan", 29), ("Toilet", 29), ("Shelf", 29), ("CounterTop", 14)],
    ),
    object("HousePlant", 6, 10, &[("SideTable", 100)]),
];

const BEDROOM_OBJECTS: &[ObjectRow] = &[
    object(
        "AlarmClock",
        100,
        18,
        &[("Dresser", 28), ("Desk", 27), ("SideTable", 25), ("Shelf", 13), ("DiningTable", 7)],
    ),
    object(
        "Book",
        100,
        18,
        &[
            ("Bed", 43),
            ("Desk", 20),
            ("Drawer", 13),
            ("Dresser", 7),
            ("DiningTable", 5),
            ("Cabinet", 5),
            ("SideTable", 3),
            ("CounterTop", 2),
            ("ArmChair", 2),
        ],
    ),
    object(
        "CD",
        100,
        19,
        &[
            ("Drawer", 28),
            ("Dresser", 19),
            ("Desk", 17),
            ("GarbageCan", 9),
            ("Shelf", 9),
            ("SideTable", 9),
            ("ArmChair", 5),
            ("DiningTable", 3),
        ],
    ),
    object(
        "CellPhone",
        100,
        20,
        &[
            ("Bed", 30),
            ("Desk", 20),
            ("Dresser", 17),
            ("Drawer", 14),
            ("ArmChair", 8),
            ("Shelf", 5),
            ("DiningTable", 3),
            ("CounterTop", 2),
            ("Safe", 2),
            ("SideTable", 2),
        ],
    ),
    object(
        "CreditCard",
        100,
        20,
        &[
            ("Drawer", 33),
            ("Dresser", 18),
            ("SideTable", 13),
            ("Shelf", 12),
            ("Desk", 10),
            ("ArmChair", 10),
            ("CounterTop", 1),
            ("DiningTable", 1),
        ],
    ),
    object("Laptop", 100, 16, &[("Bed", 72), ("Desk", 15), ("ArmChair", 9), ("Dresser", 4)]),
    object(
        "Pen",
        100,
        17,
        &[
            ("Desk", 25),
            ("Dresser", 23),
            ("Drawer", 16),
            ("Shelf", 16),
            ("SideTable", 11),
            ("DiningTable", 5),
            ("CounterTop", 4),
            ("GarbageCan", 2),
        ],
    ),
    object(
        "Pencil",
        100,
        19,
        &[
            ("Dresser", 24),
            ("SideTable", 21),
            ("Desk", 19),
            ("Drawer", 15),
            ("GarbageCan", 10),
            ("Shelf", 8),
            ("CounterTop", 2),
            ("DiningTable", 2),
        ],
    ),
    object("Pillow", 100, 18, &[("Bed", 98), ("ArmChair", 2)]),
    object(
        "KeyChain",
        97,
        18,
        &[
            ("Drawer", 24),
            ("Desk", 19),
            ("Dresser", 19),
            ("SideTable", 12),
            ("ArmChair", 10),
            ("Shelf", 9),
            ("DiningTable", 5),
            ("Safe", 2),
        ],
    ),
    object("DeskLamp", 79, 10, &[("Desk", 54), ("Dresser", 31), ("SideTable", 12), ("Shelf", 4)]),
    object(
        "Mug",
        45,
        18,
        &[
            ("Shelf", 26),
            ("Desk", 22),
            ("Cabinet", 19),
            ("Dresser", 19),
            ("CounterTop", 7),
            ("DiningTable", 4),
            ("SideTable", 4),
        ],
    ),
    object(
        "Bowl",
        42,
        16,
        &[
            ("Desk", 68),
            ("Shelf", 9),
            ("DiningTable", 9),
            ("CounterTop", 5),
            ("Dresser", 5),
            ("SideTable", 5),
        ],
    ),
    object("HousePlant", 27, 10, &[("Desk", 44), ("Shelf", 33), ("Dresser", 22)]),
    object("Statue", 15, 14, &[("Dresser", 57), ("Shelf", 29), ("SideTable", 14)]),
    object(
        "RemoteControl",
        12,
        18,
        &[
            ("Desk", 29),
            ("Dresser", 14),
            ("Drawer", 14),
            ("ArmChair", 14),
            ("DiningTable", 14),
            ("CounterTop", 14),
        ],
    ),
    object("Vase", 12, 25, &[("Shelf", 60), ("Dresser", 20), ("Desk", 10), ("SideTable", 10)]),
    object("TeddyBear", 6, 10, &[("Bed", 100)]),
    object("Television", 6, 10, &[("Dresser", 100)]),
    object("TissueBox", 6, 25, &[("SideTable", 60), ("DiningTable", 40)]),
];

const LIVING_ROOM_OBJECTS: &[ObjectRow] = &[
    object(
        "CreditCard",
        100,
        21,
        &[
            ("CoffeeTable", 25),
            ("Sofa", 14),
            ("ArmChair", 14),
            ("SideTable", 12),
            ("Shelf", 9),
            ("Ottoman", 7),
            ("TVStand", 7),
            ("Drawer", 5),
            ("Dresser", 4),
            ("DiningTable", 4),
        ],
    ),
    object(
        "Laptop",
        100,
        16,
        &[
            ("DiningTable", 36),
            ("Sofa", 26),
            ("SideTable", 14),
            ("CoffeeTable", 14),
            ("ArmChair", 5),
            ("TVStand", 5),
        ],
    ),
    object("Pillow", 100, 12, &[("Sofa", 82), ("ArmChair", 15), ("Ottoman", 3)]),
    object(
        "RemoteControl",
        100,
        23,
        &[
            ("Sofa", 26),
            ("CoffeeTable", 21),
            ("ArmChair", 10),
            ("SideTable", 10),
            ("TVStand", 8),
            ("Dresser", 6),
            ("DiningTable", 6),
            ("Shelf", 6),
            ("Drawer", 5),
            ("Ottoman", 2),
        ],
    ),
    object(
        "KeyChain",
        96,
        18,
        &[
            ("CoffeeTable", 17),
            ("Sofa", 17),
            ("Drawer", 15),
            ("DiningTable", 15),
            ("SideTable", 13),
            ("TVStand", 9),
            ("ArmChair", 9),
            ("Shelf", 6),
        ],
    ),
    object(
        "Statue",
        96,
        24,
        &[
            ("SideTable", 29),
            ("DiningTable", 26),
            ("CoffeeTable", 19),
            ("Shelf", 13),
            ("TVStand", 10),
            ("Dresser", 3),
        ],
    ),
    object("HousePlant", 81, 10, &[("CoffeeTable", 50), ("SideTable", 41), ("TVStand", 9)]),
    object(
        "Box",
        78,
        16,
        &[
            ("DiningTable", 36),
            ("CoffeeTable", 27),
            ("Sofa", 27),
            ("SideTable", 3),
            ("ArmChair", 3),
            ("TVStand", 3),
        ],
    ),
    object("Television", 78, 10, &[("TVStand", 48), ("Dresser", 29), ("CoffeeTable", 24)]),
    object(
        "Vase",
        56,
        26,
        &[
            ("Shelf", 46),
            ("TVStand", 21),
            ("SideTable", 13),
            ("DiningTable", 13),
            ("CoffeeTable", 8),
        ],
    ),
    object(
        "Watch",
        48,
        17,
        &[
            ("DiningTable", 32),
            ("SideTable", 18),
            ("CoffeeTable", 18),
            ("Drawer", 9),
            ("Shelf", 9),
            ("TVStand", 9),
            ("Dresser", 5),
        ],
    ),
    object(
        "Newspaper",
        44,
        21,
        &[
            ("Sofa", 24),
            ("DiningTable", 20),
            ("CoffeeTable", 20),
            ("Shelf", 16),
            ("SideTable", 12),
            ("Ottoman", 4),
            ("ArmChair", 4),
        ],
    ),
    object(
        "TissueBox",
        44,
        23,
        &[
            ("DiningTable", 36),
            ("SideTable", 32),
            ("CoffeeTable", 25),
            ("GarbageCan", 4),
            ("Dresser", 4),
        ],
    ),
    object("Plate", 30, 19, &[("DiningTable", 73), ("Shelf", 13), ("CoffeeTable", 13)]),
    object("DeskLamp", 22, 10, &[("SideTable", 83), ("CoffeeTable", 17)]),
    object(
        "Book",
        19,
        16,
        &[("SideTable", 38), ("Sofa", 25), ("DiningTable", 12), ("TVStand", 12), ("Dresser", 12)],
    ),
    object("Candle", 19, 30, &[("SideTable", 40), ("DiningTable", 33), ("CoffeeTable", 27)]),
    object(
        "CellPhone",
        15,
        15,
        &[("ArmChair", 33), ("Drawer", 17), ("CoffeeTable", 17), ("Sofa", 17), ("Dresser", 17)],
    ),
    object("Pencil", 15, 28, &[("SideTable", 55), ("CoffeeTable", 45)]),
    object("Bowl", 11, 20, &[("DiningTable", 50), ("TVStand", 33), ("Shelf", 17)]),
    object("Pen", 11, 20, &[("SideTable", 67), ("Dresser", 17), ("CoffeeTable", 17)]),
    object("WateringCan", 7, 15, &[("CoffeeTable", 100)]),
];

#[cfg(test)]
mod tests {
    use super::super::object_types::object_type_named;
    use super::*;

    #[test]
    fn every_object_has_a_type_and_a_place() {
        for kind in RoomKind::ALL {
            for row in kind.objects() {
                assert!(object_type_named(row.name).is_some(), "{}", row.name);
                assert!(!row.places.is_empty() && row.mean_tenths >= 10, "{}", row.name);
            }
        }
    }

    #[test]
    fn a_room_is_known_by_its_receptacles() {
        for kind in RoomKind::ALL {
            let names = kind.receptacles().iter().map(|row| row.name);
            assert_eq!(RoomKind::from_receptacles(names), kind);
        }
    }
}
