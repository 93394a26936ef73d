//! 2048: slide equal tiles together.
//!
//! Messages are those of TextArena 0.7.4 (MIT), word for word.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::Value;
use spar_python::Random;

use crate::GameError;
use crate::game::{Rules, check_range, read_settings};
use crate::scan::is_word_character;
use crate::table::{MessageKind, Table};
use crate::text::AddPiece;

const NAME: &str = "game-2048";
const MAX_SIZE: usize = 10;
const CELLS: usize = MAX_SIZE * MAX_SIZE;
const WAYS: [&str; 4] = ["Up", "Down", "Left", "Right"];
/// The letters that name them too.
const LETTERS: [&str; 4] = ["W", "S", "A", "D"];
/// Tiles as they are shown, by their power of two: six characters wide.
const TILES: [&str; 18] = [
    "  .   ", "  2   ", "  4   ", "  8   ", "  16  ", "  32  ", "  64  ", " 128  ", " 256  ",
    " 512  ", " 1024 ", " 2048 ", " 4096 ", " 8192 ", "16384 ", "32768 ", "65536 ", "131072",
];

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Settings {
    target_tile: u32,
    board_size: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self { target_tile: 2048, board_size: 4 }
    }
}

/// Tiles as powers of two, row by row; 0 is empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Board {
    size: usize,
    cells: [u8; CELLS],
}

impl Board {
    fn cells(&self) -> &[u8] {
        &self.cells[..self.size * self.size]
    }

    /// The cell of a line, counted from the side towards which tiles slide.
    fn place(&self, way: usize, line: usize, at: usize) -> usize {
        let (size, back) = (self.size, self.size - 1 - at);
        match way {
            0 => at * size + line,
            1 => back * size + line,
            2 => line * size + at,
            _ => line * size + back,
        }
    }

    /// Slides all tiles; whether anything moved, and what was gained.
    fn slide(&mut self, way: usize) -> (bool, u64) {
        let size = self.size;
        let (mut has_moved, mut gained) = (false, 0);
        for line in 0..size {
            let mut merged = [0_u8; MAX_SIZE];
            // Where the next tile goes, and whether the one before may still take it in.
            let (mut len, mut is_open) = (0, false);
            for at in 0..size {
                let tile = self.cells[self.place(way, line, at)];
                if tile == 0 {
                    continue;
                }
                if is_open && merged[len - 1] == tile {
                    merged[len - 1] += 1;
                    gained += 1 << merged[len - 1];
                    is_open = false;
                } else {
                    merged[len] = tile;
                    len += 1;
                    is_open = true;
                }
            }
            for (at, tile) in merged[..size].iter().enumerate() {
                let place = self.place(way, line, at);
                has_moved |= self.cells[place] != *tile;
                self.cells[place] = *tile;
            }
        }
        (has_moved, gained)
    }

    fn largest(&self) -> u8 {
        self.cells().iter().copied().max().unwrap_or_default()
    }

    fn can_move(&self) -> bool {
        let size = self.size;
        self.cells().iter().enumerate().any(|(at, tile)| {
            let right = at % size + 1 < size && self.cells[at + 1] == *tile;
            let below = at + size < size * size && self.cells[at + size] == *tile;
            *tile == 0 || right || below
        })
    }

    fn spawn(&mut self, rng: &mut Random) {
        let empty = self.cells().iter().filter(|tile| **tile == 0).count();
        if empty == 0 {
            return;
        }
        let chosen = rng.below(empty as u64) as usize;
        let mut places = (0..self.size * self.size).filter(|at| self.cells[*at] == 0);
        let place = places.nth(chosen).expect("one of the empty cells");
        self.cells[place] = if rng.random() < 0.1 { 2 } else { 1 };
    }

    /// How good a board is, for the solver: room, order along the edges, equal neighbours, and large tiles.
    fn worth(&self) -> f64 {
        let size = self.size;
        let tile = |row: usize, column: usize| f64::from(self.cells[row * size + column]);
        let mut worth = 0.0;
        for row in 0..size {
            for column in 0..size {
                let own = tile(row, column);
                worth += if own == 0.0 { 2.7 } else { own * own * 0.02 };
                for (other_row, other_column) in [(row, column + 1), (row + 1, column)] {
                    if other_row < size && other_column < size {
                        worth -= (own - tile(other_row, other_column)).abs() * 0.6;
                    }
                }
                // A snake of falling weights from one corner on.
                let along = if row % 2 == 0 { column } else { size - 1 - column };
                worth += own * 0.6_f64.powi((row * size + along) as i32) * 4.0;
            }
        }
        worth
    }
}

