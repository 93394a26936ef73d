//! Games from seeds, made backwards.

use std::collections::BTreeSet;

use rand::seq::SliceRandom;
use rand::{Rng, RngExt};
use serde::{Deserialize, Serialize};
use spar_core::Seed;

use crate::game::{Direction, Exit, Game, Goal, Kind, Room, Thing};
use crate::play::{Play, Status, Where};
use crate::text::demand;
use crate::words::{CONTAINERS, FOODS, ITEMS, MATERIALS, MOODS, ROOMS, SUPPORTERS};

/// Times that a quest is begun anew where it could not be made as long as was asked for.
const MOST_TRIES: u64 = 400;

/// How a game is to be.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Setting {
    /// Rooms, 1 to 30. Default 4.
    pub rooms: usize,
    /// Things beside doors, 1 to 60: those of the quest, and others that lead nowhere. Default 8.
    pub objects: usize,
    /// Commands of the shortest solution, 1 to 40. Default 5.
    pub quest_length: usize,
    /// What the player is told of the quest. Default `brief`.
    pub goal: GoalWords,
}

impl Default for Setting {
    fn default() -> Self {
        Self { rooms: 4, objects: 8, quest_length: 5, goal: GoalWords::Brief }
    }
}

/// What the player is told of the quest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GoalWords {
    /// What has to be true in the end.
    #[default]
    Brief,
    /// Every command of the way there.
    Detailed,
}

/// A game cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum QuestError {
    /// A setting is out of its range.
    #[error("`{name}` is {found}, allowed are {least} to {most}")]
    Range {
        /// The setting.
        name: &'static str,
        /// What it is.
        found: usize,
        /// The least.
        least: usize,
        /// The most.
        most: usize,
    },
    /// There is no such quest with so few rooms and things.
    #[error(
        "no quest of {length} commands was found with {rooms} rooms and {objects} objects: give more rooms or objects"
    )]
    TooSmall {
        /// Commands that were asked for.
        length: usize,
        /// Rooms.
        rooms: usize,
        /// Things.
        objects: usize,
    },
}

impl Setting {
    fn check(&self) -> Result<(), QuestError> {
        for (name, found, most) in [
            ("rooms", self.rooms, ROOMS.len()),
            ("objects", self.objects, 60),
            ("quest_length", self.quest_length, 40),
        ] {
            if !(1..=most).contains(&found) {
                return Err(QuestError::Range { name, found, least: 1, most });
            }
        }
        Ok(())
    }
}

/// A command of a quest that is being made; rooms and things are numbers of the draft.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Act {
    Go(usize, usize),
    Open(usize),
    Unlock(usize, usize),
    Take(usize),
    Put(usize, usize),
    Insert(usize, usize),
    Eat(usize),
}

impl Act {
    /// What is true behind it.
    fn milestone(self) -> Option<Goal> {
        match self {
            Self::Go(_, to) => Some(Goal::Reach(to)),
            Self::Open(thing) => Some(Goal::Open(thing)),
            Self::Take(thing) => Some(Goal::Hold(thing)),
            Self::Put(thing, other) | Self::Insert(thing, other) => Some(Goal::Put(thing, other)),
            Self::Eat(thing) => Some(Goal::Eat(thing)),
            Self::Unlock(..) => None,
        }
    }
}

/// A quest, from its end to its beginning as far as it goes.
struct Draft<'r, R> {
    rng: &'r mut R,
    setting: Setting,
    /// Rooms as places of a map, all reached by exits of earlier ones.
    cells: Vec<(i32, i32)>,
    rooms: Vec<[Option<Exit>; 4]>,
    things: Vec<(Kind, Where, Status)>,
    keys: Vec<Option<usize>>,
    sides: Vec<Option<(usize, usize)>>,
    num_objects: usize,
    /// The commands, the last one first.
    acts: Vec<Act>,
    /// Where the player is before the first of them.
    room: usize,
    /// What has to be carried there, and comes from nowhere yet.
    carried: Vec<usize>,
    /// What is open there, has to be, and could be opened before.
    opened: Vec<usize>,
    /// What is closed there and has to be, and could be unlocked before.
    closed: Vec<usize>,
}

