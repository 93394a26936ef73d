//! TowerOfHanoi: carry a tower of disks to another place.
//!
//! Messages are those of TextArena 0.7.4 (MIT), word for word.

use std::fmt::Write as _;

use serde::Deserialize;
use serde_json::Value;

use crate::GameError;
use crate::game::{Rules, check_range, read_settings};
use crate::scan::{Cursor, brackets};
use crate::table::{MessageKind, Table};

const NAME: &str = "tower-of-hanoi";
const MAX_DISKS: usize = 12;
const NAMES: [char; 3] = ['A', 'B', 'C'];

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Settings {
    num_disks: usize,
    max_turns: u32,
    one_move: bool,
    spread: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self { num_disks: 3, max_turns: 14, one_move: false, spread: false }
    }
}

#[derive(Debug, Clone)]
struct TowerOfHanoi {
    settings: Settings,
    towers: [Tower; 3],
}

/// Disks from the lowest on.
#[derive(Debug, Clone, Copy, Default)]
struct Tower {
    disks: [u8; MAX_DISKS],
    len: usize,
}

impl Tower {
    fn disks(&self) -> &[u8] {
        &self.disks[..self.len]
    }

    fn top(&self) -> Option<u8> {
        self.disks().last().copied()
    }

    fn push(&mut self, disk: u8) {
        self.disks[self.len] = disk;
        self.len += 1;
    }
}

pub(crate) fn open(settings: &Value) -> Result<Box<dyn Rules>, GameError> {
    let settings: Settings = read_settings(NAME, settings)?;
    check_range(NAME, ("num_disks", settings.num_disks), 1..=MAX_DISKS)?;
    check_range(NAME, ("max_turns", settings.max_turns), 1..=100_000)?;
    Ok(Box::new(TowerOfHanoi { settings, towers: [Tower::default(); 3] }))
}

/// What `\[([ABCabc])\s*,?\s*([ABCabc])\]` takes.
fn move_of(cursor: &mut Cursor<'_>) -> Option<(usize, usize)> {
    let tower = |cursor: &mut Cursor<'_>| {
        NAMES.iter().position(|name| cursor.take(*name) || cursor.take(name.to_ascii_lowercase()))
    };
    let source = tower(cursor)?;
    cursor.spaces();
    if cursor.take(',') {
        cursor.spaces();
    }
    let target = tower(cursor)?;
    cursor.take(']').then_some((source, target))
}

impl TowerOfHanoi {
    fn completion(&self) -> f64 {
        let num_disks = self.settings.num_disks;
        let goal = (1..=num_disks as u8).rev();
        let right =
            self.towers[2].disks().iter().zip(goal).take_while(|(disk, goal)| *disk == goal);
        right.count() as f64 / num_disks as f64
    }

    fn tell_board(&self, table: &mut Table) {
        table.say_with(MessageKind::Board, |text| {
            text.push_str("Current Board: \n");
            for (name, tower) in NAMES.iter().zip(&self.towers) {
                text.push(*name);
                text.push_str(": [");
                for (at, disk) in tower.disks().iter().enumerate() {
                    let between = if at == 0 { "" } else { ", " };
                    let _ = write!(text, "{between}{disk}");
                }
                text.push_str("]\n");
            }
            text.push('.');
        });
    }

    fn can_move(&self, source: usize, target: usize) -> bool {
        let top = |tower: usize| self.towers[tower].top();
        top(source).is_some_and(|disk| top(target).is_none_or(|other| other >= disk))
    }

    /// Where a disk is.
    fn place(&self, disk: u8) -> usize {
        let has = |tower: &Tower| tower.disks().contains(&disk);
        self.towers.iter().position(has).expect("every disk is on a tower")
    }

