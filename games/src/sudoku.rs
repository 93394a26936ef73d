//! Sudoku: fill a grid so that every row, column and box has each digit once.
//!
//! Messages are those of TextArena 0.7.4 (MIT), word for word.

use serde::Deserialize;
use serde_json::Value;
use spar_python::Random;

use crate::GameError;
use crate::game::{Rules, check_range, read_settings};
use crate::scan::{Cursor, first, printed, value};
use crate::table::{MessageKind, Table};
use crate::text::AddPiece;

const NAME: &str = "sudoku";
/// All nine digits.
const ALL: u16 = 0x1ff;

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Settings {
    clues: usize,
    max_turns: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Self { clues: 60, max_turns: 100 }
    }
}

type Cells = [u8; 81];

#[derive(Debug, Clone)]
struct Sudoku {
    settings: Settings,
    full: Cells,
    clues: Cells,
    board: Cells,
    /// What the solver found for the clues.
    solution: Option<Cells>,
}

pub(crate) fn open(settings: &Value) -> Result<Box<dyn Rules>, GameError> {
    let settings: Settings = read_settings(NAME, settings)?;
    check_range(NAME, ("clues", settings.clues), 20..=80)?;
    check_range(NAME, ("max_turns", settings.max_turns), 1..=10_000)?;
    let empty = [0; 81];
    Ok(Box::new(Sudoku { settings, full: empty, clues: empty, board: empty, solution: None }))
}

/// The digits that rows, columns and boxes have, as bits.
#[derive(Debug, Clone, Copy)]
struct Used {
    rows: [u16; 9],
    columns: [u16; 9],
    boxes: [u16; 9],
}

impl Used {
    fn of(cells: &Cells) -> Self {
        let mut used = Self { rows: [0; 9], columns: [0; 9], boxes: [0; 9] };
        for (at, digit) in cells.iter().enumerate().filter(|(_, digit)| **digit > 0) {
            used.flip(at, 1 << (digit - 1));
        }
        used
    }

    fn flip(&mut self, at: usize, bit: u16) {
        self.rows[at / 9] ^= bit;
        self.columns[at % 9] ^= bit;
        self.boxes[at / 27 * 3 + at % 9 / 3] ^= bit;
    }

    /// The digits that a cell can have.
    fn open(&self, at: usize) -> u16 {
        ALL & !(self.rows[at / 9] | self.columns[at % 9] | self.boxes[at / 27 * 3 + at % 9 / 3])
    }
}

/// Fills a grid cell by cell with digits in an order that is drawn for each.
fn fill(rng: &mut Random, cells: &mut Cells, used: &mut Used, at: usize) -> bool {
    if at == 81 {
        return true;
    }
    let mut digits = [1_u8, 2, 3, 4, 5, 6, 7, 8, 9];
    rng.shuffle(&mut digits);
    for digit in digits {
        let bit = 1 << (digit - 1);
        if used.open(at) & bit != 0 {
            cells[at] = digit;
            used.flip(at, bit);
            if fill(rng, cells, used, at + 1) {
                return true;
            }
            used.flip(at, bit);
            cells[at] = 0;
        }
    }
    false
}

/// Counts solutions up to two, from the cell with the fewest digits on; leaves the last one in `found`.
fn count(cells: &mut Cells, used: &mut Used, found: &mut Cells) -> u32 {
    let open = (0..81).filter(|at| cells[*at] == 0);
    let Some(at) = open.min_by_key(|at| used.open(*at).count_ones()) else {
        *found = *cells;
        return 1;
    };
    let mut digits = used.open(at);
    let mut solutions = 0;
    while digits != 0 && solutions < 2 {
        let bit = digits & digits.wrapping_neg();
        digits ^= bit;
        cells[at] = bit.trailing_zeros() as u8 + 1;
        used.flip(at, bit);
        solutions += count(cells, used, found);
        used.flip(at, bit);
    }
    cells[at] = 0;
    solutions
}

fn solve(cells: &Cells) -> (u32, Cells) {
    let (mut cells, mut found) = (*cells, [0; 81]);
    let mut used = Used::of(&cells);
    (count(&mut cells, &mut used, &mut found), found)
}

/// What `\[(\d+)\s(\d+)\s(\d+)\]` takes.
fn triple<'t>(cursor: &mut Cursor<'t>) -> Option<[&'t str; 3]> {
    let row = cursor.digits()?;
    let column = if cursor.space() { cursor.digits()? } else { return None };
    let number = if cursor.space() { cursor.digits()? } else { return None };
    cursor.take(']').then_some([row, column, number])
}

impl Sudoku {
    fn completion(&self) -> f64 {
        let open = (0..81).filter(|at| self.clues[*at] == 0);
        let (right, all) = open.fold((0_u32, 0_u32), |(right, all), at| {
            (right + u32::from(self.board[at] == self.full[at]), all + 1)
        });
        if all == 0 { 0.0 } else { f64::from(right) / f64::from(all) }
    }

    fn tell_board(&self, table: &mut Table, head: &str) {
        table.say_with(MessageKind::Board, |text| {
            text.add(head).add("   C1 C2 C3   C4 C5 C6   C7 C8 C9  ");
            for (row, cells) in self.board.chunks(9).enumerate() {
                // The end of a line is stripped.
                let mut line = *b"\nR0  .  .  . |  .  .  . |  .  .  .";
                line[2] = b'1' + row as u8;
                for (column, digit) in cells.iter().enumerate().filter(|(_, digit)| **digit > 0) {
                    line[5 + 3 * column + 2 * (column / 3)] = b'0' + digit;
                }
                text.add(&line[..]);
                if row == 2 || row == 5 {
                    text.add("\n   - - - - - - - - - - - - - - - - ");
                }
            }
        });
    }
}

