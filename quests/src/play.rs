//! A game while it is played.

use std::sync::Arc;

use crate::command::Command;
use crate::game::{Direction, Game, Goal, Kind};

/// Where a thing is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Where {
    /// In a room: on its floor, or fixed there.
    Room(usize),
    /// On a thing.
    On(usize),
    /// In a thing.
    In(usize),
    /// The player has it.
    Held,
    /// It was eaten.
    Gone,
}

/// Whether something is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Status {
    /// It is open, or cannot be closed.
    Open,
    /// It is closed.
    Closed,
    /// It is closed, and takes its key to open.
    Locked,
}

/// A game while it is played. A clone is a fork.
#[derive(Debug, Clone)]
pub struct Play {
    game: Arc<Game>,
    room: usize,
    places: Vec<Where>,
    statuses: Vec<Status>,
    /// Which milestones were reached.
    reached: u64,
    /// What was seen last in each room, as a number.
    seen: Vec<u64>,
    is_lost: bool,
}

impl Play {
    /// A game from its beginning.
    pub fn new(game: Arc<Game>) -> Self {
        let mut play = Self {
            room: game.start,
            places: game.places.clone(),
            statuses: game.statuses.clone(),
            reached: 0,
            seen: vec![0; game.rooms.len()],
            is_lost: false,
            game,
        };
        play.see();
        play
    }

    /// The game.
    pub fn game(&self) -> &Game {
        &self.game
    }

    /// The room in which the player is.
    pub fn room(&self) -> usize {
        self.room
    }

    /// Where a thing is.
    pub fn place(&self, thing: usize) -> Where {
        self.places[thing]
    }

    /// Whether a thing is open.
    pub fn status(&self, thing: usize) -> Status {
        self.statuses[thing]
    }

    pub(crate) fn name(&self, thing: usize) -> &str {
        &self.game.things[thing].name
    }

    /// The thing on or in which a thing lies.
    pub(crate) fn holder(&self, thing: usize) -> Option<usize> {
        match self.places[thing] {
            Where::On(other) | Where::In(other) => Some(other),
            _ => None,
        }
    }

    /// Whether the quest is done.
    pub fn is_won(&self) -> bool {
        self.game.holds(self, self.game.goal)
    }

    /// Whether it cannot be done any more, since something that it takes was eaten.
    pub fn is_lost(&self) -> bool {
        self.is_lost
    }

    /// How many of the milestones were reached, each counted once.
    pub fn num_reached(&self) -> usize {
        self.reached.count_ones() as usize
    }

    /// A number for what is known: where the player is, what is carried, and what was seen last in every room.
    pub fn knowledge(&self) -> u64 {
        let mut known = mix(0x51, self.room as u64);
        for (thing, place) in self.places.iter().enumerate() {
            if *place == Where::Held {
                known = mix(known, thing as u64 + 1);
            }
        }
        self.seen.iter().fold(known, |known, seen| mix(known, *seen))
    }

    /// Where everything is, for those who look for the shortest way.
    #[cfg(test)]
    pub(crate) fn situation(&self) -> (usize, Vec<Where>, Vec<Status>) {
        (self.room, self.places.clone(), self.statuses.clone())
    }

    /// Notes what is to be seen here.
    fn see(&mut self) {
        let mut seen = 1;
        for thing in 0..self.places.len() {
            if self.places[thing] != Where::Held && self.is_in_sight(thing) {
                let place = match self.places[thing] {
                    Where::On(other) => other as u64 * 4 + 1,
                    Where::In(other) => other as u64 * 4 + 2,
                    _ => 0,
                };
                seen = mix(mix(mix(seen, thing as u64), place), self.statuses[thing] as u64);
            }
        }
        self.seen[self.room] = seen;
    }

    /// Whether a thing can be seen and touched: it is here, carried, or on or in such a thing that is open.
    pub fn is_in_sight(&self, thing: usize) -> bool {
        if let Some((one, other)) = self.game.sides[thing] {
            return one == self.room || other == self.room;
        }
        match self.places[thing] {
            Where::Room(room) => room == self.room,
            Where::Held => true,
            Where::On(other) => self.is_in_sight(other),
            Where::In(other) => self.statuses[other] == Status::Open && self.is_in_sight(other),
            Where::Gone => false,
        }
    }

