//! FifteenPuzzle: slide tiles into their order.
//!
//! Messages are those of TextArena 0.7.4 (MIT), word for word.

use serde::Deserialize;
use serde_json::Value;
use spar_python::repr_float;

use crate::GameError;
use crate::game::{Rules, check_range, read_settings};
use crate::scan::{Cursor, first};
use crate::table::{MessageKind, Table};
use crate::text::AddPiece;

const NAME: &str = "fifteen-puzzle";
/// The most situations that a search for a way looks at.
const MAX_NODES: u32 = 3_000_000;
const MOVES: [&str; 4] = ["up", "down", "left", "right"];

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Settings {
    max_turns: u32,
    scramble: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Self { max_turns: 50, scramble: 0 }
    }
}

/// Tiles row by row; 0 is the empty place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Board {
    tiles: [u8; 16],
    empty: usize,
}

impl Board {
    const GOAL: Self =
        Self { tiles: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 0], empty: 15 };

    /// The place of the tile that a move slides, if there is one.
    fn source(&self, way: usize) -> Option<usize> {
        let (row, column) = (self.empty / 4, self.empty % 4);
        match way {
            0 => (row < 3).then(|| self.empty + 4),
            1 => (row > 0).then(|| self.empty - 4),
            2 => (column < 3).then(|| self.empty + 1),
            _ => (column > 0).then(|| self.empty - 1),
        }
    }

    fn slide(&mut self, way: usize) -> bool {
        let source = self.source(way);
        if let Some(source) = source {
            self.tiles.swap(self.empty, source);
            self.empty = source;
        }
        source.is_some()
    }

    /// The rows as they are shown: tiles two characters wide, each with what parts it from the next.
    fn drawn(&self) -> [u8; 48] {
        let mut drawn = [b' '; 48];
        for (at, (place, tile)) in drawn.chunks_mut(3).zip(self.tiles).enumerate() {
            let [tens, ones] = match tile {
                0 => *b"__",
                1..10 => [b' ', b'0' + tile],
                _ => [b'1', b'0' + tile % 10],
            };
            let behind = if at % 4 == 3 { b'\n' } else { b' ' };
            place.copy_from_slice(&[tens, ones, behind]);
        }
        drawn
    }

    /// Whether it can be brought into order: by the parity of its permutation and the row of the empty place.
    fn is_solvable(&self) -> bool {
        let tiles: Vec<u8> = self.tiles.iter().copied().filter(|tile| *tile > 0).collect();
        let inversions: usize =
            (0..15).map(|at| tiles[at + 1..].iter().filter(|it| **it < tiles[at]).count()).sum();
        (inversions + self.empty / 4) % 2 == 1
    }

    /// Moves that are needed at least: Manhattan distances, and two for every pair of tiles that are in each other's way
    /// in their own row or column (linear conflict, Hansson, Mayer and Yung, 1992).
    fn bound(&self) -> u32 {
        let mut bound = 0;
        for (at, tile) in self.tiles.iter().enumerate().filter(|(_, tile)| **tile > 0) {
            let goal = usize::from(*tile) - 1;
            bound += (at / 4).abs_diff(goal / 4) + (at % 4).abs_diff(goal % 4);
        }
        for line in 0..4 {
            bound += 2 * self
                .conflicts(|place| line * 4 + place, |goal| (goal / 4 == line).then_some(goal % 4));
            bound += 2 * self
                .conflicts(|place| place * 4 + line, |goal| (goal % 4 == line).then_some(goal / 4));
        }
        bound as u32
    }

    /// How many tiles of a line have to leave it, so that the others can pass.
    fn conflicts(
        &self,
        at: impl Fn(usize) -> usize,
        own: impl Fn(usize) -> Option<usize>,
    ) -> usize {
        let mut line = [None; 4];
        for (place, goal) in line.iter_mut().enumerate() {
            let tile = usize::from(self.tiles[at(place)]);
            *goal = tile.checked_sub(1).and_then(&own);
        }
        let mut leaving = 0;
        loop {
            let against = |place: usize| {
                let Some(goal) = line[place] else { return 0 };
                let before = line[..place].iter().flatten().filter(|other| **other > goal);
                let behind = line[place + 1..].iter().flatten().filter(|other| **other < goal);
                before.count() + behind.count()
            };
            let worst = (0..4).max_by_key(|place| against(*place)).unwrap_or_default();
            if against(worst) == 0 {
                return leaving;
            }
            line[worst] = None;
            leaving += 1;
        }
    }
}

