//! Mazes from seeds.

use std::collections::VecDeque;

use spar_python::numpy_random::Generator;

use super::play::{COLORS, Maze, Tile};

/// How a maze is to be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settings {
    /// Rows and columns, walls included: odd, 5 to 31.
    pub size: usize,
    /// Locked doors on the way to the goal, 0 to 4, with a key each.
    pub doors: usize,
    /// The share of inner walls that are taken away once all is connected, 0 to 0.5: 0 makes a maze with one way to everywhere.
    pub loops: f64,
}

/// Settings are out of range, or leave no room.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum MazeError {
    /// A setting is out of range.
    #[error("`{setting}` is {found}, allowed are {allowed}")]
    Setting {
        /// Which.
        setting: &'static str,
        /// What it is.
        found: String,
        /// What it may be.
        allowed: &'static str,
    },
}

/// As many mazes of a seed as are tried until one has room for all doors.
const TRIES: u64 = 200;

/// The maze of a seed: cells are joined by a walk that backs up at dead ends, then the player and the goal are put far apart, and
/// doors between them.
///
/// Where a maze has no room for as many doors, the next one of the seed is tried; where none has, the last has fewer.
///
/// # Errors
///
/// [`MazeError`] where a setting is out of range.
pub fn generate(settings: &Settings, seed: u64) -> Result<Maze, MazeError> {
    let Settings { size, doors, loops } = *settings;
    let refuse =
        |setting, found: String, allowed| Err(MazeError::Setting { setting, found, allowed });
    if !(5..=31).contains(&size) || size % 2 == 0 {
        return refuse("size", size.to_string(), "odd numbers from 5 to 31");
    }
    if doors > COLORS.len() {
        return refuse("doors", doors.to_string(), "0 to 4");
    }
    if !(0.0..=0.5).contains(&loops) {
        return refuse("loops", loops.to_string(), "0 to 0.5");
    }
    let mut rng = Generator::from_u64(seed);
    let mut best: Option<(usize, Maze)> = None;
    for _ in 0..TRIES {
        let (placed, maze) = attempt(settings, &mut rng);
        if best.as_ref().is_none_or(|(most, _)| placed > *most) {
            best = Some((placed, maze));
        }
        if best.as_ref().is_some_and(|(most, _)| *most == doors) {
            break;
        }
    }
    let (_, maze) = best.expect("a maze without doors is one");
    Ok(maze)
}

/// A maze, and how many doors it has.
fn attempt(settings: &Settings, rng: &mut Generator) -> (usize, Maze) {
    let size = settings.size;
    let mut tiles = carve(size, settings.loops, rng);
    let floor: Vec<usize> = (0..tiles.len()).filter(|at| tiles[*at] == Tile::Floor).collect();
    let player = *rng.choice(&floor).expect("mazes have floors");
    let steps = distances(&tiles, size, player, &[]);
    // The goal is one of the farthest quarter of places.
    let mut far = floor.clone();
    far.sort_by_key(|at| std::cmp::Reverse((steps[*at], *at)));
    let far = &far[..far.len().div_ceil(4)];
    let goal = *rng.choice(far).expect("mazes have floors");
    tiles[goal] = Tile::Goal;
    let mut placed = 0;
    // From the goal backwards, so that each door bars what lies behind the ones before it.
    let way = way_back(&tiles, size, player, goal);
    let mut cuts: Vec<usize> = way
        .into_iter()
        .filter(|at| *at != goal && *at != player && is_narrow(&tiles, size, *at))
        .collect();
    let mut doors: Vec<usize> = Vec::new();
    while doors.len() < settings.doors && !cuts.is_empty() {
        let at = cuts.remove(rng.up_to(cuts.len() as u64 - 1) as usize);
        // Two doors side by side leave no room for a key.
        let is_apart = doors.iter().all(|door| (steps[*door]).abs_diff(steps[at]) > 2);
        let bars = distances(&tiles, size, player, &[at])[goal] == usize::MAX;
        if is_apart && bars {
            doors.push(at);
        }
    }
    doors.sort_by_key(|at| steps[*at]);
    let mut taken = Vec::new();
    for (number, door) in doors.iter().enumerate() {
        // Its key lies before it, where it can be come to through the doors before it.
        let before = distances(&tiles, size, player, &doors[number..]);
        let places: Vec<usize> = floor
            .iter()
            .copied()
            .filter(|at| {
                before[*at] != usize::MAX
                    && *at != player
                    && *at != goal
                    && !doors.contains(at)
                    && !taken.contains(at)
            })
            .collect();
        let Ok(place) = rng.choice(&places) else { break };
        taken.push(*place);
        tiles[*door] = Tile::Door(number as u8);
        tiles[*place] = Tile::Key(number as u8);
        placed += 1;
    }
    (placed, Maze { size, tiles: tiles.into(), player, keys: 0, opened: 0 })
}

