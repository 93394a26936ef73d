//! Noughts and crosses, as TextArena words them: three in a row win.
//!
//! Messages are those of TextArena 0.7.4 (MIT), word for word.

use serde::Deserialize;
use serde_json::Value;

use crate::GameError;
use crate::game::{Rules, read_settings};
use crate::scan::{Cursor, first, printed, value};
use crate::table::{MessageKind, Seating, Table};
use crate::text::AddPiece;

const NAME: &str = "noughts";
const MARKS: [char; 2] = ['O', 'X'];
const ROWS: [[usize; 3]; 8] =
    [[0, 1, 2], [3, 4, 5], [6, 7, 8], [0, 3, 6], [1, 4, 7], [2, 5, 8], [0, 4, 8], [2, 4, 6]];

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Settings {
    opening: u32,
}

#[derive(Debug, Clone)]
struct Noughts {
    settings: Settings,
    cells: [Option<u8>; 9],
}

pub(crate) fn open(settings: &Value) -> Result<Box<dyn Rules>, GameError> {
    let settings: Settings = read_settings(NAME, settings)?;
    crate::game::check_range(NAME, ("opening", settings.opening), 0..=4)?;
    Ok(Box::new(Noughts { settings, cells: [None; 9] }))
}

/// What `\[\s*(\d+)\s*\]` takes.
fn cell<'t>(cursor: &mut Cursor<'t>) -> Option<&'t str> {
    cursor.spaces();
    let digits = cursor.digits()?;
    cursor.spaces();
    cursor.take(']').then_some(digits)
}

fn has_won(cells: &[Option<u8>; 9]) -> bool {
    ROWS.iter()
        .any(|[a, b, c]| cells[*a].is_some() && cells[*a] == cells[*b] && cells[*b] == cells[*c])
}

/// The worth of a position for who is to move, and its best cell.
fn search(cells: &mut [Option<u8>; 9], player: u8) -> (i32, Option<usize>) {
    if has_won(cells) {
        return (-10, None);
    }
    let mut best = (i32::MIN, None);
    for at in 0..9 {
        if cells[at].is_none() {
            cells[at] = Some(player);
            let worth = -search(cells, 1 - player).0;
            cells[at] = None;
            // Sooner is better.
            let worth = worth - worth.signum();
            if worth > best.0 {
                best = (worth, Some(at));
            }
        }
    }
    if best.1.is_none() { (0, None) } else { best }
}

impl Noughts {
    fn tell_board(&self, table: &mut Table) {
        table.say_with(MessageKind::Board, |text| {
            text.push_str("Current Board:\n\n");
            for at in 0..9 {
                let mark = match self.cells[at] {
                    Some(player) => MARKS[usize::from(player)],
                    None => char::from(b'0' + at as u8),
                };
                let end = match at {
                    2 | 5 => "\n---+---+---\n",
                    8 => "",
                    _ => "|",
                };
                text.add(' ').add(mark).add(' ').add(end);
            }
            text.push_str("\n\nAvailable Moves: ");
            let free = (0..9).filter(|at| self.cells[*at].is_none());
            for (number, at) in free.enumerate() {
                let between = if number == 0 { "" } else { ", " };
                text.add(between).add("'[").add(at).add("]'");
            }
        });
    }
}

impl Rules for Noughts {
    fn seating(&self) -> Seating {
        Seating::Duel
    }

    fn num_players(&self) -> usize {
        2
    }

    fn begin(&mut self, table: &mut Table) {
        self.cells = [None; 9];
        for number in 0..self.settings.opening {
            let free: Vec<usize> = (0..9).filter(|at| self.cells[*at].is_none()).collect();
            let at = free[table.rng.below(free.len() as u64) as usize];
            self.cells[at] = Some((number % 2) as u8);
        }
        table.current = (self.settings.opening % 2) as usize;
        for player in 0..2 {
            let (own, other) = (MARKS[player], MARKS[1 - player]);
            table.say_to(
                Some(player),
                MessageKind::Prompt,
                format_args!(
                    "You are Player {player} in Tic Tac Toe.\n\
                     Your goal is to win three in a row (horizontally, vertically, or diagonally) on the board.\n\
                     On your turn, you should select the square number (0-8) you want to put your mark in next.\n\
                     For example, '[4]' places your mark in the center cell of the board.\n\n\
                     As Player {player}, you will be '{own}', while your opponent is '{other}'.\n"
                ),
            );
        }
        self.tell_board(table);
    }

    fn act(&mut self, table: &mut Table, action: &str) {
        let player = table.current;
        table.pass_on(player, None, action);
        match first(action, cell) {
            None => {
                let why = "The submitted move does not follow the correct format.";
                table.invalid(format_args!("{why}"));
            }
            Some(digits) => match usize::try_from(value(digits)).ok().filter(|at| *at < 9) {
                None => {
                    let named = printed(digits);
                    table.invalid(format_args!("{named}. Must be between 0 and 8."));
                }
                Some(at) if self.cells[at].is_some() => {
                    table.invalid(format_args!("cell {at} is already occupied."));
                }
                Some(at) => {
                    self.cells[at] = Some(player as u8);
                    let mark = MARKS[player];
                    table.say_with(MessageKind::Description, |text| {
                        text.add("Player ").add(player).add(" placed their symbol (").add(mark);
                        text.add(") in cell ").add(at).add('.');
                    });
                    if has_won(&self.cells) {
                        let reason = format!("Player {player} has won!");
                        table.set_winners(|other| other == player, reason);
                    } else if self.cells.iter().all(Option::is_some) {
                        table.set_draw("The game is a draw!");
                    }
                }
            },
        }
        self.tell_board(table);
        table.end_move(true);
    }

    fn legal(&self, _: &Table) -> Option<Vec<String>> {
        let free = (0..9).filter(|at| self.cells[*at].is_none());
        Some(free.map(|at| format!("[{at}]")).collect())
    }

    /// Perfect play, by looking at all that can come.
    fn expert(&mut self, table: &Table, _: f64) -> Option<String> {
        let (_, best) = search(&mut self.cells.clone(), table.current as u8);
        best.map(|at| format!("[{at}]"))
    }

    fn key(&self, table: &Table) -> Option<u128> {
        let cells = self
            .cells
            .iter()
            .fold(0_u128, |key, cell| key * 3 + cell.map_or(0, |player| u128::from(player) + 1));
        Some(cells << 1 | table.current as u128)
    }

    fn search_depth(&self) -> u32 {
        64
    }

    fn copy(&self) -> Box<dyn Rules> {
        Box::new(self.clone())
    }
}
