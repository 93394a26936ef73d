//! A player who knows the house.

use std::collections::VecDeque;

use crate::command::Command;
use crate::game::{Direction, Goal, Kind};
use crate::play::{Play, Status, Where};

/// Keys that are behind other keys, at most.
const MOST_DEEP: usize = 64;

impl Play {
    /// The next command of a solution from here; nothing where the quest is done, or cannot be done any more.
    pub fn next_of_solution(&self) -> Option<Command> {
        if self.is_won() || self.is_lost() {
            return None;
        }
        self.towards(self.game().goal, MOST_DEEP)
    }

    /// The next command towards something that is not true yet.
    fn towards(&self, goal: Goal, deep: usize) -> Option<Command> {
        let deep = deep.checked_sub(1)?;
        match goal {
            Goal::Reach(room) => self.way_to(room, deep),
            Goal::Hold(thing) => {
                if let Some(command) = self.sight_of(thing, deep) {
                    return Some(command);
                }
                Some(Command::Take(thing))
            }
            Goal::Eat(thing) => {
                if self.place(thing) != Where::Held {
                    return self.towards(Goal::Hold(thing), deep);
                }
                Some(Command::Eat(thing))
            }
            Goal::Open(thing) => {
                if self.lacks_key(thing) {
                    return self.opening(thing, deep);
                }
                if let Some(command) = self.sight_of(thing, deep) {
                    return Some(command);
                }
                self.opening(thing, deep)
            }
            Goal::Put(thing, other) => {
                if self.place(thing) != Where::Held {
                    return self.towards(Goal::Hold(thing), deep);
                }
                if self.lacks_key(other) {
                    return self.opening(other, deep);
                }
                if let Some(command) = self.sight_of(other, deep) {
                    return Some(command);
                }
                if self.game().things[other].kind == Kind::Supporter {
                    return Some(Command::Put(thing, other));
                }
                if self.status(other) != Status::Open {
                    return self.opening(other, deep);
                }
                Some(Command::Insert(thing, other))
            }
        }
    }

    /// Whether a thing is locked and its key is somewhere else. Keys are fetched before anybody goes to what they open: who went there first would
    /// come back for the key, and go there again before it was taken.
    fn lacks_key(&self, thing: usize) -> bool {
        let key = self.game().keys[thing];
        self.status(thing) == Status::Locked
            && key.is_some_and(|key| self.place(key) != Where::Held)
    }

    /// What opens a thing that is in sight and closed, or brings its key nearer.
    fn opening(&self, thing: usize, deep: usize) -> Option<Command> {
        if self.status(thing) == Status::Closed {
            return Some(Command::Open(thing));
        }
        let key = self.game().keys[thing]?;
        if self.place(key) == Where::Held {
            return Some(Command::Unlock(thing, key));
        }
        self.towards(Goal::Hold(key), deep)
    }

    /// What brings a thing nearer that is not in sight; nothing where it is.
    fn sight_of(&self, thing: usize, deep: usize) -> Option<Command> {
        if self.is_in_sight(thing) {
            return None;
        }
        if let Some((one, _)) = self.game().sides[thing] {
            return self.way_to(one, deep.checked_sub(1)?);
        }
        match self.place(thing) {
            Where::Room(room) => self.way_to(room, deep.checked_sub(1)?),
            Where::On(other) | Where::In(other) => {
                if self.lacks_key(other) {
                    return self.opening(other, deep);
                }
                self.sight_of(other, deep).or_else(|| self.opening(other, deep))
            }
            Where::Held | Where::Gone => None,
        }
    }

    /// The next command on the shortest way to another room; the keys of its doors are fetched first.
    fn way_to(&self, room: usize, deep: usize) -> Option<Command> {
        let game = self.game();
        // For every room that was found, the one before it and the direction from there.
        let mut from: Vec<Option<(usize, Direction)>> = vec![None; game.rooms.len()];
        let mut open = VecDeque::from([self.room()]);
        while let Some(at) = open.pop_front() {
            for direction in Direction::ALL {
                let Some(exit) = game.rooms[at].exits[direction as usize] else { continue };
                if exit.to != self.room() && from[exit.to].is_none() {
                    from[exit.to] = Some((at, direction));
                    open.push_back(exit.to);
                }
            }
        }
        let (mut at, mut locked, mut first) = (room, None, None);
        while let Some((before, direction)) = from[at] {
            let door = game.rooms[before].exits[direction as usize].and_then(|exit| exit.door);
            locked = door.filter(|door| self.lacks_key(*door)).or(locked);
            first = Some((direction, door));
            at = before;
        }
        if let Some(door) = locked {
            return self.opening(door, deep);
        }
        match first? {
            (_, Some(door)) if self.status(door) != Status::Open => self.opening(door, deep),
            (direction, _) => Some(Command::Go(direction)),
        }
    }
}
