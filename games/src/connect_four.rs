//! Connect four: drop disks, four in a line win.
//!
//! Messages are those of TextArena 0.7.4 (MIT), word for word.

use serde::Deserialize;
use serde_json::Value;

use crate::GameError;
use crate::game::{Rules, check_range, read_settings};
use crate::scan::{Cursor, last_of_first_line, printed, value};
use crate::table::{MessageKind, Seating, Table};
use crate::text::AddPiece;

const NAME: &str = "connect-four";
/// The most rows, and the most columns.
const MAX_SIZE: usize = 20;
const DISKS: [char; 2] = ['X', 'O'];
const LINES: [(isize, isize); 4] = [(0, 1), (1, 0), (1, 1), (1, -1)];

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Settings {
    is_open: bool,
    num_rows: usize,
    num_cols: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self { is_open: true, num_rows: 6, num_cols: 7 }
    }
}

#[derive(Debug, Clone)]
struct Board {
    rows: usize,
    columns: usize,
    /// 0 for nobody, else a player and one; row by row from the top.
    cells: Vec<u8>,
}

impl Board {
    /// The lowest free row of a column.
    fn free_row(&self, column: usize) -> Option<usize> {
        (0..self.rows).rev().find(|row| self.cells[row * self.columns + column] == 0)
    }

    /// How many disks of a cell's owner stand in a line through it.
    fn longest(&self, row: usize, column: usize) -> usize {
        let own = self.cells[row * self.columns + column];
        let run = |down: isize, right: isize| {
            (1..)
                .take_while(|step| {
                    let row = row as isize + down * step;
                    let column = column as isize + right * step;
                    (0..self.rows as isize).contains(&row)
                        && (0..self.columns as isize).contains(&column)
                        && self.cells[row as usize * self.columns + column as usize] == own
                })
                .count()
        };
        let lines = LINES.iter().map(|(down, right)| 1 + run(*down, *right) + run(-down, -right));
        lines.max().unwrap_or(1)
    }

    fn is_full(&self) -> bool {
        self.cells[..self.columns].iter().all(|cell| *cell != 0)
    }

    /// Columns from the middle outwards.
    fn columns_by_worth(&self) -> impl Iterator<Item = usize> + use<> {
        let (middle, count) = (self.columns / 2, self.columns);
        (0..=count)
            .flat_map(move |offset| {
                let left = middle.checked_sub(offset);
                let right = (offset > 0).then_some(middle + offset);
                [left, right].into_iter().flatten()
            })
            .filter(move |column| *column < count)
    }

    /// Lines of four that are still open to a player, by the disks that it has in them.
    fn worth(&self, player: u8) -> i32 {
        let mut worth = 0;
        for row in 0..self.rows as isize {
            for column in 0..self.columns as isize {
                for (down, right) in LINES {
                    let (end_row, end_column) = (row + 3 * down, column + 3 * right);
                    if end_row >= self.rows as isize
                        || !(0..self.columns as isize).contains(&end_column)
                    {
                        continue;
                    }
                    let mut counts = [0_i32; 3];
                    for step in 0..4 {
                        let at =
                            (row + step * down) * self.columns as isize + column + step * right;
                        counts[usize::from(self.cells[at as usize])] += 1;
                    }
                    let (own, other) =
                        (counts[usize::from(player)], counts[usize::from(3 - player)]);
                    if other == 0 {
                        worth += own * own;
                    } else if own == 0 {
                        worth -= other * other;
                    }
                }
            }
        }
        worth
    }

    /// The worth of a position for who is to move, by alpha-beta search (Knuth and Moore, 1975).
    fn search(&mut self, player: u8, depth: u32, mut alpha: i32, beta: i32) -> i32 {
        if self.is_full() {
            return 0;
        }
        if depth == 0 {
            return self.worth(player);
        }
        for column in self.columns_by_worth() {
            let Some(row) = self.free_row(column) else { continue };
            let worth = self.dropped(row, column, player, depth, -beta, -alpha);
            if worth > alpha {
                alpha = worth;
                if alpha >= beta {
                    break;
                }
            }
        }
        alpha
    }

    fn dropped(
        &mut self,
        row: usize,
        column: usize,
        player: u8,
        depth: u32,
        alpha: i32,
        beta: i32,
    ) -> i32 {
        let at = row * self.columns + column;
        self.cells[at] = player;
        let worth = match self.longest(row, column) >= 4 {
            // Sooner is better.
            true => 100_000 + depth as i32,
            false => -self.search(3 - player, depth - 1, alpha, beta),
        };
        self.cells[at] = 0;
        worth
    }

    fn best(&self, player: u8, depth: u32) -> Option<usize> {
        let mut board = self.clone();
        let (mut best, mut alpha) = (None, -1_000_000);
        for column in self.columns_by_worth() {
            let Some(row) = self.free_row(column) else { continue };
            let worth = board.dropped(row, column, player, depth, -1_000_000, -alpha);
            if best.is_none() || worth > alpha {
                (best, alpha) = (Some(column), worth);
            }
        }
        best
    }
}

#[derive(Debug, Clone)]
struct ConnectFour {
    is_open: bool,
    board: Board,
}