#[derive(Debug, Clone)]
struct Game2048 {
    settings: Settings,
    board: Board,
    score: u64,
}

pub(crate) fn open(settings: &Value) -> Result<Box<dyn Rules>, GameError> {
    let settings: Settings = read_settings(NAME, settings)?;
    check_range(NAME, ("board_size", settings.board_size), 2..=MAX_SIZE)?;
    check_range(NAME, ("target_tile", settings.target_tile), 8..=131_072)?;
    if !settings.target_tile.is_power_of_two() {
        let found = settings.target_tile;
        let detail =
            format!("`target_tile` is {found}, allowed are powers of two from 8 to 131072");
        return Err(GameError::Settings { game: NAME, detail });
    }
    let board = Board { size: settings.board_size, cells: [0; CELLS] };
    Ok(Box::new(Game2048 { settings, board, score: 0 }))
}

/// The direction that an action names: in the last group of brackets that has one, the last.
fn direction(action: &str) -> Option<usize> {
    let mut found = None;
    let mut open = None;
    for (at, character) in action.char_indices() {
        match character {
            '[' => open = Some(at + 1),
            ']' => {
                if let Some(start) = open.take()
                    && let Some(way) = direction_within(&action[start..at])
                {
                    found = Some(way);
                }
            }
            _ => {}
        }
    }
    found
}

fn direction_within(inner: &str) -> Option<usize> {
    let words = inner.split(|character| !is_word_character(character));
    // Longer ones are no direction in any case: upper case has at most three characters for one.
    let words = words.filter(|word| (1..=20).contains(&word.len()));
    let mut found = None;
    for word in words {
        // Some letters that are none of ASCII have one of it in upper case.
        let word = match word.is_ascii() {
            true => Cow::Borrowed(word),
            false => Cow::Owned(word.to_uppercase()),
        };
        let is_like = |name: &str| word.eq_ignore_ascii_case(name);
        let way = (0..4).find(|way| is_like(WAYS[*way]) || is_like(LETTERS[*way]));
        found = way.or(found);
    }
    found
}

impl Game2048 {
    fn target(&self) -> u8 {
        self.settings.target_tile.trailing_zeros() as u8
    }

    fn completion(&self) -> f64 {
        let target = self.settings.target_tile;
        if self.board.largest() >= self.target() {
            return 1.0;
        }
        // Sum of what the merges give that lead to the target: 4 + 8 + .. + target.
        let least = f64::from(2 * target - 4) * 1.5;
        let largest = 1_u32 << self.board.largest();
        let reward =
            0.5 * (self.score as f64 / least) + 0.5 * (f64::from(largest) / f64::from(target));
        reward.min(1.0)
    }

    fn observe(&self, table: &mut Table) {
        let size = self.board.size;
        let horizontal = size * 7 - 1;
        table.say_with(MessageKind::Board, |text| {
            let border = &[b'-'; 7 * MAX_SIZE][..horizontal];
            text.add("Score: ").add(self.score).add("\n+").add(border).add("+\n");
            for row in self.board.cells().chunks(size) {
                text.push('|');
                for (column, tile) in row.iter().enumerate() {
                    text.add(if column == 0 { "" } else { " " }).add(TILES[usize::from(*tile)]);
                }
                text.add("|\n");
            }
            text.add('+').add(border).add('+');
        });
    }

    /// What a board is worth before a tile is drawn, by expectimax: the mean over tiles of what the best move brings.
    fn expected(&self, board: &Board, depth: u32) -> f64 {
        if depth == 0 || board.largest() >= self.target() {
            return board.worth() + if board.largest() >= self.target() { 1e6 } else { 0.0 };
        }
        let empty: Vec<usize> =
            (0..board.cells().len()).filter(|at| board.cells[*at] == 0).collect();
        // Of many cells every so-and-so-many-th stands for its neighbours.
        let stride = empty.len().div_ceil(6).max(1);
        let (mut sum, mut weight) = (0.0, 0.0);
        for place in empty.iter().step_by(stride) {
            for (tile, share) in [(1, 0.9), (2, 0.1)] {
                let mut next = *board;
                next.cells[*place] = tile;
                let best = self.best(&next, depth).map_or(-1e4, |(_, worth)| worth);
                sum += share * best;
                weight += share;
            }
        }
        if weight == 0.0 { board.worth() } else { sum / weight }
    }

