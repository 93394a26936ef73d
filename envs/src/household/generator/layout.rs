//! Rooms without their objects, and the split each belongs to.

use std::fmt::Write as _;

use rand::{Rng, RngExt};
use serde::{Deserialize, Serialize};
use spar_core::Seed;

use super::rooms::RoomKind;
use super::scene::{Receptacle, Scene};

/// Which rooms games are made in; no room of one set is in another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SceneSet {
    /// Rooms to train in.
    Train,
    /// Rooms to choose settings by.
    Dev,
    /// Rooms to report on.
    Unseen,
}

/// How much stands in a room.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(try_from = "SizeParameter", into = "SizeParameter")]
pub enum RoomSize {
    /// At most 10 receptacles.
    Small,
    /// At most 20 receptacles.
    Medium,
    /// As much as rooms of ALFWorld have.
    #[default]
    Large,
    /// At most this many receptacles, 4 to 60.
    AtMost(u32),
}

/// The largest size that is written as a number.
const MAX_SIZE: u32 = 60;

/// How [`RoomSize`] is written: a word or a number.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum SizeParameter {
    Number(u32),
    Word(String),
}

impl TryFrom<SizeParameter> for RoomSize {
    type Error = String;

    fn try_from(parameter: SizeParameter) -> Result<Self, String> {
        let found = match parameter {
            SizeParameter::Number(number) if (4..=MAX_SIZE).contains(&number) => {
                return Ok(Self::AtMost(number));
            }
            SizeParameter::Number(number) => number.to_string(),
            SizeParameter::Word(word) => match word.as_str() {
                "small" => return Ok(Self::Small),
                "medium" => return Ok(Self::Medium),
                "large" => return Ok(Self::Large),
                _ => word,
            },
        };
        Err(format!("`size` is `{found}`, allowed are `small`, `medium`, `large` and 4 to 60"))
    }
}

impl From<RoomSize> for SizeParameter {
    fn from(size: RoomSize) -> Self {
        match size {
            RoomSize::Small => Self::Word("small".to_owned()),
            RoomSize::Medium => Self::Word("medium".to_owned()),
            RoomSize::Large => Self::Word("large".to_owned()),
            RoomSize::AtMost(number) => Self::Number(number),
        }
    }
}

impl RoomSize {
    /// In words.
    pub(super) fn describe(self) -> String {
        match self {
            Self::Small | Self::Medium | Self::AtMost(_) => {
                format!("at most {} receptacles", self.max_receptacles())
            }
            Self::Large => "any number of receptacles".to_owned(),
        }
    }

    /// The sizes above this one, from the next on.
    pub(super) fn larger(self) -> impl Iterator<Item = Self> {
        let next = self.max_receptacles().saturating_add(1).min(MAX_SIZE as usize + 1) as u32;
        (next..=MAX_SIZE).map(Self::AtMost)
    }

    /// The most receptacles a room has; some are always there.
    pub(super) fn max_receptacles(self) -> usize {
        match self {
            Self::Small => 10,
            Self::Medium => 20,
            Self::Large => usize::MAX,
            Self::AtMost(number) => number as usize,
        }
    }
}

impl SceneSet {
    /// The name in task parameters.
    pub fn name(self) -> &'static str {
        match self {
            Self::Train => "train",
            Self::Dev => "dev",
            Self::Unseen => "unseen",
        }
    }

    /// How many rooms of each kind the set has.
    pub(super) fn num_rooms(self) -> u32 {
        match self {
            Self::Train => 100,
            Self::Dev | Self::Unseen => 25,
        }
    }

    /// The set that a room with this description belongs to.
    ///
    /// Every description belongs to exactly one, whatever seed it came from: that is what keeps
    /// the sets apart.
    fn of_description(description: &str) -> Self {
        match Seed::from_u64(0).derive("household layout", description).as_u64() % 16 {
            0..=9 => Self::Train,
            10..=12 => Self::Dev,
            _ => Self::Unseen,
        }
    }
}

/// Rooms that are drawn until one falls into a set. At most 13 of 16 fall into another one, so where
/// rooms differ at all, all of these do so once in 10^11 times.
const ROOM_DRAWS: u32 = 128;

/// Room `index` of its kind in a set, empty; `None` where none of the few rooms there are of a small
/// size is in the set.
pub(super) fn room(
    set: SceneSet,
    kind: RoomKind,
    size: RoomSize,
    index: u32,
) -> Option<Scene<'static>> {
    let seed = Seed::from_u64(0).derive("household rooms", kind.name());
    let seed = seed.derive(set.name(), index).derive("size", size.max_receptacles());
    let mut rng = seed.rng();
    let mut drawn = (0..ROOM_DRAWS).map(|_| draw_room(kind, size, &mut rng));
    drawn.find(|scene| SceneSet::of_description(&description(scene)) == set)
}