    /// The next move of the shortest way to have this disk, and all above it, on a tower.
    fn next_move(&self, disk: u8, target: usize) -> Option<(usize, usize)> {
        if disk == 0 {
            return None;
        }
        let place = self.place(disk);
        if place == target {
            return self.next_move(disk - 1, target);
        }
        // What is above has to be out of the way.
        self.next_move(disk - 1, 3 - place - target).or(Some((place, target)))
    }
}

impl Rules for TowerOfHanoi {
    fn max_turns(&self) -> Option<u32> {
        Some(self.settings.max_turns)
    }

    fn begin(&mut self, table: &mut Table) {
        let num_disks = self.settings.num_disks;
        self.towers = [Tower::default(); 3];
        while self.towers.iter().all(|tower| tower.len == 0) || self.towers[2].len == num_disks {
            self.towers = [Tower::default(); 3];
            for disk in (1..=num_disks as u8).rev() {
                let tower = if self.settings.spread { table.rng.below(3) as usize } else { 0 };
                self.towers[tower].push(disk);
            }
        }
        table.say(
            MessageKind::Prompt,
            format_args!(
                "You are playing Tower of Hanoi with {num_disks} disks.\n\
                 You have to move the disks from tower A to tower C.\n\
                 To move a disk, type the source tower and the target tower (e.g., '[A C]').\n\
                 Note that you can only move the top disk of a tower, and that a bigger disk cannot be placed on a smaller disk.\n\
                 At each turn, submit one move."
            ),
        );
        self.tell_board(table);
    }

    fn act(&mut self, table: &mut Table, action: &str) {
        let mut moves = brackets(action).filter_map(|mut cursor| move_of(&mut cursor)).peekable();
        let is_several = self.settings.one_move
            && brackets(action).filter_map(|mut it| move_of(&mut it)).nth(1).is_some();
        if moves.peek().is_none() || is_several {
            let why = match is_several {
                true => "At each turn, submit one move.",
                false => "You did not respond with valid '[source] [target]'.",
            };
            table.invalid_alone(|| self.completion(), format_args!("{why}"));
        } else {
            for (source, target) in moves {
                let Some(disk) = self.towers[source].top() else {
                    let why = format_args!("You tried to move a disk from an empty tower.");
                    table.invalid_alone(|| self.completion(), why);
                    break;
                };
                if !self.can_move(source, target) {
                    let why = format_args!("You tried to place a larger disk on a smaller disk.");
                    table.invalid_alone(|| self.completion(), why);
                    continue;
                }
                self.towers[source].len -= 1;
                self.towers[target].push(disk);
                let (source, target) = (NAMES[source], NAMES[target]);
                let said = format_args!("You moved disk {disk} from {source} to {target}.");
                table.say(MessageKind::Description, said);
                self.tell_board(table);
            }
            if self.towers[2].len == self.settings.num_disks {
                let reason = "Congratulations! You solved the Tower of Hanoi puzzle.";
                table.set_outcome(1.0, true, reason);
            } else if table.is_out_of_turns() {
                let reward = self.completion();
                let percent = (reward * 100.0).round_ties_even();
                let reason = format!(
                    "The turn limit has been reached. You correctly placed {percent}% of the disks on Tower C."
                );
                table.set_outcome(reward, false, reason);
            }
        }
        table.end_move(false);
    }

    fn legal(&self, _: &Table) -> Option<Vec<String>> {
        let pairs = (0..3).flat_map(|source| (0..3).map(move |target| (source, target)));
        let legal =
            pairs.filter(|(source, target)| source != target && self.can_move(*source, *target));
        Some(
            legal
                .map(|(source, target)| format!("[{} {}]", NAMES[source], NAMES[target]))
                .collect(),
        )
    }

    /// The shortest way, by recursion from the largest disk on.
    fn expert(&mut self, _: &Table, _: f64) -> Option<String> {
        let (source, target) = self.next_move(self.settings.num_disks as u8, 2)?;
        Some(format!("[{} {}]", NAMES[source], NAMES[target]))
    }

    fn copy(&self) -> Box<dyn Rules> {
        Box::new(self.clone())
    }
}
