//! Minesweeper: reveal all cells that hold no mine.
//!
//! Messages are those of TextArena 0.7.4 (MIT), word for word.

mod solver;

use std::collections::VecDeque;
use std::fmt::Write as _;

use serde::Deserialize;
use serde_json::Value;

use crate::GameError;
use crate::game::{Rules, check_range, read_settings};
use crate::scan::{Cursor, first, value};
use crate::table::{MessageKind, Table};

const NAME: &str = "minesweeper";
const MAX_SIDE: usize = 30;
/// The most cells of which all hidden ones are listed.
const MAX_LISTED: usize = 144;
const MINE: i8 = -1;

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Settings {
    rows: usize,
    cols: usize,
    num_mines: usize,
    max_turns: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Self { rows: 8, cols: 8, num_mines: 10, max_turns: 100 }
    }
}

#[derive(Debug, Clone)]
struct Minesweeper {
    settings: Settings,
    grid: Vec<i8>,
    revealed: Vec<bool>,
    /// Where the first move was made.
    initial: Option<usize>,
    /// Mines that were hit, which the player was told of.
    hit: Vec<usize>,
}

pub(crate) fn open(settings: &Value) -> Result<Box<dyn Rules>, GameError> {
    let settings: Settings = read_settings(NAME, settings)?;
    check_range(NAME, ("rows", settings.rows), 4..=MAX_SIDE)?;
    check_range(NAME, ("cols", settings.cols), 4..=MAX_SIDE)?;
    // The first move and its neighbours hold none.
    let cells = settings.rows * settings.cols;
    check_range(NAME, ("num_mines", settings.num_mines), 1..=cells - 9)?;
    check_range(NAME, ("max_turns", settings.max_turns), 1..=10_000)?;
    let (grid, revealed) = (vec![0; cells], vec![false; cells]);
    Ok(Box::new(Minesweeper { settings, grid, revealed, initial: None, hit: Vec::new() }))
}

/// What `\[(\d+)\s(\d+)\]` takes.
fn place<'t>(cursor: &mut Cursor<'t>) -> Option<(&'t str, &'t str)> {
    let row = cursor.digits()?;
    let column = if cursor.space() { cursor.digits()? } else { return None };
    cursor.take(']').then_some((row, column))
}

/// The cells around a cell, row by row.
fn around(rows: usize, cols: usize, cell: usize) -> impl Iterator<Item = usize> {
    let (row, column) = (cell / cols, cell % cols);
    let rows = row.saturating_sub(1)..=(row + 1).min(rows - 1);
    rows.flat_map(move |other_row| {
        let columns = column.saturating_sub(1)..=(column + 1).min(cols - 1);
        columns.map(move |other_column| other_row * cols + other_column)
    })
    .filter(move |other| *other != cell)
}

impl Minesweeper {
    fn around(&self, cell: usize) -> impl Iterator<Item = usize> + use<> {
        around(self.settings.rows, self.settings.cols, cell)
    }

    fn lay_mines(&mut self, table: &mut Table, safe: usize) {
        let Settings { rows, cols, num_mines, .. } = self.settings;
        let (safe_row, safe_column) = (safe / cols, safe % cols);
        let mut laid = 0;
        while laid < num_mines {
            let row = table.rng.below(rows as u64) as usize;
            let column = table.rng.below(cols as u64) as usize;
            let is_near = row.abs_diff(safe_row) <= 1 && column.abs_diff(safe_column) <= 1;
            let cell = &mut self.grid[row * cols + column];
            if !is_near && *cell != MINE {
                *cell = MINE;
                laid += 1;
            }
        }
        for cell in 0..rows * cols {
            if self.grid[cell] != MINE {
                let mines = self.around(cell).filter(|other| self.grid[*other] == MINE).count();
                self.grid[cell] = mines as i8;
            }
        }
    }

    /// Reveals a cell and, from cells without neighbouring mines on, what is around them.
    fn flood(&self, start: usize, revealed: &mut [bool]) {
        let mut open = VecDeque::from([start]);
        revealed[start] = true;
        while let Some(cell) = open.pop_front() {
            if self.grid[cell] == 0 {
                for other in self.around(cell) {
                    if !revealed[other] {
                        revealed[other] = true;
                        open.push_back(other);
                    }
                }
            }
        }
    }

    /// The share of the safe cells that the first move has not revealed which are revealed by now.
    fn completion(&self) -> f64 {
        let Some(initial) = self.initial else { return 0.0 };
        let mut at_first = vec![false; self.grid.len()];
        self.flood(initial, &mut at_first);
        let (mut safe, mut found) = (0_u32, 0_u32);
        for (cell, mines) in self.grid.iter().enumerate() {
            if *mines != MINE && !at_first[cell] {
                safe += 1;
                found += u32::from(self.revealed[cell]);
            }
        }
        if safe == 0 { 1.0 } else { f64::from(found) / f64::from(safe) }
    }

    fn is_cleared(&self) -> bool {
        self.grid.iter().zip(&self.revealed).all(|(mines, revealed)| *revealed || *mines == MINE)
    }

