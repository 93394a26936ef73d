//! Rooms from seeds.

use std::collections::HashSet;

use spar_python::Random;
use spar_python::numpy_random::{Generator, RandomState};

use super::room::{Move, Room, Rules};

/// How likely the walk that lays floors is to turn.
const TURN: f64 = 0.35;
/// How deep, and over how many states, pulls are searched.
const DEPTH: u32 = 300;
const MAX_STATES: usize = 300_000;
/// Rooms that TextArena tries with one seed, and seeds that it tries.
const TEXTARENA_TRIES: usize = 1000;
const TEXTARENA_SEEDS: u64 = 50;
/// Rooms that gym-sokoban tries before it says that it tries again, and how often it may say so here.
const GYM_TRIES: usize = 4;
const GYM_RETRIES: usize = 200;
/// What each step of the walk makes floor: cells of three by three.
const MASKS: [[u8; 9]; 5] = [
    [0, 0, 0, 1, 1, 1, 0, 0, 0],
    [0, 1, 0, 0, 1, 0, 0, 1, 0],
    [0, 0, 0, 1, 1, 0, 0, 1, 0],
    [0, 0, 0, 1, 1, 0, 1, 1, 0],
    [0, 0, 0, 0, 1, 1, 0, 1, 0],
];

/// No room could be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoRoom {
    /// The settings are out of range.
    #[error("{0}")]
    Setting(String),
    /// All tries failed.
    #[error("no room of seed {seed} can be solved, in as many tries as there are")]
    Exhausted {
        /// The seed.
        seed: u64,
    },
}

/// The room of a seed: `rows` and `columns` from 5 to 15, walls included, `boxes` from 1 to 7. Under [`Rules::Gym`], seeds
/// are below 2^32.
///
/// # Errors
///
/// [`NoRoom`] where a setting is out of range, or none was found.
pub fn generate(
    rules: Rules,
    rows: usize,
    columns: usize,
    boxes: usize,
    seed: u64,
) -> Result<Room, NoRoom> {
    let size = 5..=15;
    if !size.contains(&rows) || !size.contains(&columns) || !(1..=7).contains(&boxes) {
        return Err(NoRoom::Setting(format!(
            "{rows} by {columns} with {boxes} boxes; allowed are 5 to 15 by 5 to 15 with 1 to 7"
        )));
    }
    let draft = Draft { rows, columns, boxes, steps: (1.7 * (rows + columns) as f64) as usize };
    let room = match rules {
        Rules::Gym => {
            let Ok(word) = u32::try_from(seed) else {
                return Err(NoRoom::Setting(format!("seed {seed} has to be below 2^32")));
            };
            let mut draws = Draws {
                walk: Random::from_u64(seed),
                place: Place::State(RandomState::from_u32(word)),
            };
            (0..GYM_RETRIES).find_map(|_| draft.gym(&mut draws))
        }
        Rules::TextArena => (0..TEXTARENA_SEEDS).find_map(|attempt| {
            let seed = seed.wrapping_add(attempt);
            let place = Place::Generator(Generator::from_u64(seed));
            let mut draws = Draws { walk: Random::from_u64(seed), place };
            (0..TEXTARENA_TRIES).find_map(|_| draft.textarena(&mut draws))
        }),
    };
    room.ok_or(NoRoom::Exhausted { seed })
}

/// What rooms are drawn from.
struct Draws {
    walk: Random,
    place: Place,
}

enum Place {
    State(RandomState),
    Generator(Generator),
}

impl Draws {
    fn place(&mut self, count: usize) -> usize {
        match &mut self.place {
            Place::State(rng) => rng.up_to(count as u64 - 1) as usize,
            Place::Generator(rng) => rng.up_to(count as u64 - 1) as usize,
        }
    }

    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        // A sample of one, which draws as a choice does.
        *self.walk.choice(of).expect("lists are not empty")
    }
}

/// How rooms are to be.
struct Draft {
    rows: usize,
    columns: usize,
    boxes: usize,
    steps: usize,
}

impl Draft {
    /// Up to four rooms, the first that has a score.
    fn gym(&self, draws: &mut Draws) -> Option<Room> {
        for _ in 0..GYM_TRIES {
            let fixed_and_state = self.furnished(draws)?;
            let (score, room) = self.pull(fixed_and_state, &GYM_MOVES);
            if score > 0 {
                return Some(room);
            }
        }
        None
    }

