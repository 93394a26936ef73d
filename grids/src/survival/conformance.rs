//! Replays what the package has shown.

use std::fmt::Write as _;
use std::io;
use std::path::Path;

use serde::Deserialize;

use super::{Achievement, Action, Item, Kind, Way, World};
use crate::conformance::{Recorded, Report, crc32, replay_files};

/// An episode as `scripts/record_crafter.py` writes it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Trace {
    seed: u64,
    size: usize,
    /// A letter a cell, column by column.
    cells: String,
    start: Shown,
    /// Whether the player was given what can be collected before the first step.
    #[serde(default)]
    given: bool,
    /// Where the player was put before it.
    moved: Option<(u8, u8)>,
    steps: Vec<Recording>,
}

/// Column, row, facing, whether asleep, what the player has, and the sums of cells and creatures.
#[derive(Debug, Clone, PartialEq, Deserialize)]
struct Shown(u8, u8, u8, u8, [u8; 16], u32, u32);

/// An action, what it unlocked, and what was shown then.
#[derive(Debug, Deserialize)]
struct Recording(usize, Vec<String>, u8, u8, u8, u8, [u8; 16], u32, u32);

/// Replays a file of recorded episodes, or all such files of a folder, whose names end in `.jsonl`.
///
/// # Errors
///
/// What cannot be read, or is no recording.
pub fn replay(path: &Path) -> io::Result<Report> {
    replay_files::<Trace>(path)
}

impl Recorded for Trace {
    fn num_records(&self) -> usize {
        self.steps.len() + 1
    }

    fn name(&self) -> String {
        format!("seed {}", self.seed)
    }

    fn difference(&self) -> Option<String> {
        let mut world = match World::new(self.seed, self.size) {
            Ok(world) => world,
            Err(error) => return Some(error.to_string()),
        };
        let found = cells(&world);
        if found.len() != self.cells.len() {
            return Some(format!("there are {} cells, not {}", found.len(), self.cells.len()));
        }
        if let Some(at) = found.bytes().zip(self.cells.bytes()).position(|(a, b)| a != b) {
            let cell = (at / self.size, at % self.size);
            return Some(format!("cell {cell:?} is laid out differently"));
        }
        if shown(&world) != self.start {
            return Some(format!("begins with {:?}, not {:?}", shown(&world), self.start));
        }
        if self.given {
            for item in &Item::ALL[4..10] {
                world.player_mut().give(*item, 9);
            }
        }
        if let Some((x, y)) = self.moved {
            if usize::from(x.max(y)) >= self.size {
                return Some("the player was put outside of the world".to_owned());
            }
            world.place_player((x, y));
        }
        for (number, step) in self.steps.iter().enumerate() {
            let Recording(action, unlocked, x, y, facing, is_asleep, has, cells, creatures) = step;
            let Some(action) = Action::ALL.get(*action) else {
                return Some(format!("step {number}: no action {action}"));
            };
            let stepped = world.step(*action);
            let names: Vec<&str> = stepped.unlocked.iter().map(Achievement::name).collect();
            let found = shown(&world);
            let expected = Shown(*x, *y, *facing, *is_asleep, *has, *cells, *creatures);
            if names != *unlocked || found != expected {
                return Some(format!(
                    "step {number}, `{}`: {names:?}, {found:?}, not {unlocked:?}, {expected:?}",
                    action.words()
                ));
            }
        }
        None
    }
}

fn cells(world: &World) -> String {
    let size = world.size() as u8;
    let all = (0..size).flat_map(|x| (0..size).map(move |y| (x, y)));
    all.map(|at| world.material(at).letter()).collect()
}

fn shown(world: &World) -> Shown {
    let mut creatures = String::new();
    for creature in world.creatures() {
        let (kind, more) = match creature.kind {
            Kind::Cow => ("cow", 0),
            Kind::Zombie { cooldown } => ("zombie", i32::from(cooldown)),
            Kind::Skeleton { reload } => ("skeleton", i32::from(reload)),
            Kind::Arrow { flight: (x, y) } => ("arrow", i32::from(x) * 3 + i32::from(y)),
            Kind::Plant { grown } => ("plant", i32::from(grown)),
        };
        let ((x, y), health) = (creature.at, creature.health);
        let _ = writeln!(creatures, "{kind} {x} {y} {health} {more}");
    }
    let player = world.player();
    let facing = Way::ALL.iter().position(|way| *way == player.facing()).unwrap_or_default();
    Shown(
        player.at().0,
        player.at().1,
        facing as u8,
        u8::from(player.is_asleep()),
        Item::ALL.map(|item| player.count(item)),
        crc32(cells(world).as_bytes()),
        crc32(creatures.as_bytes()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance::replay_line;

    /// Recorded by `scripts/record_crafter.py`, with nights.
    const RECORDED: &str = include_str!("../../tests/fixtures/crafter.jsonl");

    #[test]
    fn episodes_are_those_of_the_package() {
        let mut report = Report::default();
        RECORDED.lines().for_each(|line| replay_line::<Trace>(line, &mut report).unwrap());
        assert_eq!(report.mismatches, 0, "{:#?}", report.described);
        assert!(report.traces >= 6 && report.records >= 1500, "{report:?}");
        // Much of what there is has happened in them.
        for name in ["place_plant", "make_iron_sword", "defeat_zombie", "eat_cow", "wake_up"] {
            assert!(RECORDED.contains(name), "{name}");
        }
    }

    #[test]
    fn what_differs_is_told() {
        let line = RECORDED.lines().next().unwrap();
        let told = |line: &str| {
            let mut report = Report::default();
            replay_line::<Trace>(line, &mut report).unwrap();
            report.described.pop().unwrap_or_default()
        };
        assert!(told(&line.replacen("\"seed\":", "\"seed\":9", 1)).contains("laid out"));
        assert!(told(&line.replacen("\"cells\":\"", "\"cells\":\":", 1)).contains("cells, not"));
        assert!(told(&line.replacen("\"steps\":[[", "\"steps\":[[1", 1)).contains("step 0"));
        assert!(replay_line::<Trace>("{}", &mut Report::default()).is_err());
    }
}