    fn tell_board(&self, table: &mut Table, head: &str) {
        let Settings { rows, cols, .. } = self.settings;
        table.say_with(MessageKind::Board, |text| {
            text.push_str(head);
            text.push_str("\n\n   ");
            for column in 0..cols {
                let between = if column == 0 { "" } else { " " };
                let _ = write!(text, "{between}{column:>2}");
            }
            text.push('\n');
            for row in 0..rows {
                let _ = write!(text, "{row:2} ");
                for cell in row * cols..(row + 1) * cols {
                    let shown = match (self.revealed[cell], self.grid[cell]) {
                        (false, _) => '.',
                        (true, MINE) => '*',
                        (true, mines) => char::from(b'0' + mines as u8),
                    };
                    text.push(' ');
                    text.push(shown);
                    text.push(' ');
                }
                text.push('\n');
            }
        });
    }

    fn reveal(&mut self, table: &mut Table, cell: usize) {
        let (row, column) = (cell / self.settings.cols, cell % self.settings.cols);
        if self.initial.is_none() {
            self.lay_mines(table, cell);
            self.initial = Some(cell);
        }
        if self.grid[cell] == MINE {
            self.hit.push(cell);
            table.invalid_alone(
                || self.completion(),
                format_args!("You hit a mine at ({row}, {column})."),
            );
            // The move was made, whatever the package calls it.
            table.excuse();
        } else {
            let mut revealed = std::mem::take(&mut self.revealed);
            self.flood(cell, &mut revealed);
            self.revealed = revealed;
        }
        table.say(
            MessageKind::Description,
            format_args!("You revealed the cell at ({row}, {column})."),
        );
    }
}

impl Rules for Minesweeper {
    fn max_turns(&self) -> Option<u32> {
        Some(self.settings.max_turns)
    }

    fn begin(&mut self, table: &mut Table) {
        self.grid.fill(0);
        self.revealed.fill(false);
        self.initial = None;
        self.hit.clear();
        table.say(
            MessageKind::Prompt,
            format_args!(
                "You are playing the Minesweeper game.\n\
                 The objective of the game is to reveal all cells that do not contain mines.\n\
                 To make a move, simply specify the row and column coordinates you want to reveal using the format:\n\
                 - `[row col]`: Reveal the cell at the specified row and column.\n\
                 For example:\n\
                 - `[3 2]` to reveal the cell in Row 3, Column 2.\n\
                 - `[5 6]` to reveal the cell in Row 5, Column 6.\n\
                 On your first move, you will reveal an area around the cell you choose to ensure a safe start.\n\
                 The current board layout is shown below. Cells that are unrevealed are represented by a dot ('.'), \
                 revealed numbers show the count of adjacent mines.\n\
                 Be mindful not to choose already revealed cells.\n\
                 Here is the current board layout:\n"
            ),
        );
        self.tell_board(table, "Game Board:");
    }

    fn act(&mut self, table: &mut Table, action: &str) {
        let Settings { rows, cols, .. } = self.settings;
        match first(action, place) {
            None => table.invalid_alone(
                || self.completion(),
                format_args!("You did not respond with valid coordinates in square brackets."),
            ),
            Some((row, column)) => {
                let (row, column) = (value(row), value(column));
                if row >= rows as u64 || column >= cols as u64 {
                    table.invalid_alone(
                        || self.completion(),
                        format_args!("The specified row and column coordinates are out of bounds."),
                    );
                } else {
                    let cell = row as usize * cols + column as usize;
                    if self.revealed[cell] {
                        table.invalid_alone(
                            || self.completion(),
                            format_args!(
                                "The cell at ({row}, {column}) has already been revealed."
                            ),
                        );
                    } else {
                        self.reveal(table, cell);
                    }
                }
            }
        }
        if self.is_cleared() && self.initial.is_some() {
            let reason = "Congratulations! You have successfully cleared the Minesweeper board.";
            table.set_outcome(1.0, true, reason);
        } else if table.is_out_of_turns() {
            let reward = self.completion();
            let percent = (reward * 100.0).round_ties_even();
            let reason = format!(
                "The turn limit has been reached. You successfully uncovered {percent}% of the safe cells."
            );
            table.set_outcome(reward, false, reason);
        }
        self.tell_board(table, "Current Board:");
        table.end_move(false);
    }

    fn legal(&self, _: &Table) -> Option<Vec<String>> {
        if self.grid.len() > MAX_LISTED {
            return None;
        }
        let cols = self.settings.cols;
        let hidden = (0..self.grid.len()).filter(|cell| !self.revealed[*cell]);
        // A mine that was hit is known to end the game.
        let open = hidden.filter(|cell| !self.hit.contains(cell));
        Some(open.map(|cell| format!("[{} {}]", cell / cols, cell % cols)).collect())
    }

    fn expert(&mut self, _: &Table, _: f64) -> Option<String> {
        let Settings { rows, cols, num_mines, .. } = self.settings;
        let cell = match self.initial {
            None => rows / 2 * cols + cols / 2,
            Some(_) => {
                let shown: Vec<Option<u8>> = (self.grid.iter().zip(&self.revealed))
                    .map(|(mines, revealed)| revealed.then_some(*mines as u8))
                    .collect();
                solver::safest(rows, cols, num_mines, &shown, &self.hit)?
            }
        };
        Some(format!("[{} {}]", cell / cols, cell % cols))
    }

    fn oracle(&mut self, table: &Table) -> Option<String> {
        if self.initial.is_none() {
            return self.expert(table, 0.5);
        }
        let cols = self.settings.cols;
        let mut open = (0..self.grid.len()).filter(|cell| !self.revealed[*cell]);
        let cell = open.find(|cell| self.grid[*cell] != MINE)?;
        Some(format!("[{} {}]", cell / cols, cell % cols))
    }

    fn copy(&self) -> Box<dyn Rules> {
        Box::new(self.clone())
    }
}