    /// Carries out a command; what is told says whether it could be.
    pub fn carry_out(&mut self, command: Command) -> (String, bool) {
        let told = match self.change(command) {
            Ok(told) => told,
            Err(told) => return (told, false),
        };
        self.see();
        let milestones = self.game.milestones.iter().enumerate();
        for (place, milestone) in milestones.take(64) {
            if self.game.holds(self, *milestone) {
                self.reached |= 1 << place;
            }
        }
        (told, true)
    }

    /// Why a command cannot be carried out; nothing where it can.
    pub fn why_not(&self, command: Command) -> Option<String> {
        let name = |thing: usize| self.name(thing);
        let kind = |thing: usize| self.game.things[thing].kind;
        let unseen = |thing: usize| {
            (!self.is_in_sight(thing)).then(|| format!("You see no {} here.", name(thing)))
        };
        let not_held = |thing: usize| {
            (self.places[thing] != Where::Held)
                .then(|| format!("You do not carry the {}.", name(thing)))
        };
        match command {
            Command::Look | Command::Inventory => None,
            Command::Go(direction) => match self.exit(direction) {
                None => Some(format!("There is no way {}.", direction.name())),
                Some((_, Some(door))) if self.statuses[door] != Status::Open => {
                    Some(format!("The {} is {}.", name(door), self.state_word(door)))
                }
                Some(_) => None,
            },
            Command::Examine(thing) => unseen(thing),
            Command::Open(thing) | Command::Close(thing) => unseen(thing).or_else(|| {
                let wanted =
                    if matches!(command, Command::Open(_)) { Status::Closed } else { Status::Open };
                if !kind(thing).can_be_opened() {
                    Some(format!("The {} cannot be opened or closed.", name(thing)))
                } else if self.statuses[thing] != wanted {
                    let hint = match (wanted, self.statuses[thing]) {
                        (Status::Closed, Status::Locked) => " Unlock it first.",
                        _ => "",
                    };
                    Some(format!("The {} is {}.{hint}", name(thing), self.state_word(thing)))
                } else {
                    None
                }
            }),
            Command::Lock(thing, key) | Command::Unlock(thing, key) => {
                let is_lock = matches!(command, Command::Lock(..));
                let wanted = if is_lock { Status::Closed } else { Status::Locked };
                unseen(thing).or_else(|| not_held(key)).or_else(|| {
                    if self.game.keys[thing].is_none() {
                        Some(format!("The {} has no lock.", name(thing)))
                    } else if self.game.keys[thing] != Some(key) {
                        Some(format!("The {} does not fit the {}.", name(key), name(thing)))
                    } else if self.statuses[thing] != wanted {
                        Some(format!("The {} is {}.", name(thing), self.state_word(thing)))
                    } else {
                        None
                    }
                })
            }
            Command::Take(thing) => unseen(thing).or_else(|| {
                if !kind(thing).is_portable() {
                    Some(format!("The {} cannot be taken.", name(thing)))
                } else if self.places[thing] == Where::Held {
                    Some(format!("You already carry the {}.", name(thing)))
                } else {
                    None
                }
            }),
            Command::Drop(thing) => not_held(thing),
            Command::Put(thing, other) => not_held(thing).or_else(|| unseen(other)).or_else(|| {
                (kind(other) != Kind::Supporter)
                    .then(|| format!("Nothing can be put on the {}.", name(other)))
            }),
            Command::Insert(thing, other) => {
                not_held(thing).or_else(|| unseen(other)).or_else(|| {
                    if kind(other) != Kind::Container {
                        Some(format!("Nothing can be put into the {}.", name(other)))
                    } else if self.statuses[other] != Status::Open {
                        Some(format!("The {} is {}.", name(other), self.state_word(other)))
                    } else {
                        None
                    }
                })
            }
            Command::Eat(thing) => not_held(thing).or_else(|| {
                (kind(thing) != Kind::Food).then(|| format!("The {} is no food.", name(thing)))
            }),
        }
    }