fn carve(size: usize, loops: f64, rng: &mut Generator) -> Vec<Tile> {
    let mut tiles = vec![Tile::Wall; size * size];
    let cells = (size - 1) / 2;
    let at = |row: usize, column: usize| (2 * row + 1) * size + 2 * column + 1;
    let draw = |rng: &mut Generator| rng.up_to(cells as u64 - 1) as usize;
    let mut trail = vec![(draw(rng), draw(rng))];
    tiles[at(trail[0].0, trail[0].1)] = Tile::Floor;
    while let Some(&(row, column)) = trail.last() {
        let ways = [
            (row + 1, column),
            (row, column + 1),
            (row.wrapping_sub(1), column),
            (row, column.wrapping_sub(1)),
        ];
        let open: Vec<(usize, usize)> = ways
            .into_iter()
            .filter(|(row, column)| {
                *row < cells && *column < cells && tiles[at(*row, *column)] == Tile::Wall
            })
            .collect();
        let Ok(&(to_row, to_column)) = rng.choice(&open) else {
            trail.pop();
            continue;
        };
        let between = (at(row, column) + at(to_row, to_column)) / 2;
        tiles[between] = Tile::Floor;
        tiles[at(to_row, to_column)] = Tile::Floor;
        trail.push((to_row, to_column));
    }
    if loops > 0.0 {
        for row in 1..size - 1 {
            for column in 1..size - 1 {
                // Only what stands between two cells is a wall that leads somewhere.
                let place = row * size + column;
                if (row + column) % 2 == 1 && tiles[place] == Tile::Wall && rng.random() < loops {
                    tiles[place] = Tile::Floor;
                }
            }
        }
    }
    tiles
}

/// Whether a place is a passage with walls on both sides.
fn is_narrow(tiles: &[Tile], size: usize, at: usize) -> bool {
    let is_wall = |at: usize| tiles[at] == Tile::Wall;
    let upright = is_wall(at - 1) && is_wall(at + 1);
    let level = is_wall(at - size) && is_wall(at + size);
    upright || level
}

/// Steps from a place to all others, where some are barred.
fn distances(tiles: &[Tile], size: usize, from: usize, barred: &[usize]) -> Vec<usize> {
    let mut steps = vec![usize::MAX; tiles.len()];
    steps[from] = 0;
    let mut open = VecDeque::from([from]);
    while let Some(at) = open.pop_front() {
        for to in [at + 1, at - 1, at + size, at - size] {
            if tiles[to] != Tile::Wall && steps[to] == usize::MAX && !barred.contains(&to) {
                steps[to] = steps[at] + 1;
                open.push_back(to);
            }
        }
    }
    steps
}

/// The places of a shortest way, from its end.
fn way_back(tiles: &[Tile], size: usize, from: usize, to: usize) -> Vec<usize> {
    let steps = distances(tiles, size, from, &[]);
    let mut way = vec![to];
    let mut at = to;
    while at != from {
        at = [at + 1, at - 1, at + size, at - size]
            .into_iter()
            .find(|next| steps[*next] != usize::MAX && steps[*next] + 1 == steps[at])
            .expect("a place that can be reached has one before it");
        way.push(at);
    }
    way
}

#[cfg(test)]
mod tests {
    use super::super::{Moved, Way};
    use super::*;

    fn settings(size: usize, doors: usize, loops: f64) -> Settings {
        Settings { size, doors, loops }
    }

    #[test]
    fn every_maze_can_be_solved_and_its_doors_bar_the_way() {
        for seed in 0..6 {
            for (size, doors, loops) in
                [(5, 0, 0.0), (7, 1, 0.0), (11, 2, 0.1), (15, 4, 0.0), (31, 4, 0.3)]
            {
                let mut maze = generate(&settings(size, doors, loops), seed).unwrap();
                let num_doors =
                    maze.tiles.iter().filter(|tile| matches!(tile, Tile::Door(_))).count();
                assert!(
                    num_doors == doors || loops > 0.0,
                    "{num_doors} of {doors} in\n{}",
                    maze.draw(None)
                );
                let plan = maze.plan().unwrap();
                assert!(!plan.is_empty());
                for (number, way) in (1..).zip(&plan) {
                    let wanted = if number == plan.len() { Moved::Goal } else { Moved::There };
                    assert_eq!(maze.step(*way), wanted);
                }
                assert_eq!(maze.keys().count(), num_doors, "every door takes its key");
            }
        }
    }

    #[test]
    fn seeds_are_mazes() {
        let maze = |seed| generate(&settings(11, 2, 0.0), seed).unwrap();
        assert_eq!(maze(1), maze(1));
        assert_ne!(maze(1), maze(2));
        let mut walled = maze(1);
        let blocked = Way::ALL.map(|way| walled.clone().step(way));
        assert!(blocked.contains(&Moved::Wall) || blocked.contains(&Moved::There));
        walled.step(Way::Up);
        assert_eq!(walled.draw(Some(1)).len(), 11);
    }

    #[test]
    fn settings_out_of_range_are_told() {
        for wrong in [
            settings(6, 0, 0.0),
            settings(33, 0, 0.0),
            settings(7, 5, 0.0),
            settings(7, 1, 0.6),
            settings(7, 1, f64::NAN),
        ] {
            let error = generate(&wrong, 0).unwrap_err().to_string();
            assert!(error.contains("allowed"), "{error}");
        }
    }
}