    fn textarena(&self, draws: &mut Draws) -> Option<Room> {
        let room = self.furnished(draws)?;
        if is_dead(&room) {
            return None;
        }
        let (score, room) = self.pull(room, &TEXTARENA_MOVES);
        (score > 0 && !is_dead(&room)).then_some(room)
    }

    /// Floors, a player, and boxes on targets; `None` where there is too little room.
    fn furnished(&self, draws: &mut Draws) -> Option<Room> {
        let mut room = self.floors(draws);
        let free =
            |room: &[u8]| -> Vec<usize> { (0..room.len()).filter(|at| room[*at] == 1).collect() };
        let floor = free(&room);
        if floor.len() <= self.boxes + 1 {
            return None;
        }
        let player = floor[draws.place(floor.len())];
        room[player] = 5;
        for _ in 0..self.boxes {
            let floor = free(&room);
            room[floor[draws.place(floor.len())]] = 2;
        }
        let state = room.iter().map(|cell| if *cell == 2 { 4 } else { *cell }).collect();
        room[player] = 1;
        let (rows, columns) = (self.rows, self.columns);
        Some(Room { rows, columns, fixed: room.into(), state, player })
    }

    fn floors(&self, draws: &mut Draws) -> Vec<u8> {
        const WAYS: [(i64, i64); 4] = [(1, 0), (0, 1), (-1, 0), (0, -1)];
        let (rows, columns) = (self.rows as i64, self.columns as i64);
        let mut way = draws.pick(&WAYS);
        let mut start = |most: i64| draws.walk.int(1, most).expect("rooms have an inside");
        let (mut row, mut column) = (start(rows - 1), start(columns - 1));
        let mut room = vec![0_u8; self.rows * self.columns];
        for _ in 0..self.steps {
            if draws.walk.random() < TURN {
                way = draws.pick(&WAYS);
            }
            row = (row + way.0).clamp(1, rows - 2);
            column = (column + way.1).clamp(1, columns - 2);
            let mask = draws.pick(&MASKS);
            for (number, is_floor) in (0..).zip(mask) {
                let (row, column) = (row - 1 + number / 3, column - 1 + number % 3);
                let is_inside = (1..rows - 1).contains(&row) && (1..columns - 1).contains(&column);
                if is_floor == 1 && is_inside {
                    room[row as usize * self.columns + column as usize] = 1;
                }
            }
        }
        room
    }

    /// Pulls boxes to where they are the farthest from their targets: the score and the room.
    fn pull(&self, room: Room, moves: &'static [(Move, bool)]) -> (u32, Room) {
        let targets = (0..room.fixed.len()).filter(|at| room.fixed[*at] == 2).collect::<Vec<_>>();
        let mut search = Search {
            columns: self.columns,
            fixed: &room.fixed,
            targets: &targets,
            moves,
            explored: HashSet::new(),
            best: None,
        };
        let boxes = targets.iter().map(|at| (*at as u16) << 1).collect();
        search.visit(&Pulled { player: room.player, boxes, pulls: 0 }, DEPTH);
        let (score, best) = search.best.expect("the first state has a score");
        let mut state: Vec<u8> = room.fixed.to_vec();
        for at in best.boxes {
            state[usize::from(at >> 1)] = 4;
        }
        state[best.player] = 5;
        (score, Room { state, player: best.player, ..room })
    }
}

/// Moves with whether they pull, in the order in which they are tried: gym-sokoban moves without pulling as well.
const GYM_MOVES: [(Move, bool); 8] = [
    (Move::Up, true),
    (Move::Down, true),
    (Move::Left, true),
    (Move::Right, true),
    (Move::Up, false),
    (Move::Down, false),
    (Move::Left, false),
    (Move::Right, false),
];
const TEXTARENA_MOVES: [(Move, bool); 4] =
    [(Move::Up, true), (Move::Down, true), (Move::Left, true), (Move::Right, true)];

/// A state of the search backwards.
#[derive(Debug, Clone)]
struct Pulled {
    player: usize,
    /// By target: where the box is, twice, and one more once it was pulled.
    boxes: Vec<u16>,
    pulls: u32,
}

struct Search<'r> {
    columns: usize,
    fixed: &'r [u8],
    targets: &'r [usize],
    moves: &'static [(Move, bool)],
    explored: HashSet<u128>,
    best: Option<(u32, Pulled)>,
}