impl Rules for Sudoku {
    fn max_turns(&self) -> Option<u32> {
        Some(self.settings.max_turns)
    }

    fn begin(&mut self, table: &mut Table) {
        self.full = [0; 81];
        let mut used = Used::of(&self.full);
        fill(&mut table.rng, &mut self.full, &mut used, 0);
        self.clues = self.full;
        let mut order: Vec<usize> = (0..81).collect();
        table.rng.shuffle(&mut order);
        while order.len() > self.settings.clues {
            let at = order.pop().expect("more are left than stay");
            let removed = std::mem::take(&mut self.clues[at]);
            if solve(&self.clues).0 != 1 {
                self.clues[at] = removed;
            }
        }
        self.board = self.clues;
        self.solution = None;
        table.say(MessageKind::Prompt, format_args!("{PROMPT}"));
        self.tell_board(table, "Game Board:\n");
    }

    fn act(&mut self, table: &mut Table, action: &str) {
        match first(action, triple) {
            None => table.invalid_alone(
                || self.completion(),
                format_args!(
                    "Invalid move format. Player 0 did not respond with valid 'row column number'."
                ),
            ),
            Some(digits) => {
                let numbers = digits.map(value);
                if numbers.iter().any(|number| !(1..=9).contains(number)) {
                    let [row, column, number] = digits.map(printed);
                    table.invalid_alone(
                        || self.completion(),
                        format_args!(
                            "Invalid move. Player 0 attempted to place {number} at ({row}, {column}), which is out of bounds."
                        ),
                    );
                } else {
                    let [row, column, number] = numbers.map(|number| number as usize);
                    let at = (row - 1) * 9 + column - 1;
                    if self.board[at] != 0 {
                        table.invalid_alone(
                            || self.completion(),
                            format_args!(
                                "Invalid move. Player 0 attempted to overwrite a pre-filled cell ({row}, {column})."
                            ),
                        );
                    } else if usize::from(self.full[at]) == number {
                        self.board[at] = number as u8;
                        self.tell_board(table, "Board state: \n");
                    } else {
                        table.invalid_alone(
                            || self.completion(),
                            format_args!(
                                "Invalid move. Player 0 attempted to place {number} at ({row}, {column}), which violates Sudoku rules."
                            ),
                        );
                    }
                    if self.board == self.full {
                        let reason = "Congratulations! Player 0 completed the Sudoku puzzle.";
                        table.set_outcome(1.0, true, reason);
                    }
                }
            }
        }
        if table.is_out_of_turns() {
            let reward = self.completion();
            let percent = (reward * 100.0).round_ties_even();
            let reason = format!(
                "The turn limit has been reached. You correctly filled {percent}% of the empty cells."
            );
            table.set_outcome(reward, false, reason);
        }
        table.end_move(false);
    }

    fn legal(&self, _: &Table) -> Option<Vec<String>> {
        None
    }

    /// The cell for which the fewest digits are left, with the one that the clues leave it.
    fn expert(&mut self, _: &Table, _: f64) -> Option<String> {
        let solution = *self.solution.get_or_insert_with(|| solve(&self.clues).1);
        let used = Used::of(&self.board);
        let open = (0..81).filter(|at| self.board[*at] == 0);
        let at = open.min_by_key(|at| used.open(*at).count_ones())?;
        Some(format!("[{} {} {}]", at / 9 + 1, at % 9 + 1, solution[at]))
    }

    fn copy(&self) -> Box<dyn Rules> {
        Box::new(self.clone())
    }
}

const PROMPT: &str = "You are Player 0. You are playing Sudoku.\n\
    Here is the current state of the Sudoku grid. Each row is numbered from 1 to 9, and each column is also numbered from 1 to 9.\n\
    Empty cells are represented by '.', and pre-filled cells contain digits from 1 to 9.\n\n\
    Current Sudoku Grid:\n\
    Your objective is to fill the empty cells in the 9x9 grid with digits from 1 to 9 such that:\n\
    1. Each row contains all digits from 1 to 9 without repetition.\n\
    2. Each column contains all digits from 1 to 9 without repetition.\n\
    3. Each of the nine 3x3 subgrids contains all digits from 1 to 9 without repetition.\n\n\
    Rules and Instructions:\n\
    1. **Do not overwrite** the initial numbers provided in the grid.\n\
    2. **Only fill** empty cells represented by '.'.\n\
    3. You may respond in any manner you prefer, but ensure that your response includes the format of '[row column number]'.\n\
    4. **Ensure** that your move does not violate Sudoku rules. Invalid moves will result in penalties.\n\
    Examples:\n\
    - **Valid Move**:\n  \
      - Grid Snippet Before Move:\n  \
      \n  \
      - Move: `[5 3 7]`\n  \
      - Explanation: Placing 7 at row 5, column 3 does not violate any Sudoku rules.\n\n\
    - **Invalid Move** (Overwriting a pre-filled cell):\n  \
      - Grid Snippet Before Move:\n  \
      \n  \
      - Move: `[1 1 9]`\n  \
      - Explanation: Cell (1,1) is already filled with 5. You cannot overwrite it.\n\n\
    - **Invalid Move** (Violating Sudoku rules):\n  \
      - Grid Snippet Before Move:\n  \
      \n  \
      - Move: `[1 3 5]`\n  \
      - Explanation: Placing 5 in row 1, column 3 violates the rule since 5 already exists in row 1.\n\n\
    The history of your moves and thoughts will be appended as you play more rounds. Use the history of your move to improve your decision making by avoiding the moves you have tried. Good luck!\n\n";