/// All that a player can tell of an empty room: types, what opens, and what is reached together.
pub(super) fn description(scene: &Scene<'_>) -> String {
    let mut text = scene.room.name().to_owned();
    for receptacle in &scene.receptacles {
        let first = scene.receptacles.iter().position(|r| r.location == receptacle.location);
        let opens = if receptacle.openable { "+" } else { "" };
        let first = first.unwrap_or_default();
        // Writing into a string cannot fail.
        let _ = write!(text, " {}{opens}@{first}", receptacle.kind);
    }
    text
}

fn draw_room(kind: RoomKind, size: RoomSize, rng: &mut impl Rng) -> Scene<'static> {
    let rows = kind.receptacles();
    let mut counts: Vec<u32> = rows.iter().map(|row| row.draw_count(rng)).collect();
    while counts.iter().sum::<u32>() as usize > size.max_receptacles() {
        // Of what there is most; of single ones, any that a room can do without.
        let most = counts.iter().copied().max().unwrap_or_default();
        let removable = |i: &usize| counts[*i] == most && (most > 1 || rows[*i].present < 100);
        let candidates: Vec<usize> = (0..counts.len()).filter(removable).collect();
        if candidates.is_empty() {
            break;
        }
        counts[candidates[rng.random_range(0..candidates.len())]] -= 1;
    }
    let mut receptacles: Vec<Receptacle<'static>> = Vec::new();
    let mut num_locations = 0;
    for (row, count) in rows.iter().zip(counts) {
        for number in 0..count {
            // Neighbours of a type now and then share a location, as burners and cabinets do.
            let together = match row.name {
                "StoveBurner" => 60,
                "Cabinet" | "Drawer" | "Shelf" => 15,
                _ => 0,
            };
            let openable = rng.random_range(0..100) < row.openable;
            let shares = number > 0 && rng.random_range(0..100) < together;
            if !shares {
                num_locations += 1;
            }
            let location = num_locations - 1;
            receptacles.push(Receptacle { kind: row.name, openable, location });
        }
    }
    share_with_counter(&mut receptacles, rng);
    Scene { room: kind, receptacles, objects: Vec::new() }
}

/// Toasters and coffee machines are sometimes reached together with the counter they stand on.
fn share_with_counter(receptacles: &mut [Receptacle<'static>], rng: &mut impl Rng) {
    let counters = receptacles.iter().filter(|other| other.kind == "CounterTop");
    let counters: Vec<usize> = counters.map(|counter| counter.location).collect();
    if counters.is_empty() {
        return;
    }
    for receptacle in receptacles {
        let machine = matches!(receptacle.kind, "Toaster" | "CoffeeMachine");
        if machine && rng.random_range(0..100) < 25 {
            receptacle.location = counters[rng.random_range(0..counters.len())];
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn sets_of_rooms_do_not_overlap() {
        let mut seen: HashMap<String, SceneSet> = HashMap::new();
        for set in [SceneSet::Train, SceneSet::Dev, SceneSet::Unseen] {
            for size in [RoomSize::Small, RoomSize::Medium, RoomSize::Large] {
                for kind in RoomKind::ALL {
                    for index in 0..set.num_rooms() {
                        let room = description(&room(set, kind, size, index).unwrap());
                        assert_eq!(*seen.entry(room).or_insert(set), set);
                    }
                }
            }
        }
    }

    #[test]
    fn a_room_is_as_small_as_asked() {
        for index in 0..25 {
            let size = RoomSize::AtMost(12);
            let room = room(SceneSet::Dev, RoomKind::Kitchen, size, index).unwrap();
            assert!(room.receptacles.len() <= 12);
            assert!(room.has_receptacle("Fridge") && room.has_receptacle("SinkBasin"));
        }
    }

    #[test]
    fn a_size_of_one_room_alone_leaves_the_other_sets_without() {
        // Six receptacles stand in every bathroom.
        let size = RoomSize::AtMost(6);
        let rooms = |set| (0..5).filter_map(move |i| room(set, RoomKind::Bathroom, size, i));
        let sets = [SceneSet::Train, SceneSet::Dev, SceneSet::Unseen];
        let counts = sets.map(|set| rooms(set).count());
        assert_eq!(counts.iter().filter(|count| **count == 5).count(), 1, "{counts:?}");
        assert_eq!(counts.iter().sum::<usize>(), 5, "{counts:?}");
    }

    #[test]
    fn sizes_are_words_or_numbers() {
        let parse = |text: &str| serde_json::from_str::<RoomSize>(text);
        assert_eq!(parse("\"small\"").unwrap(), RoomSize::Small);
        assert_eq!(parse("12").unwrap(), RoomSize::AtMost(12));
        assert!(parse("3").unwrap_err().to_string().contains("`medium`"));
        assert!(parse("\"huge\"").is_err());
    }
}