impl<R: Rng> Draft<'_, R> {
    fn thing(&mut self, kind: Kind, place: Where, status: Status) -> usize {
        self.things.push((kind, place, status));
        self.keys.push(None);
        self.sides.push(None);
        self.num_objects += usize::from(kind != Kind::Door);
        self.things.len() - 1
    }

    fn has_room_for(&self, objects: usize) -> bool {
        self.num_objects + objects <= self.setting.objects
    }

    /// A new room beside one, with or without a door between; nothing where there is no space.
    fn grow(&mut self, from: usize, has_door: bool) -> Option<usize> {
        let mut ways = Direction::ALL;
        ways.shuffle(self.rng);
        let (east, north) = self.cells[from];
        for way in ways {
            let (dx, dy) = way.offset();
            let cell = (east + dx, north + dy);
            if self.cells.contains(&cell) || self.rooms[from][way as usize].is_some() {
                continue;
            }
            let to = self.rooms.len();
            self.cells.push(cell);
            self.rooms.push([None; 4]);
            let door = has_door.then(|| self.thing(Kind::Door, Where::Room(from), Status::Open));
            if let Some(door) = door {
                self.sides[door] = Some((from, to));
            }
            self.rooms[from][way as usize] = Some(Exit { to, door });
            self.rooms[to][way.opposite() as usize] = Some(Exit { to: from, door });
            return Some(to);
        }
        None
    }

    /// The last command.
    fn finish_with(&mut self) {
        let room = self.room;
        let item = |draft: &mut Self| {
            let kind = if draft.rng.random_bool(0.4) { Kind::Food } else { Kind::Item };
            draft.thing(kind, Where::Held, Status::Open)
        };
        let act = match self.rng.random_range(0..5) {
            0 if self.has_room_for(2) => {
                let thing = item(self);
                let other = self.thing(Kind::Supporter, Where::Room(room), Status::Open);
                self.carried.push(thing);
                Act::Put(thing, other)
            }
            1 if self.has_room_for(2) => {
                let thing = item(self);
                let other = self.thing(Kind::Container, Where::Room(room), Status::Open);
                self.carried.push(thing);
                self.opened.push(other);
                Act::Insert(thing, other)
            }
            2 => {
                let thing = self.thing(Kind::Food, Where::Held, Status::Open);
                self.carried.push(thing);
                Act::Eat(thing)
            }
            3 => {
                let other = self.thing(Kind::Container, Where::Room(room), Status::Closed);
                self.closed.push(other);
                Act::Open(other)
            }
            _ => {
                let thing = item(self);
                self.lay(thing);
                Act::Take(thing)
            }
        };
        self.acts.push(act);
    }

    /// Lays a thing down in the present room: on the floor, on something, or in something that can be opened before.
    fn lay(&mut self, thing: usize) {
        let room = self.room;
        let choice = self.rng.random_range(0..3);
        let place = match choice {
            0 if self.has_room_for(1) => {
                let other = self.thing(Kind::Container, Where::Room(room), Status::Open);
                self.opened.push(other);
                Where::In(other)
            }
            1 if self.has_room_for(1) => {
                Where::On(self.thing(Kind::Supporter, Where::Room(room), Status::Open))
            }
            _ => Where::Room(room),
        };
        self.things[thing].1 = place;
    }

    /// Puts one command before the others, if some can be; whatever it establishes is needed behind it.
    fn prepend(&mut self) -> bool {
        let is_door = |draft: &Self, thing: usize| draft.sides[thing].is_some();
        let mut kinds = [0, 1, 2, 3];
        kinds.shuffle(self.rng);
        // Going is the shortest way to a long quest, and last where something else can be done.
        if self.rng.random_bool(0.6) {
            kinds.sort_by_key(|kind| *kind == 3);
        }
        for kind in kinds {
            match kind {
                0 => {
                    let Some(thing) = self.opened.pop() else { continue };
                    self.things[thing].2 = Status::Closed;
                    self.closed.push(thing);
                    self.acts.push(Act::Open(thing));
                    return true;
                }
                1 => {
                    // What is locked is unlocked right before it is opened.
                    let Some(thing) = self.closed.pop() else { continue };
                    let is_next = self.acts.last() == Some(&Act::Open(thing));
                    if !is_next || !self.has_room_for(1) {
                        continue;
                    }
                    let key = self.thing(Kind::Key { fits: thing }, Where::Held, Status::Open);
                    self.keys[thing] = Some(key);
                    self.things[thing].2 = Status::Locked;
                    self.carried.push(key);
                    self.acts.push(Act::Unlock(thing, key));
                    return true;
                }
                2 => {
                    let Some(thing) = self.carried.pop() else { continue };
                    self.lay(thing);
                    self.acts.push(Act::Take(thing));
                    return true;
                }
                _ => {
                    if self.rooms.len() >= self.setting.rooms {
                        continue;
                    }
                    // Whatever is open here stays so, since it could only be opened here; doors are no exception.
                    let has_door = self.rng.random_bool(0.5);
                    let to = self.room;
                    let Some(from) = self.grow(to, has_door) else { continue };
                    let door = Direction::ALL.iter().find_map(|way| {
                        self.rooms[from][*way as usize].filter(|exit| exit.to == to)?.door
                    });
                    self.opened.clear();
                    self.closed.clear();
                    self.opened.extend(door);
                    self.room = from;
                    self.acts.push(Act::Go(from, to));
                    debug_assert!(door.is_none_or(|door| is_door(self, door)));
                    return true;
                }
            }
        }
        false
    }

    /// Rooms and things that the quest does not need.
    fn fill(&mut self) {
        while self.rooms.len() < self.setting.rooms {
            let from = self.rng.random_range(0..self.rooms.len());
            let has_door = self.rng.random_bool(0.3);
            if let Some(_room) = self.grow(from, has_door)
                && has_door
            {
                let door = self.things.len() - 1;
                self.things[door].2 = Status::Closed;
            }
        }
        while self.has_room_for(1) {
            let room = Where::Room(self.rng.random_range(0..self.rooms.len()));
            let kind = match self.rng.random_range(0..6) {
                0 => Kind::Container,
                1 => Kind::Supporter,
                2 => Kind::Food,
                _ => Kind::Item,
            };
            let status = match kind {
                Kind::Container if self.rng.random_bool(0.6) => Status::Closed,
                _ => Status::Open,
            };
            let holders: Vec<Where> = (0..self.things.len())
                .filter_map(|thing| match self.things[thing].0 {
                    Kind::Container => Some(Where::In(thing)),
                    Kind::Supporter => Some(Where::On(thing)),
                    _ => None,
                })
                .collect();
            let place = match kind.is_portable() && !holders.is_empty() && self.rng.random_bool(0.5)
            {
                true => holders[self.rng.random_range(0..holders.len())],
                false => room,
            };
            self.thing(kind, place, status);
        }
    }
}

