//! Games and puzzles of boards.

pub(crate) mod board_answer;
pub(crate) mod kakurasu;
pub(crate) mod mahjong;
pub(crate) mod maze;
pub(crate) mod mini_sudoku;
pub(crate) mod n_queens;
pub(crate) mod sudoku;
pub(crate) mod sudoku_grid;
pub(crate) mod survo;
pub(crate) mod tower_of_hanoi;
pub(crate) mod tsumego;
