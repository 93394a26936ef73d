//! Queens that do not attack each other.

use std::sync::OnceLock;

use spar_python::{NoNames, eval, iterate, to_str};

use crate::prelude::*;

options! {
    /// Options of `n_queens`.
    NQueensOptions {
        /// Rows and columns of the board, 4 to 12. Default 8.
        n: i64 = 8,
        /// Fewest queens that are missing, at least 1. Default 1.
        min_remove: i64 = 1,
        /// Most queens that are missing, up to all. Default 7.
        max_remove: i64 = 7,
    }
    |given, problems| {
        problems.between("n", given.n, 4, 12);
        problems.span(("min_remove", "max_remove"), (given.min_remove, given.max_remove), (1, given.n));
    }
}

/// A board with some queens, to be completed. Every completion is right.
pub(crate) struct NQueens;

/// The column of the queen in each row.
type Queens = Vec<u8>;

impl Generator for NQueens {
    type Options = NQueensOptions;

    fn item(options: &NQueensOptions, rng: &mut Random) -> Result<Item, ItemError> {
        let n = options.n as usize;
        let all = solutions(n);
        let solved = rng.choice(all)?;
        let removed = rng.int(options.min_remove, options.max_remove)?;
        let mut order: Vec<usize> = (0..n).collect();
        rng.shuffle(&mut order);
        let kept = &order[removed as usize..];
        let shown = |row: usize| kept.contains(&row).then(|| solved[row]);
        let puzzle = joined((0..n).map(|row| line(n, shown(row))), "\n");
        // Solutions are found in the order of their texts.
        let valid: Vec<&Queens> = all
            .iter()
            .filter(|queens| kept.iter().all(|row| queens[*row] == solved[*row]))
            .collect();
        let answer = rng.choice(&valid)?;
        let answer = joined(answer.iter().map(|column| line(n, Some(*column))), "\n");
        let question = format!(
            "Your job is to complete an n x n chess board with n Queens in total, such that no two attack each other.\n\nNo two queens attack each other if they are not in the same row, column, or diagonal.\n\nYou can place a queen by replacing an underscore (_) with a Q.\n\nYour output should be also a board in the same format as the input, with queens placed on the board by replacing underscores with the letter Q.\n\nGiven the below board of size {n} x {n} your job is to place {removed} queen(s) on the board such that no two queens attack each other.\n{puzzle}\n"
        );
        let facts: Vec<Vec<&str>> =
            puzzle.split('\n').map(|row| row.split(' ').collect()).collect();
        Ok(Item::new(question, answer).with("puzzle", json!(facts)))
    }

    fn score(_: &NQueensOptions, answer: Option<&str>, item: &Item) -> f64 {
        let Some(answer) = answer else { return 0.0 };
        let rows = item.fact("puzzle").as_array().map(Vec::as_slice).unwrap_or_default();
        if is_solution(answer, rows) {
            return 1.0;
        }
        let evaluated = || {
            let rows = iterate(&eval(answer, &mut NoNames).ok()?).ok()?;
            let mut lines = Vec::new();
            for row in rows {
                // `" ".join` takes texts alone.
                let cells: Option<Vec<String>> = iterate(&row)
                    .ok()?
                    .iter()
                    .map(|cell| cell.as_str().and_then(|_| to_str(cell).ok()))
                    .collect();
                lines.push(cells?.join(" "));
            }
            Some(lines.join("\n"))
        };
        if evaluated().is_some_and(|board| is_solution(&board, rows)) { 0.5 } else { 0.0 }
    }
}

fn line(n: usize, queen: Option<u8>) -> String {
    joined((0..n).map(|column| if queen == Some(column as u8) { 'Q' } else { '_' }), " ")
}

/// All boards of a size, in the order of their columns.
fn solutions(n: usize) -> &'static [Queens] {
    static BOARDS: [OnceLock<Vec<Queens>>; 13] = [const { OnceLock::new() }; 13];
    BOARDS[n].get_or_init(|| {
        let mut found = Vec::new();
        place(n, &mut Vec::new(), &mut found);
        found
    })
}

fn attacks(queens: &[u8], column: u8) -> bool {
    let row = queens.len();
    queens
        .iter()
        .enumerate()
        .any(|(other, queen)| *queen == column || queen.abs_diff(column) as usize == row - other)
}

fn place(n: usize, queens: &mut Queens, found: &mut Vec<Queens>) {
    if queens.len() == n {
        found.push(queens.clone());
        return;
    }
    for column in 0..n as u8 {
        if !attacks(queens, column) {
            queens.push(column);
            place(n, queens, found);
            queens.pop();
        }
    }
}

/// Whether a text is a full board with the queens of a puzzle.
fn is_solution(text: &str, puzzle: &[Value]) -> bool {
    let n = puzzle.len();
    // Each line has a sign for each cell and spaces between them.
    if text.len() != n * (2 * n - 1) + n.saturating_sub(1) {
        return false;
    }
    let mut queens = Vec::new();
    for (row, text) in text.split('\n').enumerate() {
        let Some(column) = text.find('Q').map(|at| at / 2) else { return false };
        let shown = puzzle
            .get(row)
            .and_then(Value::as_array)
            .and_then(|cells| cells.iter().position(|cell| cell == "Q"));
        if text != line(n, Some(column as u8))
            || shown.is_some_and(|shown| shown != column)
            || attacks(&queens, column as u8)
        {
            return false;
        }
        queens.push(column as u8);
    }
    queens.len() == n
}
