//! Sudokus.

use super::board_answer;
use super::sudoku_grid::Grid;
use crate::prelude::*;

options! {
    /// Options of `sudoku`.
    SudokuOptions {
        /// Fewest empty cells, at least 0; with 0 as many as leave one solution. Default 30.
        min_empty: i64 = 30,
        /// Most empty cells, up to 64. Default 50.
        max_empty: i64 = 50,
    }
    |given, problems| {
        problems.span(("min_empty", "max_empty"), (given.min_empty, given.max_empty), (0, 64));
    }
}

/// A Sudoku of 9 by 9 cells with one solution.
pub(crate) struct Sudoku;

impl Generator for Sudoku {
    type Options = SudokuOptions;

    fn item(options: &SudokuOptions, rng: &mut Random) -> Result<Item, ItemError> {
        let solved = Grid::<9>::solved(rng)?;
        let empty = rng.int(options.min_empty, options.max_empty)?;
        let puzzle = solved.with_holes(rng, empty);
        let question = format!(
            "Solve this Sudoku puzzle:\n{}\nRespond with only your answer, formatted as the puzzle, a 9x9 grid with numbers separated by spaces, and rows separated by newlines.",
            board_answer::written(&puzzle.rows())
        );
        Ok(Item::new(question, board_answer::written(&solved.rows())))
    }

    fn score(_: &SudokuOptions, answer: Option<&str>, item: &Item) -> f64 {
        match answer {
            None | Some("") => 0.0,
            Some(answer) => {
                board_answer::score(answer, item.gold(), &board_answer::read(item.gold()))
            }
        }
    }
}
