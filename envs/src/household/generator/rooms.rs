//! The four kinds of rooms and the receptacles that stand in them.

use rand::{Rng, RngExt};

use super::room_objects::{
    BATHROOM_OBJECTS, BEDROOM_OBJECTS, KITCHEN_OBJECTS, LIVING_ROOM_OBJECTS,
};

/// A kind of room.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
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