    /// The best move with its worth.
    fn best(&self, board: &Board, depth: u32) -> Option<(usize, f64)> {
        let mut best: Option<(usize, f64)> = None;
        for way in 0..4 {
            let mut next = *board;
            if next.slide(way).0 {
                let worth = self.expected(&next, depth - 1);
                if best.is_none_or(|(_, other)| worth > other) {
                    best = Some((way, worth));
                }
            }
        }
        best
    }
}

impl Rules for Game2048 {
    fn begin(&mut self, table: &mut Table) {
        let size = self.settings.board_size;
        self.board = Board { size, cells: [0; CELLS] };
        self.board.spawn(&mut table.rng);
        self.board.spawn(&mut table.rng);
        self.score = 0;
        table.say(
            MessageKind::Prompt,
            format_args!(
                "You are playing 2048 on a {size}x{size} board. Your goal is to reach a {} tile by sliding identical \
                 numbers together!\n\
                 Valid moves: [Up], [Down], [Left], [Right]. Tiles combine when they collide, doubling their value.\n",
                self.settings.target_tile
            ),
        );
        self.observe(table);
    }

    fn act(&mut self, table: &mut Table, action: &str) {
        let Some(way) = direction(action) else {
            table.invalid_alone(
                || self.completion(),
                format_args!("Invalid action. Use '[Up]'/'[Down]'/'[Left]'/'[Right]'."),
            );
            return table.end_move(false);
        };
        let (has_moved, gained) = self.board.slide(way);
        if !has_moved {
            table.invalid_alone(
                || self.completion(),
                format_args!("Board did not change - choose a different direction."),
            );
            return table.end_move(false);
        }
        self.score += gained;
        self.board.spawn(&mut table.rng);
        let (score, target) = (self.score, self.settings.target_tile);
        if self.board.largest() >= self.target() {
            let reason = format!("Congratulations, you reached {target}! Final score {score}.");
            table.set_outcome(1.0, true, reason);
        } else if !self.board.can_move() {
            let largest = 1_u32 << self.board.largest();
            let reason = format!("No moves left. Max tile {largest} - final score {score}.");
            table.set_outcome(self.completion(), false, reason);
        } else {
            self.observe(table);
        }
        table.end_move(false);
    }

    fn legal(&self, _: &Table) -> Option<Vec<String>> {
        let legal = (0..4).filter(|way| {
            let mut next = self.board;
            next.slide(*way).0
        });
        Some(legal.map(|way| format!("[{}]", WAYS[way])).collect())
    }

    fn expert(&mut self, _: &Table, _: f64) -> Option<String> {
        let empty = self.board.cells().iter().filter(|tile| **tile == 0).count();
        let depth = if empty > 2 || self.board.size > 4 { 2 } else { 3 };
        self.best(&self.board, depth).map(|(way, _)| format!("[{}]", WAYS[way]))
    }

    fn copy(&self) -> Box<dyn Rules> {
        Box::new(self.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tile_merges_once_in_a_move() {
        let mut board = Board { size: 4, cells: [0; CELLS] };
        board.cells[..4].copy_from_slice(&[1, 1, 1, 1]);
        assert_eq!(board.slide(2), (true, 8));
        assert_eq!(&board.cells[..4], &[2, 2, 0, 0]);
        assert_eq!(board.slide(3), (true, 8));
        assert_eq!(&board.cells[..4], &[0, 0, 0, 3]);
        assert_eq!(board.slide(3), (false, 0));
    }

    #[test]
    fn the_last_direction_of_the_last_group_counts() {
        assert_eq!(direction("[up] or [left, then down] [x]"), Some(1));
        assert_eq!(direction("[[w]"), Some(0));
        assert_eq!(direction("up [ ] ]"), None);
        assert_eq!(direction("[\u{17f}]"), Some(1), "in upper case it is an S");
    }
}
