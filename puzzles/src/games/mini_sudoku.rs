//! Small Sudokus.

use super::board_answer;
use super::sudoku_grid::Grid;
use crate::prelude::*;

options! {
    /// Options of `mini_sudoku`.
    MiniSudokuOptions {
        /// Fewest empty cells, at least 0; with 0 as many as leave one solution. Default 8.
        min_empty: i64 = 8,
        /// Most empty cells, up to 12. Default 12.
        max_empty: i64 = 12,
    }
    |given, problems| {
        problems.span(("min_empty", "max_empty"), (given.min_empty, given.max_empty), (0, 12));
    }
}

/// A Sudoku of 4 by 4 cells with one solution.
pub(crate) struct MiniSudoku;

impl Generator for MiniSudoku {
    type Options = MiniSudokuOptions;

    fn item(options: &MiniSudokuOptions, rng: &mut Random) -> Result<Item, ItemError> {
        let solved = Grid::<4>::solved(rng)?;
        let empty = rng.int(options.min_empty, options.max_empty)?;
        let puzzle = solved.with_holes(rng, empty);
        let question = format!(
            "In 4x4 Mini Sudoku:\n- Each row must contain each number from 1-4 exactly once\n- Each column must contain each number 1-4 exactly once\n- Each 2x2 subgrid must contain each number 1-4 exactly once\nSolve this 4x4 Mini Sudoku puzzle:\n{}\nFormat your response as the puzzle above, with spaces separating each number within a row, and newlines separating rows.\n",
            board_answer::written(&puzzle.rows())
        );
        Ok(Item::new(question, board_answer::written(&solved.rows())))
    }

    fn score(_: &MiniSudokuOptions, answer: Option<&str>, item: &Item) -> f64 {
        match answer {
            None | Some("") => 0.0,
            Some(answer) => {
                board_answer::score(answer, item.gold(), &board_answer::read(item.gold()))
            }
        }
    }
}