pub(crate) fn open(settings: &Value) -> Result<Box<dyn Rules>, GameError> {
    let Settings { is_open, num_rows, num_cols } = read_settings(NAME, settings)?;
    check_range(NAME, ("num_rows", num_rows), 4..=MAX_SIZE)?;
    check_range(NAME, ("num_cols", num_cols), 4..=MAX_SIZE)?;
    let cells = vec![0; num_rows * num_cols];
    Ok(Box::new(ConnectFour { is_open, board: Board { rows: num_rows, columns: num_cols, cells } }))
}

/// What `\[(?:col\s*)?(\d+)\]` with `IGNORECASE` takes.
fn column<'t>(cursor: &mut Cursor<'t>) -> Option<&'t str> {
    if cursor.word("col") {
        cursor.spaces();
    }
    let digits = cursor.digits()?;
    cursor.take(']').then_some(digits)
}

impl ConnectFour {
    fn tell_board(&self, table: &mut Table) {
        table.say_with(MessageKind::Board, |text| {
            let columns = self.board.columns;
            text.push_str("Board state:\n");
            for column in 0..columns {
                text.add(if column == 0 { "" } else { " " }).add(column);
            }
            text.add('\n').add(&[b'-'; 2 * MAX_SIZE][..columns * 2 - 1]);
            // A line of the board: its end, and the cells with a space between them.
            let mut line = [b' '; 2 * MAX_SIZE];
            line[0] = b'\n';
            for row in self.board.cells.chunks(columns) {
                for (at, cell) in row.iter().enumerate() {
                    line[2 * at + 1] = b".XO"[usize::from(*cell)];
                }
                text.add(&line[..columns * 2]);
            }
        });
    }

    fn depth(&self, more: u32) -> u32 {
        if self.board.cells.len() <= 42 { 2 + more } else { 2 }
    }
}

impl Rules for ConnectFour {
    fn seating(&self) -> Seating {
        Seating::Duel
    }

    fn num_players(&self) -> usize {
        2
    }

    fn begin(&mut self, table: &mut Table) {
        self.board.cells.fill(0);
        let Board { rows, columns, .. } = self.board;
        for (player, disk) in DISKS.iter().enumerate() {
            table.say_to(
                Some(player),
                MessageKind::Prompt,
                format_args!(
                    "You are Player {player} in Connect Four.\nYour disc symbol: {disk}.\n\
                     The game board has {rows} rows and {columns} columns.\n\
                     Players take turns dropping their disc into one of the columns (0 to {}).\n\
                     The first to connect (their own) four discs vertically, horizontally, or diagonally wins.\n\
                     On your turn, enter the column number in squared brackets to make your move.\n\
                     For example: '[col 4]' or '[col 1]'.",
                    columns - 1
                ),
            );
        }
        match self.is_open {
            true => self.tell_board(table),
            false => {
                let said = format_args!("The game board is not visible to players.");
                table.say(MessageKind::Board, said);
            }
        }
    }

    fn act(&mut self, table: &mut Table, action: &str) {
        let player = table.current;
        table.pass_on(player, None, action);
        let columns = self.board.columns;
        let Some(digits) = last_of_first_line(action, column) else {
            table.invalid(format_args!(
                "Player {player}, Invalid action format. Expected format: '[col x]'."
            ));
            return table.end_move(true);
        };
        let column = usize::try_from(value(digits)).ok().filter(|column| *column < columns);
        let row = column.and_then(|column| self.board.free_row(column));
        match (column, row) {
            (Some(column), Some(row)) => {
                let disk = DISKS[player];
                table.say_with(MessageKind::Description, |text| {
                    text.add("Player ").add(player).add(" dropped their disk (").add(disk);
                    text.add(") into column ").add(column).add('.');
                });
                self.board.cells[row * columns + column] = player as u8 + 1;
                if self.board.longest(row, column) >= 4 {
                    let reason = format!("Player {player} wins by connecting four!");
                    table.set_winners(|other| other == player, reason);
                } else if self.board.is_full() {
                    table.set_draw("Game ended in a draw.");
                } else if self.is_open {
                    self.tell_board(table);
                }
            }
            (column, _) => {
                let named = printed(digits);
                let why = if column.is_some() { "full" } else { "out of bounds" };
                table.invalid(format_args!(
                    "Player {player}, Invalid action. Column {named} is {why}."
                ));
            }
        }
        table.end_move(true);
    }

    fn legal(&self, _: &Table) -> Option<Vec<String>> {
        let free = (0..self.board.columns).filter(|column| self.board.cells[*column] == 0);
        Some(free.map(|column| format!("[col {column}]")).collect())
    }

    /// Alpha-beta search, two moves ahead.
    fn expert(&mut self, table: &Table, _: f64) -> Option<String> {
        let best = self.board.best(table.current as u8 + 1, self.depth(0))?;
        Some(format!("[col {best}]"))
    }

    /// The same, four moves ahead.
    fn oracle(&mut self, table: &Table) -> Option<String> {
        let best = self.board.best(table.current as u8 + 1, self.depth(2))?;
        Some(format!("[col {best}]"))
    }

    fn judge(&self, _: &Table, player: usize) -> f64 {
        f64::from(self.board.worth(player as u8 + 1)) / 200.0
    }

    fn key(&self, table: &Table) -> Option<u128> {
        // Two bits a cell, where they fit beside who is to move.
        if self.board.cells.len() > 63 {
            return None;
        }
        let cells = self.board.cells.iter().fold(0_u128, |key, cell| key << 2 | u128::from(*cell));
        Some(cells << 1 | table.current as u128)
    }

    fn copy(&self) -> Box<dyn Rules> {
        Box::new(self.clone())
    }
}