#[derive(Debug, Clone)]
struct FifteenPuzzle {
    settings: Settings,
    board: Board,
    initial: [u8; 16],
    /// The way that was found, from its end, and the board in front of its next move.
    way: Vec<u8>,
    way_from: Option<Board>,
}

pub(crate) fn open(settings: &Value) -> Result<Box<dyn Rules>, GameError> {
    let settings: Settings = read_settings(NAME, settings)?;
    check_range(NAME, ("max_turns", settings.max_turns), 1..=100_000)?;
    check_range(NAME, ("scramble", settings.scramble), 0..=80)?;
    let board = Board::GOAL;
    let (initial, way) = (board.tiles, Vec::new());
    Ok(Box::new(FifteenPuzzle { settings, board, initial, way, way_from: None }))
}

/// What `\[([a-zA-Z]+)\]` takes.
fn word<'t>(cursor: &mut Cursor<'t>) -> Option<&'t str> {
    let word = cursor.run(|next| next.is_ascii_alphabetic())?;
    cursor.take(']').then_some(word)
}

impl FifteenPuzzle {
    fn completion(&self) -> f64 {
        let (mut right, mut all) = (0_u32, 0_u32);
        for (at, goal) in Board::GOAL.tiles.iter().enumerate() {
            if self.initial[at] != *goal {
                all += 1;
                right += u32::from(self.board.tiles[at] == *goal);
            }
        }
        if all == 0 { 0.0 } else { f64::from(right) / f64::from(all) }
    }

    fn observe(&self, table: &mut Table) {
        table.say_with(MessageKind::Board, |text| {
            text.add("Current Board:\n\n").add(&self.board.drawn()[..]);
            text.add("\nAvailable Moves: ");
            let legal = (0..4).filter(|way| self.board.source(*way).is_some());
            for (number, way) in legal.enumerate() {
                text.add(if number == 0 { "[" } else { ", [" }).add(MOVES[way]).add(']');
            }
        });
    }

    /// A shortest way from here, by iterative deepening A* (Korf, 1985); `None` where there is none, or none was found
    /// within the bound of the search.
    fn search(&self) -> Option<Vec<u8>> {
        let start = self.board;
        if !start.is_solvable() {
            return None;
        }
        let mut limit = start.bound();
        let mut nodes = 0;
        loop {
            let mut path = Vec::new();
            match deepen(&start, None, limit, &mut path, &mut nodes) {
                Ok(()) => {
                    path.reverse();
                    return Some(path);
                }
                Err(next) if next == u32::MAX || nodes > MAX_NODES => return None,
                Err(next) => limit = next,
            }
        }
    }
}

/// Looks for a way of at most so many moves; an error is the least number that would be worth a try.
fn deepen(
    board: &Board,
    back: Option<usize>,
    limit: u32,
    path: &mut Vec<u8>,
    nodes: &mut u32,
) -> Result<(), u32> {
    let bound = board.bound();
    if bound == 0 {
        return Ok(());
    }
    let made = path.len() as u32;
    if made + bound > limit {
        return Err(made + bound);
    }
    *nodes += 1;
    if *nodes > MAX_NODES {
        return Err(u32::MAX);
    }
    let mut least = u32::MAX;
    for way in (0..4).filter(|way| Some(*way) != back) {
        let mut next = *board;
        if !next.slide(way) {
            continue;
        }
        path.push(way as u8);
        // The move that takes this one back: up and down, left and right.
        match deepen(&next, Some(way ^ 1), limit, path, nodes) {
            Ok(()) => return Ok(()),
            Err(next) => least = least.min(next),
        }
        path.pop();
    }
    Err(least)
}

impl Rules for FifteenPuzzle {
    fn max_turns(&self) -> Option<u32> {
        Some(self.settings.max_turns)
    }