impl Game {
    /// The game of a seed.
    ///
    /// # Errors
    ///
    /// [`QuestError`] where a setting is out of its range, or the quest does not fit the rooms and objects.
    pub fn draw(seed: Seed, setting: &Setting) -> Result<Self, QuestError> {
        setting.check()?;
        for attempt in 0..MOST_TRIES {
            let mut rng = seed.derive("quest", attempt).rng();
            if let Some(game) = attempt_to_draw(&mut rng, *setting) {
                return Ok(game);
            }
        }
        let Setting { rooms, objects, quest_length: length, .. } = *setting;
        Err(QuestError::TooSmall { length, rooms, objects })
    }
}

fn attempt_to_draw(rng: &mut impl Rng, setting: Setting) -> Option<Game> {
    let mut draft = Draft {
        rng,
        setting,
        cells: vec![(0, 0)],
        rooms: vec![[None; 4]],
        things: Vec::new(),
        keys: Vec::new(),
        sides: Vec::new(),
        num_objects: 0,
        acts: Vec::new(),
        room: 0,
        carried: Vec::new(),
        opened: Vec::new(),
        closed: Vec::new(),
    };
    draft.finish_with();
    while draft.acts.len() < setting.quest_length {
        if !draft.prepend() {
            return None;
        }
    }
    if draft.num_objects > setting.objects {
        return None;
    }
    draft.fill();
    let acts: Vec<Act> = draft.acts.iter().rev().copied().collect();
    let start = draft.room;
    let (rooms, things, keys, sides) = (draft.rooms, draft.things, draft.keys, draft.sides);
    let game = named(draft.rng, setting, rooms, things, keys, sides, start, &acts);
    // The planner's way is the shortest there is; a quest with a shortcut is none of this length.
    let mut play = Play::new(game.into());
    let beginning = play.clone();
    let mut num_commands = 0;
    while let Some(command) = play.next_of_solution() {
        num_commands += 1;
        if num_commands > setting.quest_length || !play.carry_out(command).1 {
            return None;
        }
    }
    (play.is_won() && num_commands == setting.quest_length).then(|| beginning.game().clone())
}