    fn change(&mut self, command: Command) -> Result<String, String> {
        if let Some(why) = self.why_not(command) {
            return Err(why);
        }
        let words =
            |play: &Self, verb: &str, thing: usize| format!("You {verb} the {}.", play.name(thing));
        Ok(match command {
            Command::Look => self.look(),
            Command::Inventory => self.inventory(),
            Command::Go(direction) => {
                if let Some((room, _)) = self.exit(direction) {
                    self.room = room;
                }
                self.look()
            }
            Command::Examine(thing) => self.examine(thing),
            Command::Open(thing) => {
                self.statuses[thing] = Status::Open;
                let inside = self.inside(thing);
                words(self, "open", thing) + &inside
            }
            Command::Close(thing) => {
                self.statuses[thing] = Status::Closed;
                words(self, "close", thing)
            }
            Command::Lock(thing, key) => {
                self.statuses[thing] = Status::Locked;
                format!("You lock the {} with the {}.", self.name(thing), self.name(key))
            }
            Command::Unlock(thing, key) => {
                self.statuses[thing] = Status::Closed;
                format!("You unlock the {} with the {}.", self.name(thing), self.name(key))
            }
            Command::Take(thing) => {
                let from =
                    self.holder(thing).map(|other| format!(" from the {}", self.name(other)));
                self.places[thing] = Where::Held;
                format!("You take the {}{}.", self.name(thing), from.unwrap_or_default())
            }
            Command::Drop(thing) => {
                self.places[thing] = Where::Room(self.room);
                words(self, "drop", thing)
            }
            Command::Put(thing, other) => {
                self.places[thing] = Where::On(other);
                format!("You put the {} on the {}.", self.name(thing), self.name(other))
            }
            Command::Insert(thing, other) => {
                self.places[thing] = Where::In(other);
                format!("You put the {} into the {}.", self.name(thing), self.name(other))
            }
            Command::Eat(thing) => {
                self.places[thing] = Where::Gone;
                let is_needed = match self.game.goal {
                    Goal::Hold(wanted) | Goal::Put(wanted, _) => wanted == thing,
                    _ => false,
                };
                self.is_lost |= is_needed;
                words(self, "eat", thing)
            }
        })
    }

    /// The room behind an exit, and the door in it.
    pub(crate) fn exit(&self, direction: Direction) -> Option<(usize, Option<usize>)> {
        self.game.rooms[self.room].exits[direction as usize].map(|exit| (exit.to, exit.door))
    }

    /// Hands over all commands that can be carried out, in no order.
    pub fn each_command(&self, mut take: impl FnMut(Command)) {
        take(Command::Look);
        take(Command::Inventory);
        for direction in Direction::ALL {
            if self.why_not(Command::Go(direction)).is_none() && self.exit(direction).is_some() {
                take(Command::Go(direction));
            }
        }
        let in_sight: Vec<usize> =
            (0..self.places.len()).filter(|thing| self.is_in_sight(*thing)).collect();
        for &thing in &in_sight {
            take(Command::Examine(thing));
            let kind = self.game.things[thing].kind;
            if kind.can_be_opened() {
                match self.statuses[thing] {
                    Status::Open => take(Command::Close(thing)),
                    Status::Closed => take(Command::Open(thing)),
                    Status::Locked => {}
                }
            }
            if let Some(key) = self.game.keys[thing].filter(|key| self.places[*key] == Where::Held)
            {
                match self.statuses[thing] {
                    Status::Closed => take(Command::Lock(thing, key)),
                    Status::Locked => take(Command::Unlock(thing, key)),
                    Status::Open => {}
                }
            }
            if self.places[thing] != Where::Held {
                if kind.is_portable() {
                    take(Command::Take(thing));
                }
                continue;
            }
            take(Command::Drop(thing));
            if kind == Kind::Food {
                take(Command::Eat(thing));
            }
            for &other in &in_sight {
                match self.game.things[other].kind {
                    Kind::Supporter => take(Command::Put(thing, other)),
                    Kind::Container if self.statuses[other] == Status::Open => {
                        take(Command::Insert(thing, other));
                    }
                    _ => {}
                }
            }
        }
    }
}

fn mix(known: u64, more: u64) -> u64 {
    let mut mixed = known.rotate_left(23) ^ more.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed ^ (mixed >> 27)
}