    fn begin(&mut self, table: &mut Table) {
        self.board = Board::GOAL;
        if self.settings.scramble == 0 {
            let tiles = &mut self.board.tiles;
            table.rng.shuffle(tiles);
            self.board.empty = tiles.iter().position(|tile| *tile == 0).unwrap_or_default();
        }
        let mut back = None;
        for _ in 0..self.settings.scramble {
            let ways: Vec<usize> = (0..4)
                .filter(|way| Some(*way) != back && self.board.source(*way).is_some())
                .collect();
            let way = ways[table.rng.below(ways.len() as u64) as usize];
            self.board.slide(way);
            back = Some(way ^ 1);
        }
        self.initial = self.board.tiles;
        self.way.clear();
        self.way_from = None;
        table.say(
            MessageKind::Prompt,
            format_args!(
                "You are Player 0. You are playing the 15-Puzzle game.\n\
                 The objective of the game is to arrange the numbered tiles in ascending order from 1 to 15, with the \
                 empty space located in the bottom-right corner.\n\
                 To make a move, you can slide a tile into the empty space (represented by a double underscore, e.g. __) \
                 by using one of the following commands:\n\
                 - 'up': Move the tile below the empty space up.\n\
                 - 'down': Move the tile above the empty space down.\n\
                 - 'left': Move the tile to the right of the empty space left.\n\
                 - 'right': Move the tile to the left of the empty space right.\n\
                 To submit your move, type the direction (e.g., 'up', 'down', 'left', or 'right') in square brackets, e.g. [up].\n\
                 The current board layout is shown below. Use the information to solve the puzzle.\n"
            ),
        );
        self.observe(table);
    }

    fn act(&mut self, table: &mut Table, action: &str) {
        match first(action, word) {
            None => table.invalid_alone(
                || self.completion(),
                format_args!(
                    "Invalid move format. Player 0 did not respond with a valid direction in square brackets."
                ),
            ),
            Some(direction) => {
                let way = MOVES.iter().position(|name| *name == direction);
                if way.is_some_and(|way| self.board.slide(way)) {
                    table.say_with(MessageKind::Board, |text| {
                        text.add("Game Board:\n").add(&self.board.drawn()[..]);
                    });
                } else {
                    table.invalid_alone(
                        || self.completion(),
                        format_args!(
                            "Invalid move. The tile cannot be moved in the specified direction."
                        ),
                    );
                }
            }
        }
        if self.board == Board::GOAL {
            let reason = "Congratulations! Player 0 have successfully solved the 15-Puzzle.";
            table.set_outcome(1.0, true, reason);
        } else if table.is_out_of_turns() {
            let reward = self.completion();
            let reason = format!(
                "The turn limit has been reached. The model completed {} percent of the puzzle",
                repr_float(reward * 100.0)
            );
            table.set_outcome(reward, false, reason);
        }
        self.observe(table);
        table.end_move(false);
    }

    fn legal(&self, _: &Table) -> Option<Vec<String>> {
        let legal = (0..4).filter(|way| self.board.source(*way).is_some());
        Some(legal.map(|way| format!("[{}]", MOVES[way])).collect())
    }

    fn expert(&mut self, _: &Table, _: f64) -> Option<String> {
        if self.way_from != Some(self.board) {
            self.way = self.search()?;
            self.way_from = Some(self.board);
        }
        let way = usize::from(self.way.pop()?);
        let mut next = self.board;
        next.slide(way);
        self.way_from = Some(next);
        Some(format!("[{}]", MOVES[way]))
    }

    fn copy(&self) -> Box<dyn Rules> {
        Box::new(self.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_are_as_short_as_a_breadth_first_search_finds() {
        let mut distances = std::collections::HashMap::from([(Board::GOAL.tiles, 0_usize)]);
        let mut boards = std::collections::VecDeque::from([Board::GOAL]);
        while let Some(board) = boards.pop_front() {
            let distance = distances[&board.tiles];
            if distance == 12 {
                continue;
            }
            for way in 0..4 {
                let mut next = board;
                if next.slide(way) && !distances.contains_key(&next.tiles) {
                    distances.insert(next.tiles, distance + 1);
                    boards.push_back(next);
                }
            }
        }
        let settings = Settings::default();
        for (number, (tiles, distance)) in distances.into_iter().enumerate() {
            if number % 40 == 0 {
                let empty = tiles.iter().position(|tile| *tile == 0).unwrap();
                let board = Board { tiles, empty };
                assert!(board.is_solvable() && board.bound() as usize <= distance);
                let puzzle = FifteenPuzzle {
                    settings: settings.clone(),
                    board,
                    initial: tiles,
                    way: Vec::new(),
                    way_from: None,
                };
                assert_eq!(puzzle.search().unwrap().len(), distance);
            }
        }
    }

    #[test]
    fn two_tiles_exchanged_cannot_be_solved() {
        let mut board = Board::GOAL;
        board.tiles.swap(0, 1);
        assert!(!board.is_solvable());
    }
}