/// The game with names for all.
#[expect(clippy::too_many_arguments, reason = "they are the parts of one draft")]
fn named(
    rng: &mut impl Rng,
    setting: Setting,
    rooms: Vec<[Option<Exit>; 4]>,
    things: Vec<(Kind, Where, Status)>,
    keys: Vec<Option<usize>>,
    sides: Vec<Option<(usize, usize)>>,
    start: usize,
    acts: &[Act],
) -> Game {
    let mut room_names = ROOMS.to_vec();
    room_names.shuffle(rng);
    let rooms: Vec<Room> = rooms
        .into_iter()
        .zip(room_names)
        .map(|(exits, name)| Room {
            name: name.to_owned(),
            mood: MOODS[rng.random_range(0..MOODS.len())],
            exits,
        })
        .collect();
    let mut materials = MATERIALS.to_vec();
    materials.shuffle(rng);
    let mut taken = BTreeSet::new();
    let mut draw = |pool: &[&str], material: Option<&str>| -> String {
        // With few things of a pool left, materials tell them apart.
        for attempt in 0_usize.. {
            let word = pool[rng.random_range(0..pool.len())];
            let name = match material {
                Some(material) => format!("{material} {word}"),
                None if attempt < 8 => word.to_owned(),
                None => format!("{} {word}", MATERIALS[rng.random_range(0..MATERIALS.len())]),
            };
            if taken.insert(name.clone()) {
                return name;
            }
        }
        unreachable!("names do not run out before numbers do")
    };
    let mut names = vec![String::new(); things.len()];
    let mut next = 0;
    for (number, (kind, ..)) in things.iter().enumerate() {
        let mut fixed = |draw: &mut dyn FnMut(&[&str], Option<&str>) -> String, pool: &[&str]| {
            let material = materials[next % materials.len()];
            next += 1;
            draw(pool, Some(material))
        };
        names[number] = match kind {
            Kind::Container => fixed(&mut draw, CONTAINERS),
            Kind::Door => fixed(&mut draw, &["door", "gate", "hatch"]),
            Kind::Supporter => fixed(&mut draw, SUPPORTERS),
            Kind::Food => draw(FOODS, None),
            Kind::Item => draw(ITEMS, None),
            Kind::Key { .. } => String::new(),
        };
    }
    for (number, (kind, ..)) in things.iter().enumerate() {
        if let Kind::Key { fits } = kind {
            // A key is of what it opens.
            names[number] = format!(
                "{} key",
                names[*fits].rsplit_once(' ').map_or("", |(material, _)| material)
            );
        }
    }
    let is_in = |goal: Goal| match goal {
        Goal::Put(_, other) => things[other].0 == Kind::Container,
        _ => false,
    };
    let last =
        acts.last().and_then(|act| act.milestone()).expect("the last command is no unlocking");
    let said = |goal: Goal| {
        demand(|thing| names[thing].clone(), |room| rooms[room].name.clone(), goal, is_in(goal))
    };
    let instruction = match setting.goal {
        GoalWords::Brief => format!("{}.", said(last)),
        GoalWords::Detailed => {
            let all: Vec<String> = acts
                .iter()
                .map(|act| match *act {
                    Act::Unlock(thing, key) => {
                        format!("unlock the {} with the {}", names[thing], names[key])
                    }
                    act => act.milestone().map(said).unwrap_or_default(),
                })
                .collect();
            format!("{}.", all.join(", then "))
        }
    };
    let mut letters = instruction.chars();
    let instruction: String = letters
        .next()
        .map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect());
    let milestones = acts.iter().filter_map(|act| act.milestone()).collect();
    Game {
        rooms,
        start,
        places: things.iter().map(|(_, place, _)| *place).collect(),
        statuses: things.iter().map(|(_, _, status)| *status).collect(),
        things: things
            .iter()
            .zip(names)
            .map(|((kind, ..), name)| Thing { name, kind: *kind })
            .collect(),
        keys,
        sides,
        goal: last,
        milestones,
        instruction: instruction.into(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::command::Command;

    fn setting(rooms: usize, objects: usize, quest_length: usize) -> Setting {
        Setting { rooms, objects, quest_length, ..Setting::default() }
    }

    /// The fewest commands to the end, looked for among all ways; nothing where it takes more than `most`.
    fn fewest(game: &Game, most: usize) -> Option<usize> {
        let mut known = std::collections::HashSet::new();
        let first = Play::new(game.clone().into());
        let mut now = vec![first];
        for length in 0..=most {
            let mut next = Vec::new();
            for play in now {
                if play.is_won() {
                    return Some(length);
                }
                play.each_command(|command| {
                    let is_idle =
                        matches!(command, Command::Look | Command::Inventory | Command::Examine(_));
                    if !is_idle {
                        let mut other = play.clone();
                        other.carry_out(command);
                        if known.insert(other.situation()) {
                            next.push(other);
                        }
                    }
                });
            }
            now = next;
        }
        None
    }

    #[test]
    fn no_quest_has_a_shorter_solution() {
        for seed in 0..25 {
            let length = 2 + seed as usize % 4;
            let game = Game::draw(Seed::from_u64(seed), &setting(3, 4, length)).unwrap();
            assert_eq!(fewest(&game, length), Some(length), "{seed}: {}", game.instruction);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]
        #[test]
        fn quests_are_as_long_as_was_asked_for(seed: u64, rooms in 2..12_usize, spare in 0..20_usize, length in 1..16_usize) {
            let setting = setting(rooms, length + 2 + spare, length);
            let game = Game::draw(Seed::from_u64(seed), &setting).unwrap();
            prop_assert_eq!(game.rooms.len(), rooms);
            let objects = game.things.iter().filter(|thing| thing.kind != Kind::Door).count();
            prop_assert_eq!(objects, setting.objects);
            let mut names: Vec<_> = game.things.iter().map(|thing| &thing.name).collect();
            names.sort();
            names.dedup();
            prop_assert_eq!(names.len(), game.things.len(), "names are told apart");
            let mut play = Play::new(game.into());
            let mut count = 0;
            while let Some(command) = play.next_of_solution() {
                let words = command.words(play.game(), &play);
                prop_assert_eq!(Command::read(&words, &play), Ok(command), "{}", words);
                prop_assert!(play.carry_out(command).1);
                count += 1;
            }
            prop_assert!(play.is_won());
            prop_assert_eq!(count, length);
        }

        #[test]
        fn what_is_listed_can_be_done_and_solved_from_there(seed: u64, picks in proptest::collection::vec(any::<u32>(), 30)) {
            let game = Game::draw(Seed::from_u64(seed), &setting(4, 9, 5)).unwrap();
            let mut play = Play::new(game.into());
            for pick in picks {
                let mut listed = Vec::new();
                play.each_command(|command| listed.push(command));
                let command = listed[pick as usize % listed.len()];
                let words = command.words(play.game(), &play);
                prop_assert_eq!(Command::read(&words, &play), Ok(command), "{}", words);
                prop_assert!(play.carry_out(command).1, "{}", words);
                if play.is_won() || play.is_lost() {
                    break;
                }
            }
            let mut commands = Vec::new();
            while let Some(command) = play.next_of_solution() {
                commands.push(command.words(play.game(), &play));
                prop_assert!(play.carry_out(command).1, "{:?}", commands);
                prop_assert!(commands.len() < 60, "{} {:?}", play.game().instruction, commands);
            }
            prop_assert!(play.is_won() || play.is_lost());
        }
    }

    #[test]
    fn settings_out_of_range_and_quests_that_do_not_fit_are_told() {
        let draw = |rooms, objects, length| {
            Game::draw(Seed::from_u64(0), &setting(rooms, objects, length))
        };
        assert!(matches!(draw(0, 3, 3), Err(QuestError::Range { name: "rooms", .. })));
        assert!(matches!(draw(2, 100, 3), Err(QuestError::Range { name: "objects", .. })));
        assert!(matches!(draw(2, 3, 0), Err(QuestError::Range { name: "quest_length", .. })));
        let told = draw(1, 1, 12).unwrap_err().to_string();
        assert!(told.contains("12 commands") && told.contains("more rooms"), "{told}");
    }
}