impl Search<'_> {
    fn visit(&mut self, state: &Pulled, depth: u32) {
        let depth = depth - 1;
        if depth == 0 || self.explored.len() >= MAX_STATES || !self.explored.insert(state.key()) {
            return;
        }
        let score = self.score(state);
        if self.best.as_ref().is_none_or(|(best, _)| score > *best) {
            self.best = Some((score, state.clone()));
        }
        for (way, pulls) in self.moves {
            let offset = way.offset(self.columns);
            let to = state.player.wrapping_add_signed(offset);
            let holds = |at: usize| state.boxes.iter().position(|it| usize::from(it >> 1) == at);
            if self.fixed[to] == 0 || holds(to).is_some() {
                // Nothing changes, and the state is known.
                continue;
            }
            let mut next = Pulled { player: to, ..state.clone() };
            let behind = state.player.wrapping_add_signed(-offset);
            if *pulls && let Some(number) = holds(behind) {
                next.boxes[number] = (state.player as u16) << 1 | 1;
                next.pulls += 1;
            }
            self.visit(&next, depth);
        }
    }

    /// Pulls, times how far all boxes are from their targets; nothing where a target is not empty.
    fn score(&self, state: &Pulled) -> u32 {
        let is_taken = |target: &usize| {
            *target == state.player || state.boxes.iter().any(|it| usize::from(it >> 1) == *target)
        };
        if self.targets.iter().any(is_taken) {
            return 0;
        }
        let place = |at: usize| (at / self.columns, at % self.columns);
        let distances = self.targets.iter().zip(&state.boxes).map(|(target, at)| {
            let ((row, column), (other_row, other_column)) =
                (place(*target), place(usize::from(at >> 1)));
            row.abs_diff(other_row) + column.abs_diff(other_column)
        });
        state.pulls * distances.sum::<usize>() as u32
    }
}

impl Pulled {
    /// The state in one number: boxes count as a set.
    fn key(&self) -> u128 {
        let mut boxes = [0; 7];
        boxes[..self.boxes.len()].copy_from_slice(&self.boxes);
        boxes[..self.boxes.len()].sort_unstable();
        boxes.iter().fold(self.player as u128, |key, at| key << 16 | u128::from(*at))
    }
}

/// Whether TextArena takes a room for one that cannot be solved: by walls beside boxes, and by boxes that cannot move.
fn is_dead(room: &Room) -> bool {
    let offsets = Move::ALL.map(|way| way.offset(room.columns));
    let boxes: Vec<usize> =
        (0..room.state.len()).filter(|at| matches!(room.state[*at], 3 | 4)).collect();
    let beside = |at: usize, offset: isize| at.wrapping_add_signed(offset);
    let is_cornered = |at: &usize| {
        if room.fixed[*at] == 2 {
            return false;
        }
        let walls: Vec<usize> =
            (0..4).filter(|way| room.fixed[beside(*at, offsets[*way])] == 0).collect();
        match walls[..] {
            // Its rule for corners looks at the numbers of directions: opposite walls count, two of the corners do not.
            [first, second] => matches!(second - first, 1 | 3),
            _ => walls.len() > 2,
        }
    };
    let is_free = |at: usize| matches!(room.state[at], 1 | 2);
    let is_stuck = |at: &usize| {
        !offsets.iter().any(|offset| {
            let behind = beside(*at, -offset);
            is_free(beside(*at, *offset)) && (is_free(behind) || behind == room.player)
        })
    };
    boxes.iter().any(is_cornered) || boxes.len() > 1 && boxes.iter().any(is_stuck)
}

#[cfg(test)]
mod tests {
    use super::super::solve;
    use super::*;

    #[test]
    fn rooms_are_solved() {
        for seed in 0..20 {
            let mut room = generate(Rules::TextArena, 6, 6, 2, seed).unwrap();
            let moves = solve(&room, 100_000).unwrap();
            assert!(!room.is_solved());
            moves.iter().for_each(|way| assert!(room.step(*way).moved));
            assert!(room.is_solved(), "{}", room.draw(true));
        }
    }

    #[test]
    fn what_is_no_room_is_told() {
        assert!(matches!(generate(Rules::Gym, 4, 6, 1, 0), Err(NoRoom::Setting(_))));
        assert!(matches!(generate(Rules::Gym, 6, 6, 1, 1 << 32), Err(NoRoom::Setting(_))));
        assert!(generate(Rules::TextArena, 5, 5, 7, 0).is_err(), "too many boxes");
        assert!(Room::new(3, 3, vec![0; 9], vec![0; 9]).is_err());
    }
}
